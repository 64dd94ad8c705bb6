"""Write findings on pairs of nodes that were measured at one moment.

They state the sum of the pairs' throughputs, and compare it with the rates of the pairs measured alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from peakmark.catalogue import TOGETHER
from peakmark.formatting import node_or_link, quantity
from peakmark.plan.cluster import Behind, crossed, read_behind
from peakmark.rows import schema
from peakmark.rows.labels import Labels

POINT = ["workload", "block_bytes", "concurrency"]
"""Columns that are equal in the two rows of a pair: measured alone, and together with other pairs."""


def together_sentences(frames: schema.CampaignFrames, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield a sentence on each round of a table whose pairs were measured at one moment.

    Rows have the column ``disturbances``, see ``findings.add_disturbances``.
    """
    of_table = frames.rows[frames.rows["table"].eq(labels.table.name) & frames.rows["is_own"]]
    rows = of_table[of_table["variant"].eq(TOGETHER) & of_table["n"].gt(0)]
    if rows.empty:
        return
    known = read_behind(frames.campaign)
    line_at = {line.point: line for line in schema.lines(rows)}
    for _, of_round in rounds_of(frames.runs, rows).groupby([*POINT, "round"], sort=False):
        pairs = pairs_of_round(of_round, of_table)
        line = line_at[of_round["point"].iloc[0]]
        points = json.dumps([*pairs["point"]])
        text = sentence(pairs, labels.point(line, node=False), line.unit, known)
        text += on_disturbed(rows[rows["point"].isin(pairs["point"])])
        yield {"topic": "Together", "points": points, "text": text}


def rounds_of(runs: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the kept runs of pairs that were measured together, with the pairs of each ``round``.

    One job measures the pairs of a round once, and all rounds have the same number of pairs. Jobs in
    which a pair has no value that counts are left out, because their sum lacks this pair.
    """
    kept = runs[runs["point"].isin(rows["point"]) & runs["kept"]].sort_values("node", kind="stable")
    of_job = kept.groupby([*POINT, "job_id"])["node"]
    kept = kept.assign(round=of_job.transform(" ".join), count=of_job.transform("size"))
    complete = kept["count"].eq(kept.groupby(POINT)["count"].transform("max"))
    return kept[complete]


def pairs_of_round(of_round: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each pair of a round: its median ``together`` with others, and ``alone``.

    Args:
        of_round: runs of the round, as ``rounds_of`` returns them.
        rows: rows of the table.
    """
    medians = of_round.groupby(["node", "point"], sort=False)["value"].median()
    pairs = medians.rename("together").reset_index()
    same_point = rows["variant"].eq("")
    for name in POINT:
        same_point &= rows[name].eq(of_round[name].iloc[0])
    alone = rows[same_point & rows["n"].gt(0)].set_index("node")["value"]
    return pairs.assign(alone=pairs["node"].map(alone))


def sentence(pairs: pd.DataFrame, label: str, unit: str, known: Behind) -> str:
    """Return the sentence on a round.

    Args:
        pairs: the pairs of the round, as ``pairs_of_round`` returns them.
        label: label of the point.
        unit: unit of the values.
        known: switch or uplink -> nodes behind it.
    """
    total = pairs["together"].sum()
    names = [*pairs["node"]]
    text = f"{label}: {len(pairs)} pairs at one moment move {quantity(total, unit, 3)}"
    if pairs["alone"].notna().all():
        kept = pairs["together"] / pairs["alone"]
        share = total / pairs["alone"].sum()
        least = node_or_link(names[kept.argmin()])
        text += f", {100 * share:.0f} % of the sum of their rates alone"
        text += f"; {least} keeps the least of its rate alone, {100 * kept.min():.0f} %"
    fairness = pairs["together"].min() / pairs["together"].mean()
    slowest = node_or_link(names[pairs["together"].argmin()])
    text += f". The slowest pair, {slowest}, has {100 * fairness:.0f} % of the mean"
    crossing = switches(names, known)
    if crossing:
        text += f". Pairs that cross an uplink: {crossing}"
    return f"{text}."


def on_disturbed(rows: pd.DataFrame) -> str:
    """Return a sentence on the disturbed rows behind another sentence; empty if there is none."""
    count = int(rows["disturbances"].ne("").sum())
    if not count:
        return ""
    return f" Disturbed rows behind it: {count} of {len(rows)}."


def switches(pairs: Sequence[str], known: Behind) -> str:
    """Return how many of the pairs cross each uplink, such as ``2 through leaf1``; may be empty."""
    parts = []
    for name in sorted(known):
        count = sum(name in crossed(pair.split("+"), known) for pair in pairs)
        if count:
            parts.append(f"{count} through {name}")
    return ", ".join(parts)
