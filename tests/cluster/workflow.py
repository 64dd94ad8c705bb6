"""A checkout on the login side of the test cluster, from which snakemake and peakmark are run."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from testcluster import Cluster
from testcluster.processes import Process, wait_until
from tests import checkout, presets
from tests.programs import executable

LIMIT_S = 600.0
"""For what hangs: a report alone takes a minute where a dozen others are at work on two CPUs."""
PRESET_LIMIT_S = 3600.0

SHORT: dict[str, Any] = {
    "campaign": "short",
    "seconds": 0.03,
    "warmup": 0.0,
    "repetitions": 1,
    "reference_repetitions": 1,
    "repeat_disturbed": 0,
    # Whatever config/config.yaml measures is not measured here.
    "cpu": [],
    "memory": [],
    "disk": [],
    "network": [],
}

CPU = {"workloads": ["DP"], "concurrency": [1]}
NETWORK = {"workloads": ["TCP"], "blocks": ["1KiB"], "concurrency": [1]}
DISK = {"workloads": ["WS"], "blocks": ["64KiB"], "concurrency": [1], "size": "1MiB"}

# A reference tool that takes as long as a test wants. One that has found the file `hold` waits until
# it is ended; while the file `wait` is there, it waits and then measures.
HOLDING = """#!/bin/sh
here=$(dirname "$0")
case "$*" in --version*) exec {tool} "$@" ;; esac
[ -e "$here/fail" ] && {{ echo no luck >&2; exit 9; }}
[ -e "$here/hold" ] && exec sleep 600
while [ -e "$here/wait" ]; do sleep 0.2; done
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
        """Path of a tool that waits while ``hold`` or ``wait`` is beside it, and fails while ``fail`` is."""
        path = self.directory / (name or Path(tool).name)
        return str(executable(path, HOLDING.format(tool=tool)))

    @property
    def argv(self) -> list[str]:
        words = ["--profile", "slurm", "--configfile", "test.yaml"]
        return [sys.executable, "-m", "snakemake", *words]

    @property
    def environment(self) -> dict[str, str]:
        known = dict(os.environ)
        known.pop("PYTHONDONTWRITEBYTECODE", None)
        return known

    def call(
        self, argv: Sequence[str], limit_s: float = LIMIT_S, check: bool = False, **more: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in the checkout to its end, with more variables in its environment."""
        how: dict[str, Any] = {"cwd": self.directory, "env": {**self.environment, **more}}
        return self.cluster.run(argv, check=check, timeout=limit_s, **how)

    def snakemake(self, *words: str, code: int = 0, **more: str) -> str:
        """What Snakemake prints, which ends with this exit code and without a traceback."""
        done = self.call([*self.argv, *words], **more)
        text = done.stdout + done.stderr
        assert done.returncode == code and "Traceback" not in text, text
        return text

    def preset(self, name: str, *given: str) -> "subprocess.CompletedProcess[str]":
        """A shipped preset as a stranger runs it: the file as it is, further keys (KEY=VALUE) on
        the command line. With ``presets.DEFAULT`` no file is named.
        """
        self.campaign = name
        file = [] if name == presets.DEFAULT else ["--configfile", f"config/presets/{name}.yaml"]
        return self.call([*self.argv[:-2], *file, "--config", *given], PRESET_LIMIT_S)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Snakemake in the background; what it prints is in ``said``."""
        where: dict[str, Any] = {"cwd": self.directory, "env": self.environment}
        with (self.directory / "said").open("w") as stream:
            streams = {"stdin": subprocess.DEVNULL, "stdout": stream, "stderr": stream}
            return self.cluster.popen([*self.argv, *words], **where, **streams)

    @property
    def said(self) -> str:
        return (self.directory / "said").read_text()

    def end(self, process: "subprocess.Popen[str]", code: int | None = None) -> int:
        """The exit code of what ``start`` started, which must end by itself without a traceback."""
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            queue = self.cluster.run(["squeue", "--format=%i %T %N %M %r %k"], check=False).stdout
            process.send_signal(signal.SIGKILL)
            process.wait()
            raise AssertionError(f"the campaign does not end:\n{self.said}\n{queue}") from None
        assert "Traceback" not in self.said and code in (None, process.returncode), self.said
        return process.returncode

    def peakmark(self, *words: str) -> str:
        """What a command prints, which must succeed."""
        return self.call([sys.executable, "-m", "peakmark", *words], check=True).stdout

    @property
    def results(self) -> Path:
        return self.directory / "results" / self.campaign

    def records(self) -> dict[str, dict[str, Any]]:
        return checkout.records(self.results)

    def started(self) -> dict[str, str]:
        """Cell -> when it was measured."""
        return checkout.started(self.results)

    def attempts(self) -> dict[str, str]:
        """Cell -> reason of its newest failed attempt."""
        folder = self.results / "attempts"
        return {
            str(path.parent.relative_to(folder)): json.loads(path.read_text())["reason"]
            for path in sorted(folder.rglob("*.json"))
            if ".raw" not in str(path)
        }

    def planned(self) -> set[str]:
        """The cells that the next run would measure, as Snakemake lists them."""
        text = self.snakemake("--dry-run")
        return set(re.findall(r"output: results/\S+?/cells/(\S+)\.json", text))

    def queued(self, *options: str) -> set[str]:
        """Numbers of the jobs in the queue."""
        return set(self.cluster.run(["squeue", "-h", "-o", "%i", *options]).stdout.split())

    def busy_fio(self, blocks: Sequence[str], file: str = "hold", **values: Any) -> Path:
        """Configure cells of diskbench and of a fio that waits while the file which is returned is
        there (see ``HOLDING``). On two nodes, the first two cells are ones of fio.
        """
        tool = self.holding("/usr/bin/fio")
        grid = {**DISK, "blocks": list(blocks), "references": {"fio": {"seconds": 0.1}}}
        self.configure(**{"disk": [grid], "seed": 4, "tools": {"fio": tool}, **values})
        hold = self.directory / file
        hold.touch()
        return hold

    def wait_for_tools(self, count: int, seconds: float = 90.0) -> dict[str, str]:
        """Wait until so many nodes run a tool that waits; node -> comment of its job."""

        squeue = ["squeue", "--noheader", "--states=running", "--format=%N|%k"]

        def held() -> dict[str, str]:
            lines = self.cluster.run(squeue).stdout.splitlines()
            running = dict(line.split("|") for line in lines)
            nodes = [node for node in running if node in self.cluster.hosts.nodes]
            return {node: running[node] for node in nodes if self._waiting_tools(node)}

        wait_until(lambda: len(held()) == count, seconds, f"{count} nodes hold a tool", 0.2)
        return held()

    def _waiting_tools(self, node: str) -> list[Process]:
        return [process for process in self.cluster.processes(node) if process.name == "sleep"]


def spans(records: Iterable[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Begin and end of each record's cell, the earliest first."""
    found = []
    for record in records:
        begin = datetime.fromisoformat(record["context"]["started"]).timestamp()
        found.append((begin, begin + record["context"]["seconds"]))
    return sorted(found)
