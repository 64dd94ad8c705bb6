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
    [AG]   Alexander and Govern, A New and Simpler Approximation for ANOVA under Variance
           Heterogeneity, Journal of Educational Statistics 19 (1994), pages 91-101
    [W]    Welch, The Generalization of 'Student's' Problem when Several Different Population
           Variances are Involved, Biometrika 34 (1947), pages 28-35
    [Sm]   Smyth, Linear Models and Empirical Bayes Methods for Assessing Differential Expression in
           Microarray Experiments, Statistical Applications in Genetics and Molecular Biology 3
           (2004), article 3
    [BH]   Benjamini and Hochberg, Controlling the False Discovery Rate, Journal of the Royal
           Statistical Society B 57 (1995), pages 289-300
Every function raises ValueError for an empty sequence and for NaN or infinite values. SciPy is imported by the functions that need it, as loading it takes a second.
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

# Below this the smallest and largest value do not enclose the median with 95 %: 1 - 2^(1 - 6) =
# 96.9 %. [DN]
ENOUGH = 6
LEVEL = 0.95
"""Wanted coverage of intervals of the median."""
FEWEST_FREEDOM = 4
"""Degrees of freedom that a difference takes: 3 against 3 values have them, or 5 pairs."""
LIKE_ROWS = 3
"""Of fewer rows none tells anything of another."""
LEAST_SPREAD = 1e-3
"""Relative spread below which repetitions say nothing of the next one."""
EXACT = 400
"""So many values have the distribution of their rank sums counted."""


@dataclass(frozen=True)
class Interval:
    """Values that enclose the median with probability ``level``; ``enough`` is False when n is too
    small for 95 %.
    """

    low: float
    high: float
    level: float
    enough: bool


@dataclass(frozen=True, kw_only=True)
class Summary(Interval):
    """What a table row shows of its repetitions, in their unit, with the interval of their median.

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
        relative: from first to last, as a share of the median.
        p: chance of a trend at least this clear without any drift.
    """

    relative: float
    p: float


def checked(values: Values) -> NDArray[np.float64]:
    """The values as an array. Errors: ValueError when there are none, or one is NaN or infinite."""
    array = np.asarray_chkfinite(values, dtype=np.float64).reshape(-1)
    if array.size == 0:
        raise ValueError("no values: a statistic needs at least one measurement")
    return array


def mean(values: Values) -> float:
    """Arithmetic mean: right for times and other costs ([HB] rule 3)."""
    return math.fsum(checked(values)) / len(values)


def stdev(values: Values) -> float:
    """Sample standard deviation, divisor n - 1, in two passes. Errors: ValueError for n = 1, which
    has no spread.
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
    """Middle value, or the mean of the two middle ones."""
    return float(np.median(checked(values)))


def median_interval(values: Values) -> Interval:
    """Interval of the median from order statistics: no distribution is assumed ([DN]; [HB] rule 6).

    The k-th smallest and k-th largest value, with the largest k whose coverage 1 - 2 P(Binomial(n,
    1/2) < k) is at least 95 %. Below n = 6 no k reaches that: then the range and its true coverage
    1 - 2^(1 - n).
    """
    ordered = np.sort(checked(values))
    rank, level = median_rank(ordered.size)
    return Interval(float(ordered[rank - 1]), float(ordered[-rank]), level, level >= LEVEL)


def median_rank(n: int) -> tuple[int, float]:
    """The k of ``median_interval`` for ``n`` values, and its coverage."""
    below = accumulate(math.comb(n, k) for k in range(n // 2))
    coverage = [1 - 2 * each / 2**n for each in below] or [0.0]
    rank = max(1, sum(each >= LEVEL for each in coverage))
    return rank, coverage[rank - 1]


def drift(values: Values) -> Drift | None:
    """Trend over the order of the values: slope of Theil and Sen [Sen], with the p of Kendall's tau
    [Ken]; None for fewer than four values.
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
    """The p of Kendall's tau; many rows have few repetitions, and so the same ranks."""
    from scipy import stats

    return float(stats.kendalltau(np.arange(len(ranks)), ranks).pvalue)


def rank_test(pairs: Sequence[tuple[Values, Values]]) -> float:
    """Two-sided p of the summed rank sums of pairs of samples [MW], [vE].

    Whatever the distribution, p <= 0.05 happens in at most 5 % of comparisons of like with like.
    Tied values share their mean rank.

    Args:
        pairs: two samples of each point that is compared.

    Returns:
        The chance of ranks at least as uneven if both samples of each pair are of one kind: counted
        for up to ``EXACT`` values in all, else by the normal approximation.
    """
    from scipy import stats

    exact = sum(len(first) + len(second) for first, second in pairs) <= EXACT
    distribution, observed, centre, variance = np.ones(1), 0, 0, 0.0
    for first, second in pairs:
        one, other = checked(first), checked(second)
        both = np.concatenate([one, other])
        twice = np.rint(2 * stats.rankdata(both)).astype(int)  # whole numbers
        n, total = one.size, both.size
        observed += int(twice[:n].sum())
        centre += n * (total + 1)
        variance += n * (total - n) / (total - 1) * float(twice.var())
        if exact:
            ranks = tuple(np.sort(twice).tolist())
            distribution = np.convolve(distribution, _rank_sums(ranks, n))
    distance = abs(observed - centre)
    if not exact:
        beyond = max(0.0, distance - 1)
        return math.erfc(beyond / math.sqrt(2 * variance)) if variance else 1.0
    sums = np.abs(np.arange(distribution.size) - centre)
    return float(min(1.0, distribution[sums >= distance].sum()))


@lru_cache(maxsize=256)  # without ties all samples of the same sizes have the same ranks
def _rank_sums(ranks: tuple[int, ...], n: int) -> NDArray[np.float64]:
    """The share of the sets of ``n`` ranks that have each sum, without any difference."""
    ways = np.zeros((n + 1, sum(ranks) + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank]
    shares: NDArray[np.float64] = ways[n] / ways[n].sum()
    return shares


def kruskal_wallis(groups: Sequence[Values]) -> float:
    """The p of at least two samples with ranks so uneven if all were of one kind [KW]."""
    from scipy import stats

    values = np.concatenate([checked(group) for group in groups])
    return 1.0 if np.ptp(values) == 0 else float(stats.kruskal(*groups).pvalue)


def alexander_govern(groups: Sequence[Values]) -> float:
    """The p of at least two samples of two or more positive values whose mean logarithms are so uneven
    if all were equal, each sample with its own variance [AG]; 1 where a sample does not vary.
    """
    from scipy import stats

    logs = [np.log(checked(group)) for group in groups]
    varies = all(np.ptp(sample) > 0 for sample in logs)
    return float(stats.alexandergovern(*logs).pvalue) if varies else 1.0


class Change(NamedTuple):
    """Of a row: the mean difference of the logarithms of two samples, half its interval, its p."""

    mean: float
    half: float
    p: float


def changes(
    first: NDArray[np.float64], second: NDArray[np.float64], confidence: float = 0.95
) -> list[Change]:
    """Moderated t tests of like rows [Sm].

    Args:
        first: rows x repetitions, logarithms; NaN where there is none.
        second: the same; without columns, ``first`` has the differences of pairs.
        confidence: level of the intervals.

    Returns:
        A change for each row, with NaN for too few values.
    """
    from scipy import stats

    samples = [first, second] if second.shape[1] else [first]
    counts = np.array([np.isfinite(values).sum(axis=1) for values in samples])
    freedom = (counts - 1.0).sum(axis=0)
    few = (freedom < FEWEST_FREEDOM) | (counts.min(axis=0) < 2)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # of rows without values
        means = [np.nanmean(values, axis=1) for values in samples]
        errors = [values - mean[:, None] for values, mean in zip(samples, means, strict=True)]
        squares = np.nansum(np.hstack(errors) ** 2, axis=1)
        variance, freedom = _moderated(squares / freedom, freedom)
        mean = means[1] - means[0] if len(means) > 1 else means[0]
        parts = 1.0 / counts
        error = np.sqrt(variance * parts.sum(axis=0))
        half = error * stats.t.isf((1 - confidence) / 2, freedom)
        beyond = stats.t.sf(np.abs(mean) / error, freedom)
        p = np.where(mean == 0, 1.0, 2 * beyond)
    half[few] = p[few] = math.nan
    return [Change(*map(float, row)) for row in zip(mean, half, p, strict=True)]


def stratified_welch(pairs: Sequence[tuple[Values, Values]]) -> float:
    """Two-sided p of Welch's test on the mean difference of logarithms over several points [W].

    Each point has its own variances; the degrees of freedom are Satterthwaite's. A spread below
    ``LEAST_SPREAD`` counts as that, because equal values are rounded values.

    Args:
        pairs: two samples of positive values of each point, at least two values each.
    """
    from scipy import stats

    difference, variance, spread = 0.0, 0.0, 0.0
    for first, second in pairs:
        logs = [np.log(checked(values)) for values in (first, second)]
        difference += float(logs[0].mean() - logs[1].mean())
        for sample in logs:
            part = max(float(sample.var(ddof=1)), LEAST_SPREAD**2) / sample.size
            variance += part
            spread += part**2 / (sample.size - 1)
    t = abs(difference) / math.sqrt(variance)
    return float(2 * stats.t.sf(t, variance**2 / spread))


def less_others(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two samples of like rows without what the rows have in common in each repetition.

    Args:
        first: rows x repetitions, logarithms; NaN where there is none.
        second: the same at another time.

    Returns:
        The samples, less the median of the other rows' distances from their medians over both; NaN
        of fewer than ``LIKE_ROWS`` rows.
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
    """Variances drawn towards the median of like rows, and their degrees of freedom [Sm].

    The variances of the rows are taken as draws from an inverse gamma distribution, of which the
    moments tell how many degrees of freedom the other rows are worth; the median is not moved by
    few rows that differ.
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
    """Which of many claims stand at a false discovery rate of ``level`` [BH].

    Where nothing differs at all, a claim among all rows is as rare as ``level``.

    Args:
        chances: the p of each claim.
        level: between 0 and 1.
    """
    from scipy import stats

    return list(stats.false_discovery_control(chances) <= level) if chances else []


def summarise(values: Values) -> Summary:
    """All that a row shows of its repetitions; see Summary."""
    array = checked(values)
    average, deviation = mean(array), stdev(array) if array.size > 1 else None
    return Summary(
        **vars(median_interval(array)),
        n=int(array.size),
        mean=average,
        stdev=deviation,
        cv=None if deviation is None or average == 0 else deviation / abs(average),
        median=median(array),
        minimum=float(array.min()),
        maximum=float(array.max()),
    )
