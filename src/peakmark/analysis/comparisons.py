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
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from peakmark import statistics
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Key, Row, Series
from peakmark.tools.tables import Program, Table

LEVEL = 0.02
"""Probability of any false difference in a table, of which one half is for all points."""
GUARD = 0.05
"""What the rank test must reach beside Welch's."""
BY_RANK = 1e-4
"""Where ranks can reach this p-value, they decide alone."""
LEAST_FACTOR = 1.05
"""A smaller factor between two values that were measured once is no difference."""
REVERSED, OTHERWISE, ONE_GROUP_MORE = 1.5, 0.5, 0.4
"""Price of a point that says the opposite of its group, of one that says something else, and of one
more group in a sentence.
"""
WORKLOADS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cpu": (("QP", "HP"), ("HP", "SP"), ("SP", "DP")),
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
HPL_SECONDS = 1.0
"""A matrix that HPL solves sooner is too small to show its rate."""


@dataclass(frozen=True)
class Ratio:
    """Own figure / reference's, of medians.

    low, high   the lowest and the highest of those that it is the median of
    """

    value: float
    low: float
    high: float


def ratio_of(own: Series, reference: Series) -> Ratio:
    """The ratio of two series with positive values, taken within the nodes where both ran.

    The machine may be another in each round, so the ratio is the median of the rounds' own; of a
    node on which no round has both, the medians are divided, and where no node has both the medians
    of all.
    """
    ours, theirs = _by_node(own), _by_node(reference)
    each: list[float] = []
    for node in ours.keys() & theirs.keys():
        shared = ours[node].keys() & theirs[node].keys()
        each += [ours[node][number] / theirs[node][number] for number in shared]
        if not shared:
            medians = (statistics.median([*values[node].values()]) for values in (ours, theirs))
            each.append(operator.truediv(*medians))
    if not each:
        each = [own.summary.median / reference.summary.median]
    return Ratio(statistics.median(each), min(each), max(each))


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
        point.details.get("estimate")
        or point.details.get("derived")
        or (
            point.record.cell.instrument == "hpl"
            and 0 < float(point.details.get("seconds") or 0) < HPL_SECONDS
        )
        for point in series.points
    )


def references(table: Table) -> list[Program]:
    """The references that measure the same as the own kernel."""
    return [program for program in table.references if program.instrument not in NOT_ALIKE]


def ratios(rows: Sequence[Row], instrument: str) -> list[tuple[Row, Series, Ratio]]:
    """The measured rows in which a reference has measured the same figure on equal nodes, with the
    reference's series and the ratio of the own figure to it.
    """
    there = [(row, row.series[instrument]) for row in rows if instrument in row.series]
    return [
        (row, series, ratio_of(row.measured, series))
        for row, series in there
        if is_measured(series) and instrument not in row.unequal_nodes
    ]


def best_reference(row: Row) -> tuple[str, str, Series] | None:
    """(instrument, heading, series) of the best reference that has measured the row's figure on
    equal nodes; None without one.
    """
    candidates = [
        (program.instrument, program.heading, series)
        for program in references(row.table)
        if (series := row.series.get(program.instrument))
        and is_measured(series)
        and program.instrument not in row.unequal_nodes
    ]
    choose = min if row.table.lower_is_better else max
    return choose(candidates, key=lambda entry: entry[2].centre, default=None)


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
    def of(cls, row: Row, other: Row) -> Pair:
        """The own kernel's figures of two rows of one table."""
        quotient = row.measured.summary.median / other.measured.summary.median
        factor = 1 / quotient if row.table.lower_is_better else quotient
        return cls(row, row.measured, other.measured, factor)

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


@dataclass(frozen=True)
class PairedComparison:
    """Two choices at all points that both have.

    Attributes:
        topic: what the choice is of.
        first, second: their names.
        instrument: the reference that is the second, "" where two choices of the same program are
            compared.
    """

    topic: Topic
    first: str
    second: str
    pairs: tuple[Pair, ...]
    instrument: str = ""


@dataclass(frozen=True)
class Group:
    """Points of one comparison of which the same is said.

    Attributes:
        field: the field of the key that these points have in common, "" for all points.
        values: the values of that field.
        direction: 1 where the first choice is shown to be faster, -1 the second, 0 neither.
    """

    pairs: tuple[Pair, ...]
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
        """The points whose medians say what the group says."""
        return [pair for pair in self.pairs if (pair.factor > 1) == (self.direction > 0)]

    @property
    def is_tested(self) -> bool:
        """Whether enough repetitions stand behind it to show a difference."""
        return _can_be_tested(self.pairs)


@dataclass(frozen=True)
class Outcome:
    """What one working set says about a comparison, in one or more groups of points."""

    comparison: PairedComparison
    variant: str
    groups: tuple[Group, ...]


def compare(labels: LabelFormatter, rows: Sequence[Row]) -> list[Outcome]:
    """The outcomes of all comparisons of a table, in the order of the topics."""
    compared = [
        *_workloads(labels, rows),
        *_blocks(labels, rows),
        *_concurrencies(labels, rows),
        *_references(labels, rows),
    ]
    sets = [
        (comparison, variant, tuple(pairs))
        for comparison in compared
        for variant, pairs in _by_field(comparison.pairs, "variant").items()
    ]
    every = {pairs for *_, pairs in sets}
    parts = {cell for pairs in every for cell in _cells(pairs)} - every
    shown = _significant(every) | _significant(parts)
    return [
        Outcome(comparison, str(variant), _grouped(pairs, shown))
        for comparison, variant, pairs in sets
    ]


Cell = tuple[Pair, ...]


def _cells(pairs: Cell) -> Iterator[Cell]:
    """All points, and those of each workload, block size, concurrency and node."""
    yield pairs
    for name in DIMENSIONS:
        cells = _by_field(pairs, name)
        if len(cells) > 1:
            yield from map(tuple, cells.values())


def _by_field(pairs: Sequence[Pair], name: str) -> dict[object, list[Pair]]:
    groups: dict[object, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(getattr(pair.row.key, name), []).append(pair)
    return groups


def _least(pairs: Sequence[Pair]) -> float:
    """The smallest p-value that so many repetitions can have: all of them apart."""
    arrangements = math.prod(
        math.comb(pair.first.summary.n + pair.second.summary.n, pair.first.summary.n)
        for pair in pairs
    )
    return 2 / arrangements


def _significant(cells: set[Cell]) -> set[Cell]:
    """The cells whose difference is not chance, by Holm's steps among those that can be tested."""
    p_values = {cell: _p_value(cell) for cell in cells if _can_be_tested(cell)}
    shown: set[Cell] = set()
    for cell in sorted(p_values, key=p_values.__getitem__):
        if p_values[cell] > LEVEL / 2 / (len(p_values) - len(shown)):
            break
        shown.add(cell)
    return shown


def _can_be_tested(cell: Sequence[Pair]) -> bool:
    """Whether ranks could show a difference: beside Welch's test, or alone."""
    return _least(cell) <= (GUARD if _is_repeated(cell) else LEVEL)


def _is_repeated(cell: Sequence[Pair]) -> bool:
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
    for name in DIMENSIONS:
        cells = _by_field(pairs, name)
        if len(cells) > 1:
            divisions.append(_merged(name, cells, shown))
    return min(divisions, key=_unexplained)


def _merged(
    name: str, cells: Mapping[object, Sequence[Pair]], shown: set[Cell]
) -> tuple[Group, ...]:
    """The cells of one field, those of one direction together."""
    directions: dict[int, list[object]] = {}
    for value, pairs in cells.items():
        directions.setdefault(_direction(tuple(pairs), shown), []).append(value)
    if len(directions) == 1:
        (direction,) = directions
        return (Group(tuple(pair for pairs in cells.values() for pair in pairs), direction),)
    return tuple(
        Group(
            tuple(pair for value in values for pair in cells[value]), direction, name, tuple(values)
        )
        for direction, values in directions.items()
    )


def _direction(cell: Cell, shown: set[Cell]) -> int:
    """What a cell says: by its test, or by the values alone where each was measured once."""
    if cell in shown:
        return 1 if sum(math.log(pair.factor) for pair in cell) > 0 else -1
    if _is_repeated(cell) or _can_be_tested(cell):
        return 0
    directions = [pair.direction for pair in cell]
    total = sum(directions)
    is_one_way = -1 not in directions or 1 not in directions
    return int(math.copysign(1, total)) if is_one_way and 2 * abs(total) > len(cell) else 0


def _unexplained(groups: Sequence[Group]) -> float:
    """Points that do not say what their group says, and a price for each group."""
    points = 0.0
    for group in groups:
        for pair in group.pairs:
            if pair.direction != group.direction:
                is_reversed = pair.direction == -group.direction
                points += REVERSED if is_reversed else OTHERWISE
    return points + ONE_GROUP_MORE * len(groups)


def _workloads(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[PairedComparison]:
    layout = labels.layout_table
    chosen = layout.compare if layout and layout.compare is not None else None
    for values in WORKLOADS[labels.table.subsystem] if chosen is None else chosen:
        yield from _choices(Topic.WORKLOADS, labels, rows, "workload", values, labels.workload)


def _blocks(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[PairedComparison]:
    blocks = sorted({row.key.block for row in rows if row.key.block is not None})
    for smaller, larger in pairwise(blocks):
        yield from _choices(Topic.BLOCKS, labels, rows, "block", (larger, smaller), labels.block)


def _concurrencies(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[PairedComparison]:
    """The most beside the fewest."""
    counts = sorted({row.key.concurrency for row in rows})
    if len(counts) > 1:
        values = (counts[-1], counts[0])
        yield from _choices(
            Topic.THREADS,
            labels,
            rows,
            "concurrency",
            values,
            lambda row: labels.many(row.key.concurrency),
        )


def _references(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[PairedComparison]:
    """The own kernel beside each reference that measures the same."""
    lower_is_better = labels.table.lower_is_better
    for program in references(labels.table):
        pairs = tuple(
            Pair(row, row.measured, series, 1 / ratio.value if lower_is_better else ratio.value)
            for row, series, ratio in ratios(rows, program.instrument)
        )
        if pairs:
            names = labels.program(labels.table.own), labels.program(program)
            yield PairedComparison(Topic.REFERENCE, *names, pairs, program.instrument)


def _choices(
    topic: Topic,
    labels: LabelFormatter,
    rows: Sequence[Row],
    name: str,
    values: Sequence[object],
    label: Callable[[Row], str],
) -> Iterator[PairedComparison]:
    """The rows with the first and with the second value of one field that share all others."""
    firsts, seconds = (
        {_without(row.key, name): row for row in rows if getattr(row.key, name) == value}
        for value in values
    )
    pairs = [Pair.of(row, seconds[point]) for point, row in firsts.items() if point in seconds]
    if pairs:
        row = pairs[0].row
        other = seconds[_without(row.key, name)]
        names = label(row), label(other)
        if names[0] == names[1]:  # a layout may tell two areas of one size apart by a workload
            names = labels.workload(row), labels.workload(other)
        yield PairedComparison(topic, *names, tuple(pairs))


def _without(key: Key, name: str) -> tuple[object, ...]:
    """A key without one field; a word such as ``cores`` means a number, which is in the key."""
    return tuple(value for field, value in key._asdict().items() if field not in (name, "word"))
