"""The figure of page one with shares of the limit, and figures with nodes as dots on a line."""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import counted, percent
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME
from peakmark.views import figure_style, headlines, layouts
from peakmark.views.figure_data import FigureData
from peakmark.views.node_groups import NodeGroup, group_points, noun, place_of
from peakmark.views.points import Line, Point, points_of

FARTHEST = 1.5
"""Largest share of the limit at which a reference is drawn; a larger one is drawn there too."""
LINE, HEADLINE = 0.165, 0.5
"""Height of a line of dots in a table's figure, and on page one, in inches."""
NAMED = 2
"""Largest number of slow nodes in a line with their names beside their dots."""
DELTA = 0.03
"""Least difference from the class's value of a slow node, as a share: place of the dashed lines."""


# -- page one


def plot_overview(frames: CampaignFrames) -> Figure | None:
    """Draw the headline row of each resource as a share of its limit, None if none has a limit.

    A resource without a limit has no bar, as readers would take a share of a bound for one of a
    limit.
    """
    chosen = headlines.with_limit(frames)
    if not chosen:
        return None
    layout = layouts.layout_of(frames)
    titles = [title for title, _ in chosen]
    figure, axis = figure_style.named_lines(titles, figure_style.WIDTH, 0.48)
    for position, (_, point) in enumerate(chosen):
        table = BY_NAME[point.own.table]
        if layout is not None:
            table = layout.called(table)
        labels = layouts.labels_of(layout, table, point.own)
        draw_shares(axis, position, point, runs_of(frames.runs, point.own), labels)
    axis.set_xlim(0)
    axis.xaxis.set_major_formatter(PercentFormatter(1, symbol=None))
    axis.set_xlabel("% of the limit")
    axis.axvline(1, color=figure_style.INK, linewidth=1.6, zorder=5)
    return figure


def runs_of(runs: pd.DataFrame, row: Line) -> pd.DataFrame:
    """Return the runs of a row, with those that were disturbed."""
    is_of_row = runs["point"].eq(row.point) & runs["instrument"].eq(row.instrument)
    return runs[is_of_row & (runs["kept"] | runs["disturbed"].ne("")) & runs["value"].notna()]


def draw_shares(
    axis: Axes, position: int, point: Point, runs: pd.DataFrame, labels: Labels
) -> None:
    """Draw peakmark's runs as a bar and dots, and the best reference as an open marker.

    A text above them has the values.
    """
    own = point.own
    height = position + 0.14
    colour = figure_style.look(0).colour
    axis.barh(height, own.value / own.limit, height=0.34, facecolor=colour, zorder=2)
    for is_kept, area, face in ((True, 7, figure_style.INK), (False, 13, "none")):
        shares = runs.loc[runs["kept"].eq(is_kept), "value"] / own.limit
        axis.scatter(
            shares, [height] * len(shares), s=area, facecolor=face, edgecolor=figure_style.INK,
            linewidth=0.6, zorder=4,
        )  # fmt: skip
    caption = f"{labels.point(own)}: {own.program} {percent(own.value / own.limit)} %"
    reference = best_reference(point)
    if reference is not None:
        theirs = reference.value / own.limit
        look = figure_style.look(1, is_open=True)
        axis.scatter(
            min(theirs, FARTHEST), height, s=42, marker=look.marker, facecolor=look.face,
            edgecolor=look.colour, linewidth=1.4, zorder=3,
        )  # fmt: skip
        caption += f", {reference.program} {percent(theirs)} %"
    caption += f" of {labels.quantity(own.limit)}"
    axis.annotate(
        caption, (0, position - 0.2), xytext=(2, 0), textcoords="offset points", va="center",
        fontsize=figure_style.SMALL,
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}, zorder=6,
    )  # fmt: skip


def best_reference(point: Point) -> Line | None:
    """Return the line of the best comparable reference of a point, None without one."""
    lines = [line for line in point.measured.values() if line.is_comparable]
    best = min if BY_NAME[point.own.table].lower_is_better else max
    return best(lines, key=attrgetter("value"), default=None)


# -- many nodes


def plot_fleet(frames: CampaignFrames) -> Figure | None:
    """Draw all nodes at the headline point of each resource, None if nothing was measured."""
    layout = layouts.layout_of(frames)
    lines = []
    for name in headlines.planned(frames):
        groups = headlines.headline_groups(frames, name)
        if groups:
            middle = groups[0].middle.own
            labels = layouts.labels_of(layout, BY_NAME[middle.table], middle)
            point = labels.point(middle, node=False)
            lines.append((f"{SUBSYSTEMS[name].title}\n{point}", groups))
    return plot_dots(lines, 7.0, HEADLINE)


def plot_nodes(figure: FigureData) -> Figure | None:
    """Draw all nodes at all points of a table, None if nothing was measured."""
    points: dict[str, list[NodeGroup]] = defaultdict(list)
    for group in group_points(points_of(figure.frames, figure.rows)):
        points[place_of(group.middle)].append(group)
    lines = []
    for groups in points.values():
        middle = groups[0].middle.own
        labels = Labels(figure.table)
        lines.append((labels.point(middle, variant=True, node=False), groups))
    return plot_dots(lines, 5.5, LINE)


def plot_dots(
    lines: Sequence[tuple[str, Sequence[NodeGroup]]], width: float, height: float
) -> Figure | None:
    """Draw a line for each name, with each node at its distance from the median of its class.

    Args:
        lines: names with the classes of nodes at a point.
        width: width of the figure, in inches.
        height: height of a line, in inches.
    """
    if not lines:
        return None
    figure, axis = figure_style.named_lines([name for name, _ in lines], width, height)
    points: list[Point] = []
    for position, (_, groups) in enumerate(lines):
        draw_dots(axis, position, groups)
        for group in groups:
            points += group.points
    axis.axvline(0, color=figure_style.INK, linewidth=0.8, zorder=1)
    for side in (-DELTA, DELTA):
        axis.axvline(side, color=figure_style.QUIET, linewidth=0.6, dashes=(4, 2), zorder=1)
    axis.margins(x=0.2)
    low, high = axis.get_xlim()
    axis.set_xlim(min(low, -1.6 * DELTA), max(high, 1.6 * DELTA))
    axis.xaxis.set_major_formatter(signed_percent)
    axis.set_xlabel(f"{noun(points)}: % from the median of their class")
    return figure


def signed_percent(share: float, _: object) -> str:
    """Return ``+5`` of 0.05, ``0`` of 0."""
    return f"{100 * share:+g}" if share else "0"


def draw_dots(axis: Axes, position: int, groups: Sequence[NodeGroup]) -> None:
    """Draw the nodes of one line, slow ones with open markers and the slowest with their names."""
    nodes = dots_of(groups)
    usual, slow = figure_style.look(0), figure_style.look(1, is_open=True)
    for is_slow, look in ((False, usual), (True, slow)):
        dots = nodes[nodes["is_slow"].eq(is_slow)]
        axis.scatter(
            dots["share"], position + dots["offset"], s=12, facecolor=look.face,
            edgecolor=look.colour, linewidth=0.9, alpha=0.7, zorder=3,
        )  # fmt: skip
    slowest = nodes[nodes["is_slow"]].sort_values("share", key=np.abs, ascending=False)
    if slowest.empty:
        return
    names = []
    for node, share in zip(slowest["node"], slowest["share"], strict=True):
        names.append(f"{node} {percent(share)} %")
    first = slowest.iloc[0]
    axis.annotate(
        counted(names, NAMED), (first["share"], position + first["offset"]),
        xytext=(math.copysign(4, first["share"]), 0), textcoords="offset points",
        ha="left" if first["share"] > 0 else "right", va="center", fontsize=figure_style.SMALL,
        zorder=4,
    )  # fmt: skip


def dots_of(groups: Sequence[NodeGroup]) -> pd.DataFrame:
    """Return a line for each node: its distance from the class's median, and the height of its dot.

    The height depends on the node's name, so that few dots hide each other.
    """
    lines = []
    for group in groups:
        for point in group.points:
            node = point.own.node
            number = zlib.crc32(node.encode()) % 201
            share = point.own.value / group.median - 1
            lines.append((node, share, 0.3 * (number / 100 - 1), bool(point.own.is_slow)))
    return pd.DataFrame(lines, columns=["node", "share", "offset", "is_slow"])
