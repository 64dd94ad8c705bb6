"""Which figures a campaign has, drawn as SVG and PNG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark import files
from peakmark.analysis import ratios
from peakmark.analysis.analysis import Analysis
from peakmark.analysis.label_formatter import LabelFormatter, quantity
from peakmark.analysis.row import Row
from peakmark.analysis.verdict import with_limit
from peakmark.figures import (
    curves,
    dots,
    layout_figures,
    matrices,
    panels,
    percentiles,
    roofline,
    style,
)
from peakmark.figures.selection import Drawn, figures_of
from peakmark.formatting import percent
from peakmark.plan.pairs import Behind
from peakmark.tools.tables import TABLES

PLOTS = {
    "core_to_core": matrices.plot,
    "numa_latency": matrices.plot,
    "numa_throughput": matrices.plot,
    "ladder_latency": curves.plot_ladder,
    "ladder_throughput": curves.plot_ladder,
    "loaded_latency": curves.plot_loaded,
}
"""Metric -> what draws the matrices or curves of its table."""
OVERVIEW, FLEET = "overview", "fleet"
MOST_TICKS = 20
FARTHEST = 1.5  # a reference's share beyond it leaves the overview to the right; every repetition of our own is shown


def build(campaign: Path | Analysis) -> list[Path]:
    """Write the figures of a campaign as SVG and PNG.

    These are ``figures/overview``, of several nodes ``figures/fleet``, and those of
    ``selection.figures_of``. A table without a measurement has no figure. Equal records give equal
    bytes; figures of an earlier run stay.

    Returns:
        The paths written.

    Raises:
        PeakmarkError: the folder holds no campaign.
        RecordError: a record is damaged.
    """
    analysis = Analysis.of(campaign)
    rows, many = analysis.rows, analysis.is_fleet
    folder = files.made_folder(analysis.results.directory, "figures")
    style.begin()
    written = []
    layout = None if many else analysis.layout
    first = (OVERVIEW, overview(rows))
    if analysis.has_several_nodes:
        first = (FLEET, dots.overview(rows))
    drawn = (
        (drawing.name, _draw(drawing, many, analysis.behind))
        for table in TABLES
        for drawing in figures_of(table, rows, layout)
    )
    for name, figure in (first, *drawn):
        if figure is not None:
            written += style.save(figure, folder, name, analysis.mark)
    return written


def _draw(drawn: Drawn, many: bool, behind: Behind) -> Figure | None:
    """``behind``: what the nodes of pairs share."""
    if not drawn.rows:
        return None
    if drawn.name == roofline.NAME:
        return roofline.plot(drawn.rows)
    table = drawn.rows[0].table
    if drawn.name.endswith("_links"):
        return matrices.plot_links(table, drawn.rows, behind)
    if many:
        return dots.plot(table, drawn.rows)
    if table.metric in PLOTS:
        return PLOTS[table.metric](table, drawn.rows)
    if drawn.name.endswith("_percentiles"):
        return percentiles.plot(drawn.rows[0].table, drawn.rows)
    if drawn.drawing is None or drawn.drawing.kind == "panels":
        return panels.plot(drawn.rows[0].table, drawn.rows)
    return (
        layout_figures.plot_combined
        if drawn.drawing.kind == "together"
        else layout_figures.plot_bars
    )(drawn.drawing, drawn.rows)


def overview(rows: Mapping[str, Sequence[Row]]) -> Figure | None:
    """The headline row of each resource as a share of its limit, None where no limit is known.

    A resource without a limit has no bar: a share of something else would be read as one of the
    limit.
    """
    chosen = with_limit(rows)
    if not chosen:
        return None
    figure = style.figure(6.85, 0.48 * len(chosen) + 0.45)
    axis = figure.subplots()
    far = max(1.0, *(_bar(axis, position, row) for position, (_, row) in enumerate(chosen)))
    axis.set_yticks(range(len(chosen)), [title for title, _ in chosen], fontweight="bold")
    axis.tick_params(axis="y", length=0, labelsize=8)
    axis.set_ylim(len(chosen) - 0.5, -0.55)
    axis.set_xlim(0, far * 1.04)
    step = 0.2 * max(1, math.ceil(far / 0.2 / MOST_TICKS))
    ticks = [step * number for number in range(int(far / step + 1e-9) + 1)]
    axis.set_xticks(ticks, [f"{100 * tick:.0f}" for tick in ticks])
    axis.set_xlabel("% of the limit")
    axis.grid(axis="x")
    axis.grid(False, axis="y")
    sns.despine(ax=axis, left=True)
    return figure


def _bar(axis: Axes, position: int, row: Row) -> float:
    """Own repetitions as a bar and dots, best reference as an open mark, both in words; returns the
    rightmost share.
    """
    own, reference, limit = row.measured, ratios.best(row), row.limit.value
    point = LabelFormatter.of(row).point(row)
    if limit is None:
        raise ValueError(f"{point} has no limit to be a share of")
    share = own.centre / limit
    axis.barh(
        position + 0.14, share, height=0.34, facecolor=style.look(0).colour, linewidth=0.8, zorder=2
    )
    axis.scatter(
        [value / limit for value in own.values],
        [position + 0.14] * own.summary.n,
        s=7,
        color=style.INK,
        zorder=4,
    )
    disturbed = [value / limit for value in own.disturbed]
    style.left_out(axis, disturbed, [position + 0.14] * len(disturbed))
    caption = f"{point}: {row.table.own.heading} {percent(share)} %"
    ends = [position - 0.1, position + 0.38]
    axis.plot([1, 1], ends, color="white", linewidth=3.4, zorder=4.8)
    axis.plot([1, 1], ends, color=style.LIMIT, linewidth=1.6, zorder=5)
    axis.annotate(
        "limit", (1.0, position + 0.14), xytext=(3, 0), textcoords="offset points", va="center", fontsize=style.SMALL,
        zorder=6, color="white" if share > 1.02 else style.INK,
    )  # fmt: skip
    far = max(own.values) / limit
    if reference is not None:
        _, heading, series = reference
        theirs = series.centre / limit
        far = max(far, min(theirs, FARTHEST))
        look = style.look(1)
        axis.scatter(
            [theirs], [position + 0.14], s=42, marker=look.marker, facecolor="white", edgecolor=look.colour,
            linewidth=1.4, zorder=3,
        )  # fmt: skip
        caption += f", {heading} {percent(theirs)} %"
    caption += f" of {quantity(row.table, limit)}"
    axis.annotate(caption, (0, position - 0.2), xytext=(2, 0), textcoords="offset points", va="center", fontsize=style.SMALL,
                  bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}, zorder=5)  # fmt: skip
    return far
