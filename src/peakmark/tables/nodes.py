"""Many nodes on paper: a line for each point with the median of all nodes, the lowest, the highest and those that lie apart.

A line for each node stands in the CSV files and on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from peakmark import statistics
from peakmark.formatting import listed, percent, significant
from peakmark.instruments.tables import Table
from peakmark.judging import fleet
from peakmark.judging.fleet import Spot
from peakmark.judging.row import Row
from peakmark.storage.results import Results
from peakmark.tables import presentation
from peakmark.tables.footnotes import Notes
from peakmark.tables.presentation import Column, Field, Grid

NAMED = 3


def grid(results: Results, table: Table, rows: Sequence[Row], mark: str = ".") -> tuple[Grid, list[Row]]:
    """The points of one table as text, and for each the row of the node that is nearest to the median."""
    spots = fleet.spots(rows)
    every = len({row.key.node for row in rows})
    notes = Notes.of(rows)

    def shown(value: Callable[[Spot], float | None]) -> Callable[[Spot], str]:
        def text(spot: Spot) -> str:
            number = value(spot)
            return "" if number is None else significant(number * table.factor, mark=mark)

        return text

    def share(spot: Spot) -> str:
        shares = [row.measured.efficiency for row in spot.rows if row.measured.efficiency is not None]
        return percent(statistics.median(shares), mark) if shares else ""

    def limit(spot: Spot) -> float | None:
        limits = [row.limit.value for row in spot.rows if row.limit.value is not None]
        return statistics.median(limits) if limits else None

    def of(instrument: str) -> Callable[[Spot], float | None]:
        return lambda spot: _median(spot, instrument)

    own = f"{table.own.heading}: {table.measured_group}"
    fields: list[Field] = [
        *presentation.through(presentation.key_fields(table), lambda spot: spot.middle),
        (Column("median", own, "number"), shown(lambda spot: spot.median)),
        (Column("low", own, "number"), shown(lambda spot: spot.low)),
        (Column("high", own, "number"), shown(lambda spot: spot.high)),
        (Column("Spread (%)", kind="number"), lambda spot: percent(spot.range, mark)),
        (Column("Slowest node"), lambda spot: spot.worst.key.node),
        *(
            (Column(series.heading, "Medians of references", "number"), shown(of(series.instrument)))
            for series in table.references
        ),
        (Column(table.theoretical_heading, kind="number"), shown(limit)),
        (Column("Efficiency (%)", kind="number"), share),
        (Column("Nodes", kind="number"), lambda spot: str(len(spot.rows))),
        (Column("Apart"), _apart),
        (presentation.NOTES, lambda spot: notes.marks(spot.every, mark)),
    ]
    remarks = presentation.remarks_on_gaps(results, table, rows, {series.instrument for series in table.series})
    points = len({fleet.place(row) for row in rows})
    if points > len(spots):
        remarks.append(f"{points - len(spots)} of {points} points were measured on no node, or are wrong on all")
    reading = f"A line for each point: {every} nodes. {table.remark}"
    whole = Grid.of(f"{table.name}_nodes", table.title, fields, spots, notes, remarks, reading, mark)
    placed = notes.footnotes(mark, lambda letter: _where(letter, notes, rows, every))
    return replace(whole, notes=placed), [spot.middle for spot in spots]


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
