"""Standard output that may be full, closed or a pipe whose reader has gone: said once, and nothing more from Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress


def say(text: str) -> None:
    """Print it now. Errors: OSError that names standard output."""
    _or_named(lambda: print(text, flush=True))


def tell(*lines: str) -> None:
    """Lines of ours on standard error."""
    for line in lines:
        print(f"peakmark: {line}", file=sys.stderr, flush=True)


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
    """What is still to be printed goes nowhere: Python would try once more at its end, and complain in many lines."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
