"""The clock that the cores of CPU rows reached, and the best that is known of such work.

Clock and work per cycle are two figures: a share of the limit at the clock that a core had says
nothing of how low that clock was.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter

import pandas as pd

from peakmark.messages import Message, message
from peakmark.rows import schema
from peakmark.rows.runs import ROW
from peakmark.storage.facts import node_class
from peakmark.storage.results import Results

WORK = ["cpu_class", "workload", "isa", "concurrency"]
"""What clocks must have in common to be compared: an equal CPU, and the same work on it.

Many cores and wide vectors lower the clock.
"""
BOOSTED = 2
"""Threads up to which a processor must reach its highest clock, which is one of one or two busy
cores.
"""


def add_clocks(rows: pd.DataFrame, kept: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Add ``clock_hz``, ``clock_share`` and, as a message in JSON, ``clock_source`` to CPU rows.

    The clock of a host is the median over its undisturbed runs, that of a row the median over
    hosts. ``clock_share`` is it over the best clock that is known of such work.
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
    """Return for each point the highest clock that is known of its work, and where it was seen.

    That is the clock of another node with an equal CPU, or that of the datasheet.
    """
    found: dict[str, list[tuple[float, Message]]] = defaultdict(list)
    for point, hz, source in (*clocks_of_nodes(by_host), *clocks_of_datasheet(by_host, rows)):
        found[point].append((hz, source))
    lines = {}
    for point, clocks in found.items():
        hz, source = max(clocks, key=itemgetter(0))
        text = json.dumps(schema.to_json(source), ensure_ascii=False)
        lines[point] = {"best_hz": hz, "source": text}
    frame = pd.DataFrame(lines.values(), index=list(lines), columns=["best_hz", "source"])
    return frame.astype({"best_hz": float, "source": object})


def clocks_of_nodes(by_host: pd.DataFrame) -> Iterator[tuple[str, float, Message]]:
    """Yield for each point the clocks of the same work on other nodes with an equal CPU."""
    same = by_host.merge(by_host, on=WORK, suffixes=("", "_other"))
    is_other = same["host"].ne(same["host_other"]) & same["cpu_class"].ne("")
    for other in schema.lines(same[is_other]):
        hz = other.clock_hz_other
        yield other.point, hz, message("clock-of-node", best=hz, node=other.host_other)


def clocks_of_datasheet(
    by_host: pd.DataFrame, rows: pd.DataFrame
) -> Iterator[tuple[str, float, Message]]:
    """Yield the highest clock of the CPU for each point of few threads."""
    few = rows["is_own"] & rows["concurrency"].le(BOOSTED) & rows["maximum_hz"].gt(0)
    for row in schema.lines(rows[few & rows["point"].isin(by_host["point"])]):
        yield row.point, row.maximum_hz, message("clock-of-datasheet", best=row.maximum_hz)
