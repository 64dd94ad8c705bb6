"""Which rows may be compared, and when one is shown to be better than another (Hoefler and Belli 2015, rule 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peakmark.judging.rows import Row, Series
from peakmark.tables.words import Words


def apart(one: Series, other: Series) -> bool:
    """Whether two series are shown to differ: enough repetitions, and 95 % intervals of the median that do not touch."""
    first, second = one.summary, other.summary
    return first.enough and second.enough and (first.high < second.low or second.high < first.low)


def better(one: Row, other: Row) -> bool:
    """Whether the own value of the first row is shown to be better than that of the second."""
    first, second = one.measured.summary.median, other.measured.summary.median
    ahead = first < second if one.table.lower_is_better else first > second
    return ahead and not (one.mixed or other.mixed) and apart(one.measured, other.measured)


def ratio(best: Row, worst: Row) -> float:
    """By what factor the first row is better, 1 or more."""
    found = best.measured.centre / worst.measured.centre
    return 1 / found if best.table.lower_is_better else found


def groups(rows: Sequence[Row], words: Words) -> Iterator[tuple[str, list[Row]]]:
    """Rows that may be compared: of one node, variant and workload; each group with the name that it needs."""
    several = len({row.key.variant for row in rows}) > 1
    nodes = len({row.key.node for row in rows}) > 1
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        # A layout may call one workload by two names, such as loads in a small and in a large area: two groups then.
        found.setdefault((row.key.node, row.key.variant, words.workload(row)), []).append(row)
    for (node, variant, workload), group in found.items():
        name = workload + (f" {variant}" if several and variant else "")
        yield name + (f" on {node}" if nodes else ""), group
