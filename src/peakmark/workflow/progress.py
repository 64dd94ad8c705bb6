"""How far a run is and how long the rest takes; Snakefile, executor and logger plugin live in the
same process.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

KNOWN = 10
"""So many measured cells count as much as the estimate: a few move the time left little."""


@dataclass
class _Kind:
    """Cells of a program in a subsystem: expected seconds ahead; of the measured ones, how many,
    their expected seconds, and those that they took.
    """

    ahead: float = 0.0
    cells: int = 0
    expected: float = 0.0
    measured: float = 0.0

    @property
    def weight(self) -> float:
        """How much the measured cells count against the estimate, 0 to 1."""
        return self.cells / (self.cells + KNOWN)

    @property
    def deviation(self) -> float:
        """Logarithm of how many times longer than expected they took."""
        return math.log(self.measured / self.expected) if self.cells else 0.0


class TimeLeft:
    """Seconds left of a campaign: the expected ones, corrected for each kind of cell.

    The more cells of a kind are measured, the more these count, and the less do all kinds together
    and the estimate. The pace has what the records lack: jobs that run side by side, and the time
    between two cells.
    """

    def __init__(self, expected: Mapping[str, float]) -> None:
        self.expected = dict(expected)
        self.kinds: dict[str, _Kind] = defaultdict(_Kind)
        for cell, seconds in expected.items():
            self.kinds[_kind(cell)].ahead += seconds
        self.behind = 0
        self.spent = 0.0

    def passed(self, cell: str, seconds: float | None) -> None:
        """The cell is behind and took so long, None if unknown."""
        expected = self.expected.pop(cell, None)
        if expected is None:
            return
        kind = self.kinds[_kind(cell)]
        kind.ahead = max(kind.ahead - expected, 0.0)
        self.behind += 1
        self.spent += seconds or expected
        if seconds and expected:
            kind.cells += 1
            kind.expected += expected
            kind.measured += seconds

    def seconds(self, elapsed: float) -> float | None:
        """Seconds left, ``elapsed`` after the first cell began; None before any has ended."""
        if not self.spent or not elapsed:
            return None
        kinds = self.kinds.values()
        weighted = sum(kind.weight * kind.deviation for kind in kinds)
        overall = weighted / (sum(kind.weight for kind in kinds) + 1)
        corrected = 0.0
        for kind in kinds:
            deviation = kind.weight * kind.deviation + (1 - kind.weight) * overall
            corrected += kind.ahead * math.exp(deviation)
        return corrected * math.pow(elapsed / self.spent, self.behind / (self.behind + KNOWN))


def _kind(cell: str) -> str:
    """``cpu/hpl`` of ``cpu/hpl/QP_none_x1/any/0``."""
    return "/".join(cell.split("/")[:2])


class Progress:
    """The jobs of a run with their cells. The executor's thread and that of Snakemake's log call it.

    ``listener`` is called when a job of several cells has come further.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.listener: Callable[[], None] | None = None
        self._started: float | None = None
        self.expect(Path(), {})

    def expect(self, campaign: Path, jobs: Mapping[str, Mapping[str, float]]) -> None:
        """Set the jobs that the run may start.

        Args:
            campaign: its folder.
            jobs: output of each job -> cells that it will measure, in running order, with their
                expected seconds.
        """
        self._campaign, self._jobs = campaign, jobs
        self._behind = dict.fromkeys(jobs, 0)
        self._time_left = TimeLeft(
            {name: s for cells in jobs.values() for name, s in cells.items()}
        )
        self.in_cells = any(len(cells) > 1 for cells in jobs.values())

    def start(self) -> None:
        """Jobs measure now: how long they waited is no measure of what is left."""
        self._started = time.monotonic() if self._started is None else self._started

    def reached(self, output: Path, cell: str) -> None:
        """The job that makes ``output`` measures this cell now."""
        cells = list(self._jobs.get(str(output), ()))
        if cell in cells:
            self._pass(str(output), cells[: cells.index(cell)])

    def finish(self, output: str) -> None:
        """The job has ended, however it did: nothing of it is ahead any more."""
        self._pass(output, list(self._jobs.get(output, ())))

    def _pass(self, output: str, cells: list[str]) -> None:
        """These cells of a job are behind. Where repetitions are decided in rounds, it begins again
        at the first row: then what is behind it stays.
        """
        with self.lock:
            behind = self._behind.get(output, 0)
            for cell in cells[behind:]:
                self._time_left.passed(cell, self._record_seconds(cell))
            if len(cells) > behind:
                self._behind[output] = len(cells)
                if self.listener is not None and self.in_cells:
                    self.listener()

    def cells(self) -> tuple[int, int]:
        """How many cells are behind, and how many there are."""
        return sum(self._behind.values()), sum(map(len, self._jobs.values()))

    def seconds_left(self, since: float) -> float | None:
        """Seconds left. ``since``: when the first job was handed over, by ``time.monotonic``."""
        began = since if self._started is None else self._started
        with self.lock:
            return self._time_left.seconds(time.monotonic() - began)

    def _record_seconds(self, cell: str) -> float | None:
        """Seconds that a cell took, of its record; None without one."""
        path = self._campaign / "cells" / f"{cell}.json"
        try:
            seconds = float(json.loads(path.read_bytes())["context"]["seconds"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None
        return seconds if 0 < seconds < math.inf else None


shared = Progress()
"""The progress of this process's run."""
