"""What a cell costs on the test cluster, beside other ways to have cells measured."""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from tests.cluster.testcluster import Cluster, why_not  # The real one that the tests start.

from benchmarks.results import Line
from benchmarks.workflow.checkout import TimedCheckout
from benchmarks.workflow.reframe import ReFrame
from peakmark.errors import PeakmarkError

NODES = 2
LIMIT_S = 1200.0
SECONDS = 0.05
FAN_OUTS: dict[str, Any] = {"cell": "cell", "node": "node", "batch: 10": {"batch": 10}}
BESIDE = {"node": 1.0, "batch: 10": 1.0}
"""At most so many times the node time of ReFrame."""

BEGUN = re.compile(
    r"(?:sched: Allocate|_start_job: Started) JobId=(\S+)(?: in \S+ on| NodeList=)\s*(\S+)"
)
ENDED = re.compile(r"_job_complete: JobId=(\S+) done")


@dataclass(frozen=True)
class Job:
    """A job that has ended: seconds since 1970, and how many nodes it had."""

    name: str
    began: float
    ended: float
    nodes: int

    @property
    def node_seconds(self) -> float:
        return (self.ended - self.began) * self.nodes


def ended_jobs(log: Path, after: int = 0) -> list[Job]:
    """The jobs that have ended, by slurmctld's log after its first ``after`` characters.

    scontrol and sacct know whole seconds only; the log knows milliseconds.
    """
    begun: dict[str, tuple[float, int]] = {}
    found = []
    text = log.read_text(errors="replace")[after:]
    for stamp, event in re.findall(r"^\[([-0-9T:.]+)\] (.*)", text, re.MULTILINE):
        when = datetime.fromisoformat(stamp).timestamp()
        if start := BEGUN.search(event):
            begun[start[1]] = (when, NODES if "[" in start[2] else 1)
        elif (end := ENDED.search(event)) and end[1] in begun:
            began, nodes = begun.pop(end[1])
            found.append(Job(end[1], began, when, nodes))
    return found


def _part(cluster: Cluster) -> None:
    """Give each node processors of this machine for itself.

    A program pins itself to the first that it may use. On one that two nodes share, a way would be
    the slower the more of its time it measures.
    """
    cpus = sorted(os.sched_getaffinity(0))
    share = max(1, len(cpus) // NODES)
    for place, name in enumerate(cluster.layout.names):
        own = [cpus[(place * share + number) % len(cpus)] for number in range(share)]
        for daemon in cluster.processes(name):
            for thread in Path(f"/proc/{daemon.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), own)


@dataclass(frozen=True)
class Ways:
    """The cluster with a checkout of ours and ReFrame's folder."""

    cluster: Cluster
    checkout: TimedCheckout
    reframe: ReFrame

    @classmethod
    @contextmanager
    def running(cls, checkout: TimedCheckout) -> Iterator[Ways]:
        """Errors: PeakmarkError without a cluster or ReFrame."""
        if reason := why_not():
            raise PeakmarkError(reason)
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        reframe = ReFrame.make(checkout.directory / "reframe")
        with Cluster.running(NODES, cpus=2) as cluster:
            _part(cluster)
            yield cls(cluster, checkout, reframe)

    def node_seconds(self, run: Callable[[], object]) -> float:
        """Seconds of nodes in all jobs of a run. Errors: PeakmarkError when none has ended."""
        log = self.cluster.layout.path("log/slurmctld.log")
        before = len(log.read_text(errors="replace"))
        run()
        jobs = ended_jobs(log, before)
        if not jobs:
            raise PeakmarkError(f"no job has ended, by {log}")
        return sum(job.node_seconds for job in jobs)

    def tests(self, cells: int, seconds: float) -> float:
        """As many tests of ReFrame. Returns the seconds from start to end."""
        kernel = self.checkout.directory / "build" / "kernels" / "cpubench"
        return self.reframe.measure(self.cluster, kernel, seconds, cells)

    def own(self, name: str, fan_out: Any, cells: int, seconds: float) -> None:
        """A campaign of ours to its report; as many cells more when it is there already."""
        config = self.checkout.configure(
            name,
            nodes="all",
            fan_out=fan_out,
            seconds=seconds,
            repetitions=cells // NODES,
            cpu=[{"workloads": ["DP"], "concurrency": [1]}],
        )
        here = self.checkout.directory
        line = [sys.executable, "-m", "snakemake", "--profile", "slurm", "--configfile", config]
        environment = {**os.environ, "PYTHONPATH": str(here / "src")}
        done = self.cluster.run(line, cwd=here, env=environment, check=False, timeout=LIMIT_S)
        if done.returncode:
            end = (done.stdout + done.stderr)[-2000:]
            raise PeakmarkError(f"snakemake ended with exit code {done.returncode}:\n{end}")
        folder = self.checkout.directory / "results" / name
        found = [path for path in (folder / "cells").rglob("*.json") if ".raw" not in str(path)]
        if len(found) != cells or not (folder / "report.pdf").exists():
            raise PeakmarkError(f"{name}: {len(found)} of {cells} cells measured, or no report")


def per_cell(checkout: TimedCheckout, turns: int, cells: int = 20) -> list[Line]:
    """Seconds of nodes per cell beside the measuring, every way in turn.

    What is done once for a node stands apart. Errors: PeakmarkError.
    """
    node: dict[str, list[float]] = defaultdict(list)
    first: list[float] = []
    with Ways.running(checkout) as ways:
        for turn in range(turns):
            runs: dict[str, Callable[[], object]] = {"ReFrame": partial(ways.tests, cells, SECONDS)}
            for number, (name, fan_out) in enumerate(FAN_OUTS.items()):
                own = f"own-{number}-{turn}"
                # The first cell of a node collects the facts that the others find.
                one_each = ways.node_seconds(partial(ways.own, own, fan_out, NODES, SECONDS))
                first.append(one_each / NODES - SECONDS)
                runs[name] = partial(ways.own, own, fan_out, cells + NODES, SECONDS)
            for name, run in runs.items():
                node[name].append(ways.node_seconds(run) / cells - SECONDS)
    what = "node time per cell beside the measuring"
    facts = "node time of the first cell on a node beside the measuring, with the node's facts"

    return [
        Line(facts, "s", first),
        Line(f"{what}, fan_out: cell", "s", node["cell"], 0.3),
        *(
            Line(
                f"{what}, fan_out: {name}",
                "s",
                node[name],
                BESIDE.get(name),
                "ReFrame",
                node["ReFrame"],
            )
            for name in FAN_OUTS
        ),
    ]
