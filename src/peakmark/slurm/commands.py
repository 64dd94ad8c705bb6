"""Call Slurm's commands: submit, list and cancel jobs; list nodes, partitions and switches.

A command that fails raises its message.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from peakmark.errors import OUT_OF_MEMORY, PeakmarkError
from peakmark.formatting import natural, short_name

LIMIT_S = 60.0
"""Time limit of a command in seconds: slurmctld answers within seconds or not at all."""
TRIES, PAUSE_S = 3, 5.0
"""Number of times that sinfo is asked while no controller answers, and the seconds between them."""
_OPTION = re.compile(
    "(SLURM|SBATCH|SRUN|SALLOC|SATTACH|SBCAST|SQUEUE|SINFO|SCANCEL|SCONTROL|SACCT|SACCTMGR|SPRIO|SSHARE|SSTAT|SREPORT|SDIAG)_"
)
"""Start of the names of environment variables that Slurm's commands read as options."""
_KEPT = re.compile(r"SLURM_(CONF|CONF_SERVER|JWT|SACK_\w+)|(SBATCH|SLURM)_(ACCOUNT|QOS)")
"""Variables with which the commands find their cluster, authenticate the user and charge the jobs."""
_ABSENT = re.compile("configuration source|contact slurm controller|Unable to establish")
"""Words in the message of a command that finds no controller."""


class SlurmError(PeakmarkError):
    """Slurm did not answer, or refused.

    Attributes:
        reason: message of the command, or of the operating system if it could not start the
            command.
        silent: whether no answer came in time, or the answer does not show what Slurm did.
    """

    def __init__(self, fact: str, reason: str = "", silent: bool = False) -> None:
        super().__init__(fact)
        self.reason, self.silent = reason, silent


def ask(*argv: str, text: str = "", limit_s: float = LIMIT_S) -> str:
    """Run a Slurm command that reads ``text`` for at most ``limit_s``, and return its standard output.

    Raises:
        SlurmError: the command failed. The error has the command's message.
    """
    try:
        done = subprocess.run(
            argv,
            env=environment(),
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # comments and reasons hold any bytes
            timeout=limit_s,
            check=False,
            start_new_session=True,  # Ctrl-C and SIGHUP must not reach the command
        )
    except FileNotFoundError:
        raise SlurmError(
            f"{argv[0]} is not on PATH: start this on a login node of the cluster, or measure this machine without --slurm"
        ) from None
    except OSError as error:  # such as an argument list longer than the kernel allows
        refusal = f"{argv[0]} cannot be started: {error.strerror}"
        raise SlurmError(refusal, reason=refusal) from None
    except subprocess.TimeoutExpired:
        silence = f"{argv[0]} got no answer from Slurm within {limit_s:.0f} s: is slurmctld up?"
        raise SlurmError(silence, silent=True) from None
    if done.returncode:
        message = done.stderr.strip() or f"exit code {done.returncode}"
        reason = " ".join(message.split())
        raise SlurmError(_failure(argv[0], message), reason)
    return done.stdout


def _failure(program: str, message: str) -> str:
    """Return the sentence on a failed command, with the last line of its message as the reason."""
    last = message.splitlines()[-1].strip()
    why = re.sub(rf"^{re.escape(program)}: (error|fatal): ", "", last)
    if _ABSENT.search(why):
        why += ": is this a login node, and is slurmctld up?"
    return f"{program} failed: {why}"


def environment() -> dict[str, str]:
    """Return the environment without the variables that Slurm's commands read as options.

    These may come from a job around this process, or from the user. SQUEUE_PARTITION, for example, would
    hide jobs. On a login node, SLURM_CLUSTERS is kept if it names one cluster, because the commands might
    not reach this cluster otherwise. Inside a job they reach the cluster of the job.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if _KEPT.fullmatch(name) or not _OPTION.match(name)
    }
    cluster = os.environ.get("SLURM_CLUSTERS", "")
    is_one = re.fullmatch(r"[\w.-]+", cluster) and cluster != "all"
    if is_one and "SLURM_JOB_ID" not in os.environ:
        kept["SLURM_CLUSTERS"] = cluster
    return kept


# -- jobs

LAUNCH_FAILED = "LAUNCH_FAILED"
"""State of a job that its node could not start. Older versions of Slurm call it CANCELLED."""
NODE_LOST = frozenset(["BOOT_FAIL", LAUNCH_FAILED, "NODE_FAIL", "PREEMPTED", "RECONFIG_FAIL"])
"""Final states for which neither the job nor its cells are the cause."""
ENDED_BADLY = NODE_LOST | {
    *("CANCELLED", "DEADLINE", "FAILED", OUT_OF_MEMORY, "REVOKED", "SPECIAL_EXIT", "TIMEOUT")
}
"""All final states of a job except COMPLETED. In every other state the job waits or runs."""
# States of a job that has not started yet.
WAITING = frozenset(["PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"])
_JOB = re.compile(r"(\d[\d_+*\[\],%-]*)\|([A-Z_]+)\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)")
"""Pattern of a line of squeue, because a site's wrapper may print other lines too."""
CANCELLED_AT_ONCE = 500
"""Largest number of jobs in one call of scancel."""


@dataclass(frozen=True)
class Job:
    """A line of squeue.

    Attributes:
        number: id of the job.
        state: such as ``PENDING``, ``RUNNING`` or ``TIMEOUT``.
        nodes: list of the job's nodes, such as ``n[1-2]``; empty before the job starts.
        elapsed: time that the job has run, such as ``1-00:00:00`` or ``30:00``.
        comment: comment with which the job was submitted.
        reason: why the job waits.
    """

    number: str
    state: str
    nodes: str
    elapsed: str
    comment: str
    reason: str

    @property
    def waits(self) -> bool:
        return self.state in WAITING


def jobs(states: str = "") -> list[Job]:
    """Return this user's jobs that have not ended; with states ``"all"`` also ended jobs that Slurm remembers.

    squeue prints text, because for 150 jobs Slurm 22.05 writes 8 KB of text but 484 KB of JSON.

    Raises:
        SlurmError: Slurm does not answer.
    """
    more = [f"--states={states}"] if states else []
    fields = "--format=%i|%T|%N|%M|%k|%r"
    output = ask("squeue", "--all", "--me", "--noheader", fields, *more)
    matches = map(_JOB.fullmatch, output.splitlines())
    # A line that does not match is no job.
    return [Job(*match.groups()) for match in matches if match]


def job(number: str) -> dict[str, str]:
    """Return the fields of ``scontrol show job``; empty if Slurm forgot the job or does not answer."""
    try:
        text = ask("scontrol", "--oneliner", "show", "job", number)
    except SlurmError:
        return {}
    # A value ends before the next field's name, because paths may contain spaces.
    return dict(re.findall(r"(\S+?)=(.*?)(?=\s+[A-Z][\w/:]*=|\s*$)", text))


def job_nodes(number: str) -> list[str]:
    """Return the host names of a running job's nodes, with the batch script's node first.

    Raises:
        SlurmError: Slurm does not answer.
    """
    output = ask("squeue", "--all", "--noheader", f"--jobs={number}", "--format=%i|%N")
    found = re.search(rf"(?m)^{re.escape(number)}\|(\S+)$", output)
    return hostnames(found[1]) if found else []


def submit(options: Sequence[str], script: str) -> str:
    """Submit a script through the standard input of sbatch, and return the number of the job.

    Raises:
        SlurmError: sbatch failed. The error has sbatch's message. Its ``silent`` is true if
            sbatch's answer is missing or unclear, so that Slurm may have the job.
    """
    output = ask("sbatch", "--parsable", *options, text=script)
    # A line has a number, and may have a cluster. A site's wrapper may print other lines.
    numbers = re.findall(r"(?m)^(\d+)(?:;[\w.-]+)?$", output)
    if not numbers:
        fact = f"sbatch printed no number of a job, but {output.strip()!r}"
        raise SlurmError(fact, reason=fact, silent=True)
    return str(numbers[-1])


def cancel(numbers: Sequence[str]) -> None:
    """End jobs. Errors: SlurmError."""
    for first in range(0, len(numbers), CANCELLED_AT_ONCE):
        ask("scancel", *numbers[first : first + CANCELLED_AT_ONCE])


# -- nodes, partitions and switches

_FORMAT = "--format=%N|%P|%a|%s|%c|%m|%T|%l|%z|%G|%f|%E"
_LINE = re.compile(
    r"(?P<name>[^|]+)\|(?P<partition>[^|*]+)(?P<default>\*?)\|(?P<availability>\w+)\|(?P<size>[^|]*)"
    r"\|(?P<cpus>\d+)\+?\|(?P<memory>\d+)\+?\|(?P<state>[^|]*)\|(?P<limit>[^|]*)\|(?P<layout>[^|]*)"
    r"\|(?P<gres>[^|]*)\|(?P<features>[^|]*)\|(?P<reason>.*)"
)
"""Pattern of a line of sinfo, because a site's wrapper may print other lines too."""
SUFFIXES = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINT",
    "@": "REBOOT",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
"""Last character of a state -> flag for which it stands (sinfo(1), NODE STATE CODES)."""
STOPPED = frozenset(
    [
        *("DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "FAILING", "FUTURE"),
        *("INVAL", "MAINT", "NOT_RESPONDING", "REBOOT_ISSUED", "UNKNOWN"),
    ]
)
"""States of a node that starts no job until an administrator acts or the node has rebooted."""
NOT_NOW = STOPPED | {"POWER_DOWN", "POWERING_DOWN", "REBOOT", "REBOOT_REQUESTED", "RESERVED"}
"""States of a node that the plan leaves out. A powered-down node is kept, because Slurm can start it."""
OF_RESERVATIONS = frozenset(["MAINT", "RESERVED"])
"""States of reserved nodes, on which the jobs of the reservation itself may start."""


@dataclass(frozen=True)
class Node:
    """A node as sinfo prints it.

    Attributes:
        partition: names of the requested partitions that have the node, with commas.
        memory: memory in MiB.
        limit: longest time of a job in these partitions, in minutes; None without a limit.
        layout: sockets, cores and threads, such as ``2:32:1``.
        is_reserved: whether the campaign's jobs have a reservation that includes the node, so that
            they start there even during maintenance.
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
    def gpus(self) -> int:
        """Return the number of GPUs in ``gres``, such as ``gpu:h100:8(S:0-1)``."""
        counts = re.findall(r"(?:^|,)gpu(?::[^:,()]+)?:(\d+)", self.gres)
        return sum(map(int, counts))

    @property
    def usable(self) -> bool:
        return not _is_blocked(self.state, NOT_NOW, self.is_reserved)


@dataclass(frozen=True)
class Partition:
    """A partition as sinfo prints it.

    Attributes:
        state: such as ``up``, ``down`` or ``drain``.
        nodes: largest number of nodes of a job; None without a limit.
    """

    name: str
    state: str
    nodes: int | None


def _is_blocked(state: str, blocking: frozenset[str], is_reserved: bool) -> bool:
    """Return whether a state, such as ``idle*`` or ``maint``, keeps jobs away."""
    # Split the state into its name and its last characters. In allocated+, the plus stands for jobs
    # of the node that are completing; it is no flag.
    name = state.rstrip("".join(SUFFIXES) + "+")
    found = {name.upper(), *(SUFFIXES.get(suffix, "") for suffix in state[len(name) :])}
    if is_reserved:
        found -= OF_RESERVATIONS
    return not found.isdisjoint(blocking)


def hostnames(text: str) -> list[str]:
    """Return the names in a list such as ``n[1-2,08],login``. Errors: SlurmError."""
    if not text or text == "(null)":
        return []
    return ask("scontrol", "show", "hostnames", text).split()


def partition_names(text: str | None) -> list[str]:
    """Return the names in a comma-separated list, without repetitions, in their order."""
    names = (name.strip() for name in (text or "").split(","))
    return list(dict.fromkeys(filter(None, names)))


def _ask_again(*argv: str) -> str:
    """Run a command like ``ask``, and repeat it if the controller does not answer, for example as it restarts."""
    for _ in range(TRIES - 1):
        try:
            return ask(*argv)
        except SlurmError as error:
            if not (error.silent or _ABSENT.search(error.reason)):
                raise
        time.sleep(PAUSE_S)
    return ask(*argv)


def _sinfo(*options: str) -> Iterator[Mapping[str, str]]:
    """Yield the fields of each node in each of its partitions. Errors: SlurmError."""
    # --all shows hidden partitions too. sinfo accepts either --all or --partition.
    output = _ask_again("sinfo", "--all", "--noheader", "--Node", _FORMAT, *options)
    for match in filter(None, map(_LINE.fullmatch, output.splitlines())):
        yield match.groupdict()


def _of_partitions(wanted: Sequence[str]) -> list[Mapping[str, str]]:
    """Return the lines of sinfo of these partitions or, without any, of the default one."""
    lines = list(_sinfo())
    if wanted:
        return [line for line in lines if line["partition"] in wanted]
    return [line for line in lines if line["default"]]


def nodes(partition: str | None, reservation: str | None = None) -> list[Node]:
    """Return the nodes of one or several partitions, sorted by name.

    Args:
        partition: names of partitions, separated by commas; None for the default partition.
        reservation: if given, only nodes of this reservation are returned.

    Raises:
        SlurmError: there is no such partition or reservation, or no default partition.
    """
    reserved = reserved_nodes(reservation) if reservation else None
    wanted = partition_names(partition)
    lines = _of_partitions(wanted)
    found: dict[str, Node] = {}
    for line in lines:
        if reserved is not None and line["name"] not in reserved:
            continue
        node = Node(
            name=line["name"],
            partition=line["partition"],
            cpus=int(line["cpus"]),
            memory=int(line["memory"]),
            state=line["state"],
            limit=minutes(line["limit"]),
            features=frozenset(line["features"].split(",")),
            layout=line["layout"],
            gres=line["gres"],
            is_reserved=reserved is not None,
        )
        found[node.name] = _merged(found.get(node.name, node), node, wanted)
    # Say which partition is unknown, or that the reservation has none of its nodes.
    known = {line["partition"] for line in lines}
    missing = [name for name in wanted if name not in known]
    if missing or not found:
        name = f"partition {', '.join(missing or wanted)!r}" if wanted else "default partition"
        where = f" with nodes of reservation {reservation}" if reservation and not missing else ""
        raise SlurmError(
            f"Slurm has no {name}{where}: sinfo lists all; set slurm.partition in the site file"
        )
    return sorted(found.values(), key=lambda node: natural(node.name))


def _merged(one: Node, other: Node, order: Sequence[str]) -> Node:
    """Merge the lines of one node in two partitions. The longer time limit counts.

    The result names both partitions in the order of the requested partitions, ``order``. If none
    was requested, both lines are of the default partition.
    """
    both = {*partition_names(one.partition), *partition_names(other.partition)}
    limit = None
    if one.limit is not None and other.limit is not None:
        limit = max(one.limit, other.limit)
    names = ",".join(name for name in order if name in both)
    return replace(one, partition=names or one.partition, limit=limit)


def switches() -> dict[str, list[str]]:
    """Return, for each switch that connects only some of the cluster's nodes, the nodes below it.

    The result is empty if Slurm has no topology.

    Raises:
        SlurmError: Slurm does not answer.
    """
    topology = ask("scontrol", "--oneliner", "show", "topology")
    # Since 23.11 a cluster may have blocks of nodes instead of switches.
    found = re.findall(r"(?m)^(?:Switch|Block)Name=(\S+) .*\bNodes=(\S+)", topology)
    below = {name: hostnames(hosts) for name, hosts in found}
    every = set[str]().union(*below.values())
    return {name: hosts for name, hosts in below.items() if len(hosts) < len(every)}


def reserved_nodes(reservation: str) -> list[str]:
    """Return the nodes of a reservation. Errors: SlurmError."""
    text = ask("scontrol", "--oneliner", "show", "reservation", reservation)
    found = re.search(r"\bNodes=(\S+)", text)
    return hostnames(found[1]) if found else []


def partitions(names: str | None) -> list[Partition]:
    """Return the partitions in a list with commas; for None, the default one. Errors: SlurmError."""
    found = {}
    for line in _of_partitions(partition_names(names)):
        # The size of its jobs, such as 1-16 or 1-infinite, is in nodes.
        largest = line["size"].rpartition("-")[2]
        count = int(largest) if largest.isdecimal() else None
        found[line["partition"]] = Partition(line["partition"], line["availability"], count)
    return list(found.values())


def nodes_unavailable(names: Iterable[str], is_reserved: bool = False) -> dict[str, str]:
    """Return the state and the administrator's reason of each node that starts no job now.

    Args:
        names: names of the nodes.
        is_reserved: whether the campaign's jobs have a reservation of the nodes, so that they start
            there even during maintenance.

    Raises:
        SlurmError: Slurm does not answer.
    """
    unavailable = {}
    for line in _sinfo(f"--nodes={','.join(names)}"):
        if _is_blocked(line["state"], STOPPED, is_reserved):
            why = f" ({line['reason']})" if line["reason"] not in ("", "none") else ""
            unavailable[line["name"]] = f"{line['state']}{why}"
    return unavailable


def is_here(node: str) -> bool:
    """Return whether a node in Slurm is this machine. Domains and upper case are ignored.

    Inside a job, the name of this machine comes from Slurm, because it may differ from the host's
    name.
    """
    here = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    return short_name(node) == short_name(here)


def address(node: str) -> str:
    """Return the name or address with which Slurm reaches a node. Errors: SlurmError."""
    text = ask("scontrol", "--oneliner", "show", "node", node)
    found = re.search(r"NodeAddr=(\S+)", text)
    return found[1] if found else node


def minutes(text: str) -> int | None:
    """Return a time of Slurm in minutes, rounded down; see ``seconds``."""
    found = seconds(text)
    return None if found is None else found // 60


def seconds(text: str) -> int | None:
    """Return a time of Slurm, such as ``1-00:00:00`` or ``30:00``, in seconds; None for ``infinite``."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if found is None:
        return None
    days, hours, whole_minutes, rest = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + whole_minutes) * 60 + rest
