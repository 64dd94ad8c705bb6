"""The roofline: how fast a program can compute at most, by how often it uses each byte that it reads.

Every roof is a row that was measured. Source: Williams, Waterman and Patterson, CACM 52 (2009).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.figures import elements, style

NAME = "roofline"
WIDTH, HEIGHT = 6.85, 2.6  # inches
FLOATING = ("FP32", "DP")
ROOM = 4.0  # factor between the outermost bend of a roof and the end of the axis
LADDER = "memory_ladder_throughput"


def roofs(rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The rows that are roofs: floating-point rates, the ladder's levels on huge pages, reads from
    DRAM, and sweeps of caches by more than one thread; none without rates and levels, or of several
    nodes.
    """
    rates = [row for row in rows["cpu"] if row.own and row.key.workload in FLOATING]
    levels = [row for row in rows[LADDER] if row.own and row.key.variant.endswith("-huge")]
    others = [
        row
        for row in rows["memory_throughput"]
        if row.own
        and row.key.concurrency > 1
        and (row.key.variant == "block" or (row.key.workload, row.key.variant) == ("RS", "pool"))
    ]
    chosen = [*rates, *levels, *others]
    one_node = len({row.key.node for row in chosen}) == 1
    return chosen if rates and levels and one_node else []


def plot(rows: Sequence[Row]) -> Figure:
    """One thread, and the most threads that both sides have; thin lines are the computed limits."""
    counts = [{row.key.concurrency for row in side} for side in _sides(rows)]
    shown = sorted(counts[0] & counts[1])
    shown = shown[:1] + shown[1:][-1:]
    figure = style.figure(WIDTH, HEIGHT)
    axes = style.panels(figure, len(shown), len(shown), sharey=True)
    names = list(dict.fromkeys(map(_slope_name, _sides(rows)[1])))
    for axis, count in zip(axes, shown, strict=True):
        members = [row for row in rows if row.key.concurrency == count]
        _draw(axis, *_sides(members), names)
        axis.set_title(LabelFormatter.of(members[0]).many(count))
        axis.set_xlabel("Operations per byte read")
        sns.despine(ax=axis)
    every = [value for row in rows if row.table.name == "cpu" for value, _ in _heights(row, "")]
    axes[0].set_ylim(top=1.5 * max(every) * rows[0].table.factor)
    axes[0].set_ylabel(elements.vertical_label(_sides(rows)[0][0].table))
    handles = [
        Line2D([], [], color=style.line(rank).colour, label=name) for rank, name in enumerate(names)
    ]
    limit = Line2D([], [], color=style.LIMIT, linewidth=0.7, dashes=(5, 2), label="limit")
    style.legend(figure, [*handles, limit], 4, 2.2)
    return figure


def _sides(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rates and throughputs."""
    rates = [row for row in rows if row.table.name == "cpu"]
    return rates, [row for row in rows if row.table.name != "cpu"]


def _slope_name(row: Row) -> str:
    """``L1``, ``DRAM``; of a sweep of a cache its block."""
    if row.key.variant == "block":
        return LabelFormatter.of(row).row(row).partition(",")[0]
    return "DRAM" if row.key.variant == "pool" else row.key.variant.partition("-")[0].upper()


def _draw(axis: Axes, rates: Sequence[Row], throughputs: Sequence[Row], names: list[str]) -> None:
    """Slopes up to the highest rate, and rates from the steepest slope on."""
    tops = [row.measured.centre for row in rates]
    slopes = [row.measured.centre for row in throughputs]
    factor = rates[0].table.factor
    left, right = min(tops) / max(slopes) / ROOM, max(tops) / min(slopes) * ROOM
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(left, right)
    axis.set_ylim(min(slopes) * left * factor, max(tops) * factor * 2)
    elements.scale_values(axis, logarithmic=True)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for row in throughputs:
        colour = style.line(names.index(_slope_name(row))).colour
        for value, look in _heights(row, colour):
            end = max(tops) / value
            axis.plot([left, end], [value * left * factor, max(tops) * factor], **look)
    for row in rates:
        for value, look in _heights(row, style.INK):
            axis.plot([value / max(slopes), right], [value * factor] * 2, **look)
        isa = row.measured.points[0].details.get("isa")
        name = " ".join(filter(None, (LabelFormatter.of(row).workload(row), isa)))
        axis.annotate(
            name, (right, row.measured.centre * factor), xytext=(-2, 1.5), textcoords="offset points",
            fontsize=style.SMALL, ha="right", va="bottom",
        )  # fmt: skip


def _heights(row: Row, colour: str) -> list[tuple[float, dict[str, Any]]]:
    """What was measured and, where it is known, the limit; each with its line."""
    lines: list[tuple[float, dict[str, Any]]] = [
        (row.measured.centre, {"color": colour, "linewidth": 1.4})
    ]
    if row.limit.value is not None:
        lines.append(
            (
                row.limit.value,
                {"color": style.LIMIT, "linewidth": 0.7, "dashes": (5, 2), "zorder": 1},
            )
        )
    return lines
