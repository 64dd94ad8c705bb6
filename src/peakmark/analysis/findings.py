"""What the rows of a table say, in sentences: the best points, comparisons, trends, shares of the limit.

A difference is stated where it is not chance (``comparisons``), or with the remark that nothing was
tested where every row was measured once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

from peakmark import statistics
from peakmark.analysis import comparisons, shapes
from peakmark.analysis.comparisons import Group, Pair, PairedComparison
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import MOST, Row
from peakmark.config.layouts import LayoutTable
from peakmark.formatting import percent
from peakmark.messages import SMALL_FACTOR, Message, Range, message

LEVEL_UNTIL = 1.1
"""Up to this factor two choices that are not shown to differ are called level."""
TINY = 1.03
"""Up to this factor two choices are called level even where the difference is shown."""
FEW_NAMES = 3
"""So many exceptions are named; more are counted."""
STEADY = 1.4
"""So far apart may the factors be that are said as one; a smaller gain from more threads means that
the first ones take most of what there is.
"""
WOKEN = 2.0
"""From this factor on, more streams that answer sooner point to idle CPUs that must wake up."""


@dataclass(frozen=True)
class Conclusion:
    """One sentence about a table, what it is about, and its heading."""

    topic: Topic
    heading: str
    message: Message

    @property
    def text(self) -> str:
        """The sentence."""
        return self.message.full_sentence


def conclusions(rows: Sequence[Row], layout_table: LayoutTable | None = None) -> list[Conclusion]:
    """The findings of rows of one table, in a fixed order of topics; none where nothing was measured.

    Args:
        rows: rows of one table, holes included.
        layout_table: the table of a layout that prints the rows, which has its names.
    """
    measured = [row for row in rows if row.own is not None]
    if not measured:
        return []
    table = measured[0].table
    labels = LabelFormatter(table, layout_table)
    found = [
        *((Topic.EXTREMES, text) for text in _bests(labels, measured)),
        *((Topic.EXTREMES, text) for text in shapes.findings(table, measured)),
        *_compared(labels, [row for row in measured if row.comparable]),
        *((Topic.LIMIT, text) for text in _limits(labels, measured)),
        *((Topic.MACHINE, row.limit.finding) for row in measured if row.limit.finding),
    ]
    return [Conclusion(topic, topic.heading(table), text) for topic, text in dict.fromkeys(found)]


def _compared(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[tuple[Topic, Message]]:
    """What comparisons and trends say."""
    compared = comparisons.compare(labels, rows)
    for topic in (Topic.WORKLOADS, Topic.BLOCKS, Topic.THREADS, Topic.REFERENCE):
        of_topic = [comparison for comparison in compared if comparison.topic is topic]
        proportions = _proportions(of_topic) if topic is Topic.WORKLOADS else None
        texts = [proportions] if proportions else [_sentence(labels, each) for each in of_topic]
        if topic is Topic.THREADS:
            texts += _trends(labels, rows)
        yield from ((topic, text) for text in texts)


def _bests(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[Message]:
    """The lowest and the highest median of each workload of a table with many rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.comparable:
            groups.setdefault(labels.line(row, rows, block=False), []).append(row)
    parts = []
    for name, group in groups.items():
        if len(group) > FEW_NAMES:
            ordered = sorted(group, key=lambda row: row.measured.summary.median)
            low, high = (
                f"{labels.quantity(row.measured.summary.median)} ({labels.place(row, group)})"
                for row in (ordered[0], ordered[-1])
            )
            parts.append(message("span", name=name, low=low, high=high))
    if parts:
        yield message("spans", parts=tuple(parts))


def _sentence(labels: LabelFormatter, comparison: PairedComparison) -> Message:
    """What one comparison says in one working set."""
    groups = sorted(comparison.groups, key=lambda group: (group.direction == 0, -len(group.pairs)))
    working_set = labels.working_set(comparison.pairs[0].row)
    parts = [
        _group(labels, comparison, group, "more" if place else "first")
        for place, group in enumerate(groups)
    ]
    return message(
        "compared",
        where=f"{working_set}, " if working_set else "",
        parts=tuple(parts),
        why=_mechanism(labels, comparison, groups),
        tested=_remark_on_test(groups),
    )


def _mechanism(
    labels: LabelFormatter, comparison: PairedComparison, groups: Sequence[Group]
) -> Message | str:
    """The likely reason of a known pattern, as the end of the sentence."""
    group = groups[0]
    low, high = group.factors
    table, key = labels.table.name, group.pairs[0].row.key
    if comparison.topic is not Topic.THREADS or len(groups) > 1:
        return ""
    if table == "memory_throughput" and key.variant == "pool":
        is_one = comparison.second.startswith("1 ")
        return message("one-core-fills") if is_one and low >= 1 and high < STEADY else ""
    if table == "network_latency" and group.direction > 0 and low >= WOKEN:
        return message("wake-up")
    return ""


def _remark_on_test(groups: Sequence[Group]) -> Message | str:
    """That no test could show a difference, and why; empty where one could."""
    if any(group.is_tested for group in groups):
        return ""
    is_once = all(pair.runs == 1 for group in groups for pair in group.pairs)
    return message("untested", case="once" if is_once else "few")


def _group(
    labels: LabelFormatter, comparison: PairedComparison, group: Group, case: str
) -> Message:
    """What the points of one group say: which choice is faster and by how much, or that neither is.

    The own program stays the subject where it is compared with a reference.
    """
    is_slower = group.direction < 0 and comparison.topic is Topic.REFERENCE
    first, second = comparison.first, comparison.second
    if group.direction < 0 and not is_slower:
        first, second = second, first
    values = {"case": case, "where": _where(labels, group)}
    factor = Range(*group.factors)
    if not group.direction or factor.high <= TINY:
        code = "unclear"
        if factor.low >= 1 / LEVEL_UNTIL and factor.high <= LEVEL_UNTIL:
            code = "level"
        elif factor.low < 1 < factor.high:
            code = "undecided"
        elif factor.low < 1:
            first, second = second, first
            factor = Range(1 / factor.high, 1 / factor.low)
        return message(code, first=first, second=second, factor=factor, **values)
    factors = [max(pair.factor, 1 / pair.factor) for pair in group.agreeing]
    if is_slower and max(factors) < SMALL_FACTOR:
        factors = [2 - 1 / factor for factor in factors]  # 10 % slower is a factor of 1.11
    are = comparison.topic is Topic.THREADS and not first.startswith("1 ")
    return message(
        "faster",
        first=first,
        verb="are" if are else "is",
        factor=Range(min(factors), max(factors)),
        than="slower" if is_slower else "faster",
        second=second,
        **values,
    )


def _where(labels: LabelFormatter, group: Group) -> str:
    """`` at all 21 points``, `` at 64KB and 1MB``, `` at 5 of 7 points with 8 threads``."""
    total = len(group.pairs)
    others = [pair.row for pair in group.pairs if pair not in group.agreeing]
    text = labels.values(group.field, group.values, [pair.row for pair in group.pairs])
    if others:
        text = f" at {total - len(others)} of {total} points{text}"
        if len(others) <= FEW_NAMES:
            text += f", not at {' or '.join(labels.point(row, variant=True) for row in others)}"
    elif not group.field and total > 1:
        text = " at both points" if total == 2 else f" at all {total} points"
    return text


def _proportions(compared: Sequence[PairedComparison]) -> Message | None:
    """``QP : HP : SP : DP = 7.8 : 3.9 : 2 : 1`` where each is faster than the next by one factor."""
    is_chain = all(each.second == after.first for each, after in pairwise(compared))
    if len(compared) < 2 or not is_chain or not all(map(_is_steady, compared)):
        return None
    factors = [statistics.median([pair.factor for pair in each.pairs]) for each in compared]
    rates = [math.prod(factors[place:]) for place in range(len(factors) + 1)]
    return message(
        "proportions",
        names=" : ".join([compared[0].first, *(each.second for each in compared)]),
        numbers=" : ".join(f"{rate:.2g}" for rate in rates),
        tested=_remark_on_test(compared[0].groups),
    )


def _is_steady(comparison: PairedComparison) -> bool:
    """Whether the first choice is faster at all points, by one factor."""
    group, *others = comparison.groups
    low, high = group.factors
    return not others and group.direction > 0 and low > 1 and high <= low * STEADY


def _trends(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[Message]:
    """How rates change from number to number of threads, where three or more were measured."""
    lines: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.key.concurrency):
        lines.setdefault(labels.line(row, rows), []).append(row)
    lines = {name: line for name, line in lines.items() if len(line) > 2}
    shapes: dict[Message, list[str]] = {}
    for name, line in lines.items():
        is_tested = min(row.measured.summary.n for row in line) > 1
        if not is_tested or _p_value(line) <= comparisons.LEVEL / len(lines):
            shapes.setdefault(_shape(labels, line, is_tested), []).append(name)
    for shape, names in shapes.items():
        case = "" if len(names) < len(lines) else "all"
        yield message("trend", case=case, lines=", ".join(names), shape=shape)


def _p_value(line: Sequence[Row]) -> float:
    """Ranks alone take rows that spread differently for a trend: they guard against odd values only."""
    values = [row.measured.values for row in line]
    is_uneven = statistics.kruskal_wallis(values) <= comparisons.GUARD
    return statistics.alexander_govern(values) if is_uneven else 1.0


def _shape(labels: LabelFormatter, line: Sequence[Row], is_tested: bool) -> Message:
    """The form of a line, by the differences that hold at every later point."""
    peak = 0
    for place, row in enumerate(line):
        if _is_faster(row, line[peak]):
            peak = place
    beyond = line[peak + 1 :]
    slower = [_is_faster(line[peak], row) for row in beyond]
    first = slower.index(True) if any(slower) else len(beyond)
    dips = [
        row
        for place, row in enumerate(line[:peak])
        if any(_is_faster(before, row) for before in line[:place])
    ]
    falls = any(slower) and all(slower[first:])
    if not falls:
        dips += [row for row, is_slower in zip(beyond, slower, strict=True) if is_slower]
        first = len(beyond)
    case = "flat"
    if falls:
        case = "peak" if peak else "falls"
    elif peak:
        case = "saturates" if beyond else "grows"
    dip = message("dip", counts=tuple(str(row.key.concurrency) for row in dips))
    return message(
        "shape",
        case=case,
        peak=labels.many(line[peak].key.concurrency),
        last=labels.many([*beyond, line[-1]][first].key.concurrency),
        dip=dip if dips else "",
        tested="" if is_tested else message("untested", case="once"),
    )


def _is_faster(row: Row, other: Row) -> bool:
    """Whether one row of a line is shown to be faster than another."""
    return Pair.of_rows(row, other).direction > 0


def _limits(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[Message]:
    """What share of the limit each program reaches, and how many rows are beyond it."""
    for program in labels.table.series:
        if program.instrument in comparisons.NOT_ALIKE:
            continue
        shares = []
        for row in rows:
            series = row.series.get(program.instrument)
            if series and series.efficiency is not None and comparisons.is_measured(series):
                shares.append((series.efficiency, labels.point(row, variant=True)))
        inside = [share for share in sorted(shares, key=itemgetter(0)) if share[0] <= MOST]
        name = labels.program(program)
        if inside:
            ends = inside[0], inside[-1]
            low, high = (f"{percent(share)}% ({point})" for share, point in ends)
            yield message(
                "limit-share",
                case="" if len(inside) > 1 else "one",
                program=name,
                low=low,
                high=high,
                middle=percent(statistics.median([share for share, _ in inside])),
                rows=len(inside),
            )
        if len(inside) < len(shares):
            yield message("beyond", program=name, rows=len(shares) - len(inside))
