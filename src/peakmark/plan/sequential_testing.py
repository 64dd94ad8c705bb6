"""How sure the interval of a median must be at each look at a row that is repeated until its
interval is narrow.

Each look at the values is one more chance to stop by luck. So the 5 % of rows whose interval may
miss the median are divided among the looks before anything is measured: whenever and for whatever
reason a row ends, its interval misses in no more cases than those of all looks together (Boole's
inequality). To spend an error over looks: Lan and DeMets, Discrete Sequential Boundaries for
Clinical Trials, Biometrika 70 (1983), pages 659-663.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from peakmark import statistics
from peakmark.config.types import Criterion
from peakmark.statistics import Summary, Values

ERROR = 0.05


@cache
def shares(criterion: Criterion) -> dict[int, float]:
    """Repetitions at a look -> the share of cases in which its interval may miss; their sum is at
    most ``ERROR``.

    The first look, at which most rows end, gets half of it, each later one an equal part of what is
    left then. Where so few values cannot be that sure, the look gets what their whole range takes:
    the first one in any case, a later one up to half of what is left.
    """
    left, spent = ERROR, {}
    for place, n in enumerate(criterion.counts):
        least = uncovered(n, 1)
        allowed = left / (len(criterion.counts) - place) if place else left / 2
        if allowed < least <= (left / 2 if place else left):
            allowed = least
        spent[n] = max(
            (missed for k in range(1, n // 2 + 1) if (missed := uncovered(n, k)) <= allowed),
            default=0.0,
        )
        left -= spent[n]
    return spent


def uncovered(n: int, k: int) -> float:
    """How often the k-th smallest and the k-th largest of ``n`` values do not enclose the median."""
    return float(2 * sum(math.comb(n, below) for below in range(k)) / 2**n)


def summarise(values: Values, criterion: Criterion | None) -> Summary:
    """The summary of a row's repetitions, whose interval is that of its last look; without a
    criterion the usual one.

    Values that came between two looks are held to what the next one may miss.
    """
    summary = statistics.summarise(values)
    if criterion is None:
        return summary
    by_count = shares(criterion)
    share = by_count[next((n for n in criterion.counts if n >= summary.n), criterion.counts[-1])]
    interval = statistics.median_interval(values, 1 - share)
    level = 1 - ERROR if interval.enough else min(interval.level, 1 - ERROR)
    return replace(
        summary, low=interval.low, high=interval.high, level=level, enough=interval.enough
    )
