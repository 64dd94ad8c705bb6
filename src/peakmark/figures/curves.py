"""Curves: medians of the repetitions, unsmoothed, with their intervals, where one run measures many
points or one row is followed over campaigns; times of single operations on an axis of nines; and the
roofline.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from peakmark import histograms
from peakmark.analysis import shapes
from peakmark.analysis.history import Trend
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row, Rows
from peakmark.figures import style
from peakmark.formatting import size
from peakmark.statistics import Interval, median_interval
from peakmark.tools.tables import Table

PANEL = (0.46, 1.7)
"""Share of the page's width, and height in inches."""
TALL = 1.45  # of a row over time
DAY_S = 86400.0


Curve = Sequence[NDArray[np.float64]]
"""Of each point repetitions x (place, value), as drawn."""


@dataclass(frozen=True)
class Chart:
    """Curves by name, and places with a name that are marked by an upright."""

    title: str
    curves: dict[str, Curve]
    uprights: Collection[tuple[float, str]] = ()


def plot_ladder(table: Table, rows: Sequence[Row]) -> Figure | None:
    """The table of a ladder: a line for each kind of pages of each node."""
    lines: dict[str, list[Row]] = {}
    caches = {}
    for row in rows:
        level, _, pages = row.key.variant.partition("-")
        node = f", {row.key.node}" if row.key.node != "any" else ""
        lines.setdefault(f"{pages} pages{node}", []).append(row)
        caches[level.upper()] = row.measured.points[0].details["cache"]
    curves: dict[str, Curve] = {
        name: [point * (1, table.factor) for point in shapes.curve_of(levels)]
        for name, levels in lines.items()
    }
    uprights = [(held, f"{name}: {size(held)}") for name, held in caches.items() if held]
    labels = "Working set", style.vertical_label(table)
    return plot([Chart("", curves, uprights)], *labels, sizes=True) if curves else None


def plot_loaded(table: Table, rows: Sequence[Row]) -> Figure | None:
    """Latency over traffic: a panel for each node and number of threads, a line for each mix."""
    charts: dict[str, Chart] = {}
    for row in rows:
        title = LabelFormatter.of(row).threads(row)
        title += f", {row.key.node}" if row.key.node != "any" else ""
        most = row.limit.bandwidth
        uprights = [(most * 1e-9, "theoretical bandwidth")] if most else []
        name = f"{row.key.variant.removeprefix('r')} % reads"
        curves = charts.setdefault(title, Chart(title, {}, uprights)).curves
        units = (1e-9, table.factor)
        curves[name] = [point[:, :2] * units for point in shapes.curve_of([row])]
    labels = "Traffic (GB/s)", style.vertical_label(table)
    return plot(list(charts.values()), *labels, sizes=False) if charts else None


def plot_trends(trends: Sequence[Trend]) -> Figure:
    """Rows over campaigns: a panel for each, with uprights at its change points."""
    figure = style.figure(style.WIDTH, TALL * len(trends))
    axes = style.panels(figure, len(trends), 1, sharex=True)
    for axis, trend in zip(axes, trends, strict=True):
        days = np.array([campaign.began / DAY_S for campaign in trend.campaigns])
        ends = trend.values * trend.table.factor
        _draw(axis, [*np.stack([days[:, None].repeat(3, axis=1), ends], axis=2)], 0)
        for change in trend.changes:
            middle = days[change.place - 1 : change.place + 1].mean()
            _draw_upright(axis, middle, change.speed.text)
        axis.xaxis_date()
        axis.set_title(f"{trend.label}: {style.vertical_label(trend.table)}", pad=12)
        sns.despine(ax=axis)
    return figure


def plot(charts: Sequence[Chart], horizontal: str, vertical: str, *, sizes: bool) -> Figure:
    """The charts beside each other, with one legend.

    Args:
        charts: at least one.
        horizontal: label of the axis of the places.
        vertical: label of the axis of the values.
        sizes: the places are bytes, and both axes logarithmic.
    """
    titles, labels = [chart.title for chart in charts], (horizontal, vertical)
    figure, axes = style.small_multiples(titles, labels, PANEL, sharey=True)
    names = list(dict.fromkeys(name for chart in charts for name in chart.curves))
    for axis, chart in zip(axes, charts, strict=True):
        for name, points in chart.curves.items():
            _draw(axis, points, names.index(name))
        for place, name in chart.uprights:
            _draw_upright(axis, place, name)
        if sizes:
            _scale_sizes(axis)
        else:
            axis.set_xlim(0)
            axis.set_ylim(0)
        axis.set_title(chart.title, pad=12 if chart.uprights else None)
    style.legend(figure, [style.entry(style.line(rank), name) for rank, name in enumerate(names)])
    return figure


def _draw(axis: Axes, curve: Curve, rank: int) -> None:
    look = style.line(rank)
    places, values = shapes.medians(curve).T
    horizontal, vertical = (
        [median_interval(list(point[:, column])) for point in curve] for column in (0, 1)
    )
    beside = _reach(places, horizontal)
    axis.errorbar(
        places, values, xerr=beside if beside.any() else None, yerr=_reach(values, vertical),
        color=look.colour, linewidth=1.0, marker=look.marker, markersize=2.6, elinewidth=0.8, capsize=1.5,
        zorder=3 + 0.1 * rank,
    )  # fmt: skip


def _draw_upright(axis: Axes, place: float, name: str) -> None:
    axis.axvline(place, color=style.QUIET, linewidth=0.7, zorder=1)
    where = axis.get_xaxis_transform()
    axis.text(place, 1, name, transform=where, fontsize=style.SMALL, color=style.QUIET,
              ha="center", va="bottom")  # fmt: skip


def _reach(centres: NDArray[np.float64], intervals: Sequence[Interval]) -> NDArray[np.float64]:
    """How far intervals reach below and above their medians."""
    ends = np.array([[each.low for each in intervals], [each.high for each in intervals]])
    return abs(ends - centres)


def _scale_sizes(axis: Axes) -> None:
    axis.set_xscale("log", base=4, subs=[])
    axis.xaxis.set_major_formatter(lambda place, _: size(int(place)))
    style.scale_values(axis, logarithmic=True)


NINES = {name: -math.log10(1 - share) for name, share in histograms.SHARES.items()}
"""Detail of a latency -> its place on the axis: so many nines."""
TAILS = (0.175, 1.02)  # as PANEL: two panels stand beside the figure of the means
TAIL = np.linspace(NINES["p50"], 4, 112).tolist()
"""Places at which a histogram is drawn."""


def plot_percentiles(table: Table, rows: Sequence[Row]) -> Figure | None:
    """Times of single operations on an axis of nines, a panel for each workload, a line for each
    number of threads or streams; None without rows that have percentiles.
    """
    if not rows:
        return None
    grouped: dict[str, list[Row]] = {}
    several = len({row.key.node for row in rows}) > 1
    for row in rows:
        title = LabelFormatter.of(row).workload(row)
        grouped.setdefault(f"{title}, {row.key.node}" if several else title, []).append(row)
    ticks = [*NINES.values(), *([4] if any(row.measured.histogram for row in rows) else [])]
    names = [f"{100 - 100 * 10**-nines:g}" for nines in ticks]
    names[4:] = [f"\n{name}" for name in names[4:]]  # no room beside the one before
    counts = sorted({row.key.concurrency for row in rows})
    labels = "% of operations", style.vertical_label(table)
    figure, axes = style.small_multiples(list(grouped), labels, TAILS, sharex=True, sharey=True)
    for axis, members in zip(axes, grouped.values(), strict=True):
        for row in members:
            _draw_tail(axis, row, counts.index(row.key.concurrency))
        style.scale_values(axis, logarithmic=True)
        axis.set_xticks(ticks, names)
    many = LabelFormatter.of(rows[0]).many
    handles = [Line2D([], [], **_dashed(rank), label=many(n)) for rank, n in enumerate(counts)]
    style.legend(figure, handles)
    return figure


def _dashed(rank: int) -> dict[str, Any]:
    """Colour and dashes of the line of a number of threads or streams."""
    dashes = style.DASHES[rank % len(style.DASHES)] or (None, None)
    return {"color": style.line(rank).colour, "linewidth": 1.1, "dashes": dashes}


def _draw_tail(axis: Axes, row: Row, rank: int) -> None:
    """The operations of all repetitions as a curve, each repetition's percentiles as points; without
    histograms the medians of these as the line.
    """
    known = {name: row.measured.percentile(name) for name in NINES}
    shown = {NINES[name]: value.value for name, value in known.items() if value}
    for name in NINES:
        values = np.multiply(row.measured.percentiles(name), row.table.factor)
        places = np.full(len(values), NINES[name])
        axis.scatter(places, values, s=7, alpha=0.6, color=style.line(rank).colour, linewidth=0)
    if row.measured.histogram:
        shares = [1 - 10**-nines for nines in TAIL]
        times = histograms.percentiles(row.measured.histogram, shares)
        shown = dict(zip(TAIL, times, strict=False))
    axis.plot([*shown], np.multiply([*shown.values()], row.table.factor), **_dashed(rank))


ROOFLINE = "roofline"
RATES, LADDER = "cpu", "memory_ladder_throughput"
USES = np.geomspace(1 / 64, 64, 2000)
"""Operations on each byte."""
LIMIT: dict[str, Any] = {"color": style.LIMIT, "linewidth": 0.6, "dashes": (5, 2), "zorder": 1}


def roofs(rows: Rows) -> list[Row]:
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


def plot_roofline(rows: Sequence[Row]) -> Figure:
    """How fast a program can compute at most, by how often it uses each byte that it reads: of one
    thread, and of the most. Thick lines are measured rows, thin ones their limits.

    Source: Williams, Waterman and Patterson, CACM 52 (2009).
    """
    counts = sorted({row.key.concurrency for row in rows})
    names = list(dict.fromkeys(map(_name, rows)))
    labels = "Operations on each byte", style.vertical_label(rows[0].table)
    titles = [LabelFormatter.of(rows[0]).many(count) for count in counts]
    figure, axes = style.small_multiples(titles, labels, PANEL, sharey=True)
    for axis, count in zip(axes, counts, strict=True):
        _draw_roofs(axis, [row for row in rows if row.key.concurrency == count], names)
    handles = [Line2D([], [], label=name, **_look(rank)) for rank, name in enumerate(names)]
    style.legend(figure, [*handles, Line2D([], [], label="limit", **LIMIT)])
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


def _draw_roofs(axis: Axes, rows: Sequence[Row], names: Sequence[str]) -> None:
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
    style.scale_values(axis, logarithmic=True)
