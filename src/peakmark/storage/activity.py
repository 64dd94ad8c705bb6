"""Types of the activity on a node during a cell, and what of it disturbs the cell.

The standard library suffices: ``peakmark check`` runs with it alone. Other users are counted, never named.
A value that cannot be read is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from peakmark.catalogue import SUBSYSTEMS

OTHERS = 0.2
"""Average number of busy CPUs above which other programs may count as a disturbance."""
MATTERS = 0.05
"""Smallest loss that counts as a disturbance, as a number of CPUs or a share of time or clock.

A larger loss changes a value by more than the spread of a quiet machine.
"""
HEAT_MS = "cpu core_throttle_total_time_ms"
"""Counter of the milliseconds for which heat slowed down the most affected core."""


@dataclass(slots=True)
class Activity:
    """Activity on a node during a cell.

    Attributes:
        seconds: time between the two readings.
        steal: share of the given CPUs' time that the hypervisor took.
        others: average number of CPUs that other programs kept busy.
        busy: number of other processes that used more than a tenth of a CPU.
        users: number of other users who own these processes.
        throttled_s: time for which the cgroup's CPU quota held the program back, in seconds.
        hot: how often CPUs slowed down because of heat.
        moved: counter of errors, drops or throttling -> its increase.
    """

    seconds: float
    steal: float | None
    others: float
    busy: int
    users: int
    throttled_s: float | None
    hot: int | None
    moved: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Noise:
    """Activity on a node during a cell, and its clock limit before.

    Attributes:
        during: activity during the cell; None if it took less than 0.1 s.
        clock_limit_hz: highest clock that governor and firmware allow, of the given CPU with the
            lowest limit; None without cpufreq.
    """

    during: Activity | None
    clock_limit_hz: float | None = None


# -- disturbances


def spare_cpus(subsystem: str, threads: int, cpus: int | None) -> float:
    """Return the number of CPUs that a measurement with pinned threads does not use.

    Programs on these CPUs do not disturb the measurement. The result is 0 if threads are not pinned, or if the
    number of CPUs is unknown.
    """
    if not SUBSYSTEMS[subsystem].pinned or not cpus:
        return 0.0
    return float(max(0, cpus - threads))


def others(during: Activity | None, spare: float = 0.0) -> float:
    """Return the average number of CPUs that other programs took from a measurement.

    The result is 0 if the load is too small to change the measured value.
    """
    used = during.others if during and during.others else 0.0
    taken = used - spare
    # The first limit is on the whole load, the second on the part that the spare CPUs do not absorb.
    if used <= OTHERS or taken <= MATTERS:
        return 0.0
    return taken


def find_disturbances(
    subsystem: str,
    near: Activity | None,
    far: Activity | None,
    details: Mapping[str, Any],
    *,
    is_crowded: bool,
    spare: float = 0.0,
) -> dict[str, float]:
    """Return the disturbances that were large enough to change a measurement's value.

    Args:
        subsystem: subsystem of the cell.
        near: activity on the node, if it is known.
        far: activity on the server's node of a network cell, if it is known.
        details: details of a measurement. Only the CPU share and the clocks before and after are
            used.
        is_crowded: whether the cell had more threads than CPUs.
        spare: number of CPUs that the measurement does not use. It is ignored if threads had to
            wait for a CPU.

    Returns:
        Code of the row's warning -> its amount, above ``MATTERS``: for ``other-load`` a number of
            CPUs, for ``clock-moved`` a share of the clock, for ``steal``, ``waited`` and ``hot`` a
            share of the time.
    """
    # Threads that share a CPU by request wait for each other.
    waited = 0.0
    share = details.get("cpu_share")
    if SUBSYSTEMS[subsystem].pinned and share is not None and not is_crowded:
        waited = 1 - float(share)
    if waited > MATTERS:
        spare = 0.0
    clock_moved = 0.0
    before, after = details.get("clock_hz_before"), details.get("clock_hz_after")
    if before and after:
        clock_moved = abs(after / before - 1)
    # The spare CPUs are those of the node, not of the server's node.
    amounts = {
        "other-load": max(others(near, spare), others(far)),
        "steal": max(_stolen(near), _stolen(far)),
        "waited": waited,
        "clock-moved": clock_moved,
        "hot": max(_heat(near), _heat(far)),
    }
    return {code: round(amount, 4) for code, amount in amounts.items() if amount > MATTERS}


def _stolen(during: Activity | None) -> float:
    """Return the share of the time that the hypervisor took; 0 if it is unknown."""
    if during is None or during.steal is None:
        return 0.0
    return during.steal


def _heat(during: Activity | None) -> float:
    """Return the share of the time for which heat slowed a core down; 0 if it is unknown."""
    if during is None or HEAT_MS not in during.moved:
        return 0.0
    return during.moved[HEAT_MS] / 1e3 / during.seconds
