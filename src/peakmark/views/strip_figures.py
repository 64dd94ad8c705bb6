"""Rows as lines of marks: a dot in the round's colour for each run, and an open mark for each reference.

A figure is drawn from a frame with a line for each mark:

name     label of the row
panel    number of the column of rows in which it stands
place    position in this column, from 0 at the top
kind     bar, median, limit, reference, run or left out (a run that does not count)
program  heading of the program
round    round of a run, from 1
x        value on the axis
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from peakmark.formatting import percent, significant
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.views import figure_style
from peakmark.views.figure_data import FigureData
from peakmark.views.figure_style import Look
from peakmark.views.panel_figures import HOLLOW, scatter, variant_name
from peakmark.views.points import Line

HEIGHT, AXIS = 0.13, 0.2
"""Height of a row, and of the numbers of the axis, in inches."""
COLUMN = 26
"""Largest number of rows in a column, unless the rows would then need more columns than ``WIDTHS`` has."""
WIDTHS = {1: 0.5, 2: 0.41, 3: 0.28}
"""Number of columns -> width of each column, as a share of the page's width."""
SPREAD = 0.5
"""Height over which the runs of a row are spread, as a share of the row's height."""
ROUNDS, LIGHTEST = "viridis", 0.85
"""Colour map of the rounds, and the last round's place in it: early rounds are dark, also in grey print."""
MARGIN = 1.06
"""End of a linear axis, as a multiple of the highest value."""
ROOM = 0.04
"""Room for the marks at each end of an axis that does not begin at zero, as a share of its data."""
LONG = 10_000
"""Number from which on there is room for only ``FEW_TICKS`` intervals on an axis."""
FEW_TICKS = 4
WIDE = 3
"""The axis of ratios is logarithmic if the highest ratio is above this multiple of the lowest."""
DENSE = 100
"""A logarithmic axis has numbers at 2 and 5 too if its highest value is below this multiple of the lowest."""
BAR = "#cfe2ef"
MARKS = ("name", "panel", "place", "kind", "program", "round", "x")
"""Columns of the frame from which a figure is drawn."""


# -- figures


def plot_shares(figure: FigureData) -> Figure:
    """Draw a bar for each row: the share of the limit that the row's median reaches."""
    rows = named_rows(figure)
    own = rows[rows["is_own"]]
    runs = runs_of(figure, own)
    shares = runs["value"] / runs["point"].map(own.set_index("point")["limit"])
    if figure.table.lower_is_better:
        shares = 1 / shares
    layers = [
        own.assign(kind="bar", x=100 * own["efficiency"]),
        references_of(rows).assign(x=100 * rows["efficiency"]),
        runs.assign(x=100 * shares),
    ]
    drawn, axes = draw(figure, join_layers(layers), "% of the limit")
    for number, axis in axes.items():
        axis.axvline(100, **figure_style.LIMIT)
        axis.set_xlim(0, MARGIN * max(100, axis.dataLim.xmax))
        bars = own[own["panel"].eq(number)]
        for place, share in zip(bars["place"], bars["efficiency"], strict=True):
            axis.text(
                1.02, place, f"{percent(share)} %", transform=axis.get_yaxis_transform(),
                fontsize=figure_style.SMALL, va="center",
            )  # fmt: skip
    return drawn


def plot_rounds(figure: FigureData) -> Figure:
    """Draw the runs and the median of each row, and its limit if it is known."""
    rows = named_rows(figure)
    own = rows[rows["is_own"]]
    layers = [
        own.assign(kind="median", x=own["value"]),
        own.assign(kind="limit", x=own["limit"]),
        references_of(rows).assign(x=rows["value"]),
        runs_of(figure, own).assign(x=lambda runs: runs["value"]),
    ]
    shown = join_layers(layers)
    shown["x"] *= figure.table.factor
    drawn, axes = draw(figure, shown, figure_style.vertical_label(figure.table))
    for axis in axes.values():
        scale(axis, shown["x"])
    return drawn


# -- the frame


def join_layers(layers: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return layers of marks as one frame, without the dozens of columns that no figure needs."""
    return pd.concat([layer.filter(MARKS) for layer in layers], ignore_index=True)


def named_rows(figure: FigureData) -> pd.DataFrame:
    """Return the rows of a figure with ``name``, ``panel`` and ``place`` of their points."""
    rows = figure.rows
    has_variants = bool(figure.table.variant) and rows["variant"].nunique() > 1
    names: dict[str, str] = {}
    is_short = rows["point"].nunique() > COLUMN
    for row in schema.lines(rows):
        names.setdefault(row.point, name_of(figure.labels(row), row, has_variants, is_short))
    return in_columns(rows.assign(name=rows["point"].map(names)), rows["point"])


def in_columns(rows: pd.DataFrame, keys: pd.Series) -> pd.DataFrame:
    """Return rows with ``panel`` and ``place``; rows with the same key have the same place."""
    numbers, distinct = pd.factorize(keys)
    columns = min(math.ceil(len(distinct) / COLUMN), len(WIDTHS))
    length = math.ceil(len(distinct) / columns)
    return rows.assign(panel=numbers // length, place=numbers % length)


def name_of(labels: Labels, row: Line, has_variants: bool, is_short: bool) -> str:
    """Return ``RWS 1 MiB, 2 threads`` or, if short, ``RWS 1 MiB, ×2``; a named node is added."""
    words = [labels.workload(row), labels.block(row)]
    if has_variants:
        words.insert(1, variant_name(labels.table, row.variant))
    parts = [" ".join(filter(None, words)), row.concurrency_word]
    if row.concurrency:
        parts[1] = f"×{row.concurrency}" if is_short else labels.many(row.concurrency)
    if row.node != "any":
        parts.append(row.node)
    return ", ".join(filter(None, parts))


def references_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the marks of references, without their place on the axis."""
    return rows[~rows["is_own"]].assign(kind="reference")


def runs_of(figure: FigureData, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the marks of the runs of rows, without their place on the axis.

    Runs that were disturbed and measured again are included; runs above the limit are not.
    """
    runs = figure.runs[figure.runs["kept"] | figure.runs["disturbed"].ne("")]
    kind = runs["kept"].map({True: "run", False: "left out"})
    runs = runs[["point", "instrument", "value", "kept"]].assign(
        kind=kind, round=runs["repetition"] + 1
    )
    names = rows[["point", "instrument", "program", "name", "panel", "place"]]
    return runs.merge(names, on=["point", "instrument"])


# -- the drawing


def draw(figure: FigureData, shown: pd.DataFrame, label: str) -> tuple[Figure, Mapping[int, Axes]]:
    """Draw the marks of rows in columns, and a legend of the references.

    Args:
        figure: figure whose programs are named in the legend.
        shown: a frame as the docstring of this module describes it; marks without ``x`` are left out.
        label: label of the horizontal axis.

    Returns:
        The figure, and number of a column -> its axes.
    """
    shown = shown.dropna(subset="x")
    shown = shown.assign(text=texts_of(shown, label))
    columns = int(shown["panel"].nunique())
    length = int(shown["place"].max()) + 1
    panel = WIDTHS[columns], HEIGHT * length + AXIS
    grid = figure_style.facets(shown, panel, most=columns, sharex=True)
    figure_style.label_axes(grid, (label, ""))
    looks = {}
    for place, program in enumerate(figure.table.series):
        looks[program.heading] = figure_style.look(place, is_open=place > 0)
    colours = colours_of(shown)
    for number, axis in grid.axes_dict.items():
        of_column = shown[shown["panel"].eq(number)]
        named = of_column.drop_duplicates("place")
        axis.set_title("")
        axis.set_yticks(named["place"], named["name"])
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(length - 0.4, -0.6)
        axis.grid(True, axis="both")
        sns.despine(ax=axis, left=True)
        draw_marks(axis, of_column, looks, colours)
    # The caption explains the other marks.
    measured = set(shown.loc[shown["kind"].eq("reference"), "program"])
    entries = [mark_entry(name, look) for name, look in looks.items() if name in measured]
    if entries:
        figure_style.legend(grid.figure, entries)
    return grid.figure, grid.axes_dict


def texts_of(shown: pd.DataFrame, label: str) -> list[str]:
    """Return the text of each mark: the row, the round or program, and the value."""
    texts = []
    for mark in schema.lines(shown):
        which = mark.program if mark.kind == "reference" else mark.kind
        if mark.kind == "run":
            which = f"round {mark.round:.0f}"
        texts.append(f"{mark.name}, {which}, {label}: {significant(mark.x)}")
    return texts


def colours_of(shown: pd.DataFrame) -> dict[int, Any]:
    """Return round -> its colour."""
    rounds = sorted(shown["round"].dropna().astype(int).unique())
    colours = sns.color_palette(ROUNDS, as_cmap=True)(np.linspace(0, LIGHTEST, len(rounds)))
    return dict(zip(rounds, colours, strict=True))


def draw_marks(
    axis: Axes, shown: pd.DataFrame, looks: Mapping[str, Look], colours: Mapping[int, Any]
) -> None:
    """Draw the marks of a column of rows."""
    of_kind = {str(kind): marks.assign(y=marks["place"]) for kind, marks in shown.groupby("kind")}
    if "bar" in of_kind:
        bars = of_kind["bar"]
        axis.barh(bars["y"], bars["x"], height=0.72, color=BAR, linewidth=0)
    if "median" in of_kind:
        medians = of_kind["median"]
        axis.vlines(medians["x"], medians["y"] - 0.3, medians["y"] + 0.3, color=figure_style.INK)
    if "limit" in of_kind:
        limits = of_kind["limit"]
        low, high = limits["y"] - 0.4, limits["y"] + 0.4
        axis.vlines(limits["x"], low, high, color=figure_style.INK, linestyles="dashed")
    for program, marks in shown[shown["kind"].eq("reference")].groupby("program"):
        scatter(axis, marks.assign(y=marks["place"]), looks[str(program)], size=16)
    runs = shown[shown["kind"].isin(["run", "left out"])]
    # The first round of a row is drawn highest.
    runs = runs.assign(y=runs["place"] + SPREAD * ((runs["round"] - 0.5) / len(colours) - 0.5))
    for number, marks in runs[runs["kind"].eq("run")].groupby("round"):
        colour = colours[int(str(number))]
        scatter(axis, marks, Look(colour, "o", colour), size=7)
    left_out = runs[runs["kind"].eq("left out")]
    if len(left_out):
        scatter(axis, left_out, HOLLOW)


def scale(axis: Axes, values: pd.Series) -> None:
    """Scale a horizontal axis: from zero, or logarithmically if the values span too much."""
    lowest, highest = values.min(), values.max()
    if lowest * figure_style.SPAN <= highest:
        scale_by_ratios(axis, lowest, highest)
        return
    axis.set_xlim(0, MARGIN * highest)
    axis.xaxis.set_major_formatter(figure_style.NUMBER)
    if highest >= LONG:
        axis.xaxis.set_major_locator(MaxNLocator(FEW_TICKS))


def scale_by_ratios(axis: Axes, lowest: float, highest: float) -> None:
    """Scale a horizontal axis logarithmically, with room for the marks at both ends."""
    room = (highest / lowest) ** ROOM
    axis.set_xscale("log")
    axis.set_xlim(lowest / room, highest * room)
    steps = (1, 2, 5) if highest < DENSE * lowest else (1,)
    axis.xaxis.set_major_locator(LogLocator(subs=steps, numticks=figure_style.MAX_TICKS))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(figure_style.NUMBER)


def mark_entry(name: str, look: Look) -> Line2D:
    """Return the entry of a mark in the legend."""
    return Line2D(
        [], [], color=look.colour, marker=look.marker, markerfacecolor=look.face, markersize=4,
        linestyle="none", label=name,
    )  # fmt: skip
