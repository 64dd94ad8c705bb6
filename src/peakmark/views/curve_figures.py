"""Figures of curves and matrices: ladders, latency under load, rooflines, matrices of CPUs and of
links, and rows over campaigns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.formatting import natural, significant, size
from peakmark.rows import schema
from peakmark.rows.curves import curve_of, matrix_of, medians, order_of
from peakmark.rows.labels import Labels
from peakmark.tools.tables import BY_NAME, Table
from peakmark.views import figure_style
from peakmark.views.figure_data import FigureData
from peakmark.views.panel_figures import draw
from peakmark.views.points import Line
from peakmark.views.report.pictures import LADDER, RATES

PANEL = (0.46, 1.7)
"""Share of the page's width, and height in inches, of a panel with a curve."""
TREND = (0.91, 1.45)
"""Share of the page's width, and height in inches, of a panel with a row over campaigns."""
TO_GIGABYTES = 1e-9
DAY_S = 86400.0
"""Seconds of a day."""
LEAST_USES, MOST_USES = 1 / 64, 64
"""Range of the roofline's axis, in operations on each byte."""
FEW = 4
"""Largest number of places of a small heat map."""
MOST_NUMBERS = 10
"""Largest number of places of a heat map with a number in each field."""
MOST_SHAPES = 128
"""Largest number of places of a heat map of shapes; an SVG file holds a larger one as a picture."""


# -- curves


def plot_ladder(figure: FigureData) -> Figure:
    """Draw a ladder: a line for each kind of pages of each node, and uprights at the caches."""
    members: dict[str, list[Line]] = defaultdict(list)
    caches: dict[str, float] = {}
    for row in schema.lines(figure.own):
        level, _, pages = row.variant.partition("-")
        name = f"{pages} pages"
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
    drawn, axes = draw(pd.concat(corners), labels, panel=PANEL)
    (axis,) = axes.values()
    draw_uprights(axis, caches)
    axis.set_xscale("log", base=4, subs=[])
    axis.xaxis.set_major_formatter(lambda place, _: size(int(place)))
    return drawn


def plot_loaded(figure: FigureData) -> Figure:
    """Draw latency over traffic: a panel for each number of threads, a line for each mix."""
    corners, bandwidths = [], {}
    for row in schema.lines(figure.own):
        panel = figure.labels(row).threads(row)
        if row.node != "any":
            panel += f", {row.node}"
        name = f"{row.variant.removeprefix('r')} % reads"
        corners.append(curve(figure, [row], panel, name, (TO_GIGABYTES, figure.table.factor)))
        bandwidths[panel] = row.limit_bandwidth
    labels = "Traffic (GB/s)", figure_style.vertical_label(figure.table)
    # Where more load moves less, the curve turns back.
    drawn, axes = draw(pd.concat(corners), labels, left_to_right=False, panel=PANEL, sharey=True)
    for panel, axis in axes.items():
        bandwidth = bandwidths[panel]
        if bandwidth:
            draw_uprights(axis, {"theoretical bandwidth": bandwidth * TO_GIGABYTES})
        axis.set_xlim(0)
    return drawn


def curve(
    figure: FigureData, rows: Sequence[Line], panel: str, name: str, factors: tuple[float, float]
) -> pd.DataFrame:
    """Return the curve of rows as lines for ``draw``: through the medians, with every run.

    Args:
        figure: has the runs.
        rows: rows of the curve, in their order.
        panel: title of its panel.
        name: its name in the legend.
        factors: factors from SI units to the units of the axes.
    """
    points = curve_of([figure.own_runs[row.point] for row in rows])
    path = pd.DataFrame(medians(points)[:, :2], columns=["x", "y"]).assign(kind="path")
    runs = pd.DataFrame(np.concatenate(points)[:, :2], columns=["x", "y"]).assign(kind="run")
    corners = pd.concat([path, runs], ignore_index=True)
    across, up = factors
    return corners.assign(
        x=corners["x"] * across, y=corners["y"] * up, panel=panel, name=name, line=""
    )


def draw_uprights(axis: Axes, uprights: Mapping[str, float]) -> None:
    """Draw a vertical line at each place, with its name above the panel."""
    for name, place in uprights.items():
        axis.axvline(place, color=figure_style.QUIET, linewidth=0.7, zorder=1)
        axis.text(
            place, 1, name, transform=axis.get_xaxis_transform(), fontsize=figure_style.SMALL,
            color=figure_style.QUIET, ha="center", va="bottom",
        )  # fmt: skip
    axis.set_title(axis.get_title(loc="left"), pad=12)


# -- roofline


def plot_roofline(figure: FigureData) -> Figure:
    """Draw the largest rate of a program over the number of operations on each byte that it reads.

    There is a panel for one thread, and one for the most threads. Solid lines are measured rows,
    dashed ones their limits.

    Source: Williams, Waterman and Patterson, CACM 52 (2009).
    """
    rates = BY_NAME[RATES]
    rows = figure.rows.sort_values("concurrency", kind="stable")
    lines: list[dict[str, Any]] = []
    for threads, of_threads in rows.groupby("concurrency", sort=False):
        is_rate = of_threads["table"].eq(RATES)
        rate = of_threads.loc[is_rate, "value"].max()
        steepest = of_threads.loc[~is_rate, "value"].max()
        if pd.isna(steepest):
            steepest = rate / LEAST_USES
        panel = Labels(rates).many(int(str(threads)))
        for row in schema.lines(of_threads):
            roof = {"panel": panel, "name": roof_name(row), "line": ""}
            for kind, value in (("path", row.value), ("limit", row.limit)):
                if value is None:
                    continue
                for uses, height in corners_of_roof(row, value, rate, steepest):
                    lines.append({**roof, "kind": kind, "x": uses, "y": height * rates.factor})
    labels = "Operations on each byte", figure_style.vertical_label(rates)
    drawn, axes = draw(pd.DataFrame(lines), labels, panel=PANEL, sharey=True)
    for axis in axes.values():
        axis.set_xscale("log", base=4, subs=[])
        axis.xaxis.set_major_formatter("{x:.2g}")
    return drawn


def corners_of_roof(
    row: Line, value: float, rate: float, steepest: float
) -> list[tuple[float, float]]:
    """Return both ends of a roof: operations on each byte, and operations a second.

    A flat roof begins at the steepest slope. A slope ends at the highest flat roof.
    """
    if row.table == RATES:
        return [(value / steepest, value), (MOST_USES, value)]
    return [(LEAST_USES, value * LEAST_USES), (rate / value, rate)]


def roof_name(row: Line) -> str:
    """Return ``DP avx512``, ``L1``, ``DRAM``, ``RWS of 1 KiB avx512``."""
    if row.table == LADDER:
        level, _, _ = row.variant.partition("-")
        return str(level.upper())
    if row.variant == "pool":
        return "DRAM"
    return f"{Labels.of(row).line(row, [row])} {row.isa}"


# -- heat maps


def plot_matrices(figure: FigureData) -> Figure:
    """Draw a heat map for each workload of each node.

    CPUs are in the order of the topology, so that CPUs that share a cache are neighbours.
    """
    is_symmetric = figure.table.metric == "core_to_core"
    has_nodes = figure.own["node"].nunique() > 1
    fields = {}
    for (node, _), rows in figure.own.groupby(["node", "workload"], sort=False):
        members = list(schema.lines(rows))
        values: dict[tuple[int, int], float] = {}
        for row in members:
            values |= matrix_of(figure.own_runs[row.point])
        field = pd.Series(values).unstack() * figure.table.factor
        if is_symmetric:
            field = field.combine_first(field.T)
        first = figure.own_runs[members[0].point]
        places = order_of(first) if first[0].order else sorted({*field.index, *field.columns})
        title = figure.labels(members[0]).workload(members[0])
        if has_nodes:
            title += f", {node}"
        fields[title] = field.reindex(index=places, columns=places)
    names = ("CPU", "CPU") if is_symmetric else ("Memory of node", "Cores of node")
    return heat_maps(figure.table, fields, names)


def plot_links(figure: FigureData) -> Figure:
    """Draw a heat map for each point of pairs, from each client to each server.

    Nodes are in the order of the topology: those below the largest switch, then the next smaller one.
    """
    behind = figure.frames.campaign["behind"]
    switches = sorted(behind, key=lambda name: (-len(behind[name]), natural(name)))
    fields = {}
    for _, rows in figure.own.groupby("place", sort=False):
        members = list(schema.lines(rows))
        values = {}
        for row in members:
            for pair in permutations(row.node.split("+")):
                values[pair] = row.value * figure.table.factor
        field = pd.Series(values).unstack()
        nodes = sorted({*field.index, *field.columns}, key=natural)
        nodes.sort(key=lambda node: [node not in behind[name] for name in switches])
        title = figure.labels(members[0]).point(members[0], node=False)
        fields[title] = field.reindex(index=nodes, columns=nodes)
    return heat_maps(figure.table, fields, ("Node", "Node"))


def heat_maps(table: Table, fields: Mapping[str, pd.DataFrame], names: tuple[str, str]) -> Figure:
    """Draw matrices side by side.

    Args:
        table: gives the unit, and whether a low value is good.
        fields: title -> matrix; at least one.
        names: labels of the horizontal and the vertical axis.
    """
    largest = max(len(field) for field in fields.values())
    side = 2.1 if largest <= FEW else figure_style.WIDTH / 2
    colours = "viridis_r" if table.lower_is_better else "viridis"
    panel = (side * 1.15 / figure_style.WIDTH, side)
    titles = pd.DataFrame({"panel": list(fields)})
    grid = figure_style.facets(titles, names, panel, most=2)
    for title, axis in grid.axes_dict.items():
        field = fields[title].rename(index=str, columns=str)
        numbers = None
        if len(field) <= MOST_NUMBERS:
            numbers = field.map(three_digits)
        sns.heatmap(
            field, ax=axis, square=True, cmap=colours, annot=numbers, fmt="",
            annot_kws={"fontsize": figure_style.SMALL}, rasterized=len(field) > MOST_SHAPES,
            cbar_kws={
                "label": figure_style.vertical_label(table), "shrink": 0.9,
                "format": figure_style.NUMBER,
            },
        )  # fmt: skip
        axis.set(xlabel=names[0], ylabel=names[1])
        axis.tick_params(axis="y", rotation=0)
    figure: Figure = grid.figure
    return figure


def three_digits(value: float) -> str:
    """Return a number with three significant digits."""
    return significant(value, 3)


# -- time


def plot_trends(trends: pd.DataFrame) -> Figure:
    """Draw rows over campaigns: a panel for each, with uprights at its change points.

    Args:
        trends: see ``history.frame``.
    """
    labels = {name: figure_style.vertical_label(table) for name, table in BY_NAME.items()}
    shown = trends.assign(panel=trends["row"] + ": " + trends["table"].map(labels))
    grid = figure_style.facets(shown, ("", ""), TREND, most=1, sharex=True)
    for title, axis in grid.axes_dict.items():
        draw_trend(axis, shown[shown["panel"].eq(title)])
    figure: Figure = grid.figure
    return figure


def draw_trend(axis: Axes, lines: pd.DataFrame) -> None:
    """Draw one row over campaigns."""
    factor = BY_NAME[lines["table"].iloc[0]].factor
    # Days since 1970, as the axes of Matplotlib count them.
    days = [datetime.fromisoformat(began).timestamp() / DAY_S for began in lines["began"]]
    low, middle, high = (lines[name].to_numpy() * factor for name in ("low", "median", "high"))
    reach = middle - low, high - middle
    colour = figure_style.look(0).colour
    axis.errorbar(days, middle, yerr=reach, color=colour, marker="o", markersize=3, capsize=2)
    uprights = {}
    for place, change in enumerate(lines["change"]):
        if isinstance(change, str) and change:
            uprights[change] = float(np.mean(days[place - 1 : place + 1]))
    draw_uprights(axis, uprights)
    axis.xaxis_date()
