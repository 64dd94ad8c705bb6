"""What a job of the plan measures: one cell, or in ``fan_out: node`` and ``batch`` several, one
after the other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark import files, output
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError
from peakmark.reasons import MeasurementError
from peakmark.run.measure import Request, measure
from peakmark.storage import integrity
from peakmark.storage.planfile import Part
from peakmark.tools import REGISTRY

NODES = "nodes"
"""Folder of a campaign: what jobs of several cells say of themselves."""


def output_path(directory: Path, name: str) -> Path:
    """File that says that nothing of the job is missing any more."""
    return directory / NODES / name


def present_path(directory: Path, name: str) -> Path:
    """File that names the cell a job is just measuring, so that one ended by Slurm can be told."""
    return directory / NODES / f"{name}.now"


def request(part: Part, cell: Cell, kernels: Path) -> Request:
    """What to measure for a cell of a plan: the plan holds tools and modules, and whether there is
    a second node.
    """
    config: Mapping[str, Any] = part.plan["config"]
    tool = config.get("tools", {}).get(cell.instrument)
    return Request(
        cell,
        part.directory / "cells" / f"{cell.id}.json",
        part.directory,
        kernels,
        tool=str(tool) if tool else None,
        pair=bool(part.plan.get("cluster")) and REGISTRY[cell.instrument].two_nodes,
        modules=tuple(config.get("modules", {}).get(cell.instrument, ())),
        node_bytes=_node_bytes(part.plan),
    )


def _node_bytes(plan: Mapping[str, Any]) -> int | None:
    """Memory of this node as Slurm had it when the campaign was planned."""
    node = os.environ.get("SLURMD_NODENAME")
    kinds = (plan.get("cluster") or {}).get("kinds", ())
    return next((int(kind["memory"]) << 20 for kind in kinds if node in kind["nodes"]), None)


def run(part: Part, name: str, kernels: Path) -> None:
    """Measure every cell of a job that is needed and has no valid record, in the plan's order; then
    say that all is there.

    Which repetitions are needed is decided after each round, as between Snakemake's jobs.
    Errors: MeasurementError when cells failed; all others have been measured nevertheless.
    """
    output = output_path(part.directory, name)
    output.unlink(missing_ok=True)
    tried: list[Cell] = []
    failed: list[Cell] = []

    def go_on(cells: Iterable[Cell]) -> None:
        waiting = [
            cell
            for cell in cells
            if not _measured(part.directory / "cells" / f"{cell.id}.json", cell)
        ]
        tried.extend(waiting)
        failed.extend(_measure(part, waiting, present_path(part.directory, name), kernels))

    rows = {cell.row for cell in part.cells}
    criteria = {row: entry for row, entry in part.plan.get("adaptive", {}).items() if row in rows}
    if criteria:
        _in_rounds(part, name, criteria, go_on)
    else:
        go_on(part.cells)
    if failed:
        raise MeasurementError(
            f"{len(failed)} of {len(tried)} cells of {name} failed: {failed[0].id}, ..."
        )
    files.write_text(
        output, json.dumps({"cells": [cell.id for cell in part.cells]}, indent=1) + "\n"
    )


def _in_rounds(
    part: Part,
    name: str,
    entries: Mapping[str, Mapping[str, Any]],
    go_on: Callable[[Iterable[Cell]], None],
) -> None:
    from peakmark.config.types import Criterion
    from peakmark.plan import adaptive  # brings numpy: only where repetitions are decided
    from peakmark.storage import decisions

    criteria = {row: Criterion(**entry) for row, entry in entries.items()}
    decided: decisions.Decisions = {}
    for number in range(max(1, adaptive.rounds(criteria))):
        go_on(adaptive.asked(part.cells, criteria, decided, number))
        stored = adaptive.read_records(part.directory, part.cells, criteria)
        decided = adaptive.decide(part.cells, criteria, decided, number, stored)
    decisions.write(part.directory / decisions.FOLDER / f"{name}.json", decided)


def _measure(part: Part, cells: Sequence[Cell], now: Path, kernels: Path) -> list[Cell]:
    """Measure one after the other; ``now`` names the present one. Returns those that failed."""
    failed = []
    for cell in cells:
        _say(now, cell)
        integrity.set_aside(part.directory, cell)  # one that was damaged since this run began
        try:
            measure(request(part, cell, kernels))
        except PeakmarkError as error:
            failed.append(cell)
            output.tell(str(error))
    now.unlink(missing_ok=True)
    return failed


def _say(now: Path, cell: Cell) -> None:
    """In one step, but without waiting for the disk: after a loss of power nobody asks."""
    now.parent.mkdir(parents=True, exist_ok=True)
    new = now.with_name(f".{now.name}.{os.getpid()}.tmp")
    new.write_text(cell.id + "\n", encoding="utf-8")
    new.replace(now)


def _measured(path: Path, cell: Cell) -> bool:
    """Whether there is a record of exactly this cell; one that is damaged or has other options does
    not count.
    """
    return integrity.look(path, cell).state == integrity.GOOD
