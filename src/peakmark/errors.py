"""Exit codes, errors and messages for users, and functions that print them.

A message is one sentence: what happened, where, and what to do.
"""

from __future__ import annotations

import errno
import os
import sys
from enum import IntEnum
from typing import ClassVar, NamedTuple


class ExitCode(IntEnum):
    """Exit code of a command. If a signal stopped it, the exit code is 128 plus the signal's number.

    Attributes:
        GOOD: the command succeeded.
        DIFFERENT: a node is slow or a row is worse; needs ``--fail-on``, except for ``check``.
        USAGE: the command line or a configuration file is wrong.
        CANNOT_TELL: nothing could be judged; needs ``--fail-on``, except for ``check``.
        ERROR: the command failed, or files that it needs are missing or damaged.
    """

    GOOD = 0
    DIFFERENT = 1
    USAGE = 2
    CANNOT_TELL = 3
    ERROR = 4


class Sentence(NamedTuple):
    """A message.

    Attributes:
        fact: what happened.
        remedy: what to do, or an explanation; may be empty.
    """

    fact: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.fact}: {self.remedy}" if self.remedy else self.fact


class PeakmarkError(Exception):
    """Base class of errors whose message the command line prints without a traceback.

    Attributes:
        fact: what happened.
        remedy: what to do; may be empty. The message consists of fact and remedy.
        exit_code: exit code of a command that fails with this error.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR

    def __init__(self, fact: str, remedy: str = "") -> None:
        super().__init__(str(Sentence(fact, remedy)))
        self.fact, self.remedy = fact, remedy


class ConfigError(PeakmarkError):
    """Error for a value of the command line or the configuration that is not allowed."""

    exit_code = ExitCode.USAGE


class RecordError(PeakmarkError):
    """Error for a record that is missing, damaged, or not of its type."""


class ParseError(PeakmarkError):
    """Error for a tool's output from which no reliable value can be read."""


class MeasurementError(PeakmarkError):
    """Error for a cell that failed: the tool failed, hung, or printed an invalid result.

    The cell has no record, so the next run measures it again.
    """


class Unavailable(PeakmarkError):
    """Error for a cell that this machine cannot measure, for example because the tool is missing.

    The cell does not count as failed, and no later run measures it. An error whose reason may pass,
    such as a busy node or a lost connection, is a ``MeasurementError``.
    """


class Terminated(BaseException):
    """Raised when a signal such as SIGTERM stops this process, so that all blocks clean up.

    Slurm sends SIGTERM at scancel and at the time limit of a job.
    """


OUT_OF_MEMORY = "OUT_OF_MEMORY"
"""Slurm's state of a job that ran out of memory; also used if the kernel killed a process."""
MORE_MEMORY = "memory_factor in the site file's section slurm lets jobs ask for more"
"""Remedy for a job that got too little memory."""


_REMEDIES = {
    errno.ENOSPC: "free disk space, or set TMPDIR if it is a temporary folder",
    errno.EDQUOT: "your disk quota is used up: remove files, or ask for more",
    errno.EROFS: "write elsewhere: reports have the option -o FILE",
    errno.EACCES: "correct its permissions, or write elsewhere",
    errno.EPERM: "correct its permissions, or write elsewhere",
    errno.ENOTDIR: "a file has the place of a folder: move the file away",
    errno.EIO: "its disk or network has failed: see dmesg, or ask the administrator",
    errno.EMFILE: "raise the number of open files (ulimit -n)",
}
"""Number of an error of the system -> what a user can do about it."""


def sentence(error: OSError) -> str:
    """Return the message for an OSError: path, reason and remedy."""
    text = str(error.strerror or error)
    # A rename has two paths.
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    if names:
        text = f"{' -> '.join(names)}: {text}"
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy:
        text = f"{text}; {remedy}"
    return text


# -- standard output and standard error, which may be full or a broken pipe


def is_coloured() -> bool:
    """Return whether standard output is a terminal that shows colours (https://no-color.org)."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def tell(*lines: str) -> None:
    """Print lines on standard error, each with the prefix ``peakmark:``."""
    for line in lines:
        print(f"peakmark: {line}", file=sys.stderr, flush=True)


def mute() -> None:
    """Discard what standard output still buffers, after a write to it has failed.

    Python would otherwise try to write it at exit, and print a traceback when this fails again. If another
    stream has replaced the standard output, as in tests, do nothing.
    """
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
