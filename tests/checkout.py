"""A folder from which snakemake and peakmark are run as a user would."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 300
LEFT_OUT = (
    ".git", ".venv*", ".snakemake", ".hypothesis", ".*_cache",
    "results", "build", "tests", "__pycache__",
)  # fmt: skip
OTHER_BUILDS = ("tests", "address", "thread", "aarch64", "riscv64", "fuzz")
"""What test-kernels leaves with the kernels: much, and needed by no checkout."""

TINY: dict[str, Any] = {
    "campaign": "tiny",
    "seconds": 0.03,
    "warmup": 0.0,
    "repetitions": 2,
    "reference_repetitions": 1,
    "repeat_disturbed": 0,
    "cpu": [{"workloads": ["DP", "SP"], "concurrency": [1]}],
    "memory": [{"workloads": ["RWS"], "blocks": ["1KiB"], "concurrency": [1]}],
    "disk": [{"workloads": ["WS"], "blocks": ["64KiB"], "concurrency": [1], "size": "1MiB"}],
    "network": [{"workloads": ["TCP", "LAT-TCP"], "blocks": ["1B"], "concurrency": [1]}],
}

TO_TABLES = ("--until", "tables")
"""Words for snakemake: without figures and documents, which take most of a tiny campaign's time."""

TO_RECORDS = ("--until", "measure")
"""Words for snakemake: without tables either, where a test looks at nothing but records."""


def copy(directory: Path) -> None:
    """Copy the sources of this checkout and its kernels, compiled anew where a source is newer."""
    make = ["make", "-s", "-C", str(ROOT / "src/kernels"), "-j2"]
    subprocess.run(make, check=True, timeout=LIMIT_S)
    shutil.copytree(ROOT, directory, ignore=shutil.ignore_patterns(*LEFT_OUT))
    built = directory / "build" / "kernels"
    shutil.copytree(ROOT / "build" / "kernels", built, ignore=shutil.ignore_patterns(*OTHER_BUILDS))


def records(results: Path) -> dict[str, dict[str, Any]]:
    """Cell id -> record of a campaign's folder."""
    cells = results / "cells"
    return {
        str(path.relative_to(cells).with_suffix("")): json.loads(path.read_text())
        for path in cells.rglob("*.json")
        if ".raw" not in str(path)
    }


def started(results: Path) -> dict[str, str]:
    """Cell id -> when it was measured: what a second run must not change."""
    return {name: record["context"]["started"] for name, record in records(results).items()}


@dataclass
class Checkout:
    """A folder from which snakemake and peakmark are run as a user would."""

    directory: Path

    @classmethod
    def copied(cls, directory: Path) -> "Checkout":
        """This checkout with its compiled kernels, in another folder."""
        copy(directory)
        return cls(directory)

    def write_config(self, name: str, values: dict[str, Any]) -> Path:
        path = self.directory / name
        path.write_text(yaml.safe_dump(values))
        return path

    @staticmethod
    def _environment(more: dict[str, str] | None) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, **(more or {})}

    def run(
        self, *argv: str, env: dict[str, str] | None = None, limit_s: float = LIMIT_S
    ) -> subprocess.CompletedProcess[str]:
        how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": limit_s}
        environment = self._environment(env)
        return subprocess.run(argv, cwd=self.directory, env=environment, check=False, **how)

    def start(
        self, *argv: str, env: dict[str, str] | None = None, **more: Any
    ) -> subprocess.Popen[str]:
        """The same in the background, with further options of ``Popen``."""
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        streams = {"stdin": subprocess.DEVNULL, **pipes, **more}
        where: dict[str, Any] = {"cwd": self.directory, "env": self._environment(env)}
        return subprocess.Popen(argv, text=True, **where, **streams)

    def snakemake(self, config: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        profile = ("--profile", "local", "--configfile", str(config))
        return self.run("snakemake", *profile, *words, **more)

    def measure(self, config: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """A run of Snakemake that must succeed."""
        done = self.snakemake(config, *words, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def peakmark(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.run("peakmark", *words, **more)

    def records(self, campaign: str) -> dict[str, dict[str, Any]]:
        """Cell id -> record of a campaign."""
        return records(self.directory / "results" / campaign)

    def started(self, campaign: str) -> dict[str, str]:
        """Cell id -> when it was measured, of a campaign."""
        return started(self.directory / "results" / campaign)
