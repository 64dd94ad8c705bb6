"""A grid as the page shows it: headings over several columns, thin rules, numbers aligned on their
decimal mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from peakmark.analysis.row import Row
from peakmark.tables import captions
from peakmark.tables.presentation import NOT_MEASURED, PrintedTable

_BREAK = re.compile(
    r"(Theoretical|Standard|Average|Benchmark(?= Run)) | (?=\(|Measured |[Ee]fficiency|bench)"
)
LONG = 8  # rows from which on the eye needs rules between them


def table(grid: PrintedTable, rows: Sequence[Row], mark: str) -> dict[str, Any]:
    """A grid with what only the page needs: headings over several columns, thin rules, numbers
    padded to their decimal mark.
    """
    measured = [
        [text for text in texts if text != NOT_MEASURED] for texts in zip(*grid.body, strict=True)
    ]
    decimals = [
        max((len(text.partition(mark)[2]) for text in texts), default=0) for texts in measured
    ]

    def cell(place: int, text: str) -> str | dict[str, str]:
        if grid.columns[place].kind != "number" or text == NOT_MEASURED:
            return text
        fraction = text.partition(mark)[2]
        lacking = decimals[place] - len(fraction)
        pad = "" if not text or lacking <= 0 else ("" if fraction else mark) + "0" * lacking
        return {"text": text, "pad": pad}

    head, subhead = _headings(grid)
    return {
        "name": grid.name,
        "title": f"{captions.of_table(grid.title, rows[0].table.subsystem)}.",
        "reading": grid.reading,
        "columns": [{"kind": column.kind} for column in grid.columns],
        "head": head,
        "subhead": subhead,
        "breaks": _breaks(rows),
        "body": [[cell(place, text) for place, text in enumerate(line)] for line in grid.body],
        "notes": [[note.letter, note.text] for note in grid.notes],
        "remarks": [*grid.below],
    }


def _headings(grid: PrintedTable) -> tuple[list[dict[str, Any]], list[str]]:
    """Two lines of headings: groups, and columns that stand alone over both lines; then the columns
    in groups.
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
                {"title": _wrapped(column.label), "span": 1, "rows": lines, "kind": column.kind}
                for column in columns
            ]
    return head, subhead


def _wrapped(heading: str) -> str:
    """A heading with its unit, and what is narrower in two lines, on lines of their own."""
    return _BREAK.sub(lambda place: f"{place[1] or ''}\n", heading)


def _breaks(rows: Sequence[Row]) -> list[int]:
    """Rows above which a thin rule stands: where the workload changes; in a long table of one,
    where the concurrency does.
    """

    def changes(of: Callable[[Row], object]) -> list[int]:
        return [
            number for number in range(1, len(rows)) if of(rows[number]) != of(rows[number - 1])
        ]

    starts = changes(lambda row: (row.key.node, row.key.workload, row.key.variant))
    steps = changes(lambda row: row.key.concurrency)
    return starts if starts or len(rows) < LONG or 2 * len(steps) >= len(rows) else steps
