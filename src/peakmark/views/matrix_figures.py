"""Heat maps: matrices of CPUs and of links, and values over blocks and threads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import permutations

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from peakmark.formatting import natural, significant
from peakmark.rows import schema
from peakmark.rows.curves import matrix_of, order_of
from peakmark.tools.tables import Table
from peakmark.views import figure_style
from peakmark.views.report.pictures import FigureData

FEW = 4
"""A heat map with at most this many CPUs or NUMA nodes on a side is drawn small."""
SMALL_SIDE = 2.1
"""Height of a heat map of few nodes, in inches."""
MOST_NUMBERS = 10
"""A heat map with at most this many CPUs or nodes on a side has a number in each field."""
MOST_SHAPES = 128
"""A heat map with at most this many CPUs or nodes on a side is drawn as vector shapes in an SVG file; a
larger one is embedded as an image.
"""


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

    Nodes are in the order of the topology: first those below the largest switch, then those below the
    next smaller switch.
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
    side = SMALL_SIDE if largest <= FEW else figure_style.WIDTH / 2
    figure: Figure = grid.figure
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
    return figure


def three_digits(value: float) -> str:
    """Return a number with three significant digits."""
    return significant(value, 3)
