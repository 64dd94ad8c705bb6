"""Which figures a campaign has and which rows each shows: the usual ones, or those that the layout
asks for; drawn as SVG and PNG.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from peakmark import files
from peakmark.analysis import Analysis, comparisons, fleet, links, shapes
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row, Rows
from peakmark.analysis.verdict import with_limit
from peakmark.config.layouts import Drawing, Layout
from peakmark.figures import curves, panels, style
from peakmark.formatting import percent
from peakmark.messages import captions, message
from peakmark.plan.cluster import Behind
from peakmark.tools.tables import TABLES, Table

PLOTS = {
    "core_to_core": curves.plot_matrices,
    "numa_latency": curves.plot_matrices,
    "numa_throughput": curves.plot_matrices,
    "ladder_latency": curves.plot_ladder,
    "ladder_throughput": curves.plot_ladder,
    "loaded_latency": curves.plot_loaded,
}
"""Metric -> what draws the matrices or curves of its table."""
OVERVIEW, FLEET = "overview", "fleet"
FARTHEST = 1.5  # share of the limit at which references beyond it are drawn


@dataclass(frozen=True)
class Drawn:
    """A figure's name and the measured rows it shows; ``drawing`` is what the layout says of it,
    None for a usual one.
    """

    name: str
    rows: tuple[Row, ...]
    drawing: Drawing | None = None


def _has_percentiles(row: Row) -> bool:
    return row.own is not None and row.own.percentile("p50") is not None


PARTS: dict[str, Callable[[Row], bool]] = {
    "": lambda row: not row.is_pair,
    "_pool": lambda row: row.key.variant != "block",
    "_block": lambda row: row.key.variant == "block",
    "_percentiles": _has_percentiles,
    "_links": links.is_mapped,
}
"""What follows the table's name in that of a figure -> the rows that the figure shows."""


def figures_of(table: Table, rows: Rows, layout: Layout | None = None) -> list[Drawn]:
    """The table's figures: the usual ones, or those that a layout names of the table. One without
    rows is there and empty.
    """
    measured = [row for row in rows[table.name] if row.series]
    drawings = layout.drawings if layout else ()
    drawn = [
        Drawn(drawing.name, tuple(row for row in measured if _fits(drawing, row)), drawing)
        for drawing in drawings
        if drawing.table.name == table.name
    ]
    if drawn:
        return drawn
    is_many = len({row.key.node for row in measured}) > fleet.MANY
    if table.metric == "core_to_core" and not shapes.matrices(measured):
        measured = []
    for part, is_shown in PARTS.items():
        name = f"{table.name}{part}"
        if name in captions():
            shown = () if is_many and part == "_percentiles" else filter(is_shown, measured)
            drawn.append(Drawn(name, tuple(shown)))
    if table.name == curves.LADDER:
        drawn.append(Drawn(curves.ROOFLINE, tuple(curves.roofs(rows))))
    return drawn


def _fits(drawing: Drawing, row: Row) -> bool:
    """Whether the row belongs into the figure and has what the figure shows."""
    if not drawing.takes(row.key.workload, row.key.variant):
        return False
    if drawing.kind == "panels":
        return True
    return row.own is not None and panels.value_of(drawing.value, row, row.own) is not None


def without_rows(drawing: Drawing) -> str:
    """Why a figure of the layout is not there, in a sentence."""
    reason = {
        "efficiency": "no row has a known limit",
        "deviation": "no row was measured more than once",
        "measured": "nothing was measured for it",
    }[drawing.value]
    return f"No figure “{drawing.title}”: {reason}"


def caption(name: str, noun: str = "nodes") -> str:
    """The caption of a figure, on one line; ``noun``: what its dots are."""
    return f"{message('caption', case=name, noun=noun).fact}."


def build(campaign: Path | Analysis) -> list[Path]:
    """Write the figures of a campaign as SVG and PNG.

    These are ``figures/overview``, of several nodes ``figures/fleet``, and those of
    ``figures_of``. A table without a measurement has no figure. Equal records give equal
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
        first = (FLEET, curves.plot_fleet(rows))
    drawn = (
        (drawing.name, _draw(drawing, many, analysis.behind))
        for table in TABLES
        for drawing in figures_of(table, rows, layout)
    )
    for name, figure in (first, *drawn):
        if figure is not None:
            written += style.save(figure, folder, name, analysis.results.mark)
    return written


def _draw(drawn: Drawn, many: bool, behind: Behind) -> Figure | None:
    """``behind``: what the nodes of pairs share."""
    if not drawn.rows:
        return None
    if drawn.name == curves.ROOFLINE:
        return curves.plot_roofline(drawn.rows)
    table = drawn.rows[0].table
    if drawn.name.endswith("_links"):
        return curves.plot_links(table, drawn.rows, behind)
    if many:
        return curves.plot_nodes(drawn.rows)
    if table.metric in PLOTS:
        return PLOTS[table.metric](table, drawn.rows)
    if drawn.name.endswith("_percentiles"):
        return panels.plot_percentiles(table, drawn.rows)
    return panels.plot(table, drawn.rows, drawn.drawing)


def overview(rows: Rows) -> Figure | None:
    """The headline row of each resource as a share of its limit, None where no limit is known.

    A resource without a limit has no bar: a share of something else would be read as one of the
    limit.
    """
    chosen = with_limit(rows)
    if not chosen:
        return None
    figure, axis = style.named_lines([title for title, _ in chosen], style.WIDTH, 0.48)
    for position, (_, row) in enumerate(chosen):
        _draw_shares(axis, position, row)
    axis.set_xlim(0)
    axis.xaxis.set_major_formatter(PercentFormatter(1, symbol=None))
    axis.set_xlabel("% of the limit")
    axis.axvline(1, color=style.INK, linewidth=1.6, zorder=5)
    return figure


def _draw_shares(axis: Axes, position: int, row: Row) -> None:
    """Own repetitions as a bar and dots, best reference as an open mark, both in words."""
    own, reference, limit = row.measured, comparisons.best_reference(row), row.limit.value or 1.0
    height, share = position + 0.14, own.centre / limit
    axis.barh(height, share, height=0.34, facecolor=style.look(0).colour, zorder=2)
    for values, size, face in ((own.values, 7, style.INK), (own.disturbed, 13, "none")):
        axis.scatter(np.divide(values, limit), [height] * len(values), s=size, facecolor=face,
                     edgecolor=style.INK, linewidth=0.6, zorder=4)  # fmt: skip
    point = LabelFormatter.of(row).point(row)
    caption = f"{point}: {row.table.own.heading} {percent(share)} %"
    if reference is not None:
        program, series = reference
        theirs, look = series.centre / limit, style.look(1, is_open=True)
        axis.scatter(min(theirs, FARTHEST), height, s=42, marker=look.marker, facecolor=look.face,
                     edgecolor=look.colour, linewidth=1.4, zorder=3)  # fmt: skip
        caption += f", {program.heading} {percent(theirs)} %"
    caption += f" of {LabelFormatter(row.table).quantity(limit)}"
    axis.annotate(caption, (0, position - 0.2), xytext=(2, 0), textcoords="offset points", va="center", fontsize=style.SMALL,
                  bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}, zorder=6)  # fmt: skip
