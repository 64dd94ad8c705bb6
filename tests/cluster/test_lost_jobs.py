"""Jobs that a cluster loses, in every way: named, and measured again without what was measured
already.
"""

import json
import os
import subprocess
import sys

import pytest
from testcluster.processes import wait_until
from tests.checkout import TO_TABLES

from workflow import Workflow

CPU = [{"workloads": ["DP", "SP"], "concurrency": [1], "seconds": 2, "repetitions": 2}]


def lost_on(workflow: Workflow, node: str) -> tuple[str, str]:
    """The only failed attempt, which was on this node: its cell and its reason."""
    ((cell, reason),) = workflow.attempts().items()
    attempt = json.loads((workflow.results / "attempts" / cell / "0.json").read_text())
    assert attempt["context"]["host"] == node
    return cell, reason


def test_a_lost_node_costs_an_attempt_and_no_cell(equal_workflow: Workflow) -> None:
    workflow = equal_workflow
    workflow.configure(cpu=CPU)
    process = workflow.start(*TO_TABLES)
    workflow.cluster.wait_for_process("node2", "cpubench", 120)
    workflow.cluster.kill_node("node2")
    workflow.end(process, 0)
    cell, reason = lost_on(workflow, "node2")
    assert "NODE_FAIL" in reason
    records = workflow.records()
    assert len(records) == 4 and records[cell]["context"]["host"] == "node1"


def test_preempted_jobs_are_named_and_lead_to_a_report(equal_workflow: Workflow) -> None:
    workflow, cluster = equal_workflow, equal_workflow.cluster
    workflow.configure(cpu=CPU)
    process = workflow.start()
    cluster.wait_for_process("node1", "cpubench", 120)
    options = ("--partition=urgent", "--exclusive", "--nodelist=node1", "--output=/dev/null")
    assert cluster.wait_for_job(cluster.sbatch("sleep 1", *options))["JobState"] == "COMPLETED"
    workflow.end(process, 0)
    assert "PREEMPTED" in lost_on(workflow, "node1")[1]
    assert len(workflow.records()) == 4 and (workflow.results / "report.pdf").exists()


@pytest.mark.trouble
def test_a_node_that_is_drained_meanwhile_is_given_up_with_its_reason(
    equal_workflow: Workflow,
) -> None:
    workflow, cluster = equal_workflow, equal_workflow.cluster
    busy = cluster.sbatch("sleep 600", "--nodelist=node1", "--exclusive", "--output=/dev/null")
    cluster.wait_for_job(busy, "RUNNING")
    cpu = [{"workloads": ["DP"], "concurrency": [1]}]
    workflow.configure(nodes="all", give_up_after="2 s", cpu=cpu)
    process = workflow.start()

    def pending() -> str:
        return cluster.run(["squeue", "--noheader", "--states=pending", "--format=%k"]).stdout

    wait_until(lambda: "/node1/0 " in pending(), 120, "its cell waits for node1", 0.2)
    cluster.update_node("node1", "State=DRAIN", "Reason=a broken fan")
    cluster.run(["scancel", str(busy)])
    workflow.end(process, 1)
    ((name, reason),) = workflow.attempts().items()
    assert name == "cpu/cpubench/DP_none_x1/node1/0"
    assert set(workflow.records()) == {name.replace("node1", "node2")}
    assert "node1 is" in reason and "a broken fan" in reason and "give_up_after" in reason
    assert "1 job waits since" in workflow.said and reason in workflow.said and not pending()
    cluster.update_node("node1", "State=RESUME")
    workflow.snakemake(*TO_TABLES)
    assert len(workflow.records()) == 2


@pytest.mark.trouble
def test_a_cell_without_memory_is_named_and_measured_when_it_has_some(workflow: Workflow) -> None:
    """A pool of 1 GiB does not fit into half of what its job would ask for; what the other cell
    needs does.
    """
    grid = {"workloads": ["RS"], "variants": ["pool"], "blocks": ["1MiB"], "concurrency": [1]}
    workflow.configure(
        site=workflow.site("{exclusive: false, memory_factor: 0.5}"),
        cpu=[{"workloads": ["DP"], "concurrency": [1]}],
        memory=[{**grid, "pool": "1GiB", "seconds": 5}],
    )
    said = workflow.snakemake(code=1)
    lost, sound = "memory/rambench/RS-pool_1MiB_x1/any/0", "cpu/cpubench/DP_none_x1/any/0"
    before = workflow.started()
    assert set(workflow.attempts()) == {lost} and set(before) == {sound}, said
    reason = workflow.attempts()[lost]
    fact = "OUT_OF_MEMORY: rambench would allocate 1025MiB, but the job may use 854MiB"
    assert f"{fact}: memory_factor in the site file's" in reason, said
    attempt = json.loads((workflow.results / "attempts" / lost / "0.json").read_text())
    for text in (said, workflow.peakmark("status", "results/short")):
        lines = [line.strip() for line in text.splitlines()]
        assert f"{attempt['context']['host']}: {reason}" in lines, text
        log = next(line.split(None, 1)[1] for line in lines if line.startswith("log "))
        assert "rambench would allocate 1025MiB" in (workflow.directory / log).read_text()
        again = next(line.split(None, 1)[1] for line in lines if line.startswith("again "))
    assert f"results/short/cells/{lost}.json" in again
    workflow.peakmark("report", "--partial", "results/short")
    pdf = str(workflow.results / "report.pdf")
    appendix = " ".join(subprocess.check_output(["pdftotext", pdf, "-"], text=True).split())
    assert fact in appendix

    workflow.site("{exclusive: false, memory_factor: 1.5}")
    assert workflow.planned() == {lost}
    workflow.snakemake()
    after = workflow.started()
    assert set(after) == {sound, lost} and after[sound] == before[sound]
    assert workflow.attempts() == {lost: reason}, "the failed attempt stays"


@pytest.mark.trouble
def test_every_way_to_lose_a_job_is_named_and_only_the_lost_are_measured_again(
    workflow: Workflow,
) -> None:
    cluster, fail = workflow.cluster, workflow.directory / "fail"
    blocks, nodes = ("4KiB", "8KiB"), ("node1", "node2")
    cells = {f"disk/fio/WS-psync_{block}_x1/{node}/0" for block in blocks for node in nodes}
    hold = workflow.busy_fio(blocks, nodes="all", retries=0)
    process = workflow.start()
    running = workflow.wait_for_tools(2)
    status = workflow.peakmark("status", "results/short")
    assert "running" in status and "pending" in status
    numbers = {node: workflow.queued("--states=running", "-w", node).pop() for node in running}
    cluster.run(["scancel", numbers["node1"]])
    cluster.expire(int(numbers["node2"]))
    assert cluster.wait_for_job(int(numbers["node2"]))["JobState"] == "TIMEOUT"
    workflow.wait_for_tools(2)
    cluster.kill_slurmd("node2")
    wait_until(lambda: "DOWN" in cluster.node_states("node2"), 60, "node2 is down", 0.2)
    cluster.start_slurmd("node2")
    fail.touch()
    hold.unlink()
    workflow.end_tools("node1")
    workflow.end(process, 1)
    reasons = workflow.attempts()
    assert set(reasons) <= cells
    # The last one is the tool that was ended above.
    for word in ("CANCELLED", "TIMEOUT", "NODE_FAIL", "ended with signal SIGKILL"):
        assert word in " ".join(reasons.values()), workflow.said
    for name in reasons:  # the list at the end names it, with a command to measure it again
        assert f"  {name}\n" in workflow.said
        assert f"results/short/cells/{name}.json" in workflow.said
    assert not (workflow.results / "report.pdf").exists()
    assert "report.pdf" in workflow.peakmark("report", "--partial", "results/short")

    fail.unlink()
    cluster.wait_for_node("node2", "IDLE")
    before = workflow.started()
    lost = cells - set(before)
    assert workflow.planned() == lost == set(reasons)
    lines = [line.strip() for line in workflow.said.splitlines()]
    command = next(line.split(None, 1)[1] for line in lines if line.startswith("again "))
    pasted = workflow.call(["sh", "-c", f"PATH={os.environ['PATH']} {command}"])
    assert pasted.returncode == 0, pasted.stderr
    mended = set(workflow.started()) - set(before)
    assert len(mended) == 1 and workflow.planned() == lost - mended
    workflow.snakemake()
    after = workflow.started()
    assert set(after) - set(before) == lost
    assert {name: after[name] for name in before} == before
    assert workflow.attempts() == reasons, "failed attempts stay"


@pytest.mark.trouble
def test_a_node_lost_in_the_middle_leaves_files_that_are_found(equal_workflow: Workflow) -> None:
    """All its processes die at once, the guard of the scratch directory with them, as when the
    power goes.
    """
    workflow, cluster = equal_workflow, equal_workflow.cluster
    scratch = workflow.directory / "scratch"
    scratch.mkdir()
    hold = workflow.busy_fio(("4KiB", "8KiB", "16KiB"), scratch=str(scratch))
    process = workflow.start()
    workflow.wait_for_tools(2)
    cluster.kill_node("node2")
    wait_until(lambda: "DOWN" in cluster.node_states("node2"), 60, "node2 is down", 0.2)
    hold.unlink()
    workflow.end_tools("node1")
    workflow.end(process, 1)  # the tool that was ended here has failed
    reasons = workflow.attempts()
    assert len(reasons) == 2 and "NODE_FAIL" in " ".join(reasons.values()), workflow.said
    assert len(workflow.records()) == 5, "what the dead node measured is measured again"
    (left,) = scratch.iterdir()

    cluster.start_node("node2")
    cluster.wait_for_node("node2", "IDLE")
    workflow.snakemake()
    assert len(workflow.records()) == 6
    # The next cell on that node removes what is older than a minute; `clean` does it in any case.
    assert set(scratch.iterdir()) <= {left}
    clean = ["srun", "--nodelist=node2", sys.executable, "-m", "peakmark", "clean", str(scratch)]

    def is_removed() -> bool:  # it must be older than a minute
        return workflow.call(clean).returncode == 0 and not left.exists()

    wait_until(is_removed, 120, "what the dead node left is removed", 2.0)
    assert not list(scratch.iterdir())
