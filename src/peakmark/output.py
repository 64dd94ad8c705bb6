"""Print to standard output and standard error, which may be full, closed, or a broken pipe.

A failure is reported only once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def open_streams() -> None:
    """Open the null device for each closed standard stream (``>&-``).

    Otherwise a file that is opened later would get the stream's file descriptor, and printed text would
    go into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - to the end


def plain(text: str) -> str:
    """Replace control characters, which a terminal would execute, by escapes.

    Line ends and tabs are kept.
    """
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return ascii(match.group())[1:-1]


def say(text: str) -> None:
    """Print a text and flush it. Errors: OSError that names standard output."""
    say_styled(plain(text))


def say_styled(text: str) -> None:
    """Print a text with control characters for colours. Errors: OSError as for ``say``."""
    _or_named(lambda: print(text, flush=True))


def is_coloured() -> bool:
    """Return whether standard output is a terminal that shows colours (https://no-color.org)."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def tell(*lines: str) -> None:
    """Print lines on standard error, each with the prefix ``peakmark:``."""
    for line in lines:
        print(f"peakmark: {plain(line)}", file=sys.stderr, flush=True)


def flush() -> None:
    """Flush standard output. Errors: OSError that names standard output."""
    _or_named(sys.stdout.flush)


def _or_named(write: Callable[[], None]) -> None:
    """Call ``write``. If it raises an OSError, raise one that names standard output."""
    try:
        write()
    except OSError as error:
        drop()
        raise OSError(error.errno, error.strerror, "standard output") from None


def drop() -> None:
    """Discard buffered output, which Python would try to print again at exit, with a traceback."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
