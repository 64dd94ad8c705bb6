"""Which cell a job of several cells is at, as it writes that beside its output."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from peakmark import files
from peakmark.measuring import job
from peakmark.planning.plan import Plan
from peakmark.running import progress
from peakmark.running.task import Task


def tell(plan: Plan, running: Iterable[Task]) -> None:
    """How far jobs of several cells are: each names the one that it measures."""
    for task in running:
        path = _path(plan, task) if len(task.cells) > 1 else None
        if path is not None:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                progress.reached(str(task.output), files.read_text(path).strip())


def forget(plan: Plan, task: Task) -> None:
    """A job that was killed could not say itself that it measures no cell any more."""
    path = _path(plan, task)
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _path(plan: Plan, task: Task) -> Path | None:
    name = plan.job_of(task.cells[0])
    return None if name is None else job.present_path(plan.directory, name)
