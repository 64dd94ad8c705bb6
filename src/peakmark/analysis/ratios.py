"""The own kernel's figure against a reference's: within rounds, with the number of runs, and with
what else differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peakmark import statistics
from peakmark.analysis.row import Row, Series
from peakmark.tools.tables import Program, Table

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
    rounds      in how many rounds of repetitions both measured on one node, or between the same
                two; 0 where they never did
    """

    value: float
    low: float
    high: float
    rounds: int
    runs: int


def of(own: Series, reference: Series) -> Ratio:
    """The ratio of two series with positive values, taken within the nodes where both ran. ``runs``
    are the reference's.

    The machine may be another in each round, so the ratio is the median of the rounds' own; of a
    node on which no round has both, the medians are divided, and where no node has both the medians
    of all.
    """
    ours, theirs = _by_node(own), _by_node(reference)
    each: list[float] = []
    rounds = 0
    for node in ours.keys() & theirs.keys():
        shared = ours[node].keys() & theirs[node].keys()
        rounds += len(shared)
        each += [ours[node][number] / theirs[node][number] for number in shared]
        if not shared:
            each.append(_median(ours[node]) / _median(theirs[node]))
    if not each:
        each = [own.summary.median / reference.summary.median]
    return Ratio(statistics.median(each), min(each), max(each), rounds, reference.summary.n)


def _by_node(series: Series) -> dict[str, dict[int, float]]:
    """Node, or pair of two -> repetition -> positive value."""
    values: dict[str, dict[int, float]] = {}
    for point in series.points:
        if point.value > 0:
            values.setdefault(point.where, {})[point.repetition] = point.value
    return values


def _median(values: Mapping[int, float]) -> float:
    return statistics.median(list(values.values()))


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


def factor(own: Series, reference: Series) -> float:
    """By what factor the two figures differ, 1 or more."""
    return max(own.centre, reference.centre) / min(own.centre, reference.centre)


def references(table: Table) -> list[Program]:
    """The references that measure the same as the own kernel."""
    return [program for program in table.references if program.instrument not in NOT_ALIKE]


Pair = tuple[Row, Series, Ratio]
"""A row, a reference's series in it, and the ratio of the own figure to the reference's."""


def pairs(rows: Sequence[Row], instrument: str) -> list[Pair]:
    """The measured rows in which a reference has measured the same figure on equal nodes."""
    there = [(row, row.series[instrument]) for row in rows if instrument in row.series]
    return [
        (row, series, of(row.measured, series))
        for row, series in there
        if is_measured(series) and instrument not in row.unequal_nodes
    ]


def best(row: Row) -> tuple[str, str, Series] | None:
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


def differences(row: Row, instrument: str) -> list[str]:
    """What is known to differ between the own kernel and a reference in this row, in words."""
    own, other = (row.series[name].points for name in (row.table.own.instrument, instrument))
    known = []
    if {point.where for point in own}.isdisjoint(point.where for point in other):
        known.append("on other nodes")
    if row.table.subsystem == "disk":
        huge = [any(point.details.get("huge_pages") for point in points) for points in (own, other)]
        if huge == [True, False]:
            known.append(f"only {row.table.own.heading}'s buffers are in huge pages")
    return known
