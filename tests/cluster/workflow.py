"""A checkout of one's own on the login side of the test cluster, from which snakemake and peakmark
are run.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from testcluster import Cluster
from testcluster.processes import wait_until
from tests import checkout, presets

LIMIT_S = 600.0
"""For what hangs: a report alone takes a minute where a dozen others are at work on two CPUs."""
PRESET_LIMIT_S = 3600.0

SHORT: dict[str, Any] = {
    "campaign": "short",
    "seconds": 0.03,
    "warmup": 0.0,
    "repetitions": 1,
    "reference_repetitions": 1,
    # Whatever config/config.yaml measures is not measured here.
    "cpu": [],
    "memory": [],
    "disk": [],
    "network": [],
}

DISK = {"workloads": ["WS"], "blocks": ["64KiB"], "concurrency": [1], "size": "1MiB"}

# A reference tool that takes as long as a test wants: while the file `hold` is there, it waits.
HOLDING = """#!/bin/sh
here=$(dirname "$0")
case "$*" in --version*) exec {tool} "$@" ;; esac
[ -e "$here/fail" ] && {{ echo no luck >&2; exit 9; }}
[ -e "$here/hold" ] && exec sleep 600
exec {tool} "$@"
"""


@dataclass
class Workflow:
    """The checkout and what is in it; all commands run on the login side."""

    cluster: Cluster
    directory: Path
    campaign: str = str(SHORT["campaign"])

    @classmethod
    def make(cls, cluster: Cluster, directory: Path) -> "Workflow":
        checkout.copy(directory)
        return cls(cluster, directory)

    def configure(self, **values: Any) -> None:
        (self.directory / "test.yaml").write_text(yaml.safe_dump({**SHORT, **values}))

    def site(self, slurm: str) -> str:
        """Path of a site file with this section ``slurm``."""
        path = self.directory / "site.yaml"
        path.write_text(f"{{schema: 1, name: here, slurm: {slurm}}}")
        return str(path)

    def holding(self, tool: str, name: str = "") -> str:
        """Path of a tool that waits while the file ``hold`` lies beside it, and fails while
        ``fail`` does.
        """
        path = self.directory / (name or Path(tool).name)
        path.write_text(HOLDING.format(tool=tool))
        path.chmod(0o755)
        return str(path)

    @property
    def argv(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "snakemake",
            "--profile",
            "slurm",
            "--configfile",
            "test.yaml",
        ]

    @property
    def environment(self) -> dict[str, str]:
        return {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }

    def snakemake(
        self, *words: str, env: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return self.cluster.run(
            [*self.argv, *words],
            cwd=self.directory,
            env={**self.environment, **(env or {})},
            check=False,
            timeout=LIMIT_S,
        )

    def preset(self, name: str, *given: str) -> "subprocess.CompletedProcess[str]":
        """A shipped preset as a stranger runs it: the file as it is, further keys (KEY=VALUE) on
        the command line. With ``presets.DEFAULT`` no file is named.
        """
        self.campaign = name
        file = [] if name == presets.DEFAULT else ["--configfile", f"config/presets/{name}.yaml"]
        line = [*self.argv[:-2], *file, "--config", *given]
        return self.cluster.run(
            line, cwd=self.directory, env=self.environment, check=False, timeout=PRESET_LIMIT_S
        )

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Snakemake in the background; what it says is in ``said``."""
        with (self.directory / "said").open("w") as stream:
            return self.cluster.popen(
                [*self.argv, *words],
                cwd=self.directory,
                env=self.environment,
                stdout=stream,
                stderr=stream,
                stdin=subprocess.DEVNULL,
            )

    @property
    def said(self) -> str:
        return (self.directory / "said").read_text()

    def end(self, process: "subprocess.Popen[str]") -> int:
        """The exit code of what ``start`` started, which must end by itself."""
        try:
            return process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            queue = self.cluster.run(["squeue", "--format=%i %T %N %M %r %k"], check=False).stdout
            stacks = self.cluster.run(
                [
                    "sh",
                    "-c",
                    f"cat /proc/{process.pid}/task/*/wchan; ps --ppid {process.pid} -o args",
                ],
                check=False,
            ).stdout
            process.send_signal(signal.SIGKILL)
            process.wait()
            raise AssertionError(
                f"the campaign does not come to an end:\n{self.said}\n{queue}\n{stacks}"
            ) from None

    def peakmark(self, *words: str) -> str:
        done = self.cluster.run(
            [sys.executable, "-m", "peakmark", *words],
            cwd=self.directory,
            env=self.environment,
            timeout=LIMIT_S,
        )
        return done.stdout

    @property
    def results(self) -> Path:
        return self.directory / "results" / self.campaign

    def records(self) -> dict[str, dict[str, Any]]:
        return checkout.records(self.results)

    def started(self) -> dict[str, str]:
        """Cell -> when it was measured."""
        return {name: record["context"]["started"] for name, record in self.records().items()}

    def attempts(self) -> dict[str, str]:
        """Cell -> reason of its newest failed attempt."""
        folder = self.results / "attempts"
        return {
            str(path.parent.relative_to(folder)): json.loads(path.read_text())["reason"]
            for path in sorted(folder.rglob("*.json"))
            if ".raw" not in str(path)
        }

    def planned(self) -> set[str]:
        """The cells that the next run would measure, in Snakemake's own words."""
        done = self.cluster.run(
            [*self.argv, "--dry-run"],
            cwd=self.directory,
            env=self.environment,
            check=False,
            timeout=LIMIT_S,
        )
        text = done.stdout + done.stderr
        assert done.returncode == 0, text
        lines = [
            line.split(": ", 1)[1]
            for line in text.splitlines()
            if line.strip().startswith("output: results/")
        ]
        return {
            line.split("/cells/")[1].removesuffix(".json") for line in lines if "/cells/" in line
        }

    def job_of(self, cell: str) -> int | None:
        """Number of the running job that measures the cell."""
        comment = f"{SHORT['campaign']}/{cell}"
        listed = self.cluster.run(
            ["squeue", "--noheader", "--states=running", "--format=%i|%k"]
        ).stdout.splitlines()
        found = [
            int(line.split("|")[0])
            for line in listed
            if line.split("|")[1].partition(" ")[0] == comment
        ]
        return found[0] if found else None

    def wait_for_tools(self, count: int, seconds: float = 90.0) -> dict[str, str]:
        """Wait until so many nodes run a tool that waits. Returns node -> cell."""

        def held() -> dict[str, str]:
            found = {}
            for line in self.cluster.run(
                ["squeue", "--noheader", "--states=running", "--format=%N|%k"]
            ).stdout.splitlines():
                node, comment = line.split("|")
                if node in self.cluster.hosts.nodes and any(
                    process.name == "sleep" for process in self.cluster.processes(node)
                ):
                    found[node] = comment
            return found

        wait_until(
            lambda: len(held()) == count,
            seconds,
            f"{count} nodes hold a tool; said: {self.said[-500:]}",
            0.2,
        )
        return held()

    def end_tools(self, *nodes: str) -> None:
        """End the tools that wait on these nodes."""
        for node in nodes:
            for process in self.cluster.processes(node):
                if process.name == "sleep":
                    process.end()
