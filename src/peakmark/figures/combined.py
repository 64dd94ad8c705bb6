"""Workloads beside each other: a line for each in one panel, or in a panel for each block size; the
own kernel alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.analysis.drawn import value_of
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.config.layouts import Drawing
from peakmark.figures import across, panels, style
from peakmark.figures.across import Across

HEIGHT = 1.7  # inches of a panel
APART = 0.06  # of an octave: between the lines' points


def plot(drawing: Drawing, rows: Sequence[Row], mark: str = ".") -> Figure | None:
    """The figure of ``drawing``, None without rows. Each repetition is a point where values are
    measured ones.
    """
    if not rows:
        return None
    horizontal = Across.of(rows)
    grouped = _panels(rows, horizontal)
    columns = min(len(grouped), panels.MAX_COLUMNS)
    width = panels.WIDTH * min(1.0, 0.31 * columns + 0.18)
    height = HEIGHT * math.ceil(len(grouped) / columns) + 0.5
    figure = style.figure(width, height, w_pad=0.06, h_pad=0.06)
    axes = style.panels(figure, len(grouped), columns, sharey=True)
    names = list(dict.fromkeys(workload(row) for row in rows))
    logarithmic = _is_wide(drawing, rows)
    for place, (axis, (title, members)) in enumerate(zip(axes, grouped.items(), strict=True)):
        _panel(axis, drawing, members, names, horizontal)
        axis.set_title(title)
        axis.set_xlabel(horizontal.label(rows[0].table))
        if place % columns == 0:
            axis.set_ylabel(across.vertical_label(rows[0].table, drawing.value))
        if not logarithmic:
            axis.set_ylim(0, None)
        across.scale_values(axis, logarithmic, mark)
    if len(names) > 1:
        handles = [style.entry(style.line(place), name) for place, name in enumerate(names)]
        style.legend(figure, handles, len(names), 2.2)
    return figure


def workload(row: Row) -> str:
    """Its name, with the variant and the node where there are several of them."""
    variant = row.key.variant if row.table.subsystem == "memory" else ""
    node = row.key.node if row.key.node != "any" else ""
    return ", ".join(
        filter(
            None, (LabelFormatter.of(row).workload(row), "" if variant == "pool" else variant, node)
        )
    )


def _panels(rows: Sequence[Row], horizontal: Across) -> Mapping[str, list[Row]]:
    """Title -> the rows of a panel: one for each block size, or number of threads, that is not on
    the horizontal axis.

    A workload that has one block of its own, such as a latency under two names, needs no panel for
    it.
    """
    distinct: dict[str, set[int]] = {}
    for row in rows:
        distinct.setdefault(workload(row), set()).add(horizontal.other.place(row))
    if all(len(places) == 1 for places in distinct.values()):
        return {"": list(rows)}
    grouped: dict[str, list[Row]] = {}
    for row in horizontal.other.ordered(rows):
        grouped.setdefault(horizontal.other.name(row), []).append(row)
    return grouped


def _is_wide(drawing: Drawing, rows: Sequence[Row]) -> bool:
    """Whether the axis is logarithmic; one of deviations never is, as some are none."""
    if drawing.value == "deviation":
        return False
    values = [value for row in rows if (value := value_of(drawing, row, row.measured))]
    if drawing.value == "measured":
        values += [row.limit.value * row.table.factor for row in rows if row.limit.value]
    return bool(values) and max(values) > across.SPAN * min(values)


def _panel(
    axis: Axes, drawing: Drawing, rows: Sequence[Row], names: Sequence[str], horizontal: Across
) -> None:
    for rank, name in enumerate(names):
        mine = horizontal.ordered(row for row in rows if workload(row) == name)
        if mine:
            _line(axis, drawing, mine, rank, horizontal)
    if drawing.value == "measured":
        _limits(axis, rows, names, horizontal)
    horizontal.scale(axis, rows)
    sns.despine(ax=axis)


def _line(axis: Axes, drawing: Drawing, rows: Sequence[Row], rank: int, horizontal: Across) -> None:
    """One workload: its values joined, every repetition beside them."""
    look = style.line(rank)
    places = [horizontal.place(row) * 2 ** (APART * (rank - 1)) for row in rows]
    values = [value_of(drawing, row, row.measured) or 0.0 for row in rows]
    axis.plot(
        places,
        values,
        color=look.colour,
        linewidth=1.1,
        zorder=3,
        marker=look.marker,
        markersize=3.2,
    )
    if drawing.value != "measured":
        return
    points = [
        (place, value * row.table.factor)
        for place, row in zip(places, rows, strict=True)
        for value in row.measured.values
    ]
    axis.scatter([x for x, _ in points], [y for _, y in points], s=7, zorder=4, alpha=0.7, linewidth=0.6,
                 marker=look.marker, facecolor="white", edgecolor=look.colour)  # fmt: skip


def _limits(axis: Axes, rows: Sequence[Row], names: Sequence[str], horizontal: Across) -> None:
    """The limits dashed: one line where all rows have the same, else each in the colour of its
    workload.
    """
    known = [
        (row, row.limit.value * row.table.factor) for row in rows if row.limit.value is not None
    ]
    if len({round(value, 9) for _, value in known}) == 1:
        style.limit_line(axis, known[0][1])
        return
    for rank, name in enumerate(names):
        line = sorted(
            (horizontal.place(row), value) for row, value in known if workload(row) == name
        )
        axis.plot([x for x, _ in line], [y for _, y in line], color=style.line(rank).colour, linewidth=0.8,
                  dashes=(5, 2), marker="_", markersize=6, zorder=1)  # fmt: skip
