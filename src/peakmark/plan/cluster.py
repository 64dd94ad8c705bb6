"""Find the nodes of a cluster, classify them, and choose those that a campaign measures.

Also compute the pairs of nodes that a network grid measures.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from peakmark import slurm
from peakmark.comparability import equipment_of
from peakmark.config.types import Planned, Sample
from peakmark.errors import ConfigError
from peakmark.formatting import counted, natural, plural, short_name
from peakmark.storage import records

ANY = "any"
"""Node of cells for which Slurm chooses the node."""
Settings = Mapping[str, Any]
"""Keys and values of a configuration."""
EQUAL_MEMORY = 0.9
"""Smallest ratio of the memories of two nodes that count as equal.

Firmware reserves different amounts on equal nodes.
"""


@dataclass(frozen=True)
class EqualNodes:
    """Equal nodes of a cluster.

    Attributes:
        cpus: CPUs of each node.
        memory: MiB of the smallest node.
        nodes: names of the nodes.
        usable: number of nodes of the class that can be used now.
        chosen: whether cells with ``nodes: any`` run on this class.
        gpus: GPUs of each node, by Slurm's gres.
        stopped: node -> its state, for each node of the class that cannot be used now.
    """

    cpus: int
    memory: int
    nodes: list[str]
    usable: int
    chosen: bool = False
    gpus: int = 0
    stopped: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cluster:
    """The nodes that Slurm reported when the campaign was planned.

    Attributes:
        partition: name of the partition, or several names separated by commas; empty where another
            scheduler than Slurm runs the jobs, see ``unlisted``.
        asked: value of the key ``nodes`` in the configuration.
        nodes: names of the nodes to measure, or ``any`` if Slurm chooses.
        cpus: CPUs of the smallest node.
        memory: MiB of the smallest node.
        limit: minutes of the longest job in the partition with the longest limit; None without a
            limit.
        count: number of nodes that may be chosen and can be used now.
        left_out: node -> its state, for nodes that ``all`` includes but that cannot be used now.
        kinds: classes of equal nodes.
        switches: switch -> the nodes below it in Slurm's topology; empty unless a grid has pairs.
        limits: node -> longest job in minutes, for nodes whose partitions allow less than
            ``limit``.
    """

    partition: str
    asked: Any
    nodes: tuple[str, ...]
    cpus: int
    memory: int
    limit: int | None
    count: int
    left_out: dict[str, str] = field(default_factory=dict)
    kinds: list[EqualNodes] = field(default_factory=list)
    switches: dict[str, list[str]] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)

    @property
    def chosen(self) -> EqualNodes | None:
        """Return the class of equal nodes that runs ``nodes: any``; None for named nodes or if not yet chosen."""
        return next((kind for kind in self.kinds if kind.chosen), None)

    def size_of(self, node: str) -> tuple[int, int]:
        """Return the CPUs and the memory in MiB of a node.

        For ``any``, these are the numbers of the chosen class or, before a class is chosen, the
        smallest numbers of all classes.
        """
        for kind in self.kinds:
            # A class is chosen only if each node is ``any``.
            if kind.chosen or node in kind.nodes:
                return kind.cpus, kind.memory
        return self.cpus, self.memory

    def gpus_of(self, node: str) -> int:
        """Return the number of GPUs of a node.

        For ``any``, this is the number for each node of the chosen class or, before a class is
        chosen, the largest number of all classes.
        """
        for kind in self.kinds:
            # A class is chosen only if each node is ``any``.
            if kind.chosen or node in kind.nodes:
                return kind.gpus
        return max([kind.gpus for kind in self.kinds], default=0)

    def limit_of(self, nodes: Iterable[str]) -> int | None:
        """Return the minutes of the longest job that all these nodes allow; None without a limit."""
        known = [self.limits[node] for node in nodes if node in self.limits]
        return min(known, default=self.limit)

    def excluded(self, count: int) -> list[str]:
        """Return the nodes outside the chosen class, which a job of ``count`` nodes must not get.

        No node is excluded if the chosen class has fewer nodes than the job needs.
        """
        eligible = set(self.eligible(count))
        every = chain.from_iterable(kind.nodes for kind in self.kinds)
        return [node for node in every if node not in eligible]

    def eligible(self, count: int) -> list[str]:
        """Return the nodes that Slurm may choose for a job of ``count`` nodes.

        These are the nodes of the chosen class, or of all classes if the chosen class has fewer than ``count``.
        """
        chosen = self.chosen
        if chosen is not None and len(chosen.nodes) >= count:
            return chosen.nodes
        return list(chain.from_iterable(kind.nodes for kind in self.kinds))

    def choose(self, cpus: int, memory: int, needs_pair: bool, gpus: int = 0) -> Cluster:
        """Choose the class of equal nodes that can measure all rows, and return the new cluster.

        If no class satisfies all rows, the nearest one is chosen. GPUs count most, and CPUs count more
        than memory, because a row with many threads is useless on few CPUs.

        Args:
            cpus: CPUs of the most demanding row.
            memory: MiB of the most demanding row.
            needs_pair: whether a row needs two nodes at the same time.
            gpus: GPUs of the most demanding row.
        """
        if self.nodes != (ANY,) or not self.kinds:
            return self

        def fitness(kind: EqualNodes) -> tuple[int, ...]:
            """Return the sort key of a class: the class with the largest key is chosen.

            In this order it compares: the GPUs, CPUs and memory that a node has, up to those
            requested; whether an earlier run chose the class; whether a node can be used now;
            whether the class has enough nodes for a pair; and how many nodes can be used now.
            """
            least_nodes = 2 if needs_pair else 1
            return (
                min(kind.gpus, gpus),
                min(kind.cpus, cpus),
                min(kind.memory, memory),
                kind.chosen,
                kind.usable > 0,
                len(kind.nodes) >= least_nodes,
                kind.usable,
            )

        best = max(self.kinds, key=fitness)
        kinds = [replace(kind, chosen=kind is best) for kind in self.kinds]
        return replace(self, kinds=kinds, count=best.usable)


def find(config: Planned, partition: str | None, folder: Path | None = None) -> Cluster:
    """Query Slurm for the nodes of a cluster, and choose those to measure.

    Args:
        config: the configuration.
        partition: name of the partition; None for the site file's or, if it has none, Slurm's default.
        folder: folder of the campaign, if it exists. The nodes of an earlier run are kept, even if some
            are down now.

    Raises:
        SlurmError: Slurm does not answer, or has no such partition.
        ConfigError: ``nodes`` has a node that is not in the partition, or asks for more usable nodes
            than there are; or no node has the feature of ``slurm.constraint``.
    """
    requested = config.nodes
    asked = msgspec.to_builtins(requested)  # as the plan stores it
    settings = config.site_facts.slurm
    # Read the nodes of the partition, and keep those with the required feature.
    wanted = partition or settings.partition
    nodes = slurm.nodes(wanted, settings.reservation)
    name = ",".join(slurm.partition_names(wanted)) or nodes[0].partition
    limit = _longest(nodes)  # of the whole partition, whatever features its nodes have
    feature = settings.constraint
    # Only the name of one feature is compared here; Slurm evaluates expressions such as a&b.
    if feature.isalnum():
        nodes = [node for node in nodes if feature in node.features]
    if not nodes:
        raise ConfigError(
            f"no node of partition {name} has the feature {feature!r} of slurm.constraint"
        )
    # Choose the nodes to measure. A choice of an earlier run is kept.
    earlier = None
    if folder is not None:
        earlier = _earlier(folder / "plan.json", asked, name)
    names, left_out = _choose_nodes(requested, config.seed, name, nodes, earlier)
    # If Slurm chooses the nodes, ``names`` has only ``any``, and all nodes are candidates.
    candidates = [node for node in nodes if node.name in names] or nodes
    switches = {}  # for pairs: the report looks for slow switches
    if any(grid.pairs for grid in config.network) or any(grid.pairs for grid in config.mpi):
        switches = slurm.switches()
    # Only the limits of nodes that allow less than others.
    limits = {node.name: node.limit for node in nodes if node.limit not in (None, limit)}
    return Cluster(
        partition=name,
        asked=asked,
        nodes=tuple(names),
        cpus=min(map(attrgetter("cpus"), candidates)),
        memory=min(map(attrgetter("memory"), candidates)),
        limit=limit,
        count=sum(map(attrgetter("usable"), nodes)),
        left_out=left_out,
        kinds=_node_classes(candidates, earlier, _hardware(folder)),
        switches=switches,
        limits=limits,
    )


def unlisted(config: Planned) -> Cluster:
    """Return the cluster of a scheduler whose nodes peakmark cannot list, such as PBS, LSF or Flux.

    The scheduler may run a job on any node. The plan assumes that each node is as large as this
    machine.

    Raises:
        ConfigError: the key ``nodes`` names nodes.
    """
    requested = config.nodes
    if requested != ANY:
        raise ConfigError(
            f"nodes is {json.dumps(msgspec.to_builtins(requested), ensure_ascii=False)}: without Slurm peakmark cannot list the "
            "nodes of the cluster; use nodes: any"
        )
    # Shifted by 20 bits: MiB instead of bytes. The number of nodes is unknown, so the expected time
    # is that of one.
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    cpus = os.cpu_count() or 1
    return Cluster(
        partition="", asked=ANY, nodes=(ANY,), cpus=cpus, memory=memory, limit=None, count=1
    )


def _longest(nodes: Iterable[slurm.Node]) -> int | None:
    """Return the minutes of the longest job that some node allows; None without a limit."""
    longest = 0
    for node in nodes:
        if node.limit is None:
            return None
        longest = max(longest, node.limit)
    return longest


def _hardware(folder: Path | None) -> dict[str, tuple[str, str]]:
    """Return short name of each node that the campaign has measured -> its processor and installed memory.

    The version of Linux is not compared: it may have changed since a node was measured.
    """
    hardware = {}
    if folder is not None:
        facts, _ = records.survey_facts(folder)
        for host, known in facts.items():
            equipment = equipment_of(known)
            hardware[records.node_name(host, known)] = equipment.cpu, equipment.memory
    return hardware


def _node_classes(
    nodes: Iterable[slurm.Node],
    earlier: Cluster | None,
    measured: Mapping[str, tuple[str, str]],
) -> list[EqualNodes]:
    """Return the classes of nodes that are equal in Slurm; the class chosen by an earlier run is kept.

    Args:
        nodes: the nodes.
        earlier: cluster of an earlier run.
        measured: short name of each measured node -> its processor and memory. Nodes that were not measured may be
            equal to measured ones.
    """
    chosen_before = set[str]()
    if earlier is not None and earlier.chosen is not None:
        chosen_before.update(earlier.chosen.nodes)
    classes = []
    # The nodes of a class have the same CPUs and GPUs, but may differ a little in memory.
    for members in _equal_nodes(nodes, measured):
        smallest = min(members, key=attrgetter("memory"))
        names = sorted(map(attrgetter("name"), members), key=natural)
        usable = sum(map(attrgetter("usable"), members))
        stopped = {node.name: node.state for node in members if not node.usable}
        classes.append(
            EqualNodes(
                cpus=smallest.cpus,
                memory=smallest.memory,
                nodes=names,
                usable=usable,
                chosen=not chosen_before.isdisjoint(names),
                gpus=smallest.gpus,
                stopped=stopped,
            )
        )
    return classes


class _Properties(NamedTuple):
    """What decides whether nodes are equal.

    Attributes:
        in_slurm: CPUs, layout, features and gres of the node in Slurm.
        hardware: processor and memory that were measured; None for a node that was not measured.
        memory: memory in Slurm, in MiB.
    """

    in_slurm: tuple[Any, ...]
    hardware: tuple[str, str] | None
    memory: int

    def is_equal(self, node: _Properties) -> bool:
        """Return whether a node may join a group whose first node has these properties."""
        smaller, larger = sorted([self.memory, node.memory])
        has_same_memory = larger * EQUAL_MEMORY <= smaller
        # ``node`` may be unmeasured. If this first node is, ``node`` is too: measured nodes are
        # grouped first.
        may_have_hardware = node.hardware in (None, self.hardware)
        return self.in_slurm == node.in_slurm and may_have_hardware and has_same_memory


def _equal_nodes(
    nodes: Iterable[slurm.Node], measured: Mapping[str, tuple[str, str]]
) -> Iterable[list[slurm.Node]]:
    """Return the nodes in groups of equal ones. The arguments are those of ``_node_classes``."""
    # Measured nodes come first, so that the others join their groups. Among both, the smallest nodes come
    # first: the memory of a group's first node is the least that its nodes have.
    in_order = sorted(nodes, key=attrgetter("cpus", "memory"))
    in_order.sort(key=lambda node: short_name(node.name) not in measured)
    # Properties of the first node of a group -> the nodes of the group.
    groups: dict[_Properties, list[slurm.Node]] = {}
    for node in in_order:
        in_slurm = node.cpus, node.layout, node.features, node.gres
        own = _Properties(in_slurm, measured.get(short_name(node.name)), node.memory)
        first = next((other for other in groups if other.is_equal(own)), own)
        groups.setdefault(first, []).append(node)
    return groups.values()


def _choose_nodes(
    requested: Any,
    seed: int,
    partition: str,
    nodes: list[slurm.Node],
    earlier: Cluster | None,
) -> tuple[list[str], dict[str, str]]:
    """Return the names of the nodes to measure, and name -> state of nodes that cannot be used now.

    Args:
        requested: the key ``nodes`` of the configuration.
        seed: seed of the campaign, which decides the sample.
        partition: name of the partition, for messages.
        nodes: nodes of the partition.
        earlier: cluster of an earlier run, whose nodes are kept.

    Raises:
        ConfigError: the partition has no such node, or too few nodes that can be used now.
    """
    if requested == ANY:
        return [ANY], {}
    # The configuration names the nodes.
    if requested != "all" and not isinstance(requested, Sample):
        named = _names_of(requested)
        names = [node.name for node in nodes]
        for name in named:
            if name not in names:
                raise ConfigError(f"nodes has {name!r}: partition {partition} has {counted(names)}")
        return named, {}
    # All nodes or a sample were requested.
    if earlier is not None:
        return list(earlier.nodes), earlier.left_out
    usable = [node.name for node in nodes if node.usable]
    if requested == "all":
        if not usable:
            raise ConfigError(
                f"nodes: all, but no node of partition {partition} can be used now; see sinfo -R"
            )
        return usable, {node.name: node.state for node in nodes if not node.usable}
    count = requested.sample
    if count > len(usable):
        available = f"{plural(len(usable), 'node')} that can be used now"
        raise ConfigError(f"nodes.sample is {count}: partition {partition} has {available}")
    sample = random.Random(f"{seed}/nodes").sample(usable, count)  # noqa: S311 - not a secret
    return sorted(sample, key=natural), {}


def _names_of(requested: str | Iterable[str]) -> list[str]:
    """Return the key ``nodes``, which may be one name or several, as a list of names."""
    if isinstance(requested, str):
        return [requested]
    return list(requested)


def _earlier(path: Path, requested: Any, partition: str) -> Cluster | None:
    """Return the cluster of an earlier run with the same ``nodes`` and partition; None if there is none.

    Args:
        path: plan of the campaign, which an earlier run may have written.
        requested: value of the key ``nodes`` now.
        partition: name of the partition now.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        earlier = msgspec.convert(stored["cluster"], Cluster)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if (earlier.asked, earlier.partition) != (requested, partition):
        return None
    return earlier


def local_nodes(requested: Any) -> tuple[str, ...]:
    """Return the nodes of a campaign without a cluster: this machine, by its configured name or as ``any``.

    Raises:
        ConfigError: ``nodes`` is ``all``, a sample, or several names.
    """
    if requested == "all" or isinstance(requested, Sample) or len(_names_of(requested)) != 1:
        raise ConfigError(
            f"nodes is {json.dumps(msgspec.to_builtins(requested), ensure_ascii=False)}: without Slurm only this machine is "
            "measured; use --profile slurm for several nodes, or nodes: any"
        )
    return tuple(_names_of(requested))


def peers(nodes: Sequence[str]) -> dict[str, str]:
    """Return node -> the node to which its network is measured: the next one, and for the last node the first.

    The result is empty for fewer than two nodes.
    """
    if len(nodes) < 2:
        return {}
    return dict(zip(nodes, [*nodes[1:], nodes[0]], strict=True))


Pair = tuple[str, str]
"""Node of the client and node of the server."""
Rounds = Mapping[str, Sequence[Sequence[Pair]]]
"""Place of a grid, such as ``network[0]`` -> its rounds of pairs. The pairs of one round share no node."""


def pair_rounds(config: Planned, nodes: Sequence[str]) -> Rounds:
    """Return the rounds of all network and MPI grids that measure pairs of nodes.

    Raises:
        ConfigError: fewer than two nodes are named, or each cell is a job although pairs are measured together.
    """
    found = {}
    of_network = {f"network[{index}]": grid for index, grid in enumerate(config.network)}
    of_mpi = {f"mpi[{index}]": grid for index, grid in enumerate(config.mpi)}
    for place, grid in (of_network | of_mpi).items():
        if grid.pairs is None:
            continue
        # Only grids of ``network`` have the key ``together``.
        if getattr(grid, "together", False) and config.fan_out == "cell":
            raise ConfigError(
                f"{place}.together measures several pairs in one job: set fan_out to node"
            )
        if len(nodes) < 2:
            raise ConfigError(
                f"{place}.pairs needs two named nodes of a cluster: set nodes to all, a list "
                "or {sample: 64}, and use --profile slurm"
            )
        # All pairs occur in at most as many rounds as there are nodes.
        count = len(nodes) if grid.pairs == "all" else grid.pairs.rounds
        found[place] = list(islice(rounds(nodes, config.seed), count))
    return found


Groups = Mapping[int, Sequence[tuple[str, ...]]]
"""Index of a disk, MPI or CPU grid -> its groups of nodes. Nodes of a group measure together."""


def groups_together(config: Planned, cluster: Cluster | None) -> Groups:
    """Return the groups of nodes of all disk grids with ``together``.

    The nodes of a group are the first ones of a class of equal nodes.

    Raises:
        ConfigError: no nodes are named, each cell is a job, or the site file does not state that the nodes
            share the disk.
    """
    groups = {}
    for index, grid in enumerate(config.disk):
        if grid.together is None:
            continue
        where = f"disk[{index}].together"
        if cluster is None or cluster.nodes == (ANY,):
            raise ConfigError(
                f"{where} needs named nodes of a cluster: set nodes to all, a list or {{sample: 8}}, "
                "and use --profile slurm"
            )
        if config.fan_out == "cell":
            raise ConfigError(f"{where} measures several nodes in one job: set fan_out to node")
        if not config.site_facts.slurm.scratch_shared:
            raise ConfigError(
                f"{where} measures a file system that all nodes share: set slurm: "
                "{scratch_shared: true} in the site file, and scratch in the configuration to a folder on it"
            )
        groups[index] = _first_nodes(grid.together, cluster)
    return groups


def groups_of_ranks(config: Planned, cluster: Cluster | None) -> Groups:
    """Return index of each MPI grid with ``nodes`` -> the groups of nodes on which its ranks run.

    Where Slurm chooses the nodes, each name of a group is ``any``. Without a cluster there is one node.
    """
    groups = {}
    for index, grid in enumerate(config.mpi):
        if grid.nodes is not None:
            groups[index] = _groups_of(grid.nodes, cluster)
    return groups


def groups_of_hpl(config: Planned, cluster: Cluster | None) -> Groups:
    """Return index of each CPU grid with HPL over several nodes -> its groups of nodes.

    These are the grids whose reference ``hpl`` has the key ``nodes``. ``groups_of_ranks``
    describes the groups.

    Raises:
        ConfigError: no class of equal nodes is large enough for any of the numbers of nodes.
    """
    groups = {}
    for index, grid in enumerate(config.cpu):
        hpl = grid.references.get("hpl")
        if hpl is None or hpl.nodes is None:
            continue
        groups[index] = _groups_of(hpl.nodes, cluster)
        if not groups[index]:
            counts = ", ".join(map(str, hpl.nodes))
            most = plural(_largest_class(cluster), "node")
            raise ConfigError(
                f"cpu[{index}].references.hpl.nodes is [{counts}]: the largest class of equal nodes has {most}; "
                "without --slurm it is this machine"
            )
    return groups


def _groups_of(counts: Sequence[int | str], cluster: Cluster | None) -> list[tuple[str, ...]]:
    """Return a group of nodes for each number of nodes in ``counts``, see ``groups_of_ranks``.

    A number that is larger than every class of equal nodes has no group.
    """
    if cluster is not None and cluster.nodes != (ANY,):
        return _first_nodes(counts, cluster)
    most = _largest_class(cluster)
    sizes = [most if count == "all" else int(count) for count in counts]
    return [(ANY,) * size for size in dict.fromkeys(sizes) if size <= most]


def _largest_class(cluster: Cluster | None) -> int:
    """Return the number of nodes of the largest class of equal nodes; 1 without a cluster."""
    kinds = cluster.kinds if cluster is not None else []
    return max([len(kind.nodes) for kind in kinds], default=1)


def _first_nodes(counts: Iterable[int | str], cluster: Cluster) -> list[tuple[str, ...]]:
    """Return groups of nodes: for each class and each number n in ``counts``, the first n nodes of the class.

    A class of fewer nodes gives no group of n.
    """
    groups: dict[tuple[str, ...], None] = {}  # its keys are an ordered set
    for kind in cluster.kinds:
        nodes = [node for node in kind.nodes if node in cluster.nodes]
        for count in counts:
            size = len(nodes) if count == "all" else int(count)
            if size <= len(nodes):
                groups[tuple(nodes[:size])] = None
    return list(groups)


def rounds(nodes: Sequence[str], seed: int) -> Iterator[list[Pair]]:
    """Yield sets of disjoint pairs in random order, until every pair of nodes has occurred.

    With an odd number of nodes, one node is idle in each set. The client of a pair is the node that
    has been a client less often.

    Source: the circle method of round-robin tournaments, E. Lucas, Les jeux de demoiselles, in
    Recreations mathematiques 2 (1883).
    """
    generator = random.Random(f"{seed}/pairs")  # noqa: S311 - not a secret
    players = list(nodes)
    if len(nodes) % 2:
        players.append("")  # the partner of the idle node
    fixed, *circle = generator.sample(players, len(players))
    clients = dict.fromkeys(players, 0)
    # Turn the circle around the fixed node, and pair the first half with the second.
    for turn in generator.sample(range(len(circle)), len(circle)):
        turned = [fixed, *circle[turn:], *circle[:turn]]
        middle = len(turned) // 2
        disjoint = []
        for one, other in zip(turned[:middle], reversed(turned[middle:]), strict=True):
            if one and other:
                client, server = sorted((one, other), key=clients.__getitem__)
                clients[client] += 1
                disjoint.append((client, server))
        yield disjoint
