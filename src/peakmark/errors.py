"""Errors that a user can meet. Each message is one sentence: what happened, where, what is allowed
and how to go on.
"""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import NamedTuple


class ExitCode(IntEnum):
    """How a command ends; a signal that stopped it adds 128 to its number instead.

    Attributes:
        GOOD: it did what it was asked for.
        DIFFERENT: a node is slow or a row is worse, where ``--fail-on`` asks for that.
        USAGE: the command line or a configuration file is wrong.
        CANNOT_TELL: nothing could be judged, where ``--fail-on`` asks for a verdict.
        ERROR: it failed, or what it needs is missing or damaged.
    """

    GOOD = 0
    DIFFERENT = 1
    USAGE = 2
    CANNOT_TELL = 3
    ERROR = 4


class Sentence(NamedTuple):
    """A fact, and its remedy or explanation, which may be empty."""

    fact: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.fact}: {self.remedy}" if self.remedy else self.fact


class PeakmarkError(Exception):
    """An error of the user's input or machine. The CLI prints its message without a traceback.

    fact    what happened
    remedy  what to do, if the error has it; the message is both
    """

    def __init__(self, fact: str, remedy: str = "") -> None:
        super().__init__(str(Sentence(fact, remedy)))
        self.fact, self.remedy = fact, remedy


class ConfigError(PeakmarkError):
    """A value of the configuration that is not allowed. Its message is one line, whatever the value
    holds.
    """

    def __str__(self) -> str:
        text = ""
        for character in super().__str__():
            if character.isprintable():
                text += character
            else:
                text += character.encode("unicode_escape").decode("ascii")
        return text


class RecordError(PeakmarkError):
    """A record that is missing, damaged or against its schema."""


class UnreadableError(RecordError):
    """A record that this user or process may not read. It may well be whole."""


class ParseError(PeakmarkError):
    """Output of a tool that holds no trustworthy number."""


class MeasurementError(PeakmarkError):
    """Failure to measure a cell: the tool failed, hung, or printed an invalid result."""


class Unavailable(PeakmarkError):
    """Error for a cell that this machine cannot measure, as without its tool or instruction set. It
    is no failure of the cell.
    """


class Terminated(BaseException):
    """Raised when a signal stops this process (SIGTERM, as by scancel or a time limit). Every block
    cleans up on the way out.
    """


OUT_OF_MEMORY = "OUT_OF_MEMORY"
"""State of a job that ran out of memory, in Slurm's word; also used where the kernel ended it."""
MORE_MEMORY = "memory_factor in the site file's section slurm lets jobs ask for more"
"""Remedy for a job that was granted too little memory."""

UNREADABLE = frozenset(
    (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE)
)
"""Errors that do not concern the file itself: another user or a later process may read it."""

_REMEDIES = {
    errno.ENOSPC: "make room there, or set TMPDIR where it is a temporary folder",
    errno.EDQUOT: "your quota there is used up: remove something, or ask for more",
    errno.EROFS: "write elsewhere: a report can be given a place with -o FILE",
    errno.EACCES: "mend its rights, or write elsewhere",
    errno.EPERM: "mend its rights, or write elsewhere",
    errno.ENOTDIR: "a folder is needed there: move the file in its place away",
    errno.EIO: "its disk or network has failed: see dmesg, or ask who runs the machine",
    errno.EMFILE: "raise the number of open files (ulimit -n)",
}


def sentence(error: OSError, path: bool = True) -> str:
    """Return what the system refused, where, and what to do. Leave the path out if ``path`` is
    False, because the caller names it.
    """
    text = str(error.strerror or error)
    # A file name may also be the number of a descriptor, which tells a user nothing.
    names = []
    for name in (error.filename, error.filename2):
        if name is not None and not isinstance(name, int):
            names.append(str(name))
    if names and path:
        text = f"{' -> '.join(names)}: {text}"
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy:
        text = f"{text}; {remedy}"
    return text
