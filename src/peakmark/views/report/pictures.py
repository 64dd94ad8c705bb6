"""The figures of each table: their rows and their captions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from peakmark.config.layouts import Drawing, Layout
from peakmark.messages import captions, message
from peakmark.rows.schema import CampaignFrames, is_mapped, is_pair
from peakmark.tools.tables import Table
from peakmark.views.node_groups import is_many
from peakmark.views.points import rows_of

FLEET = "fleet"
"""Figure on page one of several nodes: how much they differ."""
LADDER = "memory_ladder_throughput"
"""Table whose rows are the roofs of the roofline."""
ROOFLINE = "roofline"
RATES = "cpu"
"""Table of the rates of the roofline."""
ROOFS = ("DP", "FP32")
"""Workloads of the CPU that are roofs of the roofline."""
VALUES = {"measured": "value", "efficiency": "efficiency", "deviation": "sd"}
"""Value in a figure of a layout -> its column in ``rows``."""

Choose = Callable[[pd.DataFrame], pd.Series]


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of a table.

    Attributes:
        name: name of its files, without ending.
        rows: the lines of ``frames.rows`` in it; a figure without rows is not drawn.
        drawing: its entry in the layout, None for a usual figure.
    """

    name: str
    rows: pd.DataFrame
    drawing: Drawing | None = None


def is_single(rows: pd.DataFrame) -> pd.Series:
    """Mark rows of single nodes."""
    return ~is_pair(rows)


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
"""End of a figure's name, after the table's -> function that marks the rows in the figure."""


def pictures_of(frames: CampaignFrames, table: Table, layout: Layout | None) -> list[Picture]:
    """Return the figures of a table: those of the layout if it has any, else the usual ones.

    Some may have no rows.
    """
    rows = rows_of(frames, table)
    measured = rows[rows["n"].gt(0)]
    found = []
    if layout is not None:
        for drawing in layout.drawings:
            if drawing.table.name == table.name:
                found.append(Picture(drawing.name, measured[fits(drawing, measured)], drawing))
    if found:
        return found
    if table.metric == "core_to_core" and not holds_matrix(frames, measured):
        measured = measured.head(0)
    for part, choose in PARTS.items():
        name = f"{table.name}{part}"
        if name not in captions():
            continue
        shown = measured[choose(measured)]
        if part == "_percentiles" and is_many(frames):
            shown = shown.head(0)
        found.append(Picture(name, shown))
    if table.name == LADDER:
        found.append(Picture(ROOFLINE, roofs(frames)))
    return found


def fits(drawing: Drawing, rows: pd.DataFrame) -> pd.Series:
    """Mark the rows of a figure of a layout, of points that have the value in the figure."""
    found = pd.Series(True, index=rows.index)
    if drawing.workloads:
        found &= rows["workload"].isin(drawing.workloads)
    if drawing.variants:
        found &= rows["variant"].isin(drawing.variants)
    if drawing.kind == "panels":
        return found
    has_value = rows["is_own"] & rows[VALUES[drawing.value]].notna()
    if drawing.value == "deviation":
        has_value &= rows["n"].gt(1)
    return found & rows["point"].isin(rows.loc[has_value, "point"])


def roofs(frames: CampaignFrames) -> pd.DataFrame:
    """Return the roofs of the roofline for one thread and for the most threads.

    A roofline needs a ladder and a rate of one thread, and is drawn for a campaign of one node.
    """
    rows = frames.rows[frames.rows["is_own"] & frames.rows["n"].gt(0)]
    rows = rows[rows["table"].isin([RATES, LADDER, "memory_throughput"]) & is_roof(rows)]
    counts = set(rows.loc[rows["table"].eq(RATES), "concurrency"])
    has_ladder = rows["table"].eq(LADDER).any()
    if not has_ladder or 1 not in counts or rows["node"].nunique() > 1:
        return rows.head(0)
    return rows[rows["concurrency"].isin([1, max(counts)])]


def is_roof(rows: pd.DataFrame) -> pd.Series:
    """Mark floating-point rates, levels of the ladder on huge pages, and memory of several threads.

    The latter are sweeps of a cache, and reads from DRAM.
    """
    is_read = rows["workload"].eq("RS") & rows["variant"].eq("pool")
    is_level = rows["workload"].isin(ROOFS) | rows["variant"].str.endswith("-huge")
    is_of_many = is_cached(rows) | is_read
    return is_level.where(~is_of_many, rows["concurrency"].gt(1))


def holds_matrix(frames: CampaignFrames, rows: pd.DataFrame) -> bool:
    """Return whether any run of core-to-core latencies has more than one number."""
    runs = frames.runs[frames.runs["point"].isin(rows["point"])]
    return any(len(json.loads(points or "[]")) > 1 for points in runs["points"])


def without_rows(drawing: Drawing) -> str:
    """Return a sentence on why a figure of the layout is missing."""
    reason = {
        "efficiency": "no row has a known limit",
        "deviation": "no row was measured more than once",
        "measured": "nothing was measured for it",
    }[drawing.value]
    return f"No figure “{drawing.title}”: {reason}"


def caption(name: str, noun: str = "nodes") -> str:
    """Return the caption of a figure on one line.

    Args:
        name: name of the figure, or its kind.
        noun: what a dot of the figure stands for: nodes or pairs.
    """
    return f"{message('caption', case=name, noun=noun).fact}."
