"""Statistics of repeated measurements, as pure functions on sequences of numbers.

No values are removed, and only functions that say so assume a distribution. Sources:
    [HB]   Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems, SC 2015
    [DN]   David and Nagaraja, Order Statistics, 3rd edition 2003, section 7.1
    [Sen]  Sen, Estimates of the Regression Coefficient Based on Kendall's Tau, JASA 63 (1968),
           pages 1379-1389
    [Ken]  Kendall, Rank Correlation Methods, 4th edition 1970, chapters 4 and 5
    [Sm]   Smyth, Linear Models and Empirical Bayes Methods for Assessing Differential Expression in
           Microarray Experiments, Statistical Applications in Genetics and Molecular Biology 3
           (2004), article 3
    [BH]   Benjamini and Hochberg, Controlling the False Discovery Rate, Journal of the Royal
           Statistical Society B 57 (1995), pages 289-300

Every function raises ValueError for an empty sequence and for NaN or infinite values. Functions that
need SciPy import it themselves, because loading it takes a second.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = Sequence[float] | NDArray[np.float64]

ENOUGH = 6
"""Fewest values whose range contains the median with a probability of 95 %: 1 - 2^(1 - 6) = 96.9 % [DN]."""
LEVEL = 0.95
"""Coverage that an interval of the median should have."""
FEWEST_FREEDOM = 4
"""Fewest degrees of freedom for a test: two samples of 3 values, or 5 pairs."""
LEAST_LIKE_ROWS = 3
"""Fewest rows of one kind from which a common variance or a common change is estimated."""
LEAST_SPREAD = 1e-3
"""Smallest relative spread that tests assume, because equal values are rounded values."""


@dataclass(frozen=True)
class Interval:
    """An interval that contains the median.

    Attributes:
        low: lower end.
        high: upper end.
        level: probability that the interval contains the median.
    """

    low: float
    high: float
    level: float


@dataclass(frozen=True, kw_only=True)
class Summary(Interval):
    """Statistics of a row's repetitions, with the interval of their median.

    Attributes:
        n: number of repetitions.
        mean: arithmetic mean.
        stdev: sample standard deviation (divisor n - 1); None for n = 1.
        cv: standard deviation divided by the mean; None for n = 1 or a mean of 0.
        median: median.
        minimum: smallest value.
        maximum: largest value.
    """

    n: int
    mean: float
    stdev: float | None
    cv: float | None
    median: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class Drift:
    """Change over the order of repetitions.

    Attributes:
        relative: change from the first to the last value, as a share of the median.
        p: probability of an equally clear or clearer trend if there is no drift.
    """

    relative: float
    p: float


def checked(values: Values) -> NDArray[np.float64]:
    """Return the values as an array.

    Raises:
        ValueError: there are no values, or a value is NaN or infinite.
    """
    array = np.asarray_chkfinite(values, dtype=np.float64).reshape(-1)
    if array.size == 0:
        raise ValueError("no values: a statistic needs at least one measurement")
    return array


def mean(values: Values) -> float:
    """Return the arithmetic mean, which is right for times and other costs ([HB] rule 3)."""
    return math.fsum(checked(values)) / len(values)


def stdev(values: Values) -> float:
    """Return the sample standard deviation (divisor n - 1), computed in two passes.

    Errors: ValueError for a single value.
    """
    array = checked(values)
    if array.size < 2:
        raise ValueError("a standard deviation needs at least two values")
    # Divide by the largest distance, so that squares neither overflow nor underflow.
    distance = array - mean(array)
    scale = float(np.abs(distance).max())
    if scale == 0:
        return 0.0
    squares = math.fsum((distance / scale) ** 2)
    return scale * math.sqrt(squares / (array.size - 1))


def median(values: Values) -> float:
    """Return the middle value, or the mean of the two middle ones."""
    return float(np.median(checked(values)))


def median_interval(values: Values) -> Interval:
    """Return the interval of the median from order statistics, which assume no distribution.

    The interval extends from the k-th smallest to the k-th largest value. k is the largest number
    for which the coverage 1 - 2 P(Binomial(n, 1/2) < k) is at least 95 %. For n < 6 there is no such k.
    The interval is then the range, with a coverage of 1 - 2^(1 - n). Source: [DN]; [HB] rule 6.
    """
    ordered = np.sort(checked(values))
    rank, level = median_rank(ordered.size)
    return Interval(float(ordered[rank - 1]), float(ordered[-rank]), level)


def median_rank(n: int) -> tuple[int, float]:
    """Return k of ``median_interval`` for ``n`` values, and the coverage of the interval."""
    # coverage[k - 1] is that of k. The sum of the binomials below k, divided by 2^n, is P(Binomial < k).
    below = accumulate(math.comb(n, k) for k in range(n // 2))
    coverage = [1 - 2 * each / 2**n for each in below] or [0.0]  # a single value covers nothing
    # The coverage falls as k grows, so the number of values of k that cover enough is the largest of them.
    rank = max(1, sum(each >= LEVEL for each in coverage))
    return rank, coverage[rank - 1]


def drift(values: Values) -> Drift | None:
    """Return the trend over the order of the values; None for fewer than four values.

    Three values in perfect order already have p = 1/3, so they show no trend. The slope is the Theil-Sen
    estimate [Sen], and p comes from Kendall's tau [Ken].
    """
    array = checked(values)
    if array.size < 4:
        return None
    from scipy import stats

    ranks = np.unique(array, return_inverse=True)[1]
    p = _trend_p(tuple(ranks.tolist()))
    if math.isnan(p):  # all values are equal
        return Drift(0.0, 1.0)
    change = float(stats.theilslopes(array).slope) * (array.size - 1)
    # For a median of 0, divide by the smallest float: ``relative`` is then huge or infinite.
    centre = abs(median(array)) or math.ulp(0.0)
    return Drift(change / centre, p)


@lru_cache(maxsize=100_000)
def _trend_p(ranks: tuple[int, ...]) -> float:
    """Return p of Kendall's tau. It is cached, because rows with few repetitions often share ranks."""
    from scipy import stats

    return float(stats.kendalltau(np.arange(len(ranks)), ranks).pvalue)


class Change(NamedTuple):
    """Difference of two samples of a row.

    Attributes:
        mean: mean difference of the logarithms.
        half: half the width of the confidence interval of ``mean``.
        p: p of the difference.
    """

    mean: float
    half: float
    p: float


def changes(
    first: NDArray[np.float64], second: NDArray[np.float64], confidence: float = 0.95
) -> list[Change]:
    """Return the change of each row by moderated t tests over rows of one kind [Sm].

    Args:
        first: first sample of each row: array of rows x repetitions with logarithms; NaN for a missing
            repetition.
        second: second sample, an array of as many rows. If it has no columns, ``first`` has the
            differences of pairs instead of a sample.
        confidence: level of the intervals.

    Returns:
        A change for each row. Its ``half`` and ``p`` are NaN if the row has too few values.
    """
    from scipy import stats

    samples = [first]
    if second.shape[1]:
        samples.append(second)
    counts = np.array([np.isfinite(values).sum(axis=1) for values in samples])
    freedom = (counts - 1.0).sum(axis=0)
    # A sample of one value has no spread.
    few = (freedom < FEWEST_FREEDOM) | (counts.min(axis=0) < 2)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # of rows without values
        means = [np.nanmean(values, axis=1) for values in samples]
        errors = [values - centre[:, None] for values, centre in zip(samples, means, strict=True)]
        # Compute the pooled variance of each row, moderated by the variances of the other rows.
        squares = np.nansum(np.hstack(errors) ** 2, axis=1)
        variance, freedom = _moderated(squares / freedom, freedom)
        # Compute the difference, half the width of its interval, and p.
        change = means[0]
        if len(means) > 1:
            change = means[1] - means[0]
        # The variance of a mean of n values is that of a value / n; those of two means add up.
        parts = 1.0 / counts
        error = np.sqrt(variance * parts.sum(axis=0))
        half = error * stats.t.isf((1 - confidence) / 2, freedom)
        beyond = stats.t.sf(np.abs(change) / error, freedom)
        p = np.where(change == 0, 1.0, 2 * beyond)  # the error may be 0 too: 0/0
    half[few] = p[few] = math.nan
    return [Change(*map(float, row)) for row in zip(change, half, p, strict=True)]


def _moderated(
    variance: NDArray[np.float64], freedom: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return moderated variances of all rows, and their degrees of freedom [Sm].

    Each variance is combined with a typical variance of all rows. This assumes that the variances are
    drawn from an inverse gamma distribution. The moments of this distribution give the degrees of
    freedom, and so the weight, of the typical variance. The typical variance is a median, which a few
    different rows do not change.
    """
    from scipy import stats

    known = (freedom > 0) & np.isfinite(variance)
    if known.sum() < LEAST_LIKE_ROWS or not variance[known].any():
        return variance, freedom
    values, certain = variance[known], freedom[known]
    # The median of a sample variance is the true variance x chi2.median(f) / f.
    typical = np.median(values / stats.chi2.median(certain) * certain)
    # The squared relative spread of sample variances is 2 / f by chance, if the true variances are equal. If
    # they have a squared relative spread d, it is d + 2 / f + d x 2 / f. Solve this for d: the larger it is, the
    # less the typical variance weighs: as much as a sample variance with this spread, which has 2 / d degrees of
    # freedom, but not more than those of all rows together.
    by_chance = (2 / certain).mean()
    difference = (values.var(ddof=1) / values.mean() ** 2 - by_chance) / (1 + by_chance)
    weight = min(2 / max(difference, 1e-9), certain.sum())
    total = freedom + weight
    return (weight * typical + freedom * variance) / total, total


def discoveries(chances: Sequence[float], level: float) -> list[bool]:
    """Return for each claim of a difference whether it holds at a false discovery rate of ``level`` [BH].

    If nothing differs, the probability that any claim holds is ``level``.

    Args:
        chances: p of each claim: the probability of such a difference if nothing differs.
        level: false discovery rate between 0 and 1.
    """
    from scipy import stats

    if not chances:
        return []
    return list(stats.false_discovery_control(chances) <= level)


def summarise(values: Values) -> Summary:
    """Return the statistics of a row's repetitions."""
    array = checked(values)
    average = mean(array)
    deviation = relative = None
    if array.size > 1:
        deviation = stdev(array)
        if average != 0:
            relative = deviation / abs(average)
    return Summary(
        **vars(median_interval(array)),  # low, high and level
        n=int(array.size),
        mean=average,
        stdev=deviation,
        cv=relative,
        median=median(array),
        minimum=float(array.min()),
        maximum=float(array.max()),
    )
