"""Compare the clock of each CPU row with the highest clock known for the same work.

The efficiency of a CPU row is its share of the limit at the observed clock. It stays high on a node
whose clock is too low, so the clock is compared separately.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter

import pandas as pd

from peakmark.equipment import equipment_of
from peakmark.messages import words
from peakmark.rows import schema
from peakmark.rows.runs import ROW
from peakmark.storage.results import Results

WORK = ["cpu_class", "workload", "isa", "concurrency"]
"""Columns that must agree before clocks are compared: many cores and wide vectors lower the clock."""
BOOSTED = 2
"""Number of threads up to which a CPU reaches its maximum clock: datasheets state it for one or two
busy cores.
"""


def add_clocks(rows: pd.DataFrame, kept: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Add ``clock_hz``, ``clock_share`` and ``clock_source`` (its text) to CPU rows.

    The clock of a host is the median over its undisturbed runs, and the clock of a row is the median
    over its hosts. ``clock_share`` is the row's clock as a share of the highest clock known for the
    same work.
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
    """Return the median clock of the undisturbed runs of each CPU point on each host."""
    is_clean = kept["causes"].eq("") & kept["clock_hz"].gt(0) & kept["host"].isin([*results.facts])
    clean = kept[is_clean & kept["table"].eq("cpu")].merge(rows.loc[rows["is_own"], ROW], on=ROW)
    classes = {host: equipment_of(facts).cpu for host, facts in results.facts.items()}
    clean = clean.assign(cpu_class=clean["host"].map(classes))
    isa = clean.groupby(["point", "host"])["isa"].transform("first")
    return (
        clean.assign(isa=isa)
        .groupby(["point", "host", *WORK], dropna=False)["clock_hz"]
        .median()
        .reset_index()
    )


def best_clocks(by_host: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each point the highest clock known for its work, and the source of this clock.

    The source is another node with an equal CPU, or the datasheet.
    """
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for point, hz, source in (*clocks_of_nodes(by_host), *clocks_of_datasheet(by_host, rows)):
        found[point].append((hz, source))
    lines = {}
    for point, clocks in found.items():
        hz, source = max(clocks, key=itemgetter(0))
        lines[point] = {"best_hz": hz, "source": source}
    frame = pd.DataFrame(lines.values(), index=list(lines), columns=["best_hz", "source"])
    return frame.astype({"best_hz": float, "source": object})


def clocks_of_nodes(by_host: pd.DataFrame) -> Iterator[tuple[str, float, str]]:
    """Yield for each point the clocks that the same work reached on other nodes with an equal CPU."""
    pairs = by_host.merge(by_host, on=WORK, suffixes=("", "_other"))
    is_other = pairs["host"].ne(pairs["host_other"]) & pairs["cpu_class"].ne("")
    for other in schema.lines(pairs[is_other]):
        hz = other.clock_hz_other
        yield other.point, hz, words("clock-of-node", best=hz, node=other.host_other)


def clocks_of_datasheet(
    by_host: pd.DataFrame, rows: pd.DataFrame
) -> Iterator[tuple[str, float, str]]:
    """Yield the CPU's maximum clock for each point with at most ``BOOSTED`` threads."""
    few = rows["is_own"] & rows["concurrency"].le(BOOSTED) & rows["maximum_hz"].gt(0)
    for row in schema.lines(rows[few & rows["point"].isin(by_host["point"])]):
        yield row.point, row.maximum_hz, words("clock-of-datasheet", best=row.maximum_hz)
