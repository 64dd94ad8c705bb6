"""Curves whose points one run measures: lines through the medians of the repetitions, unsmoothed, and
the interval of each point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from peakmark.analysis import shapes
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.catalogue import PAGES
from peakmark.figures import elements, style
from peakmark.formatting import size
from peakmark.statistics import median, median_interval
from peakmark.tools.tables import Table

WIDTH, HEIGHT = 6.85, 2.6  # inches of a panel alone


Point = Sequence[tuple[float, float]]
"""Place and value of a point in every repetition, as drawn."""


@dataclass(frozen=True)
class Panel:
    """Curves by name, and places with a name that are marked by an upright."""

    title: str
    curves: dict[str, list[Point]]
    uprights: Sequence[tuple[float, str]] = ()


def plot_ladder(table: Table, rows: Sequence[Row]) -> Figure | None:
    """The table of a ladder: a panel for each node, a line for each kind of pages."""
    panels = []
    for node in dict.fromkeys(row.key.node for row in rows):
        members = [row for row in rows if row.key.node == node]
        curves: dict[str, list[Point]] = {}
        for pages in PAGES:
            levels = [row for row in members if row.key.variant.endswith(f"-{pages}")]
            points: list[Point] = [
                [(place, value * table.factor) for place, value in point]
                for point in shapes.curve_of(levels)
            ]
            curves |= {f"{pages} pages": points} if points else {}
        caches = {
            row.key.variant.partition("-")[0].upper(): row.measured.points[0].details["cache"]
            for row in members
        }
        uprights = [(held, f"{name}: {size(held)}") for name, held in caches.items() if held]
        panels.append(Panel(node if node != "any" else "", curves, uprights))
    labels = "Working set", elements.vertical_label(table)
    return plot(panels, *labels, sizes=True) if panels else None


def plot_loaded(table: Table, rows: Sequence[Row]) -> Figure | None:
    """Latency over traffic: a panel for each node and number of threads, a line for each mix."""
    panels: dict[str, Panel] = {}
    for row in rows:
        title = LabelFormatter.of(row).threads(row)
        title += f", {row.key.node}" if row.key.node != "any" else ""
        most = row.limit.bandwidth
        uprights = [(most * 1e-9, "theoretical bandwidth")] if most else []
        repetitions = [repetition.details["points"] for repetition in row.measured.points]
        points: list[Point] = [
            [(rate * 1e-9, latency * table.factor) for rate, latency, *_ in point]
            for point in zip(*repetitions, strict=True)
        ]
        name = f"{row.key.variant.removeprefix('r')} % reads"
        panels.setdefault(title, Panel(title, {}, uprights)).curves[name] = points
    labels = "Traffic (GB/s)", elements.vertical_label(table)
    return plot(list(panels.values()), *labels, sizes=False) if panels else None


def plot(panels: Sequence[Panel], horizontal: str, vertical: str, *, sizes: bool) -> Figure:
    """The panels beside each other, with one legend.

    Args:
        panels: at least one.
        horizontal: label of the axis of the places.
        vertical: label of the axis of the values.
        sizes: the places are bytes, and both axes logarithmic.
    """
    figure = style.figure(WIDTH, HEIGHT)
    axes = style.panels(figure, len(panels), len(panels), sharey=True)
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    for axis, panel in zip(axes, panels, strict=True):
        for name, points in panel.curves.items():
            _draw(axis, points, names.index(name))
        if sizes:
            _scale_sizes(axis)
        else:
            axis.set_xlim(0)
            axis.set_ylim(0)
        for place, name in panel.uprights:
            axis.axvline(place, color=style.QUIET, linewidth=0.7, zorder=1)
            axis.annotate(
                name, (place, 1), xycoords=("data", "axes fraction"), xytext=(0, 1), textcoords="offset points",
                fontsize=style.SMALL, color=style.QUIET, ha="center", va="bottom",
            )  # fmt: skip
        axis.set_title(panel.title, pad=12 if panel.uprights else None)
        axis.set_xlabel(horizontal)
        sns.despine(ax=axis)
    axes[0].set_ylabel(vertical)
    handles = [style.entry(style.line(rank), name) for rank, name in enumerate(names)]
    style.legend(figure, handles, max(2, len(handles)), 2.2)
    return figure


def _draw(axis: Axes, points: Sequence[Point], rank: int) -> None:
    look = style.line(rank)
    places, place_errors = _spread([[place for place, _ in point] for point in points])
    values, value_errors = _spread([[value for _, value in point] for point in points])
    axis.errorbar(
        places, values, xerr=place_errors if any(map(any, place_errors)) else None, yerr=value_errors,
        color=look.colour, linewidth=1.0, marker=look.marker, markersize=2.6, elinewidth=0.8, capsize=1.5,
        zorder=3 + 0.1 * rank,
    )  # fmt: skip


def _spread(points: Sequence[Sequence[float]]) -> tuple[list[float], list[list[float]]]:
    """Median of each point, and how far its interval reaches below and above it."""
    centres = [median(every) for every in points]
    intervals = [median_interval(every) for every in points]
    below = [centre - each.low for centre, each in zip(centres, intervals, strict=True)]
    above = [each.high - centre for centre, each in zip(centres, intervals, strict=True)]
    return centres, [below, above]


def _scale_sizes(axis: Axes) -> None:
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    elements.scale_values(axis, logarithmic=True)
    axis.xaxis.set_major_locator(LogLocator(base=4, numticks=20))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda place, _: size(int(place))))
