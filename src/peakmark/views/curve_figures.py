"""Figures of curves: ladders, latency under load, and rooflines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from peakmark.formatting import capitalised, size
from peakmark.rows import schema
from peakmark.rows.curves import curve_of, medians
from peakmark.rows.labels import Labels
from peakmark.tools.tables import BY_NAME
from peakmark.views import figure_style
from peakmark.views.panel_figures import draw
from peakmark.views.points import Line
from peakmark.views.report.pictures import LADDER, RATES, FigureData

HEIGHT = 1.5
"""Height of a panel with a curve, in inches."""
TO_GIGABYTES = 1e-9
USES = {"cpu": (1 / 64, 64), "gpu": (1 / 4, 4096)}
"""Table of rates -> range of the roofline's horizontal axis, in operations per byte."""


# -- curves


def plot_ladder(figure: FigureData) -> Figure:
    """Draw a ladder: a line for each kind of pages of each node, and vertical lines at the cache sizes.

    A ladder of latencies has a second axis in cycles, which shows the limits of the cache levels.
    """
    members: dict[str, list[Line]] = defaultdict(list)
    caches: dict[str, float] = {}
    for row in schema.lines(figure.own):
        level, _, pages = row.variant.partition("-")
        name = f"{pages} pages" if pages else "one thread"
        if row.node != "any":
            name += f", {row.node}"
        members[name].append(row)
        held = figure.own_runs[row.point][0].cache_bytes
        if held:
            caches[f"{level.upper()}: {size(int(held))}"] = held
    corners = []
    for name, rows in members.items():
        corners.append(curve(figure, rows, "", name, (1.0, figure.table.factor)))
    labels = "Working set", figure_style.vertical_label(figure.table)
    drawn, axes = draw(pd.concat(corners, ignore_index=True), labels, most=2, height=HEIGHT)
    (axis,) = axes.values()
    axis.set_xscale("log", base=4, subs=[])
    name_places(axis, caches)
    axis.xaxis.set_major_formatter(lambda place, _: size(int(place)))
    return drawn


def plot_loaded(figure: FigureData) -> Figure:
    """Draw latency over traffic, with a panel for each number of threads and a line for each mix."""
    corners, bandwidths = [], {}
    for row in schema.lines(figure.own):
        panel = capitalised(figure.labels(row).threads(row))
        if row.node != "any":
            panel += f", {row.node}"
        name = f"{row.variant.removeprefix('r')} % reads"
        corners.append(curve(figure, [row], panel, name, (TO_GIGABYTES, figure.table.factor)))
        bandwidths[panel] = row.limit_bandwidth
    labels = "Traffic (GB/s)", figure_style.vertical_label(figure.table)
    # The order is that of the loads: at high load the traffic may fall, and the curve turns back.
    shown = pd.concat(corners, ignore_index=True)
    drawn, axes = draw(shown, labels, most=2, height=HEIGHT, sharey=True)
    for panel, axis in axes.items():
        bandwidth = bandwidths[panel]
        if bandwidth:
            name_places(axis, {"theoretical bandwidth": bandwidth * TO_GIGABYTES})
        axis.set_xlim(0)
    return drawn


def curve(
    figure: FigureData, rows: Sequence[Line], panel: str, name: str, factors: tuple[float, float]
) -> pd.DataFrame:
    """Return a curve as lines for ``draw``: a line through the medians, and a dot for every run.

    Args:
        figure: figure whose runs are drawn.
        rows: rows of the curve, in their order.
        panel: title of the curve's panel.
        name: name of the curve in the legend.
        factors: factors from SI units to the units of the axes.
    """
    points = curve_of([figure.own_runs[row.point] for row in rows])
    path = pd.DataFrame(medians(points)[:, :2], columns=["x", "y"]).assign(kind="median")
    runs = pd.DataFrame(np.concatenate(points)[:, :2], columns=["x", "y"]).assign(kind="run")
    corners = pd.concat([path, runs], ignore_index=True)
    across, up = factors
    return corners.assign(
        x=corners["x"] * across, y=corners["y"] * up, panel=panel, name=name, line=""
    )


def name_places(axis: Axes, places: Mapping[str, float]) -> None:
    """Draw a vertical line for each entry (name -> place), with the name above the panel."""
    for place in places.values():
        axis.axvline(place, color=figure_style.QUIET, linewidth=0.7, zorder=1)
    above = axis.secondary_xaxis("top")
    above.set_xticks([*places.values()], [*places])
    above.xaxis.set_minor_locator(NullLocator())
    above.tick_params(length=0)


# -- roofline


def plot_roofline(figure: FigureData) -> Figure:
    """Draw a roofline: the highest rate of a program over its operations per byte read.

    There is a panel for each number of threads or GPUs. Solid lines are measured rows; dashed lines are
    their limits.

    Source: Williams, Waterman and Patterson, CACM 52 (2009).
    """
    rows = figure.rows.sort_values("concurrency", kind="stable")
    rates = BY_NAME[rows.loc[rows["table"].isin(RATES), "table"].iloc[0]]
    uses = USES[rates.name]
    lines: list[dict[str, Any]] = []
    for threads, of_threads in rows.groupby("concurrency", sort=False):
        is_rate = of_threads["table"].eq(rates.name)
        rate = of_threads.loc[is_rate, "value"].max()
        steepest = of_threads.loc[~is_rate, "value"].max()
        if pd.isna(steepest):
            steepest = rate / uses[0]
        panel = Labels(rates).many(int(str(threads)))
        for row in schema.lines(of_threads):
            roof = {"panel": panel, "name": roof_name(row), "line": ""}
            for kind, value in (("median", row.value), ("limit", row.limit)):
                if value is None:
                    continue
                for across, height in corners_of_roof(row, value, rate, steepest, uses):
                    lines.append({**roof, "kind": kind, "x": across, "y": height * rates.factor})
    labels = "Operations on each byte", figure_style.vertical_label(rates)
    drawn, axes = draw(
        pd.DataFrame(lines), labels, has_own_limits=True, most=2, height=HEIGHT, sharey=True
    )
    for axis in axes.values():
        axis.set_xscale("log", base=4, subs=[])
        axis.xaxis.set_major_formatter(FuncFormatter(text_of_uses))
    return drawn


def text_of_uses(uses: float, _: int) -> str:
    """Return the text of a place on the roofline's axis: ``0.016``, ``4096``."""
    return f"{uses:.2g}" if uses < 1 else f"{uses:.0f}"


def corners_of_roof(
    row: Line, value: float, rate: float, steepest: float, uses: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return the two end points of a roof, each as (operations per byte, operations per second).

    A rate is a flat roof, which begins at the steepest slope. A bandwidth is a slope, which ends at the
    highest flat roof.
    """
    least, most = uses
    if row.table in RATES:
        return [(value / steepest, value), (most, value)]
    return [(least, value * least), (rate / value, rate)]


def roof_name(row: Line) -> str:
    """Return the name of a roof, such as ``DP avx512``, ``DRAM``, ``TC-FP16`` or ``GPU memory``."""
    if row.subsystem == "gpu":
        return "GPU memory" if row.workload == "RS" else str(row.workload)
    if row.table == LADDER:
        level, _, _ = row.variant.partition("-")
        return str(level.upper())
    if row.variant == "pool":
        return "DRAM"
    return f"{Labels.of(row).line(row, [row])} {row.isa}"
