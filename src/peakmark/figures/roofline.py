"""The roofline: how fast a program can compute at most, by how often it uses each byte that it reads.

Every roof is a row that was measured. Source: Williams, Waterman and Patterson, CACM 52 (2009).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from peakmark.analysis import shapes
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.figures import elements, style

NAME = "roofline"
RATES, LADDER = "cpu", "memory_ladder_throughput"
WIDTH, HEIGHT = 6.85, 2.6  # inches
USES = np.geomspace(1 / 64, 64, 2000)
"""Operations on each byte."""
LIMIT: dict[str, Any] = {"color": style.LIMIT, "linewidth": 0.6, "dashes": (5, 2), "zorder": 1}


def roofs(rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The rows of one thread and of the most that are roofs; none of several nodes, or without rates
    of one thread and the ladder.
    """
    names = (RATES, LADDER, "memory_throughput")
    every = [row for name in names for row in rows[name] if row.own and _is_roof(row)]
    counts = {row.key.concurrency for row in every if row.table.name == RATES}
    ladder = [row for row in every if row.table.name == LADDER]
    if not ladder or 1 not in counts or len({row.key.node for row in every}) > 1:
        return []
    return [row for row in every if row.key.concurrency in (1, max(counts))]


def _is_roof(row: Row) -> bool:
    """Floating-point rates, levels of the ladder on huge pages; of more than one thread sweeps of a
    cache, and reads from DRAM.
    """
    kind = row.key.workload, row.key.variant
    if row.key.variant == "block" or kind == ("RS", "pool"):
        return row.key.concurrency > 1
    return row.key.workload in ("FP32", "DP") or row.key.variant.endswith("-huge")


def plot(rows: Sequence[Row]) -> Figure:
    """One thread, and the most; thin lines are the computed limits."""
    counts = sorted({row.key.concurrency for row in rows})
    names = list(dict.fromkeys(map(_name, rows)))
    figure = style.figure(WIDTH, HEIGHT)
    axes = style.panels(figure, len(counts), len(counts), sharey=True)
    for axis, count in zip(axes, counts, strict=True):
        _draw(axis, [row for row in rows if row.key.concurrency == count], names)
        axis.set_title(LabelFormatter.of(rows[0]).many(count))
    axes[0].set_ylabel(elements.vertical_label(rows[0].table))
    handles = [Line2D([], [], label=name, **_look(rank)) for rank, name in enumerate(names)]
    style.legend(figure, [*handles, Line2D([], [], label="limit", **LIMIT)], 5, 2.2)
    return figure


def _name(row: Row) -> str:
    """``DP avx512``, ``L1``, ``DRAM``, ``RWS of 1 KiB avx512``."""
    if row.table.name == LADDER:
        return shapes.level_of(row)
    isa = row.measured.points[0].details.get("isa", "")
    return (
        "DRAM" if row.key.variant == "pool" else f"{LabelFormatter.of(row).line(row, [row])} {isa}"
    )


def _look(rank: int) -> dict[str, Any]:
    return {"color": style.line(rank).colour, "dashes": style.DASHES[rank // 6] or (None, None)}


def _draw(axis: Axes, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Rates end at the steepest slope, and slopes at the highest rate."""
    rate = max(row.measured.centre for row in rows if row.table.name == RATES)
    slopes = [row.measured.centre for row in rows if row.table.name != RATES]
    slope = max(slopes, default=np.inf)
    for row in rows:
        measured = row.measured.centre, _look(names.index(_name(row)))
        for value, look in (measured, (row.limit.value or np.nan, LIMIT)):
            is_rate = row.table.name == RATES
            roof = value * USES ** (not is_rate)
            ceiling = slope * USES if is_rate else rate
            shown = np.where(roof <= ceiling, roof, np.nan)
            axis.plot(USES, shown * rows[0].table.factor, **look)
    axis.set_xscale("log", base=4, subs=[])
    axis.xaxis.set_major_formatter("{x:.2g}")
    elements.scale_values(axis, logarithmic=True)
    axis.set_xlabel("Operations on each byte")
    sns.despine(ax=axis)
