"""What share of the limit the programs of a table reach over all its rows: lowest, highest and
median, and where one reaches it.

Whether a program stays short of the limit is a sign test over the points: each is short of it or
not, and without any difference both would be as likely (Conover, Practical Nonparametric
Statistics, 3rd edition, section 3.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peakmark import statistics
from peakmark.formatting import percent
from peakmark.instruments.tables import Program
from peakmark.judging import beside, ratios
from peakmark.judging.label_formatter import LabelFormatter
from peakmark.judging.measured import DEFAULT
from peakmark.judging.paired_comparison import LEVEL, MANY, probability
from peakmark.judging.row import Row
from peakmark.planning import sequential_testing

Share = tuple[float, Row]
ALIKE = 1.2
"""Workloads whose shares are closer than this factor in the median are not told one by one."""


def sentences(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[str]:
    """One for the own program and one for each reference that measured the same; and how many rows
    are beyond the limit.
    """
    programs = [entry for entry in labels.table.series if entry.instrument not in ratios.NOT_ALIKE]
    for entry in programs:
        shares = _shares(rows, entry)
        inside = [share for share in shares if share[0] <= DEFAULT.limit]
        above = len(shares) - len(inside)
        if inside:
            yield _sentence(labels, entry, inside, whole=not above)
        if above:
            of = "" if entry is labels.table.own else f" of {labels.program(entry)}"
            rest = f"{above} row{' is' if above == 1 else 's are'} above the limit, which cannot be"
            yield f"{rest}: the limit or the figure{of} is wrong, as the notes say."


def _shares(rows: Sequence[Row], entry: Program) -> list[Share]:
    measured = [
        (row.series[entry.instrument], row) for row in rows if entry.instrument in row.series
    ]
    return [
        (series.efficiency, row)
        for series, row in measured
        if series.efficiency is not None and ratios.is_measured(series)
    ]


def _sentence(labels: LabelFormatter, entry: Program, shares: Sequence[Share], whole: bool) -> str:
    """``whole``: these are all rows; where others are above the limit, it is not known well enough
    to stay short of.
    """
    (low, lowest), (high, highest) = (
        choose(shares, key=lambda pair: pair[0]) for choose in (min, max)
    )
    text = f"{labels.program(entry)} reaches {percent(low, labels.mark)} % ({labels.row(lowest)})"
    if len(shares) == 1:
        return f"{text} of the limit."
    text += f" to {percent(high, labels.mark)} % ({labels.row(highest)}) of the limit"
    if len(shares) > 2:
        middle = percent(statistics.median([share for share, _ in shares]), labels.mark)
        text += f", {middle} % in the median of {len(shares)} rows{_by_workload(labels, shares)}"
    return f"{text}{_short(labels, shares) if whole else ''}."


def _by_workload(labels: LabelFormatter, shares: Sequence[Share]) -> str:
    medians = beside.medians(((labels.workload(row), share) for share, row in shares), ALIKE)
    shown = [f"{name} {percent(share, labels.mark)} %" for name, share in medians.items()]
    return f" ({', '.join(shown)})" if shown else ""


def _short(labels: LabelFormatter, shares: Sequence[Share]) -> str:
    """At how many points it stays short of the limit, and where it does not; nothing of too few
    points to tell.
    """
    total = len(shares)
    if p_value(total, total) > LEVEL:
        return ""
    there = [row for share, row in shares if share >= 1]
    p = p_value(total - len(there), total)
    if p > LEVEL:
        return f"; not told apart from it (by chance {probability(p, labels.mark)})"
    if 2 * len(there) > total:
        return f"; beyond it at {len(there)} of {total} points (by chance {probability(p, labels.mark)})"
    points = f"at all {total} points" if not there else f"at {total - len(there)} of {total} points"
    named = f", not with {', '.join(map(labels.row, there))}" if 0 < len(there) <= MANY else ""
    return f"; short of it {points} (by chance {probability(p, labels.mark)}){named}"


def p_value(short: int, total: int) -> float:
    """Two-sided probability of so uneven a number of points on one side, where both sides are as
    likely.
    """
    fewer = min(short, total - short)
    return min(1.0, sequential_testing.uncovered(total, fewer + 1))
