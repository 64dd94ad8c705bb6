"""``plan.json``: what a campaign consists of. A cell has a line of its own, by which a job finds it
among ten thousand.

The file is plain JSON. Its lines are laid out so that whoever measures one cell reads a line
instead of all: the keys that say something about the campaign stand first, each on its line, then
the cells, and last what only decides on repetitions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.storage.types import PlanFile
from peakmark.validation import convert

_FIRST, _LAST = b'"cells": [\n', b'\n],\n"adaptive": '
_NAMES = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
ANEW = "the next run of this campaign writes it anew"


@dataclass(frozen=True)
class Part:
    """Some cells of a campaign and all that is needed to measure them.

    directory  folder of the campaign
    plan       the plan without its cells: config, cluster, references, adaptive
    """

    directory: Path
    plan: Mapping[str, Any]
    cells: tuple[Cell, ...]


def text(plan: Mapping[str, Any]) -> str:
    """A plan as it stands on disk; ``cells`` and ``adaptive`` may be missing, cells have their
    ``id``.
    """
    first = [
        f"{json.dumps(key)}: {json.dumps(plan[key], sort_keys=True)},\n"
        for key in sorted(plan)
        if key not in ("cells", "adaptive")
    ]
    cells = ",\n".join(_NAMES.encode(cell) for cell in plan.get("cells", ()))
    return f'{{\n{"".join(first)}"cells": [\n{cells}\n],\n"adaptive": {json.dumps(plan.get("adaptive", {}))}\n}}\n'


def write(path: Path, plan: Mapping[str, Any]) -> None:
    """Replace the plan in one step, if it is another one. Errors: OSError."""
    files.renew(path, text(plan))


def write_new(path: Path, plan: Mapping[str, Any]) -> None:
    """The same where a person wants it.

    Errors: RecordError when something else than a plan of this campaign is there; OSError.
    """
    if path.exists() or path.is_symlink():
        try:
            known = read(path)["campaign"]
        except RecordError as error:
            raise RecordError(
                f"{path} is there already and is no plan: nothing was overwritten, give another name"
            ) from error
        if known != plan["campaign"]:
            raise RecordError(
                f"{path} is there already and is the plan of the campaign {known}: nothing was overwritten, give "
                "another name"
            )
    write(path, plan)


def read(path: Path) -> dict[str, Any]:
    """A whole plan. Errors: RecordError when there is none or it is damaged."""
    from peakmark.config.types import Planned  # late: a job needs neither configuration nor site

    try:
        plan: dict[str, Any] = files.read_json(path)
    except OSError as error:
        raise RecordError(
            f"{path.parent} is no campaign: {path} {error.strerror}; "
            "give a folder below results/, or start one with snakemake --profile local"
        ) from error
    except ValueError as error:
        raise RecordError(f"{path} is damaged ({error})", ANEW) from error
    convert(plan, PlanFile, f"{path} is damaged", ANEW)
    convert(plan.get("config") or {}, Planned, f"{path} is damaged: config", ANEW)
    return plan


def cell(path: Path, name: str) -> Part:
    """One cell by its id. Errors: RecordError when there is no plan, or it has no such cell."""
    return _part(path, "id", name)


def job(path: Path, name: str) -> Part:
    """The cells of one job in running order. Errors: RecordError as above."""
    return _part(path, "job", name)


def _part(path: Path, key: str, name: str) -> Part:
    try:
        data = files.read_bytes(path)
    except OSError as error:
        raise RecordError(
            f"the plan {path} cannot be read ({error.strerror}): snakemake writes one when it starts"
        ) from error
    first, last = data.find(_FIRST), data.find(_LAST)
    if first < 0 or last < 0:
        raise RecordError(f"{path} is no plan of this peakmark: give results/<campaign>/plan.json")
    try:
        plan = files.parse_json(data[:first] + b'"adaptive": ' + data[last + len(_LAST) :])
        lines = _lines(data, _NAMES.encode({key: name})[1:-1].encode(), first + len(_FIRST), last)
        found = [files.parse_json(line) for line in lines]
    except ValueError as error:
        raise RecordError(f"{path} is damaged ({error})", ANEW) from error
    if not found:
        raise RecordError(f"the plan {path} has no {name!r}: peakmark plan --cells lists its cells")
    whole = {**plan, "cells": found} if isinstance(plan, dict) else plan
    convert(whole, PlanFile, f"{path} is damaged", ANEW)
    return Part(path.parent, plan, cells_of(path, found))


def cells_of(path: Path, entries: Iterable[Mapping[str, Any]]) -> tuple[Cell, ...]:
    """The cells of a plan. Errors: RecordError for what is no cell, and for one that stands twice."""
    cells = tuple(Cell.from_json(entry, f"{path} is damaged: cell") for entry in entries)
    twice = [name for name, count in Counter(cell.id for cell in cells).items() if count > 1]
    if twice:
        raise RecordError(f"{path} is damaged (it has the cell {twice[0]} twice)", ANEW)
    return cells


def _lines(data: bytes, word: bytes, start: int, end: int) -> Iterator[bytes]:
    """The lines between two places that hold a word, without the comma at their ends."""
    place = data.find(word, start, end)
    while place >= 0:
        begin, stop = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
        yield data[begin:stop].rstrip(b",")
        place = data.find(word, stop, end)
