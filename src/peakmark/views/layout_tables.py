"""The tables of a layout, which sets their headings, their lines and the order of the lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from peakmark.config import layouts
from peakmark.config.layouts import Layout, LayoutColumn, LayoutTable
from peakmark.formatting import capitalised, natural, percent
from peakmark.rows import schema
from peakmark.rows.labels import printed_table, table_of
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME, TABLES, Table
from peakmark.views.table import (
    NOT_MEASURED,
    Column,
    Points,
    ShownTable,
    place_label,
    places_of,
    points_of,
    rows_of,
    sentences_on_gaps,
    show,
    stepped,
    texts,
)
from peakmark.views.usual_tables import three_digits, two_digits, usual_table

WORDS = ["node", "workload", "variant", "concurrency", "block_bytes"]
"""Columns of ``rows`` that determine the line of a point and the position of the line."""
# How to read the tables of throughput: DRAM, followed by ORDINARY if rows have the variant pool-temporal; caches.
DRAM = "Bytes read plus bytes written; the threads walk an area larger than the last-level cache."
ORDINARY = "Stores bypass the caches, but those of “pool-temporal” are ordinary stores."
CACHES = "Bytes read plus bytes written; each thread uses one block again and again."


# -- the frames of a layout


def layout_of(frames: CampaignFrames) -> Layout | None:
    """Return the layout that ``report.tables`` names; None if it names none."""
    report = frames.campaign["config"].get("report") or {}
    name = report.get("tables")
    return layouts.load(str(name)) if name else None


def arrange(frames: CampaignFrames, layout: Layout | None) -> CampaignFrames:
    """Return the frames in the order and words of a layout."""
    if layout is None:
        return frames
    return with_names(replace(frames, rows=in_order(frames.rows, layout)), layout)


def for_print(frames: CampaignFrames, layout: Layout | None) -> CampaignFrames:
    """Return the frames as a report prints them, see ``arrange`` and ``printed_table``."""
    arranged = arrange(frames, layout)
    return arranged if layout else with_names(arranged, None)


def with_names(frames: CampaignFrames, layout: Layout | None) -> CampaignFrames:
    """Return the frames with the names of programs in a report, see ``printed_table``."""
    names: dict[tuple[str, str], str] = {}
    for table in TABLES:
        for program in printed_table(layout, table).series:
            names[table.name, program.instrument] = program.heading
    rows = frames.rows
    programs = [*map(names.get, zip(rows["table"], rows["instrument"], strict=True))]
    return replace(frames, rows=rows.assign(program=pd.Series(programs, rows.index, dtype="str")))


def in_order(rows: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return rows by table and node, then in the order of a layout; rows outside the layout come last."""
    tables = list(BY_NAME)
    keys = []
    for line in schema.lines(rows[["table", "node", "workload", "variant"]]):
        place = layout.place(BY_NAME[line.table], line.workload, line.variant)
        keys.append((tables.index(line.table), natural(line.node), place))
    return sorted_by(rows, keys).reset_index(drop=True)


def sorted_by(frame: pd.DataFrame, keys: Sequence[Any]) -> pd.DataFrame:
    """Return the lines of a frame in the order of ``keys``, which has a sort key for each line."""
    return frame.iloc[sorted(range(len(keys)), key=keys.__getitem__)]


def is_shown(layout_table: LayoutTable, rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows that a layout table shows."""
    found = rows["table"].eq(layout_table.table.name)
    if layout_table.workloads:
        found &= rows["workload"].isin(layout_table.workloads)
    if layout_table.variants:
        found &= rows["variant"].isin(layout_table.variants)
    return found


def left_over(layout: Layout, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that no table of the layout shows."""
    for layout_table in layout.layout_tables:
        rows = rows[~is_shown(layout_table, rows)]
    return rows


# -- lines


def lines_of(layout_table: LayoutTable, named: Table, rows: pd.DataFrame) -> Points:
    """Return the points of a layout table in the layout's order, with the number of their line.

    The new column ``words`` has the texts for {workload}, {concurrency}, {block} and {variant}.
    """
    points = points_of(rows[is_shown(layout_table, rows)])
    words, groups, positions = [], [], []
    for point in schema.lines(points.own[WORDS]):
        names = layout_table.names(named, point.workload, point.concurrency, point.block_bytes)
        variant = layout_table.table.variant_label(point.variant)
        words.append({**names, "variant": variant})
        # Each node and variant has its own lines.
        groups.append((point.node, point.variant, *(names[part] for part in layout_table.group)))
        positions.append(position(layout_table, point))
    index = points.own.index
    own = points.own.assign(
        words=pd.Series(words, index, dtype=object), group=pd.Series(groups, index, dtype=object)
    )
    own = sorted_by(own, positions)
    return points._replace(own=own.assign(line=pd.factorize(own["group"])[0]))


def position(layout_table: LayoutTable, point: Any) -> tuple[Any, ...]:
    """Return the sort key of a point: its node, then the parts that the layout names in ``order``.

    If the layout labels a workload for each block, the key of the workload includes the block.
    """
    block = point.block_bytes or 0
    # Without a list of workloads in the layout, the workload has its place in the usual table.
    place: Any = layout_table.table.order(point.workload, point.variant, concurrency=0, block=0)
    if layout_table.workloads:
        place = layout_table.workloads.index(point.workload)
    is_labelled = (point.workload, block) in layout_table.labels
    workload = (place, block if is_labelled else 0)
    parts = {"workload": workload, "concurrency": point.concurrency, "block": block}
    return natural(point.node), *(parts[part] for part in layout_table.order)


# -- tables


def columns_of(frames: CampaignFrames, layout_table: LayoutTable, points: Points) -> list[Column]:
    """Return the columns of a layout table, with a value for each line."""
    # The first point of each line names its node and has the words of its texts.
    first = points.own.drop_duplicates("line").set_index("line")
    # A column of nodes comes first if there are several. A line may have several pairs of nodes.
    columns = []
    label = place_label(points.own)
    if label:
        pairs = points.own.groupby("line")[["clients", "servers"]].agg("; ".join)
        # The columns of ``pairs`` replace those of the first point.
        places = places_of(first.assign(**pairs))
        columns.append(Column(places, label, label, form=str, kind="text"))
    for column in layout_table.columns:
        if column.text is not None:
            columns.append(text_column(column.heading, column.text, first))
        else:
            columns.append(value_column(frames, layout_table, column, points))
    return columns


def text_column(heading: str, text: str, first: pd.DataFrame) -> Column:
    """Return a column of texts.

    Args:
        heading: heading of the column.
        text: text with placeholders, such as ``{workload}``. Each line fills in the words of its first point.
        first: first point of each line, see ``lines_of``.
    """
    written = [capitalised(text.format(**words)) for words in first["words"]]
    values = pd.Series(written, first.index, dtype=str)
    # Texts that are numbers, such as numbers of threads, align to the right too.
    is_number = len(values) > 0 and values.str.match(r"\d[^ ]*$").all()
    kind = "number" if is_number else "text"
    return Column(values, heading, heading, form=str, kind=kind)


def value_column(
    frames: CampaignFrames, layout_table: LayoutTable, column: LayoutColumn, points: Points
) -> Column:
    """Return a column of numbers.

    Of each line it shows the first point that has the workload and the concurrency in ``column.where``; without
    them, the first point of the line.
    """
    own, name, instrument = points.own, str(column.value), column.instrument
    is_chosen = own["workload"].eq(column.where.workload or own["workload"])
    is_chosen &= own["concurrency"].eq(column.where.concurrency or own["concurrency"])
    chosen = own[is_chosen].drop_duplicates("line")
    # Choose the numbers by the key ``value`` of the column, and write them with its digits.
    factor = layout_table.factor
    if name == "efficiency":  # in percent
        numbers = efficiency(column, points)[chosen.index]
        cells = texts(numbers / 100, percent)
    elif name == "interval":  # in percent
        numbers = half_interval(points, instrument).reindex(chosen.index)
        cells = texts(numbers, two_digits)
    elif name == "deviation":
        numbers = points.of(instrument, "sd")[chosen.index] * factor
        cells = texts(numbers, three_digits)
    else:
        # Limits and values are in the unit of the table, without digits below the resolution of the
        # program's output.
        if name == "theoretical":
            numbers = chosen["limit"] * factor
        elif name == "run":
            numbers = run_of(frames, column).reindex(chosen.index) * factor
        else:  # measured
            numbers = points.of(instrument, "value")[chosen.index] * factor
        steps = points.of(instrument, "resolution")[chosen.index] * factor
        cells = stepped(numbers, steps)
    # Say where peakmark's kernel measured nothing. In other columns, such a cell stays empty.
    is_own = instrument == layout_table.table.own.instrument
    gap = NOT_MEASURED if is_own and name == "measured" else ""
    cells = cells.mask(numbers.isna() & chosen["n"].eq(0), gap)
    # Lines without a chosen point have a gap too.
    line, lines = chosen["line"], own["line"].unique()
    values = numbers.set_axis(line).reindex(lines)
    cells = cells.set_axis(line).reindex(lines, fill_value=gap)
    return Column(values, column.heading, column.heading, cells=cells)


def run_of(frames: CampaignFrames, column: LayoutColumn) -> pd.Series:
    """Return the values of one repetition of a column's program, by point.

    Layouts count repetitions from 1, records from 0.
    """
    # An area that the node chose may be one that the configuration also names: then a point has two
    # runs of one repetition, of which the last counts.
    runs = frames.runs
    is_run = runs["instrument"].eq(column.instrument) & runs["repetition"].eq(column.run - 1)
    values = runs[["point", "value"]][is_run & runs["kept"]]
    return values.drop_duplicates("point", keep="last").set_index("point")["value"]


def half_interval(points: Points, instrument: str) -> pd.Series:
    """Return the distance of the median from the farther end of its interval, in percent, by point.

    A point with one run has NaN.
    """
    value, low, high = (points.of(instrument, name) for name in ("value", "low", "high"))
    farthest = (high - value).combine(value - low, max)
    return (100 * farthest / value).where(points.own["n"].gt(1))


def efficiency(column: LayoutColumn, points: Points) -> pd.Series:
    """Return the share of the limit of each point in percent.

    A column with a ``formula`` has the percentage by which the value is below the limit instead:
    layouts have no other formula than ``100 - 100 * measured / theoretical``.
    """
    limit = points.own["limit"]
    # Where ``rows`` has no efficiency, as for a wrong value, the layout prints none either.
    has_share = points.of(column.instrument, "efficiency").notna()
    measured = points.of(column.instrument, "value").where(has_share)
    if column.formula is not None:
        return 100 - 100 * measured / limit
    if points.own["unit"].eq("s").any():  # times: the limit is the shortest
        return 100 * (limit / measured)
    return 100 * (measured / limit)


def layout_table_of(
    frames: CampaignFrames,
    layout_table: LayoutTable,
    named_table: Table,
    points: Points,
    columns: Sequence[Column],
) -> ShownTable:
    """Return a layout table as a page shows it, with the remarks on its rows.

    Args:
        frames: the campaign, see ``arrange``.
        layout_table: table of the layout.
        named_table: the table whose rows it prints, with the layout's names, see ``table_of``.
        points: see ``lines_of``.
        columns: see ``columns_of``.
    """
    return show(
        frames,
        named_table,
        columns,
        points.own,
        instruments={column.instrument for column in layout_table.columns},
        below=sentences_below(frames, layout_table, named_table, points),
        reading=layout_table.remark,
        name=layout_table.name,
        title=layout_table.title,
        is_of_layout=True,
    )


def sentences_below(
    frames: CampaignFrames, layout_table: LayoutTable, named_table: Table, points: Points
) -> list[str]:
    """Return the sentences below a layout table on sizes, formulas and gaps."""
    columns, found = layout_table.columns, []
    layout = layout_of(frames)
    has_runs = points.rows["n"].gt(1).any()
    if layout is not None and layout.value == "mean" and has_runs:
        found.append("Values are means of the repetitions")
    if layout_table.sizes == "KB" and points.own["block_bytes"].fillna(0).ge(1024).any():
        found.append("Sizes are multiples of 1024 bytes: 1KB is 1024 B, 1MB is 1024 KB")
    for column in columns:
        if column.value == "efficiency" and column.formula is not None:
            shares = points.of(column.instrument, "efficiency").dropna()
            # Without a share of the limit, the column is not printed.
            if len(shares):
                low, high = percent(shares.min()), percent(shares.max())
                found.append(
                    f"{column.heading} is {column.formula}, as in the report that this layout follows; "
                    f"the share of the limit is {low} to {high} %"
                )
    shown = {column.instrument for column in columns if column.value not in (None, "theoretical")}
    with_limit = any(column.value in ("theoretical", "efficiency") for column in columns)
    return found + sentences_on_gaps(frames, named_table, points.rows, shown, with_limit=with_limit)


# -- all tables of a page


def shown_tables(
    frames: CampaignFrames, table: Table, layout: Layout | None
) -> Iterator[ShownTable]:
    """Yield the tables that a page shows of a table's rows: first the layout's, then those of all other rows."""
    rows = rest = rows_of(frames, table)
    called = table_of(layout, table, rows)
    titles = set[str]()
    if layout is not None:
        for layout_table in layout.layout_tables:
            if is_shown(layout_table, rows).any():
                titles.add(layout_table.title)
                points = lines_of(layout_table, called, rows)
                columns = columns_of(frames, layout_table, points)
                yield layout_table_of(frames, layout_table, called, points, columns)
        rest = left_over(layout, rows)
    for usual, members in usual_tables(called, rest):
        title = usual.title
        # No two tables of a chapter have one title.
        if title in titles:
            title += ", other rows"
        yield usual_table(frames, replace(usual, title=title), members)


def usual_tables(table: Table, rows: pd.DataFrame) -> Iterator[tuple[Table, pd.DataFrame]]:
    """Yield the tables of rows that no layout shows: memory has one table for DRAM, one for caches."""
    if table.name != "memory_throughput":
        if len(rows):
            yield table, rows
        return
    is_cache = rows["variant"].eq("block")
    caches, others = rows[is_cache], rows[~is_cache]
    if len(others):
        remark = DRAM
        if others["variant"].eq("pool-temporal").any():
            remark += f" {ORDINARY}"
        yield replace(table, title="Throughput of DRAM", remark=remark), others
    if len(caches):
        name = f"{table.name}_block"
        yield replace(table, name=name, title="Throughput of caches", remark=CACHES), caches
