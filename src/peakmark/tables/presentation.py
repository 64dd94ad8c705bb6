"""A table's rows as cells of text: what the PDF and the LaTeX file both show, with the notes that belong to the
rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from peakmark.catalogue.tables import Table, count
from peakmark.formatting import listed, percent, significant, size, typeset
from peakmark.judging.row import Row
from peakmark.judging.rows import published_names
from peakmark.limits.base import Missing
from peakmark.storage.results import Results
from peakmark.tables.footnotes import Notes, closed

NOT_MEASURED = "not measured"
ENDS = "Client → server"


@dataclass(frozen=True)
class Column:
    """A column; those of the same ``group`` stand beside each other under one heading. kind: text, number or notes."""

    label: str
    group: str = ""
    kind: str = "text"


@dataclass(frozen=True)
class Grid:
    """A table as shown.

    body     texts, one list per row, as many as columns
    notes    letter and sentence, in the order in which the rows refer to them
    remarks  sentences about the whole table: why a column is empty, what is not known
    reading  how to read it: what its rows are and what is counted; may be empty
    shared   notes that all measured rows have in common: said once, after the remarks
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    body: tuple[tuple[str, ...], ...]
    notes: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    reading: str = ""
    shared: tuple[str, ...] = ()


def without_notes(grid: Grid, told_at: str) -> Grid:
    """The grid of rows whose notes stand below another table, that of the title ``told_at``."""
    return replace(
        without(grid, "Notes"),
        notes=(),
        shared=(),
        remarks=(*grid.remarks, f"Notes on these rows stand below the table “{told_at}”."),
    )


def without(grid: Grid, label: str) -> Grid:
    """The grid without the columns of this label."""
    kept = [number for number, column in enumerate(grid.columns) if column.label != label]
    return replace(
        grid,
        columns=tuple(grid.columns[number] for number in kept),
        body=tuple(tuple(line[number] for number in kept) for line in grid.body),
    )


def without_empty(grid: Grid) -> Grid:
    """The grid without the columns that say nothing: those empty in all rows, and n or a variant that is the same in all,
    which a remark then says.
    """
    kept, remarks = [], []
    for number, column in enumerate(grid.columns):
        texts = {line[number] for line in grid.body}
        if len(texts) == 1 and len(grid.body) > 1 and column.label in SAID_ONCE:
            (text,) = texts
            remarks.append(SAID_ONCE[column.label].format(text) if text not in USUAL else "")
        elif texts != {""}:
            kept.append(number)
    return replace(
        grid,
        columns=tuple(grid.columns[number] for number in kept),
        body=tuple(tuple(line[number] for number in kept) for line in grid.body),
        remarks=(*filter(None, remarks), *grid.remarks),
    )


SAID_ONCE = {
    "n": "n = {} in all rows.",
    "Engine": "Engine: {}.",
    "Mode": "Mode: {}.",
    "Working Set": "Working set: {}.",
}
USUAL = ("psync", "plain", "")
"""Variants that nobody asked for: they need no word."""


def interval_heading(rows: Sequence[Row]) -> str:
    """``95 % interval``, or what the number of repetitions allows: ``75 % interval``, ``75 to 95 % interval``."""
    levels = sorted({int(100 * row.own.summary.level) for row in rows if row.own and row.own.summary.n > 1})
    capped = list(dict.fromkeys(min(level, 95) for level in levels)) or [95]
    return f"{capped[0]} % interval" if len(capped) == 1 else f"{capped[0]} to {capped[-1]} % interval"


def columns(
    table: Table, where: str = "", published: Sequence[str] = (), interval: str = "95 % interval"
) -> tuple[Column, ...]:
    """The table's columns, left to right; ``where`` is the heading of the nodes, if it needs one, ``published`` are the
    sets that stand beside it, ``interval`` says its level.
    """
    keys = [Column(where)] if where else []
    keys += [Column(table.first), Column("Concurrency", kind="number")]
    if table.block:
        keys.append(Column(table.block, kind="number"))
    if table.variant:
        keys.append(Column(table.variant))
    return (
        *keys,
        *(Column(series.heading, table.measured_group, "number") for series in table.series),
        Column(table.theoretical_heading, kind="number"),
        *(Column(series.heading, "Efficiency (%)", "number") for series in table.series),
        Column("Standard Deviation", kind="number"),
        Column("n", kind="number"),
        Column("low", interval, "number"),
        Column("high", interval, "number"),
        *published_columns(table, published),
        Column("Doubt"),
        Column("Notes", kind="notes"),
    )


def where_heading(rows: Sequence[Row]) -> str:
    """Heading of the column that says where rows were measured; empty where all were on one node, which need not be said."""
    if any(row.ends for row in rows):
        return ENDS
    return "Node" if len({row.key.node for row in rows}) > 1 else ""


def where(rows: Sequence[Row]) -> str:
    """Where the rows of one line were measured: ``node1``, ``node1 → node2`` from client to server, or how many pairs."""
    pairs = sorted({pair for row in rows for pair in row.ends})
    if len(pairs) > 1:
        return f"{len(pairs)} pairs"
    return " → ".join(pairs[0]) if pairs else rows[0].key.node


def published_columns(table: Table, published: Sequence[str]) -> list[Column]:
    """A column for each published set."""
    return [Column(name, table.published_group, "number") for name in published]


def published_cells(row: Row | None, published: Sequence[str], factor: float, mark: str) -> list[str]:
    """What the published sets have in a row, as text."""
    values = [row.published.get(name) if row else None for name in published]
    texts = ["" if value is None else significant(value * factor) for value in values]
    # 7 was printed as 7: zeros behind the mark would claim a precision that nobody had.
    return [(text.rstrip("0").rstrip(".") if "." in text else text).replace(".", mark) for text in texts]


def grid(results: Results, table: Table, rows: Sequence[Row], mark: str = ".") -> Grid:
    """The rows of one table as text; numbers with four significant digits and ``mark`` as decimal mark. Columns that are empty
    throughout are left out, and a remark says why.
    """
    heading = where_heading(rows)
    notes = Notes.of(rows)
    published = published_names(rows)
    body = [
        (
            *_cells(table, row, bool(heading), mark),
            *published_cells(row, published, table.factor, mark),
            str(row.level or ""),
            notes.marks([row], mark),
        )
        for row in rows
    ]
    instruments = {series.instrument for series in table.series}
    remarks = remarks_on_gaps(results, table, rows, instruments)
    whole = Grid(
        name=table.name,
        title=table.title,
        columns=columns(table, heading, published, interval_heading(rows)),
        body=tuple(body),
        notes=tuple((at, typeset(sentence, mark)) for at, sentence in notes.sentences),
        remarks=tuple(typeset(closed(remark), mark) for remark in remarks),
        shared=tuple(typeset(closed(note), mark) for note in notes.said_of_all),
        reading=typeset(closed(table.remark), mark) if table.remark else "",
    )
    return without_empty(whole) if rows else whole


def _cells(table: Table, row: Row, with_node: bool, mark: str) -> tuple[str, ...]:
    def shown(value: float | None, step: float = 0.0) -> str:
        return "" if value is None else significant(value * table.factor, mark=mark, step=step * table.factor)

    key = row.key
    cells = [where([row])] if with_node else []
    cells += [table.workload_label(key.workload), str(count(key.concurrency, key.word))]
    if table.block:
        cells.append(size(key.block) or table.unsized)
    if table.variant:
        cells.append(table.variant_label(key.variant))
    entries = [row.series.get(series.instrument) for series in table.series]
    cells += [shown(entry.centre, entry.step) if entry else "" for entry in entries]
    if row.own is None:
        cells[-len(entries)] = NOT_MEASURED
    cells.append(shown(row.limit.value))
    cells += [percent(entry.efficiency, mark) if entry and entry.efficiency is not None else "" for entry in entries]
    own = row.own.summary if row.own else None
    cells += [
        significant(own.stdev * table.factor, 3, mark) if own and own.stdev is not None else "",
        str(own.n) if own else "",
        shown(own.low) if own else "",
        shown(own.high) if own else "",
    ]
    return tuple(cells)


def remarks_on_gaps(
    results: Results, table: Table, rows: Sequence[Row], instruments: Collection[str], with_limit: bool = True
) -> list[str]:
    """Why the columns of ``instruments`` are empty and why a theoretical value is missing, as far as they are."""
    remarks = []
    for series in table.series:
        if rows and series.instrument in instruments and not any(series.instrument in row.series for row in rows):
            remarks.append(f"No columns of {series.heading}: {empty_reason(results, series.instrument)}")
    reasons = unknown_reasons(rows) if with_limit else []
    where = "where it is empty" if any(row.limit.value is not None for row in rows) else "throughout"
    if len(reasons) == 1:
        remarks.append(f"Theoretical {table.quantity} unknown {where}: {reasons[0]}")
    elif reasons:
        remarks.append(f"Theoretical {table.quantity} unknown {where}; the list of formulas says why")
    return remarks


def unknown_reasons(rows: Sequence[Row]) -> list[str]:
    """Why rows have no theoretical value, each reason once; those that differ in the key of the site file alone are one:
    ``write disk.throughput.RS, .RR and .WS in the site file``.
    """
    unknown = {row.limit.reason: row.limit.missing for row in rows if row.limit.value is None and row.limit.reason}
    families: dict[Missing | str, list[str]] = {}
    for reason, missing in unknown.items():
        stem, _, name = missing.key.rpartition(".") if missing else ("", "", "")
        families.setdefault(missing._replace(key=stem) if missing else reason, []).append(name)
    return [
        family if isinstance(family, str) else str(family._replace(key=f"{family.key}{_listed(names)}"))
        for family, names in families.items()
    ]


def _listed(names: Sequence[str]) -> str:
    """``.RS``, ``.RS, .RR and .WS``."""
    dotted = [f".{name}" for name in names]
    return listed(dotted)


def empty_reason(results: Results, instrument: str) -> str:
    """Why an instrument has no figures, with what would fill its columns where that is known."""
    for reference in results.plan.get("references", []):
        if reference["instrument"] == instrument and reference["path"] is None:
            package = reference.get("package")
            hint = f"; `apt install {package}` fills them" if package else ""
            return f"{reference['reason'] or 'the program is not on this machine'}{hint}"
    refused = _reasons(results, instrument)
    if refused:
        return refused
    if any(cell.instrument == instrument for cell in results.cells):
        return "none of its cells has been measured for these rows yet"
    return "the plan holds no cell of it"


def _reasons(results: Results, instrument: str) -> str:
    stored: list[Mapping[str, Any]] = [record.data for record in results.records if not record.ok]
    stored += [attempt.data for attempt in results.attempts]
    return "; ".join(dict.fromkeys(str(data["reason"]) for data in stored if data["cell"]["instrument"] == instrument))
