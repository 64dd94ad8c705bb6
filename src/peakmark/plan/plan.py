"""The plan of a campaign: its cells, its jobs, how its configuration becomes a plan, and what ``peakmark plan`` prints."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from peakmark import data
from peakmark.catalogue import HPL, SUBSYSTEMS, nodes_of_ranks
from peakmark.cell import Cell
from peakmark.config import campaign as configuration
from peakmark.config import layouts, site
from peakmark.config.types import Batch, Planned, SiteSlurm, SiteValues
from peakmark.errors import ConfigError
from peakmark.formatting import counted, duration, format_size, gigabytes, plural, quantity
from peakmark.machine import gpu, job_limits, software
from peakmark.machine.host import Host
from peakmark.plan import durations, grids
from peakmark.plan.cluster import (
    ANY,
    Cluster,
    Settings,
    groups_of_hpl,
    groups_of_ranks,
    groups_together,
    local_nodes,
    pair_rounds,
    peers,
)
from peakmark.plan.durations import Durations
from peakmark.storage.record_types import PlanFile, Reference
from peakmark.storage.results import Results, rate_of_one_node
from peakmark.tools import REGISTRY
from peakmark.tools.programs import hpl

RESULTS = Path("results")
"""Folder of all campaigns, relative to the working directory."""
JOB_S, CELL_S = 0.5, 0.4
"""Seconds that a job, and seconds that a cell, takes in addition to measuring.

Slurm's own time is not included.
"""
MOST_CELLS = 200_000
"""Largest number of cells of a campaign, twice the largest number that is tested."""


@dataclass(frozen=True)
class Plan:
    """A campaign: completed configuration, cells in running order, reference tools, cluster.

    Attributes:
        config: the completed configuration.
        cells: every planned cell, in running order.
        references: reference tools that the grids name.
        cluster: the cluster that measures; None if this machine measures.
        impossible: row of a reference tool -> why no machine can measure it with this tool.
        left_out: subsystem -> why no cells of its grids are planned.
    """

    config: Planned
    cells: tuple[Cell, ...]
    references: tuple[Reference, ...]
    cluster: Cluster | None = None
    impossible: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def campaign(self) -> str:
        """Return the name of the campaign."""
        return self.config.campaign

    @property
    def directory(self) -> Path:
        """Return the folder of the campaign, relative to the working directory."""
        return RESULTS / self.campaign

    @cached_property
    def results(self) -> Results:
        """Return the reader of the records and other files in the campaign's folder."""
        return Results(self.directory, msgspec.convert(self.to_json(), PlanFile), self.cells)

    @cached_property
    def durations(self) -> Durations:
        """Return how long the cells take."""
        return durations.of(self.config, self.cluster)

    @cached_property
    def longest(self) -> float:
        """Return the seconds of the cell that may take longest, see ``Durations.longest``."""
        return max(map(self.durations.longest, self.cells), default=0.0)

    @cached_property
    def peers(self) -> dict[str, str]:
        """Return node -> the second node of its network cells; empty if Slurm chooses the nodes."""
        if self.cluster is None:
            return {}
        return peers(self.cluster.nodes)

    @property
    def is_grouped(self) -> bool:
        """Return whether a job may measure several cells."""
        return self.cluster is not None and self.config.fan_out != "cell"

    @cached_property
    def jobs(self) -> dict[str, list[Cell]]:
        """Return name of a job -> its cells. If each cell is a job, the name is the cell's id."""
        if self.is_grouped:
            return _grouped(self.cells, self.config)
        return {cell.id: [cell] for cell in self.cells}

    @cached_property
    def _job_names(self) -> dict[str, str]:
        """Return id of a cell -> name of its job."""
        names: dict[str, str] = {}
        for name, cells in self.jobs.items():
            names |= dict.fromkeys([cell.id for cell in cells], name)
        return names

    def job_of(self, cell: Cell) -> str:
        """Return the name of the cell's job."""
        return self._job_names[cell.id]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values, as plan.json stores it."""
        cells = []
        for cell in self.cells:
            entry = {"id": cell.id}
            if self.is_grouped:
                entry["job"] = self.job_of(cell)
            cells.append(entry | cell.to_json())
        plan = {
            "schema": 1,
            "campaign": self.campaign,
            "config": msgspec.to_builtins(self.config),
            "cluster": msgspec.to_builtins(self.cluster),
            "peers": self.peers,
            "cells": cells,
            "references": msgspec.to_builtins(list(self.references)),
        }
        if self.left_out:
            plan["left_out"] = dict(self.left_out)
        return plan


# -- from the configuration to the plan


def complete(config: Settings, on_cluster: bool = False) -> Planned:
    """Return the configuration with defaults and the site's facts filled in.

    Args:
        config: configuration as the user wrote it.
        on_cluster: whether nodes of a cluster measure. These nodes then look for the
            reference tools, not this machine, unless the configuration sets ``tools_on``.

    Raises:
        ConfigError: the configuration, its site file, its layout, or a file of a chapter is not valid.
    """
    if on_cluster:
        config = {"tools_on": "nodes", **config}
    campaign = configuration.complete(config)
    facts = SiteValues()
    if campaign.site is not None:
        facts = site.load(campaign.site)
    # Check the files of the report before anything is measured.
    if campaign.report.tables is not None:
        layouts.load(campaign.report.tables)
    configuration.check_chapters(campaign.report.text)
    return Planned(**msgspec.structs.asdict(campaign), site_facts=facts)


def make(config: Settings, cluster: Cluster | None = None) -> Plan:
    """Return the plan of a configuration as the user wrote it.

    Errors: as for ``complete`` and ``make_completed``.
    """
    return make_completed(complete(config, on_cluster=cluster is not None), cluster)


def make_completed(completed: Planned, cluster: Cluster | None = None) -> Plan:
    """Return the plan of a completed configuration.

    Raises:
        ConfigError: a cell is not possible on any machine, the nodes are too few for the grids, two grids
            contradict each other, or there are no cells or too many.
    """
    left_out = _left_out(completed, cluster)
    # Collect the cells, except cells of reference tools that were not found.
    tools = _named_references(completed, left_out)
    cells: dict[str, Cell] = {}
    for cell in _cells_of_all_grids(completed, cluster, left_out):
        name = cell.instrument
        if REGISTRY[name].reference and tools[name].path is None:
            continue
        _add(cells, cell)
        if len(cells) > MOST_CELLS:
            raise ConfigError(
                f"the configuration asks for more than {MOST_CELLS} cells: shorten its lists, or reduce "
                "repetitions or nodes"
            )
    if left_out and not cells:
        raise ConfigError(f"there is nothing to measure: {'; '.join(left_out.values())}")
    # Order the cells, and choose the class of nodes.
    ordered = grids.interleaved(cells.values(), completed.seed)
    if cluster is not None:
        # Two-node cells come last, because a job that waits for a second free node keeps one idle.
        ordered.sort(key=_order)
        # Cells of one node decide on the class. For the others it only matters that the class has
        # two nodes.
        single = [cell for cell in ordered if not two_nodes(cell)]
        cpus, memory = durations.needs(single, completed)
        gpus = max((cell.concurrency for cell in single if cell.subsystem == "gpu"), default=0)
        needs_pair = len(single) < len(ordered)
        cluster = cluster.choose(cpus, memory, needs_pair, gpus)
    ordered = [_with_memory(cell, cluster) for cell in ordered]
    return Plan(
        config=completed,
        cells=tuple(ordered),
        references=tuple(tools[name] for name in sorted(tools)),
        cluster=cluster,
        impossible=grids.impossible(ordered),
        left_out=left_out,
    )


def _cells_of_all_grids(
    config: Planned, cluster: Cluster | None, left_out: Collection[str]
) -> Iterator[Cell]:
    """Yield the cells of all grids, except those of the subsystems in ``left_out``. Errors: ConfigError."""
    nodes = cluster.nodes if cluster else local_nodes(config.nodes)
    rounds = pair_rounds(config, nodes)
    groups = groups_together(config, cluster)
    # The cells of each node, then those of several nodes: groups, pairs, and ranks of MPI and HPL.
    for node in nodes:
        # In a cluster, only nodes with GPUs get GPU cells.
        skipped = set(left_out)
        if cluster is not None and not cluster.gpus_of(node):
            skipped.add("gpu")
        yield from grids.cells(config, node, on_this_machine=cluster is None, left_out=skipped)
    yield from grids.group_cells(config, groups)
    yield from grids.pair_cells(config, rounds, left_out)
    if "mpi" not in left_out:
        ranks = groups_of_ranks(config, cluster)
        yield from grids.cells_of_ranks(config, ranks, on_this_machine=cluster is None)
        yield from grids.cells_of_hpl(config, groups_of_hpl(config, cluster))


def _with_memory(cell: Cell, cluster: Cluster | None) -> Cell:
    """Return the cell; a cell of HPL over nodes gets the memory of its smallest node."""
    if cell.workload != HPL:
        return cell
    # A memory of 0 bytes is an unknown one, which limits no matrix.
    if cluster is None:
        size = int(job_limits.collect(Host())["memory_bytes"] or 0)
    else:
        _, mebibytes = cluster.size_of(cell.node)
        size = mebibytes << 20
    return replace(cell, options={**cell.options, "node_bytes": size})


def _left_out(config: Planned, cluster: Cluster | None) -> dict[str, str]:
    """Return subsystem -> reason for GPUs and MPI, if grids ask for them and they cannot be measured."""
    reasons = {}
    if config.gpu and (reason := _no_gpu(config, cluster)):
        reasons["gpu"] = f"no GPU is measured: {reason}"
    # A grid with neither ``variants`` nor ``nodes`` has its ranks on two nodes, which need a
    # cluster.
    grids_of_mpi = [
        grid
        for grid in config.mpi
        if cluster is not None or grid.variants or grid.nodes is not None
    ]
    # Modules are loaded when the campaign begins. Only then it is known whether they bring MPI.
    needs_mpi = (
        grids_of_mpi or groups_of_hpl(config, cluster)
    ) and not config.site_facts.mpi.modules
    if needs_mpi and (reason := software.why_no_mpi(config.site_facts.mpi.environment)):
        reasons["mpi"] = f"no MPI is measured: {reason}"
    return reasons


def _no_gpu(config: Planned, cluster: Cluster | None) -> str:
    """Return why no GPU can be measured; empty if at least one can."""
    if cluster is None:
        count, reason = gpu.survey()
    elif not config.site_facts.gpus.gres:
        count, reason = 0, "the site file has no gpus: {gres: gpu}"
    else:
        count = max(map(cluster.gpus_of, cluster.nodes))
        reason = f"no node of partition {cluster.partition} has a GPU in Slurm"
    return "" if count else reason


def _order(cell: Cell) -> tuple[bool, bool, bool]:
    """Return the sort key that orders cells by the nodes that they need.

    Cells of one node come first. Cells of several nodes without a named peer follow, then cells of named
    pairs, and last cells of nodes that are measured together.
    """
    return cell.is_together, bool(cell.peer), two_nodes(cell)


def _add(cells: dict[str, Cell], cell: Cell) -> None:
    """Add a cell to ``cells`` (id -> cell), unless an equal one is there.

    Raises:
        ConfigError: another grid has the same cell with other options.
    """
    if cells.setdefault(cell.id, cell) != cell:
        raise ConfigError(
            f"two grids of {cell.subsystem} ask for {cell.id} with different options: give them "
            "different blocks, variants or concurrency, or put them in one grid"
        )


def _named_references(config: Planned, left_out: Collection[str]) -> dict[str, Reference]:
    """Return the reference tools that the grids name, except in grids of subsystems left out."""
    tools: dict[str, Reference] = {}
    for subsystem, several in config.grids().items():
        if subsystem not in left_out:
            for name in chain.from_iterable(grid.references for grid in several):
                tools[name] = _reference(config, name)
    return tools


def _reference(config: Planned, name: str) -> Reference:
    """Find a reference tool on this machine. With ``tools_on: nodes``, each node looks for it later.

    If the result has no path, it has the reason. ``tools.NAME: false`` in the configuration leaves a tool out.
    """
    instrument = REGISTRY[name]
    choice = config.tools.get(name)
    names, where, program = instrument.executables, " on PATH", None
    if choice:
        program = str(choice)
        names, where = (program,), ""
    # With ``tools_on: nodes``, the path stays the name of the program, or its configured path.
    path: str | None = names[0]
    reason = None
    if choice is False:
        path, reason = None, f"left out by tools.{name}"
    elif config.tools_on != "nodes":
        path = instrument.on_path(program)
        if path is None:
            reason = f"{' or '.join(names)} not found{where}"
    return Reference(
        name, instrument.executables[0], path=path, reason=reason, package=instrument.package
    )


# -- jobs


def node_count(cell: Cell) -> int:
    """Return the number of nodes that the cell needs on a cluster."""
    return REGISTRY[cell.instrument].nodes(cell)


def two_nodes(cell: Cell) -> bool:
    """Return whether the cell needs a second node on a cluster."""
    return node_count(cell) > 1


def uses_shared_resource(cell: Cell, settings: SiteSlurm) -> bool:
    """Return whether the cell uses the network or a shared disk, so that it must run alone."""
    return resource_of(cell, settings) != "own"


def resource_of(cell: Cell, settings: SiteSlurm) -> str:
    """Return the resource that a cell uses.

    It is ``own`` (only the cell's node), ``disk`` (a disk that nodes share) or ``pair`` (the
    network between two or more nodes).
    """
    if two_nodes(cell):
        return "pair"
    if cell.subsystem == "disk" and (settings.scratch_shared or cell.is_together):
        return "disk"
    return "own"


def _together_key(cell: Cell) -> str:
    """Return the name of the job of a cell that is measured together with others.

    The job measures all pairs of a round, or all nodes of a group. The name contains the number of
    the round or the first node of the group.
    """
    group = cell.options.get("first")
    if cell.peer:
        group = f"round{cell.options['round']}"
    return f"{cell.instrument}.{cell.point}.{group}.{cell.repetition}.together"


def _grouped(cells: Sequence[Cell], config: Planned) -> dict[str, list[Cell]]:
    """Return name of a job -> its cells, in running order.

    Cells that are measured at one moment share a job. The other cells of a node have one job for
    each resource (``resource_of``). With ``fan_out: {batch: 20}``, each of these jobs is divided
    into jobs of at most 20 cells.
    """
    fan_out, settings = config.fan_out, config.site_facts.slurm
    jobs: dict[str, list[Cell]] = {}
    counts = Counter[str]()  # name of a job without its batch -> number of its cells so far
    for cell in cells:
        if cell.is_together:
            name = _together_key(cell)
        else:
            name = f"{cell.place}.{resource_of(cell, settings)}"
            # Cells of ranks on 2, 4, ... nodes are in different jobs. If Slurm chooses the nodes,
            # no option names them, and two nodes are in the job of the pairs.
            if node_count(cell) > 2 or "nodes" in cell.options:
                name += str(node_count(cell))
            if isinstance(fan_out, Batch):
                batch = counts[name] // fan_out.batch
                counts[name] += 1
                name = f"{name}.{batch}"
        jobs.setdefault(name, []).append(cell)
    return jobs


# -- the plan as text


def describe(plan: Plan, every_cell: bool = False) -> str:
    """Describe the cells, reference tools, disk space and expected time of a plan."""
    times, cluster = plan.durations, plan.cluster
    missing = plan.results.missing
    disk, memory = durations.largest(plan.cells)
    values = {
        "plan": plan,
        "times": times,
        "every_cell": every_cell,
        "missing": missing,
        "measured": len(plan.cells) - len(missing),
        "SUBSYSTEMS": SUBSYSTEMS,
        "points": _points,
        "systems": list(_systems(plan)),
        "disk": disk,
        "memory": memory,
    }
    if cluster is not None:
        node_seconds, wall = _times(plan, cluster)
        values |= {
            "nodes": node_names(cluster),
            "jobs": len(plan.jobs),
            "node_seconds": node_seconds,
            "wall": wall,
            "pairs": len({cell.place for cell in plan.cells if cell.peer}),
            "left_out": [f"{name} ({state})" for name, state in cluster.left_out.items()],
        }
    return data.rendered("plan.txt.j2", **values)


def _points(cells: Sequence[Cell]) -> Iterator[tuple[str, list[str]]]:
    """Yield (heading, texts) for each instrument and variant, for the text of the plan.

    The four texts are the workloads, the blocks, the concurrency and the number of repetitions of the cells.
    """
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in sorted(cells, key=attrgetter("id")):
        groups[cell.instrument, cell.variant].append(cell)
    for (instrument, variant), group in sorted(groups.items()):
        heading = instrument
        if variant:
            heading = f"{instrument} ({variant})"
        workloads = dict.fromkeys(cell.workload for cell in group)
        sizes = sorted({cell.block for cell in group if cell.block})
        blocks = list(map(format_size, sizes))
        if any(cell.automatic for cell in group):
            blocks.append("auto")
        # Sort numbers before words: False comes before True.
        concurrency = sorted({(bool(cell.word), cell.asked) for cell in group})
        counts = Counter((cell.workload, cell.block, cell.asked) for cell in group)
        columns = [
            " ".join(workloads),
            " ".join(blocks),
            "x" + " ".join(str(value) for _, value in concurrency),
            plural(max(counts.values()), "repetition"),
        ]
        yield heading, columns


def _systems(plan: Plan) -> Iterator[str]:
    """Yield a text for each number of nodes on which HPL solves a system: its size and the expected time.

    The size follows from the guessed rate of one node, see ``_guessed_rate``. The time follows from the measured
    rate once there is one.
    """
    hpcc = any(tool.instrument == "hpl" and hpl.is_hpcc(str(tool.path)) for tool in plan.references)
    cells = [cell for cell in plan.cells if cell.workload == HPL and cell.repetition == 0]
    for cell in sorted(cells, key=lambda cell: (nodes_of_ranks(cell.variant), cell.node)):
        guess, source = _guessed_rate(plan, cell.node)
        n = hpl.size_of_system(cell, guess, hpl.node_bytes(cell), hpcc)
        if n is None:  # the time or the memory is too short for a system
            continue
        rate = guess
        if measured := rate_of_one_node(plan.directory, cell):
            rate, source = measured, "measured"
        nodes = nodes_of_ranks(cell.variant)
        seconds = hpl.solution_seconds(n, rate * nodes)
        of_one = quantity(rate, "FLOP/s", 3)
        where = plural(nodes, "node")
        if "nodes" in cell.options:
            where += f" ({counted(str(cell.options['nodes']).split())})"
        yield f"HPL, {where}: N = {n} in about {duration(seconds)}, if one reaches {of_one} ({source})"


def _guessed_rate(plan: Plan, node: str) -> tuple[float, str]:
    """Return the op/s that HPL may reach on a node, and in words where this guess comes from.

    It follows from the clock and instruction sets of the node or, if no job has described the node yet, from an
    ordinary core.
    """
    if plan.cluster:
        cores, _ = plan.cluster.size_of(node)  # Slurm's CPUs, of which a core may have two
    else:
        cores = grids.threads_of("cores")
    cpu = plan.results.facts_for(node).get("cpu")
    if not cpu:
        return hpl.PLANNED_RATE * cores, "assumed"
    cores = min(cores, cpu.get("cores") or cores)
    return hpl.guess_rate(cpu, frozenset(cpu["isa"]), cores), "by its clock"


def _times(plan: Plan, cluster: Cluster) -> tuple[float, float]:
    """Return the seconds summed over all nodes, and the seconds from first start to last end.

    Jobs that share no resource run at the same time. The overhead of the jobs is spread evenly over
    all cells.
    """
    settings = plan.config.site_facts.slurm
    # With ``fan_out: node``, one node measures all cells for which Slurm chooses the node.
    usable = 1
    if plan.config.fan_out != "node":
        usable = max(1, cluster.count)
    overhead = CELL_S + JOB_S * len(plan.jobs) / max(1, len(plan.cells))
    node_seconds = 0.0
    # Each node measures its cells one after the other. Cells that use a shared resource also wait
    # for those of other nodes, so they are in a queue of their own too. The longest queue ends
    # last.
    queues: dict[str, float] = defaultdict(float)
    shared = [cell for cell in plan.cells if uses_shared_resource(cell, settings)]
    # Nodes or pairs that are measured together take the time of one.
    queues["one at a time"] = plan.durations.total(shared) + overhead * len(shared)
    for cell in plan.cells:
        seconds = plan.durations.expected(cell) + overhead
        node_seconds += seconds * node_count(cell)
        if cell.node == ANY:  # Slurm spreads such cells over the usable nodes
            seconds /= usable
        queues[cell.node] += seconds
    return node_seconds, max(queues.values(), default=0.0)


def node_names(cluster: Cluster) -> str:
    """Return the nodes of the campaign as a phrase, such as ``n1, n2 and 3 more``.

    If Slurm chooses the nodes, the phrase also has the size of a node, and the nodes that are not used.
    """
    chosen = cluster.chosen
    if chosen is None:
        return counted(cluster.nodes)
    size = f"{plural(chosen.cpus, 'CPU')} and {gigabytes(chosen.memory << 20)}"
    text = f"any of {counted(chosen.nodes)}, equal nodes of {size}"
    if chosen.stopped:
        states = [f"{name} ({state})" for name, state in chosen.stopped.items()]
        text += f"; not usable now: {counted(states)}"
    excluded = cluster.excluded(count=1)
    if excluded:
        text += f"; not used: {counted(excluded)}"
    return text
