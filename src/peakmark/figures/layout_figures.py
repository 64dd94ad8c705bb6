"""Figures that a layout asks for: bars of single rows, and lines of several workloads in one panel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.config.layouts import Drawing
from peakmark.figures import elements, panels, style
from peakmark.figures.elements import Across
from peakmark.figures.selection import value_of
from peakmark.formatting import significant

HEIGHT = 1.45  # inches of a panel
HALF = 24  # bars that half the width holds
FARTHEST = 150.0  # percent of the limit: a reference beyond it is a mark at the upper edge
FEW = 12  # bars of a panel, up to which each has its value written above it
GAP = 0.8  # bars between two groups
THREADS = Across(block=False)


_Group = tuple[str, Sequence[Row]]
"""What is written below rows that stand side by side, and these rows."""


def plot_bars(drawing: Drawing, rows: Sequence[Row]) -> Figure | None:
    """The figure of ``drawing``, None without rows.

    Tables without block sizes have one panel with a group of bars for each workload; others a panel
    for each workload with a group for each size.
    """
    if not rows:
        return None
    table, grouped = rows[0].table, _panels(rows)
    widest = max(sum(len(members) for _, members in groups) for _, groups in grouped)
    columns = 1 if widest > HALF or (len(grouped) == 1 and widest > FEW) else min(2, len(grouped))
    share = 1.0 if columns == 2 or widest > FEW else 0.49
    height = HEIGHT * math.ceil(len(grouped) / columns) + 0.4
    figure = style.figure(panels.WIDTH * share, height, w_pad=0.06, h_pad=0.06)
    axes = style.panels(figure, len(grouped), columns, sharey=True)
    top = _top(drawing, rows)
    for place, (axis, (title, groups)) in enumerate(zip(axes, grouped, strict=True)):
        _panel(axis, drawing, groups, top)
        axis.set_title(title)
        if place % columns == 0:
            axis.set_ylabel(elements.vertical_label(table, drawing.value))
        if place + columns >= len(grouped):
            axis.set_xlabel(THREADS.label(table))
    handles: list[Patch | Line2D] = [Patch(facecolor=style.look(0).colour, label=table.own.heading)]
    for rank, series in enumerate(table.references, 1):
        if any(_reference(drawing, row, series.instrument) is not None for row in rows):
            handles.append(style.entry(style.look(rank), series.heading, linestyle="none"))
    style.legend(figure, handles, len(handles), 1.4)
    return figure


def _panels(rows: Sequence[Row]) -> list[tuple[str, list[_Group]]]:
    """Panels with their groups, rows in the order they came in."""
    sized = len({row.key.block for row in rows}) > 1
    grouped: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        block = LabelFormatter.of(row).block(row)
        name = workload(row)
        title, group = (name, block) if sized else ("", name)
        grouped.setdefault(title, {}).setdefault(group, []).append(row)
    return [
        (title, [(name, THREADS.ordered(members)) for name, members in groups.items()])
        for title, groups in grouped.items()
    ]


def _top(drawing: Drawing, rows: Sequence[Row]) -> float:
    """The upper end of the vertical axis, the same in all panels; what lies beyond is drawn at it."""
    own = [value_of(drawing, row, row.measured) or 0.0 for row in rows]
    every = [
        value_of(drawing, row, series) or 0.0 for row in rows for series in row.series.values()
    ]
    if drawing.value == "efficiency":
        return max(105.0, 1.08 * max(own), min(FARTHEST, 1.08 * max(every)))
    return 1.12 * (max(own) if drawing.value == "deviation" else max(every))


def goes_beyond(drawing: Drawing, rows: Sequence[Row]) -> bool:
    """Whether a reference lies beyond the upper edge, where a filled triangle stands for it."""
    if drawing.kind != "bars" or drawing.value == "deviation" or not rows:
        return False
    top = _top(drawing, rows)
    return any(
        (value_of(drawing, row, series) or 0.0) > top
        for row in rows
        for series in row.series.values()
    )


def _panel(axis: Axes, drawing: Drawing, groups: Sequence[_Group], top: float) -> None:
    colour = style.look(0).colour
    few = sum(len(members) for _, members in groups) <= FEW
    ticks: list[tuple[float, str]] = []
    at = 0.0
    for name, members in groups:
        first = at
        for row in members:
            value = value_of(drawing, row, row.measured) or 0.0
            axis.bar(at, value, width=0.74, facecolor=colour, linewidth=0, zorder=2)
            if few:
                axis.annotate(significant(value, 2), (at, value), xytext=(0, 2), textcoords="offset points",
                              ha="center", fontsize=style.SMALL, color=style.INK, zorder=6)  # fmt: skip
            _mark_references(axis, drawing, row, at, top)
            ticks.append((at, str(row.key.concurrency or row.key.word)))
            at += 1
        if name:
            axis.annotate(name, ((first + at - 1) / 2, 0), xycoords=("data", "axes fraction"), xytext=(0, -15),
                          textcoords="offset points", ha="center", va="top", fontsize=style.SMALL, fontweight="bold",
                          color=style.INK, annotation_clip=False)  # fmt: skip
        at += GAP
    axis.set_xticks(
        [place for place, _ in ticks], [text for _, text in ticks], fontsize=style.SMALL
    )
    axis.tick_params(axis="x", length=0, labelbottom=True)
    axis.set_xlim(-0.8, at - GAP - 0.2)
    axis.set_ylim(0, top)
    axis.yaxis.set_major_formatter(style.Ticks())
    # Below the names of the groups.
    axis.xaxis.labelpad = 17 if any(name for name, _ in groups) else 2
    if drawing.value == "efficiency":
        style.limit_line(axis, 100)
    sns.despine(ax=axis)


def _reference(drawing: Drawing, row: Row, instrument: str) -> float | None:
    """What stands beside the bar of a row; nothing beside deviations, which are the own kernel's."""
    series = row.series.get(instrument) if drawing.value != "deviation" else None
    return value_of(drawing, row, series) if series else None


def _mark_references(axis: Axes, drawing: Drawing, row: Row, at: float, top: float) -> None:
    """An open mark for each reference tool, at the upper edge where its value lies beyond."""
    for rank, series in enumerate(row.table.references, 1):
        value, look = _reference(drawing, row, series.instrument), style.look(rank)
        if value is not None:
            beyond = value > top
            axis.scatter([at], [0.985 * top if beyond else value], s=16, marker="^" if beyond else look.marker,
                         facecolor=look.colour if beyond else "white", edgecolor=look.colour, linewidth=1.0, zorder=5,
                         clip_on=False)  # fmt: skip


COMBINED_HEIGHT = 1.7  # inches of a panel
APART = 0.06  # of an octave: between the lines' points


def plot_combined(drawing: Drawing, rows: Sequence[Row]) -> Figure | None:
    """The figure of ``drawing``, None without rows. Each repetition is a point where values are
    measured ones.
    """
    if not rows:
        return None
    horizontal = Across.of(rows)
    grouped = _combined_panels(rows, horizontal)
    columns = min(len(grouped), panels.MAX_COLUMNS)
    width = panels.WIDTH * min(1.0, 0.31 * columns + 0.18)
    height = COMBINED_HEIGHT * math.ceil(len(grouped) / columns) + 0.5
    figure = style.figure(width, height, w_pad=0.06, h_pad=0.06)
    axes = style.panels(figure, len(grouped), columns, sharey=True)
    names = list(dict.fromkeys(workload(row) for row in rows))
    logarithmic = _is_wide(drawing, rows)
    for place, (axis, (title, members)) in enumerate(zip(axes, grouped.items(), strict=True)):
        _combined_panel(axis, drawing, members, names, horizontal)
        axis.set_title(title)
        axis.set_xlabel(horizontal.label(rows[0].table))
        if place % columns == 0:
            axis.set_ylabel(elements.vertical_label(rows[0].table, drawing.value))
        if not logarithmic:
            axis.set_ylim(0, None)
        elements.scale_values(axis, logarithmic)
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


def _combined_panels(rows: Sequence[Row], horizontal: Across) -> Mapping[str, list[Row]]:
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
    return bool(values) and max(values) > elements.SPAN * min(values)


def _combined_panel(
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
    disturbed = [
        (place, value * row.table.factor)
        for place, row in zip(places, rows, strict=True)
        for value in row.measured.disturbed
    ]
    style.left_out(axis, [x for x, _ in disturbed], [y for _, y in disturbed])


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
