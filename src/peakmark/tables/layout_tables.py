"""The tables of a layout: the rows that the campaign has, in the lines and columns that the layout
asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from peakmark.analysis.analysis import published_names
from peakmark.analysis.row import Row
from peakmark.config.layouts import Layout, LayoutColumn, LayoutTable
from peakmark.formatting import natural, percent, significant
from peakmark.storage.results import Results
from peakmark.tables import footnotes, presentation
from peakmark.tables.columns import (
    NOT_MEASURED,
    Column,
    place,
    place_label,
    published,
    through,
    warning_column,
    words,
)
from peakmark.tables.presentation import PrintedTable
from peakmark.units import evaluate


@dataclass(frozen=True)
class Line:
    """One line of a layout table: what {workload}, {concurrency} and {block} stand for, and its rows,
    mostly one.
    """

    names: Mapping[str, str]
    rows: tuple[Row, ...]

    def text(self, column: LayoutColumn) -> str:
        """What a column of text shows."""
        return (column.text or "").format(**self.names)


def lines(layout_table: LayoutTable, rows: Sequence[Row]) -> list[Line]:
    """The lines of a layout table in its order; rows that the layout does not ask for are left out."""
    workloads = list(layout_table.workloads)

    def position(row: Row, key: str) -> int | tuple[int | str, ...]:
        if key == "workload":
            if workloads:
                return workloads.index(row.key.workload)
            return layout_table.table.order(row.key.workload, row.key.variant, 0, 0)
        return row.key.concurrency if key == "concurrency" else row.key.block or 0

    taken = [row for row in rows if layout_table.takes(row.key.workload, row.key.variant)]
    # A label may split a workload in two, such as RWS and RWR of a latency: then the block decides
    # first.
    labelled = {
        row.key: layout_table.names(row.key.workload, row.key.concurrency, row.key.block)
        for row in taken
    }
    taken.sort(
        key=lambda row: (
            natural(row.key.node),
            [
                (
                    position(row, key),
                    (row.key.block or 0)
                    if key == "workload" and _renamed(layout_table, row)
                    else 0,
                )
                for key in layout_table.order
            ],
        )
    )
    grouped: dict[tuple[str, ...], list[Row]] = {}
    for row in taken:
        # Variants are never mixed: two of them stand in two lines.
        variant = row.key.variant
        group = (row.key.node, variant, *(labelled[row.key][key] for key in layout_table.group))
        grouped.setdefault(group, []).append(row)
    return [Line(labelled[members[0].key], tuple(members)) for members in grouped.values()]


def _renamed(layout_table: LayoutTable, row: Row) -> bool:
    return (row.key.workload, row.key.block or 0) in layout_table.labels


def left_over(layout: Layout, name: str, rows: Sequence[Row]) -> list[Row]:
    """Rows of the table ``name`` that no table of the layout shows."""
    layout_tables = [
        layout_table for layout_table in layout.layout_tables if layout_table.table.name == name
    ]
    return [
        row
        for row in rows
        if not any(
            layout_table.takes(row.key.workload, row.key.variant) for layout_table in layout_tables
        )
    ]


def frame(layout_table: LayoutTable, rows: Sequence[Row]) -> pd.DataFrame:
    """A layout table under its headings, values with full precision; an empty field where nothing was
    measured.
    """
    layout_lines = lines(layout_table, rows)
    where = place_label([row for line in layout_lines for row in line.rows])
    body = [
        [
            *([place(line.rows)] if where else []),
            *(
                line.text(column) if column.text is not None else value(layout_table, column, line)
                for column in layout_table.columns
            ),
        ]
        for line in layout_lines
    ]
    return pd.DataFrame(
        body,
        columns=[*([where] if where else []), *(column.heading for column in layout_table.columns)],
    )


def value(layout_table: LayoutTable, column: LayoutColumn, line: Line) -> float | None:
    """What a value column shows in one line, in the unit of the table or in percent; None where it is
    not known.
    """
    row = row_of(column, line)
    if row is None:
        return None
    if column.value == "theoretical":
        return None if row.limit.value is None else row.limit.value * layout_table.factor
    series = row.column_of(column.instrument)
    if series is None:
        return None
    if column.value == "efficiency":
        if column.formula is None or row.limit.value is None:
            return None if series.efficiency is None else 100 * series.efficiency
        return evaluate(column.formula, {"measured": series.centre, "theoretical": row.limit.value})
    if column.value == "run":
        values = [point.value for point in series.points if point.repetition == column.run - 1]
        return values[0] * layout_table.factor if values else None
    summary = series.summary
    chosen = {
        "measured": series.centre,
        "mean": summary.mean,
        "median": summary.median,
        "deviation": summary.stdev,
    }[str(column.value)]
    return None if chosen is None else chosen * layout_table.factor


def row_of(column: LayoutColumn, line: Line) -> Row | None:
    """The row of a line that a column speaks of."""
    for row in line.rows:
        if column.workload in (None, row.key.workload) and column.concurrency in (
            None,
            row.key.concurrency,
        ):
            return row
    return None


def grid(results: Results, layout_table: LayoutTable, rows: Sequence[Row]) -> PrintedTable:
    """A layout table as text, with the notes of its rows: headings as in the layout, and a column of
    letters for the notes.
    """
    layout_lines = lines(layout_table, rows)
    shown = [row for line in layout_lines for row in line.rows]
    notes = footnotes.Notes.of(shown)
    # Beside a line of several rows a published value could stand for any of them.
    names = published_names(shown) if len(layout_lines) == len(shown) else []

    where = place_label(shown)

    def text(column: LayoutColumn) -> Callable[[Line], str]:
        return lambda line: _text(layout_table, column, line)

    columns = [
        *([words(where, lambda line: place(line.rows))] if where else []),
        *(
            replace(_described(column, layout_lines), in_print=text(column))
            for column in layout_table.columns
        ),
        *through(
            [published(name, layout_table.table, layout_table.factor) for name in names],
            lambda line: line.rows[0],
        ),
        warning_column(lambda line: line.rows),
        Column(label="Notes", kind="notes", in_print=lambda line: notes.warnings(line.rows)),
    ]
    remarks = _remarks(results, layout_table, shown)
    return PrintedTable.of(
        layout_table.name,
        layout_table.title,
        columns,
        layout_lines,
        notes,
        remarks,
        layout_table.remark,
    )


def _described(column: LayoutColumn, layout_lines: Sequence[Line]) -> Column:
    """Texts that are numbers, such as thread counts, stand to the right as numbers do."""
    texts = [line.text(column) for line in layout_lines]
    digits = bool(texts) and all(text[:1].isdigit() and " " not in text for text in texts)
    kind = "number" if digits or column.text is None else "text"
    return Column(label=column.heading, kind=kind)


def _text(layout_table: LayoutTable, column: LayoutColumn, line: Line) -> str:
    if column.text is not None:
        return line.text(column)
    shown, row = value(layout_table, column, line), row_of(column, line)
    if shown is None:
        hole = (
            column.value in ("measured", "mean")
            and column.instrument == layout_table.table.own.instrument
        )
        return NOT_MEASURED if hole and (row is None or row.own is None) else ""
    if column.value == "efficiency":
        return percent(shown / 100)
    if column.value == "deviation":
        return significant(shown, 3)
    series = row.column_of(column.instrument) if row else None
    return significant(shown, step=series.step * layout_table.factor if series else 0.0)


def _remarks(results: Results, layout_table: LayoutTable, rows: Sequence[Row]) -> list[str]:
    shown = {
        column.instrument
        for column in layout_table.columns
        if column.value not in (None, "theoretical")
    }
    remarks = []
    if layout_table.sizes == "KB" and any((row.key.block or 0) >= 1024 for row in rows):
        remarks.append("Sizes are multiples of 1024 bytes: 1KB is 1024 B, 1MB is 1024 KB")
    for column in layout_table.columns:
        if column.value == "efficiency" and column.formula is not None:
            remarks.append(
                f"{column.heading} is {column.formula}, as in the report that this layout follows"
            )
    with_limit = any(
        column.value in ("theoretical", "efficiency") for column in layout_table.columns
    )
    return remarks + presentation.remarks_on_gaps(
        results, layout_table.table, rows, shown, with_limit
    )
