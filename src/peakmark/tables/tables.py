"""The eight tables and the run table, as CSV with full precision and as LaTeX with four significant digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.catalogue.tables import TABLES, Table, count
from peakmark.config import layouts
from peakmark.judging import findings, fleet, fleet_text, notes
from peakmark.judging.judged import Judged
from peakmark.judging.row import Row
from peakmark.judging.rows import published_names
from peakmark.storage import measurements
from peakmark.storage.results import Results
from peakmark.tables import brief, latex, nodes, presentation, sheets
from peakmark.tables.presentation import Grid
from peakmark.units import format_size

RUN_COLUMNS = (
    "subsystem", "instrument", "workload", "variant", "block", "concurrency", "node", "host", "server_host",
    "repetition", "metric", "value", "unit", "started", "job_id", "tool_version", "warnings", "record",
)  # fmt: skip

_AT_CLOCKS = {name: f"Efficiency at {name} clock (%)" for name in ("nominal", "maximum")}


def build(campaign: Path | Judged) -> list[Path]:
    """Write the long table, ``tables/<name>.csv`` for all eight tables and a brief ``.tex`` of those with rows, ``summary.csv``, ``findings.csv``, ``runs.csv``,
    of several nodes ``nodes.csv``, ``checksums.txt``, and the tables of the configured layout in ``tables/<layout>``; the paths written.

    Errors: PeakmarkError when the folder holds no campaign; RecordError for a damaged record.
    """
    judged = Judged.of(campaign)
    results, rows = judged.results, judged.rows
    folder = results.directory / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    many = fleet.is_many(rows)
    for table in TABLES:
        csv = folder / f"{table.name}.csv"
        frame(table, rows[table.name]).to_csv(csv, index=False, lineterminator="\n")
        written.append(csv)
        tex = folder / f"{table.name}.tex"
        if rows[table.name]:
            tex.write_text(latex.table((nodes.brief if many else brief.grid)(rows[table.name])), encoding="utf-8")
            written.append(tex)
        else:
            tex.unlink(missing_ok=True)
    written += _write_sheets(results, rows, folder)
    everything = [row for table in TABLES for row in rows[table.name]]
    (folder / "nodes.csv").unlink(missing_ok=True)  # of an earlier choice of nodes
    for name, content in (
        ("summary", summary(everything)),
        ("findings", sentences(rows)),
        *((("nodes", nodes.frame(rows)),) if len(fleet.nodes(rows)) > 1 else ()),
        ("runs", runs(measurements.build(results))),
    ):
        path = folder / f"{name}.csv"
        content.to_csv(path, index=False, lineterminator="\n")
        written.append(path)
    checksums = folder / "checksums.txt"
    checksums.write_text(results.checksum_list, encoding="utf-8")
    return [*written, checksums]


def _write_sheets(results: Results, rows: Mapping[str, Sequence[Row]], tables: Path) -> list[Path]:
    """The tables of the layout that ``report.tables`` names, below ``tables/<layout>``."""
    name = results.report_config.get("tables")
    if not name:
        return []
    layout = layouts.load(str(name))
    folder = tables / layout.name
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for sheet in layout.sheets:
        csv, tex = folder / f"{sheet.name}.csv", folder / f"{sheet.name}.tex"
        sheets.frame(sheet, rows[sheet.table.name]).to_csv(csv, index=False, lineterminator="\n")
        printed = _printed(results, sheet, rows, layout.narrow)
        tex.write_text(latex.table(printed, across=not layout.narrow), encoding="utf-8")
        written += [csv, tex]
    return written


def _printed(results: Results, sheet: layouts.Sheet, rows: Mapping[str, Sequence[Row]], narrow: bool) -> Grid:
    """A sheet for a page of a paper, which has no room for a word of doubt in each row: its notes say it, in a ``narrow`` one
    for a column stars.
    """
    grid = sheets.grid(results, sheet, rows[sheet.table.name])
    return brief.starred(grid) if narrow else presentation.without(grid, "Doubt")


def frame(table: Table, rows: Sequence[Row]) -> pd.DataFrame:
    """One table with its headings; values in the table's unit with full precision, efficiency in percent.

    A column of an instrument that measured nothing is there and empty. ``Notes`` are joined by "; ".
    """
    with_node = len({row.key.node for row in rows}) > 1
    published = published_names(rows)
    lines = [_line(table, row, with_node) for row in rows]
    return pd.DataFrame(lines, columns=headings(table, with_node, published))


ENDS = ("Client", "Server")
INTERVAL = ("Interval of the median, low", "Interval of the median, high", "Level of the interval (%)")


def headings(table: Table, with_node: bool = False, published: Sequence[str] = ()) -> list[str]:
    """Headings of a table's CSV, left to right; ``published`` are the sets that stand beside it."""
    keys = (["Node"] if with_node else []) + [table.first, "Concurrency"]
    keys += [heading for heading in (table.block, table.variant) if heading]
    return [
        *keys,
        *(table.measured_heading(series) for series in table.series),
        table.theoretical_heading,
        *(table.efficiency_heading(series) for series in table.series),
        "Standard Deviation",
        "n",
        *INTERVAL,
        "Doubt",
        *(f"{name}: {table.published_group}" for name in published),
        *(_AT_CLOCKS.values() if SUBSYSTEMS[table.subsystem].pinned else ()),
        *(ENDS if table.subsystem == "network" else ()),
        "Notes",
    ]


def _line(table: Table, row: Row, with_node: bool) -> dict[str, Any]:
    def shown(value: float | None) -> float | None:
        return None if value is None else value * table.factor

    own = row.own.summary if row.own else None
    line: dict[str, Any] = {"Node": row.key.node} if with_node else {}
    line |= {
        table.first: table.workload_label(row.key.workload),
        "Concurrency": count(row.key.concurrency, row.key.word),
    }
    if table.block:
        line[table.block] = table.unsized if row.key.block is None else format_size(row.key.block)
    if table.variant:
        line[table.variant] = table.variant_label(row.key.variant)
    for series in table.series:
        measured = row.series.get(series.instrument)
        line[table.measured_heading(series)] = shown(measured.centre) if measured else None
        share = measured.efficiency if measured else None
        line[table.efficiency_heading(series)] = None if share is None else 100 * share
    line[table.theoretical_heading] = shown(row.limit.value)
    line["Standard Deviation"] = shown(own.stdev) if own else None
    line["n"] = own.n if own else 0
    interval = (shown(own.low), shown(own.high), 100 * own.level) if own else (None, None, None)
    line |= dict(zip(INTERVAL, interval, strict=True))
    line["Doubt"] = str(row.level or "")
    line |= {f"{name}: {table.published_group}": shown(value) for name, value in row.published.items()}
    if SUBSYSTEMS[table.subsystem].pinned:
        line |= {
            heading: 100 * row.shares[name] if name in row.shares else None for name, heading in _AT_CLOCKS.items()
        }
    if table.subsystem == "network":
        line |= dict(zip(ENDS, _ends(row), strict=True))
    line["Notes"] = "; ".join(row.said(row.marks))
    return line


def _ends(row: Row) -> tuple[str, str]:
    """Hosts of the clients and of the servers, pair by pair; over loopback both are the one machine."""
    points = [point for series in row.series.values() for point in series.points]
    pairs = row.ends or tuple(dict.fromkeys((host, host) for host in (p.context["host"] for p in points)))
    return "; ".join(client for client, _ in pairs), "; ".join(server for _, server in pairs)


def summary(rows: Sequence[Row]) -> pd.DataFrame:
    """One line per row and instrument: n, mean, standard deviation (n - 1), median, extremes and interval, in SI
    units.
    """
    lines = [
        {
            "table": row.table.name,
            "node": row.key.node,
            "instrument": instrument,
            "workload": row.key.workload,
            "variant": row.key.variant,
            "block": row.key.block,
            "concurrency": row.key.concurrency,
            "asked": row.key.word,
            "unit": row.table.unit,
            "n": series.summary.n,
            "mean": series.summary.mean,
            "standard_deviation": series.summary.stdev,
            "median": series.summary.median,
            "min": series.summary.minimum,
            "max": series.summary.maximum,
            "median_low": series.summary.low,
            "median_high": series.summary.high,
            "level": series.summary.level if series.summary.n > 1 else None,
            "doubt": str(notes.worst(row.marks_of(instrument)) or ""),
            "theoretical": row.limit.value,
            "theoretical_formula": row.limit.formula,
            "theoretical_source": row.limit.source,
            "efficiency": series.efficiency,
        }
        for row in rows
        for instrument, series in row.series.items()
    ]
    return pd.DataFrame(lines).astype({"block": "Int64"}) if lines else pd.DataFrame(columns=["table"])


def sentences(rows: Mapping[str, Sequence[Row]]) -> pd.DataFrame:
    """What the rows of each table say: table, topic, sentence."""
    find = fleet_text.of if fleet.is_many(rows) else findings.of
    lines = [(name, finding.topic, finding.text) for name, table_rows in rows.items() for finding in find(table_rows)]
    return pd.DataFrame(lines, columns=["table", "topic", "sentence"])


def runs(long: pd.DataFrame) -> pd.DataFrame:
    """The run table: every repetition of the long table that holds a value, in the order in which they were made."""
    measured = long[long["value"].notna()]
    ordered = measured.sort_values(["started", "record"], kind="stable")
    return ordered[list(RUN_COLUMNS)].reset_index(drop=True)
