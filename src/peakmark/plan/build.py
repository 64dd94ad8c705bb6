"""Make the plan of a campaign from its configuration."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

import msgspec

from peakmark.cell import Cell
from peakmark.config import campaign as configuration
from peakmark.config import layouts, site, texts
from peakmark.config.types import Planned
from peakmark.errors import ConfigError
from peakmark.machine import gpu
from peakmark.plan import durations, grids
from peakmark.plan.cluster import (
    Cluster,
    Settings,
    gres_of,
    groups_together,
    local_nodes,
    pair_rounds,
)
from peakmark.plan.job_groups import two_nodes
from peakmark.plan.plan import Plan, Reference
from peakmark.tools import REGISTRY


def complete(config: Settings, on_cluster: bool = False) -> Planned:
    """Return the configuration with defaults and the site's facts filled in. Errors: ConfigError.

    Args:
        config: configuration as the user wrote it.
        on_cluster: whether the nodes look for reference tools, unless ``tools_on`` sets another place.
    """
    if on_cluster:
        config = {"tools_on": "nodes", **config}
    campaign = configuration.complete(config)
    facts = None
    if campaign.site is not None:
        facts = site.load(campaign.site)
    if campaign.report.tables is not None:
        layouts.load(campaign.report.tables)
    texts.check(campaign.report.text)
    return Planned(**msgspec.structs.asdict(campaign), site_facts=facts)


def make(config: Settings, cluster: Cluster | None = None) -> Plan:
    """Return the plan of a configuration. Errors: ConfigError before anything runs."""
    return make_completed(complete(config, cluster is not None), cluster)


def make_completed(completed: Planned, cluster: Cluster | None = None) -> Plan:
    """Return the plan of a completed configuration. Errors: ConfigError before anything runs."""
    nodes = cluster.nodes if cluster else local_nodes(completed.nodes)
    rounds = pair_rounds(completed, nodes)
    groups = groups_together(completed, cluster)
    grids.check_number(completed, len(nodes), rounds, groups)
    # Collect the cells, except cells of reference tools that were not found.
    left_out = _left_out(completed, cluster)
    tools = _named_references(completed, left_out)
    cells: dict[str, Cell] = {}
    planned = []
    for node in nodes:
        has_gpus = not left_out and (cluster is None or cluster.gpus_of(node) > 0)
        planned.append(grids.cells(completed, node, cluster is None, has_gpus))
    planned.append(grids.group_cells(completed, groups))
    planned.append(grids.pair_cells(completed, rounds))
    for cell in chain(*planned):
        name = cell.instrument
        if REGISTRY[name].reference and tools[name].path is None:
            continue
        _add(cells, cell)
    if left_out and not cells:
        raise ConfigError(f"there is nothing to measure: {left_out['gpu']}")
    # Order the cells, and choose the class of nodes.
    ordered = grids.interleaved(cells.values(), completed.seed)
    if cluster is not None:
        # Two-node cells come last, because a job that waits for a second free node keeps one idle.
        ordered.sort(key=_order)
        single = [cell for cell in ordered if not two_nodes(cell)]
        cpus, memory = durations.needs(single, completed)
        gpus = max((cell.concurrency for cell in single if cell.subsystem == "gpu"), default=0)
        cluster = cluster.choose(cpus, memory, len(single) < len(ordered), gpus)
    return Plan(
        config=completed,
        cells=tuple(ordered),
        references=tuple(tools[name] for name in sorted(tools)),
        cluster=cluster,
        impossible=grids.impossible(ordered),
        left_out=left_out,
    )


def _left_out(config: Planned, cluster: Cluster | None) -> dict[str, str]:
    """Return ``gpu`` -> why the grids of GPUs plan no cells; an empty dict if they plan cells."""
    if not config.gpu:
        return {}
    reason = ""
    if cluster is None:
        count, reason = gpu.survey()
    elif gres_of(config) is None:
        count, reason = 0, "the site file has no gpus: {gres: gpu}"
    else:
        count = max(map(cluster.gpus_of, cluster.nodes))
        reason = f"no node of partition {cluster.partition} has a GPU in Slurm"
    if count:
        return {}
    return {"gpu": f"no GPU is measured: {reason}"}


def _order(cell: Cell) -> int:
    """Return the sort key of a cell: single-node cells, two-node cells, named pairs, nodes together."""
    if cell.is_together:
        return 3
    if cell.peer:
        return 2
    return int(two_nodes(cell))


def _add(cells: dict[str, Cell], cell: Cell) -> None:
    """Add a cell. Errors: ConfigError if another grid has the same cell with other options."""
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
    """Find a reference tool on this machine. With ``tools_on: nodes``, each node looks for it later."""
    instrument = REGISTRY[name]
    choice = config.tools.get(name)
    names, where, program = instrument.executables, " on PATH", None
    if choice:
        program = str(choice)
        names, where = (program,), ""
    path: str | None = names[0]
    reason = None
    if choice is False:
        path, reason = None, f"left out by tools.{name}"
    elif config.tools_on != "nodes":
        path = instrument.on_path(program)
        if path is None:
            reason = f"{' or '.join(names)} not found{where}"
    return Reference(name, instrument.executables[0], path, reason, instrument.package)
