"""Which rows may be compared, and when one is shown to be better than another (Hoefler and Belli
2015, rule 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peakmark.analysis import significance
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row, Series


def apart(series: Series, other: Series) -> bool:
    """Whether two series are shown to differ: enough repetitions, and 95 % intervals of the median
    that do not touch.
    """
    first, second = series.summary, other.summary
    return first.enough and second.enough and (first.high < second.low or second.high < first.low)


def better(row: Row, other: Row) -> bool:
    """Whether the own value of the first row is shown to be better than that of the second."""
    first, second = row.measured.summary.median, other.measured.summary.median
    ahead = first < second if row.table.lower_is_better else first > second
    return ahead and apart(row.measured, other.measured)


def differ(rows: Sequence[Row], level: float = 0.05) -> bool:
    """Whether rows are shown to differ at all, by the test of Kruskal and Wallis.

    Among many equal rows the best and the worst one lie apart more often than two rows do: only
    where this test has seen a difference is one of them called best. False in at most ``level`` of
    groups of equal rows.
    """
    groups = [row.measured.values for row in rows]
    return len(groups) > 1 and significance.kruskal_wallis(groups) <= level


def ratio(best: Row, worst: Row) -> float:
    """By what factor the median of the first row is better, 1 or more: as the tests are of medians,
    so are factors.
    """
    quotient = best.measured.summary.median / worst.measured.summary.median
    return 1 / quotient if best.table.lower_is_better else quotient


def groups(rows: Sequence[Row], labels: LabelFormatter) -> Iterator[tuple[str, list[Row]]]:
    """Rows that may be compared: of one node, variant and workload; each group with the name that
    it needs.
    """
    several = len({row.key.variant for row in rows}) > 1
    nodes = len({row.key.node for row in rows}) > 1
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        # A layout may call one workload by two names, such as loads in a small and in a large area:
        # two groups then.
        grouped.setdefault((row.key.node, row.key.variant, labels.workload(row)), []).append(row)
    for (node, variant, workload), group in grouped.items():
        name = workload + (f" {variant}" if several and variant else "")
        yield name + (f" on {node}" if nodes else ""), group
