"""For which share of the time that they wanted a CPU our children had one: what a busy machine
takes from a run.

Linux counts for each thread how long it ran and how long it waited for its turn (``schedstat``). A
rate of a thread that ran for a fifth of its time is a fifth of what it would be; divided by that
share, runs of two programs can be compared on a machine that others use. What others do to caches
and memory meanwhile stays in it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LOOK_S = 0.01
_SELF = Path("/proc/self/task")


@dataclass
class Watch:
    """By thread, the nanoseconds that it ran and that it waited, as last seen."""

    seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """Running / (running + waiting) of all threads; None where nothing was seen."""
        ran = sum(run for run, _ in self.seen.values())
        wanted = ran + sum(wait for _, wait in self.seen.values())
        return ran / wanted if wanted else None

    def look(self) -> None:
        """Every thread of every child, grandchild and so on that is there now."""
        for process in _descendants(_SELF):
            for thread in _folders(process / "task"):
                numbers = _words(thread / "schedstat")
                if len(numbers) >= 2:
                    self.seen[thread.name] = (int(numbers[0]), int(numbers[1]))


def _folders(place: Path) -> list[Path]:
    try:
        return list(place.iterdir())
    except OSError:  # it has ended
        return []


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except OSError:
        return []


def _descendants(tasks: Path) -> Iterator[Path]:
    for thread in _folders(tasks):
        for child in _words(thread / "children"):
            yield Path("/proc") / child
            yield from _descendants(Path("/proc") / child / "task")


@contextmanager
def watching() -> Iterator[Watch]:
    """Look at the children until the block is left; a thread that has ended stays as it was seen
    last.
    """
    watch, over = Watch(), threading.Event()

    def loop() -> None:
        while not over.wait(LOOK_S):
            watch.look()

    looking = threading.Thread(target=loop, daemon=True)
    looking.start()
    try:
        yield watch
    finally:
        over.set()
        looking.join()
