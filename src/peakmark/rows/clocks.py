"""The clock that the cores of CPU rows reached, and the best that is known of such work.

Clock and work per cycle are two figures: a share of the limit at the clock that a core had says
nothing of how low that clock was.
"""

from __future__ import annotations

import json

import pandas as pd

from peakmark.messages import message
from peakmark.rows import schema
from peakmark.rows.runs import ROW
from peakmark.storage.facts import node_class
from peakmark.storage.results import Results

WORK = ["cpu_class", "workload", "isa", "concurrency"]
"""What clocks must have in common to be compared: many cores and wide vectors lower them."""
BOOSTED = 2
"""Threads up to which a processor must reach its highest clock, which is one of one or two busy
cores.
"""


def add_clocks(rows: pd.DataFrame, kept: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Add ``clock_hz``, ``clock_share`` and, as a message in JSON, ``clock_source`` to CPU rows.

    The clock is the median over hosts of their undisturbed runs. The best clock of such work is that
    of another equal node, or for few threads that of the datasheet.
    """
    by_host = clean_clocks(rows, kept, results)
    clock = by_host.groupby("point")["clock_hz"].median()
    best = best_clocks(by_host, rows)
    of_rows = rows[["point"]].join(clock, on="point").join(best, on="point")
    is_own = rows["is_own"]
    share = (of_rows["clock_hz"] / of_rows["best_hz"]).clip(upper=1)
    return rows.assign(
        clock_hz=of_rows["clock_hz"].where(is_own),
        clock_share=share.where(is_own),
        clock_source=of_rows["source"].where(is_own & share.notna(), ""),
    )


def clean_clocks(rows: pd.DataFrame, kept: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return the clock of each CPU point on each host, by the runs that nothing disturbed."""
    is_clean = kept["causes"].eq("") & kept["clock_hz"].gt(0) & kept["host"].isin([*results.facts])
    clean = kept[is_clean & kept["table"].eq("cpu")].merge(rows.loc[rows["is_own"], ROW], on=ROW)
    classes = {}
    for host, facts in results.facts.items():
        known = node_class(facts)
        classes[host] = known.cpu if known else ""
    clean = clean.assign(cpu_class=clean["host"].map(classes))
    isa = clean.groupby(["point", "host"])["isa"].transform("first")
    return (
        clean.assign(isa=isa)
        .groupby(["point", "host", *WORK], dropna=False)["clock_hz"]
        .median()
        .reset_index()
    )


def best_clocks(by_host: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best clock that is known of the work of each point, with where it was seen."""
    same = by_host.merge(by_host, on=WORK, suffixes=("", "_other"))
    others = same[same["host"].ne(same["host_other"]) & same["cpu_class"].ne("")]
    lines = []
    for other in schema.lines(others):
        source = message("clock-of-node", best=other.clock_hz_other, node=other.host_other)
        lines.append((other.point, other.clock_hz_other, source))
    few = rows[rows["is_own"] & rows["concurrency"].le(BOOSTED) & rows["maximum_hz"].gt(0)]
    for row in schema.lines(few[few["point"].isin(by_host["point"])]):
        lines.append(
            (row.point, row.maximum_hz, message("clock-of-datasheet", best=row.maximum_hz))
        )
    best: dict[str, dict[str, object]] = {}
    for point, hz, source in sorted(lines, key=lambda line: -line[1]):
        text = json.dumps(schema.to_json(source), ensure_ascii=False)
        best.setdefault(point, {"best_hz": hz, "source": text})
    frame = pd.DataFrame(best.values(), index=list(best), columns=["best_hz", "source"])
    return frame.astype({"best_hz": float, "source": object})
