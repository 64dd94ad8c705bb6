"""Collect the caveats of a campaign: what a reader must know before using its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from peakmark.catalogue import SUBSYSTEMS
from peakmark.messages import Message, Severity, message
from peakmark.rows import schema
from peakmark.rows.names import DISTURBANCES
from peakmark.rows.schema import CampaignFrames
from peakmark.views import score_card
from peakmark.views.score_card import Line


def planned_subsystems(frames: CampaignFrames) -> list[str]:
    """Return the subsystems that the plan measures, in the order of the report.

    If the plan measures nothing, return all subsystems.
    """
    subsystems = set(frames.rows["subsystem"])
    return [subsystem for subsystem in SUBSYSTEMS if subsystem in subsystems or not subsystems]


def build_caveats(frames: CampaignFrames) -> list[Message]:
    """Return the caveats of a campaign, the most important first.

    Together they have about a hundred words at most. They do not repeat the score card's remarks, nor
    problems that its next steps solve.
    """
    own = frames.rows[frames.rows["is_own"]]
    measured = own[own["n"].gt(0)]
    scale = frames.campaign["config"].get("scale")
    caveats = [
        *wrong_cores(frames),
        *doubtful_rows(frames, measured),
        *disturbed_rows(frames, measured),
        *parts_of_nodes(frames),
    ]
    if isinstance(scale, int | float) and scale < 1:
        caveats.append(message("scaled", scale=scale))
    for reason in frames.campaign.get("unplanned", {}).values():
        caveats.append(message("unplanned", reason=reason))
    if len(measured) < len(own):
        caveats.append(message("holes", rows=len(own) - len(measured), of=len(own)))
    return caveats


def wrong_cores(frames: CampaignFrames) -> Iterator[Message]:
    """Yield a caveat for each core that computed wrong results more than once."""
    wrong = frames.warnings[frames.warnings["code"].eq("wrong-core")]
    counts = Counter(schema.message_of_line(line) for line in schema.lines(wrong))
    for warning, count in counts.items():
        if count > 1:
            values = (*warning.values, ("count", count))
            yield replace(warning, case="again", severity=Severity.WRONG, values=values)


def doubtful_rows(frames: CampaignFrames, measured: pd.DataFrame) -> Iterator[Message]:
    """Yield a caveat with the number of wrong rows, and one with the number of other rows with warnings."""
    wrong = set(measured.loc[measured["severity"].eq(Severity.WRONG), "point"])
    warnings = warnings_on(frames, measured)
    warned = set(warnings.loc[warnings["severity"].ne(Severity.NOTE), "point"]) - wrong
    for severity, points in ((Severity.WRONG, wrong), (Severity.UNSURE, warned)):
        if points:
            yield message("doubtful", case=str(severity), rows=len(points), of=len(measured))


def disturbed_rows(frames: CampaignFrames, measured: pd.DataFrame) -> Iterator[Message]:
    """Yield a caveat that lists the disturbances of rows, each with its number of rows.

    A disturbance that makes no row unsure is left out. The numbers are those of the chapter Remarks, so
    they include rows whose other runs confirm the value.
    """
    warnings = warnings_on(frames, measured)
    counts = warnings.groupby("code")["point"].nunique()
    doubtful = set(warnings.loc[warnings["severity"].ne(Severity.NOTE), "code"])
    parts = []
    for code in DISTURBANCES:
        if code in doubtful:
            parts.append(message("in-short", case=code, rows=int(counts[code])))
    if parts:
        yield message("disturbed-rows", parts=tuple(parts), of=len(measured))


def warnings_on(frames: CampaignFrames, measured: pd.DataFrame) -> pd.DataFrame:
    """Return the warnings and notes on the values of peakmark's kernels, also those of the campaign."""
    instruments = measured.set_index("point")["instrument"]
    warnings = frames.warnings
    own = warnings["point"].map(instruments)
    is_on_own = warnings["about"].eq("") | warnings["about"].eq(own)
    return warnings[is_on_own & own.notna()]


def parts_of_nodes(frames: CampaignFrames) -> Iterator[Message]:
    """Yield a caveat if the score card shows only a part of the node, or narrow vector instructions.

    Only CPU and memory can have one. A share of the limit of four cores says nothing about a node with
    128 cores.
    """
    for subsystem, part in SUBSYSTEMS.items():
        if not part.pinned:
            continue
        row = score_card.first_row(frames, subsystem)
        if row is None:
            continue
        used, cores = cores_used(frames.runs, row)
        if used < cores:
            yield message("part-of-node", resource=part.title, used=used, cores=cores)
        for note in score_card.notes_of(frames, row):
            if note.code == "narrower":
                yield note


def cores_used(runs: pd.DataFrame, row: Line) -> tuple[int, int]:
    """Return the largest number of cores that a row's threads had, and the node's; 0 if unknown."""
    is_of_row = runs["point"].eq(row.point) & runs["instrument"].eq(row.instrument)
    known = runs[is_of_row & runs["kept"]].dropna(subset=["placed_cores", "allowed_cores"])
    pairs = zip(known["placed_cores"], known["node_cores"].fillna(0), strict=True)
    used, cores = max(pairs, default=(0, 0))
    return int(used), int(cores)
