"""Repetitions as many as are needed: rounds, and after each the decision which rows get another.

``repetitions: {min: 6, max: 30, until: 2%}`` plans 30 cells for a row, of which six are measured in
any case. Then, and after every further round, it is decided for each row whether the 95 % interval
of its median is narrow enough; what is not needed any more is spared: it gets no job and no record,
and is counted as spared. A round is half as long as all before it together: few looks, as each look
is one more chance to stop by luck, and few jobs that only look.

A decision never touches a record: repetitions that were measured stay, whatever is asked for later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from peakmark import statistics
from peakmark.cell import Cell
from peakmark.config.types import Criterion
from peakmark.plan import sequential_testing
from peakmark.storage import integrity
from peakmark.storage.decisions import CLOSED, Decision, Decisions, Outcome


def rounds(criteria: Mapping[str, Criterion]) -> int:
    """Rounds of a campaign: those of the row that may have most. 0 where no row is adaptive."""
    return max((len(criterion.counts) for criterion in criteria.values()), default=0)


def in_round(cells: Iterable[Cell], criteria: Mapping[str, Criterion], number: int) -> list[Cell]:
    """The cells of round ``number`` (from 0), were all rows to take part in it. Round 0 holds every
    fixed cell too.
    """
    chosen = []
    for cell in cells:
        criterion = criteria.get(cell.row)
        counts = criterion.counts if criterion else ()
        low = counts[number - 1] if 0 < number <= len(counts) else 0
        high = counts[number] if number < len(counts) else 0
        if (low <= cell.repetition < high) if criterion else number == 0:
            chosen.append(cell)
    return chosen


def asked(
    cells: Iterable[Cell], criteria: Mapping[str, Criterion], decisions: Decisions, number: int
) -> list[Cell]:
    """The cells of round ``number`` that the decisions after the round before ask for."""
    whole = in_round(cells, criteria, number)
    asked = {row: decision.asked for row, decision in decisions.items()}
    return [cell for cell in whole if number == 0 or cell.repetition < asked.get(cell.row, 0)]


def decide(
    cells: Iterable[Cell],
    criteria: Mapping[str, Criterion],
    earlier: Decisions,
    number: int,
    stored: Mapping[str, list[Mapping[str, Any]]],
) -> dict[str, Decision]:
    """What comes after round ``number``, for every adaptive row; rows closed before stay closed.

    cells    in running order: where time is short, the first rows get it
    earlier  decisions after the round before
    stored   row -> its records; a row that lacks some of those asked for is left out
    """
    decided: dict[str, Decision] = {}
    spent: dict[tuple[str, Criterion], float] = {}
    order = list(dict.fromkeys(cell.row for cell in cells if cell.row in criteria))
    nodes = {cell.row: cell.node for cell in cells}
    for row in order:
        purse = nodes[row], criteria[row]
        extra = [
            record
            for record in stored.get(row, ())
            if record["cell"]["repetition"] >= criteria[row].least
        ]
        spent[purse] = spent.get(purse, 0.0) + sum(record["context"]["seconds"] for record in extra)
    for row in order:
        criterion, records = criteria[row], stored.get(row, [])
        before = earlier.get(row)
        if before is not None and before.decision in CLOSED:
            decided[row] = before
            continue
        if len(records) < criterion.counts[min(number, len(criterion.counts) - 1)]:
            continue  # some have failed: they come first
        verdict = _decision(criterion, records, number)
        if verdict.decision == "more" and criterion.within_s is not None:
            purse = nodes[row], criterion
            seconds = (
                sum(record["context"]["seconds"] for record in records) / len(records)
                if records
                else 0.0
            )
            need = seconds * (verdict.asked - criterion.counts[number])
            if spent[purse] + need > criterion.within_s:
                verdict = Decision(
                    criterion, criterion.counts[number], verdict.n, verdict.half, "time"
                )
            else:
                spent[purse] += need
        decided[row] = verdict
    return decided


def _decision(criterion: Criterion, records: list[Mapping[str, Any]], number: int) -> Decision:
    last = len(criterion.counts) - 1
    measured = [record for record in records if record["status"] == "ok"]
    half = half_interval(measured, criterion)
    decision: Outcome
    if records and not measured:
        decision = "unavailable"
    elif half is not None and half <= criterion.until:
        decision = "narrow"
    else:
        decision = "cap" if number >= last else "more"
    count = criterion.counts[min(number + (decision == "more"), last)]
    return Decision(criterion, count, len(measured), half, decision)


def half_interval(measured: Iterable[Mapping[str, Any]], criterion: Criterion) -> float | None:
    """Half the 95 % interval of the median of the least sure figure of records of one row, as a
    share of the median.

    None while one of the figures has too few values for such an interval. One record may hold
    several figures: the four patterns of IOZone, or throughput and latency.
    """
    series: dict[tuple[Any, ...], list[float]] = {}
    for record in measured:
        for entry in record["measurements"]:
            key = (
                entry["workload"],
                entry["variant"],
                entry["block"],
                entry["concurrency"],
                entry["metric"],
            )
            series.setdefault(key, []).append(float(entry["value"]))
    summaries = [sequential_testing.summarise(values, criterion) for values in series.values()]
    if not summaries or not all(summary.enough for summary in summaries):
        return None
    return max(statistics.half_interval(summary) for summary in summaries)


def read_records(
    directory: Path, cells: Iterable[Cell], criteria: Mapping[str, Criterion]
) -> dict[str, list[Any]]:
    """Row -> its records that count, for the adaptive rows: a damaged or outdated one decides
    nothing.
    """
    by_row: dict[str, list[Any]] = {}
    for cell in cells:
        if cell.row in criteria:
            finding = integrity.look(directory / "cells" / f"{cell.id}.json", cell)
            if finding.state == integrity.GOOD:
                by_row.setdefault(cell.row, []).append(finding.data)
    return by_row
