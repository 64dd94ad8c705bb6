"""The horizontal axis of figures: what stands on it, what distinguishes lines or panels instead, and what it is called."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from peakmark.catalogue.fitting import UNITS
from peakmark.catalogue.tables import Table
from peakmark.judging.row import Row
from peakmark.judging.words import Words, noun

MAX_TICKS = 6  # labels beside each other below one panel

Dimension = Literal["block", "concurrency"]

_SIZE = re.compile(r"(\d) ?([A-Za-z]+)$")  # the end of a size, with or without a space before its unit


def horizontal_of(rows: Sequence[Row]) -> Dimension:
    """The block size or the concurrency, whichever has more values among the rows."""
    blocks = {row.key.block for row in rows}
    return "block" if len(blocks) > 1 and len(blocks) >= len({row.key.concurrency for row in rows}) else "concurrency"


def other_of(dimension: Dimension) -> Dimension:
    """The one that is not on the axis."""
    return "concurrency" if dimension == "block" else "block"


def place_of(row: Row, dimension: Dimension) -> int:
    """Where a row stands: its block in bytes, or its number of threads."""
    return (row.key.block or 0) if dimension == "block" else row.key.concurrency


def name_of(row: Row, dimension: Dimension) -> str:
    """``16 MiB`` or ``8 threads``, as the row's layout has it."""
    words = Words.of(row)
    return words.block(row) if dimension == "block" else words.many(row.key.concurrency)


def axis_label(table: Table, dimension: Dimension) -> str:
    """What the axis is called."""
    if dimension == "concurrency":
        return f"{noun(table).capitalize()}s"
    return "Area walked" if table.name == "memory_latency" else "Block size"


def tick_labels(places: Sequence[int], names: Mapping[int, str]) -> list[str]:
    """Labels of the horizontal axis: names of blocks in two lines, or the numbers; where two would run into each other only
    the first is written.
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


def vertical_label(table: Table) -> str:
    """``Throughput (MB/s)``; a quantity that is its own unit alone."""
    unit = UNITS.get((table.unit, table.factor), table.shown)
    return unit if unit in ("GigaOPS", table.quantity) else f"{table.quantity} ({unit})"


def octaves(places: Sequence[int]) -> float:
    """How many doublings lie between the first and the last place, 1 for a single one."""
    return math.log2(places[-1] / places[0]) if len(places) > 1 else 1.0
