"""Judge a campaign: make the frames of ``results/C/rows/`` from its records, and write them."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from peakmark import files
from peakmark.config import layouts
from peakmark.errors import RecordError
from peakmark.rows import CAMPAIGN, CHECK, FOLDER, expectations, findings, schema
from peakmark.rows.campaign_facts import campaign_of, facts_of_hosts
from peakmark.rows.fleet import (
    add_verdicts,
    count_judged,
    list_slow_nodes,
    list_slow_parts,
)
from peakmark.rows.node_classes import add_reasons, list_nodes
from peakmark.rows.row_warnings import add_warnings
from peakmark.rows.rows import build_rows
from peakmark.rows.runs import read_runs
from peakmark.rows.schema import CampaignFrames
from peakmark.storage.results import Results

CHECKSUMS = "checksums.txt"
"""File of the checksums of plan, records and raw outputs, for ``sha256sum --check`` in the campaign's folder."""
TICK_S = 0.02
"""Largest time in s, with a margin, by which the time stamp of a new file may be behind the clock.

Linux takes the time stamp from its last timer tick, which is up to 10 ms ago.
"""
SOURCES = ("cells", "attempts", "machine", "plan.json", "config.json")
"""Files and folders of a campaign from which peakmark makes all other files of the campaign."""


def judge(results: Results) -> CampaignFrames:
    """Return the frames of a campaign, computed from its records; ``schema`` lists their columns."""
    name = results.config.report.tables
    layout = layouts.load(name) if name else None
    # What tables show of the repetitions.
    centre = layout.value if layout else "median"
    runs, rows = build_rows(read_runs(results), results, centre)
    rows, warnings = add_warnings(rows, runs, results)
    nodes = list_nodes(rows, results)
    rows = add_verdicts(rows, runs, nodes)
    nodes = count_judged(nodes, rows, warnings)
    campaign = campaign_of(results)
    campaign["promises"] = expectations.judge_promises(rows, results.config.site_facts.promise)
    warnings = expectations.add_promises(warnings, campaign["promises"])
    slow = [list_slow_nodes(rows), list_slow_parts(rows, runs, campaign["behind"])]
    fleet = add_reasons(pd.concat(slow, ignore_index=True), rows, nodes, results)
    runs, rows = schema.typed("runs", runs), schema.typed("rows", rows)
    frames = CampaignFrames(
        runs=runs,
        rows=rows,
        warnings=warnings,
        findings=pd.DataFrame(),
        nodes=nodes,
        facts=facts_of_hosts(results),
        fleet=schema.typed("fleet", fleet),
        campaign=campaign,
    )
    return replace(frames, findings=findings.find(frames, layout))


def load(campaign: Path, *, keep: bool = True) -> CampaignFrames:
    """Return the frames of a campaign.

    Frames that are up to date are read; otherwise they are computed from the records and written. A
    folder that holds frames but no plan is read without a check.

    Args:
        campaign: folder of the campaign.
        keep: whether to write frames that were computed.

    Raises:
        RecordError: the folder holds no campaign, or a record is damaged.
        PeakmarkError: the frames cannot be written.
    """
    if is_current(campaign):
        try:
            return schema.read(campaign)
        except RecordError:
            # Damaged frames are computed again, if the campaign has records.
            if not (campaign / "plan.json").is_file():
                raise
    # A new file has the time of the kernel's last tick, and may look older by up to ``TICK_S``.
    began = time.time() - TICK_S
    # Records hold no cycles. To look for some while they are read takes a quarter of the time.
    gc.disable()
    try:
        results = Results.read(campaign)
        found = judge(results)
    finally:
        gc.enable()
    if keep:
        schema.write(campaign, found)
        files.write_text(campaign / FOLDER / CHECKSUMS, results.checksum_list)
        classes = json.dumps(expectations.list_classes(found, results), indent=1)
        files.write_text(campaign / FOLDER / CHECK, f"{classes}\n")
        # A record that arrived meanwhile is newer than the rows, which lack it.
        os.utime(campaign / FOLDER / CAMPAIGN, (began, began))
    return found


def is_current(campaign: Path) -> bool:
    """Return whether a campaign has rows that are not older than any of their sources."""
    rows = campaign / FOLDER / CAMPAIGN
    if not rows.is_file():
        return False
    made = rows.stat().st_mtime_ns
    return all(path.stat().st_mtime_ns <= made for path in sources_of(campaign))


def sources_of(campaign: Path) -> Iterator[Path]:
    """Yield the paths of ``SOURCES``, and all files and folders below them.

    Folders count, because the removal of a file changes only the time stamp of its folder.
    """
    for name in SOURCES:
        source = campaign / name
        if source.exists():
            yield source
        yield from source.rglob("*")
