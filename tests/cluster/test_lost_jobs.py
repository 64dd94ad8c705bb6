"""Jobs that a cluster loses: each is named, and they alone are measured again."""

import json
import os

import pytest
from testcluster.processes import wait_until
from tests.checkout import TO_RECORDS

BLOCKS = ("4KiB", "8KiB")


def lost_on(workflow, node):
    """The only failed attempt, which was on this node: its cell and its reason."""
    ((cell, reason),) = workflow.attempts().items()
    attempt = json.loads((workflow.results / "attempts" / cell / "0.json").read_text())
    assert attempt["context"]["host"] == node
    return cell, reason


def test_a_lost_node_costs_an_attempt_and_no_cell(equal_workflow):
    workflow = equal_workflow
    wait = workflow.busy_fio(BLOCKS, "wait")
    process = workflow.start(*TO_RECORDS)
    workflow.wait_for_tools(2)
    workflow.cluster.kill_node("node2")
    wait.unlink()
    workflow.end(process, 0)
    cell, reason = lost_on(workflow, "node2")
    assert "NODE_FAIL" in reason
    records = workflow.records()
    assert len(records) == 4 and records[cell]["context"]["host"] == "node1"


def test_preempted_jobs_are_named_and_measured_again(equal_workflow):
    workflow, cluster = equal_workflow, equal_workflow.cluster
    wait = workflow.busy_fio(BLOCKS, "wait")
    process = workflow.start(*TO_RECORDS)
    workflow.wait_for_tools(2)
    options = ("--partition=urgent", "--exclusive", "--nodelist=node1", "--output=/dev/null")
    assert cluster.wait_for_job(cluster.sbatch("sleep 1", *options))["JobState"] == "COMPLETED"
    wait.unlink()
    workflow.end(process, 0)
    assert "PREEMPTED" in lost_on(workflow, "node1")[1]
    assert len(workflow.records()) == 4


@pytest.mark.trouble
def test_every_way_to_lose_a_job_is_named_and_only_the_lost_are_measured_again(workflow):
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
    assert "report.pdf" in workflow.peakmark("report", "results/short")

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
