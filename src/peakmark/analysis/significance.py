"""What chance does to many comparisons at once. Pure functions; sources:

[W]   Welch, The Generalization of 'Student's' Problem when Several Different Population Variances
      are Involved, Biometrika 34 (1947), pages 28-35
[BH]  Benjamini and Hochberg, Controlling the False Discovery Rate, Journal of the Royal Statistical
      Society B 57 (1995), pages 289-300: where nothing differs at all, a claim among all rows is as
      rare as ``level``
[KW]  Kruskal and Wallis, Use of Ranks in One-Criterion Variance Analysis, Journal of the American
      Statistical Association 47 (1952), pages 583-621
[WH]  Wilson and Hilferty, The Distribution of Chi-Square, Proceedings of the National Academy of
      Sciences 17 (1931), pages 684-688
[AS]  Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, 26.5.8 (continued fraction)
      and 26.7.1
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from peakmark import statistics


def welch(before: Sequence[float], after: Sequence[float]) -> float:
    """Two-sided p of Welch's test on the logarithms of two samples of positive values, at least two
    each [W].

    A factor is a difference of logarithms. Unlike a rank test of few values its p has no least
    value above the level that many rows ask for; a claim takes both tests.
    """
    logs = [[math.log(value) for value in values] for values in (before, after)]
    errors = [statistics.stdev(values) ** 2 / len(values) for values in logs]
    distance = abs(statistics.mean(logs[0]) - statistics.mean(logs[1]))
    if sum(errors) == 0:
        return 1.0 if distance == 0 else 0.0
    weights = [error**2 / (len(values) - 1) for error, values in zip(errors, logs, strict=True)]
    freedom = sum(errors) ** 2 / sum(weights)
    return student(distance / math.sqrt(sum(errors)), freedom)


def student(t: float, freedom: float) -> float:
    """Two-sided p of Student's t [AS 26.7.1]."""
    return _beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def quantile(p: float, freedom: float) -> float:
    """The t of which Student's two-sided p is ``p``, 0 < p < 1."""
    low, high = 0.0, 1.0
    while student(high, freedom) > p:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student(middle, freedom) > p else (low, middle)
    return high


def kruskal_wallis(groups: Sequence[Sequence[float]]) -> float:
    """The p of samples, at least two, with ranks so uneven if all were of one kind; by the
    chi-square approximation [KW].
    """
    _, place, tied = np.unique(np.concatenate(groups), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(tied) - (tied - 1) / 2)[place]
    n = ranks.size
    ties = 1 - int((tied**3 - tied).sum()) / (n**3 - n)
    if ties == 0:
        return 1.0
    each = np.split(ranks, np.cumsum([len(group) for group in groups])[:-1])
    h = (
        12 / (n * (n + 1)) * sum(part.sum() ** 2 / part.size for part in each) - 3 * (n + 1)
    ) / ties
    return _chi_square_tail(h, len(groups) - 1)


def _chi_square_tail(value: float, freedom: int) -> float:
    """Share of the chi-square distribution above a value, by the cube root [WH]."""
    ninth = 2 / (9 * freedom)
    z = (max(value, 0.0) / freedom) ** (1 / 3) - (1 - ninth)
    return 0.5 * math.erfc(z / math.sqrt(2 * ninth))


def discoveries(chances: Sequence[float], level: float) -> list[bool]:
    """Which of many claims stand at a false discovery rate of ``level`` [BH]. ``chances``: the p of
    each.
    """
    ordered = sorted(chances)
    limits = [p for rank, p in enumerate(ordered, 1) if p <= level * rank / len(ordered)]
    return [bool(limits) and p <= max(limits) for p in chances]


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function [AS 26.5.8], by the method of Lentz."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log1p(-x)
        - math.log(a)
    )
    tiny = 1e-300
    numerator, denominator = 1.0, 0.0
    total = 1.0
    for step in range(400):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        denominator = 1 / ((1 + term * denominator) or tiny)
        numerator = (1 + term / numerator) or tiny
        total *= numerator * denominator
        if step and abs(1 - numerator * denominator) < 1e-12:
            break
    return front * (total - 1)
