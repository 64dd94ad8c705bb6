"""What the repetitions of a row tell about themselves: thresholds that follow from how many there
are.

A machine whose true coefficient of variation is at most ``QUIET`` gets a mark in at most 5 % of its
rows, whatever n:
2 % for the spread, 1.5 % each for the first repetition and for a drift. Outliers and hosts that
differ are remarks of their own, 5 % each. Normal values are assumed for that promise alone; ``make
bench-method`` counts the marks. Sources:
    [chi]  the sample variance of normal values, (n - 1) s^2 / sigma^2, is chi-square distributed;
           its quantiles by Wilson and Hilferty, Proceedings of the National Academy of Sciences 17
           (1931), pages 684-688
    [IH]   the modified z score, see ``statistics``; its usual threshold of 3.5 is passed by one
           clean row of seven at n = 6, so the quantiles here are those of 200,000 simulated rows of
           each n
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peakmark import statistics
from peakmark.analysis import significance

QUIET = 0.05
"""The coefficient of variation up to which a machine counts as quiet."""
DRIFT_P = 0.015
HOSTS_P = 0.05
_Z_SPREAD = 2.0537  # 98 % of the standard normal distribution lies below

# n -> what the largest modified z score of a clean row stays below in 95 %; that of its first value
# in 98.5 %.
_OUTLIER = ((6, 5.9), (8, 5.2), (10, 4.6), (12, 4.4), (15, 4.3), (20, 4.0), (30, 3.85), (60, 3.75))
_FIRST = (
    (4, 73.5),
    (5, 12.7),
    (6, 11.8),
    (7, 6.9),
    (9, 5.3),
    (11, 5.05),
    (12, 4.4),
    (15, 3.7),
    (20, 3.4),
    (30, 3.0),
)


@dataclass(frozen=True)
class Outliers:
    """Repetitions that lie far from the others, by their place; ``total`` of all."""

    places: tuple[int, ...]
    total: int


@dataclass(frozen=True)
class HostDifference:
    """The hosts with the highest and the lowest median, by what share the first is above the
    second, and the test's p.
    """

    highest: str
    lowest: str
    share: float
    p: float


def widest(n: int) -> float:
    """The sample coefficient of variation that a quiet machine passes in 2 % of rows of ``n`` >= 2
    values [chi].
    """
    freedom = n - 1
    ninth = 2 / (9 * freedom)
    quantile = freedom * (1 - ninth + _Z_SPREAD * math.sqrt(ninth)) ** 3
    return QUIET * math.sqrt(quantile / freedom)


def is_wide(values: Sequence[float]) -> bool:
    """Whether the values spread more than those of a quiet machine would."""
    summary = statistics.summarise(values)
    return summary.cv is not None and summary.cv > widest(summary.n)


def first_differs(values: Sequence[float]) -> float | None:
    """By what share the first value differs from the median of the others, None unless it stands
    out.
    """
    difference = statistics.first_difference(values)
    if (
        difference is None
        or abs(difference.relative) <= QUIET
        or abs(difference.z) <= _threshold(_FIRST, len(values))
    ):
        return None
    return difference.relative


def drifts(values: Sequence[float]) -> statistics.Drift | None:
    """The trend over the values in the order of time, None unless it is larger than the spread
    explains.
    """
    trend = statistics.drift(values)
    if trend is None or trend.p > DRIFT_P or abs(trend.relative) <= QUIET:
        return None
    return trend


def is_doubtful(values: Sequence[float]) -> bool:
    """Whether what the values tell about themselves, in the order of time, is a doubt."""
    return bool(is_wide(values) or first_differs(values) or drifts(values))


def hosts_differ(by_host: Mapping[str, Sequence[float]]) -> HostDifference | None:
    """By how much the positive values of hosts differ; None unless it is beyond chance.

    Of two hosts the rank sum test counts exactly: three repetitions on each can show nothing, four
    can.
    """
    groups = list(by_host.values())
    if len(groups) < 2:
        return None
    p = statistics.rank_test(*groups) if len(groups) == 2 else significance.kruskal_wallis(groups)
    medians = {host: statistics.median(values) for host, values in by_host.items()}
    highest, lowest = max(medians, key=medians.__getitem__), min(medians, key=medians.__getitem__)
    if p > HOSTS_P or medians[highest] == medians[lowest]:
        return None
    return HostDifference(highest, lowest, medians[highest] / medians[lowest] - 1, p)


def outliers(values: Sequence[float]) -> Outliers:
    """Values far from the others; none of fewer than six, which cannot tell."""
    if len(values) < statistics.ENOUGH:
        return Outliers((), len(values))
    return Outliers(
        tuple(statistics.outliers(values, _threshold(_OUTLIER, len(values)))), len(values)
    )


def _threshold(table: Sequence[tuple[int, float]], n: int) -> float:
    """The entry of the largest n in the table that is not above ``n``: it errs on the side of no
    mark.
    """
    return table[max(0, bisect_right(table, (n, math.inf)) - 1)][1]
