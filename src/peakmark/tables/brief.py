"""A table of at most seven short columns, for one column of a paper: what was measured, the limit, the share of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from peakmark.formatting import percent, significant, size
from peakmark.instruments.tables import Series, Table
from peakmark.judging import fleet
from peakmark.judging.fleet import Spot
from peakmark.judging.naming import noun, repeated
from peakmark.judging.notes import Level
from peakmark.judging.row import Row
from peakmark.judging.row import Series as Measured
from peakmark.tables import presentation
from peakmark.tables.presentation import NOT_MEASURED, Column, Field, Grid, of_series, through, where_fields

MOST = 7
MARKS = {Level.UNSURE: "*", Level.WRONG: "**"}
LEGEND = {
    Level.UNSURE: "* unsure: another run may well differ",
    Level.WRONG: "** wrong: the figure is not what the row says",
}


def grid(rows: Sequence[Row]) -> Grid:
    """Workload, size, concurrency, own kernel, references, limit, share of the limit: of these what the rows have, a reference
    less where that is more than ``MOST``. ``rows``: of one table, at least one.
    """
    table = rows[0].table
    (first, name), *sizes = _keys(rows)
    place = where_fields(rows)
    with_limit = any(row.limit.value is not None for row in rows)
    room = MOST - 3 - len(sizes) - 2 * with_limit - len(place)

    def shown(value: float | None) -> str:
        return "" if value is None else significant(value * table.factor)

    def measured(series: Series) -> Callable[[Row], str]:
        return of_series(series, lambda it: shown(it.centre), NOT_MEASURED if series is table.own else "")

    def share(it: Measured) -> str:
        return "" if it.efficiency is None else percent(it.efficiency)

    limit: list[Field] = [
        (Column("Limit", kind="number"), lambda row: shown(row.limit.value)),
        (Column("%", kind="number"), of_series(table.own, share, "")),
    ]
    beside = _references(rows)[: max(0, room)]
    fields: list[Field] = [
        *place,
        (first, lambda row: name(row) + (MARKS[row.level] if row.level else "")),
        *sizes,
        (Column("N", kind="number"), lambda row: str(row.key.concurrency or row.key.word)),
        *((Column(series.instrument, kind="number"), measured(series)) for series in (table.own, *beside)),
        *(limit if with_limit else []),
    ]
    counted = [row.own.summary.n for row in rows if row.own]
    legend = [
        repeated(counted) if counted else "",
        "% share of the limit" if with_limit else "",
        *(text for level, text in LEGEND.items() if any(row.level is level for row in rows)),
    ]
    return _grid(table, "", fields, rows, legend)


def of_nodes(rows: Sequence[Row]) -> Grid:
    """The same of many nodes: median, lowest and highest node, and which is the slowest."""
    table, spots = rows[0].table, fleet.spots(rows)
    if not spots:  # no row of any node has a number to go by: each says why
        return grid(rows)

    def shown(value: Callable[[Spot], float]) -> Callable[[Spot], str]:
        return lambda spot: significant(value(spot) * table.factor)

    fields: list[Field] = [
        *through(_keys([spot.middle for spot in spots]), lambda spot: spot.middle),
        (Column("N", kind="number"), lambda spot: spot.middle.key.word or str(spot.middle.key.concurrency)),
        (Column("median", kind="number"), shown(lambda spot: spot.median)),
        (Column("low", kind="number"), shown(lambda spot: spot.low)),
        (Column("high", kind="number"), shown(lambda spot: spot.high)),
        (Column("Slowest"), lambda spot: spot.worst.key.node),
    ]
    what = f" of {len({row.key.node for row in rows})} nodes: median, lowest and highest"
    return _grid(table, what, fields, spots, [])


def _keys(rows: Sequence[Row]) -> list[Field]:
    """Workload, with its variant where there are several, and size where there is one."""
    table, variants = rows[0].table, {row.key.variant for row in rows}

    def name(row: Row) -> str:
        return table.workload_label(row.key.workload) + (f" {row.key.variant}" if len(variants) > 1 else "")

    sizes = [(Column("Size"), lambda row: size(row.key.block))] if any(row.key.block for row in rows) else []
    return [(Column(table.first), name), *sizes]


def _grid(table: Table, what: str, fields: Sequence[Field], lines: Sequence[Any], legend: Sequence[str]) -> Grid:
    """A grid with all that is said of it in one sentence below."""
    unit = f" in {table.shown}" if table.shown else ""
    parts = (f"{table.title}{unit}{what}", f"N {noun(table)}s", *legend)
    return Grid(
        name=table.name,
        title=table.title,
        columns=tuple(column for column, _ in fields),
        body=tuple(tuple(text(line) for _, text in fields) for line in lines),
        remarks=(f"{'; '.join(filter(None, parts))}.",),
    )


def starred(grid: Grid) -> Grid:
    """A grid for one column: stars at the first cell instead of the columns of doubt and notes, and no notes below."""
    doubts = grid.texts("doubt") or [""] * len(grid.body)
    stars = {str(level): mark for level, mark in MARKS.items()}
    plain = presentation.without(presentation.without(grid, "doubt"), "notes")
    return replace(
        plain,
        columns=(replace(plain.columns[0], kind="text"), *plain.columns[1:]),
        body=tuple((line[0] + stars.get(doubt, ""), *line[1:]) for line, doubt in zip(plain.body, doubts, strict=True)),
        notes=(),
        numbered=False,
        remarks=(*plain.remarks, *(f"{text}." for level, text in LEGEND.items() if str(level) in doubts)),
    )


def _references(rows: Sequence[Row]) -> list[Series]:
    """Those that measured, the one with most rows first."""
    counted = {series: sum(series.instrument in row.series for row in rows) for series in rows[0].table.references}
    return sorted((series for series, count in counted.items() if count), key=lambda series: -counted[series])
