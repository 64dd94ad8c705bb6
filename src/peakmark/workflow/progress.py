"""How far a run is and how long the rest takes; Snakefile, executor and logger plugin live in the
same process.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

KNOWN = 10
"""So many measured cells count as much as the estimate: a few move the time left little."""


class TimeLeft:
    """Seconds left of a campaign: the expected ones, corrected by the pace of the cells behind.

    The more cells are behind, the more their pace counts against the estimate: a few slow ones at
    the start say little.
    """

    def __init__(self, expected: Mapping[str, float]) -> None:
        self.expected = dict(expected)
        self.ahead = math.fsum(expected.values())
        self.behind = 0
        self.spent = 0.0

    def passed(self, cell: str) -> None:
        """The cell is behind."""
        expected = self.expected.pop(cell, None)
        if expected is not None:
            self.ahead -= expected
            self.spent += expected
            self.behind += 1

    def seconds(self, elapsed: float) -> float | None:
        """Seconds left, ``elapsed`` after the first cell began; None before any has ended."""
        if not self.spent or not elapsed:
            return None
        certainty = self.behind / (self.behind + KNOWN)
        return max(self.ahead, 0.0) * math.pow(elapsed / self.spent, certainty)


class Progress:
    """The jobs of a run with their cells. The executor's thread and that of Snakemake's log call it.

    ``listener`` is called when a job of several cells has come further.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.listener: Callable[[], None] | None = None
        self._started: float | None = None
        self.expect({})

    def expect(self, jobs: Mapping[str, Mapping[str, float]]) -> None:
        """Set the jobs that the run may start.

        Args:
            jobs: output of each job -> cells that it will measure, in running order, with their
                expected seconds.
        """
        self._jobs = jobs
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
        """These cells of a job are behind; of a job that begins again, those that were stay so."""
        with self.lock:
            behind = self._behind.get(output, 0)
            for cell in cells[behind:]:
                self._time_left.passed(cell)
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


shared = Progress()
"""The progress of this process's run."""
