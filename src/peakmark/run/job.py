"""Measure the cells of a job, one after the other. With ``fan_out: cell`` a job has one cell."""

from __future__ import annotations

import json
import os
from pathlib import Path

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import MeasurementError, PeakmarkError, tell
from peakmark.run.measure import Request, measure
from peakmark.storage import records
from peakmark.storage.planfile import Part
from peakmark.storage.record_types import PlanFile
from peakmark.tools import REGISTRY

NODES = "nodes"
"""Folder of a campaign that holds the outputs of jobs with several cells."""


def output_path(directory: Path, name: str) -> Path:
    """Return the path of the file that a job writes after it has measured all its cells."""
    return directory / NODES / name


def current_path(directory: Path, name: str) -> Path:
    """Return the path of the file that names the cell a job is measuring.

    If Slurm ends the job, the file shows which cell was interrupted.
    """
    return directory / NODES / f"{name}.now"


def request(part: Part, cell: Cell, kernels: Path) -> Request:
    """Return the request to measure a cell of a plan."""
    config = part.plan.config
    tool = config.tools.get(cell.instrument)
    repeats = config.repeat_disturbed
    if cell.is_together:
        repeats = 0  # a node or pair that is measured again would be alone
    return Request(
        cell,
        _record_path(part, cell),
        part.directory,
        kernels,
        tool=str(tool) if tool else None,
        pair=part.plan.cluster is not None and REGISTRY[cell.instrument].two_nodes,
        modules=tuple(config.modules.get(cell.instrument, ())),
        node_bytes=_node_bytes(part.plan),
        repeats=repeats,
    )


def _record_path(part: Part, cell: Cell) -> Path:
    return part.directory / "cells" / f"{cell.id}.json"


def _node_bytes(plan: PlanFile) -> int | None:
    """Return the memory of this node that Slurm reported when the campaign was planned, if known."""
    node = os.environ.get("SLURMD_NODENAME")
    if plan.cluster is None:
        return None
    for kind in plan.cluster["kinds"]:
        if node in kind["nodes"]:
            return int(kind["memory"]) << 20
    return None


def run(part: Part, name: str, kernels: Path) -> None:
    """Measure every cell of a job that is not measured yet, in the plan's order.

    Write the job's output file if no cell failed.

    Raises:
        MeasurementError: some cells failed. All other cells have been measured.
    """
    done = output_path(part.directory, name)
    done.unlink(missing_ok=True)
    current = current_path(part.directory, name)
    if part.cells[0].is_together:
        _measure_together(part, name, kernels)
        return
    tried: list[Cell] = []
    failed: list[Cell] = []
    # Continue with the next cell after a failure.
    for cell in part.cells:
        if _is_measured(part, cell, kernels):
            continue
        tried.append(cell)
        _write_current(current, cell)
        records.set_aside(
            part.directory, cell
        )  # the record may have been damaged since the run began
        try:
            measure(request(part, cell, kernels))
        except PeakmarkError as error:
            failed.append(cell)
            tell(str(error))
    current.unlink(missing_ok=True)
    _finish(part, name, len(tried), failed)


def _is_measured(part: Part, cell: Cell, kernels: Path) -> bool:
    """Return whether a valid record has the cell's values, by the program that the plan names now."""
    finding = records.look(_record_path(part, cell), cell)
    if finding.state != records.GOOD or finding.data is None or finding.data["status"] != "ok":
        return False
    wanted = request(part, cell, kernels).tool
    if wanted is None:
        return True
    try:
        path = REGISTRY[cell.instrument].locate(kernels, wanted)
    except PeakmarkError:
        return False
    return path == str(finding.data["context"]["tool"]["path"])


def _measure_together(part: Part, name: str, kernels: Path) -> None:
    """Measure all cells of a job at one moment, also those with a record. Errors as for ``run``."""
    from peakmark.run import together  # late: few jobs need it

    for cell in part.cells:
        records.set_aside(part.directory, cell)
    failed = together.measure(part.directory / "plan.json", part.cells, kernels)
    _finish(part, name, len(part.cells), failed)


def _finish(part: Part, name: str, tried: int, failed: list[Cell]) -> None:
    """Write the output file of a job. It exists only if no cell failed."""
    if failed:
        raise MeasurementError(
            f"{len(failed)} of {tried} cells of {name} failed: {failed[0].id}, ..."
        )
    done = output_path(part.directory, name)
    text = json.dumps({"cells": [cell.id for cell in part.cells]}, indent=1)
    files.write_text(done, text + "\n")


def _write_current(path: Path, cell: Cell) -> None:
    """Write the id of the cell that is being measured, for ``peakmark status`` and after a lost job.

    The file is replaced atomically, without fsync: after a loss of power it is not needed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(cell.id + "\n", encoding="utf-8")
    temporary.replace(path)
