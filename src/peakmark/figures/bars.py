"""A bar for each row, in the order of its table: the own kernel's; the references of the same row are open marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from peakmark.config.drawings import Drawing
from peakmark.figures import across, panels, style, together
from peakmark.formatting import significant
from peakmark.judging.drawn import value_of
from peakmark.judging.row import Row
from peakmark.judging.words import Words

HEIGHT = 1.45  # inches of a panel
HALF = 24  # bars that half the width holds
FARTHEST = 150.0  # percent of the limit: a reference beyond it is a mark at the upper edge
FEW = 12  # bars of a panel, up to which each has its value written above it
GAP = 0.8  # bars between two groups


@dataclass(frozen=True)
class _Group:
    """Rows that stand side by side, and what is written below them."""

    title: str
    rows: tuple[Row, ...]


def plot(drawing: Drawing, rows: Sequence[Row], mark: str = ".") -> Figure | None:
    """The figure of ``drawing``, None without rows.

    Tables without block sizes have one panel with a group of bars for each workload; others a panel for each workload with a
    group for each size.
    """
    if not rows:
        return None
    grouped = _panels(rows)
    widest = max(sum(len(group.rows) for group in groups) for _, groups in grouped)
    columns = 1 if widest > HALF or (len(grouped) == 1 and widest > FEW) else min(2, len(grouped))
    lines = math.ceil(len(grouped) / columns)
    share = 1.0 if columns == 2 or widest > FEW else 0.49
    figure = Figure(figsize=(panels.WIDTH * share, HEIGHT * lines + 0.4))
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    axes = figure.subplots(lines, columns, squeeze=False, sharey=True)
    top = _top(drawing, rows)
    for place, axis in enumerate(axes.flat):
        if place >= len(grouped):
            axis.set_visible(False)
            continue
        title, groups = grouped[place]
        _panel(axis, drawing, groups, top, mark)
        axis.set_title(title)
        if place % columns == 0:
            axis.set_ylabel(together.vertical_label(drawing, rows[0].table))
        if place + columns >= len(grouped):
            axis.set_xlabel(across.axis_label(rows[0].table, "concurrency"))
    _legend(figure, drawing, rows)
    return figure


def _panels(rows: Sequence[Row]) -> list[tuple[str, list[_Group]]]:
    """Panels with their groups, rows in the order they came in."""
    sized = len({row.key.block for row in rows}) > 1
    grouped: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        block = Words.of(row).block(row)
        name = together.workload(row)
        title, group = (name, block) if sized else ("", name)
        grouped.setdefault(title, {}).setdefault(group, []).append(row)
    return [
        (title, [_Group(name, tuple(sorted(members, key=_threads))) for name, members in groups.items()])
        for title, groups in grouped.items()
    ]


def _threads(row: Row) -> int:
    return row.key.concurrency


def _top(drawing: Drawing, rows: Sequence[Row]) -> float:
    """The upper end of the vertical axis, the same in all panels; what lies beyond is drawn at it."""
    own = [value_of(drawing, row, row.measured) or 0.0 for row in rows]
    every = [value_of(drawing, row, series) or 0.0 for row in rows for series in row.series.values()]
    if drawing.value == "efficiency":
        return max(105.0, 1.08 * max(own), min(FARTHEST, 1.08 * max(every)))
    return 1.12 * (max(own) if drawing.value == "deviation" else max(every))


def goes_beyond(drawing: Drawing, rows: Sequence[Row]) -> bool:
    """Whether a reference lies beyond the upper edge, where a filled triangle stands for it."""
    if drawing.kind != "bars" or drawing.value == "deviation" or not rows:
        return False
    top = _top(drawing, rows)
    return any((value_of(drawing, row, series) or 0.0) > top for row in rows for series in row.series.values())


def _panel(axis: Axes, drawing: Drawing, groups: Sequence[_Group], top: float, mark: str) -> None:
    colour = style.look(0).colour
    few = sum(len(group.rows) for group in groups) <= FEW
    ticks: list[tuple[float, str]] = []
    at = 0.0
    for group in groups:
        first = at
        for row in group.rows:
            value = value_of(drawing, row, row.measured) or 0.0
            axis.bar(at, value, width=0.74, facecolor=colour, linewidth=0, zorder=2)
            if few:
                axis.annotate(significant(value, 2, mark), (at, value), xytext=(0, 2), textcoords="offset points",
                              ha="center", fontsize=6.5, color=style.INK, zorder=6)  # fmt: skip
            _references(axis, drawing, row, at, top)
            ticks.append((at, str(row.key.concurrency or row.key.word)))
            at += 1
        if group.title:
            axis.annotate(group.title, ((first + at - 1) / 2, 0), xycoords=("data", "axes fraction"), xytext=(0, -15),
                          textcoords="offset points", ha="center", va="top", fontsize=7, fontweight="bold",
                          color=style.INK, annotation_clip=False)  # fmt: skip
        at += GAP
    axis.set_xticks([place for place, _ in ticks], [text for _, text in ticks], fontsize=6.5)
    axis.tick_params(axis="x", length=0, labelbottom=True)
    axis.set_xlim(-0.8, at - GAP - 0.2)
    axis.set_ylim(0, top)
    axis.yaxis.set_major_formatter(style.Ticks(mark))
    # Below the names of the groups.
    axis.xaxis.labelpad = 17 if any(group.title for group in groups) else 2
    if drawing.value == "efficiency":
        axis.axhline(100, color=style.LIMIT, linewidth=0.9, dashes=(5, 2), zorder=1)
    sns.despine(ax=axis)


def _references(axis: Axes, drawing: Drawing, row: Row, at: float, top: float) -> None:
    """An open mark for each reference tool, at the upper edge where its value lies beyond."""
    if drawing.value == "deviation":
        return
    for place, series in enumerate(row.table.series):
        measured = row.series.get(series.instrument) if place else None
        value = value_of(drawing, row, measured) if measured else None
        if value is not None:
            look = style.look(place)
            beyond = value > top
            axis.scatter([at], [0.985 * top if beyond else value], s=16, marker="^" if beyond else look.marker,
                         facecolor=look.colour if beyond else "white", edgecolor=look.colour, linewidth=1.0, zorder=5,
                         clip_on=False)  # fmt: skip


def _legend(figure: Figure, drawing: Drawing, rows: Sequence[Row]) -> None:
    table = rows[0].table
    handles: list[Patch | Line2D] = [Patch(facecolor=style.look(0).colour, label=table.own.heading)]
    for place, series in enumerate(table.series):
        shown = place and drawing.value != "deviation"
        values = [
            value_of(drawing, row, row.series[series.instrument]) for row in rows if series.instrument in row.series
        ]
        if shown and any(value is not None for value in values):
            look = style.look(place)
            handles.append(
                Line2D([], [], linestyle="none", marker=look.marker, markersize=4, markerfacecolor="white",
                       markeredgecolor=look.colour, label=series.heading)
            )  # fmt: skip
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), frameon=False, handlelength=1.4)
