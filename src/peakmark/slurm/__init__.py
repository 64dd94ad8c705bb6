"""Slurm's commands, each called once. Nothing here knows of campaigns."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from peakmark.errors import OUT_OF_MEMORY, PeakmarkError
from peakmark.formatting import natural
from peakmark.slurm import states

LIMIT_S = 60.0
SHOWN = 200
"""Characters of an unreadable answer that a message shows."""
NODE_LOST = frozenset(["BOOT_FAIL", "NODE_FAIL", "PREEMPTED"])
"""Final states that say nothing of the job itself."""
ENDED_BADLY = NODE_LOST | {
    *("CANCELLED", "DEADLINE", "FAILED", OUT_OF_MEMORY, "REVOKED", "SPECIAL_EXIT", "TIMEOUT")
}
"""Final states of a job, COMPLETED apart; in all others it waits or runs."""
WAITING = frozenset(["PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"])
_OPTION = re.compile(
    "(SLURM|SBATCH|SRUN|SALLOC|SATTACH|SBCAST|SQUEUE|SINFO|SCANCEL|SCONTROL|SACCT|SACCTMGR|SPRIO|SSHARE|SSTAT|SREPORT|SDIAG)_"
)
"""Variables that Slurm's commands take for options."""
_REACHING = re.compile(r"SLURM_(CONF|JWT|SACK_\w+)")
"""Of those, what they need to find their cluster and to be believed there."""
_NODE = re.compile(
    r"([^|]*)\|([^|*]*)(\*?)\|(\d+)\+?\|(\d+)\+?\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)"
)
"""A line of sinfo, which some sites wrap, so that it prints other lines too."""
_JOB = re.compile(r"(\d[\d_+*\[\],%-]*)\|([A-Z_]+)\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)")
"""A line of squeue, likewise."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What a wrapper writes for a terminal."""


class SlurmError(PeakmarkError):
    """Slurm did not answer, or refused.

    Attributes:
        reason: message of the command that refused, or of the system that did not start it.
        silent: no answer came in time, or none that tells what became of the question.
        output: what the command that refused wrote to its standard output.
    """

    def __init__(self, fact: str, reason: str = "", silent: bool = False, output: str = "") -> None:
        super().__init__(fact)
        self.reason, self.silent, self.output = reason, silent, output


class NumberError(SlurmError):
    """sbatch ended well and printed no number of a job; Slurm may have the job."""

    def __init__(self, output: str) -> None:
        shown = " ".join(output.split())[:SHOWN]
        reason = (
            f"sbatch ended without an error and without the number of a job (it printed {shown!r})"
        )
        super().__init__(reason, reason=reason, silent=True)


@dataclass(frozen=True)
class Node:
    """A node as sinfo prints it.

    Attributes:
        partition: of the partitions that were asked for those that have it, with commas.
        memory: MiB.
        limit: most minutes that such a partition gives a job, None without a limit.
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
        granted = states.OF_RESERVATIONS if self.is_reserved else frozenset()
        return states.NOT_NOW.isdisjoint(states.flags(self.state) - granted)


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
        raise SlurmError(
            _failure(argv[0], done.stderr.strip() or reason), reason, output=done.stdout
        )
    return done.stdout


def _failure(program: str, said: str) -> str:
    """Return the sentence on a command that failed: of several lines the last one says why."""
    lines = [line for line in map(str.strip, said.splitlines()) if line]
    why = re.sub(rf"^{re.escape(program)}: (error|fatal): ", "", lines[-1])
    hint = ": is this a login node, and is slurmctld up?" if _ABSENT.search(why) else ""
    return f"{program} failed: {why}{hint}"


_ABSENT = re.compile("configuration source|contact slurm controller|Unable to establish")
"""Words of Slurm's commands where they find no controller."""


def environment() -> dict[str, str]:
    """Return the environment without the variables that Slurm's commands take for options: of a job
    around this process, and of a user, whose SQUEUE_PARTITION would hide jobs.

    SLURM_CLUSTERS stays on a login node where it names one cluster, which may be out of reach without
    it; a job is in its cluster.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if _REACHING.fullmatch(name) or not _OPTION.match(name)
    }
    cluster = os.environ.get("SLURM_CLUSTERS", "")
    is_one = re.fullmatch(r"[\w.-]+", cluster) and cluster != "all"
    if is_one and "SLURM_JOB_ID" not in os.environ:
        kept["SLURM_CLUSTERS"] = cluster
    return kept


def partition_names(text: str | None) -> list[str]:
    """Return the names in a list with commas, each once, in their order."""
    names = (name.strip() for name in (text or "").split(","))
    return list(dict.fromkeys(filter(None, names)))


def nodes(partition: str | None, reservation: str | None = None) -> list[Node]:
    """Return the nodes of a partition, of several with commas, or of the default one, each once and
    sorted by name; of a reservation those that it has.

    Raises:
        SlurmError: there is no such partition or reservation, or no default partition.
    """
    reserved = reserved_nodes(reservation) if reservation else None
    wanted = partition_names(partition)
    fields = "--format=%N|%P|%c|%m|%T|%l|%z|%G|%f"
    # All partitions, hidden ones too: sinfo takes --all and --partition only one at a time.
    output = ask("sinfo", "--all", "--noheader", "--Node", fields)
    found: dict[str, Node] = {}
    known = set()
    for match in filter(None, map(_NODE.fullmatch, output.splitlines())):
        name, of, default, cpus, memory, state, limit, layout, gres, features = match.groups()
        if not (of in wanted or (not wanted and default)):
            continue
        known.add(of)
        if reserved is None or name in reserved:
            sizes, has = (int(cpus), int(memory)), frozenset(features.split(","))
            is_reserved, limit_min = reserved is not None, minutes(limit)
            node = Node(name, of, *sizes, state, limit_min, has, layout, gres, is_reserved)
            found[name] = _merged(found[name], node, wanted) if name in found else node
    missing = [name for name in wanted if name not in known]
    if missing or not found:
        name = f"partition {', '.join(missing or wanted)!r}" if wanted else "default partition"
        where = f" with nodes of reservation {reservation}" if reservation and not missing else ""
        raise SlurmError(
            f"Slurm has no {name}{where}: sinfo lists all; set slurm.partition in the site file"
        )
    return sorted(found.values(), key=lambda node: natural(node.name))


def _merged(one: Node, other: Node, order: Sequence[str]) -> Node:
    """Return a node of several partitions: a job may be as long as the most generous allows."""
    both = {*partition_names(one.partition), *partition_names(other.partition)}
    limit = None
    if one.limit is not None and other.limit is not None:
        limit = max(one.limit, other.limit)
    of = ",".join(name for name in order if name in both) or one.partition
    return replace(one, partition=of, limit=limit)


def switches() -> dict[str, list[str]]:
    """Each switch that does not have all nodes below it, with those that it has; empty without a
    topology.

    Raises:
        SlurmError: Slurm does not answer.
    """
    topology = ask("scontrol", "--oneliner", "show", "topology")
    found = re.findall(r"(?m)^SwitchName=(\S+) .*\bNodes=(\S+)", topology)
    below = {name: states.hostnames(nodes) for name, nodes in found}
    most = max(map(len, below.values()), default=0)
    return {name: nodes for name, nodes in below.items() if len(nodes) < most}


def reserved_nodes(reservation: str) -> list[str]:
    """The nodes of a reservation. Raises: SlurmError."""
    text = ask("scontrol", "--oneliner", "show", "reservation", reservation)
    found = re.search(r"\bNodes=(\S+)", text)
    return states.hostnames(found[1]) if found else []


def partitions(names: str | None) -> list[Partition]:
    """The partitions of a list with commas, without one the default partition. Raises: SlurmError."""
    wanted = partition_names(names)
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


def nodes_unavailable(names: Iterable[str], is_reserved: bool = False) -> dict[str, str]:
    """Return those of the nodes that start no job now: node -> its state and an administrator's
    reason.

    Args:
        names: of the nodes.
        is_reserved: jobs have a reservation of them, and start there during its maintenance.

    Raises:
        SlurmError: Slurm does not answer.
    """
    granted = states.OF_RESERVATIONS if is_reserved else frozenset()
    unavailable = {}
    for name, (state, reason) in _node_states(hostlist(names)).items():
        if not states.STOPPED.isdisjoint(states.flags(state) - granted):
            unavailable[name] = f"{state} ({reason})" if reason else state
    return unavailable


def _node_states(names: str) -> dict[str, tuple[str, str]]:
    """Ask for states in JSON, which Slurm has since 23.02, else as text. Raises: SlurmError."""
    try:
        found = states.of_json(ask("scontrol", "--all", "--json", "show", "node", names))
    except SlurmError as error:  # no such option, or the plugin that writes JSON is not there
        if error.silent:
            raise
        found = {}
    if found:
        return found
    return states.of_text(ask("scontrol", "--all", "--oneliner", "show", "node", names))


def address(node: str) -> str:
    """Name or address by which Slurm reaches a node. Raises: SlurmError."""
    found = re.search(r"NodeAddr=(\S+)", ask("scontrol", "--oneliner", "show", "node", node))
    return found[1] if found else node


def jobs(of: str | None = None) -> list[Job]:
    """My jobs that have not ended; with ``"all"`` also those that Slurm still remembers.

    As text: of 150 jobs squeue of Slurm 22.05 writes 8 KB, and 484 KB as JSON, every second.

    Raises:
        SlurmError: Slurm does not answer.
    """
    more = [f"--states={of}"] if of else []
    fields = "--format=%i|%T|%N|%M|%k|%r"
    lines = ask("squeue", "--all", "--me", "--noheader", fields, *more).splitlines()
    return [Job(*match.groups()) for match in map(_JOB.fullmatch, lines) if match]


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
    output = ask("squeue", "--all", "--noheader", f"--jobs={number}", "--format=%i|%N")
    found = re.search(rf"(?m)^{re.escape(number)}\|(\S+)$", output)
    return states.hostnames(found[1]) if found else []


def submit(options: Sequence[str], script: str) -> str:
    """Hand a script to sbatch, without a file or a shell that could read it; the job's number.

    A site's wrapper may print a banner, no number, or end with an error although Slurm has the job:
    then the queue tells, where the job has the comment of ``options``.

    Raises:
        SlurmError: with sbatch's message; ``silent`` where Slurm may have the job all the same.
    """
    refusal = None
    try:
        output = ask("sbatch", "--parsable", *options, text=script)
    except SlurmError as error:
        refusal, output = error, error.output
    numbers = job_numbers(output)
    if refusal is not None and not numbers:
        raise refusal
    if refusal is None and len(numbers) == 1:
        return numbers[0]
    queued = _queued(options, numbers)
    if queued:
        return queued
    if refusal is not None:
        raise refusal
    if numbers:
        return numbers[-1]
    raise NumberError(output)


def job_numbers(output: str) -> list[str]:
    """Return the numbers that may be the job's in what ``sbatch --parsable`` printed, each once: lines
    that are a number, maybe with a cluster, else those of a wrapper without ``--parsable``.
    """
    lines = [_COLOUR.sub("", line).strip() for line in output.splitlines()]
    for pattern in (r"(\d+)(?:;[\w.-]+)?", r"Submitted batch job (\d+)\b.*"):
        found = [match[1] for line in lines if (match := re.fullmatch(pattern, line))]
        if found:
            return list(dict.fromkeys(found))
    return []


def _queued(options: Sequence[str], numbers: Sequence[str]) -> str:
    """Return the newest job with the comment of ``options``: of the ``numbers``, or without any one
    that has not ended; empty where Slurm knows none.
    """
    prefix = "--comment="
    comment = next((each.removeprefix(prefix) for each in options if each.startswith(prefix)), "")
    try:
        mine = [job for job in jobs("all") if comment and job.comment == comment]
    except SlurmError:
        return ""
    if numbers:
        mine = [job for job in mine if job.number in numbers]
    else:
        mine = [job for job in mine if job.state not in {"COMPLETED", *ENDED_BADLY}]
    return max((job.number for job in mine), key=natural, default="")


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
