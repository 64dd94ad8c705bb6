"""Outputs of real tools in tests/unit/data/<tool>/<case>/; cells and workspaces for them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.tools import REGISTRY
from peakmark.tools.base import Command, Completed, Measurement, Parsed, Tool, Workspace

DATA = Path(__file__).parents[1] / "data"
CASES = tuple(
    sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in DATA.glob("*/*/run.json"))
)


def load(case: str) -> tuple[Cell, Completed]:
    """The cell of a case and what its command left."""
    folder = DATA / case
    run = json.loads((folder / "run.json").read_text())
    texts = {path.name: path.read_text() for path in folder.iterdir() if path.name != "run.json"}
    streams = (texts.pop("stdout", ""), texts.pop("stderr", ""))
    done = Completed(tuple(run["argv"]), run["returncode"], *streams, files=texts)
    return Cell.from_json(run["cell"]), done


def parse(case: str, text: str | None = None, **changes: Any) -> Parsed:
    """What is read of a case: with another ``text``, or with ``changes`` of its cell."""
    cell, done = load(case)
    done = done if text is None else with_text(done, text)
    return REGISTRY[cell.instrument].parse(replace(cell, **changes), done)


def values(parsed: Parsed) -> dict[tuple[str, str], float]:
    """(workload, metric) -> value."""
    return {(row.workload, row.metric): row.value for row in parsed.measurements}


def text_of(case: str) -> str:
    """The text that the numbers stand in: a file, else standard output."""
    done = load(case)[1]
    return next(iter(done.files.values()), done.stdout)


def with_text(done: Completed, text: str) -> Completed:
    if done.files:
        return replace(done, files=dict.fromkeys(done.files, text))
    return replace(done, stdout=text)


def with_json(case: str, **changes: Any) -> str:
    """A kernel's output with some values changed; None removes a key."""
    document = {**json.loads(text_of(case)), **changes}
    return json.dumps({key: value for key, value in document.items() if value is not None})


def cuts(text: str) -> Iterator[str]:
    """``text`` cut after, in the middle of, and one character before the end of each line."""
    start = 0
    for line in text.splitlines(keepends=True):
        for length in {len(line) // 2, max(len(line) - 2, 0), len(line) - 1, len(line)}:
            yield text[: start + length]
        start += len(line)


def cell(name: str, workload: str, variant: str, block: int | None, n: int, **options: Any) -> Cell:
    """A cell of the first subsystem of which the instrument has the workload."""
    rows = REGISTRY[name].rows
    subsystem = next((row.subsystem for row in rows if workload in row.of_cells), rows[0].subsystem)
    return Cell(subsystem, name, workload, variant, block, n, "any", 0, options)


def workspace(directory: Path = Path("/tmp"), cpus: Any = (0, 1), **more: Any) -> Workspace:
    """A workspace; ``more``: memory in bytes, other facts, and facts of the CPU."""
    memory, facts = more.pop("memory", 8 << 30), more.pop("facts", None) or {}
    return Workspace(directory, cpus, memory, {"cpu": more, **facts})


def tool(name: str, path: str | None = None, version: str = "1") -> Tool:
    return Tool(name, path or f"/usr/bin/{name}", version)


def command(cell: Cell, space: Workspace | None = None, name: str = "") -> Command:
    """What a cell's instrument runs."""
    found = tool(name or cell.instrument)
    return REGISTRY[cell.instrument].prepare(cell, found, space or workspace()).command


def script(path: Path, text: str) -> str:
    """A program that is a shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def only(parsed: Parsed) -> Measurement:
    (row,) = parsed.measurements
    return row
