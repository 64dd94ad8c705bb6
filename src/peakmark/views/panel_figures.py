"""Rows as small multiples: lines through medians or bars, a dot for each run, and dashed limits.

``draw`` takes a frame with one row for each mark that it draws:

panel   title of the panel
name    program or workload, shown by colour and marker
line    block or number of threads, shown by dashes; empty if a panel shows only one
kind    median, run, left out (a run that does not count) or limit
x, y    position
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import partial
from itertools import cycle
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from peakmark.formatting import capitalised, significant
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.tools.tables import Table
from peakmark.views import figure_style
from peakmark.views.figure_style import Look
from peakmark.views.pictures import VALUES, Picture, is_over_blocks
from peakmark.views.table import Line

MAX_COLUMNS = 4
"""Largest number of panels side by side."""
USUAL_HEIGHT, LAYOUT_HEIGHT = 1.15, 1.4
"""Height of a panel of a usual figure, and of a layout's figure, in inches."""
MAX_PANELS = 12
"""Largest number of panels if each block size or number of threads has its own panels.

If there would be more, dashes distinguish the block sizes or numbers of threads instead.
"""
MAX_LETTERS = 22
"""Letters that fit side by side below a panel."""
MOST_WITH_VALUES = 5
"""Largest number of bars of a panel whose values are written above them."""
BAR_WIDTH = 0.8
"""Total width of the bars at one position, as a share of the distance between two positions."""
LETTERS = 92
"""Letters that fit side by side in the titles of all panels of a line."""
VARIANTS = {
    "pool": "",
    "pool-temporal": "ordinary stores",
    "block": "in caches",
    "sustained": "",
}
"""Printed variant of a row -> its shorter name in figures, see ``variant_name``."""


# -- panels


def draw(
    shown: pd.DataFrame,
    labels: tuple[str, str],
    looks: Mapping[str, Look] | None = None,
    has_own_limits: bool = False,
    max_columns: int = MAX_COLUMNS,
    height: float = USUAL_HEIGHT,
    **facets: Any,
) -> tuple[Figure, Mapping[str, Axes]]:
    """Draw a panel for each title, and one legend.

    Args:
        shown: a frame as the docstring of this module describes it; at least one median. Medians are
            joined in the order of the frame.
        labels: labels of the horizontal and the vertical axis.
        looks: name -> its look; by default, looks are assigned in the order of the names.
        has_own_limits: whether to draw limits in the colours of their names.
        max_columns: largest number of panels side by side.
        height: height of a panel, in inches.
        facets: ``sharex`` and ``sharey`` of seaborn's ``FacetGrid``.

    Returns:
        The figure, and title -> panel.
    """
    names = list(shown["name"].unique())
    if looks is None:
        looks = {name: figure_style.look(place) for place, name in enumerate(names)}
    # Break the titles into lines that fit above their panels.
    columns = figure_style.columns_of(shown["panel"].nunique(), max_columns)
    titles = [textwrap.fill(panel, LETTERS // columns) for panel in shown["panel"]]
    shown = shown.assign(title=titles)
    dashes = dict(zip(shown["line"].unique(), cycle(figure_style.DASHES), strict=False))
    # Draw the medians: between dots of runs as short ticks, otherwise as the markers of their names.
    has_runs = bool(shown["kind"].eq("run").any())
    grid = sns.relplot(
        shown[shown["kind"].eq("median")], kind="line", x="x", y="y", col="title", col_wrap=columns,
        hue="name", palette=figure_style.palette_of(looks), style="line", dashes=dashes,
        estimator=None, sort=False, legend=False, linewidth=1.1, marker="_" if has_runs else "",
        markersize=4, markeredgecolor="auto", facet_kws={"sharex": False, "sharey": False, **facets},
    )  # fmt: skip
    grid.set_titles("{col_name}")
    for title, axis in grid.axes_dict.items():
        of_panel = shown[shown["title"].eq(title)]
        if not has_runs:
            figure_style.scatter(axis, of_panel[of_panel["kind"].eq("median")], "name", looks)
        draw_runs(axis, of_panel, looks)
        draw_limits(axis, of_panel, looks if has_own_limits else {})
    figure_style.finish(grid, labels, columns, height)
    figure_style.scale_values(list(grid.axes.flat), bool(facets.get("sharey")))
    # Add the legend's entries for dashes and limits: empty lines that only have a label.
    last = grid.axes.flat[-1]
    if len(dashes) > 1:
        for line, each in dashes.items():
            style = (0, each) if each else "-"  # matplotlib takes (offset, lengths of dash and gap)
            last.plot([], [], color=figure_style.QUIET, linestyle=style, label=line)
    if shown["kind"].eq("limit").any():
        last.plot([], [], label="limit", **figure_style.LIMIT)
    figure_style.legend(grid.figure)
    panels = dict(zip(shown["title"], shown["panel"], strict=True))
    return grid.figure, {panels[title]: axis for title, axis in grid.axes_dict.items()}


def draw_runs(axis: Axes, of_panel: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """Draw runs as dots; the dots of runs that do not count are hollow."""
    figure_style.scatter(axis, of_panel[of_panel["kind"].eq("run")], "name", looks)
    left_out = of_panel[of_panel["kind"].eq("left out")].assign(name="_left out")
    figure_style.scatter(axis, left_out, "name", {"_left out": figure_style.HOLLOW})


def draw_limits(axis: Axes, of_panel: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """Draw the limits of a panel as dashed lines.

    One line crosses the panel if the same limit holds at every position. Otherwise, each curve has
    a line through the limits of its rows, with a tick at each row. Lines have the colours in
    ``looks``; if ``looks`` is empty, they have the colour of the text.
    """
    limits = of_panel[of_panel["kind"].eq("limit")]
    distinct = limits["y"].round(9).unique()  # rounded: equal limits may differ in the last bit
    is_everywhere = limits["x"].nunique() == of_panel["x"].nunique()
    if len(distinct) == 1 and is_everywhere:
        axis.axhline(distinct[0], **figure_style.LIMIT)
        return
    for (name, _), of_line in limits.groupby(["name", "line"], sort=False):
        colour = looks[str(name)].colour if looks else figure_style.INK
        axis.plot(of_line["x"], of_line["y"], marker="_", **figure_style.LIMIT | {"color": colour})


# -- the rows of a table


def plot(figure: Picture) -> Figure:
    """Draw the rows of a table.

    The horizontal axis is the block size or the concurrency, whichever has more values. A panel shows
    one workload with all programs. If a layout asks for it (``together``), a panel shows all workloads of one
    block size or number of threads instead. Bars are over the block sizes if there are several, with a bar for
    each number of threads. Figures of ``together``, and of standard deviations, have no references.
    """
    kind = figure.kind
    # The layout chooses what is drawn of each row: a key of ``VALUES``.
    value = "measured" if figure.drawing is None else figure.drawing.value
    # Choose the columns of the horizontal axis and of the panels or dashes.
    across, other = "concurrency", "block_bytes"
    has_blocks = figure.rows["block_bytes"].nunique() > 1
    if is_over_blocks(figure.rows) or (kind == "bars" and has_blocks):
        across, other = other, across
    # Name the rows, their panels and lines, and put them in the order in which they are drawn.
    rows = named_rows(figure, across, other).pipe(add_panels, figure, kind)
    rows = rows.sort_values(["panel_place", "other_place", "across"], kind="stable")
    label = label_across(figure.table, across)
    if kind == "together" or value == "deviation":
        rows = rows[rows["is_own"]]
    # Set the positions of the marks, and leave out rows without the value.
    factor = 100.0 if value == "efficiency" else figure.table.factor
    rows = rows.assign(x=rows["across"], y=rows[VALUES[value]] * factor).dropna(subset="y")
    labels = label, figure_style.vertical_label(figure.table, value)
    if kind == "bars":
        return plot_bars(figure, rows, labels)
    # Draw lines: of programs, or of workloads if these are together in a panel. Only measured values have runs and limits.
    is_together = kind == "together"
    rows["name"] = rows["full_name" if is_together else "program"]
    looks = None if is_together else figure_style.looks_of(figure.table)
    shown = rows.assign(kind="median")
    if value == "measured":
        shown = pd.concat([shown, *runs_and_limits(figure, rows)], ignore_index=True)
    height = USUAL_HEIGHT if figure.drawing is None else LAYOUT_HEIGHT
    # Panels share the vertical axis, except those of the CPU, whose workloads differ by the size of
    # their operands.
    is_shared = is_together or figure.table.subsystem != "cpu"
    drawn, axes = draw(
        shown, labels, looks, has_own_limits=is_together, height=height, sharey=is_shared
    )
    scale_places(axes, rows)
    return drawn


def runs_and_limits(figure: Picture, rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Return two frames for ``draw``: a mark for each run of the rows, and a mark for each limit.

    Only rows of peakmark's kernel get a mark of their limit.
    """
    places = rows[["point", "instrument", "panel", "name", "line", "x"]]
    runs = figure.marks.merge(places, on=["point", "instrument"])
    limits = rows[rows["is_own"] & rows["limit"].notna()]
    factor = figure.table.factor
    return [
        runs.assign(y=runs["value"] * factor),
        limits.assign(y=limits["limit"] * factor, kind="limit"),
    ]


def plot_bars(figure: Picture, rows: pd.DataFrame, labels: tuple[str, str]) -> Figure:
    """Draw a bar for each row, with the references as open marks on the bars.

    The bars at one position of the axis are numbers of threads, from light to dark. If a panel has at most
    ``MOST_WITH_VALUES`` bars, their values are written above them.
    """
    looks = figure_style.looks_of(figure.table)
    order = list(rows.sort_values("across")["across_name"].unique())
    hues = list(rows.sort_values("other_place")["other_name"].unique())
    # In the legend, the first number of threads follows the name of peakmark's kernel.
    names = [", ".join(filter(None, (figure.table.own.heading, hues[0]))), *hues[1:]]
    # The last of these shades is the colour itself, the first nearly white.
    shades = sns.light_palette(figure_style.COLOURS[0], len(hues) + 1)[1:]
    columns = figure_style.columns_of(rows["panel"].nunique(), MAX_COLUMNS)
    is_share = figure.drawing is not None and figure.drawing.value == "efficiency"
    grid = sns.catplot(
        rows[rows["is_own"]], kind="bar", x="across_name", y="y", order=order, col="panel",
        col_wrap=columns, hue="other_name", hue_order=hues, palette=shades, legend=False,
        saturation=1, errorbar=None, sharey=True, width=BAR_WIDTH,
    )  # fmt: skip
    grid.set_titles("{col_name}")
    for panel, axis in grid.axes_dict.items():
        for bars, name in zip(axis.containers, names, strict=True):
            bars.patches[0].set_label(name)
        # Draw references in the middle of their bars. Seaborn divides the width of the bars at one position by
        # their number.
        others = rows[rows["panel"].eq(panel) & ~rows["is_own"]]
        middles = (others["other_name"].map(hues.index) + 0.5) / len(hues) - 0.5
        places = others["across_name"].map(order.index) + BAR_WIDTH * middles
        figure_style.scatter(axis, others.assign(x=places), "program", looks)
        if len(hues) * len(order) <= MOST_WITH_VALUES:
            for bars in axis.containers:
                axis.bar_label(
                    bars, fmt=partial(significant, digits=2), fontsize=figure_style.SMALL
                )
        if is_share:
            axis.axhline(100, label="limit", **figure_style.LIMIT)
    figure_style.finish(grid, labels, columns, LAYOUT_HEIGHT)
    figure_style.scale_values(list(grid.axes.flat), is_shared=True)
    figure_style.legend(grid.figure)
    drawn: Figure = grid.figure
    return drawn


def named_rows(figure: Picture, across: str, other: str) -> pd.DataFrame:
    """Return the rows of a figure with the columns for their axis, panels and legend.

    - ``across``, ``across_name``: number of the row on the horizontal axis, and its text.
    - ``other_place``, ``other_name``: number in the column ``other``, and its text.
    - ``label``: the workload.
    - ``full_name``: the workload with the variant and the node.

    Args:
        figure: figure of the rows.
        across: column of the horizontal axis: ``block_bytes`` or ``concurrency``.
        other: the other one of these two columns.
    """
    names = []
    for row in schema.lines(figure.rows):
        labels = figure.labels(row)
        across_name, other_name = labels.block(row), labels.many(row.concurrency)
        if across == "concurrency":
            across_name, other_name = str(row.concurrency), labels.block(row)
        names.append(
            {
                "across": getattr(row, across) or 0,
                "across_name": across_name,
                "other_place": getattr(row, other) or 0,
                "other_name": other_name,
                "label": labels.workload(row),
                "full_name": full_name(labels, row),
            }
        )
    named = figure.rows.join(pd.DataFrame(names, index=figure.rows.index))
    # A layout may write one size in two ways: a number on the axis or in the legend has the text of its first row.
    for place, name in (("across", "across_name"), ("other_place", "other_name")):
        named[name] = named.groupby(place)[name].transform("first")
    return named


def variant_name(table: Table, variant: str) -> str:
    """Return the name of a row's variant in figures; empty for the usual variant."""
    label = table.variant_label(variant)
    # A label such as "psync, 4 nodes" becomes "4 nodes": psync is the default engine of a disk.
    return VARIANTS.get(label, label.removeprefix("psync, "))


def full_name(labels: Labels, row: Line) -> str:
    """Return the workload of a row, with the variant of a memory row and the node if it has a name.

    Only memory measures one workload in several variants (working sets), which must be distinguished.
    The variant ``pool`` is the usual one and is not named.
    """
    parts = [labels.workload(row)]
    if labels.table.subsystem == "memory" and row.variant not in ("", "pool"):
        parts.append(row.variant)
    if row.node != "any":
        parts.append(row.node)
    return ", ".join(parts)


def add_panels(rows: pd.DataFrame, figure: Picture, kind: str) -> pd.DataFrame:
    """Add the columns ``panel`` and ``line``, which the docstring of this module explains.

    If the horizontal axis shows block sizes, ``other_place`` (see ``named_rows``) is the number of
    threads, and vice versa. Each value of ``other_place`` has its own panels, or its own dashes if
    there would be more than ``MAX_PANELS`` panels. In bars it has its own shade.
    """
    distinct = rows[["full_name", "other_place"]].drop_duplicates()
    workloads = distinct["full_name"].nunique()
    is_dashed = kind == "panels" and workloads > 1 and len(distinct) > MAX_PANELS
    is_split = kind != "bars" and len(distinct) > workloads and not is_dashed
    # Lines of panels are as long as possible: the workloads side by side if there are more of them than panels of each
    # workload, otherwise the panels of a workload.
    rows = rows.assign(workload_place=pd.factorize(rows["full_name"])[0])
    places = ["workload_place"]
    if is_split and (kind == "together" or workloads >= len(distinct) / workloads):
        places = ["other_place", "workload_place"]
    # Join the texts that distinguish panels.
    parts = []
    if kind != "together":
        parts.append(rows["label"])
    if is_split:
        parts.append(rows["other_name"])
    if kind != "together" and figure.table.variant and rows["variant"].nunique() > 1:
        parts.append(rows["variant"].map(partial(variant_name, figure.table)))
    if kind != "together" and rows["node"].nunique() > 1:
        parts.append(rows["node"])
    panels = [", ".join(filter(None, each)) for each in zip(*parts, strict=True)]
    lines = rows["other_name"] if is_dashed else ""
    # A single panel may have no title.
    return rows.assign(panel=panels or "", line=lines, panel_place=rows.groupby(places).ngroup())


def scale_places(axes: Mapping[str, Axes], rows: pd.DataFrame) -> None:
    """Scale horizontal axes logarithmically, and label them with a few of the block sizes or thread counts."""
    names = dict(zip(rows["across"], rows["across_name"], strict=True))
    letters = max(len(name) for name in names.values())
    for axis in axes.values():
        axis.set_xscale("log", base=2)
        axis.margins(x=0.1)
        axis.xaxis.set_major_locator(FixedLocator(sorted(names), MAX_LETTERS // letters))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda place, _: names.get(place, "")))


def label_across(table: Table, across: str) -> str:
    """Return the label of the horizontal axis, which shows the column ``across`` of the rows."""
    if across == "concurrency":
        return f"{capitalised(Labels(table).noun)}s"
    return "Area walked" if table.name == "memory_latency" else "Block size"
