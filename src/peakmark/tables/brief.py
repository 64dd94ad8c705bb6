"""A table of at most seven short columns, for one column of a paper: what was measured, the limit, the share of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from peakmark.catalogue.tables import Series
from peakmark.formatting import percent, significant, size
from peakmark.judging.notes import Level
from peakmark.judging.row import Row
from peakmark.tables import footnotes, presentation
from peakmark.tables.presentation import NOT_MEASURED, Column, Grid, where, where_heading

MOST = 7
MARKS = {Level.UNSURE: "*", Level.WRONG: "**"}
_SAID = {
    Level.UNSURE: "* unsure: another run may well differ",
    Level.WRONG: "** wrong: the figure is not what the row says",
}


def grid(rows: Sequence[Row]) -> Grid:
    """Workload, size, concurrency, own kernel, references, limit, share of the limit: of these what the rows have, a reference
    less where that is more than ``MOST``. ``rows``: of one table, at least one.
    """
    table = rows[0].table
    variants = {row.key.variant for row in rows}
    heading = where_heading(rows)
    with_limit = any(row.limit.value is not None for row in rows)
    with_block = any(row.key.block is not None for row in rows)
    room = MOST - 3 - with_block - 2 * with_limit - bool(heading)
    beside = _references(rows)[: max(0, room)]
    unit = f" in {table.shown}" if table.shown else ""
    columns = [
        *([Column(heading)] if heading else []),
        Column(table.first),
        *([Column("Size")] if with_block else []),
        Column("N", kind="number"),
        *(Column(series.instrument, kind="number") for series in (table.own, *beside)),
        *([Column("Limit", kind="number"), Column("%", kind="number")] if with_limit else []),
    ]

    def line(row: Row) -> tuple[str, ...]:
        def shown(value: float | None) -> str:
            return "" if value is None else significant(value * table.factor)

        name = table.workload_label(row.key.workload) + (f" {row.key.variant}" if len(variants) > 1 else "")
        values = [row.series.get(series.instrument) for series in beside]
        share = row.own.efficiency if row.own else None
        hole = NOT_MEASURED if row.own is None else ""
        return (
            *([where([row])] if heading else []),
            name + (MARKS[row.level] if row.level else ""),
            *([size(row.key.block)] if with_block else []),
            str(row.key.concurrency) if row.key.concurrency else row.key.word,
            hole or shown(row.measured.centre),
            *("" if entry is None else shown(entry.centre) for entry in values),
            *([shown(row.limit.value), percent(share) if share is not None else ""] if with_limit else []),
        )

    seen = [level for level in MARKS if any(row.level is level for row in rows)]
    counted = sorted({row.own.summary.n for row in rows if row.own})
    repeated = f"n = {counted[0]}" if len(counted) == 1 else f"n = {counted[0]} to {counted[-1]}" if counted else ""
    parts = [
        f"{table.title}{unit}",
        f"N {'streams' if table.subsystem == 'network' else 'threads'}",
        repeated,
        "% share of the limit" if with_limit else "",
        *(_SAID[level] for level in seen),
    ]
    return Grid(
        name=table.name,
        title=table.title,
        columns=tuple(columns),
        body=tuple(line(row) for row in rows),
        notes=(),
        remarks=(f"{'; '.join(filter(None, parts))}.",),
    )


def starred(grid: Grid) -> Grid:
    """A grid for one column: stars at the first cell instead of the columns of doubt and notes, and no notes below."""
    labels = [column.label for column in grid.columns]
    doubts = [line[labels.index("Doubt")] if "Doubt" in labels else "" for line in grid.body]
    stars = {str(level): mark for level, mark in MARKS.items()}
    plain = presentation.without(presentation.without(grid, "Doubt"), "Notes")
    body = tuple((line[0] + stars.get(doubt, ""), *line[1:]) for line, doubt in zip(plain.body, doubts, strict=True))
    legend = tuple(f"{text}." for level, text in _SAID.items() if str(level) in doubts)
    columns = tuple(replace(item, kind="text") if not place else item for place, item in enumerate(plain.columns))
    shared = tuple(item for item in plain.shared if item != footnotes.closed(footnotes.BESIDE))
    return replace(plain, columns=columns, body=body, notes=(), shared=shared, remarks=(*plain.remarks, *legend))


def _references(rows: Sequence[Row]) -> list[Series]:
    """Those that measured, the one with most rows first."""
    counted = {
        series.instrument: sum(series.instrument in row.series for row in rows) for series in rows[0].table.references
    }
    measured = [series for series in rows[0].table.references if counted[series.instrument]]
    return sorted(measured, key=lambda series: -counted[series.instrument])
