"""Sums over nodes that used a shared disk at one moment, in the frame ``runs``.

Each node has a record. A table shows the sum of the nodes of each job, as a row of the first node. The
lines of single nodes stay in ``runs`` without a table.
"""

from __future__ import annotations

import pandas as pd

from peakmark.catalogue import count_of_nodes
from peakmark.rows import schema

SUMMED = ("throughput", "iops", "metadata")
"""Metrics whose values can be added."""
JOB = [
    *("first_node", "instrument", "workload", "variant", "block_bytes", "concurrency", "metric"),
    *("repetition", "job_id"),
]
"""Columns in which the values of the nodes of one job are equal."""


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
