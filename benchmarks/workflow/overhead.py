"""What a cell costs on a cluster beside its measuring, beside what any job of the same executor plugin costs."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.cluster.testcluster import Cluster, why_not  # the real one that the tests start

from benchmarks.workflow.checkout import Checkout
from benchmarks.workflow.lines import Line
from peakmark.errors import PeakmarkError

NODES = 2
LIMIT_S = 600.0
MORE = 4
"""So many times the cells with a job for each node: its start is shared by all of them."""
SLEEP_S = 1

BARE = """
rule all:
    input:
        expand("out/{{number}}", number=range({jobs})),

rule one:
    output:
        "out/{{number}}",
    resources:
        runtime=2,
        mem_mb=512,
        slurm_extra="--exclusive",
    shell:
        "sleep {sleep}; touch {{output}}"
"""


def per_cell(checkout: Checkout, turns: int, cells: int = 8) -> list[Line]:
    """Seconds of a node per cell without the measuring, with a job for each cell and with a job for each node.

    Errors: PeakmarkError when no cluster can be started here, or a run fails.
    """
    if reason := why_not():
        raise PeakmarkError(reason)
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    bare: list[float] = []
    by_cell: list[float] = []
    by_node: list[float] = []
    runs: dict[str, list[float]] = {"bare": [], "cell": [], "node": []}
    with Cluster.running(NODES, cpus=2) as cluster:
        for turn in range(turns):
            for into, name in ((bare, "bare"), (by_cell, "cell"), (by_node, "node")):
                started = time.monotonic()
                if name == "bare":
                    into.append(_bare(cluster, checkout, turn, cells))
                else:
                    into.append(_own(cluster, checkout, name, turn, cells * (1 if name == "cell" else MORE)))
                runs[name].append(time.monotonic() - started)
    beside = "a rule that sleeps, same plugin"
    return [
        Line("node time per cell beside the measuring, fan_out: cell", "s", by_cell, 1.2, beside, bare),
        Line("node time per cell beside the measuring, fan_out: node", "s", by_node, 0.1, "fan_out: cell", by_cell),
        Line(
            f"whole run of {cells} cells, fan_out: cell",
            "s",
            runs["cell"],
            1.2,
            f"{cells} jobs that sleep",
            runs["bare"],
        ),
    ]


def _run(cluster: Cluster, folder: Path, *words: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = cluster.run(
        [sys.executable, "-m", "snakemake", *words], cwd=folder, env=environment, check=False, timeout=LIMIT_S
    )
    if done.returncode:
        raise PeakmarkError(
            f"snakemake {' '.join(words)} failed on the test cluster:\n{(done.stdout + done.stderr)[-2000:]}"
        )


def _bare(cluster: Cluster, checkout: Checkout, turn: int, jobs: int) -> float:
    folder = checkout.directory / f"bare-{turn}"
    folder.mkdir()
    (folder / "Snakefile").write_text(BARE.format(jobs=jobs, sleep=SLEEP_S))
    # The settings of the profile; what is compared are the jobs.
    words = ["--executor", "slurm", "--jobs", "2000", "--scheduler", "greedy", "--slurm-status-command", "squeue"]
    words += ["--slurm-init-seconds-before-status-checks", "5", "--default-resources", "slurm_account=none"]
    _run(cluster, folder, *words)
    return sum(_jobs(cluster, folder).values()) / jobs - SLEEP_S


def _own(cluster: Cluster, checkout: Checkout, fan_out: str, turn: int, cells: int) -> float:
    name = f"{fan_out}{turn}"
    config = checkout.configure(
        name,
        nodes="all",
        fan_out=fan_out,
        seconds=0.5,
        repetitions=cells // NODES,
        cpu=[{"workloads": ["DP"], "concurrency": [1]}],
    )
    before = set(_jobs(cluster, checkout.directory))
    _run(cluster, checkout.directory, "--profile", "slurm", "--configfile", config)
    elapsed = sum(seconds for job, seconds in _jobs(cluster, checkout.directory).items() if job not in before)
    found: list[dict[str, Any]] = [
        json.loads(path.read_text())
        for path in (checkout.directory / "results" / name / "cells").rglob("*.json")
        if ".raw" not in str(path)
    ]
    if len(found) != cells:
        raise PeakmarkError(f"{len(found)} of {cells} cells were measured")
    measured: float = sum(record["context"]["seconds"] for record in found)
    return (elapsed - measured) / cells


def _jobs(cluster: Cluster, folder: Path) -> dict[str, float]:
    """Number -> seconds from start to end of every job that was submitted from a folder and has ended."""
    found = {}
    for line in cluster.run(["scontrol", "--oneliner", "show", "job"]).stdout.splitlines():
        fields = dict(re.findall(r"(\w+)=(\S*)", line))
        if fields.get("JobState") == "COMPLETED" and fields.get("WorkDir") == str(folder.resolve()):
            start, end = (datetime.fromisoformat(fields[name]) for name in ("StartTime", "EndTime"))
            found[fields["JobId"]] = (end - start).total_seconds()
    return found
