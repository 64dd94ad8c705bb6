"""What a reader must know of a campaign before using its numbers, and what most of its rows share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from peakmark.catalogue import SUBSYSTEMS
from peakmark.messages import Message, Scope, Severity, merge, message
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames
from peakmark.views import score_card
from peakmark.views.score_card import Line

DISTURBANCES = ("steal", "other-load", "waited", "crowded-core", "clock-moved", "memory-load")
"""Codes of what disturbs runs."""


def planned_subsystems(frames: CampaignFrames) -> list[str]:
    """Return the subsystems that the plan measures, in the order of the report.

    These are all if it measures nothing.
    """
    subsystems = set(frames.rows["subsystem"])
    return [subsystem for subsystem in SUBSYSTEMS if subsystem in subsystems or not subsystems]


# -- caveats and conditions


def build_caveats(frames: CampaignFrames) -> list[Message]:
    """Return what a reader must know before using the numbers, the weightiest first.

    Together they have some hundred words at most. What the score card says of its lines, and what
    its next steps mend, is not repeated.
    """
    own = frames.rows[frames.rows["is_own"]]
    measured = own[own["n"].gt(0)]
    scale = frames.campaign["config"].get("scale")
    caveats = [
        *wrong_cores(frames),
        *doubtful_rows(measured),
        *disturbed_rows(frames),
        *parts_of_nodes(frames),
    ]
    if isinstance(scale, int | float) and scale < 1:
        caveats.append(message("scaled", scale=scale))
    if len(measured) < len(own):
        caveats.append(message("holes", rows=len(own) - len(measured), of=len(own)))
    return caveats


def wrong_cores(frames: CampaignFrames) -> Iterator[Message]:
    """Yield the cores that were wrong more than once: what they compute is not to be trusted."""
    told = frames.warnings[frames.warnings["code"].eq("wrong-core")]
    counts = Counter(schema.message_of_line(line) for line in schema.lines(told))
    for warning, count in counts.items():
        if count > 1:
            values = (*warning.values, ("count", count))
            yield replace(warning, case="again", severity=Severity.WRONG, values=values)


def doubtful_rows(measured: pd.DataFrame) -> Iterator[Message]:
    """Yield how many rows are wrong, and how many unsure."""
    for severity in (Severity.WRONG, Severity.UNSURE):
        count = int(measured["severity"].eq(severity).sum())
        if count:
            yield message("doubtful", case=str(severity), rows=count, of=len(measured))


def disturbed_rows(frames: CampaignFrames) -> Iterator[Message]:
    """Yield what disturbed most rows, in short: the first page has no room for the numbers."""
    disturbed = [code for code in conditions_by_code(frames) if code in DISTURBANCES]
    if disturbed:
        parts = tuple(message("in-short", case=code) for code in disturbed)
        yield message("disturbed-rows", parts=parts)


def conditions(frames: CampaignFrames) -> list[Message]:
    """Return what most rows share, each with the range of its numbers."""
    is_measured = frames.rows["is_own"] & frames.rows["n"].gt(0)
    found = []
    for messages in conditions_by_code(frames).values():
        merged = merge(messages)
        texts = dict.fromkeys(merged[each].message for each in messages)
        rows = len(messages)
        found.append(message("in-rows", rows=rows, of=int(is_measured.sum()), parts=tuple(texts)))
    return found


def conditions_by_code(frames: CampaignFrames) -> dict[str, list[Message]]:
    """Return code -> the messages of it that are printed once for the campaign, one of each row."""
    is_measured = frames.rows["is_own"] & frames.rows["n"].gt(0)
    points = frames.rows.loc[is_measured, "point"]
    warnings = frames.warnings
    shared = warnings[warnings["scope"].eq(Scope.CAMPAIGN) & warnings["point"].isin(points)]
    by_code: dict[str, list[Message]] = defaultdict(list)
    for line in schema.lines(shared.drop_duplicates(["point", "code"], keep="last")):
        by_code[line.code].append(replace(schema.message_of_line(line), about=""))
    return by_code


def parts_of_nodes(frames: CampaignFrames) -> Iterator[Message]:
    """Yield for CPU and memory whether the score card shows a part of the node, or narrow instructions.

    A share of the limit of four cores says nothing about a node with 128.
    """
    for subsystem, part in SUBSYSTEMS.items():
        row = score_card.first_row(frames, subsystem)
        if row is None or not part.pinned:
            continue
        used, cores = cores_used(frames.runs, row)
        if used < cores:
            yield message("part-of-node", resource=part.title, used=used, cores=cores)
        for note in score_card.notes_of(frames, row):
            if note.code == "narrower":
                yield note


def cores_used(runs: pd.DataFrame, row: Line) -> tuple[int, int]:
    """Return the cores that a row's threads had at most, and those of the node; 0 where unknown."""
    is_of_row = runs["point"].eq(row.point) & runs["instrument"].eq(row.instrument)
    known = runs[is_of_row & runs["kept"]].dropna(subset=["placed_cores", "allowed_cores"])
    pairs = zip(known["placed_cores"], known["node_cores"].fillna(0), strict=True)
    used, cores = max(pairs, default=(0, 0))
    return int(used), int(cores)
