"""Sums over nodes that used a shared disk at one moment, in the frame ``runs``, and sentences on them.

Each node has a record. A table shows the sum of the nodes of each job, as a row of the first node. The
lines of single nodes stay in ``runs`` without a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from peakmark.catalogue import count_of_nodes, disk_variant
from peakmark.formatting import listed, plural
from peakmark.rows import schema
from peakmark.rows.labels import USUAL, Labels
from peakmark.rows.together import on_disturbed

SUMMED = ("throughput", "iops", "metadata")
"""Metrics whose values can be added."""
JOB = [
    *("first_node", "instrument", "workload", "variant", "block_bytes", "concurrency", "metric"),
    *("repetition", "job_id"),
]
"""Columns in which the values of the nodes of one job are equal."""
Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""


def add_sums_of_nodes(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the sums of nodes that were measured at one moment, and a line for each sum that is missing.

    The lines of the single nodes lose their table.
    """
    is_part = runs["first_node"].ne("")
    if not is_part.any():
        return runs
    parts = runs[is_part & runs["metric"].isin(SUMMED)]
    shown = [runs[~is_part], sums_of_jobs(parts), gaps_of_groups(parts)]
    return pd.concat([*shown, runs[is_part].assign(table="")], ignore_index=True)


def sums_of_jobs(parts: pd.DataFrame) -> pd.DataFrame:
    """Return a line with the sum of the nodes for each job and metric.

    Its other columns are those of the first node. A job in which a node has no value has no line.

    Args:
        parts: lines of nodes that were measured with others.
    """
    valid = parts[parts["value"].notna()]
    nodes = valid["variant"].map(count_of_nodes)
    of_job = valid.groupby(JOB, dropna=False)
    is_complete = of_job["node"].transform("nunique").eq(nodes)
    sums = valid.assign(
        value=of_job["value"].transform("sum"),
        causes=of_job["causes"].transform(words_of),
    )
    return sums[is_complete & sums["node"].eq(sums["first_node"])]


def words_of(texts: pd.Series) -> str:
    """Return the words of all texts, each once."""
    return " ".join(dict.fromkeys(" ".join(texts).split()))


def gaps_of_groups(parts: pd.DataFrame) -> pd.DataFrame:
    """Return the lines without a value as lines of the first node, and merge equal lines."""
    gaps = parts[parts["value"].isna()]
    cells = []
    for line in schema.lines(gaps):
        cells.append(line.cell.replace(f"/{line.node}/", f"/{line.first_node}/"))
    moved = gaps.assign(node=gaps["first_node"], cell=cells)
    return moved.drop_duplicates(["cell", "metric", "status", "reason"])


def sentences(frames: schema.CampaignFrames, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each point of a table that several nodes measured at one moment."""
    rows = frames.rows[frames.rows["table"].eq(labels.table.name) & frames.rows["n"].gt(0)]
    several = rows[rows["is_own"] & rows["variant"].map(count_of_nodes).gt(0)]
    kinds = several["variant"].map(kind_of)
    keys = [several["node"], several["workload"], kinds]
    keys += [several["block_bytes"], several["concurrency"]]
    for _, of_point in several.groupby(keys, sort=False, dropna=False):
        lines = list(schema.lines(of_point))
        points = json.dumps([line.point for line in lines])
        text = f"{sentence(lines, labels, frames.runs)}{on_disturbed(of_point)}"
        yield {"topic": "Several nodes", "points": points, "text": text}


def kind_of(variant: str) -> str:
    """Return a variant without its number of nodes, such as ``psync`` or ``psync one file``."""
    base, _, one_file = disk_variant(variant)
    return f"{base} one file" if one_file else base


def sentence(lines: list[Line], labels: Labels, runs: pd.DataFrame) -> str:
    """Return the sums of one point, and how evenly the most nodes shared the disk.

    Args:
        lines: rows of the point, from the fewest to the most nodes.
        labels: labels of the table.
        runs: frame ``runs`` with the lines of single nodes.
    """
    sums = []
    for line in lines:
        counted = plural(count_of_nodes(line.variant), "node")
        sums.append(f"{labels.quantity(line.value)} with {counted}")
    most = lines[-1]
    base, nodes, one_file = disk_variant(most.variant)
    text = labels.point(most, node=False)
    if base not in USUAL:
        text += f", {base}"
    if one_file:
        text += ", all nodes in one file"
    text += f": {listed(sums)} at the same time"
    if count_of_nodes(lines[0].variant) == 1 and len(lines) > 1:
        share = most.value / lines[0].value / nodes
        text += f". With {plural(nodes, 'node')}, a node has {100 * share:.0f} % of its rate alone"
    return f"{text}.{slowest(most, runs)}"


def slowest(line: Line, runs: pd.DataFrame) -> str:
    """Return a sentence that compares the slowest node of a row with the mean of the nodes' medians.

    It is empty for a single node.
    """
    is_part = runs["table"].eq("") & runs["first_node"].eq(line.node) & runs["value"].notna()
    for name in ("instrument", "workload", "variant", "concurrency", "unit"):
        is_part &= runs[name].eq(getattr(line, name))
    if line.block_bytes is not None:
        is_part &= runs["block_bytes"].eq(line.block_bytes)
    values = runs[is_part].groupby("node")["value"].median()
    if len(values) < 2:
        return ""
    share = 100 * values.min() / values.mean()
    return f" The slowest node, {values.idxmin()}, has {share:.0f} % of the mean of the nodes."
