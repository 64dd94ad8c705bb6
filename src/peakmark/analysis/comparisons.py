"""Two choices (workloads, block sizes, numbers of threads, programs) compared at all points that both have.

Three repetitions of one row prove little against three of another; seven such pairs that all agree
are another matter. Groups of many values are tested by the summed rank sums of van Elteren (Bulletin
of the International Statistical Institute 37, 1960, pages 351-361), which are exact whatever the
distribution. Ranks of few values have no small p-value: there Welch's test on the logarithms decides,
each point with its own variances, and the ranks keep one odd value from making a difference.

What holds in caches need not hold in DRAM. Each comparison is tested for each working set, and in
it for all points and for the points of each workload, block size and number of threads. These
groups do not depend on the values. Tests of all points of a table share one half of ``LEVEL`` and
tests of parts of them the other, each by the steps of Holm (Scandinavian Journal of Statistics 6,
1979, pages 65-70). The division into groups that explains
the directions of the points best is the one that is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from peakmark import statistics
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Key, Row, Series, solved_too_little
from peakmark.tools.tables import Program

LEVEL = 0.02
"""Probability of any false difference in a table, of which one half is for all points."""
GUARD = 0.05
"""What the rank test must reach beside Welch's."""
BY_RANK = 1e-4
"""Where ranks can reach this p-value, they decide alone."""
LEAST_FACTOR = 1.05
"""A smaller factor between two values that were measured once is no difference."""
PRICES, ONE_GROUP_MORE = (0.0, 0.5, 1.5), 0.4
"""Price of a point that says what its group says, something else or the opposite, and of one more
group in a sentence.
"""
Pairs = Sequence[Sequence[str]]
WORKLOADS: Mapping[str, Pairs] = {
    "cpu": (("QP", "HP"), ("HP", "SP"), ("SP", "DP"), ("DPMIX", "DP"), ("FP32MIX", "FP32")),
    "memory": (("RS", "RR"), ("WS", "WR"), ("RWS", "RWR"), ("RS", "WS")),
    "disk": (("RS", "RR"), ("WS", "WR"), ("RS", "WS"), ("RR", "WR")),
    "network": (("TCP", "UDP"), ("LAT-TCP", "LAT-UDP")),
}
"""Workloads that readers compare, by subsystem; a layout may have others."""
DIMENSIONS = ("workload", "block", "concurrency", "node")
"""Fields of a row's key by which points are grouped."""
NOT_ALIKE = ("ping",)
"""An echo is answered by the kernel, without waking a program: no reference for a round trip of
programs.
"""


def ratios(own: Series, reference: Series) -> list[float]:
    """Own figure / reference's in each round that both measured on one node: the machine may be
    another in each. Of a node without such a round that of its medians, without such a node that of
    all medians.
    """
    ours, theirs = _by_node(own), _by_node(reference)
    found: list[float] = []
    for node in ours.keys() & theirs.keys():
        first, second = ours[node], theirs[node]
        of_rounds = [first[number] / second[number] for number in first.keys() & second.keys()]
        medians = [statistics.median([*values.values()]) for values in (first, second)]
        found += of_rounds or [medians[0] / medians[1]]
    return found or [own.summary.median / reference.summary.median]


def _by_node(series: Series) -> dict[str, dict[int, float]]:
    """Node, or pair of two -> repetition -> positive value."""
    values: dict[str, dict[int, float]] = {}
    for point in series.points:
        if point.value > 0:
            values.setdefault(point.where, {})[point.repetition] = point.value
    return values


def is_measured(series: Series) -> bool:
    """Whether a reference has measured the figure: an estimate from others is no reference, nor is
    a too small matrix.
    """
    return not any(
        point.details.get("estimate") or point.details.get("derived") or solved_too_little(point)
        for point in series.points
    )


def references(row: Row) -> list[tuple[Program, Series]]:
    """The references that have measured the row's figure on equal nodes, in the order of columns."""
    return [
        (program, row.series[program.instrument])
        for program in row.table.references
        if program.instrument in row.series
        and program.instrument not in (*NOT_ALIKE, *row.unequal_nodes)
        and is_measured(row.series[program.instrument])
    ]


def best_reference(row: Row) -> tuple[Program, Series] | None:
    """The best of the references; None without one."""
    choose = min if row.table.lower_is_better else max
    return choose(references(row), key=lambda entry: entry[1].centre, default=None)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two series at one point; a pair equals itself only.

    Attributes:
        row: the row that names the point.
        first, second: what the two choices measured.
        factor: how much faster the first is, as a quotient of speeds; below 1 if it is slower.
    """

    row: Row
    first: Series
    second: Series
    factor: float

    @classmethod
    def of(cls, row: Row, second: Series, ratio: float) -> Pair:
        """The own kernel's figure of a row and another; ``ratio`` is that of their values."""
        return cls(row, row.measured, second, 1 / ratio if row.table.lower_is_better else ratio)

    @classmethod
    def of_rows(cls, row: Row, other: Row) -> Pair:
        """The own kernel's figures of two rows of one table."""
        second = other.measured
        return cls.of(row, second, row.measured.summary.median / second.summary.median)

    @property
    def runs(self) -> int:
        """Repetitions of the side that has fewer."""
        return min(self.first.summary.n, self.second.summary.n)

    @property
    def direction(self) -> int:
        """1 where the first is faster, -1 where it is slower, 0 where the repetitions overlap."""
        first, second = self.first.summary, self.second.summary
        if self.runs > 1:
            differ = first.high < second.low or second.high < first.low
        else:
            differ = max(self.factor, 1 / self.factor) >= LEAST_FACTOR
        return 0 if not differ else 1 if self.factor > 1 else -1


Cell = tuple[Pair, ...]


@dataclass(frozen=True)
class Group:
    """Points of one comparison of which the same is said.

    Attributes:
        field: the field of the key that these points have in common, "" for all points.
        values: the values of that field.
        direction: 1 where the first choice is shown to be faster, -1 the second, 0 neither.
    """

    pairs: Cell
    direction: int
    field: str = ""
    values: tuple[object, ...] = ()

    @property
    def factors(self) -> tuple[float, float]:
        """The lowest and the highest factor by which the faster choice is faster."""
        factors = [pair.factor if self.direction >= 0 else 1 / pair.factor for pair in self.pairs]
        return min(factors), max(factors)

    @property
    def agreeing(self) -> list[Pair]:
        """The points whose medians say what the group says; all of a group that says nothing."""
        up = self.direction > 0
        return [pair for pair in self.pairs if not self.direction or (pair.factor > 1) == up]

    @property
    def is_tested(self) -> bool:
        """Whether enough repetitions stand behind it to show a difference."""
        return _can_be_tested(self.pairs)


@dataclass(frozen=True)
class PairedComparison:
    """Two choices in one working set, at all points that both have.

    Attributes:
        topic: what the choice is of.
        first, second: their names.
        groups: the points, divided by what they say.
    """

    topic: Topic
    first: str
    second: str
    pairs: Cell
    groups: tuple[Group, ...] = ()


def compare(labels: LabelFormatter, rows: Sequence[Row]) -> list[PairedComparison]:
    """All comparisons of a table, in the order of the topics."""
    compared = [
        PairedComparison(topic, first, second, tuple(in_set))
        for topic, (first, second), pairs in (*_choices(labels, rows), *_references(labels, rows))
        for in_set in _by_field(pairs, "variant").values()
    ]
    every = {each.pairs for each in compared}
    parts = {
        cell for pairs in every for cells in _divisions(pairs).values() for cell in cells.values()
    }
    shown = _significant(every) | _significant(parts - every)
    return [replace(each, groups=_grouped(each.pairs, shown)) for each in compared]


def _by_field(pairs: Sequence[Pair], name: str) -> dict[object, Cell]:
    groups: dict[object, Cell] = {}
    for pair in pairs:
        value = getattr(pair.row.key, name)
        groups[value] = (*groups.get(value, ()), pair)
    return groups


def _divisions(pairs: Cell) -> dict[str, dict[object, Cell]]:
    """The points of each workload, block size, concurrency and node, where these differ."""
    divisions = {name: _by_field(pairs, name) for name in DIMENSIONS}
    return {name: cells for name, cells in divisions.items() if len(cells) > 1}


def _significant(cells: set[Cell]) -> set[Cell]:
    """The cells whose difference is not chance, by Holm's steps among those that can be tested."""
    p_values = {cell: _p_value(cell) for cell in cells if _can_be_tested(cell)}
    shown: set[Cell] = set()
    for cell in sorted(p_values, key=p_values.__getitem__):
        if p_values[cell] > LEVEL / 2 / (len(p_values) - len(shown)):
            break
        shown.add(cell)
    return shown


def _can_be_tested(cell: Cell) -> bool:
    """Whether ranks could show a difference: beside Welch's test, or alone."""
    return _least(cell) <= (GUARD if _is_repeated(cell) else LEVEL)


def _least(cell: Cell) -> float:
    """The smallest p-value that so many repetitions can have: all of them apart."""
    sizes = [(pair.first.summary.n, pair.second.summary.n) for pair in cell]
    return 2 / math.prod(math.comb(first + second, first) for first, second in sizes)


def _is_repeated(cell: Cell) -> bool:
    return all(pair.runs > 1 for pair in cell)


def _p_value(cell: Cell) -> float:
    """The p-value of the test that so many values allow."""
    values = [(pair.first.values, pair.second.values) for pair in cell]
    by_rank = statistics.rank_test(values)
    if not _is_repeated(cell) or _least(cell) <= BY_RANK:
        return by_rank
    return statistics.stratified_welch(values) if by_rank <= GUARD else 1.0


def _grouped(pairs: Cell, shown: set[Cell]) -> tuple[Group, ...]:
    """The division of the points that leaves the fewest of them unexplained."""
    divisions: list[tuple[Group, ...]] = [(Group(pairs, _direction(pairs, shown)),)]
    for name, cells in _divisions(pairs).items():
        directions: dict[int, list[object]] = {}
        for value, cell in cells.items():
            directions.setdefault(_direction(cell, shown), []).append(value)
        if len(directions) == 1:
            divisions.append((Group(pairs, min(directions)),))
            continue
        groups = []
        for direction, values in directions.items():
            members = tuple(pair for value in values for pair in cells[value])
            groups.append(Group(members, direction, name, tuple(values)))
        divisions.append(tuple(groups))
    return min(divisions, key=_unexplained)


def _direction(cell: Cell, shown: set[Cell]) -> int:
    """What a cell says: by its test, or by the values alone where each was measured once."""
    if cell in shown:
        return 1 if sum(math.log(pair.factor) for pair in cell) > 0 else -1
    if _is_repeated(cell) or _can_be_tested(cell):
        return 0
    directions = [pair.direction for pair in cell]
    most = max((1, -1), key=directions.count)
    is_one_way = -most not in directions
    return most if is_one_way and 2 * directions.count(most) > len(cell) else 0


def _unexplained(groups: Sequence[Group]) -> float:
    """The price of points that do not say what their group says, and of the groups."""
    gaps = [abs(pair.direction - group.direction) for group in groups for pair in group.pairs]
    return sum(PRICES[gap] for gap in gaps) + ONE_GROUP_MORE * len(groups)


Choice = tuple[Topic, tuple[str, str], list[Pair]]


def _choices(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[Choice]:
    """Workloads, neighbouring block sizes, and the most threads against the fewest: the rows with
    the first and with the second value of one field that share all others.
    """
    layout = labels.layout_table
    workloads: Pairs = WORKLOADS[labels.table.subsystem]
    if layout and layout.compare is not None:
        workloads = layout.compare
    blocks = sorted({row.key.block for row in rows if row.key.block is not None}, reverse=True)
    counts = sorted({row.key.concurrency for row in rows})
    ends = [(counts[-1], counts[0])] if len(counts) > 1 else []
    fields: list[tuple[Topic, str, Iterable[Sequence[object]], Callable[[Row], str]]] = [
        (Topic.WORKLOADS, "workload", workloads, labels.workload),
        (Topic.BLOCKS, "block", reversed([*pairwise(blocks)]), labels.block),
        (Topic.THREADS, "concurrency", ends, lambda row: labels.many(row.key.concurrency)),
    ]
    for topic, name, choices, label in fields:
        for values in choices:
            firsts, seconds = (
                {_without(row.key, name): row for row in rows if getattr(row.key, name) == value}
                for value in values
            )
            found = [(row, seconds[key]) for key, row in firsts.items() if key in seconds]
            if found:
                first, second = map(label, found[0])
                if first == second:  # a layout may tell areas of one size apart by a workload
                    first, second = map(labels.workload, found[0])
                yield topic, (first, second), [Pair.of_rows(*both) for both in found]


def _without(key: Key, name: str) -> Key:
    """A key without one field; a word such as ``cores`` means a number, which is in the key."""
    without: dict[str, Any] = {"word": "", name: None}
    return key._replace(**without)


def _references(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[Choice]:
    """The own kernel beside each reference that measures the same."""
    for program in labels.table.references:
        pairs = [
            Pair.of(row, series, statistics.median(ratios(row.measured, series)))
            for row in rows
            for reference, series in references(row)
            if reference.instrument == program.instrument
        ]
        if pairs:
            names = labels.program(labels.table.own), labels.program(program)
            yield Topic.REFERENCE, names, pairs
