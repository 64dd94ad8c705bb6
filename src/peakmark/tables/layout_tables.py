"""The tables of a layout: the rows that the campaign has, in the lines and columns that the layout
asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from peakmark.analysis.row import Row
from peakmark.config.layouts import Layout, LayoutColumn, LayoutTable
from peakmark.formatting import evaluate, natural, percent, significant
from peakmark.storage.results import Results
from peakmark.tables import presentation
from peakmark.tables.columns import (
    NOT_MEASURED,
    Column,
    place,
    place_label,
    warning_column,
)
from peakmark.tables.presentation import Notes, PrintedTable


class Line(NamedTuple):
    """One line of a layout table: what {workload}, {concurrency} and {block} stand for, and its rows,
    mostly one.
    """

    names: Mapping[str, str]
    rows: list[Row]


def lines(layout_table: LayoutTable, rows: Sequence[Row]) -> list[Line]:
    """The lines of a layout table in its order; rows that the layout does not ask for are left out."""
    taken = [row for row in rows if layout_table.takes(row.key.workload, row.key.variant)]
    grouped: dict[tuple[str, ...], Line] = {}
    for row in sorted(taken, key=partial(_position, layout_table)):
        key = row.key
        names = layout_table.names(key.workload, key.concurrency, key.block)
        # Variants are never mixed: two of them stand in two lines.
        group = (key.node, key.variant, *(names[part] for part in layout_table.group))
        grouped.setdefault(group, Line(names, [])).rows.append(row)
    return list(grouped.values())


def _position(layout_table: LayoutTable, row: Row) -> tuple[Any, ...]:
    """Sort key of a row. A label may split a workload in two, such as RWS and RWR of a latency:
    then the block decides first.
    """
    key, block, workloads = row.key, row.key.block or 0, layout_table.workloads
    usual = layout_table.table.order(key.workload, key.variant, 0, 0)
    is_split = (key.workload, block) in layout_table.labels
    parts = {
        "workload": (
            workloads.index(key.workload) if workloads else usual,
            block if is_split else 0,
        ),
        "concurrency": key.concurrency,
        "block": block,
    }
    return natural(key.node), *(parts[part] for part in layout_table.order)


def left_over(layout: Layout, name: str, rows: Sequence[Row]) -> list[Row]:
    """Rows of the table ``name`` that no table of the layout shows."""
    rest = list(rows)
    for each in layout.layout_tables:
        if each.table.name == name:
            rest = [row for row in rest if not each.takes(row.key.workload, row.key.variant)]
    return rest


def columns(layout_table: LayoutTable, layout_lines: Sequence[Line]) -> list[Column]:
    """Where the rows were measured, if they differ in it, then the columns of the layout."""
    where = place_label([row for line in layout_lines for row in line.rows])
    first = Column(heading=where, of=lambda line: place(line.rows), label=where)
    return [first, *(_column(layout_table, each, layout_lines) for each in layout_table.columns)]


def _column(
    layout_table: LayoutTable, column: LayoutColumn, layout_lines: Sequence[Line]
) -> Column:
    heading, text = column.heading, column.text
    if text is not None:
        # Texts that are numbers, such as thread counts, stand to the right as numbers do.
        texts = [text.format(**line.names) for line in layout_lines]
        digits = bool(texts) and all(each[:1].isdigit() and " " not in each for each in texts)
        kind = "number" if digits else "text"
        return Column(
            heading=heading, label=heading, kind=kind, of=lambda line: text.format(**line.names)
        )
    is_own = column.instrument == layout_table.table.own.instrument
    hole = NOT_MEASURED if is_own and column.value in ("measured", "mean") else ""

    def shown(line: Line) -> str:
        number, row = value(layout_table, column, line), row_of(column, line)
        if number is None or row is None:
            return hole if row is None or row.own is None else ""
        if column.value == "efficiency":
            return percent(number / 100)
        if column.value == "deviation":
            return significant(number, 3)
        series = row.column_of(column.instrument)
        return significant(number, step=series.step * layout_table.factor if series else 0.0)

    of = partial(value, layout_table, column)
    return Column(heading=heading, label=heading, kind="number", of=of, in_print=shown)


def value(layout_table: LayoutTable, column: LayoutColumn, line: Line) -> float | None:
    """What a value column shows in one line, in the unit of the table or in percent; None where it is
    not known.
    """
    row = row_of(column, line)
    number = _value(column, row) if row else None
    is_percent = column.value == "efficiency"
    return number if number is None or is_percent else number * layout_table.factor


def _value(column: LayoutColumn, row: Row) -> float | None:
    """What a value column shows of a row, in SI units or in percent; None where it is not known."""
    limit, series = row.limit.value, row.column_of(column.instrument)
    if column.value == "theoretical":
        return limit
    if series is None:
        return None
    if column.value == "efficiency":
        if series.efficiency is None:
            return None
        if column.formula is None or limit is None:
            return 100 * series.efficiency
        return evaluate(column.formula, {"measured": series.centre, "theoretical": limit})
    if column.value == "run":
        runs = {point.repetition: point.value for point in series.points}
        return runs.get(column.run - 1)
    if column.value == "measured":
        return series.centre
    name = "stdev" if column.value == "deviation" else str(column.value)
    number: float | None = getattr(series.summary, name)
    return number


def row_of(column: LayoutColumn, line: Line) -> Row | None:
    """The row of a line that a column speaks of."""
    for row in line.rows:
        key = row.key
        wanted = (column.workload or key.workload, column.concurrency or key.concurrency)
        if wanted == (key.workload, key.concurrency):
            return row
    return None


def grid(results: Results, layout_table: LayoutTable, rows: Sequence[Row]) -> PrintedTable:
    """A layout table as text, with the notes of its rows: headings as in the layout, and a column of
    letters for the notes.
    """
    layout_lines = lines(layout_table, rows)
    shown = [row for line in layout_lines for row in line.rows]
    notes = Notes.of(shown)
    every = [
        *columns(layout_table, layout_lines),
        warning_column(lambda line: line.rows),
        Column(label="Notes", kind="notes", of=lambda line: notes.warnings(line.rows)),
    ]
    remarks = _remarks(results, layout_table, shown)
    name, title, remark = layout_table.name, layout_table.title, layout_table.remark
    return PrintedTable.of(name, title, every, layout_lines, notes, remarks, remark)


def _remarks(results: Results, layout_table: LayoutTable, rows: Sequence[Row]) -> list[str]:
    columns = layout_table.columns
    shown = {column.instrument for column in columns if column.value not in (None, "theoretical")}
    remarks = []
    if layout_table.sizes == "KB" and any((row.key.block or 0) >= 1024 for row in rows):
        remarks.append("Sizes are multiples of 1024 bytes: 1KB is 1024 B, 1MB is 1024 KB")
    remarks += [
        f"{column.heading} is {column.formula}, as in the report that this layout follows"
        for column in columns
        if column.value == "efficiency" and column.formula is not None
    ]
    with_limit = any(column.value in ("theoretical", "efficiency") for column in columns)
    return remarks + presentation.remarks_on_gaps(
        results, layout_table.table, rows, shown, with_limit
    )
