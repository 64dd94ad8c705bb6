"""The nodes, partitions and switches of a cluster, as sinfo and scontrol print them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from peakmark.formatting import natural
from peakmark.slurm import commands, states
from peakmark.slurm.commands import SlurmError
from peakmark.slurm.hostlists import hostlist, hostnames

_NODE = re.compile(
    r"([^|]*)\|([^|*]*)(\*?)\|(\d+)\+?\|(\d+)\+?\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)"
)
"""Pattern of a line of sinfo, because a site's wrapper may print other lines too."""


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
        return not states.blocking(self.state, states.NOT_NOW, self.is_reserved)


@dataclass(frozen=True)
class Partition:
    """A partition as scontrol prints it.

    Attributes:
        limit: longest time of a job, in minutes; None without a limit.
        nodes: largest number of nodes of a job; None without a limit.
    """

    name: str
    state: str
    limit: int | None
    nodes: int | None


def partition_names(text: str | None) -> list[str]:
    """Return the names in a comma-separated list, without repetitions, in their order."""
    names = (name.strip() for name in (text or "").split(","))
    return list(dict.fromkeys(filter(None, names)))


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
    fields = "--format=%N|%P|%c|%m|%T|%l|%z|%G|%f"
    # Ask for all partitions, including hidden ones: sinfo accepts either --all or --partition.
    output = commands.ask("sinfo", "--all", "--noheader", "--Node", fields)
    found: dict[str, Node] = {}
    known = set()
    for match in filter(None, map(_NODE.fullmatch, output.splitlines())):
        name, of, default, cpus, memory, state, limit, layout, gres, features = match.groups()
        if of not in wanted and (wanted or not default):
            continue
        known.add(of)
        if reserved is not None and name not in reserved:
            continue
        node = Node(
            name,
            of,
            int(cpus),
            int(memory),
            state,
            minutes(limit),
            frozenset(features.split(",")),
            layout,
            gres,
            is_reserved=reserved is not None,
        )
        found[name] = _merged(found.get(name, node), node, wanted)
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
    wanted = partition_names(names)
    found = []
    for line in commands.ask("scontrol", "--all", "--oneliner", "show", "partition").splitlines():
        fields = dict(re.findall(r"(\S+?)=(\S*)", line))
        name = fields.get("PartitionName", "")
        if name in wanted or (not wanted and fields.get("Default") == "YES"):
            most = fields.get("MaxNodes", "")
            limit = minutes(fields.get("MaxTime", ""))
            count = int(most) if most.isdecimal() else None
            found.append(Partition(name, fields.get("State", ""), limit, count))
    return found


def nodes_unavailable(names: Iterable[str], is_reserved: bool = False) -> dict[str, str]:
    """Return the state and the administrator's reason of each node that starts no job now.

    Args:
        names: names of the nodes.
        is_reserved: whether jobs have a reservation of the nodes, and start there during its maintenance.

    Raises:
        SlurmError: Slurm does not answer.
    """
    unavailable = {}
    for name, (state, reason) in _node_states(hostlist(names)).items():
        if states.blocking(state, states.STOPPED, is_reserved):
            unavailable[name] = f"{state} ({reason})" if reason else state
    return unavailable


def _node_states(names: str) -> dict[str, tuple[str, str]]:
    """Return node -> (state, administrator's reason), as scontrol prints them. Errors: SlurmError.

    JSON is used if Slurm can print it (23.02 and newer), and otherwise text.
    """
    try:
        found = states.of_json(commands.ask("scontrol", "--all", "--json", "show", "node", names))
    except SlurmError as error:  # no such option, or the plugin that writes JSON is not there
        if error.silent:
            raise
        found = {}
    if found:
        return found
    return states.of_text(commands.ask("scontrol", "--all", "--oneliner", "show", "node", names))


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
