"""A cell of two nodes, measured by a job of its own without Snakemake."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testcluster import Cluster
from testcluster.processes import wait_until

from peakmark.cell import Cell
from peakmark.storage import planfile
from workflow import Workflow

TRIES = 10
# Half a CPU, with a pause often enough to be seen in every short time; before others, or a busy
# machine leaves it too little to count as busy.
NEIGHBOUR = """
import os, time
os.setpriority(os.PRIO_PROCESS, 0, -10)
while True:
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    time.sleep(0.05)
"""


@contextlib.contextmanager
def neighbour(cluster: Cluster, node: str) -> Iterator[None]:
    """Another program at work on the node while the block runs."""
    with subprocess.Popen([*cluster.hosts.enter(node), sys.executable, "-c", NEIGHBOUR]) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_until(children.read_text, 60, "the program is on its node")
        child = int(children.read_text())
        try:
            yield
        finally:
            os.kill(child, signal.SIGKILL)


def measured(workflow: Workflow, repetition: int) -> dict[str, Any]:
    """What the record of a cell of two nodes says of its surroundings; measured by a job of its
    own.
    """
    options = {"seconds": 1.0, "warmup": 0.0}
    cell = Cell("network", "netbench", "TCP", "", 1024, 1, "any", repetition, options)
    plan, one = workflow.results / "plan.json", {"id": cell.id, **cell.to_json()}
    planfile.write(
        plan,
        {
            "schema": 1,
            "campaign": "c",
            "config": {},
            "cluster": {"partition": "main"},
            "cells": [one],
        },
    )
    words = [sys.executable, "-m", "peakmark", "measure", "--plan", str(plan), "--cell", cell.id]
    wanted = ["--nodes=2", "--exclusive", "--output=said"]
    number = workflow.cluster.sbatch(shlex.join(words), *wanted, cwd=workflow.directory)
    assert workflow.cluster.wait_for_job(number)["JobState"] == "COMPLETED", workflow.said
    context: dict[str, Any] = json.loads(
        (workflow.results / "cells" / f"{cell.id}.json").read_text()
    )["context"]
    return context


def test_each_end_hears_its_own_node(cluster: Cluster, tmp_path: Path) -> None:
    workflow = Workflow.make(cluster, tmp_path / "checkout")
    with neighbour(cluster, "node2"):
        # A machine that is busy itself may leave the neighbour too little to count, for a while.
        for repetition in range(TRIES):
            context = measured(workflow, repetition)
            assert context["noise"]["during"]["busy"] == 0
            if context["server_noise"]["during"]["busy"]:
                break
    assert (context["host"], context["server_host"]) == ("node1", "node2")
    assert context["server_noise"]["during"]["busy"] == 1
    assert context["server_noise"]["during"]["seconds"] > 1
