"""A campaign on disk: its plan and how far it has come."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.planning import adaptive
from peakmark.planning.adaptive import Criterion, Decisions


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
            return cls(directory, json.loads(files.read_text(path)))
        except OSError as error:
            raise RecordError(
                f"{directory} is no campaign: {path} {error.strerror}; "
                "give a folder below results/, or start one with snakemake --profile local"
            ) from error
        except ValueError as error:
            raise RecordError(f"{path} is damaged ({error}): delete it, the next run writes it anew") from error

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
        return adaptive.standing(self.directory, self.criteria)

    def spared(self) -> set[str]:
        """Ids of planned cells that are not needed and have no record."""
        cells = self.cells if self.criteria else []
        ids = adaptive.spared(cells, self.decisions)
        return {cell.id for cell in cells if cell.id in ids and not self.record_path(cell).exists()}

    def record_path(self, cell: Cell) -> Path:
        return self.directory / "cells" / f"{cell.id}.json"
