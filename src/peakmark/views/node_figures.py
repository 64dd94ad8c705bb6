"""Nodes as dots on a line, on page one and in each point of a table."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.formatting import counted, percent, size
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.views import figure_style, score_card
from peakmark.views.points import Line, noun_of, with_medians
from peakmark.views.report.pictures import FigureData

LINE, HEADLINE = 0.165, 0.3
"""Height of a line of dots in a table's figure, and on page one, in inches."""
NAMED = 2
"""A line with at most this many slow nodes names them beside their dots."""
DELTA = 0.03
"""A slow node is behind its class by more than this share; the dashed lines are at this difference."""


def plot_fleet(frames: CampaignFrames) -> Figure | None:
    """Draw every node at the headlines of the score card; return None if nothing was measured."""
    lines = []
    for headline, rows in score_card.rows_of_headlines(frames):
        usable = with_medians(rows[rows["is_own"]])
        if len(usable):
            block = size(middle_of(usable).block_bytes)
            lines.append((headline.title.format(block=block), usable))
    return plot_dots(lines, 7.0, HEADLINE)


def plot_nodes(figure: FigureData) -> Figure | None:
    """Draw all nodes at all points of a table; return None if nothing was measured."""
    own = figure.rows[figure.rows["is_own"]]
    usable = with_medians(own).sort_values("group", kind="stable")
    labels, lines = Labels(figure.table), []
    for _, of_place in usable.groupby("place", sort=False):
        name = labels.point(middle_of(of_place), variant=True, node=False)
        lines.append((name, of_place))
    return plot_dots(lines, 5.5, LINE)


def middle_of(usable: pd.DataFrame) -> Line:
    """Return the row nearest to the median of the first class."""
    of_class = usable[usable["group"].eq(usable["group"].min())]
    off = (of_class["value"] - of_class["median_of_nodes"]).abs()
    return next(schema.lines(of_class.loc[[off.idxmin()]]))


def plot_dots(
    lines: Sequence[tuple[str, pd.DataFrame]], width: float, height: float
) -> Figure | None:
    """Draw a horizontal strip for each name, with a dot for each node.

    The dot is at the distance of the node from the median of its class.

    Args:
        lines: (name of the line, its rows, see ``points.with_medians``).
        width: width of the figure, in inches.
        height: height of a line, in inches.
    """
    if not lines:
        return None
    figure, axis = figure_style.named_lines([name for name, _ in lines], width, height)
    for position, (_, usable) in enumerate(lines):
        draw_dots(axis, position, usable)
    axis.axvline(0, color=figure_style.INK, linewidth=0.8, zorder=1)
    for side in (-DELTA, DELTA):
        axis.axvline(side, color=figure_style.QUIET, linewidth=0.6, dashes=(4, 2), zorder=1)
    axis.margins(x=0.2)
    low, high = axis.get_xlim()
    axis.set_xlim(min(low, -1.6 * DELTA), max(high, 1.6 * DELTA))
    axis.xaxis.set_major_formatter(signed_percent)
    noun = noun_of(pd.concat([usable for _, usable in lines]))
    axis.set_xlabel(f"{noun}: % from the median of their class")
    return figure


def signed_percent(share: float, _: object) -> str:
    """Return ``+5`` of 0.05, ``0`` of 0."""
    return f"{100 * share:+g}" if share else "0"


def draw_dots(axis: Axes, position: int, usable: pd.DataFrame) -> None:
    """Draw the nodes of one line: slow nodes with open markers, the slowest nodes with their names."""
    nodes = dots_of(usable)
    usual, slow = figure_style.look(0), figure_style.look(1, is_open=True)
    for is_slow, look in ((False, usual), (True, slow)):
        dots = nodes[nodes["is_slow"].eq(is_slow)]
        axis.scatter(
            dots["share"], position + dots["offset"], s=12, facecolor=look.face,
            edgecolor=look.colour, linewidth=0.9, alpha=0.7, zorder=3, urls=list(dots["text"]),
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


def dots_of(usable: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each node: its distance from the class's median, and the height of its dot.

    The height depends on the node's name, so that only few dots overlap.
    """
    share = usable["value"] / usable["median_of_nodes"] - 1
    texts, offsets = [], []
    for node, of_node in zip(usable["node"], share, strict=True):
        texts.append(f"{node}: {100 * of_node:+.1f} %")
        offsets.append(0.3 * (zlib.crc32(node.encode()) % 201 / 100 - 1))
    nodes = usable[["node", "is_slow"]]
    return nodes.assign(share=share, offset=offsets, text=texts)
