"""Read and write ``plan.json``, which lists the cells of a campaign, one per line of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.storage.record_types import PlanFile

ANEW = "the next run of this campaign writes it anew"
"""Remedy for a damaged plan."""
WAIT_S = 10.0
"""Longest time, in seconds, that a cell waits for other programs to stop."""


@dataclass(frozen=True)
class Part:
    """Some cells of a campaign, with the parts of the plan that their measurement needs.

    Attributes:
        directory: folder of the campaign.
        plan: the plan.
        cells: the cells to measure.
    """

    directory: Path
    plan: PlanFile
    cells: tuple[Cell, ...]


def text(plan: Mapping[str, Any]) -> str:
    """Return the text of a plan's file. The entries of ``plan["cells"]`` already have their ``id``."""
    rest = {key: value for key, value in plan.items() if key != "cells"}
    cells = ",\n".join(json.dumps(entry, sort_keys=True) for entry in plan["cells"])
    # The closing brace of the other keys is cut off, so that the cells continue their JSON.
    return f'{json.dumps(rest, sort_keys=True)[:-1]}, "cells": [\n{cells}\n]}}\n'


def write(path: Path, plan: Mapping[str, Any]) -> None:
    """Replace the plan's file atomically if the plan changed. Errors: OSError."""
    files.renew(path, text(plan))


def read(path: Path, words: str = "") -> PlanFile:
    """Read a plan.

    Args:
        path: the plan's file.
        words: keep only cells whose text contains these words; empty to keep all.

    Raises:
        RecordError: there is no plan, or it is damaged.
    """
    try:
        content = path.read_bytes()
        if words:
            content = _shorter(content, words)
        plan: PlanFile = files.parse_json(content, PlanFile)
    except NotADirectoryError as error:
        raise RecordError(
            f"{path.parent} is a file: unpack a bundle (unzip FILE.zip -d FOLDER) and give the folder; peakmark report, "
            "compare, fleet and export also take the bundle itself"
        ) from error
    except OSError as error:
        raise RecordError(
            f"{path.parent} is no campaign: {path}: {error.strerror}; "
            "give a folder below results/, or start one with peakmark run"
        ) from error
    except ValueError as error:
        raise RecordError(f"{path} is damaged ({error})", ANEW) from error
    return plan


def _shorter(content: bytes, words: str) -> bytes:
    """Return the JSON of a plan with only those cells whose text contains ``words``, or with all if none does.

    Each job of a campaign reads the plan for its own entries. Searching the text takes a tenth of
    the time of parsing all cells.
    """
    plan: dict[str, Any] = files.parse_json(content, dict[str, msgspec.Raw])
    cells = files.parse_json(plan.get("cells", b"[]"), list[msgspec.Raw])
    # ``words`` are of the command line, maybe no valid UTF-8: ``fsencode`` returns its bytes.
    # A plan without any cell would count as damaged, so all are kept if none has the words.
    plan["cells"] = [entry for entry in cells if os.fsencode(words) in bytes(entry)] or cells
    return msgspec.json.encode(plan)


def cell(path: Path, name: str) -> Part:
    """Return the cell with this id, as a ``Part``.

    Raises:
        RecordError: there is no plan, or it has no such cell.
    """
    return _part(path, "id", name)


def job(path: Path, name: str) -> Part:
    """Return the cells of one job, in running order.

    Raises:
        RecordError: there is no plan, or it has no such job.
    """
    return _part(path, "job", name)


def _part(path: Path, key: str, name: str) -> Part:
    """Return the cells whose ``key`` (``id`` or ``job``) is ``name``. Errors: RecordError."""
    plan = read(path, name)
    entries = [entry for entry in plan.cells if getattr(entry, key) == name]
    if not entries:
        raise RecordError(f"the plan {path} has no {name!r}: peakmark plan --cells lists its cells")
    return Part(path.parent, plan, tuple(map(Cell.of, entries)))
