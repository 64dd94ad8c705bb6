"""Figures of curves and matrices: ladders, latency under load, rooflines, and heat maps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from peakmark.formatting import capitalised, natural, size
from peakmark.messages import words
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import curve_of, matrix_of, medians, order_of
from peakmark.tools.tables import BY_NAME, Table
from peakmark.views import figure_style
from peakmark.views.panel_figures import draw
from peakmark.views.pictures import RATES, TRIAD, Picture
from peakmark.views.table import Line
from peakmark.views.usual_tables import three_digits

HEIGHT = 1.5
"""Height of a panel with a curve, in inches."""
TALL = 1.5
"""Height of a panel of a roofline, in inches: its names need room."""
TO_GIGABYTES = 1e-9  # factor from bytes
USES = {"cpu": (1 / 64, 64), "gpu": (1 / 4, 4096)}
"""Table of rates -> range of the roofline's horizontal axis, in operations per byte."""
TRIAD_USE = 2 / 24
"""Operations per byte of the triad: one multiplication and one addition for three doubles."""
MOST_IN_SMALL = 4
"""A heat map with at most this many CPUs or NUMA nodes on a side is drawn small."""
SMALL_SIDE = 2.1
"""Height of a heat map of few nodes, in inches."""
NEAR = -0.45
"""Change from a roof of a roofline to the next lower one, above which they are near: their names would overlap."""
MOST_NUMBERS = 10
"""A heat map with at most this many CPUs or nodes on a side has a number in each field."""
MOST_SHAPES = 128
"""A heat map with at most this many CPUs or nodes on a side is drawn as vector shapes in an SVG file; a
larger one is embedded as an image.
"""


# -- curves


def plot_ladder(figure: Picture) -> Figure:
    """Draw a ladder: a line for each kind of pages of each node, and vertical lines at the cache sizes."""
    members: dict[str, list[Line]] = defaultdict(list)
    caches: dict[str, float] = {}
    for row in schema.lines(figure.own):
        # The variant is a level and a kind of pages, such as l2-huge. On a GPU, pages are of one
        # kind: the variant is a level, and one thread of the GPU walks the ladder.
        level, _, pages = row.variant.partition("-")
        name = f"{pages} pages" if pages else "one thread"
        if row.node != "any":
            name += f", {row.node}"
        members[name].append(row)
        cache_bytes = figure.own_runs[row.point][0].cache_bytes
        if cache_bytes:
            caches[f"{level.upper()}: {size(int(cache_bytes))}"] = cache_bytes
    curves = []
    for name, rows in members.items():
        curves.append(curve(figure, rows, panel="", name=name, factors=(1.0, figure.table.factor)))
    labels = "Working set", figure_style.vertical_label(figure.table)
    drawn, axes = draw(pd.concat(curves, ignore_index=True), labels, max_columns=2, height=HEIGHT)
    # All curves are in one panel, whose title is empty.
    (axis,) = axes.values()
    axis.set_xscale("log", base=4, subs=[])
    name_places(axis, caches)
    axis.xaxis.set_major_formatter(lambda place, _: size(int(place)))
    return drawn


def plot_loaded(figure: Picture) -> Figure:
    """Draw latency over traffic, with a panel for each number of threads and node, and a line for each mix.

    A mix is a percentage of reads. The variant of its row is r and this percentage, such as ``r67``.
    """
    curves, bandwidths = [], {}  # title of a panel -> bandwidth in B/s, the limit of the traffic
    for row in schema.lines(figure.own):
        panel = capitalised(figure.labels(row).threads(row))
        if row.node != "any":
            panel += f", {row.node}"
        name = f"{row.variant.removeprefix('r')} % reads"
        curves.append(curve(figure, [row], panel, name, (TO_GIGABYTES, figure.table.factor)))
        bandwidths[panel] = row.limit_bandwidth
    labels = "Traffic (GB/s)", figure_style.vertical_label(figure.table)
    # Points are joined in the order of the loads, not of the traffic: at high load the traffic may fall, and the
    # curve turns back.
    shown = pd.concat(curves, ignore_index=True)
    drawn, axes = draw(shown, labels, max_columns=2, height=HEIGHT, sharey=True)
    for panel, axis in axes.items():
        bandwidth = bandwidths[panel]
        if bandwidth:
            name_places(axis, {"theoretical bandwidth": bandwidth * TO_GIGABYTES})
        axis.set_xlim(0)  # the traffic begins at zero
    return drawn


def curve(
    figure: Picture, rows: Sequence[Line], panel: str, name: str, factors: tuple[float, float]
) -> pd.DataFrame:
    """Return a curve as lines for ``draw``: a line through the medians, and a dot for every run.

    Args:
        figure: figure whose runs are drawn.
        rows: rows of the curve, in their order.
        panel: title of the curve's panel.
        name: name of the curve in the legend.
        factors: factors from SI units to the units of the horizontal and of the vertical axis.
    """
    # Each point of the curve is an array with a line for each run; its first two columns are x and y.
    points = curve_of([figure.own_runs[row.point] for row in rows])
    path = pd.DataFrame(medians(points)[:, :2], columns=["x", "y"]).assign(kind="median")
    runs = pd.DataFrame(np.concatenate(points)[:, :2], columns=["x", "y"]).assign(kind="run")
    marks = pd.concat([path, runs], ignore_index=True)
    across, up = factors
    return marks.assign(x=marks["x"] * across, y=marks["y"] * up, panel=panel, name=name, line="")


def name_places(axis: Axes, places: Mapping[str, float]) -> None:
    """Draw a vertical line for each entry (name -> position on the axis), with the name above the panel."""
    for place in places.values():
        axis.axvline(place, color=figure_style.QUIET, linewidth=0.7, zorder=1)
    above = axis.secondary_xaxis("top")
    above.set_xticks([*places.values()], [*places])
    above.xaxis.set_minor_locator(NullLocator())
    above.tick_params(length=0)


# -- roofline


def plot_roofline(figure: Picture) -> Figure:
    """Draw a roofline: the highest rate of a program over its operations on each byte of memory.

    There is a panel for each number of threads or GPUs. Solid lines are measured rows; dashed lines are
    their limits. Dots are the rows of the triad.

    Source: Williams, Waterman and Patterson, CACM 52 (2009).
    """
    rows = figure.rows.sort_values("concurrency", kind="stable")
    # The table whose rows are flat roofs: cpu or gpu.
    is_flat = rows["table"].isin(RATES)
    rates = BY_NAME[rows.loc[is_flat, "table"].iloc[0]]
    uses = USES[rates.name]  # ends of the horizontal axis, in operations per byte
    lines: list[dict[str, Any]] = []
    for threads, of_threads in rows.groupby("concurrency", sort=False):
        # The highest flat roof, in operations per second, and the highest bandwidth, in bytes per second. Roofs end
        # where these two cross the others.
        is_rate = of_threads["table"].eq(rates.name)
        rate = of_threads.loc[is_rate, "value"].max()
        steepest = of_threads.loc[~is_rate, "value"].max()
        # Without a bandwidth, the highest roof begins at the left end of the axis.
        if pd.isna(steepest):
            steepest = rate / uses[0]
        panel = Labels(rates).many(int(str(threads)))
        # The triad's dots, at ``TRIAD_USE`` operations per byte, are drawn as runs. Bandwidth times
        # operations per byte gives operations per second.
        is_triad = of_threads["workload"].eq(TRIAD)
        for row in schema.lines(of_threads[is_triad]):
            dot = {"panel": panel, "name": f"_{roof_name(row)}", "line": "", "kind": "run"}
            height = row.value * TRIAD_USE * rates.factor
            lines.append({**dot, "x": TRIAD_USE, "y": height})
        # Of a cache level, only the first row is a roof: ``pictures.roofs`` puts the fastest first.
        is_roof = is_rate | ~of_threads["cache_level"].mask(is_rate).duplicated()
        for row in schema.lines(of_threads[is_roof]):
            # A name behind "_" is in no legend: it stands at the roof.
            roof = {"panel": panel, "name": f"_{roof_name(row)}", "line": ""}
            for kind, value in (("median", row.value), ("limit", row.limit)):
                if value is None:
                    continue
                for across, height in corners_of_roof(row, value, rate, steepest, uses):
                    lines.append({**roof, "kind": kind, "x": across, "y": height * rates.factor})
    labels = "Operations on each byte", figure_style.vertical_label(rates)
    shown = pd.DataFrame(lines)
    drawn, axes = draw(shown, labels, has_own_limits=True, max_columns=2, height=TALL, sharey=True)
    for panel, axis in axes.items():
        axis.set_xscale("log", base=4, subs=[])
        axis.xaxis.set_major_formatter(FuncFormatter(text_of_uses))
        is_measured = shown["panel"].eq(panel) & shown["kind"].eq("median")
        name_roofs(axis, shown[is_measured], uses)
    return drawn


def name_roofs(axis: Axes, corners: pd.DataFrame, uses: tuple[float, float]) -> None:
    """Write the name of each flat roof at its right end, and of each slope before its lower end.

    Near roofs share a text, which names the highest first, because two texts would overlap. The text of the highest
    roof is above it. A white box over the limits and below the roofs keeps limits out of a text.

    Args:
        axis: the panel.
        corners: end points of the measured roofs in the panel, see ``corners_of_roof``.
        uses: ends of the horizontal axis, in operations per byte.
    """
    axis.set_xlim(left=uses[0] / 64)  # room for the names of the slopes
    ends = corners[corners["x"].isin(uses)].sort_values("y", ascending=False)
    for across, of_end in ends.groupby("x"):
        number = of_end["y"].pct_change().lt(NEAR).cumsum()
        for _, near in of_end.groupby(number):
            height = near["y"].max()
            # Which part of the text is at the height of the roof.
            anchor = "center" if across == uses[0] else "top"
            if height == corners["y"].max():
                anchor = "bottom"
            names = ", ".join(near["name"].str.removeprefix("_"))
            axis.text(
                near["x"].max(),
                height,
                names + " ",
                ha="right",
                va=anchor,
                bbox={"color": "white", "pad": 0.3},
                zorder=1.5,
            )


def text_of_uses(uses: float, _: int) -> str:
    """Return a number of the roofline's horizontal axis as text: ``1/64``, ``4096``."""
    return f"1/{1 / uses:.0f}" if uses < 1 else f"{uses:.0f}"


def corners_of_roof(
    row: Line, value: float, rate: float, steepest: float, uses: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return the two end points of a roof, each as (operations per byte, operations per second).

    A rate is a flat roof, which begins at the steepest slope. A bandwidth is a slope, which ends at the
    highest flat roof.

    Args:
        row: row of the roof.
        value: its rate or bandwidth, or the limit of it, in SI units.
        rate: the highest flat roof of the panel, in operations per second.
        steepest: the highest bandwidth of the panel, in bytes per second.
        uses: ends of the horizontal axis, in operations per byte.
    """
    least, most = uses
    if row.table in RATES:
        return [(value / steepest, value), (most, value)]
    return [(least, value * least), (rate / value, rate)]


def roof_name(row: Line) -> str:
    """Return the name of a roof: ``FP64``, ``DRAM``, ``FP16 matrix product`` or ``memory``."""
    if row.subsystem == "gpu" and row.workload == "RS":
        return "memory"
    if row.subsystem == "memory":
        return str(row.cache_level)
    return words(f"workload {row.workload}")


# -- matrices


def plot_matrices(figure: Picture) -> Figure:
    """Draw a heat map for each workload of each node.

    CPUs are in the order of the topology, so that CPUs that share a cache are neighbours.
    """
    is_symmetric = figure.table.metric == "core_to_core"
    has_nodes = figure.own["node"].nunique() > 1
    fields = {}
    for (node, _), rows in figure.own.groupby(["node", "workload"], sort=False):
        members = list(schema.lines(rows))
        values: dict[tuple[int, int], float] = {}
        # Each row has a part of the matrix.
        for row in members:
            values |= matrix_of(figure.own_runs[row.point])
        field = pd.Series(values).unstack() * figure.table.factor
        # The latency between two CPUs holds for both directions: fill the other half of the matrix.
        if is_symmetric:
            field = field.combine_first(field.T)
        # The runs of a matrix of CPUs hold the order of the CPUs. Without an order, NUMA nodes are sorted by number.
        first = figure.own_runs[members[0].point]
        places = order_of(first) if first[0].order else sorted({*field.index, *field.columns})
        title = figure.labels(members[0]).workload(members[0])
        if has_nodes:
            title += f", {node}"
        fields[title] = field.reindex(index=places, columns=places)
    names = ("CPU", "CPU") if is_symmetric else ("Memory of node", "Cores of node")
    return heat_maps(figure.table, fields, names)


def plot_links(figure: Picture) -> Figure:
    """Draw a heat map of the pairs of nodes for each ``place``, which is a point without its nodes.

    Nodes are in the order of the topology: first the nodes below the largest switch, then the nodes below the
    next smaller switch.
    """
    # Switch -> the nodes below it.
    behind = figure.frames.campaign["behind"]
    switches = sorted(behind, key=lambda name: (-len(behind[name]), natural(name)))
    fields = {}
    for _, rows in figure.own.groupby("place", sort=False):
        members = list(schema.lines(rows))
        values = {}
        for row in members:
            client, server = row.node.split("+")
            values[client, server] = row.value * figure.table.factor
        field = pd.Series(values).unstack()
        nodes = sorted({*field.index, *field.columns}, key=natural)
        # A key has an entry for each switch: False for the nodes below the switch, which therefore come first.
        nodes.sort(key=lambda node: [node not in behind[name] for name in switches])
        title = figure.labels(members[0]).point(members[0])
        fields[title] = field.reindex(index=nodes, columns=nodes)
    return heat_maps(figure.table, fields, ("Server", "Client"))


def heat_maps(table: Table, fields: Mapping[str, pd.DataFrame], names: tuple[str, str]) -> Figure:
    """Draw matrices side by side.

    Args:
        table: table of the values; it has their unit, and whether lower values are better.
        fields: title -> matrix; at least one.
        names: labels of the horizontal and the vertical axis.
    """
    largest = max(max(field.shape) for field in fields.values())
    has_numbers = largest <= MOST_NUMBERS
    columns = figure_style.columns_of(len(fields), most=2)
    titles = pd.DataFrame({"panel": list(fields)})
    grid = sns.FacetGrid(titles, col="panel", col_wrap=columns, sharex=False, sharey=False)
    grid.set_titles("{col_name}")
    side = SMALL_SIDE if largest <= MOST_IN_SMALL else figure_style.WIDTH / 2
    figure: Figure = grid.figure
    # A colour bar beside each matrix takes some 15 % of its width.
    width = min(figure_style.WIDTH, 1.15 * side * columns)
    figure_style.resize(figure, width, side * math.ceil(len(fields) / columns))
    for title, axis in grid.axes_dict.items():
        field = fields[title].rename(index=str, columns=str)
        sns.heatmap(
            field, ax=axis, square=True, cmap="viridis_r" if table.lower_is_better else "viridis",
            annot=field.map(three_digits) if has_numbers else None, fmt="",
            annot_kws={"fontsize": figure_style.SMALL}, rasterized=largest > MOST_SHAPES,
            cbar_kws={
                "label": figure_style.vertical_label(table), "shrink": 0.9,
                "format": figure_style.NUMBER,
            },
        )  # fmt: skip
        axis.set(xlabel=names[0], ylabel=names[1])
        axis.grid(False)
        axis.tick_params(axis="y", rotation=0)
        if names[0] == "Server":  # names are too long to be side by side
            axis.tick_params(axis="x", rotation=90)
    return figure
