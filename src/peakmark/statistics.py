"""Statistics of repeated measurements: pure functions on sequences of numbers, each with its
source.

Nothing is removed and nothing assumed normal. Sources:
    [HB]   Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems, SC 2015
    [DN]   David and Nagaraja, Order Statistics, 3rd edition 2003, section 7.1
    [IH]   Iglewicz and Hoaglin, How to Detect and Handle Outliers, ASQC 1993
    [Sen]  Sen, Estimates of the Regression Coefficient Based on Kendall's Tau, JASA 63 (1968),
           pages 1379-1389
    [Ken]  Kendall, Rank Correlation Methods, 4th edition 1970, chapters 4 and 5
    [MW]   Mann and Whitney, On a Test of Whether One of Two Random Variables is Stochastically
           Larger than the Other, Annals of Mathematical Statistics 18 (1947), pages 50-60
    [ET]   Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3 (percentile
           interval)
Every function raises ValueError for an empty sequence and for NaN or infinite values, naming the
first of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = Sequence[float] | NDArray[np.float64]

# Below this the smallest and largest value do not enclose the median with 95 %: 1 - 2^(1 - 6) =
# 96.9 %. [DN]
ENOUGH = 6
OUTLIER_Z = 3.5  # [IH]


@dataclass(frozen=True)
class Interval:
    """Values that enclose the median with probability ``level``; ``enough`` is False when n is too
    small for 95 %.
    """

    low: float
    high: float
    level: float
    enough: bool


@dataclass(frozen=True)
class Summary:
    """What a table row shows of its repetitions, in their unit.

    harmonic_mean  of rates: total work / total time for equal work; None unless all values are
                   positive
    stdev, cv      sample standard deviation (n - 1) and its share of the mean; None for n = 1 (cv
                   also for mean 0)
    mad            median absolute deviation, not scaled
    low, high      interval of the median, ``level`` the probability that it really holds,
                   ``enough`` whether that is the 95 % asked for: with n < 6 the whole range is less
                   sure than that
    """

    n: int
    mean: float
    harmonic_mean: float | None
    stdev: float | None
    cv: float | None
    median: float
    minimum: float
    maximum: float
    mad: float
    low: float
    high: float
    level: float
    enough: bool


@dataclass(frozen=True)
class Drift:
    """Change over the order of repetitions: ``relative`` from first to last as a share of the
    median, and how sure.

    slope  per repetition, median of the slopes of all pairs
    tau    from -1 (always falling) to 1 (always rising)
    p      chance of a tau at least this far from 0 without any drift
    """

    slope: float
    relative: float
    tau: float
    p: float


@dataclass(frozen=True)
class FirstDifference:
    """The first repetition against the others: relative to their median, and in their modified z
    scores.
    """

    relative: float
    z: float


def checked(values: Values) -> NDArray[np.float64]:
    """The values as an array. Errors: ValueError when there are none, or one is NaN or infinite."""
    array = np.asarray(values, dtype=np.float64).reshape(-1)
    if array.size == 0:
        raise ValueError("no values: a statistic needs at least one measurement")
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise ValueError(
            f"value {int(wrong[0])} of {array.size} is {array[wrong[0]]}: only finite numbers are measurements"
        )
    return array


def mean(values: Values) -> float:
    """Arithmetic mean: right for times and other costs, see harmonic_mean for rates ([HB] rule 3)."""
    return math.fsum(checked(values)) / len(values)


def harmonic_mean(values: Values) -> float:
    """n / sum(1 / x): the mean of rates over equal work ([HB] rule 3). Errors: ValueError unless
    all are positive.
    """
    array = checked(values)
    lowest = float(array.min())
    if lowest <= 0:
        raise ValueError(f"a harmonic mean needs positive rates, the smallest value is {lowest}")
    return (
        lowest * array.size / math.fsum(lowest / array)
    )  # scaled: the reciprocal of a tiny value overflows


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
    return scale * math.sqrt(math.fsum((distance / scale) ** 2) / (array.size - 1))


def median(values: Values) -> float:
    """Middle value, or the mean of the two middle ones."""
    ordered = np.sort(checked(values))
    half = ordered.size // 2
    if ordered.size % 2:
        return float(ordered[half])
    return float(ordered[half - 1] + (ordered[half] - ordered[half - 1]) / 2)


def mad(values: Values) -> float:
    """Median of the absolute distances from the median ([IH]); times 1.4826 it estimates a normal
    deviation.
    """
    return median(np.abs(checked(values) - median(values)))


def median_interval(values: Values, confidence: float = 0.95) -> Interval:
    """Interval of the median from order statistics: no distribution is assumed ([DN]; [HB] rule 6).

    The k-th smallest and k-th largest value, with the largest k whose coverage 1 - 2 P(Binomial(n,
    1/2) < k) is at least ``confidence``. Below n = 6 no k reaches 95 %: then the range and its true
    coverage 1 - 2^(1 - n).
    """
    ordered = np.sort(checked(values))
    n = ordered.size
    below, chosen, level = 0, 1, 1 - 2.0 ** (1 - n)
    for k in range(1, n // 2 + 1):
        below += math.comb(n, k - 1)
        coverage = 1 - 2 * below / 2**n
        if coverage < confidence:
            break
        chosen, level = k, coverage
    return Interval(
        float(ordered[chosen - 1]), float(ordered[n - chosen]), level, level >= confidence
    )


def modified_z(values: Values, against: Values | None = None) -> NDArray[np.float64]:
    """0.6745 (x - median) / MAD for each value ([IH]), by the median and MAD of ``against``
    (default: the values).

    Where more than half of the values agree, MAD is 0: then the mean absolute deviation takes its
    place with the factor
    1 / 1.253314 ([IH]); where all agree, a value that differs is infinitely far off.
    """
    array = checked(values)
    reference = array if against is None else checked(against)
    centre = median(reference)
    spread = mad(reference) / 0.6745
    if spread == 0:
        spread = 1.253314 * mean(np.abs(reference - centre))
    if spread == 0:
        return np.where(array == centre, 0.0, np.copysign(np.inf, array - centre))
    return np.asarray((array - centre) / spread, dtype=np.float64)


def outliers(values: Values, threshold: float = OUTLIER_Z) -> list[int]:
    """Positions of values whose modified z score is beyond 3.5 [IH]: to be named, never removed."""
    return [int(index) for index in np.flatnonzero(np.abs(modified_z(values)) > threshold)]


def first_difference(values: Values) -> FirstDifference | None:
    """How far the first repetition is from the others; None for fewer than four values, which tell
    nothing.
    """
    array = checked(values)
    if array.size < 4:
        return None
    rest = array[1:]
    centre = median(rest)
    relative = (
        (float(array[0]) - centre) / abs(centre)
        if centre != 0
        else math.copysign(math.inf, float(array[0]))
    )
    return FirstDifference(
        0.0 if array[0] == centre else relative, float(modified_z(array[:1], rest)[0])
    )


def drift(values: Values) -> Drift | None:
    """Trend over the order of the values: Theil-Sen slope [Sen] and Kendall's tau with its p [Ken];
    None for n < 4.
    """
    array = checked(values)
    n = array.size
    if n < 4:
        return None
    first, second = np.triu_indices(n, 1)
    rise = array[second] - array[first]
    slope = median(rise / (second - first))
    concordance = int(np.sign(rise).sum())
    centre = median(array)
    relative = (
        slope * (n - 1) / abs(centre)
        if centre != 0
        else (0.0 if slope == 0 else math.copysign(math.inf, slope))
    )
    return Drift(slope, relative, concordance / (n * (n - 1) / 2), _kendall_p(array, concordance))


def _kendall_p(array: NDArray[np.float64], concordance: int) -> float:
    """Two-sided p of Kendall's S: counted for up to 20 values without ties, else by the normal
    approximation [Ken].
    """
    n = array.size
    _, ties = np.unique(array, return_counts=True)
    if n <= 20 and ties.max() == 1:
        # Of the n! orders, how many have a given number of discordant pairs.
        counts = [1]
        for length in range(2, n + 1):
            longer = [0] * (len(counts) + length - 1)
            for pairs, count in enumerate(counts):
                for shift in range(length):
                    longer[pairs + shift] += count
            counts = longer
        total = n * (n - 1) // 2
        extreme = sum(
            count
            for pairs, count in enumerate(counts)
            if abs(total - 2 * pairs) >= abs(concordance)
        )
        return min(1.0, extreme / math.factorial(n))
    variance = (n * (n - 1) * (2 * n + 5) - int((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance == 0:
        return 1.0
    z = max(0.0, abs(concordance) - 1) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def can_differ(first: int, second: int, confidence: float = 0.95) -> bool:
    """Whether samples of these sizes can show a difference at all: of all orders of n + m values,
    those with the two samples wholly apart are 2 / C(n + m, n), the least two-sided p there is
    [MW]. 3 against 3 cannot, 4 against 4 can.
    """
    return first > 0 and second > 0 and 2 / math.comb(first + second, first) <= 1 - confidence


def rank_test(first: Values, second: Values) -> float:
    """Two-sided p of the rank sum test [MW]: the chance of ranks at least as uneven if both samples
    are of one kind.

    Whatever the distribution, p <= 0.05 happens in at most 5 % of comparisons of like with like.
    Counted over all divisions of the values for up to 60 of them, tied values sharing their mean
    rank; else the normal approximation.
    """
    one, other = checked(first), checked(second)
    both = np.concatenate([one, other])
    _, place, ties = np.unique(both, return_inverse=True, return_counts=True)
    # Twice the mean rank of each value: whole numbers, ties or not.
    twice = (2 * np.cumsum(ties) - ties + 1)[place]
    n, m, total = one.size, other.size, both.size
    distance = abs(2 * int(twice[:n].sum()) - 2 * n * (total + 1))
    if total > 60:
        variance = (
            4 * n * m / 12 * (total + 1 - int((ties**3 - ties).sum()) / (total * (total - 1)))
        )
        return (
            1.0
            if variance == 0
            else math.erfc(max(0.0, distance / 2 - 1) / math.sqrt(2 * variance))
        )
    # ways[k, s]: how many sets of k values have the rank sum s.
    ways = np.zeros((n + 1, int(twice.sum()) + 1))
    ways[0, 0] = 1
    for rank in twice:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank]
    sums = np.abs(2 * np.arange(ways.shape[1]) - 2 * n * (total + 1))
    return float(min(1.0, ways[n, sums >= distance].sum() / math.comb(total, n)))


def ratio_interval(
    before: Values, after: Values, confidence: float = 0.95, rounds: int = 4000, seed: int = 1
) -> tuple[float, float, float]:
    """(ratio, low, high) of the medians after / before, with the percentile interval of a seeded
    bootstrap [ET].

    The same values give the same interval. Errors: ValueError unless all values are positive.
    """
    old, new = checked(before), checked(after)
    if old.min() <= 0 or new.min() <= 0:
        raise ValueError("a ratio of medians needs positive values")
    random = np.random.default_rng(seed)

    def medians(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(
            np.median(random.choice(values, size=(rounds, values.size)), axis=1), dtype=np.float64
        )

    ratios = medians(new) / medians(old)
    low, high = np.quantile(ratios, [(1 - confidence) / 2, (1 + confidence) / 2])
    return median(new) / median(old), float(low), float(high)


def is_narrow(summary: Summary, until: float) -> bool:
    """Whether half the 95 % interval is at most ``until`` (0.02: 2 %) of the median: measuring may
    stop [HB].
    """
    return summary.enough and half_interval(summary) <= until


def half_interval(summary: Summary) -> float:
    """Half the interval of the median as a share of the median; infinite for a median of 0 with any
    spread.
    """
    half = (summary.high - summary.low) / 2
    if half == 0:
        return 0.0
    return half / abs(summary.median) if summary.median != 0 else math.inf


def summarise(values: Values) -> Summary:
    """All that a row shows of its repetitions; see Summary."""
    array = checked(values)
    average, interval = mean(array), median_interval(array)
    deviation = stdev(array) if array.size > 1 else None
    return Summary(
        n=int(array.size),
        mean=average,
        harmonic_mean=harmonic_mean(array) if array.min() > 0 else None,
        stdev=deviation,
        cv=None if deviation is None or average == 0 else deviation / abs(average),
        median=median(array),
        minimum=float(array.min()),
        maximum=float(array.max()),
        mad=mad(array),
        low=interval.low,
        high=interval.high,
        level=interval.level,
        enough=interval.enough,
    )
