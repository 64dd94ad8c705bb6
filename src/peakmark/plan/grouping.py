"""Which cells share a job: ``fan_out: cell``, ``node``, or ``{batch: 20}``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from peakmark.cell import Cell
from peakmark.plan.cluster import ANY, settings_of
from peakmark.tools import REGISTRY, references
from peakmark.tools.base import Coverage


def two_nodes(cell: Cell) -> bool:
    """Whether the cell talks to a second node when there is one."""
    return REGISTRY[cell.instrument].two_nodes


def alone(cell: Cell, settings: Mapping[str, Any]) -> bool:
    """Whether the cell uses what lies beyond its node, so that no other such cell may run at the
    same time.
    """
    return two_nodes(cell) or (cell.subsystem == "disk" and bool(settings.get("scratch_shared")))


def part(cell: Cell, settings: Mapping[str, Any]) -> str:
    """What a job may hold beside the cell: ``own`` of its node, those on a shared ``disk``, those
    of a ``pair``.
    """
    if two_nodes(cell):
        return "pair"
    return "disk" if alone(cell, settings) else "own"


def wide(cells: Iterable[Cell]) -> frozenset[str]:
    """The programs among the cells' of which one execution fills several rows."""
    return frozenset(
        cell.instrument
        for cell in cells
        if any(row.cell == cell.workload for row in REGISTRY[cell.instrument].rows)
    )


def together(cell: Cell, wide: frozenset[str] = frozenset()) -> str:
    """What the cells share that belong on one node wherever Slurm runs them: a row's repetitions,
    of every program in it.

    wide  the programs that fill several rows at once: these rows belong together then
    """
    filled = [
        row
        for name in wide
        for row in REGISTRY[name].rows
        if row.cell is not None and _fills(row, cell)
    ]
    if not filled:
        return f"{cell.subsystem}/{cell.point}/{cell.node}"
    rows = ",".join(filled[0].workloads)
    block = str(cell.block) if all(row.per_block for row in filled) else ""
    concurrency = str(cell.asked) if all(row.per_concurrency for row in filled) else ""
    return f"{cell.subsystem}/{rows}-{cell.variant}_{block}_x{concurrency}/{cell.node}"


def _fills(row: Coverage, cell: Cell) -> bool:
    """Whether the cell is of rows that such an execution fills, or fills them itself."""
    if row.subsystem != cell.subsystem or cell.variant not in row.variants:
        return False
    # All that fill the same rows: what one of them holds together, they all do.
    every = [
        other for tool in references().values() for other in tool.rows if other.cell is not None
    ]
    alike = [
        other.cell
        for other in every
        if (other.subsystem, other.workloads) == (row.subsystem, row.workloads)
    ]
    return cell.workload in (*row.workloads, *alike)


def jobs(
    cells: Iterable[Cell], config: Mapping[str, Any], adaptive: Iterable[str] = ()
) -> dict[str, list[Cell]]:
    """Name of a job -> its cells in running order; empty with ``fan_out: cell``.

    adaptive  rows whose job decides itself how often it measures them: all their repetitions are in
              one, as they are where Slurm chooses the node
    """
    if config["fan_out"] == "cell":
        return {}
    size = config["fan_out"]["batch"] if isinstance(config["fan_out"], Mapping) else None
    cells = tuple(cells)
    settings, rows, filling = settings_of(config), frozenset(adaptive), wide(cells)
    units: dict[str, list[Cell]] = {}
    for cell in cells:
        whole = (
            together(cell, filling)
            if cell.node == ANY
            else cell.row
            if cell.row in rows
            else cell.id
        )
        units.setdefault(whole, []).append(cell)
    by_name: dict[str, list[Cell]] = {}
    numbers: dict[str, int] = {}
    for unit in units.values():
        name = f"{unit[0].node}.{part(unit[0], settings)}"
        if size is not None:
            number = numbers.setdefault(name, 0)
            there = len(by_name.get(f"{name}.{number}", ()))
            if there and there + len(unit) > size:
                numbers[name] = number = number + 1
            name = f"{name}.{number}"
        by_name.setdefault(name, []).extend(unit)
    order = {cell.id: place for place, cell in enumerate(cells)}
    return {name: sorted(group, key=lambda cell: order[cell.id]) for name, group in by_name.items()}
