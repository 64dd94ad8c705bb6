"""Judge a campaign: make the frames of ``results/C/rows/`` from its records, and write them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from peakmark import files
from peakmark.errors import RecordError
from peakmark.plan.cluster import read_behind
from peakmark.resources import code_digest
from peakmark.rows import expectations, findings, schema
from peakmark.rows.campaign_facts import campaign_of, facts_of_hosts
from peakmark.rows.fleet import add_verdicts, count_judged, list_nodes, list_slow_nodes
from peakmark.rows.links import list_slow_parts
from peakmark.rows.names import CHECK, FOLDER
from peakmark.rows.reasons import add_reasons
from peakmark.rows.row_warnings import add_warnings
from peakmark.rows.rows import build_rows
from peakmark.rows.runs import read_runs
from peakmark.rows.schema import CampaignFrames
from peakmark.rows.states import add_states
from peakmark.rows.suspects import list_suspects
from peakmark.storage.results import Results

CHECKSUMS = "checksums.txt"
"""File of the raw outputs' checksums, for ``sha256sum --check`` in the campaign's folder."""
SOURCES = ("cells", "attempts", "machine", "plan.json", "config.json")
"""Files and folders of a campaign from which peakmark makes all other files of the campaign."""


def judge(results: Results) -> CampaignFrames:
    """Return the frames of a campaign, computed from its records; ``schema`` lists their columns."""
    runs, rows = build_rows(add_states(read_runs(results)), results)
    rows, warnings = add_warnings(rows, runs, results)
    nodes = list_nodes(rows, results)
    rows = add_verdicts(rows, runs, nodes)
    nodes = count_judged(nodes, rows)
    campaign = campaign_of(results)
    behind = read_behind(campaign)
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
    if not (campaign / "plan.json").is_file() and (campaign / FOLDER).is_dir():
        return schema.read(campaign)
    # Taken before the records are read: a record that arrives meanwhile makes the frames outdated.
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
        classes = json.dumps(expectations.list_classes(found, results), indent=1)
        files.write_text(campaign / FOLDER / CHECK, f"{classes}\n")
    return found


def state_of(campaign: Path) -> str:
    """Return a digest of peakmark's code and of the name, size and time of each source file.

    Frames with another digest in ``campaign.json`` are outdated.
    """
    digest = hashlib.sha256(code_digest().encode())
    for path in sorted(sources_of(campaign)):
        status = path.lstat()
        name = path.relative_to(campaign)
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def sources_of(campaign: Path) -> Iterator[Path]:
    """Yield the files that ``SOURCES`` names, and all files in the folders that it names."""
    for name in SOURCES:
        source = campaign / name
        for path in (source, *source.rglob("*")):
            if path.is_file():
                yield path
