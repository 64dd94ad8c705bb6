"""Many nodes on paper: a line for each point with the median of all nodes, the lowest, the highest and those that lie apart.

A line for each node stands in the CSV files and on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from peakmark import statistics
from peakmark.catalogue.tables import Table, count
from peakmark.formatting import listed, percent, significant, size, typeset
from peakmark.judging import fleet
from peakmark.judging.fleet import Spot
from peakmark.judging.row import Row
from peakmark.storage.results import Results
from peakmark.tables import footnotes, presentation
from peakmark.tables.footnotes import Footnote, Notes
from peakmark.tables.presentation import Column, Grid

NAMED = 3


def grid(results: Results, table: Table, rows: Sequence[Row], mark: str = ".") -> tuple[Grid, list[Row]]:
    """The points of one table as text, and for each the row of the node that is nearest to the median."""
    spots = fleet.spots(rows)
    notes = Notes.of(rows)
    body = tuple((*_cells(table, spot, mark), notes.marks(spot.every, mark)) for spot in spots)
    remarks = presentation.remarks_on_gaps(results, table, rows, {series.instrument for series in table.series})
    points = len({fleet.place(row) for row in rows})
    if points > len(spots):
        remarks.append(f"{points - len(spots)} of {points} points were measured on no node, or are wrong on all")
    every = len({row.key.node for row in rows})
    whole = Grid(
        name=f"{table.name}_nodes",
        title=table.title,
        columns=_columns(table),
        body=body,
        notes=tuple(Footnote.of(at, words, mark, _where(at, notes, rows, every)) for at, words in notes.words.items()),
        remarks=tuple(typeset(footnotes.closed(remark), mark) for remark in remarks),
        shared=tuple(typeset(footnotes.closed(remark), mark) for remark in notes.said_of_all),
        reading=f"A line for each point: {every} nodes. "
        + (typeset(footnotes.closed(table.remark), mark) if table.remark else ""),
    )
    return presentation.without_empty(whole), [spot.middle for spot in spots]


def brief(rows: Sequence[Row]) -> Grid:
    """The same for one column of a paper: median, lowest and highest node, and which is the slowest. ``rows``: of one table,
    at least one.
    """
    table = rows[0].table
    spots = fleet.spots(rows)
    variants = {spot.middle.key.variant for spot in spots}
    blocks = any(spot.middle.key.block is not None for spot in spots)

    def line(spot: Spot) -> tuple[str, ...]:
        key = spot.middle.key
        return (
            table.workload_label(key.workload) + (f" {key.variant}" if len(variants) > 1 else ""),
            *([size(key.block)] if blocks else []),
            key.word or str(key.concurrency),
            *(significant(value * table.factor) for value in (spot.median, spot.low, spot.high)),
            spot.worst.key.node,
        )

    numbers = [Column(name, kind="number") for name in ("N", "median", "low", "high")]
    unit = f" in {table.shown}" if table.shown else ""
    caption = f"{table.title}{unit} of {len({row.key.node for row in rows})} nodes"
    return Grid(
        name=table.name,
        title=table.title,
        columns=(Column(table.first), *([Column("Size")] if blocks else []), *numbers, Column("Slowest")),
        body=tuple(map(line, spots)),
        notes=(),
        remarks=(
            f"{caption}: median, lowest and highest; N {'streams' if table.subsystem == 'network' else 'threads'}.",
        ),
    )


def _columns(table: Table) -> tuple[Column, ...]:
    keys = [Column(table.first), Column("Concurrency", kind="number")]
    if table.block:
        keys.append(Column(table.block, kind="number"))
    if table.variant:
        keys.append(Column(table.variant))
    return (
        *keys,
        *(Column(name, f"{table.own.heading}: {table.measured_group}", "number") for name in ("median", "low", "high")),
        Column("Spread (%)", kind="number"),
        Column("Slowest node"),
        *(Column(series.heading, "Medians of references", "number") for series in table.references),
        Column(table.theoretical_heading, kind="number"),
        Column("Efficiency (%)", kind="number"),
        Column("Nodes", kind="number"),
        Column("Apart"),
        Column("Notes", kind="notes"),
    )


def _cells(table: Table, spot: Spot, mark: str) -> tuple[str, ...]:
    def shown(value: float | None) -> str:
        return "" if value is None else significant(value * table.factor, mark=mark)

    key = spot.middle.key
    cells = [table.workload_label(key.workload), str(count(key.concurrency, key.word))]
    if table.block:
        cells.append(size(key.block))
    if table.variant:
        cells.append(table.variant_label(key.variant))
    shares = [row.measured.efficiency for row in spot.rows if row.measured.efficiency is not None]
    limits = [row.limit.value for row in spot.rows if row.limit.value is not None]
    worst = spot.worst.key.node
    return (
        *cells, shown(spot.median), shown(spot.low), shown(spot.high), percent(spot.range, mark), worst,
        *(shown(_median(spot, series.instrument)) for series in table.references),
        shown(statistics.median(limits) if limits else None),
        percent(statistics.median(shares), mark) if shares else "",
        str(len(spot.rows)), _apart(spot),
    )  # fmt: skip


def _median(spot: Spot, instrument: str) -> float | None:
    values = [row.series[instrument].centre for row in spot.rows if instrument in row.series]
    return statistics.median(values) if values else None


def _apart(spot: Spot) -> str:
    """``node5, node7 +``: nodes that lie apart, a plus at those that are faster."""
    names = [row.key.node for row in spot.slow] + [f"{row.key.node}\u00a0+" for row in spot.fast]
    return ", ".join(names[:NAMED]) + (f", {len(names) - NAMED} more" if len(names) > NAMED else "")


def _where(at: str, notes: Notes, rows: Sequence[Row], every: int) -> str:
    """The nodes that a note is about, in brackets; nothing where it is about all."""
    nodes = {row.key.node: None for row in rows if any(notes.letters.get(note) == at for note in row.remarks)}
    if len(nodes) in (0, every):
        return ""
    which = listed([*nodes]) if len(nodes) <= NAMED else f"{len(nodes)} of {every} nodes"
    return f" (on {which})"


def frame(rows: Mapping[str, Sequence[Row]]) -> pd.DataFrame:
    """Every node in every point: its value in SI units, beside the median of all; what lies apart is ``slow`` or ``fast``."""
    lines = [
        {
            "table": name,
            "workload": row.key.workload,
            "variant": row.key.variant,
            "block": row.key.block,
            "concurrency": row.key.concurrency,
            "asked": row.key.word,
            "node": row.key.node,
            "unit": row.table.unit,
            "value": row.measured.centre,
            "median_low": row.measured.summary.low,
            "median_high": row.measured.summary.high,
            "median_of_nodes": spot.median,
            "behind": spot.behind(row),
            "apart": spot.apart(row),
        }
        for name, table in rows.items()
        for spot in fleet.spots(table)
        for row in spot.rows
    ]
    return pd.DataFrame(lines).astype({"block": "Int64"}) if lines else pd.DataFrame(columns=["table"])
