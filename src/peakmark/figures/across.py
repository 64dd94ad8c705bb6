"""The axes of figures: what stands on the horizontal one, what distinguishes lines or panels
instead, and how both are scaled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from peakmark.analysis.label_formatter import LabelFormatter, noun
from peakmark.analysis.row import Row
from peakmark.figures import style
from peakmark.tools.tables import UNITS, Table

MAX_TICKS = 6  # labels beside each other below one panel
SPAN = 20  # highest by lowest value from which on the vertical axis is logarithmic

_SIZE = re.compile(
    r"(\d) ?([A-Za-z]+)$"
)  # the end of a size, with or without a space before its unit


@dataclass(frozen=True)
class Across:
    """What stands on the horizontal axis: the block size, or else the concurrency."""

    block: bool

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Across:
        """Whichever has more values among the rows."""
        blocks = {row.key.block for row in rows}
        return cls(len(blocks) > 1 and len(blocks) >= len({row.key.concurrency for row in rows}))

    @property
    def other(self) -> Across:
        """The one that is not on the axis."""
        return Across(not self.block)

    def place(self, row: Row) -> int:
        """Where a row stands: its block in bytes, or its number of threads."""
        return (row.key.block or 0) if self.block else row.key.concurrency

    def places(self, rows: Iterable[Row]) -> list[int]:
        """Where rows stand, each place once, left to right."""
        return sorted({self.place(row) for row in rows})

    def ordered(self, rows: Iterable[Row]) -> list[Row]:
        """The rows from left to right."""
        return sorted(rows, key=self.place)

    def name(self, row: Row) -> str:
        """``16 MiB`` or ``8 threads``, as the row's layout has it."""
        labels = LabelFormatter.of(row)
        return labels.block(row) if self.block else labels.many(row.key.concurrency)

    def label(self, table: Table) -> str:
        """What the axis is called."""
        if not self.block:
            return f"{noun(table).capitalize()}s"
        return "Area walked" if table.name == "memory_latency" else "Block size"

    def scale(self, axis: Axes, rows: Sequence[Row], room: float = 0.0) -> None:
        """Equal steps for doublings, from the first to the last place of the rows and ``room``
        octaves to the right of it.
        """
        places = self.places(rows)
        margin = 2 ** max(0.35, octaves(places) / 10)
        axis.set_xscale("log", base=2)
        axis.set_xlim(places[0] / margin, places[-1] * margin * 2**room)
        names = {
            self.place(row): LabelFormatter.of(row).block(row) if self.block else "" for row in rows
        }
        axis.set_xticks(places, tick_labels(places, names))
        axis.xaxis.set_minor_locator(NullLocator())


def tick_labels(places: Sequence[int], names: Mapping[int, str]) -> list[str]:
    """Labels of the horizontal axis: blocks in two lines, or numbers; of two that would touch, the
    first alone.
    """
    least = octaves(places) / MAX_TICKS
    written: list[str] = []
    last = 0.0
    for place in places:
        if written and math.log2(place) - last < least:
            written.append("")
            continue
        last = math.log2(place)
        written.append(_SIZE.sub(r"\1\n\2", names[place]) or str(place))
    return written


def octaves(places: Sequence[int]) -> float:
    """How many doublings lie between the first and the last place, 1 for a single one."""
    return math.log2(places[-1] / places[0]) if len(places) > 1 else 1.0


def heights(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """All values of rows that points stand for, and their limits, in the table's unit."""
    values = [
        value * row.table.factor
        for row in rows
        for series in row.series.values()
        for value in series.values
    ]
    values += [value * row.table.factor for row in rows for value in row.published.values()]
    return values, [
        row.limit.value * row.table.factor for row in rows if row.limit.value is not None
    ]


def scale_values(axis: Axes, logarithmic: bool, mark: str) -> None:
    """The vertical axis: few round numbers with this decimal mark."""
    if not logarithmic:
        axis.yaxis.set_major_formatter(style.Ticks(mark))
        return
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace(".", mark)))


def vertical_label(table: Table, value: str = "measured") -> str:
    """``Throughput (MB/s)``, a quantity that is its own unit alone; of other values than measured
    ones, see ``Drawing``, ``Standard deviation (MB/s)`` or ``% of the limit``.
    """
    if value == "efficiency":
        return "% of the limit"
    unit = UNITS.get((table.unit, table.factor), table.shown)
    if value == "deviation":
        return f"Standard deviation ({unit or table.quantity})"
    return unit if unit in ("GigaOPS", table.quantity) else f"{table.quantity} ({unit})"
