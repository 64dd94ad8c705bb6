"""Outputs of real tools in tests/unit/data/<tool>/<case>/; cells and workspaces for them."""

import json
from dataclasses import replace
from pathlib import Path

from tests.programs import executable
from tests.unit.campaign_data import cell_of

from peakmark.cell import Cell
from peakmark.formatting import parse_size
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed, Tool, Workspace

DATA = Path(__file__).parents[1] / "data"
CASES = tuple(
    sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in DATA.glob("*/*/run.json"))
)


def load(case):
    """The cell of a case and what its command left."""
    folder = DATA / case
    run = json.loads((folder / "run.json").read_text())
    texts = {path.name: path.read_text() for path in folder.iterdir() if path.name != "run.json"}
    streams = (texts.pop("stdout", ""), texts.pop("stderr", ""))
    done = Completed(tuple(run["argv"]), run["returncode"], *streams, files=texts)
    return cell_of(run["cell"]), done


def parse(case, text=None, **changes):
    """What is read of a case: with another ``text``, or with ``changes`` of its cell."""
    cell, done = load(case)
    done = done if text is None else with_text(done, text)
    return REGISTRY[cell.instrument].parse(replace(cell, **changes), done)


def values(parsed):
    """(workload, metric) -> value."""
    return {(row.workload, row.metric): row.value for row in parsed.measurements}


def text_of(case):
    """The text that the numbers stand in: a file, else standard output."""
    done = load(case)[1]
    return next(iter(done.files.values()), done.stdout)


def with_text(done, text):
    if done.files:
        return replace(done, files=dict.fromkeys(done.files, text))
    return replace(done, stdout=text)


def with_json(case, **changes):
    """A kernel's output with some values changed; None removes a key."""
    document = {**json.loads(text_of(case)), **changes}
    return json.dumps({key: value for key, value in document.items() if value is not None})


def cuts(text):
    """``text`` cut after, in the middle of, and one character before the end of each line."""
    start = 0
    for line in text.splitlines(keepends=True):
        for length in {len(line) // 2, max(len(line) - 2, 0), len(line) - 1, len(line)}:
            yield text[: start + length]
        start += len(line)


def cell(name, workload, variant, block, n, **options):
    """A cell of the first subsystem of which the instrument has the workload."""
    rows = REGISTRY[name].rows
    subsystem = next((row.subsystem for row in rows if workload in row.of_cells), rows[0].subsystem)
    return Cell(subsystem, name, workload, variant, block, n, "any", 0, options)


def listed(of):
    """A cell of a table of cases: what ``cell`` takes, a block as users write it, options at the end."""
    name, workload, variant, block, n, *options = of
    return cell(name, workload, variant, block and parse_size(block), n, **dict(*options))


def workspace(directory=Path("/tmp"), cpus=(0, 1), **more):
    """A workspace; ``more``: memory in bytes, other facts, and facts of the CPU."""
    memory, facts = more.pop("memory", 8 << 30), more.pop("facts", None) or {}
    return Workspace(directory, cpus, memory, {"cpu": more, **facts})


def ports(folder):
    """Folder as Linux lists adapters in: a slow port, the fastest one that is active, and two that carry no data."""
    states = (
        ("25 Gb/sec (1X EDR)", "4: ACTIVE"),
        ("100 Gb/sec (4X EDR)", "4: ACTIVE"),
        ("200 Gb/sec (4X HDR)", "1: DOWN"),
        ("200 Gb/sec (4X HDR)", "5: ACTIVE_DEFER"),
    )
    for number, (rate, state) in enumerate(states):
        port = folder / f"mlx5_{number}" / "ports" / "1"
        port.mkdir(parents=True)
        (port / "rate").write_text(f"{rate}\n")
        (port / "state").write_text(f"{state}\n")
    return folder


def tool(name, path=None, version="1"):
    return Tool(name, path or f"/usr/bin/{name}", version)


def command(cell, space=None, name=""):
    """What a cell's instrument runs."""
    instrument, found = REGISTRY[cell.instrument], tool(name or cell.instrument)
    instrument.check(cell)
    return instrument.prepare(cell, found, space or workspace())


def script(path, text):
    """A program that is a shell script."""
    return str(executable(path, f"#!/bin/sh\n{text}\n"))


def only(parsed):
    (row,) = parsed.measurements
    return row
