"""``repetitions/<round or job>.json``: what was decided on rows whose repetitions are as many as
are needed; ``suspects.json``: which rows are measured again; ``seal.json``: which trial cells are
slowed in secret. Who measures them reads it; tables open it only when the verdict is made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from peakmark import files, output
from peakmark.cell import AGAIN, Cell
from peakmark.config.types import Criterion
from peakmark.errors import RecordError
from peakmark.storage.records import ASIDE, read_json
from peakmark.validation import convert

FOLDER = "repetitions"
SUSPECTS = f"{FOLDER}/suspects.json"
ANEW = "the next run sets them aside and decides again"

CLOSED = ("narrow", "cap", "unavailable")
"""Why a row gets no further round: narrow enough, all planned are made, nothing can be measured here."""


Outcome = Literal["more", "narrow", "cap", "unavailable"]


class Decision(Struct, frozen=True, forbid_unknown_fields=True):
    """What was decided for a row.

    Attributes:
        asked: repetitions asked for so far, the next round's among them when the decision is
            ``more``
        n: measured ones that the decision is made from
        half: half the interval of its least sure figure as a share of the median; None while there
            is no interval
        decision: ``more``, or one of ``CLOSED``
    """

    criterion: Criterion
    asked: Annotated[int, Meta(ge=0, le=1000)]
    n: Annotated[int, Meta(ge=0, le=1000)]
    half: Annotated[float, Meta(ge=0)] | None
    decision: Outcome


class _File(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    schema: Literal[1]
    rows: dict[str, Decision]
    suspects: dict[str, list[str]] = {}


Decisions = Mapping[str, Decision]
Suspects = Mapping[str, list[str]]
"""Row of a slow node or link -> rows of the healthy ones that are measured again with it."""


def write(path: Path, decisions: Decisions, suspects: Suspects | None = None) -> None:
    """Store decisions. Errors: OSError."""
    stored = msgspec.to_builtins(_File(1, dict(decisions), dict(suspects or {})))
    files.write_text(path, json.dumps(stored, indent=1, sort_keys=True) + "\n")


def read(path: Path) -> dict[str, Decision]:
    """Decisions from disk. Errors: RecordError when the file is missing or damaged."""
    return _read(path).rows


def _read(path: Path) -> _File:
    what = f"the file of decisions {path}"
    return convert(read_json(path, what, ANEW), _File, f"{what} is damaged", ANEW)


def suspects(directory: Path) -> Suspects:
    """The rows that are measured again; none while that is not decided."""
    with suppress(RecordError):
        return _read(directory / SUSPECTS).suspects
    return {}


def measured_again(cells: Iterable[Cell], suspects: Suspects) -> list[Cell]:
    """The cells of a second measurement of suspects and of the nodes or links beside them: as many
    repetitions as planned, and at least ``ENOUGH``.
    """
    from peakmark.statistics import ENOUGH  # with numpy, which no cell needs

    rows = {*suspects, *(row for controls in suspects.values() for row in controls)}
    chosen = [replace(cell, purpose=AGAIN) for cell in cells if cell.row in rows]
    counts = Counter(cell.row for cell in chosen)
    chosen += [
        replace(cell, repetition=number)
        for cell in chosen
        for number in range(counts[cell.row], ENOUGH)
        if not cell.repetition
    ]
    return sorted(chosen, key=lambda cell: cell.repetition)


def standing(directory: Path, criteria: Mapping[str, Criterion]) -> dict[str, Decision]:
    """The newest decision for each row that was made with the present criteria. Damaged files
    decide nothing.
    """
    newest: dict[str, Decision] = {}
    for path in _paths(directory) if criteria else ():
        try:
            decided = read(path)
        except RecordError:
            continue
        newest |= {
            row: decision
            for row, decision in decided.items()
            if criteria.get(row) == decision.criterion
        }
    return newest


def damaged(directory: Path) -> list[RecordError]:
    """What is wrong with each file of decisions that does not count."""
    errors = []
    for path in _paths(directory):
        try:
            read(path)
        except RecordError as error:
            errors.append(error)
    return errors


def set_aside(directory: Path) -> None:
    """Move damaged decisions to where they are kept, and say so. Errors: OSError."""
    for path in _paths(directory):
        try:
            read(path)
        except RecordError as error:
            kept = files.set_aside(path, directory / ASIDE / FOLDER)
            output.tell(f"{error.fact}: decided again, the file as it was is {kept}")


def _paths(directory: Path) -> list[Path]:
    """Files of decisions, the newest last: those of jobs, then those of rounds."""
    paths = (directory / FOLDER).glob("*.json")
    return sorted(paths, key=lambda path: int(path.stem) if path.stem.isdecimal() else -1)


def spared(cells: Iterable[Cell], decisions: Decisions) -> set[str]:
    """Ids of the planned cells that are not needed, as far as that is decided."""
    return {
        cell.id
        for cell in cells
        if cell.row in decisions
        and decisions[cell.row].decision in CLOSED
        and cell.repetition >= decisions[cell.row].asked
    }


SEAL = "seal.json"
LOSS = 0.08
"""Share of the time of its CPUs that a slowed cell loses."""


class _Seal(Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    slowed: list[str]


def write_seal(directory: Path, slowed: Collection[str]) -> None:
    """Store the rows of the trial cells that are slowed. Errors: OSError."""
    text = json.dumps({"schema": 1, "slowed": sorted(slowed)}, indent=1)
    files.renew(directory / SEAL, f"{text}\n")


def open_seal(directory: Path) -> frozenset[str]:
    """The rows of trial cells that are slowed. Errors: RecordError without a whole file."""
    what = f"the seal {directory / SEAL}"
    return frozenset(convert(read_json(directory / SEAL, what), _Seal, f"{what} is damaged").slowed)
