"""The bar: the number of ended jobs, and the time left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from peakmark.formatting import duration
from peakmark.workflow import status

PLAIN_STEP = 0.1
"""Share of the jobs after which another line is printed if there is no terminal."""


class Bar:
    """The number of ended jobs and the time left, as a bar on a terminal, otherwise in lines."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeElapsedColumn())
        name, left = TextColumn("{task.description}"), TextColumn("{task.fields[left]}")
        self.progress = Progress(name, *columns, left, console=console, transient=True, expand=True)
        self.start: float | None = None
        self.outputs: dict[int, str] = {}
        self.printed = 0.0

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
        """Drop an ended job from the time left."""
        status.progress.finish(self.outputs.pop(jobid, ""))

    def counted(self, done: int, total: int) -> None:
        """Show how many of all jobs have ended, on the bar or in a line after each ``PLAIN_STEP``."""
        if self.start is None:
            return
        seconds = status.progress.seconds_left(self.start)
        left = ""
        if done == total:
            left = "done"
        elif seconds is not None:
            left = f"{duration(seconds)} left"
        self.progress.update(self.task, completed=done, total=total, left=left)
        is_due = done == total or done / total >= self.printed + PLAIN_STEP
        if is_due and not self.console.is_terminal:
            self.printed = done / total
            elapsed = time.monotonic() - self.start
            parts = (f"{done} of {total} jobs", f"{elapsed:.0f} s", left)
            self.console.print(", ".join(filter(None, parts)))
        if done == total:
            self.stop()  # the last messages must not share the line with the bar

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
