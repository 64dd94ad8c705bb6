"""Statistics of repeated measurements: pure functions on sequences of numbers, each with its
source.

Nothing is removed and nothing assumed normal. Sources:
    [HB]   Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems, SC 2015
    [DN]   David and Nagaraja, Order Statistics, 3rd edition 2003, section 7.1
    [Sen]  Sen, Estimates of the Regression Coefficient Based on Kendall's Tau, JASA 63 (1968),
           pages 1379-1389
    [Ken]  Kendall, Rank Correlation Methods, 4th edition 1970, chapters 4 and 5
    [MW]   Mann and Whitney, On a Test of Whether One of Two Random Variables is Stochastically
           Larger than the Other, Annals of Mathematical Statistics 18 (1947), pages 50-60
    [vE]   van Elteren, On the Combination of Independent Two-Sample Tests of Wilcoxon, Bulletin of
           the International Statistical Institute 37 (1960), pages 351-361, with equal weights
    [KW]   Kruskal and Wallis, Use of Ranks in One-Criterion Variance Analysis, JASA 47 (1952),
           pages 583-621
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
"""Fewest values whose range encloses the median with 95 %: 1 - 2^(1 - 6) = 96.9 % [DN]."""
LEVEL = 0.95
"""Coverage that intervals of the median aim at."""
FEWEST_FREEDOM = 4
"""Fewest degrees of freedom for a test: 3 against 3 values, or 5 pairs."""
LIKE_ROWS = 3
"""Fewest rows from which the variance or common change of their kind is estimated."""
LEAST_SPREAD = 1e-3
"""Smallest relative spread that tests assume: equal values are rounded values."""
EXACT = 400
"""Most values for which the distribution of rank sums is counted exactly."""


@dataclass(frozen=True)
class Interval:
    """An interval that encloses the median with probability ``level``. ``enough`` is False where n
    is too small for 95 %.
    """

    low: float
    high: float
    level: float
    enough: bool


@dataclass(frozen=True, kw_only=True)
class Summary(Interval):
    """Statistics of a row's repetitions in their unit, with the interval of their median.

    stdev, cv      sample standard deviation (n - 1) and its share of the mean; None for n = 1 (cv
                   also for mean 0)
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
        relative: change from first to last, as a share of the median.
        p: probability of a trend at least this clear without any drift.
    """

    relative: float
    p: float


def checked(values: Values) -> NDArray[np.float64]:
    """Return the values as an array. Errors: ValueError when there are none, or one is NaN or
    infinite.
    """
    array = np.asarray_chkfinite(values, dtype=np.float64).reshape(-1)
    if array.size == 0:
        raise ValueError("no values: a statistic needs at least one measurement")
    return array


def mean(values: Values) -> float:
    """Return the arithmetic mean, which is right for times and other costs ([HB] rule 3)."""
    return math.fsum(checked(values)) / len(values)


def stdev(values: Values) -> float:
    """Return the sample standard deviation (divisor n - 1), computed in two passes. Errors:
    ValueError for n = 1.
    """
    array = checked(values)
    if array.size < 2:
        raise ValueError("a standard deviation needs at least two values")
    # Divided by the largest distance, squares can neither overflow nor vanish.
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
    """Return the interval of the median from order statistics, which assume no distribution ([DN];
    [HB] rule 6).

    It reaches from the k-th smallest to the k-th largest value. k is the largest number whose
    coverage 1 - 2 P(Binomial(n, 1/2) < k) is at least 95 %. Below n = 6 no k reaches that: the
    interval is the range, with its true coverage 1 - 2^(1 - n).
    """
    ordered = np.sort(checked(values))
    rank, level = median_rank(ordered.size)
    return Interval(float(ordered[rank - 1]), float(ordered[-rank]), level, level >= LEVEL)


def median_rank(n: int) -> tuple[int, float]:
    """Return the k of ``median_interval`` for ``n`` values, and its coverage."""
    below = accumulate(math.comb(n, k) for k in range(n // 2))
    coverage = [1 - 2 * each / 2**n for each in below] or [0.0]
    rank = max(1, sum(each >= LEVEL for each in coverage))
    return rank, coverage[rank - 1]


def drift(values: Values) -> Drift | None:
    """Return the trend over the order of the values; None for fewer than four.

    The slope is that of Theil and Sen [Sen], the p that of Kendall's tau [Ken].
    """
    from scipy import stats

    array = checked(values)
    if array.size < 4:
        return None
    p = _trend_p(tuple(np.unique(array, return_inverse=True)[1].tolist()))
    if math.isnan(p):  # all values are equal
        return Drift(0.0, 1.0)
    change = float(stats.theilslopes(array).slope) * (array.size - 1)
    centre = abs(median(array)) or math.ulp(0.0)
    return Drift(change / centre, p)


@lru_cache(maxsize=100_000)
def _trend_p(ranks: tuple[int, ...]) -> float:
    """Return the p of Kendall's tau. Cached: rows with few repetitions often have the same ranks."""
    from scipy import stats

    return float(stats.kendalltau(np.arange(len(ranks)), ranks).pvalue)


def rank_test(pairs: Sequence[tuple[Values, Values]]) -> float:
    """Return the two-sided p of the summed rank sums of pairs of samples [MW], [vE].

    Whatever the distribution, p <= 0.05 happens in at most 5 % of comparisons of like with like.
    Tied values share their mean rank.

    Args:
        pairs: two samples for each point of the comparison.

    Returns:
        Probability of ranks at least as uneven if both samples of each pair had one distribution.
        It is exact up to ``EXACT`` values in all, and from the normal approximation beyond.
    """
    from scipy import stats

    exact = sum(len(first) + len(second) for first, second in pairs) <= EXACT
    distribution, observed, centre, variance = np.ones(1), 0, 0, 0.0
    # Add up rank sum, expectation and variance of the points. Ranks are doubled to stay whole.
    for first, second in pairs:
        one, other = checked(first), checked(second)
        both = np.concatenate([one, other])
        twice = np.rint(2 * stats.rankdata(both)).astype(int)
        n, total = one.size, both.size
        observed += int(twice[:n].sum())
        centre += n * (total + 1)
        variance += n * (total - n) / (total - 1) * float(twice.var())
        if exact:
            ranks = tuple(np.sort(twice).tolist())
            distribution = np.convolve(distribution, _rank_sums(ranks, n))
    distance = abs(observed - centre)
    # Many values: normal approximation with a correction for continuity.
    if not exact:
        if not variance:
            return 1.0
        beyond = max(0.0, distance - 1)
        return math.erfc(beyond / math.sqrt(2 * variance))
    # Few values: the share of all sums at least as far from the centre.
    sums = np.abs(np.arange(distribution.size) - centre)
    return float(min(1.0, distribution[sums >= distance].sum()))


@lru_cache(maxsize=256)  # without ties all samples of the same sizes have the same ranks
def _rank_sums(ranks: tuple[int, ...], n: int) -> NDArray[np.float64]:
    """Return the share of the sets of ``n`` ranks that have each sum if the samples do not differ."""
    ways = np.zeros((n + 1, sum(ranks) + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank]
    shares: NDArray[np.float64] = ways[n] / ways[n].sum()
    return shares


def kruskal_wallis(groups: Sequence[Values]) -> float:
    """Return the p of the Kruskal-Wallis test of at least two samples [KW]."""
    from scipy import stats

    values = np.concatenate([checked(group) for group in groups])
    if np.ptp(values) == 0:
        return 1.0
    return float(stats.kruskal(*groups).pvalue)


class Change(NamedTuple):
    """Difference of two samples of a row: mean difference of logarithms, half its interval, and p."""

    mean: float
    half: float
    p: float


def changes(
    first: NDArray[np.float64], second: NDArray[np.float64], confidence: float = 0.95
) -> list[Change]:
    """Return the change of each row by moderated t tests over rows of one kind [Sm].

    Args:
        first: rows x repetitions, logarithms; NaN for a missing repetition.
        second: the second sample; without columns, ``first`` holds differences of pairs.
        confidence: level of the intervals.

    Returns:
        A change for each row, of NaN where a row has too few values.
    """
    from scipy import stats

    samples = [first]
    if second.shape[1]:
        samples.append(second)
    counts = np.array([np.isfinite(values).sum(axis=1) for values in samples])
    freedom = (counts - 1.0).sum(axis=0)
    few = (freedom < FEWEST_FREEDOM) | (counts.min(axis=0) < 2)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # of rows without values
        means = [np.nanmean(values, axis=1) for values in samples]
        errors = [values - mean[:, None] for values, mean in zip(samples, means, strict=True)]
        # Pooled variance of each row, drawn towards that of the other rows.
        squares = np.nansum(np.hstack(errors) ** 2, axis=1)
        variance, freedom = _moderated(squares / freedom, freedom)
        # Difference, half its interval, and its p.
        mean = means[0]
        if len(means) > 1:
            mean = means[1] - means[0]
        parts = 1.0 / counts
        error = np.sqrt(variance * parts.sum(axis=0))
        half = error * stats.t.isf((1 - confidence) / 2, freedom)
        beyond = stats.t.sf(np.abs(mean) / error, freedom)
        p = np.where(mean == 0, 1.0, 2 * beyond)
    half[few] = p[few] = math.nan
    return [Change(*map(float, row)) for row in zip(mean, half, p, strict=True)]


def less_others(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two samples of rows of one kind without the changes that the rows have in common.

    Args:
        first: rows x repetitions, logarithms; NaN for a missing repetition.
        second: the sample of another time.

    Returns:
        The samples less the median, over the other rows, of the distances from each row's median.
        NaN for fewer than ``LIKE_ROWS`` rows.
    """
    logs = np.hstack([first, second])
    if len(logs) < LIKE_ROWS:
        return np.full_like(first, math.nan), np.full_like(second, math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows without values
        distances = logs - np.nanmedian(logs, axis=1, keepdims=True)
        numbers = range(len(logs))
        middle = [np.nanmedian(np.delete(distances, row, axis=0), axis=0) for row in numbers]
    others = logs - np.array(middle)
    return others[:, : first.shape[1]], others[:, first.shape[1] :]


def _moderated(
    variance: NDArray[np.float64], freedom: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return variances drawn towards the median of all rows, and their degrees of freedom [Sm].

    The variances are taken as draws from an inverse gamma distribution. Its moments tell how many
    degrees of freedom the other rows are worth. The median resists a few rows that differ.
    """
    from scipy import stats

    known = (freedom > 0) & np.isfinite(variance)
    if known.sum() < LIKE_ROWS or not variance[known].any():
        return variance, freedom
    values, certain = variance[known], freedom[known]
    typical = np.median(values / stats.chi2.median(certain) * certain)
    by_chance = (2 / certain).mean()
    differ = (values.var(ddof=1) / values.mean() ** 2 - by_chance) / (1 + by_chance)
    alike = min(2 / max(differ, 1e-9), certain.sum())
    total = freedom + alike
    return (alike * typical + freedom * variance) / total, total


def discoveries(chances: Sequence[float], level: float) -> list[bool]:
    """Return which claims hold at a false discovery rate of ``level`` [BH].

    Where nothing differs, the probability of any claim is ``level``.

    Args:
        chances: the p of each claim.
        level: between 0 and 1.
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
        **vars(median_interval(array)),
        n=int(array.size),
        mean=average,
        stdev=deviation,
        cv=relative,
        median=median(array),
        minimum=float(array.min()),
        maximum=float(array.max()),
    )
