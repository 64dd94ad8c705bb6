"""Matrices of a table as heat maps: core to core, and NUMA node to NUMA node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.analysis import shapes
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.figures import elements, style
from peakmark.formatting import significant
from peakmark.tools.tables import Table

WIDTH = 6.85  # inches
MOST_NUMBERS = 16
"""Up to so many places, each field holds its number."""
MOST_TICKS = 16


def plot(table: Table, rows: Sequence[Row]) -> Figure | None:
    """The figure of one table: a heat map for each workload of each node; None without rows, or
    where two places make but one number.

    CPUs stand in the order of the topology, so that those that lie near each other are neighbours.
    """
    grouped = shapes.matrices(rows)
    if not grouped:
        return None
    columns = min(2, len(grouped))
    lines = math.ceil(len(grouped) / columns)
    side = 2.1 if len(shapes.places_of(rows)) <= MOST_NUMBERS // 2 else WIDTH / 2
    figure = style.figure(side * 1.15 * columns, side * lines, w_pad=0.06, h_pad=0.06)
    axes = style.panels(figure, len(grouped), columns)
    several = len({node for node, _ in grouped}) > 1
    for axis, ((node, _), members) in zip(axes, grouped.items(), strict=True):
        _heat_map(axis, table, members)
        title = LabelFormatter.of(members[0]).workload(members[0])
        axis.set_title(f"{title}, {node}" if several else title)
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
    axis.grid(False)
    image = axis.imshow(field, cmap="viridis_r" if table.lower_is_better else "viridis")
    if len(places) <= MOST_NUMBERS:
        _write_numbers(axis, field)
    step = math.ceil(len(places) / MOST_TICKS)
    ticks = range(0, len(places), step)
    names = [str(places[tick]) for tick in ticks]
    axis.set_xticks(ticks, names)
    axis.set_yticks(ticks, names)
    left, below = ("CPU", "CPU") if symmetric else ("Cores of node", "Memory of node")
    axis.set_ylabel(left)
    axis.set_xlabel(below)
    axis.figure.colorbar(image, ax=axis, label=elements.vertical_label(table), shrink=0.9)


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
