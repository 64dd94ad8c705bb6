"""Make the tables of a layout: rows under the headings and in the lines and order of the layout.

``arrange`` applies the order and the names of a layout to the frames, for all other views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from peakmark.config import layouts
from peakmark.config.layouts import Layout, LayoutColumn, LayoutTable
from peakmark.formatting import evaluate, natural, percent, significant
from peakmark.messages import Message
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME, Table
from peakmark.views import printed
from peakmark.views.points import Line, Point, points_of
from peakmark.views.printed import NOT_MEASURED, Column, PrintedTable

KERNEL = "peakmark"
"""Name of peakmark's kernels in a report without a layout."""
NAMED_IN = ("disagreement",)
"""Codes of warnings whose values contain headings of programs."""


# -- the frames of a layout


def layout_of(frames: CampaignFrames) -> Layout | None:
    """Return the layout that ``report.tables`` names; None if it names none.

    Raises:
        ConfigError: the layout is not valid.
    """
    report = frames.campaign["config"].get("report") or {}
    name = report.get("tables")
    if not name:
        return None
    return layouts.load(str(name))


def arrange(frames: CampaignFrames, layout: Layout | None) -> CampaignFrames:
    """Return the frames with the order of rows and the names of programs in a layout, if there is one."""
    if layout is None:
        return frames
    rows = in_order(frames.rows, layout)
    return with_names(replace(frames, rows=rows), layout)


def for_print(frames: CampaignFrames, layout: Layout | None) -> CampaignFrames:
    """Return the frames as a report prints them, see ``arrange`` and ``printed_table``."""
    return arrange(frames, layout) if layout is not None else with_names(frames, None)


def with_names(frames: CampaignFrames, layout: Layout | None) -> CampaignFrames:
    """Return the frames with the names of programs in a report, see ``printed_table``."""
    printed_tables = {name: printed_table(layout, table) for name, table in BY_NAME.items()}
    rows = rename_programs(frames.rows, printed_tables)
    warnings = rename_warnings(frames.warnings, printed_tables)
    return replace(frames, rows=rows, warnings=warnings)


def printed_table(layout: Layout | None, table: Table) -> Table:
    """Return a table with the names of programs and the unit in a layout.

    Without a layout, only the heading of the kernel's column changes: it becomes ``KERNEL``.
    """
    if layout is not None:
        return layout.called(table)
    return replace(table, own=replace(table.own, heading=KERNEL))


def in_order(rows: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return rows by table and node, then in the order of a layout; rows without a place come last."""
    tables = list(BY_NAME)
    keys = []
    for line in schema.lines(rows):
        in_layout = layout.place(BY_NAME[line.table], line.workload, line.variant)
        keys.append((tables.index(line.table), natural(line.node), in_layout))
    places = sorted(range(len(keys)), key=keys.__getitem__)
    return rows.iloc[places].reset_index(drop=True)


def rename_programs(rows: pd.DataFrame, printed_tables: Mapping[str, Table]) -> pd.DataFrame:
    """Return rows with the headings of programs in a layout.

    Args:
        rows: rows of all tables.
        printed_tables: name of each table -> the table with the layout's names.
    """
    headings = {}
    for name, table in printed_tables.items():
        for program in table.series:
            headings[name, program.instrument] = program.heading
    keys = zip(rows["table"], rows["instrument"], strict=True)
    programs = [headings[key] for key in keys]
    return rows.assign(program=pd.Series(programs, index=rows.index, dtype="str"))


def rename_warnings(warnings: pd.DataFrame, printed_tables: Mapping[str, Table]) -> pd.DataFrame:
    """Return warnings with the names that programs have in a layout.

    Args:
        warnings: frame ``warnings``.
        printed_tables: name of each table -> the table with the layout's names.
    """
    named = warnings[warnings["code"].isin(NAMED_IN)]
    found = []
    for line in schema.lines(named):
        table = line.point.partition("/")[0]
        note = renamed(schema.message_of_line(line), BY_NAME[table], printed_tables[table])
        found.append(schema.line_of_message(note, line.point))
    changed = schema.typed("warnings", pd.DataFrame(found, index=named.index))
    return pd.concat([warnings.drop(named.index), changed]).sort_index()


def renamed(note: Message, usual: Table, in_layout: Table) -> Message:
    """Return a message with the names of programs in the layout's table instead of the usual ones."""
    names = {}
    for program, other in zip(usual.series, in_layout.series, strict=True):
        names[program.heading] = other.heading
    values = dict(note.values)
    for name, value in values.items():
        # ``compare`` is a phrase that may contain a heading. Another text is replaced if it is one.
        if name == "compare":
            values[name] = str(value).replace(usual.own.heading, in_layout.own.heading)
        elif isinstance(value, str):
            values[name] = names.get(value, value)
    return replace(note, values=tuple(values.items()))


def table_of(layout: Layout | None, table: Table, rows: pd.DataFrame) -> Table:
    """Return a table with the unit and the names of programs that are printed.

    Both are the layout's. Without a layout, the unit is the largest in which no value is below 1.

    Args:
        layout: layout of the campaign.
        table: one of ``TABLES``.
        rows: all rows of the table.
    """
    named_table = printed_table(layout, table)
    if layout is not None:
        return named_table
    return named_table.fitted(rows.loc[rows["n"].gt(0), "value"])


def labels_of(layout: Layout | None, table: Table, row: Line) -> Labels:
    """Return the labels for a row of a table, with the words of the layout if there is one."""
    if layout is None:
        return Labels(table)
    return Labels(table, layout.layout_table_of(table, row.workload, row.variant))


# -- lines


class LayoutLine(NamedTuple):
    """A line of a layout table.

    Attributes:
        names: texts for {workload}, {concurrency} and {block}.
        points: points of the line, mostly one.
        runs: (point, instrument, repetition) -> value of the run, in SI units.
        centre: column of ``rows`` from which efficiencies are computed: ``value``, or ``mean`` in a
            table of means.
    """

    names: Mapping[str, str]
    points: list[Point]
    runs: Mapping[tuple[str, str, int], float]
    centre: str


def lines(
    frames: CampaignFrames, layout_table: LayoutTable, rows: pd.DataFrame
) -> list[LayoutLine]:
    """Return the lines of a layout table in the layout's order.

    Args:
        frames: the campaign, see ``arrange``.
        layout_table: table of the layout.
        rows: rows of the campaign, with the rows of all programs. The layout table may leave out points.
    """
    taken = points_of(frames, rows[is_shown(layout_table, rows)])
    runs = runs_by_repetition(frames, layout_table)
    has_means = any(column.value == "mean" for column in layout_table.columns)
    centre = "mean" if has_means else "value"
    grouped: dict[tuple[str, ...], LayoutLine] = {}
    for point in sorted(taken, key=partial(position, layout_table)):
        own = point.own
        names = layout_table.names(own.workload, own.concurrency, own.block_bytes)
        # Each variant has its own line.
        group = (own.node, own.variant, *(names[part] for part in layout_table.group))
        grouped.setdefault(group, LayoutLine(names, [], runs, centre)).points.append(point)
    return list(grouped.values())


def is_shown(layout_table: LayoutTable, rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows that a layout table shows."""
    found = rows["table"].eq(layout_table.table.name)
    if layout_table.workloads:
        found &= rows["workload"].isin(layout_table.workloads)
    if layout_table.variants:
        found &= rows["variant"].isin(layout_table.variants)
    return found


def runs_by_repetition(
    frames: CampaignFrames, layout_table: LayoutTable
) -> Mapping[tuple[str, str, int], float]:
    """Return (point, instrument, repetition) -> value of each run that counts.

    The mapping is empty if the layout table has no columns of single runs.
    """
    if not any(column.value == "run" for column in layout_table.columns):
        return {}
    runs = frames.runs[frames.runs["table"].eq(layout_table.table.name) & frames.runs["kept"]]
    keys = zip(runs["point"], runs["instrument"], runs["repetition"], strict=True)
    return dict(zip(keys, runs["value"], strict=True))


def position(layout_table: LayoutTable, point: Point) -> tuple[Any, ...]:
    """Return the sort key of a point.

    If a label of the layout is for one block of a workload, the key of the workload includes the block.
    """
    own, block = point.own, point.own.block_bytes or 0
    place: Any = layout_table.table.order(own.workload, own.variant, 0, 0)
    if layout_table.workloads:
        place = layout_table.workloads.index(own.workload)
    workload = (place, 0)
    if (own.workload, block) in layout_table.labels:
        workload = (place, block)
    parts = {"workload": workload, "concurrency": own.concurrency, "block": block}
    return natural(own.node), *(parts[part] for part in layout_table.order)


def left_over(layout: Layout, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that no table of the layout shows."""
    is_left = pd.Series(True, index=rows.index)
    for layout_table in layout.layout_tables:
        is_left &= ~is_shown(layout_table, rows)
    return rows[is_left]


# -- tables


def frame(frames: CampaignFrames, layout_table: LayoutTable, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the content of the CSV file of a layout table, with full precision.

    Args:
        frames: the campaign, see ``arrange``.
        layout_table: table of the layout.
        rows: rows of the table that the layout table prints, with the rows of all programs.
    """
    table_lines = lines(frames, layout_table, rows)
    columns: dict[str, list[Any]] = {}
    heading_of_nodes = printed.place_label(points_in(table_lines))
    if heading_of_nodes:
        columns[heading_of_nodes] = [printed.place(line.points) for line in table_lines]
    for column in layout_table.columns:
        columns[column.heading] = [cell(layout_table, column, line) for line in table_lines]
    return pd.DataFrame(columns)


def points_in(table_lines: Sequence[LayoutLine]) -> list[Point]:
    """Return the points of all lines."""
    points = []
    for line in table_lines:
        points += line.points
    return points


def cell(layout_table: LayoutTable, column: LayoutColumn, line: LayoutLine) -> Any:
    """Return the content of a cell: a text, or a number in the unit of the table."""
    if column.text is not None:
        return column.text.format(**line.names)
    return value(layout_table, column, line)


def value(layout_table: LayoutTable, column: LayoutColumn, line: LayoutLine) -> float | None:
    """Return the value of a row in a column, in the unit of the table or in percent; None if unknown."""
    point = point_of(column, line)
    if point is None:
        return None
    number = si_value(column, point, line)
    if number is None or column.value == "efficiency":
        return number
    return number * layout_table.factor


def point_of(column: LayoutColumn, line: LayoutLine) -> Point | None:
    """Return the line's point with the workload and concurrency that the column names; else None.

    A column may name neither; then the first point is returned.
    """
    for point in line.points:
        is_workload = column.workload in (None, point.own.workload)
        is_concurrency = column.concurrency in (None, point.own.concurrency)
        if is_workload and is_concurrency:
            return point
    return None


def si_value(column: LayoutColumn, point: Point, line: LayoutLine) -> float | None:
    """Return the number of a column at a point, in SI units or in percent; None if it is unknown."""
    limit, program = point.own.limit, point.measured.get(column.instrument)
    if column.value == "theoretical":
        return limit  # type: ignore[no-any-return]  # of a line of a frame
    if program is None:
        return None
    if column.value == "efficiency":
        return efficiency(column, limit, program, line.centre)
    if column.value == "run":
        return line.runs.get((program.point, program.instrument, column.run - 1))
    name = {"measured": "value", "deviation": "sd"}.get(str(column.value), str(column.value))
    return getattr(program, name)  # type: ignore[no-any-return]


def efficiency(
    column: LayoutColumn, limit: float | None, program: Line, centre: str
) -> float | None:
    """Return the share of the limit in percent, by the layout's formula if there is one.

    Args:
        column: column of the layout.
        limit: limit in SI units.
        program: line of ``rows`` of the program.
        centre: see ``LayoutLine``.
    """
    if program.efficiency is None or limit is None:
        return None
    measured = float(getattr(program, centre))
    if column.formula is not None:
        return evaluate(column.formula, {"measured": measured, "theoretical": limit})
    if program.unit == "s":
        return 100 * (limit / measured)
    return 100 * (measured / limit)


def tables(
    frames: CampaignFrames, layout: Layout, rows: pd.DataFrame
) -> list[tuple[LayoutTable, PrintedTable]]:
    """Return the printed tables of a layout that have lines.

    Args:
        frames: the campaign, see ``arrange``.
        layout: layout of the campaign.
        rows: rows of the campaign, with the rows of all programs.
    """
    found = []
    for layout_table in layout.layout_tables:
        of_table = rows[rows["table"].eq(layout_table.table.name)]
        grid = table(frames, layout_table, of_table, layout.called(layout_table.table))
        if grid.body:
            found.append((layout_table, grid))
    return found


def table(
    frames: CampaignFrames, layout_table: LayoutTable, rows: pd.DataFrame, named_table: Table
) -> PrintedTable:
    """Return a layout table as text, with the remarks on its rows.

    Args:
        frames: the campaign, see ``arrange``.
        layout_table: table of the layout.
        rows: rows of the table that the layout table prints, with the rows of all programs.
        named_table: that table, with the headings that the layout gives it, see ``table_of``.
    """
    table_lines = lines(frames, layout_table, rows)
    points = points_in(table_lines)
    columns = []
    heading_of_nodes = printed.place_label(points)
    if heading_of_nodes:
        columns.append(Column(label=heading_of_nodes, text=lambda line: printed.place(line.points)))
    columns += [column_of(layout_table, column, table_lines) for column in layout_table.columns]
    return printed.fill(
        named_table,
        columns,
        table_lines,
        [line.points for line in table_lines],
        instruments={column.instrument for column in layout_table.columns},
        remarks=remarks_on(frames, layout_table, named_table, points),
        reading=layout_table.remark,
        name=layout_table.name,
        title=layout_table.title,
    )


def column_of(
    layout_table: LayoutTable, column: LayoutColumn, table_lines: Sequence[LayoutLine]
) -> Column:
    """Return the printed column for a column of a layout table."""
    text = partial(text_of, layout_table, column)
    kind = "number"
    if column.text is not None:
        # Texts that are numbers, such as numbers of threads, align to the right too.
        texts = [text(line) for line in table_lines]
        if not texts or not all(each[:1].isdigit() and " " not in each for each in texts):
            kind = "text"
    return Column(label=column.heading, text=text, kind=kind)


def text_of(layout_table: LayoutTable, column: LayoutColumn, line: LayoutLine) -> str:
    """Return the text of a cell of a layout table."""
    if column.text is not None:
        return column.text.format(**line.names)
    number, point = value(layout_table, column, line), point_of(column, line)
    if number is None or point is None:
        is_own = column.instrument == layout_table.table.own.instrument
        is_value = column.value in ("measured", "mean")
        if is_own and is_value and not (point and point.is_measured):
            return NOT_MEASURED
        return ""
    if column.value == "efficiency":
        return percent(number / 100)
    if column.value == "deviation":
        return significant(number, 3)
    program = point.measured.get(column.instrument)
    step = 0.0
    if program and program.resolution:
        step = program.resolution * layout_table.factor
    return significant(number, step=step)


def remark_on_formula(column: LayoutColumn, points: Sequence[Point]) -> str:
    """Return a remark on efficiencies by a formula of the layout, with the shares of the limit."""
    remark = f"{column.heading} is {column.formula}, as in the report that this layout follows"
    lines = [point.measured.get(column.instrument) for point in points]
    shares = [line.efficiency for line in lines if line and line.efficiency is not None]
    if not shares:
        return remark
    # The formula at a time so far above the theoretical one as the worst of the table.
    worst = evaluate(str(column.formula), {"measured": 1 / min(shares), "theoretical": 1.0})
    if worst < 0:
        remark += ", and negative for long times"
    return f"{remark}; the share of the limit is {percent(min(shares))} to {percent(max(shares))}%"


def remarks_on(
    frames: CampaignFrames, layout_table: LayoutTable, named_table: Table, points: Sequence[Point]
) -> list[str]:
    """Return the remarks below a layout table on sizes, formulas and gaps."""
    columns, remarks = layout_table.columns, []
    has_kilobytes = any((point.own.block_bytes or 0) >= 1024 for point in points)
    if layout_table.sizes == "KB" and has_kilobytes:
        remarks.append("Sizes are multiples of 1024 bytes: 1KB is 1024 B, 1MB is 1024 KB")
    for column in columns:
        if column.value == "efficiency" and column.formula is not None:
            remarks.append(remark_on_formula(column, points))
    shown = {column.instrument for column in columns if column.value not in (None, "theoretical")}
    with_limit = any(column.value in ("theoretical", "efficiency") for column in columns)
    return remarks + printed.remarks_on_gaps(frames, named_table, points, shown, with_limit)
