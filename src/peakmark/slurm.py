"""Questions to Slurm, each one command. Nothing here knows of campaigns."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from peakmark.errors import OUT_OF_MEMORY, PeakmarkError

LIMIT_S = 60.0
CONFIG_VARIABLE = "PEAKMARK_SLURM_CONF"
"""Carries SLURM_CONF into jobs: the executor plugin removes every SLURM_ variable there but the job's number."""

ENDED_BADLY = frozenset(
    ["BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", OUT_OF_MEMORY, "PREEMPTED", "REVOKED", "TIMEOUT"]
)
NOT_TO_USE = ("down", "drain", "fail", "error", "unknown", "inval", "power", "maint", "no_respond", "future")


class SlurmError(PeakmarkError):
    """Slurm did not answer, or refused."""


@dataclass(frozen=True)
class Node:
    """A node as sinfo has it. ``memory`` in MiB, ``limit`` of its partition in minutes (None: no limit)."""

    name: str
    partition: str
    cpus: int
    memory: int
    state: str
    limit: int | None
    features: frozenset[str]

    @property
    def usable(self) -> bool:
        return not any(word in self.state.lower() for word in NOT_TO_USE)


@dataclass(frozen=True)
class Job:
    """A line of squeue."""

    number: str
    state: str
    comment: str
    nodes: str
    reason: str
    directory: str
    elapsed: str


def ask(*argv: str, limit_s: float = LIMIT_S) -> str:
    """Standard output of a Slurm command. Errors: SlurmError with its own words."""
    environment = dict(os.environ)
    if CONFIG_VARIABLE in environment:
        environment.setdefault("SLURM_CONF", environment[CONFIG_VARIABLE])
    try:
        done = subprocess.run(
            argv,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise SlurmError(
            f"{argv[0]} is not on PATH: start this on a login node of the cluster, or measure this machine with "
            "--profile local"
        ) from None
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{argv[0]} got no answer from Slurm within {limit_s:.0f} s: is slurmctld up?") from None
    if done.returncode:
        words = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise SlurmError(f"{argv[0]} failed: {words}")
    return done.stdout


def nodes(partition: str | None) -> list[Node]:
    """The nodes of a partition, of the default one if None, sorted by name.

    Errors: SlurmError when there is no such partition, or no default one.
    """
    choice = [f"--partition={partition}"] if partition else []
    found = []
    for line in ask("sinfo", "--noheader", "--Node", "--format=%N|%P|%c|%m|%T|%l|%f", *choice).splitlines():
        name, its_partition, cpus, memory, state, limit, features = line.split("|", 6)
        if partition or its_partition.endswith("*"):
            one = Node(
                name,
                its_partition.rstrip("*"),
                int(cpus.rstrip("+")),
                int(memory.rstrip("+")),
                state,
                minutes(limit),
                frozenset(features.split(",")),
            )
            found.append(one)
    if not found:
        raise SlurmError(
            f"Slurm has no partition {partition!r}: sinfo lists them; set slurm.partition in the site file"
            if partition
            else "this cluster has no default partition: set slurm.partition in the site file; sinfo lists them"
        )
    return sorted(found, key=lambda node: natural(node.name))


def jobs(directory: Path | None = None) -> list[Job]:
    """My jobs that have not ended, those submitted from ``directory`` if given."""
    found = []
    for line in ask("squeue", "--me", "--noheader", "--format=%i|%T|%N|%r|%M|%k|%Z").splitlines():
        number, state, where, reason, elapsed, comment, place = line.split("|", 6)
        if directory is None or Path(place) == directory:
            found.append(Job(number, state, comment, where, reason, place, elapsed))
    return found


def job(number: str) -> dict[str, str]:
    """What ``scontrol show job`` tells; empty when Slurm has forgotten the job or does not answer."""
    try:
        text = ask("scontrol", "--oneliner", "show", "job", number)
    except SlurmError:
        return {}
    # A value ends before the next name: paths may hold blanks.
    return dict(re.findall(r"(\S+?)=(.*?)(?=\s+[A-Z][\w/:]*=|\s*$)", text))


def job_nodes(number: str) -> list[str]:
    """Host names of a running job's nodes, the one of the batch script first. Errors: SlurmError."""
    return hostnames(ask("squeue", "--noheader", f"--jobs={number}", "--format=%N").strip())


def hostnames(text: str) -> list[str]:
    """``node[1-3]`` -> node1 node2 node3. Errors: SlurmError."""
    return ask("scontrol", "show", "hostnames", text).split() if text else []


def address(node: str) -> str:
    """Where Slurm itself reaches a node: a name or an address. Errors: SlurmError."""
    found = re.search(r"NodeAddr=(\S+)", ask("scontrol", "--oneliner", "show", "node", node))
    return found[1] if found else node


def cancel(numbers: Iterable[str]) -> None:
    """Errors: SlurmError."""
    ask("scancel", *numbers)


def setting(name: str) -> str | None:
    """A value of ``scontrol show config``. Errors: SlurmError."""
    found = re.search(rf"^{name}\s*=\s*(.*?)\s*$", ask("scontrol", "show", "config"), re.MULTILINE)
    return found[1] if found else None


def minutes(text: str) -> int | None:
    """``1-00:00:00``, ``30:00`` or ``infinite`` of sinfo as minutes, rounded down; None without a limit."""
    if not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}", text):
        return None
    days, _, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if len(parts) == 3:
        hours, mins = parts[0], parts[1]
    else:
        hours, mins = (parts[0], 0) if days else (0, parts[0])
    return int(days or 0) * 1440 + hours * 60 + mins


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key in which node2 comes before node10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
