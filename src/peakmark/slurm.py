"""Questions to Slurm, each one command. Nothing here knows of campaigns."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from peakmark.errors import OUT_OF_MEMORY, PeakmarkError
from peakmark.formatting import natural

LIMIT_S = 60.0
ENDED_BADLY = frozenset(
    f"BOOT_FAIL CANCELLED DEADLINE FAILED NODE_FAIL {OUT_OF_MEMORY} PREEMPTED REVOKED SPECIAL_EXIT TIMEOUT".split()
)
"""States that a job does not leave, COMPLETED apart; in all others it waits or runs."""
NODE_LOST = frozenset(["BOOT_FAIL", "NODE_FAIL", "PREEMPTED"])
"""Ends that say nothing of the job itself."""
WAITING = frozenset(["PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"])
NOT_TO_USE = (
    "down",
    "drain",
    "fail",
    "error",
    "unknown",
    "inval",
    "power",
    "maint",
    "no_respond",
    "future",
)


class SlurmError(PeakmarkError):
    """Slurm did not answer, or refused.

    said    the words of the program that refused, or why the system did not start it; empty where
            nobody said anything
    silent  no answer came in time
    """

    def __init__(self, fact: str, said: str = "", silent: bool = False) -> None:
        super().__init__(fact)
        self.said, self.silent = said, silent


@dataclass(frozen=True)
class Node:
    """A node as sinfo has it. ``memory`` in MiB, ``limit`` of its partition in minutes (None: no
    limit), ``layout``: sockets, cores and threads (``2:32:1``).
    """

    name: str
    partition: str
    cpus: int
    memory: int
    state: str
    limit: int | None
    features: frozenset[str]
    layout: str = ""
    gres: str = ""

    @property
    def usable(self) -> bool:
        return not any(word in self.state.lower() for word in NOT_TO_USE)


@dataclass(frozen=True)
class Job:
    """A line of squeue. ``reason``: why it waits."""

    number: str
    state: str
    comment: str
    nodes: str
    reason: str
    elapsed: str

    @property
    def waits(self) -> bool:
        """Whether it has not begun."""
        return self.state in WAITING


def ask(*argv: str, limit_s: float = LIMIT_S, text: str | None = None) -> str:
    """Standard output of a Slurm command that reads ``text``. Errors: SlurmError with its own
    words.
    """
    try:
        done = subprocess.run(
            argv,
            env=environment(),
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # comments and reasons are anybody's words
            timeout=limit_s,
            check=False,
            start_new_session=True,  # Ctrl-C and a terminal that goes away are this process's business
            **({"stdin": subprocess.DEVNULL} if text is None else {"input": text}),
        )
    except FileNotFoundError:
        raise SlurmError(
            f"{argv[0]} is not on PATH: start this on a login node of the cluster, or measure this machine with "
            "--profile local"
        ) from None
    except OSError as error:  # such as more words than the kernel hands to a program
        refusal = f"{argv[0]} cannot be started: {error.strerror}"
        raise SlurmError(refusal, said=refusal) from None
    except subprocess.TimeoutExpired:
        silence = f"{argv[0]} got no answer from Slurm within {limit_s:.0f} s: is slurmctld up?"
        raise SlurmError(silence, silent=True) from None
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise SlurmError(f"{argv[0]} failed: {said}", said=said)
    return done.stdout


def environment() -> dict[str, str]:
    """Without what a job that this runs in says of itself, which Slurm's commands would take for
    options.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SLURM_", "SBATCH_", "SRUN_"))
    }
    return kept | {name: os.environ[name] for name in ("SLURM_CONF",) if name in os.environ}


def nodes(partition: str | None) -> list[Node]:
    """The nodes of a partition, of the default one if None, sorted by name.

    Errors: SlurmError when there is no such partition, or no default one.
    """
    choice = [f"--partition={partition}"] if partition else []
    lines = ask(
        "sinfo", "--noheader", "--Node", "--format=%N|%P|%c|%m|%T|%l|%z|%G|%f", *choice
    ).splitlines()
    parsed = [(line, node) for line in lines if (node := _node(line)) is not None]
    there = [node for line, node in parsed if partition or line.split("|", 2)[1].endswith("*")]
    if not there:
        raise SlurmError(
            f"Slurm has no partition {partition!r}: sinfo lists them; set slurm.partition in the site file"
            if partition
            else "this cluster has no default partition: set slurm.partition in the site file; sinfo lists them"
        )
    return sorted(there, key=lambda node: natural(node.name))


def _node(line: str) -> Node | None:
    """A line of sinfo; None for what else a site's own sinfo has to say."""
    try:
        name, partition, cpus, memory, state, limit, layout, gres, features = line.split("|", 8)
        sizes = int(cpus.rstrip("+")), int(memory.rstrip("+"))
    except ValueError:
        return None
    return Node(
        name,
        partition.rstrip("*"),
        *sizes,
        state,
        minutes(limit),
        frozenset(features.split(",")),
        layout,
        gres,
    )


def jobs(states: str | None = None) -> list[Job]:
    """My jobs that have not ended; with ``states="all"`` also those that Slurm has not yet
    forgotten. Errors: SlurmError.
    """
    more = [f"--states={states}"] if states else []
    lines = ask("squeue", "--me", "--noheader", "--format=%i|%T|%N|%M|%k|%r", *more).splitlines()
    whole = (fields for line in lines if len(fields := line.split("|", 5)) == 6)
    return [
        Job(number, state, comment, at, reason, elapsed)
        for number, state, at, elapsed, comment, reason in whole
    ]


def submit(options: Iterable[str], script: str, limit_s: float = LIMIT_S) -> str:
    """Hand a script to sbatch, without a file and without a shell that could read it. Returns the
    job's number.

    Errors: SlurmError with sbatch's words.
    """
    return (
        ask("sbatch", "--parsable", *options, text=script, limit_s=limit_s)
        .strip()
        .partition(";")[0]
    )


_AWAY = frozenset(
    "DOWN DRAIN DRAINED DRAINING ERROR FAIL FAILING FUTURE INVAL INVALID_REG MAINT NO_RESPOND NOT_RESPONDING".split()  # noqa: SIM905
)
"""Words of a node's state with which it begins no job until somebody or something changes it."""


def nodes_away(names: Iterable[str]) -> dict[str, str]:
    """Node -> its state and the reason that an administrator gave, of those that begin no job now.

    Raises:
        SlurmError: Slurm does not answer.
    """
    states = {}
    for line in ask("scontrol", "--oneliner", "show", "node", hostlist(names)).splitlines():
        state = re.search(r"\bState=(\S+)", line)
        node = re.match(r"NodeName=(\S+)", line)
        if node is None or state is None or not _AWAY & set(re.split(r"[+*~#$@^-]", state[1])):
            continue
        reason = re.search(r"\bReason=(.*?)(?: \[\S+@\S+\])?(?=\s+[A-Z]\w*=|\s*$)", line)
        states[node[1]] = f"{state[1]} ({reason[1]})" if reason else state[1]
    return states


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


def hostlist(names: Iterable[str]) -> str:
    """node1 node2 node3 login -> ``login,node[1-3]``, as Slurm itself writes the nodes of a large
    cluster; the other way round: ``hostnames``. Numbers with leading zeros keep them.
    """
    return _hostlist(tuple(names))


@functools.lru_cache(maxsize=64)
def _hostlist(names: tuple[str, ...]) -> str:
    """Cached: ten thousand jobs ask for the same few lists."""
    alone: list[str] = []
    numbers: dict[tuple[str, int], set[int]] = {}  # (before the number, digits) -> numbers
    for name in names:
        before, digits = re.fullmatch(r"(.*?)(\d*)", name, re.ASCII).groups()  # type: ignore[union-attr] # it always fits
        if digits:
            numbers.setdefault((before, len(digits)), set()).add(int(digits))
        else:
            alone.append(name)
    ranges: dict[str, list[str]] = {}
    for (before, width), those in sorted(numbers.items()):
        ranges.setdefault(before, []).extend(_ranges(those, width))
    some = [
        f"{before}[{','.join(r)}]" if len(r) > 1 or "-" in r[0] else before + r[0]
        for before, r in ranges.items()
    ]
    return ",".join([*sorted(set(alone)), *some])


def _ranges(numbers: Iterable[int], width: int) -> Iterator[str]:
    ordered = sorted(numbers)
    # What follows without a gap has the same difference to its place.
    for _, run in groupby(enumerate(ordered), key=lambda entry: entry[1] - entry[0]):
        members = [number for _, number in run]
        ends = dict.fromkeys((members[0], members[-1]))
        yield "-".join(f"{number:0{width}}" for number in ends)


def address(node: str) -> str:
    """Where Slurm itself reaches a node: a name or an address. Errors: SlurmError."""
    address = re.search(r"NodeAddr=(\S+)", ask("scontrol", "--oneliner", "show", "node", node))
    return address[1] if address else node


def cancel(numbers: Sequence[str]) -> None:
    """End jobs. Errors: SlurmError."""
    for first in range(0, len(numbers), 500):
        ask("scancel", *numbers[first : first + 500])


def minutes(text: str) -> int | None:
    """``1-00:00:00``, ``30:00`` or ``infinite`` of sinfo as minutes, rounded down; None without a
    limit.
    """
    if not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}", text):
        return None
    days, _, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if len(parts) < 3 and not days:  # minutes and seconds
        parts.insert(0, 0)
    hours, mins, *_ = (*parts, 0)
    return int(days or 0) * 1440 + hours * 60 + mins


@dataclass(frozen=True)
class Partition:
    """A partition as scontrol shows it. ``limit``: minutes of a job, ``nodes``: of a job; None: no
    limit.
    """

    name: str
    state: str
    limit: int | None
    nodes: int | None


def partitions(names: str | None) -> list[Partition]:
    """The partitions of a list with commas, without one the default partition. Errors: SlurmError."""
    wanted = names.split(",") if names else []
    found = []
    for line in ask("scontrol", "--all", "--oneliner", "show", "partition").splitlines():
        fields = dict(re.findall(r"(\S+?)=(\S*)", line))
        name = fields.get("PartitionName", "")
        if name in wanted or (not wanted and fields.get("Default") == "YES"):
            most = fields.get("MaxNodes", "")
            limit = minutes(fields.get("MaxTime", ""))
            found.append(
                Partition(
                    name, fields.get("State", ""), limit, int(most) if most.isdecimal() else None
                )
            )
    return found


def check_submission(options: Iterable[str]) -> None:
    """Let sbatch check a job that is not submitted. Errors: SlurmError with its words."""
    ask("sbatch", "--test-only", *options, text="#!/bin/sh\n")
