"""Which rows may be compared, and when one is shown to be better than another (Hoefler and Belli 2015, rule 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from peakmark.judging.naming import Naming
from peakmark.judging.row import Row, Series


def apart(series: Series, other: Series) -> bool:
    """Whether two series are shown to differ: enough repetitions, and 95 % intervals of the median that do not touch."""
    first, second = series.summary, other.summary
    return first.enough and second.enough and (first.high < second.low or second.high < first.low)


def better(row: Row, other: Row) -> bool:
    """Whether the own value of the first row is shown to be better than that of the second."""
    first, second = row.measured.summary.median, other.measured.summary.median
    ahead = first < second if row.table.lower_is_better else first > second
    return ahead and not (row.mixed or other.mixed) and apart(row.measured, other.measured)


def differ(rows: Sequence[Row], level: float = 0.05) -> bool:
    """Whether rows are shown to differ at all, by the test of Kruskal and Wallis (Use of Ranks in One-Criterion Variance
    Analysis, Journal of the American Statistical Association 47 (1952), pages 583-621).

    Among many equal rows the best and the worst one lie apart more often than two rows do: only where this test has seen a
    difference is one of them called best. False in at most ``level`` of groups of equal rows.
    """
    groups = [row.measured.values for row in rows]
    if len(groups) < 2:
        return False
    _, place, tied = np.unique(np.concatenate(groups), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(tied) - (tied - 1) / 2)[place]
    n = ranks.size
    ties = 1 - int((tied**3 - tied).sum()) / (n**3 - n)
    if ties == 0:
        return False
    each = np.split(ranks, np.cumsum([len(group) for group in groups])[:-1])
    h = (12 / (n * (n + 1)) * sum(part.sum() ** 2 / part.size for part in each) - 3 * (n + 1)) / ties
    return _chi_square_tail(h, len(groups) - 1) <= level


def _chi_square_tail(value: float, freedom: int) -> float:
    """Share of the chi-square distribution above a value, by the cube root of Wilson and Hilferty."""
    ninth = 2 / (9 * freedom)
    z = (max(value, 0.0) / freedom) ** (1 / 3) - (1 - ninth)
    return 0.5 * math.erfc(z / math.sqrt(2 * ninth))


def ratio(best: Row, worst: Row) -> float:
    """By what factor the median of the first row is better, 1 or more: as the tests are of medians, so are factors."""
    quotient = best.measured.summary.median / worst.measured.summary.median
    return 1 / quotient if best.table.lower_is_better else quotient


def groups(rows: Sequence[Row], naming: Naming) -> Iterator[tuple[str, list[Row]]]:
    """Rows that may be compared: of one node, variant and workload; each group with the name that it needs."""
    several = len({row.key.variant for row in rows}) > 1
    nodes = len({row.key.node for row in rows}) > 1
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        # A layout may call one workload by two names, such as loads in a small and in a large area: two groups then.
        grouped.setdefault((row.key.node, row.key.variant, naming.workload(row)), []).append(row)
    for (node, variant, workload), group in grouped.items():
        name = workload + (f" {variant}" if several and variant else "")
        yield name + (f" on {node}" if nodes else ""), group
