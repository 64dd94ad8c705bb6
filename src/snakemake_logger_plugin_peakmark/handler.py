"""The handler: show failures, answers and errors of a run, and a bar with the time left."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from logging import LogRecord
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

LOG_CHARACTERS = 2000
"""Number of characters at the end of a log that are shown."""
ANSWERS = ("Report created", "Unlocked", "Congratulations", "Would delete", "Deleting")
"""Beginnings of messages that answer a request of the user, such as --unlock."""
REPEATED = ("Look above for error messages", "At least one job did not complete successfully.")
"""Endings of messages that repeat the failures and the list at the end."""
NOTHING_TO_DO = "nothing to do: every cell is measured and the report is newer than all of them"
PLAIN_STEP = 0.1
"""Without a terminal, a line is printed each time that this further share of the jobs has ended."""


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Settings without a key. Creating them checks the command line and the folder.

    Snakemake creates them before it reads configuration files and before it writes anything. It would print
    a traceback for an invalid file.
    """

    def __post_init__(self) -> None:
        startup.as_workflow_error(_begin)


def _begin() -> None:
    """Check the configuration files and the folder for Snakemake's state, and set the folder of caches."""
    arguments = sys.argv[1:]
    campaign.check_command_line(arguments)
    directories = campaign.named(arguments, ("--directory", "-d")) or ["."]
    state = Path(directories[-1]) / ".snakemake"
    startup.check_folder(state)
    # Some users have no home directory for the caches of Snakemake and Matplotlib.
    cache = (state / "cache").absolute()
    os.environ["XDG_CACHE_HOME"] = str(cache)
    resources.set_matplotlib_cache(cache)
    # On a full disk, Python would print forty lines for each message that Snakemake cannot log. The first
    # failure reports that the disk is full.
    logging.raiseExceptions = False


class LogHandler(LogHandlerBase):
    """Handler of ``--logger peakmark``. It formats records with Snakemake's default formatter."""

    writes_to_stream = True
    writes_to_file = False
    # Snakemake adds no filter of its own then: ``_emit`` gets every record and chooses.
    has_filter = True
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.console = Console(stderr=not self.common_settings.stdout, highlight=False)
        self.bar = Bar(self.console)

    def emit(self, record: LogRecord) -> None:
        """Show one record. Never raise, because a broken line must not end a campaign."""
        try:
            self._emit(record)
        except Exception:
            self.handleError(record)

    def _emit(self, record: LogRecord) -> None:
        """Show a message or an error, or pass the event of a job to the bar."""
        values = record.__dict__
        event = values.get("event")
        # Commands are shown with --printshellcmds. A dry run shows everything as Snakemake does.
        if event == LogEvent.SHELLCMD:
            if self.common_settings.printshellcmds:
                self._say(self.format(record))
        elif self.common_settings.dryrun and record.levelno < logging.ERROR:
            self._say(self.format(record))
        elif event is None:
            self._message(record)
        elif event == LogEvent.ERROR:
            # A RuleException repeats the line of the failure, with the whole command.
            if values.get("exception") != "RuleException":
                self._trouble(record)
        elif event == LogEvent.JOB_INFO:
            self.bar.started(values)
        # Snakemake calls the number of a job job_id in this event, and jobid in the others.
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
            from peakmark.workflow.run import Run  # late: Snakemake changes to --directory first

            self._say(NOTHING_TO_DO)
            if Run.current is not None:
                Run.current.print_summary()
        elif record.levelno >= logging.WARNING:
            self._trouble(record)
        elif text.startswith(ANSWERS) or (
            self.common_settings.verbose and record.levelno >= logging.INFO
        ):
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

    def _failure(self, values: Mapping[str, Any]) -> None:
        """Print one line for a failed job, and the end of its log."""
        # The rule's log is the first of the job's logs. The executor's log has little text.
        text = ""
        if logs := status.filled(map(Path, values.get("log") or [])):
            text = logs[0].read_text(encoding="utf-8", errors="replace").strip()[-LOG_CHARACTERS:]
        # The executor's message: how Slurm ended the job, or why sbatch refused it.
        reason = str(values.get("rule_msg") or "")
        # The log of a job that Ctrl-C or another signal ended says so, or is empty.
        is_interrupted = text == "peakmark: interrupted" or "KeyboardInterrupt" in text
        if is_interrupted or not (text or reason):
            self._say(f"stopped {job_name(values)}")
            return
        words = [f"[red]failed[/red] {job_name(values)}", escape(reason)]
        self.console.print(": ".join(filter(None, words)), soft_wrap=True)
        if text:
            self._say(text)

    def close(self) -> None:
        """End the bar, and so restore the terminal."""
        self.bar.stop()
        super().close()


class Bar:
    """The number of ended jobs and the time left, as a bar on a terminal, otherwise in lines.

    Attributes:
        console: where it is shown.
        progress: the bar.
        task: the only task of the bar, which stands for all jobs.
        start: time by ``time.monotonic`` at which the first job was handed over; 0 before.
        outputs: number of a job that has not ended -> its first output.
        printed: share of the jobs that had ended when the last line was printed.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeElapsedColumn())
        name, left = TextColumn("{task.description}"), TextColumn("{task.fields[left]}")
        self.progress = Progress(name, *columns, left, console=console, transient=True, expand=True)
        self.task = self.progress.add_task("", start=False, total=None, left="")
        self.start = 0.0
        self.outputs: dict[int, str] = {}
        self.printed = 0.0

    def started(self, values: Mapping[str, Any]) -> None:
        """Show a job that was handed over."""
        if not self.start:
            self.start = time.monotonic()
            self.progress.start_task(self.task)
            if self.console.is_terminal:
                self.progress.start()
        self.outputs[values["jobid"]] = _output(values)
        self.progress.update(self.task, description=job_name(values))

    def finished(self, jobid: int) -> None:
        """Drop an ended job from the time left."""
        status.progress.finish(self.outputs.pop(jobid, ""))

    def counted(self, done: int, total: int) -> None:
        """Show how many of all jobs have ended, on the bar or in a line after each ``PLAIN_STEP``."""
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


def _output(values: Mapping[str, Any]) -> str:
    """Return the first output of a job; empty without outputs."""
    return str((values.get("output") or [""])[0])


def job_name(values: Mapping[str, Any]) -> str:
    """Return what a job is called: its rule; for a job that measures, the name of the job or of its cell."""
    rule, output = str(values.get("rule_name", "")), _output(values)
    if rule != "measure":
        return rule
    # The output of a job of several cells is in the folder ``nodes``, that of one cell is its record.
    if "/nodes/" in output:
        return f"job {output.split('/nodes/')[-1]}"
    return output.split("/cells/")[-1].removesuffix(".json")
