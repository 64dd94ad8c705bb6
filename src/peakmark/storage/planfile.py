"""What a campaign consists of: ``plan.json``, plain JSON with a line for each cell;
``repetitions/suspects.json``: which rows are measured again; ``seal.json``: which trial cells are
slowed in secret. Who measures them reads it; tables open it only when the verdict is made.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from peakmark import files, output
from peakmark.cell import AGAIN, Cell
from peakmark.errors import RecordError
from peakmark.storage.records import ASIDE, read_json
from peakmark.storage.types import PlanFile
from peakmark.validation import convert

ANEW = "the next run of this campaign writes it anew"
SUSPECTS = "repetitions/suspects.json"
SEAL = "seal.json"
LOSS = 0.08
"""Share of the time of its CPUs that a slowed cell loses."""
WAIT_S = 10.0
"""How long one cell waits at most until other programs have stopped."""
Suspects = Mapping[str, list[str]]
"""Row of a slow node or link -> rows of the healthy ones that are measured again with it."""


@dataclass(frozen=True)
class Part:
    """Some cells of a campaign and all that is needed to measure them.

    directory  folder of the campaign
    plan       the plan without its cells: config, cluster, references
    """

    directory: Path
    plan: Mapping[str, Any]
    cells: tuple[Cell, ...]


def text(plan: Mapping[str, Any]) -> str:
    """A plan as it stands on disk; its cells have their ``id``."""
    rest = {key: value for key, value in plan.items() if key != "cells"}
    cells = ",\n".join(json.dumps(cell, sort_keys=True) for cell in plan["cells"])
    return f'{json.dumps(rest, sort_keys=True)[:-1]}, "cells": [\n{cells}\n]}}\n'


def write(path: Path, plan: Mapping[str, Any]) -> None:
    """Replace the plan in one step, if it is another one. Errors: OSError."""
    files.renew(path, text(plan))


def write_new(path: Path, plan: Mapping[str, Any]) -> None:
    """The same where a person wants it.

    Errors: RecordError when something else than a plan of this campaign is there; OSError.
    """
    if path.exists() or path.is_symlink():
        known = ""
        with suppress(RecordError):
            known = read(path)["campaign"]
        if known != plan["campaign"]:
            what = f"the plan of the campaign {known}" if known else "no plan"
            raise RecordError(
                f"{path} is there already and is {what}: nothing was overwritten, give another name"
            )
    write(path, plan)


def read(path: Path) -> dict[str, Any]:
    """A whole plan. Errors: RecordError when there is none or it is damaged."""
    from peakmark.config.types import Planned  # late: a job needs neither configuration nor site

    plan = _read(path)
    convert(plan.get("config") or {}, Planned, f"{path} is damaged: config", ANEW)
    return plan


def _read(path: Path, words: str = "") -> dict[str, Any]:
    """A plan whose configuration is not checked again; with the cells that hold these words, if
    there are any.
    """
    try:
        content = files.read_bytes(path)
        plan: dict[str, Any] = files.parse_json(_shorter(content, words) if words else content)
    except OSError as error:
        raise RecordError(
            f"{path.parent} is no campaign: {path} {error.strerror}; "
            "give a folder below results/, or start one with peakmark run"
        ) from error
    except ValueError as error:
        raise RecordError(f"{path} is damaged ({error})", ANEW) from error
    convert(plan, PlanFile, f"{path} is damaged", ANEW)
    return plan


def _shorter(content: bytes, words: str) -> bytes:
    """To find cells by their text takes a tenth of the time that reading all of them does."""
    plan: dict[str, Any] = files.parse_json(content, dict[str, msgspec.Raw])
    cells = files.parse_json(plan.get("cells", b"[]"), list[msgspec.Raw])
    plan["cells"] = [cell for cell in cells if os.fsencode(words) in bytes(cell)] or cells
    return msgspec.json.encode(plan)


def cell(path: Path, name: str) -> Part:
    """One cell by its id; the plan holds a cell that is measured again only once, and of
    repetitions beyond the planned ones the first.

    Errors: RecordError when there is no plan, or it has no such cell.
    """
    planned = name.replace(f"+{AGAIN}/", "/")
    if planned == name:
        return _part(path, "id", name)
    row, _, number = planned.rpartition("/")
    try:
        part = _part(path, "id", planned)
    except RecordError:
        part = _part(path, "id", f"{row}/0")
    again = replace(part.cells[0], purpose=AGAIN, repetition=int(number))
    return replace(part, cells=(again,))


def job(path: Path, name: str) -> Part:
    """The cells of one job in running order. Errors: RecordError as above."""
    return _part(path, "job", name)


def _part(path: Path, key: str, name: str) -> Part:
    plan = _read(path, name)
    entries = [entry for entry in plan.pop("cells") if entry.get(key) == name]
    if not entries:
        raise RecordError(f"the plan {path} has no {name!r}: peakmark plan --cells lists its cells")
    return Part(path.parent, plan, cells_of(path, entries))


def cells_of(path: Path, entries: Iterable[Mapping[str, Any]]) -> tuple[Cell, ...]:
    """The cells of a plan. Errors: RecordError for what is no cell, and for one that stands twice."""
    cells = tuple(Cell.from_json(entry, f"{path} is damaged: cell") for entry in entries)
    twice = [name for name, count in Counter(cell.id for cell in cells).items() if count > 1]
    if twice:
        raise RecordError(f"{path} is damaged (it has the cell {twice[0]} twice)", ANEW)
    return cells


class _Chosen(Struct, frozen=True):
    schema: Literal[1]
    suspects: dict[str, list[str]] = {}


class _Seal(Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    slowed: list[str]


def write_suspects(directory: Path, suspects: Suspects) -> None:
    """Store which rows are measured again. Errors: OSError."""
    stored = {"schema": 1, "suspects": suspects}
    files.write_text(directory / SUSPECTS, json.dumps(stored, indent=1, sort_keys=True) + "\n")


def read_suspects(directory: Path) -> Suspects:
    """The rows that are measured again. Errors: RecordError when the file is missing or damaged."""
    path, remedy = directory / SUSPECTS, "the next run decides again"
    what = f"the file of suspects {path}"
    chosen = read_json(path, what, remedy)
    return convert(chosen, _Chosen, f"{what} is damaged", remedy).suspects


def suspects(directory: Path) -> Suspects:
    """The rows that are measured again; none while that is not decided."""
    with suppress(RecordError):
        return read_suspects(directory)
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


def set_aside_suspects(directory: Path) -> None:
    """Move a damaged file of suspects to where it is kept, and say so. Errors: OSError."""
    path = directory / SUSPECTS
    try:
        if path.exists():
            read_suspects(directory)
    except RecordError as error:
        kept = files.set_aside(path, directory / ASIDE / path.parent.name)
        output.tell(f"{error.fact}: decided again, the file as it was is {kept}")


def write_seal(directory: Path, slowed: Collection[str]) -> None:
    """Store the rows of the trial cells that are slowed. Errors: OSError."""
    text = json.dumps({"schema": 1, "slowed": sorted(slowed)}, indent=1)
    files.renew(directory / SEAL, f"{text}\n")


def open_seal(directory: Path) -> frozenset[str]:
    """The rows of trial cells that are slowed. Errors: RecordError without a whole file."""
    path = directory / SEAL
    what = f"the seal {path}"
    seal = convert(read_json(path, what), _Seal, f"{what} is damaged")
    return frozenset(seal.slowed)
