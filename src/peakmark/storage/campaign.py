"""A campaign on disk: its plan and how far it has come."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import files
from peakmark.cell import Cell
from peakmark.config.repetitions import Criterion
from peakmark.errors import RecordError
from peakmark.storage import decisions
from peakmark.storage.decisions import Decisions

_NOTHING = type(None)
_SHAPE: dict[str, tuple[type, ...]] = {
    "campaign": (str,),
    "cells": (list,),
    "cells.*": (dict,),
    "config": (dict, _NOTHING),
    "config.report": (dict, _NOTHING),
    **dict.fromkeys(
        [f"config.report.{key}" for key in ("title", "author", "course", "logo", "tables")], (str, _NOTHING)
    ),
    "config.report.published": (list, _NOTHING),
    "config.report.published.*": (str,),
    "references": (list, _NOTHING),
    "references.*": (dict,),
    "cluster": (dict, _NOTHING),
    "adaptive": (dict, _NOTHING),
    "adaptive.*": (dict,),
}
"""Place in a plan -> what stands there; ``*`` for all that a list or mapping holds, nothing where it may be missing."""


def _wrong(plan: Any) -> str | None:
    """What in a plan is of another type than it must be; None when all is well."""
    if not isinstance(plan, dict):
        return "it holds no keys and values"
    for place, kinds in _SHAPE.items():
        above, _, last = place.rpartition(".")
        inside = _at(plan, above)
        values = [_at(plan, place)] if last != "*" else inside.values() if isinstance(inside, dict) else inside or ()
        if any(not isinstance(value, kinds) for value in values):
            return f"{above if last == '*' else place} is not of the right type"
    return None


def _at(plan: Any, place: str) -> Any:
    for key in place.split("."):
        plan = plan.get(key) if isinstance(plan, dict) else None
    return plan


@dataclass(frozen=True)
class Campaign:
    """``results/<campaign>/`` with its ``plan.json``."""

    directory: Path
    plan: dict[str, Any]

    @classmethod
    def open(cls, directory: Path) -> Campaign:
        """Errors: RecordError when there is no plan or it is damaged."""
        path = directory / "plan.json"
        try:
            plan = json.loads(files.read_text(path))
        except OSError as error:
            raise RecordError(
                f"{directory} is no campaign: {path} {error.strerror}; "
                "give a folder below results/, or start one with snakemake --profile local"
            ) from error
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{path} is damaged ({error}): delete it, the next run writes it anew") from error
        wrong = _wrong(plan)
        if wrong is not None:
            raise RecordError(f"{path} is damaged ({wrong}): delete it, the next run writes it anew")
        return cls(directory, plan)

    @property
    def cells(self) -> list[Cell]:
        return [Cell.from_json(cell) for cell in self.plan["cells"]]

    @property
    def criteria(self) -> dict[str, Criterion]:
        """Row -> what decides how many of its repetitions are made; rows with a fixed number have no entry."""
        return {row: Criterion(**one) for row, one in self.plan.get("adaptive", {}).items()}

    @property
    def decisions(self) -> Decisions:
        """The newest decision for each of those rows, as far as there is one. Errors: RecordError."""
        return decisions.standing(self.directory, self.criteria)

    def spared(self) -> set[str]:
        """Ids of planned cells that are not needed and have no record."""
        cells = self.cells if self.criteria else []
        ids = decisions.spared(cells, self.decisions)
        return {cell.id for cell in cells if cell.id in ids and not self.record_path(cell).exists()}

    def record_path(self, cell: Cell) -> Path:
        return self.directory / "cells" / f"{cell.id}.json"
