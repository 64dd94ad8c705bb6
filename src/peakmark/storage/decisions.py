"""``repetitions/suspects.json``: which rows are measured again; ``seal.json``: which trial cells are
slowed in secret. Who measures them reads it; tables open it only when the verdict is made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from msgspec import Struct

from peakmark import files, output
from peakmark.cell import AGAIN, Cell
from peakmark.errors import RecordError
from peakmark.storage.records import ASIDE, read_json
from peakmark.validation import convert

SUSPECTS = "repetitions/suspects.json"
SEAL = "seal.json"
LOSS = 0.08
"""Share of the time of its CPUs that a slowed cell loses."""
Suspects = Mapping[str, list[str]]
"""Row of a slow node or link -> rows of the healthy ones that are measured again with it."""


class _Chosen(Struct, frozen=True):
    schema: Literal[1]
    suspects: dict[str, list[str]] = {}


class _Seal(Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    slowed: list[str]


def write(directory: Path, suspects: Suspects) -> None:
    """Store which rows are measured again. Errors: OSError."""
    stored = {"schema": 1, "suspects": suspects}
    files.write_text(directory / SUSPECTS, json.dumps(stored, indent=1, sort_keys=True) + "\n")


def read(directory: Path) -> Suspects:
    """The rows that are measured again. Errors: RecordError when the file is missing or damaged."""
    what, remedy = f"the file of suspects {directory / SUSPECTS}", "the next run decides again"
    chosen = read_json(directory / SUSPECTS, what, remedy)
    return convert(chosen, _Chosen, f"{what} is damaged", remedy).suspects


def suspects(directory: Path) -> Suspects:
    """The rows that are measured again; none while that is not decided."""
    with suppress(RecordError):
        return read(directory)
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


def set_aside(directory: Path) -> None:
    """Move a damaged file of suspects to where it is kept, and say so. Errors: OSError."""
    path = directory / SUSPECTS
    try:
        if path.exists():
            read(directory)
    except RecordError as error:
        kept = files.set_aside(path, directory / ASIDE / path.parent.name)
        output.tell(f"{error.fact}: decided again, the file as it was is {kept}")


def write_seal(directory: Path, slowed: Collection[str]) -> None:
    """Store the rows of the trial cells that are slowed. Errors: OSError."""
    text = json.dumps({"schema": 1, "slowed": sorted(slowed)}, indent=1)
    files.renew(directory / SEAL, f"{text}\n")


def open_seal(directory: Path) -> frozenset[str]:
    """The rows of trial cells that are slowed. Errors: RecordError without a whole file."""
    what = f"the seal {directory / SEAL}"
    return frozenset(convert(read_json(directory / SEAL, what), _Seal, f"{what} is damaged").slowed)
