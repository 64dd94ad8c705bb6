"""A grid as the page shows it: headings over several columns, thin rules, numbers aligned on their decimal mark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from peakmark.judging.row import Row
from peakmark.tables import captions, presentation
from peakmark.tables.presentation import Grid

MAX_WHOLE = 24  # a table of so many rows is not broken over pages
LONG = 8  # rows from which on the eye needs rules between them


def table(grid: Grid, rows: Sequence[Row], mark: str) -> dict[str, Any]:
    """A grid with what only the page needs: headings over several columns, thin rules, numbers padded to their decimal
    mark.
    """
    decimals = [
        max(
            (len(line[place].partition(mark)[2]) for line in grid.body if line[place] != presentation.NOT_MEASURED),
            default=0,
        )
        for place in range(len(grid.columns))
    ]

    def cell(place: int, text: str) -> str | dict[str, str]:
        column = grid.columns[place]
        if column.kind != "number" or text == presentation.NOT_MEASURED or column.label == "Block Size":
            return text
        fraction = text.partition(mark)[2]
        lacking = decimals[place] - len(fraction)
        pad = "" if not text or lacking <= 0 else ("" if fraction else mark) + "0" * lacking
        return {"text": text, "pad": pad}

    head, subhead = _headings(grid)
    return {
        "name": grid.name,
        "title": captions.of_table(grid.title, rows[0].table.subsystem),
        "reading": grid.reading,
        "columns": [{"kind": column.kind} for column in grid.columns],
        "head": head,
        "subhead": subhead,
        "breaks": _breaks(rows),
        "whole": len(rows) <= MAX_WHOLE,
        "body": [[cell(place, text) for place, text in enumerate(line)] for line in grid.body],
        "notes": [list(note) for note in grid.notes],
        "remarks": [*grid.remarks, *grid.shared],
    }


def _headings(grid: Grid) -> tuple[list[dict[str, Any]], list[str]]:
    """The two lines of headings: groups and the columns that stand alone, over both lines; then the columns in
    groups.
    """
    head: list[dict[str, Any]] = []
    subhead: list[str] = []
    lines = 2 if any(column.group for column in grid.columns) else 1
    for title, members in groupby(grid.columns, key=lambda column: column.group):
        columns = list(members)
        if title:
            head.append({"title": title, "span": len(columns), "rows": 1, "kind": "number"})
            subhead += [column.label for column in columns]
        else:
            head += [
                {"title": _wrapped(column.label), "span": 1, "rows": lines, "kind": column.kind} for column in columns
            ]
    return head, subhead


def _wrapped(heading: str) -> str:
    """A heading with its unit, and what is narrower in two lines, on lines of their own."""
    for part, lines in (
        (" (", "\n("),
        ("Theoretical ", "Theoretical\n"),
        ("Standard ", "Standard\n"),
        (" Measured ", "\nMeasured "),
        (" Efficiency", "\nEfficiency"),
        (" efficiency", "\nefficiency"),
        (" bench", "\nbench"),
        ("Benchmark Run", "Benchmark\nRun"),
        ("Average ", "Average\n"),
    ):
        heading = heading.replace(part, lines)
    return heading


def _breaks(rows: Sequence[Row]) -> list[int]:
    """Rows above which a thin rule stands: where the workload changes; in a long table of one, where the concurrency does."""
    starts = [number for number in range(1, len(rows)) if _family(rows[number]) != _family(rows[number - 1])]
    if starts or len(rows) < LONG:
        return starts
    steps = [n for n in range(1, len(rows)) if rows[n].key.concurrency != rows[n - 1].key.concurrency]
    return steps if 2 * len(steps) < len(rows) else []


def _family(row: Row) -> tuple[str, str, str]:
    return row.key.node, row.key.workload, row.key.variant
