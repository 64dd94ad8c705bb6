"""Jobs that a cluster loses, in every way: told, and measured again without what was measured
already.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from testcluster import Cluster
from testcluster.processes import wait_until

from workflow import DISK, Workflow

FIO_FIRST = 4
"""The seed with which the first two cells are ones of fio: on two nodes, as each of them waits
there.
"""


@pytest.mark.trouble
def test_a_cell_without_memory_is_told_and_measured_when_it_has_some(workflow: Workflow) -> None:
    """A pool of 1 GiB does not fit into half of what its job would ask for; what the other cell
    needs does.
    """
    workflow.configure(
        site=workflow.site("{exclusive: false, memory_factor: 0.5}"),
        cpu=[{"workloads": ["DP"], "concurrency": [1]}],
        memory=[
            {
                "workloads": ["RS"],
                "variants": ["pool"],
                "blocks": ["1MiB"],
                "concurrency": [1],
                "pool": "1GiB",
                "seconds": 5,
            }
        ],
    )
    first = workflow.snakemake()
    said = first.stdout + first.stderr
    assert first.returncode == 1, said
    lost = "memory/rambench/RS-pool_1MiB_x1/any/0"
    assert set(workflow.attempts()) == {lost}, said
    before = workflow.started()
    assert set(before) == {"cpu/cpubench/DP_none_x1/any/0"}
    reason = workflow.attempts()[lost]
    words = "OUT_OF_MEMORY: rambench would allocate 1025MiB, but the job may use 854MiB: memory_factor in the site file's"
    assert words in reason, said
    node = json.loads((workflow.results / "attempts" / lost / "0.json").read_text())["context"][
        "host"
    ]
    for text in (said, workflow.peakmark("status", "results/short")):
        lines = [line.strip() for line in text.splitlines()]
        assert f"{node}: {reason}" in lines, text
        log = next(line.split(None, 1)[1] for line in lines if line.startswith("log "))
        assert "rambench would allocate 1025MiB" in (workflow.directory / log).read_text()
        again = next(line.split(None, 1)[1] for line in lines if line.startswith("again "))
    workflow.peakmark("report", "--partial", "results/short")
    pdf = str(workflow.results / "report.pdf")
    appendix = " ".join(subprocess.check_output(["pdftotext", pdf, "-"], text=True).split())
    assert "OUT_OF_MEMORY: rambench would allocate 1025MiB, but the job may use 854MiB" in appendix

    workflow.site("{exclusive: false, memory_factor: 1.5}")
    assert workflow.planned() == {lost}
    assert f"results/short/cells/{lost}.json" in again
    second = workflow.snakemake()
    assert second.returncode == 0, second.stdout + second.stderr
    after = workflow.started()
    assert {name: after[name] for name in before} == before and set(after) == {*before, lost}
    assert workflow.attempts() == {lost: reason}, "the failed attempt stays"


@pytest.mark.trouble
def test_every_way_to_lose_a_job_is_told_and_only_the_lost_are_measured_again(
    workflow: Workflow,
) -> None:
    blocks = ["4KiB", "8KiB"]
    asked = {
        f"disk/fio/WS-psync_{block}_x1/{node}/0" for block in blocks for node in ("node1", "node2")
    }
    tool = workflow.holding("/usr/bin/fio")
    grid = {**DISK, "blocks": blocks, "references": {"fio": {"seconds": 0.1}}}
    workflow.configure(disk=[grid], nodes="all", tools={"fio": tool}, retries=0)
    hold, fail, cluster = workflow.directory / "hold", workflow.directory / "fail", workflow.cluster
    hold.touch()
    process = workflow.start()
    kept = workflow.wait_for_tools(2)
    status = workflow.peakmark("status", "results/short")
    assert "running" in status and "pending" in status and "RUNNING".lower() in status
    numbers = {
        node: int(cluster.run(["squeue", "-h", "--states=running", "-w", node, "-o", "%i"]).stdout)
        for node in kept
    }
    cluster.run(["scancel", str(numbers["node1"])])
    cluster.expire(numbers["node2"])
    assert cluster.wait_for_job(numbers["node2"])["JobState"] == "TIMEOUT"
    workflow.wait_for_tools(2)
    cluster.kill_slurmd("node2")
    wait_until(lambda: "DOWN" in cluster.node_states("node2"), 60, "node2 is down", 0.2)
    cluster.start_slurmd("node2")
    fail.touch()
    hold.unlink()
    workflow.end_tools("node1")
    assert workflow.end(process) == 1
    reasons = workflow.attempts()
    assert set(reasons) <= asked
    text = " ".join(reasons.values())
    for word in ("CANCELLED", "TIMEOUT", "NODE_FAIL"):
        assert word in text, workflow.said
    assert "ended with signal SIGKILL" in text  # the tool that was killed above
    for name in reasons:
        assert name in workflow.said, "the list at the end names it"
        assert f"results/short/cells/{name}.json" in workflow.said, (
            "with a command to measure it again"
        )
    assert not (workflow.results / "report.pdf").exists()
    partial = workflow.peakmark("report", "--partial", "results/short")
    assert "report.pdf" in partial

    fail.unlink()
    cluster.wait_for_node("node2", "IDLE")
    before = workflow.started()
    lost = asked - set(before)
    assert workflow.planned() == lost == set(reasons)
    command = next(
        line.split(None, 1)[1]
        for line in workflow.said.splitlines()
        if line.strip().startswith("again ")
    )
    pasted = cluster.run(
        ["sh", "-c", f"PATH={os.environ['PATH']} {command}"],
        cwd=workflow.directory,
        env=workflow.environment,
        timeout=120,
        check=False,
    )
    assert pasted.returncode == 0, pasted.stderr
    mended = set(workflow.started()) - set(before)
    assert len(mended) == 1
    assert workflow.planned() == lost - mended
    again = workflow.snakemake()
    assert again.returncode == 0, again.stdout + again.stderr
    after = workflow.started()
    assert set(after) - set(before) == lost
    assert {name: after[name] for name in before} == before
    assert workflow.attempts() == reasons, "failed attempts stay"


@pytest.mark.trouble
def test_a_node_lost_in_the_middle_costs_an_attempt_and_its_files_are_found(
    equal: Cluster, tmp_path: Path
) -> None:
    """All its processes die at once, the guard of the scratch directory with them, as when the
    power goes.
    """
    workflow = Workflow.make(equal, tmp_path / "checkout")
    blocks, scratch = ["4KiB", "8KiB", "16KiB"], workflow.directory / "scratch"
    scratch.mkdir()
    tool = workflow.holding("/usr/bin/fio")
    workflow.configure(
        disk=[{**DISK, "blocks": blocks, "references": {"fio": {"seconds": 0.1}}}],
        seed=FIO_FIRST,
        tools={"fio": tool},
        scratch=str(scratch),
    )
    hold, cluster = workflow.directory / "hold", workflow.cluster
    hold.touch()
    process = workflow.start()
    workflow.wait_for_tools(2)
    cluster.kill_node("node2")
    wait_until(lambda: "DOWN" in cluster.node_states("node2"), 60, "node2 is down", 0.2)
    hold.unlink()
    workflow.end_tools("node1")
    assert workflow.end(process) == 1, "the tool that was ended here has failed"
    reasons = workflow.attempts()
    assert len(reasons) == 2 and "NODE_FAIL" in " ".join(reasons.values()), workflow.said
    assert len(workflow.records()) == 2 * len(blocks) - 1, (
        "what the dead node measured is measured again"
    )
    (left,) = scratch.iterdir()

    cluster.start_node("node2")
    cluster.wait_for_node("node2", "IDLE")
    again = workflow.snakemake()
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(workflow.records()) == 2 * len(blocks)
    # The next cell on that node removes what is older than a minute; `clean` does it in any case.
    assert set(scratch.iterdir()) <= {left}
    clean = ["srun", "--nodelist=node2", sys.executable, "-m", "peakmark", "clean", str(scratch)]
    wait_until(  # it must be older than a minute
        lambda: (
            cluster.run(clean, cwd=workflow.directory, env=workflow.environment).stdout
            and not left.exists()
        ),
        120,
        "what the dead node left is removed",
        2.0,
    )
    assert not list(scratch.iterdir())
