"""Failed attempts of a cell: each keeps a record of its own, whatever becomes of the cell later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.storage import records


def paths(campaign: Path, cell: Cell) -> Iterator[Path]:
    """Records of the failed attempts of a cell, oldest first."""
    folder = campaign / "attempts" / cell.id
    if folder.is_dir():
        yield from sorted(
            folder.glob("*.json"), key=lambda path: int(path.stem) if path.stem.isdigit() else 0
        )


def new(campaign: Path, cell: Cell) -> Path:
    """An empty file with the next free number, for the record of a failed attempt."""
    folder = campaign / "attempts" / cell.id
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while True:
        path = folder / f"{number}.json"
        try:
            path.open("x").close()
            return path
        except FileExistsError:
            number += 1


def store(campaign: Path, cell: Cell, record: dict[str, Any]) -> Path:
    """Keep the record of a failed attempt under its own number."""
    path = new(campaign, cell)
    records.write(path, record)
    return path
