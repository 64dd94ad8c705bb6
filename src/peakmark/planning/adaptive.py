"""Repetitions as many as are needed: rounds, and after each the decision which rows get another.

``repetitions: {min: 6, max: 30, until: 2%}`` plans 30 cells for a row, of which six are measured in any case. Then, and
after every further round, it is decided for each row whether the 95 % interval of its median is narrow enough; what is
not needed any more is spared: it gets no job and no record, and is counted as spared. A round is half as long as all
before it together: few looks, as each look is one more chance to stop by luck, and few jobs that only look.

A decision never touches a record: repetitions that were measured stay, whatever is asked for later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from peakmark import files, statistics
from peakmark.cell import Cell
from peakmark.errors import ConfigError, RecordError
from peakmark.storage import integrity, records
from peakmark.units import parse_duration

FOLDER = "repetitions"

CLOSED = ("narrow", "cap", "time", "unavailable")
"""Why a row gets no further round: narrow enough, all planned are made, no time left, nothing can be measured here."""


@dataclass(frozen=True)
class Criterion:
    """At least ``least`` repetitions, at most ``most``, none beyond the first of which ``until`` is reached.

    until     half the 95 % interval of the median as a share of the median
    within_s  seconds that all repetitions beyond ``least`` of the rows with this criterion may take together, on each
              node; None: no limit but ``most``
    """

    least: int
    most: int
    until: float
    within_s: float | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """Repetitions that a row has after each round: 6 to 30 are (6, 9, 13, 19, 28, 30)."""
        found = [self.least]
        while found[-1] < self.most:
            found.append(min(self.most, found[-1] + max(1, found[-1] // 2)))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Row:
    """What was decided for a row.

    asked     repetitions asked for so far, the next round's among them when the decision is ``more``
    n         measured ones that the decision is made from
    half      half the interval of its least sure figure as a share of the median; None while there is no interval
    decision  ``more``, or one of ``CLOSED``
    """

    criterion: Criterion
    asked: int
    n: int
    half: float | None
    decision: str


Decisions = Mapping[str, Row]


def parse(where: str, value: Any) -> Criterion | None:
    """The criterion of a ``repetitions`` entry that fits the schema, None for a plain number. Errors: ConfigError."""
    if not isinstance(value, Mapping):
        return None
    if value["max"] <= value["min"]:
        raise ConfigError(f"{where}.max is {value['max']}: allowed is more than {where}.min, which is {value['min']}")
    within = value.get("within")
    return Criterion(
        value["min"],
        value["max"],
        _share(f"{where}.until", value["until"]),
        None if within is None else parse_duration(f"{where}.within", within),
    )


def _share(where: str, value: str | float) -> float:
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%?)\s*", str(value))
    share = float(match.group(1)) / (100 if match.group(2) else 1) if match else 0.0
    if not 0 < share < 1:
        raise ConfigError(
            f"{where} is {json.dumps(value, ensure_ascii=False)}: allowed is a share between 0 and 1, such as 2% or 0.02"
        )
    return share


def rounds(criteria: Mapping[str, Criterion]) -> int:
    """Rounds of a campaign: those of the row that may have most. 0 where no row is adaptive."""
    return max((len(criterion.counts) for criterion in criteria.values()), default=0)


def in_round(cells: Iterable[Cell], criteria: Mapping[str, Criterion], number: int) -> list[Cell]:
    """The cells of round ``number`` (from 0), were all rows to take part in it. Round 0 holds every fixed cell too."""
    found = []
    for cell in cells:
        criterion = criteria.get(cell.row)
        counts = criterion.counts if criterion else ()
        low = counts[number - 1] if 0 < number <= len(counts) else 0
        high = counts[number] if number < len(counts) else 0
        if (low <= cell.repetition < high) if criterion else number == 0:
            found.append(cell)
    return found


def asked(cells: Iterable[Cell], criteria: Mapping[str, Criterion], decisions: Decisions, number: int) -> list[Cell]:
    """The cells of round ``number`` that the decisions after the round before ask for."""
    return [
        cell
        for cell in in_round(cells, criteria, number)
        if number == 0 or (cell.row in decisions and cell.repetition < decisions[cell.row].asked)
    ]


def decide(
    cells: Iterable[Cell],
    criteria: Mapping[str, Criterion],
    earlier: Decisions,
    number: int,
    stored: Mapping[str, list[Mapping[str, Any]]],
) -> dict[str, Row]:
    """What comes after round ``number``, for every adaptive row; rows closed before stay closed.

    cells    in running order: where time is short, the first rows get it
    earlier  decisions after the round before
    stored   row -> its records; a row that lacks some of those asked for is left out
    """
    decided: dict[str, Row] = {}
    spent: dict[tuple[str, Criterion], float] = {}
    order = list(dict.fromkeys(cell.row for cell in cells if cell.row in criteria))
    nodes = {cell.row: cell.node for cell in cells}
    for row in order:
        purse = nodes[row], criteria[row]
        extra = [one for one in stored.get(row, ()) if one["cell"]["repetition"] >= criteria[row].least]
        spent[purse] = spent.get(purse, 0.0) + sum(one["context"]["seconds"] for one in extra)
    for row in order:
        criterion, found = criteria[row], stored.get(row, [])
        before = earlier.get(row)
        if before is not None and before.decision in CLOSED:
            decided[row] = before
            continue
        if len(found) < criterion.counts[min(number, len(criterion.counts) - 1)]:
            continue  # some have failed: they come first
        verdict = _decision(criterion, found, number)
        if verdict.decision == "more" and criterion.within_s is not None:
            purse = nodes[row], criterion
            seconds = sum(one["context"]["seconds"] for one in found) / len(found) if found else 0.0
            need = seconds * (verdict.asked - criterion.counts[number])
            if spent[purse] + need > criterion.within_s:
                verdict = Row(criterion, criterion.counts[number], verdict.n, verdict.half, "time")
            else:
                spent[purse] += need
        decided[row] = verdict
    return decided


def _decision(criterion: Criterion, found: list[Mapping[str, Any]], number: int) -> Row:
    made = criterion.counts[min(number, len(criterion.counts) - 1)]
    measured = [one for one in found if one["status"] == "ok"]
    half = half_interval(measured)
    if found and not measured:
        return Row(criterion, made, 0, None, "unavailable")
    if half is not None and half <= criterion.until:
        return Row(criterion, made, len(measured), half, "narrow")
    if number + 1 >= len(criterion.counts):
        return Row(criterion, made, len(measured), half, "cap")
    return Row(criterion, criterion.counts[number + 1], len(measured), half, "more")


def half_interval(measured: Iterable[Mapping[str, Any]]) -> float | None:
    """Half the 95 % interval of the median of the least sure figure of records of one row, as a share of the median.

    None while one of the figures has too few values for such an interval. One record may hold several figures: the
    four patterns of IOZone, or throughput and latency.
    """
    series: dict[tuple[Any, ...], list[float]] = {}
    for record in measured:
        for one in record["measurements"]:
            key = (one["workload"], one["variant"], one["block"], one["concurrency"], one["metric"])
            series.setdefault(key, []).append(float(one["value"]))
    summaries = [statistics.summarise(values) for values in series.values()]
    if not summaries or not all(summary.enough for summary in summaries):
        return None
    return max(statistics.half_interval(summary) for summary in summaries)


def shortfall(decision: Row) -> str | None:
    """Why a row ended without the narrow interval that was asked for, and the remedy; None where it did not."""
    wanted = f"±{decision.criterion.until * 100:g} %"
    if decision.decision not in ("cap", "time") or decision.half is None:
        return None
    reached = (
        f"after {decision.n} repetitions the median is sure to ±{decision.half * 100:.2g} % only, asked was {wanted}"
    )
    if decision.decision == "time":
        return f"{reached}: the time of within: is used up; allow more, or repeat on an idle node"
    return f"{reached}: repeat on an idle node, measure longer (seconds:), or allow a larger max:"


def read_records(directory: Path, cells: Iterable[Cell], criteria: Mapping[str, Criterion]) -> dict[str, list[Any]]:
    """Row -> its records that count, for the adaptive rows: a damaged or outdated one decides nothing."""
    found: dict[str, list[Any]] = {}
    for cell in cells:
        if cell.row in criteria:
            finding = integrity.look(directory / "cells" / f"{cell.id}.json", cell)
            if finding.state == integrity.GOOD:
                found.setdefault(cell.row, []).append(finding.data)
    return found


def write(path: Path, decisions: Decisions) -> None:
    """Store decisions. Errors: OSError."""
    rows = {row: {**asdict(one), "criterion": one.criterion.to_json()} for row, one in decisions.items()}
    records.write_file(path, json.dumps({"schema": 1, "rows": rows}, indent=1, sort_keys=True) + "\n")


def read(path: Path) -> dict[str, Row]:
    """Decisions from disk. Errors: RecordError when the file is missing or damaged."""
    try:
        rows = json.loads(files.read_text(path))["rows"]
        return {row: Row(**{**one, "criterion": Criterion(**one["criterion"])}) for row, one in rows.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path} cannot be read ({error}): delete it, the next run decides anew") from error


def standing(directory: Path, criteria: Mapping[str, Criterion]) -> dict[str, Row]:
    """The newest decision for each row that was made with the present criteria. Errors: RecordError."""
    if not criteria:
        return {}
    paths = (directory / FOLDER).glob("*.json")
    newest: dict[str, Row] = {}
    for path in sorted(paths, key=lambda path: (path.stem.isdigit(), int(path.stem) if path.stem.isdigit() else 0)):
        newest |= {row: one for row, one in read(path).items() if criteria.get(row) == one.criterion}
    return newest


def spared(cells: Iterable[Cell], decisions: Decisions) -> set[str]:
    """Ids of the planned cells that are not needed, as far as that is decided."""
    return {
        cell.id
        for cell in cells
        if cell.row in decisions
        and decisions[cell.row].decision in CLOSED
        and cell.repetition >= decisions[cell.row].asked
    }
