"""Turn the grids of a configuration into cells of peakmark's kernels and of the reference tools."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, product
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from peakmark.catalogue import (
    ARRAYS,
    AUTO,
    GPUS,
    HPL,
    KERNELS,
    LADDERS,
    NUMA,
    ON_ONE_NODE,
    PAGES,
    POOLS,
    SHAPES,
    SHORTEST_S,
    SUBSYSTEMS,
    SWEEPS,
    TOGETHER,
    disk_variant,
    gpu_variants,
    nodes_of_ranks,
)
from peakmark.cell import Cell, Scalar
from peakmark.config import campaign as configuration
from peakmark.config.types import (
    AnyGrid,
    CpuGrid,
    DiskGrid,
    MemoryGrid,
    MpiGrid,
    NetworkGrid,
    Planned,
    ReferenceGrid,
)
from peakmark.errors import ConfigError, PeakmarkError, Unavailable
from peakmark.formatting import listed, parse_size
from peakmark.machine import gpu, topology
from peakmark.machine.host import Host
from peakmark.plan.cluster import ANY, Groups, Rounds
from peakmark.tools import REGISTRY
from peakmark.tools.base import Coverage

READS = ("RS", "RR")
"""Disk workloads that only read, so that ``sync`` and ``fill`` do not change them."""
SHORTEST_HPL_S = 3.0
"""Shortest time, in seconds, to which ``scale`` reduces the time of HPL.

In less time, HPL cannot solve even a small system of equations.
"""
_COUNTED = {"LAT": "accesses", "LAT-TCP": "round_trips", "LAT-UDP": "round_trips"}
"""Latency workload -> option of its kernel that the key ``total`` sets."""


def cells(
    config: Planned,
    node: str,
    on_this_machine: bool,
    left_out: Collection[str],
) -> Iterator[Cell]:
    """Yield the cells of a completed configuration on one node, except cells of several nodes.

    Args:
        config: the completed configuration.
        node: name of the node, or ``any``.
        on_this_machine: whether this machine resolves the words of ``concurrency``.
        left_out: subsystems that are not measured on the node.

    Raises:
        ConfigError: a cell is possible on no machine, or a reference can measure no row of its grid.
    """
    for subsystem, several in config.grids().items():
        if subsystem in left_out:
            continue
        for index, keys in enumerate(several):
            has_pairs = isinstance(keys, NetworkGrid | MpiGrid) and keys.pairs is not None
            has_groups = isinstance(keys, DiskGrid) and keys.together is not None
            has_ranks = isinstance(keys, MpiGrid) and keys.nodes is not None
            if not has_pairs and not has_groups and not has_ranks:
                place = f"{subsystem}[{index}]"
                yield from _grid_cells(config, place, keys, node, on_this_machine)


def pair_cells(config: Planned, rounds: Rounds, left_out: Collection[str]) -> Iterator[Cell]:
    """Yield the cells of network and MPI grids that have the key ``pairs``. Errors: as for ``cells``."""
    for place, turns in rounds.items():
        subsystem, _, index = place.rstrip("]").partition("[")
        if subsystem in left_out:
            continue
        keys = config.grids()[subsystem][int(index)]
        for cell in _grid_cells(config, place, keys, ANY, on_this_machine=False):
            for client, server in chain.from_iterable(turns):
                yield replace(cell, node=client, peer=server)
        # Measure all pairs of a round together, with peakmark's kernel only.
        if isinstance(keys, NetworkGrid) and keys.together:
            alone = msgspec.structs.replace(keys, references={})
            for cell in _grid_cells(config, place, alone, ANY, on_this_machine=False):
                for turn, pairs in enumerate(turns):
                    together = replace(
                        cell, variant=TOGETHER, options={**cell.options, "round": turn}
                    )
                    for client, server in pairs:
                        yield replace(together, node=client, peer=server)


def group_cells(config: Planned, groups: Groups) -> Iterator[Cell]:
    """Yield the cells of disk grids that have the key ``together``. Errors: as for ``cells``.

    A group of nodes that is measured at one moment has a cell for each node. The option ``first`` names the
    first node of the group. The option ``part`` is the index of the cell's node in the group.

    Args:
        config: the completed configuration.
        groups: index of a disk grid -> its groups, each a tuple of names of nodes.
    """
    for index, node_groups in groups.items():
        keys, place = config.disk[index], f"disk[{index}]"
        for cell in _grid_cells(config, place, keys, ANY, on_this_machine=False):
            for nodes in node_groups:
                variant = disk_variant(cell.variant)._replace(
                    nodes=len(nodes), one_file=keys.one_file
                )
                for part, node in enumerate(nodes):
                    options = {**cell.options, "first": nodes[0], "part": part}
                    yield replace(cell, node=node, variant=variant.text, options=options)


def cells_of_ranks(config: Planned, groups: Groups, on_this_machine: bool) -> Iterator[Cell]:
    """Yield the cells of MPI grids that have the key ``nodes``. Errors: as for ``cells``.

    The option ``nodes`` names the nodes of the ranks, unless Slurm chooses them.
    """
    for index, node_groups in groups.items():
        keys, place = config.mpi[index], f"mpi[{index}]"
        # The number of nodes comes below. Before that, ``_grid_cells`` would leave out cells for
        # lack of nodes.
        for cell in _grid_cells(config, place, keys, ANY, on_this_machine=False):
            for nodes in node_groups:
                placed = _on_nodes(cell, nodes)
                if not on_this_machine or _has_ranks(placed):
                    yield placed


def cells_of_hpl(config: Planned, groups: Groups) -> Iterator[Cell]:
    """Yield the cells in which nodes solve one system with HPL, with all their cores."""
    for index, node_groups in groups.items():
        keys = config.cpu[index]
        # A CPU grid asks for them, but they are cells of ``mpi``: MPI starts their ranks on the nodes.
        grid = _Grid(config, "mpi", keys, ANY)
        for cell in grid.hpl_cells(keys.references["hpl"]):
            for nodes in node_groups:
                yield _on_nodes(cell, nodes)


def _on_nodes(cell: Cell, nodes: Sequence[str]) -> Cell:
    """Return the cell with its ranks on these nodes.

    The option ``nodes`` of the new cell has their names, unless Slurm chooses the nodes.
    """
    placed = replace(cell, node=nodes[0], variant=f"{len(nodes)}-nodes")
    if nodes[0] == ANY:
        return placed
    return replace(placed, options={**cell.options, "nodes": " ".join(nodes)})


def _grid_cells(
    config: Planned, place: str, keys: AnyGrid, node: str, on_this_machine: bool
) -> Iterator[Cell]:
    """Yield the cells of one grid on a node: those of peakmark's kernel, then those of each reference tool.

    Args:
        config: the completed configuration.
        place: place of the grid in the configuration, such as ``memory[0]``.
        keys: the grid.
        node: name of the node, or ``any``.
        on_this_machine: whether this machine resolves the words of ``concurrency``.
    """
    subsystem = place.partition("[")[0]
    # Words of ``concurrency`` that mean the same number of threads are measured once.
    aliases = concurrency_aliases(keys.concurrency, on_this_machine)
    concurrency = list(dict.fromkeys(aliases.values()))
    grid = _Grid(config, subsystem, msgspec.structs.replace(keys, concurrency=concurrency), node)
    for cell in grid.kernel_cells():
        if on_this_machine and not _has_distance(cell):
            continue
        _check_possible(place, cell)
        yield cell
    # A reference tool that no row of the grid suits is an error of the configuration.
    for name, changes in keys.references.items():
        # A reference tool may have other numbers of threads than the grid.
        chosen = [aliases.get(value, value) for value in changes.concurrency or keys.concurrency]
        narrowed = msgspec.structs.replace(changes, concurrency=list(dict.fromkeys(chosen)))
        planned = list(grid.reference_cells(name, narrowed))
        if not planned:
            known = chain.from_iterable(row.workloads for row in _coverages(name, subsystem))
            raise ConfigError(
                f"{place}.references has {name}, which can measure none of the grid's rows: "
                f"it measures {listed(list(dict.fromkeys(known)))}; remove it, or add a grid with these rows"
            )
        yield from planned


def impossible(planned: Iterable[Cell]) -> dict[str, str]:
    """Return ``Cell.row`` -> why no machine can measure this row with its reference tool.

    Rows that some machine can measure are left out. Only the first repetition of a row is checked,
    because all its repetitions have the same reason.
    """
    reasons = {}
    for cell in planned:
        instrument = REGISTRY[cell.instrument]
        if cell.repetition == 0 and instrument.reference:
            try:
                instrument.check(cell)
            except PeakmarkError as error:
                reasons[cell.row] = str(error)
    return reasons


def interleaved(planned: Iterable[Cell], seed: int) -> list[Cell]:
    """Return the cells repetition by repetition, each repetition in a random order.

    A slow drift of the machine then affects all cells equally, and does not look like a difference
    between cells.

    Source: Hoefler and Belli, SC '15, rule 9; google/benchmark's random interleaving.
    """
    ordered = []
    by_id = sorted(planned, key=attrgetter("repetition", "id"))
    for repetition, group in groupby(by_id, attrgetter("repetition")):
        shuffled = list(group)
        random.Random(f"{seed}/{repetition}").shuffle(shuffled)  # noqa: S311 - not a secret
        ordered += shuffled
    return ordered


@functools.cache
def threads_of(word: str) -> int:
    """Return the number of threads or GPUs for a word of ``concurrency`` (``cores``) on this machine."""
    if word == GPUS:
        count, _ = gpu.survey()
        return max(1, count)
    cpus = os.sched_getaffinity(0)
    return topology.resolve(topology.read(Host(), cpus), cpus, word)


def concurrency_aliases(
    values: Sequence[int | str], on_this_machine: bool
) -> dict[int | str, int | str]:
    """Return each concurrency of a grid -> the concurrency that is measured instead.

    On the machine that measures, several values can mean the same number of threads, which is then
    measured once: as the number if the grid has it, else as one of the words.
    """
    aliases = {value: value for value in values}
    if not on_this_machine:
        return aliases
    # Number of threads -> the number or word that is measured for it.
    measured: dict[int, int | str] = {value: value for value in values if isinstance(value, int)}
    # If several words mean one number, the first in this order replaces the others.
    for word in ("cores", "socket", "numa", "cpus", GPUS):
        if word in values:
            aliases[word] = measured.setdefault(threads_of(word), word)
    return aliases


def _has_distance(cell: Cell) -> bool:
    """Return whether this machine has the two NUMA nodes, sockets, CPUs or GPUs between which the cell measures.

    The result is True for cells that do not measure between two of them.
    """
    if cell.subsystem == "mpi":
        return _has_ranks(cell)
    if cell.workload in NUMA:
        return len(topology.numa(Host())) > 1
    if cell.word and (cell.variant == "peer" or cell.workload in ("C2C", "LOADED")):
        return threads_of(cell.word) > 1
    return True


def _has_ranks(cell: Cell) -> bool:
    """Return whether this machine has the CPUs for a cell of MPI: two, one for each rank of a pair.

    Return False for ranks on several nodes, which need a cluster.
    """
    if nodes_of_ranks(cell.variant) > 1:
        return False
    cpus = os.sched_getaffinity(0)
    # Only the variants of ``ON_ONE_NODE`` say in which sockets the ranks run. For others any two
    # CPUs suffice.
    if cell.variant not in ON_ONE_NODE:
        return len(cpus) > 1
    locations = topology.read(Host(), cpus)
    return bool(topology.cpus_of_two(locations, cpus, same_socket=cell.variant == "same-socket"))


def _check_possible(place: str, cell: Cell) -> None:
    """Check that some machine could measure the cell.

    Raises:
        ConfigError: no machine can measure it.
    """
    if cell.repetition > 0:
        return  # the first repetition was checked
    try:
        REGISTRY[cell.instrument].check(cell)
    except Unavailable as error:
        raise ConfigError(f"{place} asks for {cell.row}, which is not possible: {error}") from error


def _coverages(name: str, subsystem: str) -> list[Coverage]:
    """Return what a reference tool can measure of a subsystem."""
    return [row for row in REGISTRY[name].rows if row.subsystem == subsystem]


class _GridPoint(NamedTuple):
    """A point of a grid. Its concurrency is a number or a word such as ``cores``."""

    workload: str
    variant: str
    block: int | None
    concurrency: int | str

    @property
    def threads(self) -> int:
        if isinstance(self.concurrency, int):
            return self.concurrency
        return 1  # until the node that measures knows the number

    @property
    def word(self) -> str:
        if isinstance(self.concurrency, str):
            return self.concurrency
        return ""


def _points(subsystem: str, keys: AnyGrid) -> list[_GridPoint]:
    """Return the points of a grid, in table order.

    A workload of ``SHAPES`` measures a whole curve or matrix. A workload of ``LADDERS`` measures a
    curve over all working sets.
    """
    blocks: list[int | None] = []
    for block in keys.blocks or (AUTO,):
        if block == AUTO:
            blocks.append(None)
        else:
            blocks.append(parse_size(block))
    points: list[_GridPoint] = []
    for workload in keys.workloads:
        # LAT and most workloads of ``SHAPES`` have no variants. The variants of ladders are kinds of pages.
        variants = keys.variants or [SUBSYSTEMS[subsystem].default]
        if subsystem == "gpu":
            variants = _variants_of_gpu(workload, keys)
        elif workload in LADDERS:
            variants = keys.variants or list(PAGES)
        elif workload in SHAPES or (subsystem == "memory" and workload == "LAT"):
            variants = [""]
        # Workloads of ``SHAPES`` choose their own sizes. Of the GPU's workloads, only sweeps have blocks.
        sizes = blocks
        # BARRIER moves no data.
        is_unsized = workload in SHAPES or workload == "BARRIER"
        if is_unsized or (subsystem == "gpu" and workload not in SWEEPS):
            sizes = [None]
        # A point for each combination of these values.
        points += map(_GridPoint._make, product([workload], variants, sizes, keys.concurrency))
    return points


def _variants_of_gpu(workload: str, keys: AnyGrid) -> list[str]:
    """Return the grid's variants that a GPU workload has. If it has none of them, return its default variants.

    The default of LINK excludes ``peer``, which needs two GPUs.
    """
    known = gpu_variants(workload)
    asked = [variant for variant in keys.variants if variant in known]
    if asked or workload != "LINK":
        return asked or [known[0]]
    return [variant for variant in known if variant != "peer"]


@dataclass(frozen=True)
class _Grid:
    """A grid of the configuration, applied to one node.

    Attributes:
        config: the completed configuration.
        subsystem: subsystem of the grid.
        keys: the grid. Of several values of ``concurrency`` that mean the same number, it has only
            one.
        node: name of the node, or ``any``.
    """

    config: Planned
    subsystem: str
    keys: AnyGrid
    node: str

    def kernel_cells(self) -> Iterator[Cell]:
        """Yield the cells of peakmark's kernel."""
        count = self.keys.repetitions or self.config.repetitions
        for point in _points(self.subsystem, self.keys):
            options = self._options(point, point.workload, self.keys) | self._total(point)
            yield from self._repetitions(count, KERNELS[self.subsystem], point, options)

    def reference_cells(self, name: str, changes: ReferenceGrid) -> Iterator[Cell]:
        """Yield the cells of one reference tool, each for one or several points of the grid."""
        stated: dict[str, Any] = msgspec.to_builtins(changes)
        # Take out the keys that change the grid. Options of the tool itself remain in ``stated``.
        common = {key: stated.pop(key) for key in self.keys.__struct_fields__ if key in stated}
        grid = msgspec.structs.replace(self.keys, **common)
        count = changes.repetitions or self.config.reference_repetitions
        planned: set[_GridPoint] = set()
        for asked in _points(self.subsystem, grid):
            coverage = self._coverage(name, asked)
            if coverage is None:
                continue
            # The point of the cell: one execution of the tool may measure several workloads, blocks or concurrencies.
            point = asked._replace(workload=coverage.cell or asked.workload)
            if not coverage.per_block:
                point = point._replace(block=None)
            if not coverage.per_concurrency:
                point = point._replace(concurrency=1)
            if point in planned:
                continue
            planned.add(point)
            options = self._reference_options(name, asked, point.workload, grid, stated)
            yield from self._repetitions(count, name, point, options)

    def hpl_cells(self, changes: ReferenceGrid) -> Iterator[Cell]:
        """Yield the cells of HPL over nodes, before their nodes are chosen.

        ``ReferenceGrid`` explains the options: ``budget_s``, ``nb``, ``memory`` and ``ranks``.
        """
        own: dict[str, Any] = _stated({"budget_s": changes.budget_s, "nb": changes.nb})
        point = _GridPoint(HPL, "", None, "cores")
        options = self._reference_options("hpl", point, HPL, self.keys, own)
        options |= _stated({"memory": changes.memory, "ranks": changes.ranks or "socket"})
        count = changes.repetitions or self.config.reference_repetitions
        yield from self._repetitions(count, "hpl", point, options)

    def _coverage(self, name: str, point: _GridPoint) -> Coverage | None:
        """Return the coverage of a reference tool that includes the point; None if none does."""
        for row in _coverages(name, self.subsystem):
            any_variant = not row.variants or point.variant in row.variants
            if point.workload in row.workloads and any_variant:
                return row
        return None

    def _repetitions(
        self, count: int, instrument: str, point: _GridPoint, options: Mapping[str, Scalar]
    ) -> Iterator[Cell]:
        """Yield the repetitions of a cell, each with its own seed."""
        for repetition in range(count):
            seeded = dict(options)
            if "seed" in seeded:
                seeded["seed"] = self.config.seed + repetition
            yield Cell(
                subsystem=self.subsystem,
                instrument=instrument,
                workload=point.workload,
                variant=point.variant,
                block=point.block,
                concurrency=point.threads,
                node=self.node,
                repetition=repetition,
                options=seeded,
                word=point.word,
            )

    def _reference_options(
        self, name: str, point: _GridPoint, workload: str, grid: AnyGrid, own: Mapping[str, Any]
    ) -> dict[str, Scalar]:
        """Return the ``_options`` of a reference tool, and its ``own`` keys.

        ``_options`` explains the other arguments.
        """
        options = self._options(point, workload, grid) | dict(own)
        if "budget_s" in own:
            # Scaling never makes the time longer than the configured one.
            budget_s = own["budget_s"]
            options["budget_s"] = self._scaled_time(budget_s, min(budget_s, SHORTEST_HPL_S))
        if "count" in own:  # of packets or messages
            options["count"] = self._scaled_amount(own["count"])
        # One execution of a tool for MPI measures all sizes.
        if self.subsystem == "mpi" and point.block is not None:
            sizes = sorted(parse_size(block) for block in grid.blocks)
            options["blocks"] = " ".join(map(str, sizes))
        for key in REGISTRY[name].unused:
            options.pop(key, None)
        return options

    def _options(self, point: _GridPoint, workload: str, keys: AnyGrid) -> dict[str, Scalar]:
        """Return the options that all instruments share.

        Args:
            point: the point of the grid.
            workload: workload of the cell. It differs from the point's if a cell measures several
                points.
            keys: keys of the grid, with the changes for the reference tool.
        """
        config = self.config
        warmup = config.warmup if keys.warmup is None else keys.warmup
        options: dict[str, Scalar] = {
            "seconds": self._scaled_time(keys.seconds or config.seconds, SHORTEST_S),
            "warmup": self._scaled_time(warmup),
            "seed": config.seed,
        }
        if isinstance(keys, CpuGrid | MemoryGrid):
            options["isa"] = keys.isa
        if isinstance(keys, MemoryGrid):
            options["pool"] = AUTO
            if keys.pool != AUTO:
                options["pool"] = parse_size(keys.pool)
            # pmbw measures only powers of two. The area of LAT is always one (``pinning.area``).
            elif workload != "LAT" and _compares_pools_with_pmbw(keys):
                options["power_of_two"] = True
            chosen = {"store": keys.store, "pairs": keys.pairs, "steps": keys.steps}
            options |= _stated(chosen)
        if isinstance(keys, DiskGrid):
            size = parse_size(keys.size)
            options["size"] = self._scaled_amount(size, self._bytes_per_round(point))
            options["scratch"] = config.scratch
            if workload not in READS:
                options |= _stated({"sync": keys.sync, "fill": keys.fill})
        if self.subsystem == "network" and config.interface is not None:
            options["interface"] = config.interface
        return options

    def _total(self, point: _GridPoint) -> dict[str, Scalar]:
        """Return the option of peakmark's kernel that sets a fixed amount of work, if the grid has one.

        The amount is scaled in whole units: the same number of blocks or operations for each thread.
        """
        if self.keys.total is None:
            return {}
        total = configuration.parse_total(f"{self.subsystem} total", self.keys.total)
        option = _COUNTED.get(point.workload, SUBSYSTEMS[self.subsystem].total)
        unit = point.threads
        if option == "total":
            unit = self._bytes_per_round(point)
        return {option: self._scaled_amount(total, unit)}

    def _bytes_per_round(self, point: _GridPoint) -> int:
        """Return the bytes that all threads together move when each thread processes one block."""
        size = (point.block or 1) * point.threads
        if self.subsystem == "memory":
            size *= ARRAYS.get(point.workload, 1)
        return size

    def _scaled_time(self, seconds: float, least: float = 0.0) -> float:
        """Return a time scaled by the key ``scale`` to at least ``least`` seconds."""
        scale = self.config.scale
        if scale == 1:
            return seconds
        return max(seconds * scale, least)

    def _scaled_amount(self, amount: int, unit: int = 1) -> int:
        """Return an amount of work or bytes scaled by the key ``scale``, in whole units and at least one.

        Without scaling, the amount stays as configured.
        """
        scale = self.config.scale
        if scale == 1:
            return amount
        return max(1, round(amount * scale / unit)) * unit


def _stated(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the options for which the grid has a value."""
    return {key: value for key, value in options.items() if value is not None}


def _compares_pools_with_pmbw(keys: MemoryGrid) -> bool:
    """Return whether pmbw is a reference for pools of the grid."""
    pmbw = keys.references.get("pmbw")
    if pmbw is None:
        return False
    return not set(POOLS).isdisjoint(
        pmbw.variants or keys.variants or [SUBSYSTEMS["memory"].default]
    )
