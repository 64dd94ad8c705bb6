"""Curves whose points one run measures: lines through the medians of the repetitions, unsmoothed, and
the interval of each point.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from peakmark.analysis import shapes
from peakmark.analysis.history import Trend
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.figures import elements, style
from peakmark.formatting import size
from peakmark.statistics import Interval, median_interval
from peakmark.tools.tables import Table

WIDTH, HEIGHT = 6.85, 2.2  # inches
TALL = 1.45  # of a row over time
DAY_S = 86400.0
ALONE = 0.6  # of the width, for one panel: notes stand beside it


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
    labels = "Working set", elements.vertical_label(table)
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
    labels = "Traffic (GB/s)", elements.vertical_label(table)
    return plot(list(charts.values()), *labels, sizes=False) if charts else None


def plot_trends(trends: Sequence[Trend]) -> Figure:
    """Rows over campaigns: a panel for each, with uprights at its change points."""
    figure = style.figure(WIDTH, TALL * len(trends))
    axes = style.panels(figure, len(trends), 1, sharex=True)
    for axis, trend in zip(axes, trends, strict=True):
        days = np.array([campaign.began / DAY_S for campaign in trend.campaigns])
        ends = trend.values * trend.table.factor
        _draw(axis, [*np.stack([days[:, None].repeat(3, axis=1), ends], axis=2)], 0)
        for change in trend.changes:
            middle = days[change.place - 1 : change.place + 1].mean()
            _draw_upright(axis, middle, change.speed.text)
        axis.xaxis_date()
        axis.set_title(f"{trend.label}: {elements.vertical_label(trend.table)}", pad=12)
        sns.despine(ax=axis)
    return figure


def plot(panels: Sequence[Chart], horizontal: str, vertical: str, *, sizes: bool) -> Figure:
    """The panels beside each other, with one legend.

    Args:
        panels: at least one.
        horizontal: label of the axis of the places.
        vertical: label of the axis of the values.
        sizes: the places are bytes, and both axes logarithmic.
    """
    figure = style.figure(WIDTH * (ALONE if len(panels) == 1 else 1), HEIGHT)
    axes = style.panels(figure, len(panels), len(panels), sharey=True)
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    for axis, panel in zip(axes, panels, strict=True):
        for name, points in panel.curves.items():
            _draw(axis, points, names.index(name))
        if sizes:
            _scale_sizes(axis)
        for place, name in panel.uprights:
            _draw_upright(axis, place, name)
        if not sizes:
            axis.set_xlim(0)
            axis.set_ylim(0)
        axis.set_title(panel.title, pad=12 if panel.uprights else None)
        axis.set_xlabel(horizontal)
        sns.despine(ax=axis)
    axes[0].set_ylabel(vertical)
    handles = [style.entry(style.line(rank), name) for rank, name in enumerate(names)]
    style.legend(figure, handles, len(handles), 2.2)
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
    elements.scale_values(axis, logarithmic=True)
