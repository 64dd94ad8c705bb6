"""The bar: the number of ended jobs or cells, and the time left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from peakmark.formatting import duration
from peakmark.workflow import status

PLAIN_STEP = 0.1
"""Share of the jobs after which another line is printed if there is no terminal."""


class Bar:
    """The number of ended jobs or cells and the time left, as a bar on a terminal, otherwise in lines."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeElapsedColumn())
        name, left = TextColumn("{task.description}"), TextColumn("{task.fields[left]}")
        self.progress = RichProgress(
            name, *columns, left, console=console, transient=True, expand=True
        )
        self.start: float | None = None
        self.outputs: dict[int, str] = {}
        self.printed = 0.0
        status.progress.listener = self.moved

    def started(self, values: Mapping[str, Any]) -> None:
        """Show a job that was handed over."""
        if self.start is None:
            self.start = time.monotonic()
            self.task = self.progress.add_task("", total=None, left="")
            if self.console.is_terminal:
                self.progress.start()
        self.outputs[values["jobid"]] = str((values.get("output") or [""])[0])
        self.progress.update(self.task, description=job_name(values))

    def finished(self, jobid: int) -> None:
        """Count an ended job."""
        status.progress.finish(self.outputs.pop(jobid, ""))

    def counted(self, done: int, total: int) -> None:
        """Show how many of all jobs have ended."""
        if self.start is None:
            return
        if not status.progress.counts_cells:
            self._show(done, total, "jobs", "done")
        elif done == total:
            self._print(f"{done} of {total} jobs", "done")
        if done == total:
            self.stop()  # the last messages must not share the line with the bar

    def moved(self) -> None:
        """Show how many of all cells have ended, for jobs that measure several cells."""
        if self.start is not None:
            self._show(*status.progress.cells(), "cells", "")

    def _show(self, done: int, total: int, unit: str, end: str) -> None:
        """Show the counts and the time left, on the bar and in a line after each ``PLAIN_STEP``."""
        seconds = status.progress.seconds_left(self.start or 0.0)
        left = ""
        if seconds is not None:
            left = f"{duration(seconds)} left"
        with status.progress.lock:
            self.progress.update(self.task, completed=done, total=total, left=left)
            share = done / max(total, 1)
            if share >= self.printed + PLAIN_STEP or done == total:
                self.printed = share
                if done < total:
                    end = left
                self._print(f"{done} of {total} {unit}", end)

    def _print(self, count: str, rest: str) -> None:
        """Print a line if there is no terminal."""
        if not self.console.is_terminal:
            elapsed = time.monotonic() - (self.start or 0.0)
            self.console.print(", ".join(filter(None, (count, f"{elapsed:.0f} s", rest))))

    def stop(self) -> None:
        if self.progress.live.is_started:  # without a started bar, rich would print an empty line
            self.progress.stop()


def job_name(values: Mapping[str, Any]) -> str:
    """Return the name of a job: its cell, its node, or its rule."""
    output = str((values.get("output") or [""])[0])
    if values.get("rule_name") == "measure" and "/nodes/" in output:
        return f"job {output.split('/nodes/')[-1]}"
    if values.get("rule_name") == "measure":
        return output.split("/cells/")[-1].removesuffix(".json")
    return str(values.get("rule_name", ""))
