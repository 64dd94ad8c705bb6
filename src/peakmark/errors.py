"""Errors a user can meet. Each message is one sentence that says what, where, what is allowed and
how to go on.
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
    """What happened, and what to do about it or what explains it, which may be empty."""

    fact: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.fact}: {self.remedy}" if self.remedy else self.fact


class PeakmarkError(Exception):
    """The user's input or machine is at fault: the CLI prints the message alone, without a
    traceback.

    fact    what is so
    remedy  what to do, where that is told apart; the message is both
    """

    def __init__(self, fact: str, remedy: str = "") -> None:
        super().__init__(str(Sentence(fact, remedy)))
        self.fact, self.remedy = fact, remedy


class ConfigError(PeakmarkError):
    """The configuration holds a value that is not allowed. In one line, whatever stands in the
    value.
    """

    def __str__(self) -> str:
        return "".join(
            character
            if character.isprintable()
            else character.encode("unicode_escape").decode("ascii")
            for character in super().__str__()
        )


class RecordError(PeakmarkError):
    """A record is missing, damaged or not what its schema says."""


class UnreadableError(RecordError):
    """A record that this user, or this process, may not read: it may well be whole."""


class ParseError(PeakmarkError):
    """A tool printed something from which no trustworthy number can be read."""


class Terminated(BaseException):
    """This process was told to end (SIGTERM, as by scancel or a time limit): everything is put away
    on the way out.
    """


OUT_OF_MEMORY = "OUT_OF_MEMORY"
"""Slurm's word, used for what was ended for its memory, whoever ended it."""

UNREADABLE = frozenset(
    (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE)
)
"""Errors that say nothing of a file itself: others, or the same process later, may read it."""

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
    """What the system refused, where (unless ``path`` is False: the caller says it), and what can
    be done.
    """
    names = [
        str(name)
        for name in (error.filename, error.filename2)
        if name is not None and not isinstance(name, int)
    ]
    where = f"{' -> '.join(names)}: " if names and path else ""
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{where}{error.strerror or error}" + (f"; {remedy}" if remedy else "")
