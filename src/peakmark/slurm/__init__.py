"""Slurm's commands, each called once. Nothing here knows of campaigns."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from peakmark.errors import OUT_OF_MEMORY, PeakmarkError
from peakmark.formatting import natural

LIMIT_S = 60.0
NODE_LOST = frozenset(["BOOT_FAIL", "NODE_FAIL", "PREEMPTED"])
"""Final states that say nothing of the job itself."""
ENDED_BADLY = NODE_LOST | {
    *("CANCELLED", "DEADLINE", "FAILED", OUT_OF_MEMORY, "REVOKED", "SPECIAL_EXIT", "TIMEOUT")
}
"""Final states of a job, COMPLETED apart; in all others it waits or runs."""
WAITING = frozenset(["PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"])
UNUSABLE = re.compile(
    "down|drain|fail|error|unknown|inval|power|maint|no_respond|future", re.IGNORECASE
)
"""In a state that sinfo prints: such a node is not planned with."""
UNAVAILABLE = re.compile(
    r"\b(DOWN|DRAIN(ED|ING)?|ERROR|FAIL(ING)?|FUTURE|INVAL|INVALID_REG|MAINT|NO_RESPOND|NOT_RESPONDING)\b"
)
"""In a state that scontrol prints: such a node starts no job until somebody changes that."""

_NODE = re.compile(
    r"([^|]*)\|([^|*]*)(\*?)\|(\d+)\+?\|(\d+)\+?\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)"
)
"""A line of sinfo, which some sites wrap, so that it prints other lines too."""


class SlurmError(PeakmarkError):
    """Slurm did not answer, or refused.

    Attributes:
        reason: message of the command that refused, or of the system that did not start it.
        silent: no answer came in time.
    """

    def __init__(self, fact: str, reason: str = "", silent: bool = False) -> None:
        super().__init__(fact)
        self.reason, self.silent = reason, silent


@dataclass(frozen=True)
class Node:
    """A node as sinfo prints it.

    Attributes:
        memory: MiB.
        limit: minutes that its partition gives a job, None without a limit.
        layout: sockets, cores and threads, such as ``2:32:1``.
        is_reserved: jobs have a reservation of it, and start there during its maintenance.
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
    is_reserved: bool = False

    @property
    def usable(self) -> bool:
        state = self.state.replace("maint", "") if self.is_reserved else self.state
        return not UNUSABLE.search(state)


@dataclass(frozen=True)
class Job:
    """A line of squeue. ``reason``: why it waits."""

    number: str
    state: str
    nodes: str
    elapsed: str
    comment: str
    reason: str

    @property
    def waits(self) -> bool:
        """Whether it has not begun."""
        return self.state in WAITING


@dataclass(frozen=True)
class Partition:
    """A partition as scontrol prints it: ``limit`` in minutes and ``nodes`` of a job, None without
    a limit.
    """

    name: str
    state: str
    limit: int | None
    nodes: int | None


def ask(*argv: str, text: str = "") -> str:
    """Standard output of a Slurm command that reads ``text``.

    Raises:
        SlurmError: with the command's own message.
    """
    try:
        done = subprocess.run(
            argv,
            env=environment(),
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # comments and reasons hold any bytes
            timeout=LIMIT_S,
            check=False,
            start_new_session=True,  # Ctrl-C and SIGHUP are for this process alone
        )
    except FileNotFoundError:
        raise SlurmError(
            f"{argv[0]} is not on PATH: start this on a login node of the cluster, or measure this machine without --slurm"
        ) from None
    except OSError as error:  # such as an argument list longer than the kernel allows
        refusal = f"{argv[0]} cannot be started: {error.strerror}"
        raise SlurmError(refusal, reason=refusal) from None
    except subprocess.TimeoutExpired:
        silence = f"{argv[0]} got no answer from Slurm within {LIMIT_S:.0f} s: is slurmctld up?"
        raise SlurmError(silence, silent=True) from None
    if done.returncode:
        reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise SlurmError(f"{argv[0]} failed: {reason}", reason=reason)
    return done.stdout


def environment() -> dict[str, str]:
    """The environment without the variables of a job around this process, which Slurm's commands
    would take for options.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name == "SLURM_CONF" or not name.startswith(("SLURM_", "SBATCH_", "SRUN_"))
    }


def nodes(partition: str | None, reservation: str | None = None) -> list[Node]:
    """The nodes of a partition, or of the default one, sorted by name; of a reservation those that
    it has.

    Raises:
        SlurmError: there is no such partition or reservation, or no default partition.
    """
    reserved = reserved_nodes(reservation) if reservation else None
    choice = [f"--partition={partition}"] if partition else []
    output = ask("sinfo", "--noheader", "--Node", "--format=%N|%P|%c|%m|%T|%l|%z|%G|%f", *choice)
    found = []
    for match in filter(None, map(_NODE.fullmatch, output.splitlines())):
        name, of, default, cpus, memory, state, limit, layout, gres, features = match.groups()
        if (partition or default) and (reserved is None or name in reserved):
            sizes, has = (int(cpus), int(memory)), frozenset(features.split(","))
            is_reserved, limit_min = reserved is not None, minutes(limit)
            node = Node(name, of, *sizes, state, limit_min, has, layout, gres, is_reserved)
            found.append(node)
    if not found:
        wanted = f"partition {partition!r}" if partition else "default partition"
        where = f" with nodes of reservation {reservation}" if reservation else ""
        raise SlurmError(
            f"Slurm has no {wanted}{where}: sinfo lists all; set slurm.partition in the site file"
        )
    return sorted(found, key=lambda node: natural(node.name))


def switches() -> dict[str, list[str]]:
    """Each switch that does not have all nodes below it, with those that it has; empty without a
    topology.

    Raises:
        SlurmError: Slurm does not answer.
    """
    topology = ask("scontrol", "--oneliner", "show", "topology")
    found = re.findall(r"(?m)^SwitchName=(\S+) .*\bNodes=(\S+)", topology)
    below = {name: _hostnames(nodes) for name, nodes in found}
    most = max(map(len, below.values()), default=0)
    return {name: nodes for name, nodes in below.items() if len(nodes) < most}


def reserved_nodes(reservation: str) -> list[str]:
    """The nodes of a reservation. Raises: SlurmError."""
    text = ask("scontrol", "--oneliner", "show", "reservation", reservation)
    found = re.search(r"\bNodes=(\S+)", text)
    return _hostnames(found[1]) if found else []


def partitions(names: str | None) -> list[Partition]:
    """The partitions of a list with commas, without one the default partition. Raises: SlurmError."""
    wanted = names.split(",") if names else []
    found = []
    for line in ask("scontrol", "--all", "--oneliner", "show", "partition").splitlines():
        fields = dict(re.findall(r"(\S+?)=(\S*)", line))
        name = fields.get("PartitionName", "")
        if name in wanted or (not wanted and fields.get("Default") == "YES"):
            most = fields.get("MaxNodes", "")
            limit = minutes(fields.get("MaxTime", ""))
            count = int(most) if most.isdecimal() else None
            found.append(Partition(name, fields.get("State", ""), limit, count))
    return found


def nodes_unavailable(names: Iterable[str]) -> dict[str, str]:
    """Of these nodes those that start no job now: node -> its state and an administrator's reason.

    Raises:
        SlurmError: Slurm does not answer.
    """
    states = {}
    for line in ask("scontrol", "--oneliner", "show", "node", hostlist(names)).splitlines():
        node = re.match(r"NodeName=(\S+).*\bState=(\S+)", line)
        if node and UNAVAILABLE.search(node[2]):
            reason = re.search(r"\bReason=(.*?)(?: \[\S+@\S+\])?(?=\s+[A-Z]\w*=|\s*$)", line)
            states[node[1]] = f"{node[2]} ({reason[1]})" if reason else node[2]
    return states


def address(node: str) -> str:
    """Name or address by which Slurm reaches a node. Raises: SlurmError."""
    found = re.search(r"NodeAddr=(\S+)", ask("scontrol", "--oneliner", "show", "node", node))
    return found[1] if found else node


def jobs(states: str | None = None) -> list[Job]:
    """My jobs that have not ended; with ``states="all"`` also those that Slurm still remembers.

    Raises:
        SlurmError: Slurm does not answer.
    """
    more = [f"--states={states}"] if states else []
    lines = ask("squeue", "--me", "--noheader", "--format=%i|%T|%N|%M|%k|%r", *more).splitlines()
    return [Job(*fields) for line in lines if len(fields := line.split("|", 5)) == 6]


def job(number: str) -> dict[str, str]:
    """Fields of ``scontrol show job``; none when Slurm has forgotten the job or does not answer."""
    try:
        text = ask("scontrol", "--oneliner", "show", "job", number)
    except SlurmError:
        return {}
    # A value ends before the next name: paths may hold blanks.
    return dict(re.findall(r"(\S+?)=(.*?)(?=\s+[A-Z][\w/:]*=|\s*$)", text))


def job_nodes(number: str) -> list[str]:
    """Host names of a running job's nodes, that of the batch script first. Raises: SlurmError."""
    names = ask("squeue", "--noheader", f"--jobs={number}", "--format=%N").strip()
    return _hostnames(names) if names else []


def _hostnames(names: str) -> list[str]:
    """``node[1-2]`` -> node1 and node2. Raises: SlurmError."""
    return ask("scontrol", "show", "hostnames", names).split()


def submit(options: Iterable[str], script: str) -> str:
    """Hand a script to sbatch, without a file or a shell that could read it; the job's number.

    Raises:
        SlurmError: with sbatch's message.
    """
    return ask("sbatch", "--parsable", *options, text=script).strip().partition(";")[0]


def cancel(numbers: Sequence[str]) -> None:
    """End jobs. Raises: SlurmError."""
    for first in range(0, len(numbers), 500):
        ask("scancel", *numbers[first : first + 500])


def minutes(text: str) -> int | None:
    """Minutes of ``1-00:00:00``, ``30:00`` or ``infinite``, rounded down; None without a limit."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):\d+", text)
    if found is None:
        return None
    days, hours, mins = (int(part or 0) for part in found.groups())
    return days * 1440 + hours * 60 + mins


def hostlist(names: Iterable[str]) -> str:
    """node1 node2 node3 login -> ``login,node[1-3]``, as Slurm writes the nodes of a large cluster."""
    return _hostlist(tuple(names))


@functools.lru_cache(maxsize=64)  # ten thousand jobs leave out the same few lists of nodes
def _hostlist(names: tuple[str, ...]) -> str:
    stems: dict[tuple[str, bool], list[str]] = {}
    for name in sorted(set(names), key=lambda name: (len(name), name)):
        stem = name.rstrip("0123456789")
        number = name[len(stem) :]
        stems.setdefault((stem, number != ""), []).append(number)
    texts = []
    for (stem, _), numbers in sorted(stems.items()):
        runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), _run)]
        parts = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
        texts.append(f"{stem}[{','.join(parts)}]" if len(numbers) > 1 else stem + numbers[0])
    return ",".join(texts)


def _run(entry: tuple[int, str]) -> tuple[int, int]:
    """Equal for numbers of one width that follow each other, by their places."""
    place, number = entry
    return len(number), int(number or 0) - place
