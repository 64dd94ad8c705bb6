"""Standard output that may be full, closed or a pipe whose reader has gone: said once, and nothing more from Python."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

WHAT = "standard output"


def say(text: str) -> None:
    """Print it now. Errors: OSError that names standard output."""
    print(text)
    flush()


def flush() -> None:
    """Write out what was printed. Errors: OSError that names standard output."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop()
        raise
    except OSError as error:
        drop()
        raise OSError(error.errno, error.strerror, WHAT) from None


def drop() -> None:
    """What is still to be printed goes nowhere: Python would try once more at its end, and complain in many lines."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
