"""Signals: the first Ctrl-C, or SIGTERM, ends what runs and puts everything away, and a further one
does not disturb that.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from peakmark.errors import Terminated

pressed = False
"""Whether Ctrl-C was pressed since ``once``."""


def once() -> None:
    """From here to the end of this process, the first Ctrl-C is a KeyboardInterrupt and every other
    is ignored.

    Nothing where it was ignored before, as in the background of a script, or where this is not the
    main thread.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with suppress(ValueError):  # another thread
            signal.signal(signal.SIGINT, _interrupted)


def _interrupted(*_: object) -> None:
    global pressed  # noqa: PLW0603 - of the whole process, as the signal is
    pressed = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextmanager
def held(*signals: int) -> Iterator[None]:
    """Ctrl-C, or these signals, wait while the block runs.

    Python's own work around a fork would drop Ctrl-C, and print a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals or {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def not_ours() -> None:
    """In a forked process with a session of its own: a Ctrl-C that waits was for its parent, later
    ones end it as any program.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # which drops one that waits
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def handled() -> Iterator[None]:
    """The same for a block; what was before is back afterwards, unless there was one: then the
    process is to end.
    """
    once()
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def end_cleanly(*others: int) -> None:
    """SIGTERM ends as an error does: programs ended, scratch files removed.

    ``others``: signals that do the same, unless they are ignored.
    """
    signals: list[int] = [signal.SIGTERM]
    signals += [number for number in others if signal.getsignal(number) is not signal.SIG_IGN]

    def terminated(*_: object) -> None:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        raise Terminated

    for number in signals:
        signal.signal(number, terminated)
