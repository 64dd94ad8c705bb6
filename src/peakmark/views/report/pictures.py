"""Which figures a table has, which rows each shows, and its caption."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from peakmark.config.layouts import Drawing, Layout
from peakmark.messages import captions, message
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import Table
from peakmark.views.node_groups import is_many
from peakmark.views.points import rows_of

OVERVIEW = "overview"
"""Figure of page one: the share of the limit that each resource reaches."""
FLEET = "fleet"
"""Figure of page one of several nodes: how far they lie apart."""
LADDER = "memory_ladder_throughput"
"""Table whose rows are the roofs of the roofline."""
ROOFLINE = "roofline"
RATES = "cpu"
"""Table of the rates of the roofline."""
ROOFS = ("DP", "FP32")
"""Workloads of the CPU that are roofs of the roofline."""

Choose = Callable[[pd.DataFrame], pd.Series]


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of a table.

    Attributes:
        name: of its files, without ending.
        rows: the lines of ``rows`` that it shows; none where it is not drawn.
        drawing: what the layout says of it, None for a usual one.
    """

    name: str
    rows: pd.DataFrame
    drawing: Drawing | None = None


def is_single(rows: pd.DataFrame) -> pd.Series:
    """Mark rows of single nodes."""
    return ~is_pair(rows)


def is_pair(rows: pd.DataFrame) -> pd.Series:
    """Mark rows of pairs of nodes."""
    return rows["node"].str.contains("+", regex=False)


def is_mapped(rows: pd.DataFrame) -> pd.Series:
    """Mark rows of pairs that are right; that of a link which ``tc`` slows down is right here."""
    return is_pair(rows) & rows["is_own"] & rows["wrong_codes"].isin(["", "shaped"])


def is_cached(rows: pd.DataFrame) -> pd.Series:
    """Mark rows of the memory that measure a cache."""
    return rows["variant"].eq("block")


def is_dram(rows: pd.DataFrame) -> pd.Series:
    """Mark rows of the memory that measure DRAM."""
    return ~is_cached(rows)


def has_percentiles(rows: pd.DataFrame) -> pd.Series:
    """Mark the rows of points at which peakmark's kernel has percentiles."""
    points = rows.loc[rows["is_own"] & rows["p50"].notna(), "point"]
    return rows["point"].isin(points)


PARTS: Mapping[str, Choose] = {
    "": is_single,
    "_pool": is_dram,
    "_block": is_cached,
    "_percentiles": has_percentiles,
    "_links": is_mapped,
}
"""What follows the table's name in that of a figure -> the rows that the figure shows."""


def pictures_of(frames: CampaignFrames, table: Table, layout: Layout | None) -> list[Picture]:
    """Return the figures of a table: the usual ones, or those that a layout names of it.

    One without rows is there and empty.
    """
    rows = rows_of(frames, table)
    measured = rows[rows["n"].gt(0)]
    found = []
    for drawing in layout.drawings if layout else ():
        if drawing.table.name == table.name:
            found.append(Picture(drawing.name, measured[fits(drawing, measured)], drawing))
    if found:
        return found
    if table.metric == "core_to_core" and not holds_matrix(frames, measured):
        measured = measured.head(0)
    for part, choose in PARTS.items():
        name = f"{table.name}{part}"
        if name in captions():
            is_left_out = part == "_percentiles" and is_many(frames)
            shown = measured[choose(measured)]
            found.append(Picture(name, shown.head(0) if is_left_out else shown))
    if table.name == LADDER:
        found.append(Picture(ROOFLINE, roofs(frames)))
    return found


def fits(drawing: Drawing, rows: pd.DataFrame) -> pd.Series:
    """Mark the rows that belong into a figure of a layout and have what it shows."""
    found = pd.Series(True, index=rows.index)
    if drawing.workloads:
        found &= rows["workload"].isin(drawing.workloads)
    if drawing.variants:
        found &= rows["variant"].isin(drawing.variants)
    if drawing.kind == "panels":
        return found
    column = {"efficiency": "efficiency", "deviation": "sd", "measured": "value"}[drawing.value]
    has_value = rows["is_own"] & rows[column].notna()
    if drawing.value == "deviation":
        has_value &= rows["n"].gt(1)
    return found & rows["point"].isin(rows.loc[has_value, "point"])


def roofs(frames: CampaignFrames) -> pd.DataFrame:
    """Return the rows of one thread and of the most that are roofs of the roofline.

    There are none of several nodes, or without rates of one thread and the ladder.
    """
    rows = frames.rows[frames.rows["is_own"] & frames.rows["n"].gt(0)]
    rows = rows[rows["table"].isin([RATES, LADDER, "memory_throughput"]) & is_roof(rows)]
    counts = set(rows.loc[rows["table"].eq(RATES), "concurrency"])
    has_ladder = rows["table"].eq(LADDER).any()
    if not has_ladder or 1 not in counts or rows["node"].nunique() > 1:
        return rows.head(0)
    return rows[rows["concurrency"].isin([1, max(counts)])]


def is_roof(rows: pd.DataFrame) -> pd.Series:
    """Mark floating-point rates, and levels of the ladder on huge pages.

    Of more than one thread they are sweeps of a cache, and reads from DRAM.
    """
    is_read = rows["workload"].eq("RS") & rows["variant"].eq("pool")
    is_level = rows["workload"].isin(ROOFS) | rows["variant"].str.endswith("-huge")
    is_of_many = is_cached(rows) | is_read
    return is_level.where(~is_of_many, rows["concurrency"].gt(1))


def holds_matrix(frames: CampaignFrames, rows: pd.DataFrame) -> bool:
    """Return whether rows of core-to-core latencies have more than one number."""
    runs = frames.runs[frames.runs["point"].isin(rows["point"])]
    return any(len(json.loads(points or "[]")) > 1 for points in runs["points"])


def without_rows(drawing: Drawing) -> str:
    """Return why a figure of the layout is not there, in a sentence."""
    reason = {
        "efficiency": "no row has a known limit",
        "deviation": "no row was measured more than once",
        "measured": "nothing was measured for it",
    }[drawing.value]
    return f"No figure “{drawing.title}”: {reason}"


def caption(name: str, noun: str = "nodes") -> str:
    """Return the caption of a figure on one line.

    Args:
        name: of the figure, or of its kind.
        noun: what its dots are.
    """
    return f"{message('caption', case=name, noun=noun).fact}."
