"""ReFrame on the test cluster: what a well known tool for such campaigns needs for the same cells.

It is installed from PyPI into an environment of the benchmark's own below build/; nothing else of
the project knows it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.testcluster import Cluster

from benchmarks.workflow.checkout import TimedCheckout
from peakmark.errors import PeakmarkError
from peakmark.resources import ROOT

REQUIREMENT = "ReFrame-HPC==4.10.4"
ENVIRONMENT = ROOT / "build" / "reframe"
LIMIT_S = 1200.0

# A partition that is asked with squeue, since there is no slurmdbd, and may be given all jobs at
# once.
SETTINGS = """
site_configuration = {
    "systems": [
        {
            "name": "testcluster",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "main",
                    "scheduler": "squeue",
                    "launcher": "local",
                    "environs": ["builtin"],
                    "max_jobs": 2000,
                }
            ],
        }
    ],
    "environments": [{"name": "builtin"}],
    "general": [{"remote_detect": False, "report_file": "report.json"}],
}
"""

# One test for each cell: the kernel alone on its node, its number found in what it prints.
CHECKS = """
import os

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Cell(rfm.RunOnlyRegressionTest):
    number = parameter(range(int(os.environ["BENCH_CELLS"])))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = os.environ["BENCH_PROGRAM"]
    exclusive_access = True
    time_limit = "2m"

    @run_before("run")
    def its_program(self):
        self.executable_opts = os.environ["BENCH_OPTIONS"].split()

    @sanity_function
    def measured(self):
        return sn.assert_found('"value"', self.stdout)

    @performance_function("op/s")
    def rate(self):
        return sn.extractsingle(r'"value": ([-+.0-9e]+)', self.stdout, 1, float)
"""


@dataclass(frozen=True)
class ReFrame:
    """Its settings and checks in a folder of its own."""

    folder: Path
    program: Path

    @classmethod
    def make(cls, folder: Path) -> ReFrame:
        """Errors: PeakmarkError when it cannot be installed."""
        program = ENVIRONMENT / "bin" / "reframe"
        if not program.exists():
            ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
            build = TimedCheckout(ENVIRONMENT.parent)
            build.run(sys.executable, "-m", "venv", str(ENVIRONMENT))
            build.run(str(ENVIRONMENT / "bin" / "pip"), "install", "--quiet", REQUIREMENT)
        folder.mkdir(parents=True)
        (folder / "settings.py").write_text(SETTINGS)
        (folder / "checks.py").write_text(CHECKS)
        return cls(folder, program)

    def measure(self, cluster: Cluster, kernel: Path, seconds: float, cells: int) -> float:
        """Measure so many cells. Returns the seconds from start to end."""
        environment: Mapping[str, str] = {
            **cluster.environment(),
            "BENCH_CELLS": str(cells),
            "BENCH_PROGRAM": str(kernel),
            "BENCH_OPTIONS": f"--workload DP --threads 1 --seconds {seconds} --warmup 0",
        }
        words = [str(self.program), "-C", "settings.py", "-c", "checks.py", "--prefix=out"]
        words += ["--performance-report", "-r"]
        began = time.monotonic()
        done = cluster.run(words, cwd=self.folder, env=environment, check=False, timeout=LIMIT_S)
        wall = time.monotonic() - began
        if done.returncode:
            said = (done.stdout + done.stderr)[-2000:]
            raise PeakmarkError(f"ReFrame ended with exit code {done.returncode}:\n{said}")
        return wall
