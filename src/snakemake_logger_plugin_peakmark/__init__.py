"""Snakemake logger ``peakmark``: one bar with the time that is left, one line per failure, nothing
else.

The time left comes from the expected time of the cells, corrected by what cells of their kind have
taken since the first job began to measure (see ``progress.TimeLeft``): a bar by the number of jobs
would jump, as a reference tool can take fifty times as long as a kernel, and what a job waited in a
queue says nothing about those that run side by side.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from logging import ERROR, INFO, WARNING, LogRecord
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from peakmark import interrupts, resources
from peakmark.config import overrides
from peakmark.formatting import duration
from peakmark.workflow import preflight, progress
from peakmark.workflow.user_errors import UserError, as_workflow_error

STATE = Path(".snakemake")
PLAIN_STEP = 0.1
"""Without a terminal a line is printed each time this share of the expected time has passed."""

ANSWERS = (
    "Report created",
    "Unlocked",
    "Congratulations",
    "Will exit after finishing",
    "Would delete",
    "Deleting",
)
"""How messages begin that answer what somebody asked of Snakemake."""

SAID_ANYHOW = ("Look above for error messages", "At least one job did not complete successfully.")


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """No settings: made before Snakemake reads its configuration files, of which a broken one is a
    traceback there, and before it writes anything.
    """

    def __post_init__(self) -> None:
        as_workflow_error(lambda: _begin(sys.argv[1:]))


def _begin(arguments: Sequence[str]) -> None:
    overrides.check_command_line(arguments)
    workplace = Path((overrides.named(arguments, ("--directory", "-d")) or ["."])[-1])
    preflight.check_folder(workplace / STATE)
    _keep_caches(workplace)
    # What Snakemake's own log has no room for is said by the campaign's, once, not in forty lines
    # for each message.
    logging.raiseExceptions = False


def _keep_caches(workplace: Path) -> None:
    """Keep the caches of Snakemake and Matplotlib out of the home directory, which some users lack."""
    cache = (workplace / STATE / "cache").absolute()
    os.environ["XDG_CACHE_HOME"] = str(cache)
    resources.keep_matplotlib(cache)


class LogHandler(LogHandlerBase):
    """Handler that Snakemake loads for ``--logger peakmark``; its default formatter is used for a
    dry run.
    """

    def __post_init__(self) -> None:
        self.console = Console(stderr=not self.common_settings.stdout, highlight=False)
        self.bar = _Bar(self.console)
        self.disk_was_full = False
        self.said: set[str] = set()

    def emit(self, record: LogRecord) -> None:
        """Show one record. Never raises: a broken line must not end a campaign."""
        try:
            event = getattr(record, "event", None)
            if self.common_settings.dryrun and record.levelno < ERROR:
                if event != LogEvent.SHELLCMD or self.common_settings.printshellcmds:
                    self._say(self.format(record))
            else:
                self._show(event, record)
        except Exception:
            self.handleError(record)

    def _show(self, event: str | None, record: LogRecord) -> None:
        if event == LogEvent.JOB_INFO:
            self.bar.started(record.__dict__)
        elif event == LogEvent.JOB_FINISHED:
            self.bar.finished(record.__dict__["job_id"])
        elif event == LogEvent.PROGRESS:
            self.bar.counted(record.__dict__["done"], record.__dict__["total"])
        elif event == LogEvent.JOB_ERROR:
            # Its time is spent and not ahead any more; where all cells of a node are one job, that
            # is most of the campaign.
            self.bar.finished(record.__dict__.get("jobid", -1))
            self._failure(record.__dict__)
        elif event == LogEvent.SHELLCMD:
            if self.common_settings.printshellcmds:
                self._say(self.format(record))
        elif event == LogEvent.ERROR and getattr(record, "exception", "") == "RuleException":
            pass  # repeats, with the whole command, what the failure line and the log have said
        elif event is None and record.getMessage().startswith("Nothing to be done"):
            self._say(
                "nothing to do: every cell is measured and the report is newer than all of them"
            )
            self._summary()
        elif event == LogEvent.ERROR or (event is None and record.levelno >= WARNING):
            self._trouble(self.format(record).strip("\n"))
        elif event is None and record.levelno >= INFO:
            text = self.format(record)
            if self.common_settings.verbose or (text.startswith(ANSWERS) and text not in self.said):
                self._say(text)
                self.said.add(text)

    def _say(self, text: str, to: Console | None = None) -> None:
        (to or self.console).print(text, markup=False, soft_wrap=True)

    def _trouble(self, text: str) -> None:
        """What is wrong, unless the failures and the list at the end say it."""
        self.bar.stop()
        of_full_disk = "[Errno 28]" in text or "metadata record" in text
        if text.endswith(SAID_ANYHOW) or (of_full_disk and self._full_disk("")):
            return
        # A dry run prints its plan on standard output, where nobody looks for what is wrong.
        self._say(
            text, Console(stderr=True, highlight=False) if self.common_settings.stdout else None
        )

    def _summary(self) -> None:
        """What a run that had something to do says when it ends."""
        from peakmark.workflow.run import Run

        if Run.current is not None:
            try:
                as_workflow_error(Run.current.print_summary)
            except UserError as mistake:
                self._say(str(mistake))

    def _failure(self, values: dict[str, Any]) -> None:
        name = _name(values)
        text = ""
        for log in values.get("log") or []:
            path = Path(str(log))
            if (
                path.is_file() and not text
            ):  # the rule's own log comes first; the executor's says much about little
                with contextlib.suppress(OSError):
                    text = path.read_text(encoding="utf-8", errors="replace").strip()[-2000:]
        if self._full_disk(text):
            return
        # Where Python was still loading what would have said so, its log is empty or a traceback.
        by_ctrl_c = interrupts.pressed and text in ("", "peakmark: interrupted")
        if by_ctrl_c or "KeyboardInterrupt" in text:
            self._say(f"interrupted {name}")
            return
        # The executor's words: what Slurm calls the end of the job, or why sbatch refused it.
        message = str(values.get("rule_msg") or "")
        self.console.print(
            f"[red]failed[/red] {name}{': ' + escape(message) if message else ''}", soft_wrap=True
        )
        if text:
            self._say(text)

    def _full_disk(self, text: str) -> bool:
        """Whether the disk of the results is full, which is said once: no log has room for a reason
        then, and every cell that follows fails for the same one.
        """
        from peakmark import files

        full = None if text else files.full(Path("results")) or files.full(STATE)
        if full is None and "was not measured: No space left" in text:
            full = text
        if full is None:
            return False
        if not self.disk_was_full:
            self._say(full)
        self.disk_was_full = True
        return True

    def close(self) -> None:
        """End the bar, so that the terminal is left as it was."""
        self.bar.stop()
        super().close()

    @property
    def writes_to_stream(self) -> bool:
        return True

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        return True

    @property
    def has_formatter(self) -> bool:
        return False

    @property
    def needs_rulegraph(self) -> bool:
        return False


def _alone(method: Callable[..., None]) -> Callable[..., None]:
    """A method of the bar's that no other thread disturbs."""

    @functools.wraps(method)
    def held(bar: _Bar, *given: Any) -> None:
        with bar.turn:
            method(bar, *given)

    return held


class _Bar:
    """Progress in expected seconds; on a terminal a bar, elsewhere a line now and then.

    Snakemake tells of jobs in the thread of its log, and the executor how far they are in its own.
    """

    def __init__(self, console: Console) -> None:
        self.turn = threading.RLock()
        self.console = console
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            expand=True,
        )
        self.task: TaskID | None = None
        self.start = 0.0
        self.outputs: dict[int, str] = {}
        self.time_left: progress.TimeLeft | None = None
        self.printed = 0.0
        progress.listener = self.moved

    @_alone
    def started(self, values: dict[str, Any]) -> None:
        if self.task is None:
            self.start = time.monotonic()
            self.task = self.progress.add_task("", total=None, left="")
            if self.console.is_terminal:
                self.progress.start()
        self.outputs[values["jobid"]] = str((values.get("output") or [""])[0])
        self.progress.update(self.task, description=_name(values))

    @_alone
    def finished(self, jobid: int) -> None:
        output = self.outputs.get(jobid, "")
        progress.over(output)
        self._passed(output, progress.passed(output) or [progress.cell_of(output)])
        self.outputs.pop(jobid, None)

    @_alone
    def counted(self, done: int, total: int) -> None:
        if self.task is None:
            return
        if not progress.steps:
            self._show(done, total, "jobs")
        elif done == total:
            self._tell(f"{done} of {total} jobs", "done")
        if done == total:
            self.stop()  # what is printed at the end must not share the line with the bar

    @_alone
    def moved(self) -> None:
        """Jobs of several cells have come further: that is told in cells, as one of them may be all
        that there is.
        """
        if self.task is not None:
            self._show(*progress.cells(), "cells")

    def _show(self, done: int, total: int, what: str) -> None:
        left = self._left()
        self.progress.update(self.task, completed=done, total=total, left=_time_left(left))  # type: ignore[arg-type] # asked
        share = done / max(total, 1)
        if share >= self.printed + PLAIN_STEP or done == total:
            self.printed = share
            rest = _time_left(left) if done < total else {"jobs": "done"}.get(what, "")
            self._tell(f"{done} of {total} {what}", rest)

    def _tell(self, done: str, rest: str) -> None:
        """A line where there is no terminal."""
        if not self.console.is_terminal:
            elapsed = time.monotonic() - self.start
            self.console.print(", ".join(filter(None, (done, f"{elapsed:.0f} s", rest))))

    def _left(self) -> float | None:
        """Seconds left of the cells still to come."""
        for output in self.outputs.values():
            self._passed(output, progress.passed(output))
        elapsed = time.monotonic() - (progress.started or self.start)
        return self.time_left.seconds(elapsed) if self.time_left is not None else None

    def _passed(self, output: str, cells: Sequence[str]) -> None:
        """Count these cells of the job as behind."""
        if self.time_left is None:
            self.time_left = progress.TimeLeft(progress.expected())
        for cell in cells:
            self.time_left.passed(cell, functools.partial(progress.record_seconds, output, cell))

    @_alone
    def stop(self) -> None:
        if self.progress.live.is_started:  # else rich prints an empty line
            self.progress.stop()


def _name(values: dict[str, Any]) -> str:
    outputs = values.get("output") or [""]
    if values.get("rule_name") == "measure":
        return str(outputs[0]).split("/cells/")[-1].removesuffix(".json")
    if values.get("rule_name") == "measure_job":
        return f"job {str(outputs[0]).split('/nodes/')[-1]}"
    return str(values.get("rule_name", ""))


def _time_left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{duration(seconds)} left"
