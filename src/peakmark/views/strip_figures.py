"""Rows as lines of marks: a dot for each run and each reference, above a bar or a tick for the median."""

from __future__ import annotations

import math

import pandas as pd
import seaborn as sns
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from peakmark.formatting import significant
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.views import figure_style
from peakmark.views.panel_figures import variant_name
from peakmark.views.points import Line
from peakmark.views.report.pictures import FigureData, has_limits

HEIGHT, AXIS = 0.13, 0.2
"""Height of a row, and of the numbers of the axis, in inches."""
STEPS = (1, 2, 2.5, 5, 10)
"""Multiples of powers of ten between the numbers of a linear axis."""
FEW_TICKS = 4
"""Largest number of intervals on a linear axis."""
COLUMN = 26
"""Largest number of rows in a column, unless there would be more than ``MOST_COLUMNS``."""
MOST_COLUMNS = 3
ROUNDS = "viridis_r"
"""Colour map of the rounds: the last one is dark, also in grey print."""
MARGIN = 1.06
"""End of a linear axis, as a multiple of the highest value."""
BAR = "#cfe2ef"


def plot_strip(figure: FigureData) -> Figure:
    """Draw the runs, the median and the references of each row.

    The axis is the share of the limit if all rows have one, and the value otherwise.
    """
    rows = named_rows(figure)
    own = rows[rows["is_own"]]
    has_shares = has_limits(rows)
    runs = runs_of(figure, own)
    label = figure_style.vertical_label(figure.table)
    column, values = "value", runs["value"] * figure.table.factor
    factor = figure.table.factor
    if has_shares:
        label, column, factor = "% of the limit", "efficiency", 100.0
        shares = runs["value"] / runs["point"].map(own.set_index("point")["limit"])
        values = 100 * (1 / shares if figure.table.lower_is_better else shares)
    rows = rows.assign(x=rows[column] * factor, kind=rows["program"]).dropna(subset="x")
    shown = pd.concat([rows, runs.assign(x=values, is_own=True)], ignore_index=True)
    return draw(figure, shown.assign(text=texts_of(shown, label)), label, has_shares)


def draw(figure: FigureData, shown: pd.DataFrame, label: str, has_shares: bool) -> Figure:
    """Draw the marks of rows in columns, with a legend of the references.

    Args:
        figure: figure whose programs are named in the legend.
        shown: the marks, with ``name`` of the row, ``panel``, ``place``, ``kind`` (run, left out, or the
            program of a median), ``round``, ``x`` and ``text``.
        label: label of the horizontal axis.
        has_shares: whether the axis has shares of the limit.
    """
    columns = int(shown["panel"].nunique())
    length = int(shown["place"].max()) + 1
    looks = figure_style.looks_of(figure.table)
    runs = shown[shown["kind"].eq("run")]
    colours = sns.color_palette(ROUNDS, int(runs["round"].max()))
    grid = sns.FacetGrid(shown, col="panel", sharex=True, sharey=False)
    for number, axis in grid.axes_dict.items():
        of_column = shown[shown["panel"].eq(number)].assign(y=lambda marks: marks["place"])
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
        for each, dots in of_column[of_column["kind"].eq("run")].groupby("round"):
            colour = colours[int(str(each)) - 1]
            look = figure_style.Look(to_hex(colour), "o", to_hex(colour))
            figure_style.scatter(axis, dots, "kind", {"run": look})
        left_out = of_column[of_column["kind"].eq("left out")]
        figure_style.scatter(axis, left_out, "kind", {"left out": figure_style.HOLLOW})
        named = of_column.drop_duplicates("place")
        axis.set(title="", ylim=(length - 0.4, -0.6))
        axis.set_yticks(named["place"], named["name"])
        axis.tick_params(axis="y", length=0)
        axis.grid(True, axis="both")
        sns.despine(ax=axis, left=True)
    scale(grid, shown["x"], 100.0 if has_shares else 0.0)
    figure_style.finish(grid, (label, ""), columns, HEIGHT * length + AXIS, share=0.42)
    # The caption explains the other marks.
    measured = set(shown["kind"]) - {figure.table.own.heading}
    named_looks = {name: each for name, each in looks.items() if name in measured}
    if named_looks:
        entries = figure_style.entries_of(named_looks, is_joined=False)
        figure_style.legend(grid.figure, entries)
    drawn: Figure = grid.figure
    return drawn


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
    columns = min(math.ceil(len(distinct) / COLUMN), MOST_COLUMNS)
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


def scale(grid: sns.FacetGrid, values: pd.Series, least: float) -> None:
    """Scale the horizontal axes: from zero, or logarithmically if the values span too much.

    ``least`` is the lowest end of an axis, which then begins at zero; 0 if there is none.
    """
    lowest, highest = values.min(), values.max()
    for axis in grid.axes.flat:
        if least == 0 and lowest * figure_style.SPAN <= highest:
            steps = figure_style.steps_of(lowest, highest)
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(LogLocator(subs=steps, numticks=figure_style.MAX_TICKS))
            axis.xaxis.set_minor_locator(NullLocator())
        else:
            axis.set_xlim(0, MARGIN * max(least, highest))
            axis.xaxis.set_major_locator(MaxNLocator(FEW_TICKS, steps=STEPS))
        axis.xaxis.set_major_formatter(figure_style.NUMBER)


def texts_of(shown: pd.DataFrame, label: str) -> list[str]:
    """Return the text of each mark: the row, the round or program, and the value."""
    texts = []
    for mark in schema.lines(shown):
        which = f"round {mark.round:.0f}" if mark.kind == "run" else mark.kind
        texts.append(f"{mark.name}, {which}, {label}: {significant(mark.x)}")
    return texts
