"""What a figure says to those who listen to it: its caption, then the two or three values that matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from peakmark.formatting import percent
from peakmark.judging.row import Row
from peakmark.judging.words import Words


def text(caption: str, rows: Sequence[Row], mark: str, value: str = "measured") -> str:
    """The caption of a figure of these rows with the highest and the lowest own value, and the limit of the highest.

    value  what the figure shows: measured, efficiency or deviation
    """
    of = _VALUES[value]
    measured = sorted(
        (row for row in rows if row.own is not None and of(row) is not None), key=lambda row: of(row) or 0.0
    )
    if not measured:
        return caption
    low, high = measured[0], measured[-1]

    def shown_of(row: Row) -> str:
        words, number = Words.of(row, mark), of(row) or 0.0
        shown = f"{percent(number, mark)} % of the limit" if value == "efficiency" else words.quantity(number)
        return f"{shown} ({words.row(row)})"

    name = Words.of(high, mark).program(high.table.own)
    values = f"{name}: {shown_of(high)}" if low is high else f"{name}: from {shown_of(low)} to {shown_of(high)}"
    limit = ""
    if value == "measured" and high.limit.value is not None:
        limit = f"; limit there {Words.of(high, mark).quantity(high.limit.value)}"
    return f"{caption} {values}{limit}."


_VALUES: Mapping[str, Callable[[Row], float | None]] = {
    "measured": lambda row: row.measured.centre,
    "efficiency": lambda row: row.measured.efficiency,
    "deviation": lambda row: row.measured.summary.stdev,
}
