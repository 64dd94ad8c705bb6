"""Types of the activity on a node before, during and after a cell, as a record holds it.

The standard library suffices: ``peakmark check`` runs with it alone. Other users are counted, never named.
A value that cannot be read is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST = 1e30
"""Largest number: sums, squares and ratios of numbers up to it stay finite."""


def _check(*numbers: float | None) -> None:
    """Raise a ValueError if a number is negative or larger than ``MOST``."""
    for number in numbers:
        if number is not None and not 0 <= number <= MOST:
            raise ValueError(f"{number} is not between 0 and {MOST:g}")


@dataclass(slots=True)
class Moment:
    """State of a node at one moment.

    Attributes:
        load: average of the last minute.
        clock_hz: lowest clock among the given CPUs, from cpufreq.
        clock_limit_hz: highest clock of that CPU that governor and firmware allow.
        running: number of other processes that run or are ready to run.
        users: number of other users who own these processes.
    """

    load: float | None
    clock_hz: float | None
    clock_limit_hz: float | None
    running: int
    users: int

    def __post_init__(self) -> None:
        _check(self.load, self.clock_hz, self.clock_limit_hz, self.running, self.users)


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

    def __post_init__(self) -> None:
        _check(self.seconds, self.steal, self.others, self.throttled_s)
        _check(self.busy, self.users, self.hot, *self.moved.values())


@dataclass(slots=True)
class Noise:
    """Activity on a node around a cell.

    Attributes:
        before: state before the cell.
        during: activity during the cell; None if it took less than 0.1 s.
        after: state after the cell.
    """

    before: Moment
    during: Activity | None
    after: Moment
