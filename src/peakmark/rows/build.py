"""Judge a campaign, and keep what was judged in ``results/C/rows/``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from peakmark import files
from peakmark.errors import RecordError
from peakmark.resources import code_digest
from peakmark.rows import findings, schema
from peakmark.rows.campaign_facts import campaign_of, facts_of_hosts
from peakmark.rows.fleet import add_verdicts, count_judged, list_nodes, list_slow_nodes
from peakmark.rows.links import list_slow_parts
from peakmark.rows.names import FOLDER
from peakmark.rows.reasons import add_reasons
from peakmark.rows.row_warnings import add_warnings
from peakmark.rows.rows import build_rows
from peakmark.rows.runs import read_runs
from peakmark.rows.schema import CampaignFrames
from peakmark.rows.suspects import list_suspects
from peakmark.storage.results import Results

CHECKSUMS = "checksums.txt"
"""Checksums of the raw outputs, as ``sha256sum --check`` reads them in the campaign's folder."""
SOURCES = ("cells", "attempts", "machine", "plan.json", "config.json")
"""What everything else in a campaign's folder is made of."""


def judge(results: Results) -> CampaignFrames:
    """Return what the records of a campaign come to: see ``schema``."""
    runs, rows = build_rows(read_runs(results), results)
    rows, warnings = add_warnings(rows, runs, results)
    nodes = list_nodes(rows, results)
    rows = add_verdicts(rows, runs, nodes)
    nodes = count_judged(nodes, rows)
    campaign = campaign_of(results)
    behind = {switch: frozenset(names) for switch, names in campaign["behind"].items()}
    suspects = list_suspects(rows, runs, results.config.get("suspects") or {})
    slow = [list_slow_nodes(rows), list_slow_parts(rows, runs, behind), suspects]
    fleet = add_reasons(pd.concat(slow, ignore_index=True), rows, runs, warnings, nodes, results)
    frames = CampaignFrames(
        runs=schema.typed("runs", runs),
        rows=schema.typed("rows", rows),
        warnings=warnings,
        findings=schema.typed("findings", pd.DataFrame()),
        nodes=nodes,
        facts=facts_of_hosts(results),
        fleet=schema.typed("fleet", fleet),
        campaign=campaign,
    )
    return replace(frames, findings=findings.find(frames))


def load(campaign: Path, *, keep: bool = True) -> CampaignFrames:
    """Return what a campaign comes to, from its files where these are up to date.

    Where they are not, the campaign is judged and the files are written. A folder that holds the
    files alone is read as it is.

    Args:
        campaign: its folder.
        keep: write the files; without it the folder stays as it is.

    Raises:
        RecordError: the folder holds no campaign, or a record is damaged.
        PeakmarkError: the files cannot be written.
    """
    if not (campaign / "plan.json").is_file() and (campaign / FOLDER).is_dir():
        return schema.read(campaign)
    # The state is taken first: a record that lands meanwhile makes another one.
    state = state_of(campaign)
    try:
        known = schema.read(campaign)
    except RecordError:
        known = None
    if known is not None and known.campaign.get("state") == state:
        return known
    results = Results.read(campaign)
    found = judge(results)
    found = replace(found, campaign={**found.campaign, "state": state})
    if keep:
        schema.write(campaign, found)
        files.write_text(campaign / FOLDER / CHECKSUMS, results.checksum_list)
    return found


def state_of(campaign: Path) -> str:
    """Return a digest that changes with the files of a campaign, and with the code that judges them."""
    total = hashlib.sha256(code_digest().encode())
    for path in sorted(sources_of(campaign)):
        known = path.lstat()
        name = path.relative_to(campaign)
        total.update(f"{name}\0{known.st_size}\0{known.st_mtime_ns}\n".encode())
    return total.hexdigest()


def sources_of(campaign: Path) -> Iterator[Path]:
    """Yield the files that a campaign is made of."""
    for name in SOURCES:
        source = campaign / name
        for path in (source, *source.rglob("*")):
            if path.is_file():
                yield path
