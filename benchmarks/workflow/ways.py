"""One test cluster, and the ways to have cells measured on it: ours, and what stands beside."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.testcluster import Cluster, why_not  # the real one that the tests start

from benchmarks.workflow import journal
from benchmarks.workflow.checkout import TimedCheckout
from benchmarks.workflow.reframe import ReFrame
from peakmark.errors import PeakmarkError
from peakmark.running.queue import AT_ONCE

NODES = 2
LIMIT_S = 1200.0

RULE = """
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
        "sleep {seconds}; touch {{output}}"
"""


def _part(cluster: Cluster) -> None:
    """Each node gets processors of this machine for itself: a program pins itself to the first that
    it may use, and on one that two nodes share, a way would be the slower the more of its time
    it measures.
    """
    cpus = sorted(os.sched_getaffinity(0))
    share = max(1, len(cpus) // NODES)
    for place, name in enumerate(cluster.layout.names):
        own = [cpus[(place * share + number) % len(cpus)] for number in range(share)]
        for daemon in cluster.processes(name):
            for thread in Path(f"/proc/{daemon.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), own)


@dataclass(frozen=True)
class Spent:
    """What a run took: seconds of nodes in all its jobs, seconds from start to end, and those after
    its last job.
    """

    node_s: float
    wall_s: float
    after_s: float
    jobs: int


@dataclass(frozen=True)
class Ways:
    """The cluster with a checkout of ours and ReFrame's folder."""

    cluster: Cluster
    checkout: TimedCheckout
    reframe: ReFrame

    @classmethod
    @contextmanager
    def running(cls, checkout: TimedCheckout) -> Iterator[Ways]:
        """Errors: PeakmarkError when no cluster can be started here, or ReFrame cannot be
        installed.
        """
        if reason := why_not():
            raise PeakmarkError(reason)
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        reframe = ReFrame.make(checkout.directory / "reframe")
        with Cluster.running(NODES, cpus=2) as cluster:
            _part(cluster)
            yield cls(cluster, checkout, reframe)

    @property
    def log(self) -> Path:
        return self.cluster.layout.path("log/slurmctld.log")

    @property
    def kernel(self) -> Path:
        return self.checkout.directory / "build" / "kernels" / "cpubench"

    def spent(self, what: Callable[[], object]) -> Spent:
        """Do it and look what its jobs took."""
        before = len(self.log.read_text(errors="replace"))
        began = time.time()
        what()
        ended = time.time()
        jobs = journal.ended_jobs(self.log, before)
        if not jobs:
            raise PeakmarkError(f"no job has ended, by {self.log}")
        last = max(job.ended for job in jobs)
        return Spent(sum(job.node_seconds for job in jobs), ended - began, ended - last, len(jobs))

    def bare(self, cells: int) -> None:
        """``sbatch`` of a script that does nothing, so many times."""
        for _ in range(cells):
            self.cluster.sbatch("sleep 0", "--exclusive", "--output=/dev/null")
        while self.cluster.run(["squeue", "--noheader"]).stdout:
            time.sleep(0.2)

    def submit(self, jobs: int) -> float:
        """``sbatch`` of so many scripts, several at a time. Returns the seconds that it took; the
        jobs stay in the queue.
        """
        before = len(self.log.read_text(errors="replace"))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in range(jobs):
                pool.submit(self.cluster.sbatch, "sleep 0", "--exclusive", "--output=/dev/null")
        when = journal.submissions(self.log, before)
        return when[-1] - when[0]

    def rule(self, name: str, cells: int, seconds: float) -> None:
        """A rule with nothing but an output, by Snakemake's own Slurm plugin with the settings of
        our profile for it.
        """
        folder = self.checkout.directory / name
        folder.mkdir()
        (folder / "Snakefile").write_text(RULE.format(jobs=cells, seconds=seconds))
        words = ["--executor=slurm", "--jobs=2000", "--scheduler=greedy"]
        words += ["--slurm-status-command=squeue", "--slurm-init-seconds-before-status-checks=5"]
        self.snakemake(folder, *words, "--default-resources", "slurm_account=none")

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
        self.campaign(config)
        self.expect(name, cells)

    def campaign(self, config: str) -> None:
        folder = self.checkout.directory
        self.snakemake(folder, "--profile", "slurm", "--configfile", config)

    def expect(self, name: str, cells: int) -> None:
        """Errors: PeakmarkError when not all cells have a record."""
        folder = self.checkout.directory / "results" / name
        found = [path for path in (folder / "cells").rglob("*.json") if ".raw" not in str(path)]
        if len(found) != cells or not (folder / "report.pdf").exists():
            raise PeakmarkError(f"{name}: {len(found)} of {cells} cells measured, or no report")

    def snakemake(self, folder: Path, *words: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        line = [sys.executable, "-m", "snakemake", *words]
        done = self.cluster.run(line, cwd=folder, env=environment, check=False, timeout=LIMIT_S)
        if done.returncode:
            said = (done.stdout + done.stderr)[-2000:]
            raise PeakmarkError(f"snakemake ended with exit code {done.returncode}:\n{said}")
