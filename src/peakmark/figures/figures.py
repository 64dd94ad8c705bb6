"""Which figures a campaign has and which rows each shows: the usual ones, or those that the layout
asks for; drawn as SVG and PNG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from peakmark import files
from peakmark.analysis import Analysis, comparisons, fleet, links, shapes
from peakmark.analysis.label_formatter import LabelFormatter, quantity
from peakmark.analysis.row import Row, Rows
from peakmark.analysis.verdict import with_limit
from peakmark.catalogue import SHAPES
from peakmark.config.layouts import Drawing, Layout
from peakmark.figures import curves, dots, panels, style
from peakmark.formatting import percent
from peakmark.plan.pairs import Behind
from peakmark.tables.columns import has_percentiles
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
FARTHEST = 1.5  # a reference's share beyond it leaves the overview to the right; every repetition of our own is shown


@dataclass(frozen=True)
class Drawn:
    """A figure's name and the measured rows it shows; ``drawing`` is what the layout says of it,
    None for a usual one.
    """

    name: str
    rows: tuple[Row, ...]
    drawing: Drawing | None = None


def figures_of(table: Table, rows: Rows, layout: Layout | None = None) -> list[Drawn]:
    """The table's figures. DRAM and caches are figures of their own, and so are workloads that a
    layout prints in tables of their own; a layout that names figures of the table has those and
    no others. One without rows is there and empty.
    """
    measured = [row for row in rows[table.name] if row.series]
    asked = (
        [drawing for drawing in layout.drawings if drawing.table.name == table.name]
        if layout
        else []
    )
    if asked:
        return [
            Drawn(drawing.name, tuple(row for row in measured if _fits(drawing, row)), drawing)
            for drawing in asked
        ]
    if table.metric in SHAPES.values():
        drawn = [Drawn(table.name, tuple(measured) if _is_drawn(table, measured) else ())]
        if table.name == curves.LADDER:
            drawn.append(Drawn(curves.ROOFLINE, tuple(curves.roofs(rows))))
        return drawn
    if table.name == "memory_throughput":
        return [
            Drawn(
                f"{table.name}_pool", tuple(row for row in measured if row.key.variant != "block")
            ),
            Drawn(
                f"{table.name}_block", tuple(row for row in measured if row.key.variant == "block")
            ),
        ]
    alone = [row.layout_table.workloads if row.layout_table else () for row in measured]
    if len(set(alone)) > 1 and all(len(workloads) == 1 for workloads in alone):
        names = dict.fromkeys(row.key.workload for row in measured)
        return [
            Drawn(
                f"{table.name}_{name}", tuple(row for row in measured if row.key.workload == name)
            )
            for name in names
        ] + _percentiles(table, measured)
    single = tuple(row for row in measured if not row.is_pair)
    drawn = [Drawn(table.name, single), *_percentiles(table, measured)]
    if table.subsystem == "network":
        drawn.append(Drawn(f"{table.name}_links", tuple(filter(links.is_mapped, measured))))
    return drawn


def _is_drawn(table: Table, rows: Sequence[Row]) -> bool:
    """Whether a matrix has more than one number; of many nodes, dots are drawn in its place."""
    is_many = len({row.key.node for row in rows}) > fleet.MANY
    return table.metric != "core_to_core" or is_many or bool(shapes.matrices(rows))


def _percentiles(table: Table, rows: Sequence[Row]) -> list[Drawn]:
    """The figure of the percentiles of a table of latencies; one of many nodes has no rows."""
    shown = tuple(row for row in rows if row.own and row.own.percentile("p50") is not None)
    if len({row.key.node for row in shown}) > fleet.MANY:
        shown = ()
    return [Drawn(f"{table.name}_percentiles", shown)] if has_percentiles(table) else []


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
        first = (FLEET, dots.overview(rows))
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
        return dots.plot(drawn.rows)
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
    figure = style.figure(style.WIDTH, 0.48 * len(chosen) + 0.45)
    axis = figure.subplots()
    far = max(1.0, *(_bar(axis, position, row) for position, (_, row) in enumerate(chosen)))
    axis.set_yticks(range(len(chosen)), [title for title, _ in chosen], fontweight="bold")
    axis.tick_params(axis="y", length=0, labelsize=8)
    axis.set_ylim(len(chosen) - 0.5, -0.55)
    axis.set_xlim(0, far * 1.04)
    axis.xaxis.set_major_formatter(PercentFormatter(1, symbol=None))
    axis.set_xlabel("% of the limit")
    axis.grid(axis="x")
    axis.grid(False, axis="y")
    axis.axvline(1, color=style.INK, linewidth=1.6, zorder=5)
    sns.despine(ax=axis, left=True)
    return figure


def _bar(axis: Axes, position: int, row: Row) -> float:
    """Own repetitions as a bar and dots, best reference as an open mark, both in words; returns the
    rightmost share.
    """
    own, reference, limit = row.measured, comparisons.best_reference(row), row.limit.value
    point, height = LabelFormatter.of(row).point(row), position + 0.14
    if limit is None:
        raise ValueError(f"{point} has no limit to be a share of")
    share, shares = own.centre / limit, [value / limit for value in own.values]
    axis.barh(height, share, height=0.34, facecolor=style.look(0).colour, zorder=2)
    axis.scatter(shares, [height] * len(shares), s=7, color=style.INK, zorder=4)
    disturbed = [value / limit for value in own.disturbed]
    axis.scatter(disturbed, [height] * len(disturbed), s=13, facecolor="none", edgecolor=style.INK,
                 linewidth=0.6, zorder=4)  # fmt: skip
    caption, far = f"{point}: {row.table.own.heading} {percent(share)} %", max(shares)
    if reference is not None:
        program, series = reference
        theirs, look = series.centre / limit, style.look(1, is_open=True)
        far = max(far, min(theirs, FARTHEST))
        axis.scatter(theirs, height, s=42, marker=look.marker, facecolor="white", edgecolor=look.colour,
                     linewidth=1.4, zorder=3)  # fmt: skip
        caption += f", {program.heading} {percent(theirs)} %"
    caption += f" of {quantity(row.table, limit)}"
    axis.annotate(caption, (0, position - 0.2), xytext=(2, 0), textcoords="offset points", va="center", fontsize=style.SMALL,
                  bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}, zorder=6)  # fmt: skip
    return far
