"""Repetitions as many as are needed: rounds, and the decisions between them.

``repetitions: {min: 6, max: 30, until: 2%}`` plans 30 cells for a row; six are measured in any
case. After every round each row is tested: is the 95 % interval of its median narrow enough? Cells
that are not needed are spared: they get no job and no record. Each round is half as long as all
before it together: every test is one more chance to stop by luck, and costs a job.

The 5 % of rows whose interval may miss the median are divided among the tests in advance. So
whenever and why ever a row ends, its interval misses in no more cases than those of all tests
together (Boole's inequality).

Source: Lan and DeMets, Discrete Sequential Boundaries for Clinical Trials, Biometrika 70 (1983),
pages 659-663.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from peakmark import statistics
from peakmark.cell import Cell
from peakmark.config.types import Criterion
from peakmark.statistics import Summary, Values
from peakmark.storage import records
from peakmark.storage.decisions import CLOSED, Decision, Decisions, Outcome

ERROR = 0.05

Records = Mapping[str, list[Mapping[str, Any]]]
"""Row -> its records that count."""


def rounds(criteria: Mapping[str, Criterion]) -> int:
    """Rounds of a campaign: those of the row that may have most. 0 where no row is adaptive."""
    return max((len(criterion.counts) for criterion in criteria.values()), default=0)


def in_round(cells: Iterable[Cell], criteria: Mapping[str, Criterion], number: int) -> list[Cell]:
    """The cells of round ``number`` (from 0) if every row took part; round 0 has fixed cells."""

    def round_of(cell: Cell) -> int:
        criterion = criteria.get(cell.row)
        return bisect_right(criterion.counts, cell.repetition) if criterion else 0

    return [cell for cell in cells if round_of(cell) == number]


def required_in_round(
    cells: Iterable[Cell], criteria: Mapping[str, Criterion], decisions: Decisions, number: int
) -> list[Cell]:
    """The cells of round ``number`` that the decisions after the round before require."""
    planned = in_round(cells, criteria, number)
    if number == 0:
        return planned
    return [
        cell
        for cell in planned
        if cell.row in decisions and cell.repetition < decisions[cell.row].asked
    ]


def decide(
    cells: Iterable[Cell],
    criteria: Mapping[str, Criterion],
    earlier: Decisions,
    number: int,
    stored: Records,
) -> dict[str, Decision]:
    """What follows round ``number``, for every adaptive row; closed rows stay closed.

    Args:
        cells: in running order.
        criteria: of the adaptive rows.
        earlier: decisions after the round before.
        number: of the round that has ended, from 0.
        stored: records; a row that lacks required ones is left out.
    """
    decided: dict[str, Decision] = {}
    for row in dict.fromkeys(cell.row for cell in cells if cell.row in criteria):
        criterion, records = criteria[row], stored.get(row, [])
        if row in earlier and earlier[row].decision in CLOSED:
            decided[row] = earlier[row]
        elif len(records) >= criterion.counts[min(number, len(criterion.counts) - 1)]:
            decided[row] = _decide_row(criterion, records, number)
    return decided


def _decide_row(criterion: Criterion, records: list[Mapping[str, Any]], number: int) -> Decision:
    last = len(criterion.counts) - 1
    measured = [record for record in records if record["status"] == "ok"]
    half = half_interval(measured, criterion)
    decision: Outcome
    if records and not measured:
        decision = "unavailable"
    elif half is not None and half <= criterion.until:
        decision = "narrow"
    else:
        decision = "more" if number < last else "cap"
    count = criterion.counts[min(number + (decision == "more"), last)]
    return Decision(criterion, count, len(measured), half, decision)


def half_interval(records: Iterable[Mapping[str, Any]], criterion: Criterion) -> float | None:
    """Half the interval of the median, as a share of it, of a row's least certain figure.

    A record may hold several figures: IOZone's four patterns, or throughput and latency.

    Returns:
        None while a figure has too few values for such an interval.
    """
    keys = ("workload", "variant", "block", "concurrency", "metric")
    series: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for record in records:
        for entry in record["measurements"]:
            series[tuple(entry[key] for key in keys)].append(float(entry["value"]))
    summaries = [summarise(values, criterion) for values in series.values()]
    if not summaries or not all(summary.enough for summary in summaries):
        return None
    return max(map(statistics.half_interval, summaries))


def read_records(
    directory: Path, cells: Iterable[Cell], criteria: Mapping[str, Criterion]
) -> dict[str, list[Any]]:
    """Records of the adaptive rows; a damaged or outdated record decides nothing."""
    by_row: dict[str, list[Any]] = defaultdict(list)
    for cell in cells:
        if cell.row in criteria:
            finding = records.look(directory / "cells" / f"{cell.id}.json", cell)
            if finding.state == records.GOOD:
                by_row[cell.row].append(finding.data)
    return by_row


@cache
def alpha_spending(criterion: Criterion) -> dict[int, float]:
    """Repetitions at a test -> the share of cases in which its interval may miss.

    The first test, at which most rows end, gets half of ``ERROR``; each later one gets an equal
    part of the remainder. Where so few values cannot be that certain, the test gets what their
    whole range takes: the first one in any case, a later one up to half of the remainder.
    """
    remaining = ERROR
    spent = {}
    for place, n in enumerate(criterion.counts):
        whole_range = 2 / 2**n
        if place == 0:
            allowed = max(remaining / 2, min(whole_range, remaining))
        else:
            allowed = remaining / (len(criterion.counts) - place)
            if whole_range <= remaining / 2:
                allowed = max(allowed, whole_range)
        spent[n] = _largest_miss(n, allowed)
        remaining -= spent[n]
    return spent


def _largest_miss(n: int, allowed: float) -> float:
    """The largest share, up to ``allowed``, in which two order statistics miss the median.

    The k-th smallest and k-th largest of ``n`` values do not enclose the median where fewer than k
    values lie on one side of it.
    """
    largest = 0.0
    fewer = 0
    for below in range(n // 2):
        fewer += math.comb(n, below)
        missed = 2 * fewer / 2**n
        if missed > allowed:
            break
        largest = missed
    return largest


def summarise(values: Values, criterion: Criterion | None) -> Summary:
    """The summary of a row's repetitions, with the interval of its last test.

    Without a criterion it has the usual interval. Values between two tests are held to what the
    next test may miss.
    """
    summary = statistics.summarise(values)
    if criterion is None:
        return summary
    spending = alpha_spending(criterion)
    count = next((n for n in criterion.counts if n >= summary.n), criterion.counts[-1])
    interval = statistics.median_interval(values, 1 - spending[count])
    level = 1 - ERROR if interval.enough else min(interval.level, 1 - ERROR)
    return replace(
        summary, low=interval.low, high=interval.high, level=level, enough=interval.enough
    )
