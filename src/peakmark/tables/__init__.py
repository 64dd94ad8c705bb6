"""The tables of a campaign and the run table: as CSV with full precision, as LaTeX with four
significant digits, and as data of the report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from peakmark import files, output
from peakmark.analysis import Analysis, fleet
from peakmark.analysis.row import ABOVE, Row, Rows
from peakmark.messages import worst
from peakmark.storage.results import Results, StoredRecord
from peakmark.tables import columns, latex, layout_tables, presentation
from peakmark.tables.columns import NOT_MEASURED
from peakmark.tables.presentation import PrintedTable
from peakmark.tools.tables import TABLES, Table

_CELL = ("subsystem", "instrument", "workload", "variant", "block", "concurrency", "repetition")
POINT = ("workload", "variant", "block", "concurrency")
_MEASUREMENT = (*POINT, "metric", "value", "unit")
_CONTEXT = ("host", "server_host", "started", "job_id")
_NUMBERS = {"block": "Int64", "concurrency": "Int64", "repetition": "Int64", "value": "Float64"}
COLUMNS = {
    name: _NUMBERS.get(name, "str")
    for name in (
        "campaign", "subsystem", "instrument", "workload", "variant", "block", "concurrency", "node", "host", "server_host",
        "repetition", "metric", "value", "unit", "started", "status", "reason", "warnings", "details", "record",
        "tool_version", "job_id", "left_out",
    )
}  # fmt: skip


def long_table(results: Results) -> pd.DataFrame:
    """Write the long table as ``tables/measurements.csv`` and ``.parquet`` below the campaign, and
    return it: one line per value, in the order of the records' paths; columns and types as in
    ``COLUMNS``.

    A cell that is unavailable and an attempt that failed have one line each, without metric and
    value, with the reason. ``left_out`` has the codes of what disturbed a value that was measured
    again. ``block`` is in bytes and empty where there is none; ``record`` is the path below the
    campaign. A record that does not count (damaged, edited, of other options) is left out and named
    on standard error.
    """
    lines = [
        line
        for record in (*results.records, *results.attempts)
        for line in _lines(results.name, record)
    ]
    for reason in results.left_out:
        output.tell(f"left out: {reason}")
    frame = pd.DataFrame(lines, columns=list(COLUMNS)).astype(dict(COLUMNS))
    folder = files.made_folder(results.directory, "tables")
    frame.to_csv(folder / "measurements.csv", index=False, lineterminator="\n")
    frame.to_parquet(folder / "measurements.parquet", index=False)
    return frame


def _lines(campaign: str, record: StoredRecord) -> Iterator[dict[str, Any]]:
    data = record.data
    common = {
        "campaign": campaign,
        **{name: getattr(record.cell, name) for name in _CELL},
        "node": record.cell.place,
        "status": data["status"],
        "reason": data.get("reason"),
        "warnings": "; ".join(data.get("warnings", ())),
        "details": "{}",
        "record": record.path,
        "tool_version": (data["context"].get("tool") or {}).get("version"),
    }
    for attempt in record.attempts:
        started = {name: attempt.context.get(name) for name in _CONTEXT}
        line = {**common, **started, "left_out": " ".join(attempt.left_out)}
        if not record.ok or not attempt.measurements:
            yield line
            continue
        for measurement in attempt.measurements:
            details = json.dumps(measurement["details"], sort_keys=True, ensure_ascii=False)
            yield line | {name: measurement[name] for name in _MEASUREMENT} | {"details": details}


RUN_COLUMNS = (
    "subsystem", "instrument", "workload", "variant", "block", "concurrency", "node", "host", "server_host",
    "repetition", "metric", "value", "unit", "started", "job_id", "tool_version", "warnings", "left_out", "record",
)  # fmt: skip


def build(campaign: Path | Analysis) -> None:
    """Write below ``tables/`` the long table, ``<name>.csv`` for all tables and a brief
    ``.tex`` of those with rows, ``summary.csv``, ``findings.csv``, ``runs.csv``, of several
    nodes ``nodes.csv``, ``checksums.txt``, and in a folder of its name the tables of the
    configured layout.

    Errors: PeakmarkError when the folder holds no campaign; RecordError for a damaged record.
    """
    analysis = Analysis.of(campaign)
    results, rows, layout = analysis.results, analysis.rows, analysis.layout
    folder = files.made_folder(results.directory, "tables")
    frames = {table.name: frame(table, rows[table.name]) for table in TABLES}
    texts = {
        name: latex.render(latex.brief(rows[name], analysis.is_fleet))
        for name in frames
        if rows[name]
    }
    # Of rows that are gone, or of an earlier choice of nodes.
    for stale in (*folder.glob("*.tex"), folder / "nodes.csv"):
        stale.unlink(missing_ok=True)
    frames["summary"] = summary([row for table in TABLES for row in rows[table.name]])
    frames["findings"] = sentences(analysis)
    if analysis.has_several_nodes:
        frames["nodes"] = nodes(rows)
    frames["runs"] = runs(long_table(results), rows)
    if layout:
        (folder / layout.name).mkdir(exist_ok=True)
        for layout_table in layout.layout_tables:
            name, shown = f"{layout.name}/{layout_table.name}", rows[layout_table.table.name]
            frames[name] = layout_tables.frame(layout_table, shown)
            grid = layout_tables.grid(results, layout_table, shown)
            # A page of a paper has no room for a column of warnings: its notes say them, in a
            # column of it stars.
            printed = presentation.without(grid, lambda column: column.kind == "warning")
            if layout.narrow:
                printed = latex.starred(grid)
            texts[name] = latex.render(printed, across=not layout.narrow)
    for name, content in frames.items():
        content.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    for name, text in texts.items():
        (folder / f"{name}.tex").write_text(text, encoding="utf-8")
    (folder / "checksums.txt").write_text(results.checksum_list, encoding="utf-8")


def frame(table: Table, rows: Sequence[Row]) -> pd.DataFrame:
    """One table with its headings; values in the table's unit with full precision, efficiency in
    percent.

    A column of an instrument that measured nothing is there and empty. ``Notes`` are joined by ";
    ".
    """
    return columns.frame_of(columns.columns(table, rows), rows)


def summary(rows: Sequence[Row]) -> pd.DataFrame:
    """A line per row and instrument: n, mean, standard deviation (n - 1), median, extremes,
    interval; SI units.
    """
    return _lines_of_rows(
        summary_line(row, instrument) for row in rows for instrument in row.series
    )


def summary_line(row: Row, instrument: str) -> dict[str, Any]:
    """What an instrument measured in a row, by the headings of ``summary.csv``."""
    series = row.series[instrument]
    summary, limit = series.summary, row.limit
    return {
        "table": row.table.name,
        "node": row.key.node,
        "instrument": instrument,
        **{name: getattr(row.key, name) for name in POINT},
        "asked": row.key.word,
        "unit": row.table.unit,
        "n": summary.n,
        "mean": summary.mean,
        "standard_deviation": summary.stdev,
        "median": summary.median,
        "min": summary.minimum,
        "max": summary.maximum,
        "median_low": summary.low,
        "median_high": summary.high,
        "level": summary.level if summary.n > 1 else None,
        "doubt": str(worst(row.warnings_of(instrument)) or ""),
        "theoretical": limit.value,
        "theoretical_formula": limit.explained,
        "theoretical_source": "; ".join(limit.sources),
        "efficiency": series.efficiency,
        "limit_kind": limit.kind,
        "bound": limit.bound,
    }


def nodes(rows: Rows) -> pd.DataFrame:
    """Every node in every point: its value in SI units, beside the median of its class; how far slow
    ones are behind, with the interval, and by what chance a healthy node would be.
    """
    return _lines_of_rows(
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
            "behind_low": row.slow and row.slow.low,
            "behind_high": row.slow and row.slow.high,
            "p": row.slow and row.slow.p,
        }
        for table in rows.values()
        for group in fleet.group_rows(table)
        for row in group.rows
    )


def _point(row: Row) -> dict[str, Any]:
    """The row's point, as CSV files name it."""
    return {"table": row.table.name} | {name: getattr(row.key, name) for name in POINT}


def _lines_of_rows(lines: Iterable[dict[str, Any]]) -> pd.DataFrame:
    found = pd.DataFrame(lines)
    return found.astype({"block": "Int64"}) if len(found) else pd.DataFrame(columns=["table"])


def sentences(analysis: Analysis) -> pd.DataFrame:
    """What the rows of each table say: table, topic, sentence."""
    lines = [
        (name, finding.heading, finding.text)
        for name, table_rows in analysis.rows.items()
        for finding in analysis.conclusions(table_rows)
    ]
    return pd.DataFrame(lines, columns=["table", "topic", "sentence"])


def runs(long: pd.DataFrame, rows: Rows) -> pd.DataFrame:
    """The run table: every repetition of the long table that holds a value, in the order in which
    they were made; ``left_out`` has the codes of why it is not part of its row's summary.
    """
    measured = long[long["value"].notna()].copy()
    for row in (row for table in rows.values() for row in table):
        for point in (point for series in row.series.values() for point in series.above):
            lines = (measured["record"] == point.record.path) & (measured["value"] == point.value)
            measured.loc[lines, "left_out"] = ABOVE
    ordered = measured.sort_values(["started", "record"], kind="stable")
    return ordered[list(RUN_COLUMNS)].reset_index(drop=True)


_BREAK = re.compile(
    r"(Theoretical|Standard|Average|Benchmark(?= Run)) | (?=\(|Measured |[Ee]fficiency|bench)"
)


def as_data(grid: PrintedTable, rows: Sequence[Row]) -> dict[str, Any]:
    """A grid with what only the page needs: headings over several columns, thin rules, numbers
    padded to their decimal mark.
    """
    head, subhead = _headings(grid)
    cells = [
        _padded(texts) if column.kind == "number" else texts
        for column, texts in zip(grid.columns, zip(*grid.body, strict=True), strict=True)
    ]
    return {
        "name": grid.name,
        "title": f"{replace(rows[0].table, title=grid.title).full_title}.",
        "reading": grid.reading,
        "columns": [{"kind": column.kind} for column in grid.columns],
        "head": head,
        "subhead": subhead,
        "breaks": _breaks(rows),
        "body": list(zip(*cells, strict=True)),
        "notes": [[note.letter, note.text] for note in grid.notes],
        "remarks": [*grid.remarks, *grid.shared],
        "general": list(grid.general),
    }


def _padded(texts: Sequence[str]) -> list[str | dict[str, str]]:
    """Numbers with what is missing behind their decimal mark, which is set but not seen."""
    numbers = [text for text in texts if text not in ("", NOT_MEASURED)]
    decimals = {text: len(text.partition(".")[2]) for text in numbers}
    most = max(decimals.values(), default=0)
    cells: list[str | dict[str, str]] = []
    for text in texts:
        missing = most - decimals.get(text, most)
        mark = "." if missing and missing == most else ""
        pad = f"{mark}{'0' * missing}"
        cells.append(text if text == NOT_MEASURED else {"text": text, "pad": pad})
    return cells


def _headings(grid: PrintedTable) -> tuple[list[dict[str, Any]], list[str]]:
    """Two lines of headings: groups, and columns that stand alone over both lines; then the columns
    in groups.
    """
    head: list[dict[str, Any]] = []
    grouped = [column.label for column in grid.columns if column.group]
    for title, members in groupby(grid.columns, key=lambda column: column.group):
        columns = list(members)
        if title:
            head.append({"title": title, "span": len(columns), "rows": 1, "kind": "number"})
        else:
            head += [
                {
                    "title": _wrapped(column.label),
                    "span": 1,
                    "rows": 2 if grouped else 1,
                    "kind": column.kind,
                }
                for column in columns
            ]
    return head, grouped


def _wrapped(heading: str) -> str:
    """A heading with its unit, and what is narrower in two lines, on lines of their own."""
    return _BREAK.sub(lambda place: f"{place[1] or ''}\n", heading)


def _breaks(rows: Sequence[Row]) -> list[int]:
    """Rows above which a thin rule stands: where the workload changes."""
    return changes([(row.key.node, row.key.workload, row.key.variant) for row in rows])


def changes(keys: Sequence[object]) -> list[int]:
    """The places at which a key differs from the one before."""
    return [number for number in range(1, len(keys)) if keys[number] != keys[number - 1]]
