"""A copy of the sources to run snakemake in, and what a command cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.checkout import copy  # as the tests have it

from peakmark.errors import PeakmarkError

SHORT: dict[str, Any] = {
    **{"seconds": 0.01, "warmup": 0.0, "repetitions": 1, "reference_repetitions": 1},
    **{"cpu": [], "memory": [], "disk": [], "network": []},
}
"""A configuration that measures nothing of what config/config.yaml measures."""


@dataclass(frozen=True)
class Cost:
    """Of one command: seconds, and peak memory in bytes of its largest process."""

    wall: float
    memory: int


@dataclass(frozen=True)
class TimedCheckout:
    """A folder with the sources and the compiled kernels, as a user has them after the first run."""

    directory: Path

    @classmethod
    def make(cls, directory: Path) -> TimedCheckout:
        """Errors: PeakmarkError when the kernels cannot be compiled."""
        try:
            copy(directory)
        except subprocess.CalledProcessError as error:
            raise PeakmarkError(f"the kernels cannot be compiled: {error}") from error
        return cls(directory)

    def configure(self, name: str, **values: Any) -> str:
        """Write a configuration of this name; the words that make snakemake use it."""
        text = yaml.safe_dump({"campaign": name, **SHORT, **values})
        (self.directory / f"{name}.yaml").write_text(text, encoding="utf-8")
        return f"{name}.yaml"

    def peakmark(self, *words: str) -> Cost:
        """One of our commands. Errors: PeakmarkError."""
        return self.run(sys.executable, "-m", "peakmark", *words)

    def snakemake(self, config: str, *words: str) -> Cost:
        """The workflow with the local profile."""
        # The targets first: --configfile would take them for more files.
        return self.run("snakemake", *words, "--profile", "local", "--configfile", config)

    def run(self, *argv: str) -> Cost:
        """Run a command to its end in the folder. Errors: PeakmarkError with the end of what it
        said.
        """
        cwd = self.directory
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(cwd / "src")}
        said = cwd / ".said"
        started = time.monotonic()
        with said.open("w") as stream:
            how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": stream, "stderr": stream}
            process = subprocess.Popen(argv, cwd=cwd, env=environment, **how)
            # wait4 tells what this child and its children used, and nothing of other commands.
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            end = said.read_text(errors="replace")[-2000:]
            words = f"`{' '.join(argv)}` ended with exit code {process.returncode}"
            raise PeakmarkError(f"{words}:\n{end}")
        return Cost(time.monotonic() - started, usage.ru_maxrss * 1024)
