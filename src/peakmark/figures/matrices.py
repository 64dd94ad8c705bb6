"""Matrices of a table as heat maps: core to core, NUMA node to NUMA node, and node to node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.analysis import fleet, links, shapes
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.figures import style
from peakmark.formatting import natural, significant
from peakmark.plan.pairs import Behind
from peakmark.tools.tables import Table

WIDTH = 6.85  # inches
FEW, MOST_NUMBERS = 4, 10
"""Up to so many places the figure is small, or each field holds its number."""
MOST_TICKS = 16
MOST_PLACES = 128
"""Of more nodes, neighbours share a place."""
LONGEST_LABEL = 3
CORES_AND_MEMORY = ("Cores of node", "Memory of node")


def plot(table: Table, rows: Sequence[Row]) -> Figure | None:
    """The figure of one table: a heat map for each workload of each node; None without rows, or
    with one number.

    CPUs stand in the order of the topology, so that those that lie near each other are neighbours.
    """
    grouped = shapes.matrices(rows)
    if not grouped:
        return None
    columns = min(2, len(grouped))
    lines = math.ceil(len(grouped) / columns)
    side = 2.1 if len(shapes.places_of(rows)) <= FEW else WIDTH / 2
    figure = style.figure(side * 1.15 * columns, side * lines)
    axes = style.panels(figure, len(grouped), columns)
    several = len({node for node, _ in grouped}) > 1
    for axis, ((node, _), members) in zip(axes, grouped.items(), strict=True):
        _heat_map(axis, table, members)
        title = LabelFormatter.of(members[0]).workload(members[0])
        axis.set_title(f"{title}, {node}" if several else title)
    return figure


def plot_links(table: Table, rows: Sequence[Row], behind: Behind) -> Figure:
    """A heat map for each point: from each client to each server, or the worst of neighbours where
    there are many nodes.

    Nodes stand in the order of the topology: below the largest switch, then the next smaller one.
    """
    switches = sorted(behind, key=lambda name: (-len(behind[name]), natural(name)))
    points = links.points(rows)
    columns = min(2, len(points))
    lines = math.ceil(len(points) / columns)
    side = WIDTH / 2
    figure = style.figure(side * columns, side * 0.9 * lines)
    for axis, point in zip(style.panels(figure, len(points), columns), points, strict=True):
        nodes = fleet.node_names({"": point})
        nodes.sort(key=lambda node: [node not in behind[name] for name in switches])
        group = math.ceil(len(nodes) / MOST_PLACES)
        index = {node: number // group for number, node in enumerate(nodes)}
        field = np.full((index[nodes[-1]] + 1,) * 2, np.nan)
        worst = np.fmax if table.lower_is_better else np.fmin
        for row in point:
            for place in permutations(index[node] for node in row.key.node.split("+")):
                field[place] = worst(field[place], row.measured.centre * table.factor)
        _show(axis, table, field, nodes[::group], ("Node", "Node"))
        axis.set_title(LabelFormatter.of(point[0]).point(point[0], node=False))
    return figure


def _heat_map(axis: Axes, table: Table, rows: Sequence[Row]) -> None:
    symmetric = table.metric == "core_to_core"
    places = shapes.places_of(rows)
    index = {place: number for number, place in enumerate(places)}
    field = np.full((len(places), len(places)), np.nan)
    for row in rows:
        for (first, second), value in shapes.matrix_of(row).items():
            field[index[first], index[second]] = value * table.factor
            if symmetric:
                field[index[second], index[first]] = value * table.factor
    _show(axis, table, field, places, ("CPU", "CPU") if symmetric else CORES_AND_MEMORY)


def _show(
    axis: Axes, table: Table, field: Any, places: Sequence[object], names: tuple[str, str]
) -> None:
    """``names``: of the lines and of the columns."""
    axis.grid(False)
    image = axis.imshow(field, cmap="viridis_r" if table.lower_is_better else "viridis")
    if len(places) <= MOST_NUMBERS:
        _write_numbers(axis, field)
    step = math.ceil(len(places) / MOST_TICKS)
    ticks = range(0, len(places), step)
    labels = [str(places[tick]) for tick in ticks]
    upright = max(map(len, labels)) > LONGEST_LABEL
    axis.set_xticks(ticks, labels, rotation=90 if upright else 0)
    axis.set_yticks(ticks, labels)
    axis.set_ylabel(names[0])
    axis.set_xlabel(names[1])
    axis.figure.colorbar(image, ax=axis, label=style.vertical_label(table), shrink=0.9)


def _write_numbers(axis: Axes, field: Any) -> None:
    """Each number in its field, in a colour that can be read on it."""
    middle = (np.nanmin(field) + np.nanmax(field)) / 2
    for (line, column), value in np.ndenumerate(field):
        if not math.isnan(value):
            dark = (value > middle) == axis.images[0].cmap.name.endswith("_r")
            axis.text(
                column,
                line,
                significant(value, 3),
                ha="center",
                va="center",
                fontsize=style.SMALL,
                color="white" if dark else style.INK,
            )
