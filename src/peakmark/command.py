"""How a command begins and ends, whatever it does: one sentence for every mistake, and the exit
code.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable
from contextlib import suppress

from peakmark import interrupts, output
from peakmark.errors import ConfigError, PeakmarkError, Terminated, sentence


def outcome(run: Callable[[], int]) -> int:
    """Do it. Returns the exit code: 0, 1 (failed), 2 (wrong use), and 128 and more when told to
    end.
    """
    output.open_streams()
    os.umask(os.umask(0o077) | 0o002)  # whatever the user's says, nothing is for everybody to write
    try:
        with interrupts.handled():
            try:
                return run()
            finally:
                output.flush()  # here, where what cannot be written is still one sentence
    except ConfigError as error:
        return _said(str(error), 2)
    except PeakmarkError as error:
        return _said(str(error), 1)
    except BrokenPipeError:
        output.drop()
        return 1
    except OSError as error:
        output.drop()
        return _said(sentence(error), 1)
    except Terminated:
        return _said("told to end", 128 + signal.SIGTERM)
    except KeyboardInterrupt:
        return _said("interrupted", 130)


def _said(text: str, code: int) -> int:
    with suppress(OSError):
        output.tell(text)
    return code


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


def seconds(least: float, most: float) -> Callable[[str], float]:
    """The type of an argument in seconds, from ``least`` to ``most``."""

    def number(text: str) -> float:
        value = float(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{text} is not allowed: give seconds from {least:.0f} to {most:.0f}, such as 10"
            )
        return value

    return number
