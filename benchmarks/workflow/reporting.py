"""How long a person waits after the last cell, and what the tables of a large campaign take."""

from __future__ import annotations

import sys

from benchmarks.workflow import filled
from benchmarks.workflow.checkout import TimedCheckout
from benchmarks.workflow.lines import Line
from benchmarks.workflow.planning import grid


def largest_preset(checkout: TimedCheckout, turns: int) -> list[Line]:
    """Records of the largest preset to tables, figures and PDF."""
    config = "full.yaml"
    text = (checkout.directory / "config" / "presets" / "full.yaml").read_text(encoding="utf-8")
    # The kinds of cells are measured as briefly as they can be; the grid stays as it is.
    (checkout.directory / config).write_text(f"{text}\nscale: 0.0001\n", encoding="utf-8")
    name = "full"
    cells = filled.fill(checkout, config, name)
    walls = []
    for _ in range(turns):
        folder = f"results/{name}"
        tables = checkout.run(sys.executable, "-m", "peakmark", "tables", folder)
        report = checkout.run(sys.executable, "-m", "peakmark", "report", folder)
        walls.append(tables.wall + report.wall)
    return [
        Line(f"records to tables, figures and PDF, preset full ({cells} cells)", "s", walls, 20.0)
    ]


def many_records(checkout: TimedCheckout, turns: int, cells: int = 100_000) -> list[Line]:
    """So many records to all tables, the long one as CSV and Parquet among them."""
    config = checkout.configure("long", **grid(cells, 500))
    filled.fill(checkout, config, "long")
    costs = [
        checkout.run(sys.executable, "-m", "peakmark", "tables", "results/long")
        for _ in range(turns)
    ]
    return [
        Line(f"{cells} records to the tables", "s", [cost.wall for cost in costs], 60.0),
        Line(f"{cells} records, memory", "GiB", [cost.memory / (1 << 30) for cost in costs], 1.5),
    ]
