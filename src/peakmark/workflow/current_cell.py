"""Which cell a job of several cells is at, as it writes that beside its output."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from peakmark import files
from peakmark.cell import Cell
from peakmark.plan.plan import Plan
from peakmark.run import job
from peakmark.workflow import progress
from peakmark.workflow.task import Task


def tell(plan: Plan, running: Iterable[Task]) -> None:
    """How far jobs of several cells are: each names the one that it measures."""
    for task in running:
        path = path_of(plan, task.cells[0]) if len(task.cells) > 1 else None
        cell = read(path) if path is not None else None
        if cell is not None:
            progress.reached(str(task.output), cell)


def forget(plan: Plan, task: Task) -> None:
    """A job that was killed could not say itself that it measures no cell any more."""
    path = path_of(plan, task.cells[0])
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def read(path: Path) -> str | None:
    """The cell that a job names there; None where nothing can be read, as its job may end just now."""
    try:
        return files.read_text(path).strip()
    except (OSError, UnicodeDecodeError):
        return None


def path_of(plan: Plan, cell: Cell) -> Path | None:
    """Where the job of this cell names the one that it measures; None of a job of one cell."""
    name = plan.job_of(cell)
    return None if name is None else job.present_path(plan.directory, name)
