"""What the rows of a table say, in sentences: the best points, comparisons, trends, shares of the limit.

A difference is stated where it is not chance (``comparisons``), or with the remark that nothing was
tested where every row was measured once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from peakmark import statistics
from peakmark.analysis import comparisons, shapes
from peakmark.analysis.comparisons import Group, Outcome, Pair
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import MOST, Row
from peakmark.config.layouts import LayoutTable
from peakmark.formatting import percent
from peakmark.messages import SMALL_FACTOR, Message, Range, message
from peakmark.tools.tables import Table

LEVEL_UNTIL = 1.1
"""Up to this factor two choices that are not shown to differ are called level."""
TINY = 1.03
"""Up to this factor two choices are called level even where the difference is shown."""
FEW_NAMES = 3
"""So many exceptions are named; more are counted."""
SATURATED = 1.4
"""A smaller gain from more threads means that the first ones take most of what there is."""
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
    labels = LabelFormatter(measured[0].table, layout_table)
    return _concluded(
        labels,
        [
            *_bests(labels, measured),
            *((Topic.EXTREMES, text) for text in _of_shape(labels.table, measured)),
            *_compared(labels, measured),
            *((Topic.LIMIT, text) for text in _limits(labels, measured)),
            *((Topic.MACHINE, row.limit.finding) for row in measured if row.limit.finding),
        ],
    )


def joint_conclusions(
    rows: Sequence[Row], layout_table: LayoutTable | None = None
) -> list[Conclusion]:
    """How workloads compare whose rows are printed in several tables."""
    measured = [row for row in rows if row.own is not None]
    if not measured:
        return []
    labels = LabelFormatter(measured[0].table, layout_table)
    found = _compared(labels, measured)
    return _concluded(labels, [each for each in found if each[0] is Topic.WORKLOADS])


def _concluded(labels: LabelFormatter, found: Sequence[tuple[Topic, Message]]) -> list[Conclusion]:
    """Messages with their headings, each once."""
    return [
        Conclusion(topic, topic.heading(labels.table), each) for topic, each in dict.fromkeys(found)
    ]


def _of_shape(table: Table, rows: Sequence[Row]) -> Iterator[Message]:
    """What a matrix or curve says beyond its rows."""
    if table.metric in ("core_to_core", "numa_latency", "numa_throughput"):
        yield from shapes.outliers(rows)
    if table.metric == "ladder_latency":
        yield from shapes.measured_caches(rows)
    if table.metric == "loaded_latency":
        yield from map(shapes.loaded_finding, rows)


def _compared(labels: LabelFormatter, rows: Sequence[Row]) -> list[tuple[Topic, Message]]:
    """What comparisons and trends say."""
    comparable = [row for row in rows if row.comparable]
    outcomes = comparisons.compare(labels, comparable)
    found: list[tuple[Topic, Message]] = []
    proportions = _proportions(outcomes)
    for topic in (Topic.WORKLOADS, Topic.BLOCKS, Topic.THREADS, Topic.REFERENCE):
        of_topic = [outcome for outcome in outcomes if outcome.comparison.topic is topic]
        if topic is Topic.WORKLOADS and proportions:
            found.append((topic, proportions))
        else:
            found += [(topic, _sentence(labels, each)) for each in of_topic]
        if topic is Topic.THREADS:
            found += [(topic, text) for text in _trends(labels, comparable)]
    return found


def _bests(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[tuple[Topic, Message]]:
    """The lowest and the highest median of each workload of a table with many rows."""
    parts = []
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.comparable:
            groups.setdefault(labels.workload_in_set(row, rows), []).append(row)
    for name, group in groups.items():
        if len(group) > FEW_NAMES:
            ordered = sorted(group, key=lambda row: row.measured.summary.median)
            ends = [
                f"{labels.quantity(row.measured.summary.median)} ({labels.place(row, group)})"
                for row in (ordered[0], ordered[-1])
            ]
            parts.append(message("span", name=name, low=ends[0], high=ends[1]))
    if parts:
        yield Topic.EXTREMES, message("spans", parts=tuple(parts))


def _sentence(labels: LabelFormatter, outcome: Outcome) -> Message:
    """What one comparison says in one working set."""
    lead, *others = sorted(
        outcome.groups, key=lambda group: (group.direction == 0, -len(group.pairs))
    )
    working_set = labels.working_set(lead.pairs[0].row)
    return message(
        "compared",
        where=f"{working_set}, " if working_set else "",
        parts=(
            _group(labels, outcome, lead, "first"),
            *(_group(labels, outcome, group, "more") for group in others),
        ),
        why=_mechanism(labels, outcome, lead),
        tested=_remark_on_test(outcome.groups),
    )


def _remark_on_test(groups: Sequence[Group]) -> Message | str:
    """That no test could show a difference, and why; empty where one could."""
    if any(group.is_tested for group in groups):
        return ""
    once = all(pair.runs == 1 for group in groups for pair in group.pairs)
    return message("untested", case="once" if once else "few")


def _group(labels: LabelFormatter, outcome: Outcome, group: Group, case: str) -> Message:
    """What the points of one group say: which choice is faster and by how much, or that neither is.

    The own program stays the subject where it is compared with a reference.
    """
    comparison = outcome.comparison
    is_slower = group.direction < 0 and comparison.instrument != ""
    names = (comparison.first, comparison.second)
    first, second = names if group.direction >= 0 or is_slower else names[::-1]
    place = _where(labels, group)
    factor = Range(*group.factors)
    if not group.direction or factor.high <= TINY:
        is_level = factor.low >= 1 / LEVEL_UNTIL and factor.high <= LEVEL_UNTIL
        is_mixed = factor.low < 1 < factor.high
        code = "level" if is_level else "undecided" if is_mixed else "unclear"
        if code == "unclear" and factor.low < 1:
            first, second = second, first
            factor = Range(1 / factor.high, 1 / factor.low)
        return message(code, case=case, first=first, second=second, factor=factor, where=place)
    factors = [max(pair.factor, 1 / pair.factor) for pair in group.agreeing]
    if is_slower and max(factors) < SMALL_FACTOR:
        factors = [2 - 1 / factor for factor in factors]  # 10 % slower is a factor of 1.11
    are = comparison.topic is Topic.THREADS and not first.startswith("1 ")
    return message(
        "faster",
        case=case,
        first=first,
        verb="are" if are else "is",
        factor=Range(min(factors), max(factors)),
        than="slower" if is_slower else "faster",
        second=second,
        where=place,
    )


def _where(labels: LabelFormatter, group: Group) -> str:
    """`` at all 21 points``, `` at 64KB and 1MB``, `` at 5 of 7 points with 8 threads``."""
    total = len(group.pairs)
    agreeing = group.agreeing if group.direction else list(group.pairs)
    others = [pair for pair in group.pairs if pair not in agreeing]
    text = labels.values(group.field, group.values, [pair.row for pair in group.pairs])
    if others:
        text = f" at {len(agreeing)} of {total} points{text}"
        if len(others) <= FEW_NAMES:
            text += f", not at {' or '.join(labels.row(pair.row) for pair in others)}"
    elif not group.field and total > 1:
        text = " at both points" if total == 2 else f" at all {total} points"
    return text


def _mechanism(labels: LabelFormatter, outcome: Outcome, group: Group) -> Message | str:
    """The likely reason of a known pattern, as the end of the sentence."""
    if outcome.comparison.topic is not Topic.THREADS or len(outcome.groups) > 1:
        return ""
    low, high = group.factors
    table = labels.table
    if table.name == "memory_throughput" and outcome.variant == "pool":
        is_one = outcome.comparison.second.startswith("1 ")
        return message("one-core-fills") if is_one and low >= 1 and high < SATURATED else ""
    if table.name == "network_latency" and group.direction > 0 and low >= WOKEN:
        return message("wake-up")
    return ""


def _proportions(outcomes: Sequence[Outcome]) -> Message | None:
    """``QP : HP : SP : DP = 7.8 : 3.9 : 2 : 1`` where each is faster than the next by one factor."""
    compared = [each for each in outcomes if each.comparison.topic is Topic.WORKLOADS]
    names: list[str] = []
    numbers = [1.0]
    for outcome in reversed(compared):
        (group, *others) = outcome.groups
        low, high = group.factors
        is_steady = group.direction > 0 and low > 1 and high <= low * SATURATED
        is_next = not names or names[0] == outcome.comparison.second
        if others or not is_steady or not is_next:
            return None
        names = names or [outcome.comparison.second]
        names.insert(0, outcome.comparison.first)
        numbers.insert(0, numbers[0] * statistics.median([pair.factor for pair in group.pairs]))
    if len(compared) < 2:
        return None
    return message(
        "proportions",
        names=" : ".join(names),
        numbers=" : ".join(f"{number:.2g}" for number in numbers),
        tested=_remark_on_test(compared[0].groups[:1]),
    )


def _trends(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[Message]:
    """How rates change from number to number of threads, where three or more were measured."""
    lines: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.key.concurrency):
        lines.setdefault(labels.line(row, rows), []).append(row)
    lines = {name: line for name, line in lines.items() if len(line) > 2}
    shapes: dict[Message, list[str]] = {}
    for name, line in lines.items():
        runs = min(row.measured.summary.n for row in line)
        if runs == 1 or _p_value(line) <= comparisons.LEVEL / len(lines):
            shapes.setdefault(_shape(labels, line, runs == 1), []).append(name)
    for shape, names in shapes.items():
        case = "" if len(names) < len(lines) else "all"
        yield message("trend", case=case, lines=", ".join(names), shape=shape)


def _p_value(line: Sequence[Row]) -> float:
    """Ranks alone take rows that spread differently for a trend: they guard against odd values only."""
    values = [row.measured.values for row in line]
    is_uneven = statistics.kruskal_wallis(values) <= comparisons.GUARD
    return statistics.alexander_govern(values) if is_uneven else 1.0


def _shape(labels: LabelFormatter, line: Sequence[Row], is_untested: bool) -> Message:
    """The form of a line, by the differences that hold at every later point."""
    peak = 0
    for place in range(1, len(line)):
        if _faster(line, place, peak):
            peak = place
    slower = [place for place in range(peak + 1, len(line)) if _faster(line, peak, place)]
    dips = [
        place
        for place in range(1, peak)
        if any(_faster(line, before, place) for before in range(place))
    ]
    falls = bool(slower) and slower == list(range(slower[0], len(line)))
    if not falls:
        dips += slower
    case = "flat"
    if falls:
        case = "peak" if peak else "falls"
    elif peak:
        case = "grows" if peak == len(line) - 1 else "saturates"
    last = line[slower[0] if falls else -1].key.concurrency
    dip = message("dip", counts=tuple(str(line[place].key.concurrency) for place in dips))
    return message(
        "shape",
        case=case,
        peak=labels.many(line[peak].key.concurrency),
        last=labels.many(last),
        dip=dip if dips else "",
        tested=message("untested", case="once") if is_untested else "",
    )


def _faster(line: Sequence[Row], first: int, second: int) -> bool:
    """Whether one row of a line is shown to be faster than another."""
    return Pair.of(line[first], line[second]).direction > 0


def _limits(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[Message]:
    """What share of the limit each program reaches, and how many rows are beyond it."""
    for program in labels.table.series:
        if program.instrument in comparisons.NOT_ALIKE:
            continue
        shares = []
        for row in rows:
            series = row.series.get(program.instrument)
            if series and series.efficiency is not None and comparisons.is_measured(series):
                shares.append((series.efficiency, row))
        inside = sorted((share for share in shares if share[0] <= MOST), key=itemgetter(0))
        name = labels.program(program)
        if inside:
            ends = [
                f"{percent(share)}% ({labels.row(row)})" for share, row in (inside[0], inside[-1])
            ]
            middle = percent(statistics.median([share for share, _ in inside]))
            yield message(
                "limit-share",
                case="" if len(inside) > 1 else "one",
                program=name,
                low=ends[0],
                high=ends[1],
                middle=middle,
                rows=len(inside),
            )
        if len(inside) < len(shares):
            yield message("beyond", program=name, rows=len(shares) - len(inside))
