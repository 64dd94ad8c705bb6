"""``repetitions/<round or job>.json``: what was decided on rows whose repetitions are as many as are needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from peakmark import files
from peakmark.cell import Cell
from peakmark.config.repetitions import Criterion
from peakmark.errors import RecordError

FOLDER = "repetitions"

CLOSED = ("narrow", "cap", "time", "unavailable")
"""Why a row gets no further round: narrow enough, all planned are made, no time left, nothing can be measured here."""


@dataclass(frozen=True)
class Decision:
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


Decisions = Mapping[str, Decision]


def write(path: Path, decisions: Decisions) -> None:
    """Store decisions. Errors: OSError."""
    rows = {row: {**asdict(decision), "criterion": decision.criterion.to_json()} for row, decision in decisions.items()}
    files.write_text(path, json.dumps({"schema": 1, "rows": rows}, indent=1, sort_keys=True) + "\n")


def read(path: Path) -> dict[str, Decision]:
    """Decisions from disk. Errors: RecordError when the file is missing or damaged."""
    try:
        rows = json.loads(files.read_text(path))["rows"]
        return {row: Decision(**{**entry, "criterion": Criterion(**entry["criterion"])}) for row, entry in rows.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path} cannot be read ({error}): delete it, the next run decides anew") from error


def standing(directory: Path, criteria: Mapping[str, Criterion]) -> dict[str, Decision]:
    """The newest decision for each row that was made with the present criteria. Errors: RecordError."""
    if not criteria:
        return {}
    paths = (directory / FOLDER).glob("*.json")
    newest: dict[str, Decision] = {}
    for path in sorted(paths, key=lambda path: (path.stem.isdigit(), int(path.stem) if path.stem.isdigit() else 0)):
        newest |= {row: decision for row, decision in read(path).items() if criteria.get(row) == decision.criterion}
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
