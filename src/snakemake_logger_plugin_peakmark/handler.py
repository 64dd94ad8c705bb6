"""The handler: show failures, answers and errors of a run, and a bar with the time left."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from logging import ERROR, INFO, WARNING, LogRecord
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from peakmark import resources
from peakmark.config import campaign
from peakmark.formatting import duration
from peakmark.workflow import startup, status
from peakmark.workflow.startup import UserError, as_workflow_error

STATE = Path(".snakemake")
LOG_CHARACTERS = 2000
"""Number of characters at the end of a log that are shown."""
ANSWERS = ("Report created", "Unlocked", "Congratulations", "Would delete", "Deleting")
"""Beginnings of messages that answer a request of the user, such as --unlock."""
REPEATED = ("Look above for error messages", "At least one job did not complete successfully.")
"""Endings of messages that repeat the failures and the list at the end."""
PLAIN_STEP = 0.1
"""Share of the jobs after which another line is printed if there is no terminal."""


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Empty settings, whose creation checks the command line and the folder.

    Snakemake creates them before it reads configuration files, which print a traceback if they are
    invalid, and before it writes anything.
    """

    def __post_init__(self) -> None:
        as_workflow_error(lambda: _begin(sys.argv[1:]))


def _begin(arguments: Sequence[str]) -> None:
    """Check the configuration files and the folder for Snakemake's state, and place the caches."""
    campaign.check_command_line(arguments)
    workplace = Path((campaign.named(arguments, ("--directory", "-d")) or ["."])[-1])
    startup.check_folder(workplace / STATE)
    _keep_caches(workplace)
    # On a full disk, Python would print forty lines for each message that Snakemake cannot log. The first
    # failure reports that the disk is full.
    logging.raiseExceptions = False


def _keep_caches(workplace: Path) -> None:
    """Set the caches of Snakemake and Matplotlib to the workplace, as some users have no home directory."""
    cache = (workplace / STATE / "cache").absolute()
    os.environ["XDG_CACHE_HOME"] = str(cache)
    resources.keep_matplotlib(cache)


class LogHandler(LogHandlerBase):
    """Handler of ``--logger peakmark``. A dry run uses its default formatter."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.console = Console(stderr=not self.common_settings.stdout, highlight=False)
        self.bar = Bar(self.console)

    def emit(self, record: LogRecord) -> None:
        """Show one record. Never raise, because a broken line must not end a campaign."""
        try:
            event = getattr(record, "event", None)
            is_plan = self.common_settings.dryrun and record.levelno < ERROR
            if event == LogEvent.SHELLCMD and not self.common_settings.printshellcmds:
                return
            if is_plan or event == LogEvent.SHELLCMD:
                self._say(self.format(record))
            elif event is None:
                self._message(record)
            else:
                self._event(event, record)
        except Exception:
            self.handleError(record)

    def _event(self, event: str, record: LogRecord) -> None:
        """Show an error, or pass the event of a job to the bar."""
        values = record.__dict__
        if event == LogEvent.ERROR:
            # A RuleException repeats the line of the failure, with the whole command.
            if values.get("exception") != "RuleException":
                self._trouble(record)
        elif event == LogEvent.JOB_INFO:
            self.bar.started(values)
        elif event == LogEvent.JOB_FINISHED:
            self.bar.finished(values["job_id"])
        elif event == LogEvent.PROGRESS:
            self.bar.counted(values["done"], values["total"])
        elif event == LogEvent.JOB_ERROR:
            # Drop a failed job from the time left. If a job has all cells of a node, this is a large
            # part of the campaign.
            self.bar.finished(values.get("jobid", -1))
            self._failure(values)

    def _message(self, record: LogRecord) -> None:
        """Show a message that belongs to no event."""
        text = self.format(record)
        if text.startswith("Nothing to be done"):
            self._say(
                "nothing to do: every cell is measured and the report is newer than all of them"
            )
            self._summary()
        elif record.levelno >= WARNING:
            self._trouble(record)
        elif text.startswith(ANSWERS) or (self.common_settings.verbose and record.levelno >= INFO):
            self._say(text)

    def _say(self, text: str, console: Console | None = None) -> None:
        (console or self.console).print(text, markup=False, soft_wrap=True)

    def _trouble(self, record: LogRecord) -> None:
        """Show an error or a warning, unless the failures or the list at the end repeat it."""
        self.bar.stop()
        text = self.format(record).strip("\n")
        if not text.endswith(REPEATED):
            # A dry run prints its plan on standard output, so print errors on standard error.
            self._say(text, Console(stderr=True, highlight=False))

    def _summary(self) -> None:
        """Print the summary of a run that had nothing to do."""
        from peakmark.workflow.run import Run

        if Run.current is not None:
            try:
                as_workflow_error(Run.current.print_summary)
            except UserError as error:
                self._say(str(error))

    def _failure(self, values: Mapping[str, Any]) -> None:
        """Print one line for a failed job, and the end of its log."""
        # The rule's log comes first; the executor's log has little text.
        texts = filter(None, map(_end_of_log, values.get("log") or []))
        text = next(texts, "")
        # The executor's message: how Slurm ended the job, or why sbatch refused it.
        reason = str(values.get("rule_msg") or "")
        # A job that Ctrl-C or another signal ends says so, or says nothing.
        is_interrupted = text == "peakmark: interrupted" or "KeyboardInterrupt" in text
        if is_interrupted or not (text or reason):
            self._say(f"stopped {job_name(values)}")
            return
        line = f"[red]failed[/red] {job_name(values)}"
        if reason:
            line = f"{line}: {escape(reason)}"
        self.console.print(line, soft_wrap=True)
        if text:
            self._say(text)

    def close(self) -> None:
        """End the bar, and so restore the terminal."""
        self.bar.stop()
        super().close()


def _end_of_log(path: str) -> str:
    """Return the end of a log; empty if it cannot be read."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.strip()[-LOG_CHARACTERS:]


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
