"""The handler: show failures, answers and errors of a run, and pass the events of jobs to the bar."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from logging import ERROR, INFO, WARNING, LogRecord
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from peakmark import files, resources
from peakmark.config import campaign
from peakmark.run import cleanup
from peakmark.workflow import startup
from peakmark.workflow.startup import UserError, as_workflow_error
from snakemake_logger_plugin_peakmark.bar import Bar, job_name

STATE = Path(".snakemake")
LOG_CHARACTERS = 2000
"""Number of characters at the end of a log that are shown."""
ANSWERS = (
    *("Report created", "Unlocked", "Congratulations", "Will exit after finishing"),
    *("Would delete", "Deleting"),
)
"""Beginnings of messages that answer a request of the user, such as --unlock."""
REPEATED = ("Look above for error messages", "At least one job did not complete successfully.")
"""Endings of messages that repeat the failures and the list at the end."""


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
        self.disk_was_full = False
        self.printed: set[str] = set()

    def emit(self, record: LogRecord) -> None:
        """Show one record. Never raise, because a broken line must not end a campaign."""
        try:
            event = getattr(record, "event", None)
            shows_commands = event != LogEvent.SHELLCMD or self.common_settings.printshellcmds
            if self.common_settings.dryrun and record.levelno < ERROR:
                if shows_commands:
                    self._say(self.format(record))
            elif event is None:
                self._message(record)
            elif event == LogEvent.SHELLCMD and shows_commands:
                self._say(self.format(record))
            elif event == LogEvent.ERROR and record.__dict__.get("exception") != "RuleException":
                # Skip a RuleException: it repeats the line of the failure, with the whole command.
                self._trouble(record)
            else:
                self._job(event, record.__dict__)
        except Exception:
            self.handleError(record)

    def _job(self, event: str, values: dict[str, Any]) -> None:
        """Pass an event of a job to the bar, and print a failure."""
        if event == LogEvent.JOB_INFO:
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
        if record.getMessage().startswith("Nothing to be done"):
            self._say(
                "nothing to do: every cell is measured and the report is newer than all of them"
            )
            self._summary()
        elif record.levelno >= WARNING:
            self._trouble(record)
        elif record.levelno >= INFO:
            text = self.format(record)
            is_answer = text.startswith(ANSWERS) and text not in self.printed
            if self.common_settings.verbose or is_answer:
                self._say(text)
                self.printed.add(text)

    def _say(self, text: str, console: Console | None = None) -> None:
        (console or self.console).print(text, markup=False, soft_wrap=True)

    def _trouble(self, record: LogRecord) -> None:
        """Show an error or a warning, unless the failures or the list at the end repeat it."""
        self.bar.stop()
        text = self.format(record).strip("\n")
        of_full_disk = "[Errno 28]" in text or "metadata record" in text
        if text.endswith(REPEATED) or (of_full_disk and self._full_disk("")):
            return
        # A dry run prints its plan on standard output, so print errors on standard error.
        console = self.console
        if self.common_settings.stdout:
            console = Console(stderr=True, highlight=False)
        self._say(text, console)

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
        name = job_name(values)
        # Prefer the rule's log, because the executor's log has little text.
        text = ""
        for path in values.get("log") or []:
            text = text or _end_of_log(path)
        if self._full_disk(text):
            return
        # After Ctrl-C during the imports, the log is empty or has a traceback.
        if not text and not cleanup.pressed:
            time.sleep(0.5)  # a job may end by Ctrl-C before this process handles it
        by_ctrl_c = text == "peakmark: interrupted" or (cleanup.pressed and not text)
        if by_ctrl_c or "KeyboardInterrupt" in text:
            self._say(f"interrupted {name}")
            return
        # The executor's message: how Slurm ended the job, or why sbatch refused it.
        reason = str(values.get("rule_msg") or "")
        line = f"[red]failed[/red] {name}"
        if reason:
            line = f"{line}: {escape(reason)}"
        self.console.print(line, soft_wrap=True)
        if text:
            self._say(text)

    def _full_disk(self, text: str) -> bool:
        """Return whether the disk of the results is full, and print this once.

        No log then has room for a reason, and every later cell fails for the same reason.
        """
        full = None
        if not text:
            full = files.full(Path("results")) or files.full(STATE)
        if "was not measured: No space left" in text:
            full = text
        if full is not None and not self.disk_was_full:
            self.disk_was_full = True
            self._say(full)
        return full is not None

    def close(self) -> None:
        """End the bar, and so restore the terminal."""
        self.bar.stop()
        super().close()


def _end_of_log(path: object) -> str:
    """Return the end of a log; empty if there is no log."""
    if not Path(str(path)).is_file():
        return ""
    with suppress(OSError):
        text = Path(str(path)).read_text(encoding="utf-8", errors="replace")
        return text.strip()[-LOG_CHARACTERS:]
    return ""
