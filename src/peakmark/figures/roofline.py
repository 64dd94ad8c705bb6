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
FLOATING = ("FP32", "DP")
WIDTH, HEIGHT = 6.85, 2.6  # inches
USES = np.geomspace(1 / 64, 64, 2000)
"""Operations on each byte."""
LIMIT: dict[str, Any] = {"color": style.LIMIT, "linewidth": 0.6, "dashes": (5, 2), "zorder": 1}


def roofs(rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The rows that are roofs: floating-point rates, the levels of the ladder on huge pages, reads
    from DRAM and sweeps of caches by more threads; none of several nodes or without ladder.
    """
    chosen = [row for row in rows[RATES] if row.own and row.key.workload in FLOATING]
    counts = {row.key.concurrency for row in chosen}
    levels = [row for row in rows[LADDER] if row.own and row.key.variant.endswith("-huge")]
    chosen += levels
    for row in rows["memory_throughput"]:
        is_memory = row.key.workload == "RS" and row.key.variant == "pool"
        if row.own and row.key.concurrency > 1 and (is_memory or row.key.variant == "block"):
            chosen.append(row)
    shown = {1, max(counts, default=1)}
    nodes = {row.key.node for row in chosen}
    if not levels or not shown <= counts or len(nodes) > 1:
        return []
    return [row for row in chosen if row.key.concurrency in shown]


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
    """``DP avx512``, ``L1``, ``DRAM``, ``RWS of 1 KiB``."""
    if row.table.name == LADDER:
        return shapes.level_of(row)
    if row.table.name == RATES:
        return f"{row.key.workload} {row.measured.points[0].details.get('isa', '')}"
    return "DRAM" if row.key.variant == "pool" else LabelFormatter.of(row).line(row, [row])


def _look(rank: int) -> dict[str, Any]:
    dashes = style.DASHES[rank // 6]
    return {"color": style.line(rank).colour, "linestyle": (0, dashes) if dashes else "-"}


def _draw(axis: Axes, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Rates end at the steepest slope, and slopes at the highest rate."""
    rate = max(row.measured.centre for row in rows if row.table.name == RATES)
    slopes = [row.measured.centre for row in rows if row.table.name != RATES]
    slope = max(slopes, default=np.inf)
    for row in rows:
        for value, look in (
            (row.measured.centre, _look(names.index(_name(row)))),
            (row.limit.value, LIMIT),
        ):
            if value is None:
                continue
            is_rate = row.table.name == RATES
            uses = USES[slope * USES >= value] if is_rate else USES[value * USES <= rate]
            roof = np.full_like(uses, value) if is_rate else value * uses
            axis.plot(uses, roof * rows[0].table.factor, **look)
    axis.set_xscale("log", base=2)
    axis.set_xticks([1 / 64, 1 / 8, 1, 8, 64], ["1/64", "1/8", "1", "8", "64"])
    elements.scale_values(axis, logarithmic=True)
    axis.set_xlabel("Operations on each byte")
    sns.despine(ax=axis)
