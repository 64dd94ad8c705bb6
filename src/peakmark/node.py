"""``fan_out: node``: one job measures the cells of its node one after the other, a record each."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark import integrity, records
from peakmark.campaign import Campaign
from peakmark.cell import Cell
from peakmark.cluster import settings_of
from peakmark.errors import MeasurementError, PeakmarkError
from peakmark.jobs import part as part_of
from peakmark.measure import Request, measure


def present_path(directory: Path, node: str, part: str) -> Path:
    """File that names the cell a job is just measuring, so that one ended by Slurm can be told."""
    return directory / "nodes" / f"{node}.{part}.now"


def run(plan: Path, node: str, part: str, output: Path, kernels: Path) -> None:
    """Measure every cell of the node's part that has no valid record, in the plan's order; then write ``output``.

    Errors: MeasurementError when cells failed; all others have been measured nevertheless.
    """
    campaign = Campaign.open(plan.parent)
    config: Mapping[str, Any] = campaign.plan["config"]
    settings = settings_of(config)
    mine = [cell for cell in campaign.cells if cell.node == node and part_of(cell, settings) == part]
    waiting = [cell for cell in mine if not _measured(campaign.record_path(cell), cell)]
    now = present_path(campaign.directory, node, part)
    failed = []
    for cell in waiting:
        records.write_file(now, cell.id + "\n")
        try:
            measure(request(campaign, cell, kernels))
        except PeakmarkError as error:
            failed.append(cell)
            print(f"peakmark: {error}", file=sys.stderr, flush=True)
    now.unlink(missing_ok=True)
    if failed:
        raise MeasurementError(f"{len(failed)} of {len(waiting)} cells failed on {node}: {failed[0].id}, ...")
    records.write_file(output, json.dumps({"cells": [cell.id for cell in mine]}, indent=1) + "\n")


def request(campaign: Campaign, cell: Cell, kernels: Path) -> Request:
    """What to measure for a cell of a plan on a cluster."""
    config = campaign.plan["config"]
    tool = config["tools"].get(cell.instrument)
    return Request(
        cell,
        campaign.record_path(cell),
        campaign.directory,
        kernels,
        tool=str(tool) if tool else None,
        pair=part_of(cell, {}) == "pair",
        modules=tuple(config["modules"].get(cell.instrument, ())),
    )


def _measured(path: Path, cell: Cell) -> bool:
    """Whether there is a record of exactly this cell; one that is damaged or has other options does not count."""
    return integrity.look(path, cell).state == integrity.GOOD
