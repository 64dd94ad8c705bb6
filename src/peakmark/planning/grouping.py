"""Which cells share a job: ``fan_out: cell``, ``node``, or ``{batch: 20}``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from peakmark.cell import Cell
from peakmark.instruments import REGISTRY
from peakmark.planning.cluster import ANY, settings_of


def two_nodes(cell: Cell) -> bool:
    """Whether the cell talks to a second node when there is one."""
    return REGISTRY[cell.instrument].two_nodes


def alone(cell: Cell, settings: Mapping[str, Any]) -> bool:
    """Whether the cell uses what lies beyond its node, so that no other such cell may run at the same time."""
    return two_nodes(cell) or (cell.subsystem == "disk" and bool(settings.get("scratch_shared")))


def part(cell: Cell, settings: Mapping[str, Any]) -> str:
    """What a job may hold beside the cell: ``own`` of its node, those on a shared ``disk``, those of a ``pair``."""
    if two_nodes(cell):
        return "pair"
    return "disk" if alone(cell, settings) else "own"


def together(cell: Cell) -> str:
    """What the cells share that belong on one node wherever Slurm runs them: a row's repetitions, of every program in it."""
    return f"{cell.subsystem}/{cell.point}/{cell.node}"


def jobs(cells: Iterable[Cell], config: Mapping[str, Any], adaptive: Iterable[str] = ()) -> dict[str, list[Cell]]:
    """Name of a job -> its cells in running order; empty with ``fan_out: cell``.

    adaptive  rows whose job decides itself how often it measures them: all their repetitions are in one, as they are where
              Slurm chooses the node
    """
    fan_out = config["fan_out"]
    if fan_out == "cell":
        return {}
    size = fan_out["batch"] if isinstance(fan_out, Mapping) else None
    settings, rows = settings_of(config), frozenset(adaptive)
    units: dict[str, list[Cell]] = {}
    for cell in cells:
        whole = together(cell) if cell.node == ANY else cell.row if cell.row in rows else cell.id
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
    return {name: sorted(group, key=lambda one: order[one.id]) for name, group in by_name.items()}
