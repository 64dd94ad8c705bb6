"""Campaigns of any size whose records are copies of real ones: one cell of each kind is measured,
the others take over its numbers. What is timed reads, checks and shows records; how they came
about makes no difference to it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from benchmarks.workflow.checkout import TimedCheckout
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError, RecordError
from peakmark.storage import records
from peakmark.storage.results import Results

Kind = tuple[str, str, str]


def kind(cell: Cell) -> Kind:
    """Cells of one kind have records of the same form."""
    return cell.instrument, cell.workload, cell.variant


def fill(checkout: TimedCheckout, config: str, name: str) -> int:
    """Write plan, facts and a record of every cell of the configuration. Returns the number of
    cells.

    Errors: PeakmarkError when a real cell cannot be measured.
    """
    folder = checkout.directory / "results" / name
    plan = folder.relative_to(checkout.directory) / "plan.json"
    checkout.peakmark("plan", "--configfile", config, "--write", str(plan))
    campaign = Results.read(folder)
    models: dict[Kind, tuple[dict[str, Any], Path]] = {}
    for cell in sorted(campaign.planned, key=lambda one: (one.concurrency, one.block or 0)):
        if kind(cell) not in models and cell.repetition == 0:
            models[kind(cell)] = _measured(checkout, campaign, cell)
    for number, cell in enumerate(campaign.planned):
        record, path = models[kind(cell)]
        if campaign.record_path(cell) != path:
            _copy(_varied(record, 1 + 1e-9 * number), path, cell, campaign.record_path(cell))
    return len(campaign.planned)


def _measured(
    checkout: TimedCheckout, campaign: Results, cell: Cell
) -> tuple[dict[str, Any], Path]:
    path = campaign.record_path(cell)
    plan = campaign.directory.relative_to(checkout.directory) / "plan.json"
    checkout.peakmark("measure", "--plan", str(plan), "--cell", cell.id)
    finding = records.look(path, cell)
    if finding.state != records.GOOD or finding.data is None:
        raise PeakmarkError(f"{cell.id} was not measured: {finding.reason or finding.state}")
    return dict(finding.data), path


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
    model = Cell.from_json(twin["cell"])
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
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(records.text_of(twin), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RecordError(f"cannot write {target}: {error}") from error
