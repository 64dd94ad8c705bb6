"""The commands: each module declares its options and calls what does the work, which it imports
when it is asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable


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
