"""What other programs take from a measurement: share of the machine, and of our threads' time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LOOK_S = 0.01
SETTLE_S = 0.2
LOW = 0.05


@dataclass(frozen=True)
class Reading:
    """A moment: seconds, CPU seconds of all programs, CPU seconds of our ended children."""

    at: float
    everybody: float
    ours: float


def read() -> Reading:
    """The counters now. Interrupts are left out: our own network runs cause many."""
    user, nice, system, _, _, _, _, steal = map(int, _words(Path("/proc/stat"))[1:9])
    everybody = (user + nice + system + steal) / os.sysconf("SC_CLK_TCK")
    own = os.times()
    return Reading(time.monotonic(), everybody, own.children_user + own.children_system)


def share(before: Reading, after: Reading, cpus: int) -> float:
    """Share of ``cpus`` CPUs, 0 to 1, that others used between two readings."""
    seconds = (after.at - before.at) * cpus
    others = (after.everybody - before.everybody) - (after.ours - before.ours)
    return min(1.0, max(0.0, others / seconds)) if seconds > 0 else 0.0


def settle(limit_s: float, cpus: int) -> None:
    """Wait, ``limit_s`` at most, until others use little of the machine."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        before = read()
        time.sleep(SETTLE_S)
        if share(before, read(), cpus) < LOW:
            return


@dataclass
class Watch:
    """By thread of our children, the nanoseconds that it ran and that it waited for a CPU.

    A rate of a thread that ran for a fifth of its time, divided by that share, can be compared on a
    machine that others use. What they do to caches and memory stays in it.
    """

    seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """Running / (running + waiting) of all threads; None where nothing was seen."""
        ran = sum(run for run, _ in self.seen.values())
        waited = sum(wait for _, wait in self.seen.values())
        return ran / (ran + waited) if ran + waited else None

    def look(self) -> None:
        """Read every thread of every descendant."""
        for task in _descendants(Path("/proc/self/task")):
            numbers = _words(task / "schedstat")
            if len(numbers) >= 2:
                self.seen[task.name] = int(numbers[0]), int(numbers[1])


def _descendants(tasks: Path) -> Iterator[Path]:
    """Threads of all child processes; psutil would read every process of the machine."""
    for task in tasks.glob("*"):
        for child in _words(task / "children"):
            threads = Path("/proc", child, "task")
            yield from threads.glob("*")
            yield from _descendants(threads)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except OSError:  # The thread has ended.
        return []


@contextmanager
def watching() -> Iterator[Watch]:
    """Look at the children until the block ends; an ended thread stays as it was seen last."""
    watch, over = Watch(), threading.Event()

    def loop() -> None:
        while not over.wait(LOOK_S):
            watch.look()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()
