"""What share of the machine other programs take."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

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
    user, nice, system, _, _, _, _, steal = map(
        int, Path("/proc/stat").read_text(encoding="ascii").split()[1:9]
    )
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
