"""What a person waits for on one machine: planning, a finished campaign, the report, tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.results import Line
from benchmarks.workflow.checkout import TimedCheckout
from peakmark.cell import Cell, CellKeys
from peakmark.errors import PeakmarkError
from peakmark.storage import records
from peakmark.storage.results import Results

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
        plain.append(TimedCheckout(bare).run("snakemake", "-n", "-q", "-c1").wall)
    name, rule = f"snakemake -n, {cells} cells", "as many jobs of a bare rule"
    return [Line(name, "s", ours, 1.5, rule, plain)]


def nothing_to_do(checkout: TimedCheckout, turns: int, cells: int = 5_000) -> list[Line]:
    """A run when all cells are measured and the report stands."""
    config = checkout.configure("finished", **grid(cells, 25))
    fill(checkout, config, "finished")
    # Snakemake is told that it made these records itself, as it would have; then the real tables
    # and report.
    checkout.snakemake(config, "--quiet=all", "--touch", "--until", "measure")
    checkout.snakemake(config, "--quiet=all")
    walls = [checkout.snakemake(config).wall for _ in range(turns)]
    said = (checkout.directory / ".said").read_text()
    assert "nothing to do" in said, said  # noqa: S101 - otherwise something else was timed
    return [Line(f"nothing to do, {cells} finished cells", "s", walls, 15.0)]


def largest_preset(checkout: TimedCheckout, turns: int) -> list[Line]:
    """Records of the largest preset to tables, figures and PDF."""
    config = "full.yaml"
    text = (checkout.directory / "config" / "presets" / "full.yaml").read_text(encoding="utf-8")
    # The kinds of cells are measured as briefly as they can be; the grid stays as it is.
    (checkout.directory / config).write_text(f"{text}\nscale: 0.0001\n", encoding="utf-8")
    cells = fill(checkout, config, "full")
    walls = []
    for _ in range(turns):
        forget(checkout, "full")
        costs = [checkout.peakmark(word, "results/full") for word in ("tables", "report")]
        walls.append(sum(cost.wall for cost in costs))
    name = f"records to tables, figures and PDF, preset full ({cells} cells)"
    return [Line(name, "s", walls, 20.0)]


def many_records(checkout: TimedCheckout, turns: int, cells: int = 100_000) -> list[Line]:
    """So many records, judged and shown in all tables."""
    config = checkout.configure("long", **grid(cells, 500))
    fill(checkout, config, "long")
    costs = []
    for _ in range(turns):
        forget(checkout, "long")
        costs.append(checkout.peakmark("tables", "results/long"))
    return [
        Line(f"{cells} records to the tables", "s", [cost.wall for cost in costs], 60.0),
        Line(f"{cells} records, memory", "GiB", [cost.memory / (1 << 30) for cost in costs], 1.5),
    ]


def forget(checkout: TimedCheckout, name: str) -> None:
    """Remove what an earlier turn made from the records of a campaign: it would be read again."""
    for folder in ("rows", "tables", "figures"):
        shutil.rmtree(checkout.directory / "results" / name / folder, ignore_errors=True)


# -- campaigns of any size whose records are copies of real ones: one cell of each kind is measured,
# the others take over its numbers. What is timed reads, checks and shows records; how they came
# about makes no difference to it.


def kind(cell: Cell) -> tuple[str, str, str]:
    """Cells of one kind have records of the same form."""
    return cell.instrument, cell.workload, cell.variant


def fill(checkout: TimedCheckout, config: str, name: str) -> int:
    """Write plan, facts and a record of every cell of the configuration. Returns the number of
    cells.

    Errors: PeakmarkError when a real cell cannot be measured.
    """
    folder = checkout.directory / "results" / name
    plan = folder.relative_to(checkout.directory) / "plan.json"
    checkout.peakmark("plan", config, "--write", str(plan))
    campaign = Results.read(folder)
    models: dict[tuple[str, str, str], tuple[dict[str, Any], Path]] = {}
    for cell in sorted(campaign.cells, key=lambda one: (one.concurrency, one.block or 0)):
        if kind(cell) not in models and cell.repetition == 0:
            models[kind(cell)] = _measured(checkout, campaign, cell)
    for number, cell in enumerate(campaign.cells):
        record, path = models[kind(cell)]
        if campaign.record_path(cell) != path:
            _copy(_varied(record, 1 + 1e-9 * number), path, cell, campaign.record_path(cell))
    return len(campaign.cells)


def _measured(
    checkout: TimedCheckout, campaign: Results, cell: Cell
) -> tuple[dict[str, Any], Path]:
    path = campaign.record_path(cell)
    plan = campaign.directory.relative_to(checkout.directory) / "plan.json"
    checkout.peakmark("measure", "--plan", str(plan), "--cell", cell.id)
    finding = records.look(path, cell)
    if finding.state != records.GOOD or finding.data is None:
        raise PeakmarkError(f"{cell.id} was not measured: {finding.reason or finding.state}")
    # As JSON, which has lists alone: a tuple would be shared by all copies.
    return msgspec.json.decode(msgspec.json.encode(finding.data)), path


def _varied(value: Any, factor: float) -> Any:
    """A copy in which no number is quite the model's: real records share no measured one, and
    reading must not gain by it.
    """
    if isinstance(value, dict):
        return {name: _varied(member, factor) for name, member in value.items()}
    if isinstance(value, list):
        return [_varied(member, factor) for member in value]
    return value * factor if isinstance(value, float) else value


def _copy(twin: dict[str, Any], path: Path, cell: Cell, target: Path) -> None:
    """Make ``twin`` of the record at ``path`` that of ``cell``: its point in place of the model's,
    raw output beside it.
    """
    model = Cell.of(msgspec.convert(twin["cell"], CellKeys))
    twin["cell"] = cell.to_json()
    for measurement in twin["measurements"]:
        if measurement["block"] == model.block:
            measurement["block"] = cell.block
        if measurement["concurrency"] == model.concurrency:
            measurement["concurrency"] = cell.concurrency
    raw = {
        name.replace(f"{model.repetition}.raw", f"{cell.repetition}.raw"): digest
        for name, digest in twin["raw"].items()
    }
    for old, new in zip(twin["raw"], raw, strict=True):
        (target.parent / new).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path.parent / old, target.parent / new)
    twin["raw"] = raw
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(records.text_of(twin), encoding="utf-8")
