"""Print to standard output and standard error, which may be full or a broken pipe."""

from __future__ import annotations

import os
import sys


def say(text: str) -> None:
    """Print a text, and flush it. Errors: OSError."""
    print(text, flush=True)


def is_coloured() -> bool:
    """Return whether standard output is a terminal that shows colours (https://no-color.org)."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def tell(*lines: str) -> None:
    """Print lines on standard error, each with the prefix ``peakmark:``."""
    for line in lines:
        print(f"peakmark: {line}", file=sys.stderr, flush=True)


def drop() -> None:
    """Discard buffered output, which Python would try to print again at exit, with a traceback."""
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
