"""What the progress bar is told of a campaign; Snakefile, executor and logger plugin live in the
same process.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

KNOWN = 10
"""So many measured cells count as much as the estimate: a few move the time left little."""

estimates: dict[str, float] = {}
"""Output of each job that this run may start -> its expected seconds."""

steps: dict[str, dict[str, float]] = {}
"""Output of each job of several cells -> the cells that it will measure, in running order, with the
expected seconds of each.
"""

behind: dict[str, int] = {}
"""Output of a job of several cells -> how many of these it has behind it."""

started: float | None = None
"""When the first job began to measure, by ``time.monotonic``: what it waited before is no measure
of what is left.
"""

listener: Callable[[], None] | None = None
"""Called when a job of several cells has come further."""


def reached(output: str, cell: str) -> None:
    """The job that makes ``output`` measures this cell now. Where repetitions are decided in rounds
    it begins again at the first row: then what is behind it stays.
    """
    place = next((number for number, name in enumerate(steps.get(output, ())) if name == cell), 0)
    if place > behind.get(output, 0):
        behind[output] = place
        if listener is not None:
            listener()


def over(output: str) -> None:
    """The job has ended, however it did: nothing of it is ahead any more."""
    if output in steps:
        behind[output] = len(steps[output])
        if listener is not None:
            listener()


def cells() -> tuple[int, int]:
    """Of the cells in jobs of several: how many these have behind them, and how many there are."""
    return sum(behind.values()), sum(map(len, steps.values()))


def passed(output: str) -> list[str]:
    """The cells that a job of several has behind it."""
    return list(steps.get(output, ()))[: behind.get(output, 0)]


def expected() -> dict[str, float]:
    """Each cell that this run may measure -> its expected seconds."""
    if steps:
        return {cell: seconds for cells in steps.values() for cell, seconds in cells.items()}
    return {cell_of(output): seconds for output, seconds in estimates.items()}


def cell_of(output: str) -> str:
    """The cell whose record this is."""
    return output.split("/cells/")[-1].removesuffix(".json")


def record_seconds(output: str, cell: str) -> float | None:
    """Seconds that a cell took, of its record; None without one. ``output``: of its job."""
    path = Path(output)
    if output in steps:
        path = path.parent.parent / "cells" / f"{cell}.json"
    try:
        seconds = float(json.loads(path.read_bytes())["context"]["seconds"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return seconds if 0 < seconds < math.inf else None


@dataclass
class _Kind:
    """Measured cells of a kind: how many, their expected seconds, and those that they took."""

    cells: int = 0
    expected: float = 0.0
    measured: float = 0.0

    @property
    def weight(self) -> float:
        """What the measured cells count beside the estimate, 0 to 1."""
        return self.cells / (self.cells + KNOWN)

    @property
    def deviation(self) -> float:
        """Logarithm of how many times longer than expected they took."""
        return math.log(self.measured / self.expected)


class TimeLeft:
    """Seconds left of a campaign: the expected ones, corrected for each kind of cell.

    A kind is a program in a subsystem. The more of its cells are measured, the more these
    count, and the less do all kinds together and the estimate. The pace has what the records
    lack: jobs that run side by side, and the time between two cells.
    """

    def __init__(self, expected: Mapping[str, float]) -> None:
        self.expected = dict(expected)
        self.ahead: dict[str, float] = defaultdict(float)
        for cell, seconds in expected.items():
            self.ahead[_kind(cell)] += seconds
        self.kinds: dict[str, _Kind] = defaultdict(_Kind)
        self.behind = 0
        self.spent = 0.0

    def passed(self, cell: str, measured: Callable[[], float | None]) -> None:
        """The cell is behind. ``measured`` returns the seconds that it took, None if unknown."""
        expected = self.expected.pop(cell, None)
        if expected is None:
            return
        self.ahead[_kind(cell)] -= expected
        self.behind += 1
        seconds = measured()
        self.spent += seconds or expected
        if seconds and expected:
            kind = self.kinds[_kind(cell)]
            kind.cells += 1
            kind.expected += expected
            kind.measured += seconds

    def seconds(self, elapsed: float) -> float | None:
        """Seconds left, ``elapsed`` after the first cell began; None before any has ended."""
        if not self.spent or not elapsed:
            return None
        weights = sum(kind.weight for kind in self.kinds.values())
        overall = sum(kind.weight * kind.deviation for kind in self.kinds.values()) / (weights + 1)
        corrected = 0.0
        for name, ahead in self.ahead.items():
            deviation = overall
            if name in self.kinds:
                kind = self.kinds[name]
                deviation = kind.weight * kind.deviation + (1 - kind.weight) * overall
            corrected += max(ahead, 0.0) * math.exp(deviation)
        pace = math.pow(elapsed / self.spent, self.behind / (self.behind + KNOWN))
        return corrected * pace


def _kind(cell: str) -> str:
    """``cpu/hpl`` of ``cpu/hpl/QP_none_x1/any/0``."""
    return "/".join(cell.split("/")[:2])
