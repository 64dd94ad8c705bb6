"""Outputs that the real tools printed, in tests/unit/data/<tool>/<case>/: run.json, stdout, stderr,
further files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from peakmark.cell import Cell
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed, Measurement, Parsed, Tool, Workspace

DATA = Path(__file__).parents[1] / "data"
CASES = tuple(
    sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in DATA.glob("*/*/run.json"))
)


def load(case: str) -> tuple[Cell, Completed]:
    """The cell of a case and what its command left."""
    folder = DATA / case
    run = json.loads((folder / "run.json").read_text())
    texts = {path.name: path.read_text() for path in folder.iterdir() if path.name != "run.json"}
    completed = Completed(
        argv=tuple(run["argv"]),
        returncode=run["returncode"],
        stdout=texts.pop("stdout", ""),
        stderr=texts.pop("stderr", ""),
        files=texts,
    )
    return Cell.from_json(run["cell"]), completed


def parse(case: str) -> Parsed:
    cell, completed = load(case)
    return REGISTRY[cell.instrument].parse(cell, completed)


def values(parsed: Parsed) -> dict[tuple[str, str], float]:
    """(workload, metric) -> value."""
    return {(row.workload, row.metric): row.value for row in parsed.measurements}


def main_text(completed: Completed) -> tuple[str | None, str]:
    """The text that the numbers stand in: (name of the file, None for standard output; its text)."""
    for name, text in completed.files.items():
        return name, text
    return None, completed.stdout


def with_text(completed: Completed, name: str | None, text: str) -> Completed:
    return replace(completed, files={name: text}) if name else replace(completed, stdout=text)


def cuts(text: str) -> Iterator[str]:
    """``text`` cut after each line, in the middle of each line, and one character before each
    line's end.
    """
    start = 0
    for line in text.splitlines(keepends=True):
        for length in {len(line) // 2, max(len(line) - 2, 0), len(line) - 1, len(line)}:
            yield text[: start + length]
        start += len(line)


def cell(
    subsystem: str,
    instrument: str,
    workload: str,
    variant: str,
    block: int | None,
    n: int,
    **options: object,
) -> Cell:
    return Cell(subsystem, instrument, workload, variant, block, n, "any", 0, options)  # type: ignore[arg-type]


def workspace(
    directory: Path = Path("/tmp"),
    cpus: tuple[int, ...] = (0, 1),
    memory: int = 8 << 30,
    **cpu: object,
) -> Workspace:
    return Workspace(directory, cpus, memory, {"cpu": cpu} if cpu else {})


def tool(name: str, path: str | None = None, version: str = "1") -> Tool:
    return Tool(name, path or f"/usr/bin/{name}", version)


def only(parsed: Parsed) -> Measurement:
    (row,) = parsed.measurements
    return row
