"""What the tables of a report say, without what stands elsewhere in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peakmark.config.layouts import Sheet
from peakmark.judging import findings
from peakmark.judging.row import Row


def of_table(rows: Sequence[Row], mark: str, sheet: Sheet | None) -> list[dict[str, Any]]:
    """What the rows say, without what their notes say one by one, and what page one says of the whole campaign."""
    few = any(note.code == "few" and note.whole for row in rows for note in row.marks)
    elsewhere = ("Disagreement", *(("Not claimed",) if few else ()))
    return [vars(finding) for finding in findings.of(rows, mark, sheet) if finding.topic not in elsewhere]


def of_tables(rows: Sequence[Row], number: int, mark: str, sheet: Sheet | None) -> list[dict[str, Any]]:
    """What the rows of ``number`` tables of one quantity say together, as of a layout that has one for each workload."""
    return [{"topic": f"{number} tables together", "text": text} for text in findings.together(rows, mark, sheet)]
