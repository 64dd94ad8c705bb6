"""The nodes, partitions and switches of a cluster, as sinfo and scontrol print them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from peakmark.formatting import natural
from peakmark.slurm import commands
from peakmark.slurm.commands import SlurmError

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
        is_reserved: whether jobs have a reservation of the node, and start there during its maintenance.
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
    name = state.rstrip("".join(SUFFIXES) + "+")
    found = {name.upper(), *(SUFFIXES.get(suffix, "") for suffix in state[len(name) :])}
    if is_reserved:
        found -= OF_RESERVATIONS
    return not found.isdisjoint(blocking)


def hostnames(text: str) -> list[str]:
    """Return the names in a list such as ``n[1-2,08],login``. Errors: SlurmError."""
    if not text or text == "(null)":
        return []
    return commands.ask("scontrol", "show", "hostnames", text).split()


def partition_names(text: str | None) -> list[str]:
    """Return the names in a comma-separated list, without repetitions, in their order."""
    names = (name.strip() for name in (text or "").split(","))
    return list(dict.fromkeys(filter(None, names)))


def _sinfo(*options: str) -> Iterator[Mapping[str, str]]:
    """Yield the fields of each node in each of its partitions. Errors: SlurmError."""
    # --all shows hidden partitions too. sinfo accepts either --all or --partition.
    output = commands.ask("sinfo", "--all", "--noheader", "--Node", _FORMAT, *options)
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
    """Merge two lines of the same node, in two partitions. The longer limit counts for its jobs."""
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
    topology = commands.ask("scontrol", "--oneliner", "show", "topology")
    found = re.findall(r"(?m)^SwitchName=(\S+) .*\bNodes=(\S+)", topology)
    below = {name: hostnames(nodes) for name, nodes in found}
    most = max(map(len, below.values()), default=0)
    return {name: nodes for name, nodes in below.items() if len(nodes) < most}


def reserved_nodes(reservation: str) -> list[str]:
    """Return the nodes of a reservation. Errors: SlurmError."""
    text = commands.ask("scontrol", "--oneliner", "show", "reservation", reservation)
    found = re.search(r"\bNodes=(\S+)", text)
    return hostnames(found[1]) if found else []


def partitions(names: str | None) -> list[Partition]:
    """Return the partitions in a list with commas; for None, the default one. Errors: SlurmError."""
    found = {}
    for line in _of_partitions(partition_names(names)):
        largest = line["size"].rpartition("-")[2]
        count = int(largest) if largest.isdecimal() else None
        found[line["partition"]] = Partition(line["partition"], line["availability"], count)
    return list(found.values())


def nodes_unavailable(names: Iterable[str], is_reserved: bool = False) -> dict[str, str]:
    """Return the state and the administrator's reason of each node that starts no job now.

    Args:
        names: names of the nodes.
        is_reserved: whether jobs have a reservation of the nodes, and start there during its maintenance.

    Raises:
        SlurmError: Slurm does not answer.
    """
    unavailable = {}
    for line in _sinfo(f"--nodes={','.join(names)}"):
        if _is_blocked(line["state"], STOPPED, is_reserved):
            why = f" ({line['reason']})" if line["reason"] not in ("", "none") else ""
            unavailable[line["name"]] = f"{line['state']}{why}"
    return unavailable


def address(node: str) -> str:
    """Return the name or address with which Slurm reaches a node. Errors: SlurmError."""
    text = commands.ask("scontrol", "--oneliner", "show", "node", node)
    found = re.search(r"NodeAddr=(\S+)", text)
    return found[1] if found else node


def minutes(text: str) -> int | None:
    """Return a time of Slurm, such as ``1-00:00:00`` or ``30:00``, in minutes, rounded down.

    The result is None for ``infinite``.
    """
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):\d+", text)
    if found is None:
        return None
    days, hours, rest = (int(part or 0) for part in found.groups())
    return days * 1440 + hours * 60 + rest
