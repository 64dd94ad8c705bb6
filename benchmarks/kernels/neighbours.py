"""How much of the machine others used: CPU time of all processes less that of our own children."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

_HERTZ = os.sysconf("SC_CLK_TCK")
# Fields of /proc/stat that count as used by a process (proc(5)): user, nice, system, steal.
# Interrupts are left out: those that our own network runs cause would pass for others' work.
_USED = (0, 1, 2, 7)
_LOOK_S = 0.2


@dataclass(frozen=True)
class Reading:
    """A moment: seconds, CPU seconds of everybody, CPU seconds of our ended children."""

    at: float
    everybody: float
    ours: float


def read() -> Reading:
    """The counters now."""
    fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    everybody = sum(int(fields[field]) for field in _USED if field < len(fields)) / _HERTZ
    return Reading(time.monotonic(), everybody, children.ru_utime + children.ru_stime)


def share(before: Reading, after: Reading, cpus: int) -> float:
    """Share of ``cpus`` CPUs, 0 to 1, that was others' between two readings. The counters step by
    10 ms.
    """
    seconds = (after.at - before.at) * cpus
    others = (after.everybody - before.everybody) - (after.ours - before.ours)
    return min(1.0, max(0.0, others / seconds)) if seconds > 0 else 0.0


def settle(limit_s: float, cpus: int, quiet: float = 0.05) -> float:
    """Wait until others use less than ``quiet`` of the machine, ``limit_s`` at most. Returns the
    seconds waited.
    """
    started = time.monotonic()
    while time.monotonic() - started < limit_s:
        before = read()
        time.sleep(_LOOK_S)
        if share(before, read(), cpus) < quiet:
            break
    return time.monotonic() - started
