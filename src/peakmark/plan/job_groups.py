"""Group cells into jobs, and find the cells that use more than one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from peakmark.cell import Cell
from peakmark.config.types import Batch, Planned
from peakmark.plan.cluster import Settings, settings_of
from peakmark.tools import REGISTRY


def two_nodes(cell: Cell) -> bool:
    """Return whether the cell needs a second node on a cluster."""
    return REGISTRY[cell.instrument].two_nodes


def uses_shared_resource(cell: Cell, settings: Settings) -> bool:
    """Return whether the cell uses the network or a shared disk, so that it must run alone."""
    return resource_of(cell, settings) != "own"


def resource_of(cell: Cell, settings: Settings) -> str:
    """Return which resource a cell uses: ``own`` (only its node), a shared ``disk``, a ``pair`` of nodes."""
    if two_nodes(cell):
        return "pair"
    if cell.subsystem == "disk" and (settings.get("scratch_shared") or cell.is_together):
        return "disk"
    return "own"


def _together_key(cell: Cell) -> str:
    """Return the name of the job of a cell that is measured together with others."""
    of_what = cell.options.get("first")
    if cell.peer:
        of_what = f"round{cell.options['round']}"
    return f"{cell.instrument}.{cell.point}.{of_what}.{cell.repetition}.together"


def group(cells: Sequence[Cell], config: Planned) -> dict[str, list[Cell]]:
    """Return the cells of each job, by its name, in running order.

    The nodes, or the pairs of a round, that are measured together are one job. Other cells of a node are
    one job, or with ``fan_out: {batch: 20}`` jobs of 20 cells.
    """
    fan_out, settings = config.fan_out, settings_of(config)
    jobs: dict[str, list[Cell]] = {}
    places = Counter[str]()
    for cell in cells:
        if cell.is_together:
            name = _together_key(cell)
        else:
            name = f"{cell.place}.{resource_of(cell, settings)}"
            if isinstance(fan_out, Batch):
                batch = places[name] // fan_out.batch
                places[name] += 1
                name = f"{name}.{batch}"
        jobs.setdefault(name, []).append(cell)
    return jobs
