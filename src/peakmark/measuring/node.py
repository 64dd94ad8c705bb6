"""``fan_out: node``: one job measures the cells of its node one after the other, a record each."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.errors import MeasurementError, PeakmarkError
from peakmark.measuring.measure import Request, measure
from peakmark.planning import adaptive
from peakmark.planning.cluster import settings_of
from peakmark.planning.jobs import part as part_of
from peakmark.storage import integrity, records
from peakmark.storage.campaign import Campaign


def present_path(directory: Path, node: str, part: str) -> Path:
    """File that names the cell a job is just measuring, so that one ended by Slurm can be told."""
    return directory / "nodes" / f"{node}.{part}.now"


def run(plan: Path, node: str, part: str, output: Path, kernels: Path) -> None:
    """Measure every cell of the node's part that is needed and has no valid record, in the plan's order; then write
    ``output``. Which repetitions are needed is decided after each round, as between Snakemake's jobs.

    Errors: MeasurementError when cells failed; all others have been measured nevertheless.
    """
    campaign = Campaign.open(plan.parent)
    config: Mapping[str, Any] = campaign.plan["config"]
    settings = settings_of(config)
    mine = [cell for cell in campaign.cells if cell.node == node and part_of(cell, settings) == part]
    rows = {cell.row for cell in mine}
    criteria = {row: one for row, one in campaign.criteria.items() if row in rows}
    decisions: adaptive.Decisions = {}
    tried: list[Cell] = []
    failed: list[Cell] = []
    for number in range(max(1, adaptive.rounds(criteria))):
        asked = adaptive.asked(mine, criteria, decisions, number)
        waiting = [cell for cell in asked if not _measured(campaign.record_path(cell), cell)]
        tried += waiting
        failed += _measure(campaign, waiting, present_path(campaign.directory, node, part), kernels)
        if criteria:
            stored = adaptive.read_records(campaign.directory, mine, criteria)
            decisions = adaptive.decide(mine, criteria, decisions, number, stored)
    if criteria:
        adaptive.write(campaign.directory / adaptive.FOLDER / f"{node}.{part}.json", decisions)
    if failed:
        raise MeasurementError(f"{len(failed)} of {len(tried)} cells failed on {node}: {failed[0].id}, ...")
    records.write_file(output, json.dumps({"cells": [cell.id for cell in mine]}, indent=1) + "\n")


def _measure(campaign: Campaign, cells: list[Cell], now: Path, kernels: Path) -> list[Cell]:
    """Measure one after the other; ``now`` names the present one. Returns those that failed."""
    failed = []
    for cell in cells:
        records.write_file(now, cell.id + "\n")
        integrity.set_aside(campaign.directory, cell)  # one that was damaged since this run began
        try:
            measure(request(campaign, cell, kernels))
        except PeakmarkError as error:
            failed.append(cell)
            print(f"peakmark: {error}", file=sys.stderr, flush=True)
    now.unlink(missing_ok=True)
    return failed


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
