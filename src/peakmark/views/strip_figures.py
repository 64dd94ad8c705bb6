"""Figures with a line of marks for each row or point: the runs and references of a row, the nodes of a point.

Columns of marks that do not fit below each other are panels. A mark's ``place`` is the number of its line in the
panel.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from peakmark.formatting import counted, size
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.views import figure_style, score_card
from peakmark.views.panel_figures import variant_name
from peakmark.views.pictures import Picture, compared_nodes, has_limits
from peakmark.views.table import Line

HEIGHT, AXIS = 0.13, 0.2
"""Height of a row, and of the numbers of the axis, in inches."""
STEPS = (1, 2, 2.5, 5, 10)
"""Allowed steps between the numbers of a linear axis, each times a power of ten."""
FEW_TICKS = 4
"""Largest number of intervals on a linear axis."""
MOST_IN_COLUMN = 26
"""Largest number of rows in a column, unless there would be more than ``MOST_COLUMNS``."""
MOST_COLUMNS = 3
ROUNDS = "Blues_d"
"""Palette of the rounds, shades of blue, which no reference has: the last one is dark, also in grey print."""
MARGIN = 1.06
"""End of a linear axis, as a multiple of the highest value."""
BAR = "#cfe2ef"  # colour of the bars of medians, lighter than the dots of the runs on them
LINE_HEIGHT, HEADLINE_HEIGHT = 0.165, 0.3
"""Height of a line of dots in a table's figure, and on page one, in inches."""
MOST_NAMED = 2
"""A line with at most this many slow nodes names them beside their dots."""
DOTS = {False: figure_style.look(0), True: figure_style.HOLLOW}
"""Whether a node is slow -> look of its dot."""


# -- rows


def plot_strip(figure: Picture) -> Figure:
    """Draw the runs, the median and the references of each row. Some rows must be of peakmark's kernel.

    The axis is the share of the limit if all rows have one, and the value otherwise.
    """
    rows = named_rows(figure)
    own = rows[rows["is_own"]]
    has_shares = has_limits(rows)
    # The runs, with the line of their row.
    places = own[["point", "instrument", "program", "name", "panel", "place"]]
    runs = figure.marks.merge(places, on=["point", "instrument"])
    runs["round"] = runs["repetition"] + 1
    # Choose the axis: values, or shares of the limit in percent.
    label = figure_style.vertical_label(figure.table)
    column, values = "value", runs["value"] * figure.table.factor
    factor = figure.table.factor
    if has_shares:
        label, column, factor = "% of the limit", "efficiency", 100.0
        values = 100 * runs["share"]
    rows = rows.assign(x=rows[column] * factor, kind=rows["program"]).dropna(subset="x")
    shown = pd.concat([rows, runs.assign(x=values, is_own=True)], ignore_index=True)
    return draw(figure, shown, label, has_shares)


def draw(figure: Picture, shown: pd.DataFrame, label: str, has_shares: bool) -> Figure:
    """Draw the marks of rows in panels side by side, with a legend of the references.

    Args:
        figure: figure whose programs are named in the legend.
        shown: the marks, with ``name`` of the row, ``panel``, ``place``, ``kind`` (run, left out, or the
            program of a median), ``round`` and ``x``.
        label: label of the horizontal axis.
        has_shares: whether the axis has shares of the limit.
    """
    length = int(shown["place"].max()) + 1  # lines of the longest panel
    looks = figure_style.looks_of(figure.table)
    runs = shown[shown["kind"].eq("run")]
    colours = dict(enumerate(sns.color_palette(ROUNDS, int(max(runs["round"], default=0))), 1))
    grid = sns.FacetGrid(shown, col="panel", sharex=True, sharey=False)
    for number, axis in grid.axes_dict.items():
        of_column = shown[shown["panel"].eq(number)].assign(y=lambda marks: marks["place"])
        # Draw the medians of peakmark's kernel, then the references, the runs, and the runs that do not count.
        medians = of_column[of_column["kind"].eq(figure.table.own.heading)]
        if has_shares:
            sns.barplot(medians, x="x", y="place", orient="h", color=BAR, errorbar=None, ax=axis)
            axis.axvline(100, **figure_style.LIMIT)
        else:
            sns.scatterplot(
                medians, x="x", y="place", marker="|", s=60, color=figure_style.INK, ax=axis
            )
        references = of_column[~of_column["is_own"].astype(bool)]
        figure_style.scatter(axis, references, "kind", looks)
        counted = of_column[of_column["kind"].eq("run")]
        if len(counted):  # seaborn warns of a palette without runs
            sns.scatterplot(
                counted, x="x", y="place", hue="round", palette=colours,
                s=11, edgecolor="face", linewidth=0.7, zorder=5, legend=False, ax=axis,
            )  # fmt: skip
        left_out = of_column[of_column["kind"].eq("left out")].assign(kind="_left out")
        figure_style.scatter(axis, left_out, "kind", {"_left out": figure_style.HOLLOW})
        # Name the lines, from the top down.
        named = of_column.drop_duplicates("place")
        axis.set(title="", ylim=(length - 0.4, -0.6))
        axis.set_yticks(named["place"], named["name"])
        axis.tick_params(axis="y", length=0)
        axis.grid(True, axis="both")
        sns.despine(ax=axis, left=True)
    scale(grid, shown["x"], reach=100.0 if has_shares else 0.0)
    figure_style.finish(grid, (label, ""), len(grid.axes_dict), HEIGHT * length + AXIS, share=0.42)
    # The caption explains the marks of runs and medians.
    figure_style.legend(grid.figure)
    drawn: Figure = grid.figure
    return drawn


def named_rows(figure: Picture) -> pd.DataFrame:
    """Return the rows of a figure with ``name``, ``panel`` and ``place`` of their points."""
    rows = figure.rows
    has_variants = bool(figure.table.variant) and rows["variant"].nunique() > 1
    # Point -> name of its line. Many points have short names, so that they fit beside several columns.
    names: dict[str, str] = {}
    is_short = rows["point"].nunique() > MOST_IN_COLUMN
    for row in schema.lines(rows):
        names.setdefault(row.point, name_of(figure.labels(row), row, has_variants, is_short))
    return in_columns(rows.assign(name=rows["point"].map(names)), rows["point"])


def in_columns(rows: pd.DataFrame, keys: pd.Series) -> pd.DataFrame:
    """Return rows with ``panel`` and ``place`` (number of the line in the panel). Equal keys share a line.

    Panels have at most ``MOST_IN_COLUMN`` lines, unless more than ``MOST_COLUMNS`` panels would be needed.
    """
    numbers, distinct = pd.factorize(keys)
    columns = min(math.ceil(len(distinct) / MOST_IN_COLUMN), MOST_COLUMNS)
    length = math.ceil(len(distinct) / columns)
    return rows.assign(panel=numbers // length, place=numbers % length)


def name_of(labels: Labels, row: Line, has_variants: bool, is_short: bool) -> str:
    """Return ``RWS 1 MiB, 2 threads`` or, if short, ``RWS 1 MiB, ×2``, then the node unless it is ``any``."""
    words = [labels.workload(row), labels.block(row)]
    if has_variants:
        words.insert(1, variant_name(labels.table, row.variant))
    parts = [" ".join(filter(None, words)), row.concurrency_word]
    if row.concurrency:
        parts[1] = f"×{row.concurrency}" if is_short else labels.many(row.concurrency)
    if row.node != "any":
        parts.append(row.node)
    return ", ".join(filter(None, parts))


def scale(grid: sns.FacetGrid, values: pd.Series, reach: float) -> None:
    """Scale the horizontal axes: from zero, or logarithmically if the values span too much.

    Args:
        grid: the panels.
        values: all values that they show.
        reach: the axes begin at zero and end at this value or beyond; 0 if only the values count.
    """
    lowest, highest = values.min(), values.max()
    for axis in grid.axes.flat:
        if reach == 0 and lowest * figure_style.SPAN <= highest:
            steps = figure_style.steps_of(lowest, highest)
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(LogLocator(subs=steps, numticks=figure_style.MAX_TICKS))
            axis.xaxis.set_minor_locator(NullLocator())
        else:
            axis.set_xlim(0, MARGIN * max(reach, highest))
            axis.xaxis.set_major_locator(MaxNLocator(FEW_TICKS, steps=STEPS))
        axis.xaxis.set_major_formatter(figure_style.NUMBER)


# -- nodes


def plot_fleet(frames: CampaignFrames) -> Figure | None:
    """Draw every node at each headline of the score card.

    Return None if no headline was measured on several nodes.
    """
    lines = []
    for headline, rows in score_card.rows_of_headlines(frames):
        usable = compared_nodes(rows)
        if len(usable):
            block = size(next(schema.lines(usable)).block_bytes)
            lines.append((headline.title.format(block=block), usable))
    beyond = frames.campaign["rule"]["beyond"]
    return plot_dots(lines, beyond, width=7.0, height=HEADLINE_HEIGHT)


def plot_nodes(picture: Picture) -> Figure | None:
    """Draw all nodes at all points of a table; return None if no point has several nodes.

    The column ``place`` of ``rows`` is a point without its node.
    """
    # The first class of nodes comes first in each line.
    usable = compared_nodes(picture.rows).sort_values("group", kind="stable")
    labels, lines = Labels(picture.table), []
    for _, of_place in usable.groupby("place", sort=False):
        name = labels.point(next(schema.lines(of_place)), variant=True)
        lines.append((name, of_place))
    beyond = picture.frames.campaign["rule"]["beyond"]
    return plot_dots(lines, beyond, width=5.5, height=LINE_HEIGHT)


def plot_dots(
    lines: Sequence[tuple[str, pd.DataFrame]], beyond: float, width: float, height: float
) -> Figure | None:
    """Draw a horizontal strip for each name, with a dot for each node.

    The dot is at the distance of the node from the median of its class. Its height depends on the node's
    name, so that a node is at the same height in all strips; seaborn's ``stripplot`` would choose it at random.

    Args:
        lines: (name of the line, its usable rows, see ``labels.with_medians``).
        beyond: a slow node is worse than its class by more than this share: the dashed lines.
        width: width of the figure, in inches.
        height: height of a line, in inches.
    """
    if not lines:
        return None
    names = [name for name, _ in lines]
    figure = Figure(figsize=(width, height * len(names) + 0.5))
    figure.set_layout_engine("constrained", **figure_style.PADS)
    axis = figure.subplots()
    axis.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.6))
    axis.set_xlabel("% from the median of their class")
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x")
    sns.despine(ax=axis, left=True)
    for position, (_, usable) in enumerate(lines):
        draw_dots(axis, position, usable)
    axis.axvline(0, color=figure_style.INK, linewidth=0.8, zorder=1)
    for side in (-beyond, beyond):
        axis.axvline(side, color=figure_style.QUIET, linewidth=0.6, dashes=(4, 2), zorder=1)
    # The axis reaches beyond the dashed lines, also if no node does, and has room for the name of a slow node.
    axis.margins(x=0.4)
    low, high = axis.get_xlim()
    axis.set_xlim(min(low, -1.6 * beyond), max(high, 1.6 * beyond))
    axis.xaxis.set_major_formatter(signed_percent)
    return figure


def signed_percent(share: float, _: object) -> str:
    """Return a share as a number of the axis in percent: ``+5`` for 0.05, ``0`` for 0.

    Matplotlib passes the position too.
    """
    return f"{100 * share:+g}" if share else "0"


def draw_dots(axis: Axes, position: int, usable: pd.DataFrame) -> None:
    """Draw the nodes of one line, and name up to ``MOST_NAMED`` slow nodes beside the slowest one's dot.

    The markers of slow nodes are open.
    """
    dots = dots_of(position, usable)
    figure_style.scatter(axis, dots, "is_slow", DOTS)
    slowest = dots[dots["is_slow"]].sort_values("x", key=np.abs, ascending=False)
    if slowest.empty:
        return
    # The names are 4 points beside the dot, on the side away from the median.
    first = slowest.iloc[0]
    axis.annotate(
        counted(slowest["node"].tolist(), MOST_NAMED), (first["x"], first["y"]),
        xytext=(math.copysign(4, first["x"]), 0), textcoords="offset points",
        ha="left" if first["x"] > 0 else "right", va="center", fontsize=figure_style.SMALL,
        zorder=4,
    )  # fmt: skip


def dots_of(position: int, usable: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a line with the place of each node's dot.

    ``x`` is the node's distance from the median of its class, as a share of the median. ``y`` is near the
    line's ``position``. It depends on the node's name, so that only few dots overlap.
    """
    share = usable["value"] / usable["median_of_nodes"] - 1
    # Offsets from -0.3 to 0.3 of the distance between lines.
    heights = []
    for node in usable["node"]:
        heights.append(position + 0.3 * (zlib.crc32(node.encode()) % 201 / 100 - 1))
    return usable.assign(x=share, y=heights)
