"""Tables as data of the report, and rows for exports; ``views`` has what writes files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from peakmark.analysis.row import Row
from peakmark.messages import worst
from peakmark.tables.columns import NOT_MEASURED
from peakmark.tables.presentation import PrintedTable

POINT = ("workload", "variant", "block", "concurrency")


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
