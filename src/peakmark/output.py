"""Standard output that may be full, closed or a pipe whose reader has gone: said once, and nothing
more from Python.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def open_streams() -> None:
    """Give a process that was started without standard streams (``>&-``) others: a file that is
    opened later would take their numbers, and get what is printed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - to the end


def plain(text: str) -> str:
    """A text of others without what a terminal would obey or cannot show: control characters but
    line ends and tabs.
    """
    return re.sub(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]",
        lambda match: ascii(match.group())[1:-1],
        text,
    )


def say(text: str) -> None:
    """Print it now. Errors: OSError that names standard output."""
    _or_named(lambda: print(plain(text), flush=True))


def tell(*lines: str) -> None:
    """Lines of ours on standard error."""
    for line in lines:
        print(f"peakmark: {plain(line)}", file=sys.stderr, flush=True)


def flush() -> None:
    """Write out what was printed. Errors: OSError that names standard output."""
    _or_named(sys.stdout.flush)


def _or_named(write: Callable[[], None]) -> None:
    try:
        write()
    except OSError as error:
        drop()
        raise OSError(error.errno, error.strerror, "standard output") from None


def drop() -> None:
    """What is still to be printed goes nowhere: Python would try once more at its end, and complain
    in many lines.
    """
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
