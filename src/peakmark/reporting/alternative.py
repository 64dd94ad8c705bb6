"""What a figure says to those who listen to it: its caption, then the two or three values that matter."""

from __future__ import annotations

from collections.abc import Sequence

from peakmark.judging.row import Row
from peakmark.judging.words import Words


def text(caption: str, rows: Sequence[Row], mark: str) -> str:
    """The caption of a figure of these rows with the highest and the lowest own value, and the limit of the highest."""
    measured = sorted((row for row in rows if row.own is not None), key=lambda row: row.measured.centre)
    if not measured:
        return caption
    low, high = measured[0], measured[-1]

    def said(row: Row) -> str:
        words = Words.of(row, mark)
        return f"{words.quantity(row.measured.centre)} ({words.row(row)})"

    name = Words.of(high, mark).program(high.table.own)
    values = f"{name}: {said(high)}" if low is high else f"{name}: from {said(low)} to {said(high)}"
    limit = f"; limit there {Words.of(high, mark).quantity(high.limit.value)}" if high.limit.value is not None else ""
    return f"{caption} {values}{limit}."
