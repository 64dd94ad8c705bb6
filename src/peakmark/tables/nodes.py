"""Many nodes on paper: a line for each point with the median of all nodes, the lowest, the highest
and those that are slow.

A line for each node stands in the CSV files and on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from peakmark import statistics
from peakmark.analysis import fleet
from peakmark.analysis.fleet import NodeGroup
from peakmark.analysis.row import Row, Rows
from peakmark.analysis.suspects import SecondMeasurement
from peakmark.formatting import counted, listed, percent
from peakmark.storage.results import Results
from peakmark.tables import presentation
from peakmark.tables.columns import (
    EFFICIENCY,
    Column,
    key_columns,
    numbers,
    of_quantity,
    of_series,
    quantity_column,
    through,
    words,
)
from peakmark.tables.footnotes import Notes
from peakmark.tables.presentation import PrintedTable
from peakmark.tools.tables import Table

NAMED = 3
POINT = ("workload", "variant", "block", "concurrency")


def grid(results: Results, table: Table, rows: Sequence[Row]) -> tuple[PrintedTable, list[Row]]:
    """The points of one table as text, and for each the row of the node that is nearest to the
    median.
    """
    groups = fleet.group_rows(rows)
    every = len({row.key.node for row in rows})
    notes = Notes.of(rows)

    has_classes = any(group.node_class for group in groups)
    own = f"{table.own.heading}: {of_quantity(table, 'Measured')}"
    columns = [
        *through(key_columns(table), lambda group: group.middle),
        *([words("Class", lambda group: group.node_class)] if has_classes else []),
        quantity_column(table, "median", lambda group: group.median, own),
        quantity_column(table, "low", lambda group: group.low, own),
        quantity_column(table, "high", lambda group: group.high, own),
        numbers("Spread (%)", lambda group: percent(group.range)),
        words("Slowest", lambda group: group.worst.key.node),
        *(
            quantity_column(
                table,
                program.heading,
                _median(of_series(program, lambda series: series.centre)),
                "Medians of references",
            )
            for program in table.references
        ),
        quantity_column(
            table, of_quantity(table, "Theoretical"), _median(lambda row: row.limit.value)
        ),
        Column(
            label=EFFICIENCY,
            value=_median(lambda row: row.measured.efficiency),
            kind="number",
            form=percent,
        ),
        numbers(fleet.noun(rows).title(), lambda group: str(len(group.rows))),
        words("Slow", _slow),
        Column(label="Notes", kind="notes", in_print=lambda group: notes.warnings(group.every)),
    ]
    remarks = presentation.remarks_on_gaps(
        results, table, rows, {series.instrument for series in table.series}
    )
    points = len({(row.node_class, fleet.place(row)) for row in rows})
    if points > len(groups):
        remarks.append(
            f"{points - len(groups)} of {points} points were measured on no node, or are wrong on all"
        )
    reading = f"A line for each point: {every} {fleet.noun(rows)}. {table.remark}"
    whole = PrintedTable.of(
        f"{table.name}_nodes", table.title, columns, groups, notes, remarks, reading
    )
    placed = notes.footnotes(lambda letter: _where(letter, notes, rows, every))
    return replace(whole, notes=placed), [group.middle for group in groups]


def _median(of: Callable[[Row], float | None]) -> Callable[[NodeGroup], float | None]:
    """The median over the nodes of a point that have such a number."""

    def median(group: NodeGroup) -> float | None:
        known = [number for row in group.rows if (number := of(row)) is not None]
        return statistics.median(known) if known else None

    return median


def _slow(group: NodeGroup) -> str:
    """``node5 and node7``: the nodes that are slow."""
    names = [row.key.node for row in group.slow]
    return counted(names, NAMED) if names else ""


def _where(at: str, notes: Notes, rows: Sequence[Row], every: int) -> str:
    """The nodes that a note is about, in brackets; nothing where it is about all."""
    nodes = {
        row.key.node: None
        for row in rows
        if any(notes.letters.get(note) == at for note in row.remarks)
    }
    if len(nodes) in (0, every):
        return ""
    which = (
        listed([*nodes]) if len(nodes) <= NAMED else f"{len(nodes)} of {every} {fleet.noun(rows)}"
    )
    return f" (on {which})"


def frame(rows: Rows) -> pd.DataFrame:
    """Every node in every point: its value in SI units, beside the median of its class; how far slow
    ones are behind, with the interval, and by what chance a healthy node would be.
    """
    lines = [
        {
            **_point(row),
            "asked": row.key.word,
            "node": row.key.node,
            "class": row.node_class,
            "unit": row.table.unit,
            "value": row.measured.centre,
            "median_low": row.measured.summary.low,
            "median_high": row.measured.summary.high,
            "median_of_nodes": group.median,
            "behind": group.behind(row),
            "slow": "slow" if row.slow else "",
            "behind_low": row.slow.low if row.slow else None,
            "behind_high": row.slow.high if row.slow else None,
            "p": row.slow.p if row.slow else None,
        }
        for table in rows.values()
        for group in fleet.group_rows(table)
        for row in group.rows
    ]
    return (
        pd.DataFrame(lines).astype({"block": "Int64"}) if lines else pd.DataFrame(columns=["table"])
    )


def _point(row: Row) -> dict[str, Any]:
    """The row's point, as CSV files name it."""
    point = row.key._asdict()
    return {"table": row.table.name} | {name: point[name] for name in POINT}


def suspects(outcomes: Iterable[SecondMeasurement]) -> pd.DataFrame:
    """Rows of slow nodes that were measured again: how far behind they were before and are now."""
    lines = []
    for each in outcomes:
        row = each.row
        line = {
            **_point(row),
            "node": row.key.node,
            "beside": " ".join(each.controls),
            "behind": row.slow.behind if row.slow else None,
            "behind_again": each.behind,
            "outcome": each.case,
        }
        lines.append(line)
    return pd.DataFrame(lines).astype({"block": "Int64"})
