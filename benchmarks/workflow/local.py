"""What a person waits for on one machine: planning, a finished campaign, the report, tables."""

from __future__ import annotations

from typing import Any

from benchmarks.workflow import filled
from benchmarks.workflow.checkout import TimedCheckout, run
from benchmarks.workflow.lines import Line

CPU_WORKLOADS = ["DP", "SP", "HP", "QP"]

# As many jobs without anything that a job may have; Python's garbage collector is set as ours.
BARE = """
import gc

gc.set_threshold(100_000, 20, 20)

rule all:
    input:
        expand("out/{{point}}/{{repetition}}", point=range({points}), repetition=range({repetitions})),

rule one:
    output:
        "out/{{point}}/{{repetition}}",
    shell:
        "sleep 1 > {{output}}"
"""


def grid(cells: int, repetitions: int) -> dict[str, Any]:
    """A configuration of so many cells of the cheapest kind."""
    points = cells // repetitions // len(CPU_WORKLOADS)
    return {
        "repetitions": repetitions,
        "cpu": [{"workloads": CPU_WORKLOADS, "concurrency": list(range(1, points + 1))}],
    }


def dry_runs(checkout: TimedCheckout, turns: int, cells: int = 10_000) -> list[Line]:
    """``snakemake -n`` for so many cells, in turn with as many jobs of a rule without anything."""
    repetitions = 50
    config = checkout.configure("planning", **grid(cells, repetitions))
    bare = checkout.directory / "bare"
    bare.mkdir()
    text = BARE.format(points=cells // repetitions, repetitions=repetitions)
    (bare / "Snakefile").write_text(text)
    ours, plain = [], []
    for _ in range(turns):
        ours.append(checkout.snakemake(config, "-n", "-q").wall)
        plain.append(run(["snakemake", "-n", "-q", "-c1"], bare).wall)
    name, rule = f"snakemake -n, {cells} cells", "as many jobs of a bare rule"
    return [Line(name, "s", ours, 1.5, rule, plain)]


def nothing_to_do(checkout: TimedCheckout, turns: int, cells: int = 5_000) -> list[Line]:
    """A run when all cells are measured and the report stands."""
    config = checkout.configure("finished", **grid(cells, 25))
    filled.fill(checkout, config, "finished")
    # Snakemake is told that it made these records itself, as it would have; then the real tables
    # and report.
    target = ["--until", "measure"]
    checkout.snakemake(config, "--quiet=all", "--touch", *target)
    checkout.snakemake(config, "--quiet=all")
    costs = [checkout.snakemake(config) for _ in range(turns)]
    said = (checkout.directory / ".said").read_text()
    assert "nothing to do" in said, said  # noqa: S101 - otherwise something else was timed
    walls = [cost.wall for cost in costs]
    return [Line(f"nothing to do, {cells} finished cells", "s", walls, 15.0)]


def largest_preset(checkout: TimedCheckout, turns: int) -> list[Line]:
    """Records of the largest preset to tables, figures and PDF."""
    config = "full.yaml"
    text = (checkout.directory / "config" / "presets" / "full.yaml").read_text(encoding="utf-8")
    # The kinds of cells are measured as briefly as they can be; the grid stays as it is.
    (checkout.directory / config).write_text(f"{text}\nscale: 0.0001\n", encoding="utf-8")
    cells = filled.fill(checkout, config, "full")
    walls = [checkout.report("full") for _ in range(turns)]
    name = f"records to tables, figures and PDF, preset full ({cells} cells)"
    return [Line(name, "s", walls, 20.0)]


def many_records(checkout: TimedCheckout, turns: int, cells: int = 100_000) -> list[Line]:
    """So many records to all tables, the long one as CSV and Parquet among them."""
    config = checkout.configure("long", **grid(cells, 500))
    filled.fill(checkout, config, "long")
    costs = [checkout.peakmark("tables", "results/long") for _ in range(turns)]
    return [
        Line(f"{cells} records to the tables", "s", [cost.wall for cost in costs], 60.0),
        Line(f"{cells} records, memory", "GiB", [cost.memory / (1 << 30) for cost in costs], 1.5),
    ]
