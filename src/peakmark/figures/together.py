"""Workloads beside each other: a line for each in one panel, or in a panel for each block size; the own kernel alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from peakmark.catalogue.fitting import UNITS
from peakmark.catalogue.tables import Table
from peakmark.config.drawings import Drawing
from peakmark.figures import across, panels, style
from peakmark.judging.drawn import value_of
from peakmark.judging.row import Row
from peakmark.judging.words import Words

HEIGHT = 1.7  # inches of a panel
SPAN = 20  # highest by lowest value from which on the axis is logarithmic
APART = 0.06  # of an octave: between the lines' points


def plot(drawing: Drawing, rows: Sequence[Row], mark: str = ".") -> Figure | None:
    """The figure of ``drawing``, None without rows. Each repetition is a point where values are measured ones."""
    if not rows:
        return None
    horizontal = across.horizontal_of(rows)
    grouped = _panels(rows, horizontal)
    columns = min(len(grouped), panels.MAX_COLUMNS)
    lines = math.ceil(len(grouped) / columns)
    width = panels.WIDTH * min(1.0, 0.31 * columns + 0.18)
    figure = Figure(figsize=(width, HEIGHT * lines + 0.5))
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    axes = figure.subplots(lines, columns, squeeze=False, sharey=True)
    names = list(dict.fromkeys(workload(row) for row in rows))
    logarithmic = _is_wide(drawing, rows)
    for place, axis in enumerate(axes.flat):
        if place >= len(grouped):
            axis.set_visible(False)
            continue
        title, members = list(grouped.items())[place]
        _panel(axis, drawing, members, names, horizontal)
        axis.set_title(title)
        axis.set_xlabel(across.axis_label(rows[0].table, horizontal))
        if place % columns == 0:
            axis.set_ylabel(vertical_label(drawing, rows[0].table))
        _scaled(axis, logarithmic, mark)
    looks = [style.line(place) for place in range(len(names))]
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, markersize=4, linewidth=1.1, label=name)
        for name, look in zip(names, looks, strict=True)
    ]
    if len(names) > 1:
        figure.legend(handles=handles, loc="outside upper left", ncols=len(names), frameon=False, handlelength=2.2)
    return figure


def vertical_label(drawing: Drawing, table: Table) -> str:
    """``Throughput (MB/s)``, ``Standard deviation (MB/s)`` or ``% of the limit``."""
    if drawing.value == "efficiency":
        return "% of the limit"
    if drawing.value == "deviation":
        return f"Standard deviation ({UNITS.get((table.unit, table.factor)) or table.shown or table.quantity})"
    return across.vertical_label(table)


def workload(row: Row) -> str:
    """Its name, with the variant and the node where there are several of them."""
    variant = row.key.variant if row.table.subsystem == "memory" else ""
    node = row.key.node if row.key.node != "any" else ""
    return ", ".join(filter(None, (Words.of(row).workload(row), "" if variant == "pool" else variant, node)))


def _panels(rows: Sequence[Row], horizontal: across.Dimension) -> Mapping[str, list[Row]]:
    """Title -> the rows of a panel: one for each block size, or number of threads, that is not on the horizontal axis.

    A workload that has one block of its own, such as a latency under two names, needs no panel for it.
    """
    other = across.other_of(horizontal)
    distinct: dict[str, set[int]] = {}
    for row in rows:
        distinct.setdefault(workload(row), set()).add(across.place_of(row, other))
    if all(len(places) == 1 for places in distinct.values()):
        return {"": list(rows)}
    grouped: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: across.place_of(row, other)):
        grouped.setdefault(across.name_of(row, other), []).append(row)
    return grouped


def _is_wide(drawing: Drawing, rows: Sequence[Row]) -> bool:
    """Whether the axis is logarithmic; one of deviations never is, as some are none."""
    if drawing.value == "deviation":
        return False
    values = [value for row in rows if (value := value_of(drawing, row, row.measured))]
    if drawing.value == "measured":
        values += [row.limit.value * row.table.factor for row in rows if row.limit.value]
    return bool(values) and max(values) > SPAN * min(values)


def _panel(
    axis: Axes, drawing: Drawing, rows: Sequence[Row], names: Sequence[str], horizontal: across.Dimension
) -> None:
    for rank, name in enumerate(names):
        mine = sorted((row for row in rows if workload(row) == name), key=lambda row: across.place_of(row, horizontal))
        if mine:
            _line(axis, drawing, mine, rank, horizontal)
    if drawing.value == "measured":
        _limits(axis, rows, names, horizontal)
    places = sorted({across.place_of(row, horizontal) for row in rows})
    margin = 2 ** max(0.35, across.octaves(places) / 10)
    axis.set_xscale("log", base=2)
    axis.set_xlim(places[0] / margin, places[-1] * margin)
    texts = {
        across.place_of(row, horizontal): Words.of(row).block(row) if horizontal == "block" else "" for row in rows
    }
    axis.set_xticks(places, across.tick_labels(places, texts))
    axis.xaxis.set_minor_locator(NullLocator())
    sns.despine(ax=axis)


def _line(axis: Axes, drawing: Drawing, rows: Sequence[Row], rank: int, horizontal: across.Dimension) -> None:
    """One workload: its values joined, every repetition beside them."""
    look = style.line(rank)
    places = [across.place_of(row, horizontal) * 2 ** (APART * (rank - 1)) for row in rows]
    values = [value_of(drawing, row, row.measured) or 0.0 for row in rows]
    axis.plot(places, values, color=look.colour, linewidth=1.1, zorder=3, marker=look.marker, markersize=3.2)
    if drawing.value != "measured":
        return
    points = [
        (place, value * row.table.factor)
        for place, row in zip(places, rows, strict=True)
        for value in row.measured.values
    ]
    axis.scatter([x for x, _ in points], [y for _, y in points], s=7, zorder=4, alpha=0.7, linewidth=0.6,
                 marker=look.marker, facecolor="white", edgecolor=look.colour)  # fmt: skip


def _limits(axis: Axes, rows: Sequence[Row], names: Sequence[str], horizontal: across.Dimension) -> None:
    """The limits dashed: one line where all rows have the same, else each in the colour of its workload."""
    known = [(row, row.limit.value * row.table.factor) for row in rows if row.limit.value is not None]
    if len({round(value, 9) for _, value in known}) == 1:
        axis.axhline(known[0][1], color=style.LIMIT, linewidth=0.9, dashes=(5, 2), zorder=1)
        return
    for rank, name in enumerate(names):
        line = sorted((across.place_of(row, horizontal), value) for row, value in known if workload(row) == name)
        axis.plot([x for x, _ in line], [y for _, y in line], color=style.line(rank).colour, linewidth=0.8,
                  dashes=(5, 2), marker="_", markersize=6, zorder=1)  # fmt: skip


def _scaled(axis: Axes, logarithmic: bool, mark: str) -> None:
    if not logarithmic:
        axis.set_ylim(0, None)
        axis.yaxis.set_major_formatter(style.Ticks(mark))
        return
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace(".", mark)))
