"""Figures of a campaign as SVG and PNG: an overview against the limits, then one for each table that has
measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.figures import panels, style
from peakmark.formatting import percent
from peakmark.judging.rows import Row, figures_of
from peakmark.judging.rows import build as build_rows
from peakmark.judging.verdict import describe, headline, planned
from peakmark.reporting import captions
from peakmark.storage.results import Results
from peakmark.tables.layout import TABLES
from peakmark.tables.words import quantity

OVERVIEW = "overview"
FARTHEST = 1.5  # shares beyond it leave the overview to the right, with their number


def build(campaign_dir: Path) -> list[Path]:
    """Write ``figures/overview`` and those of ``rows.figures_of`` as SVG and PNG; the paths written.

    Tables without a measurement have no figure. Equal records give equal bytes.
    Errors: PeakmarkError when the folder holds no campaign; RecordError for a damaged record.
    """
    results = Results.read(campaign_dir)
    rows = build_rows(results)
    mark = str(results.report_config.get("decimal_mark", "."))
    folder = campaign_dir / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    style.begin()
    written = []
    drawn = (
        (name, panels.plot(own[0].table if own else table, own, mark))
        for table in TABLES
        for name, own in figures_of(table, rows[table.name])
    )
    for name, figure in ((OVERVIEW, overview(rows, mark)), *drawn):
        if figure is not None:
            written += style.save(figure, folder, name)
    # Figures of measurements that are gone, or of another layout.
    for stale in (folder / f"{name}{kind}" for name in captions.texts() for kind in (".svg", ".png")):
        if stale not in written:
            stale.unlink(missing_ok=True)
    return written


def overview(rows: Mapping[str, Sequence[Row]], mark: str = ".") -> Figure | None:
    """The headline row of each resource as a share of its limit, None when nothing was measured; ``mark`` is the decimal
    mark.

    Where the limit is unknown the share is of the best reference: an open bar, with a word that says so.
    """
    chosen = [(title, headline(rows, subsystem)) for subsystem, title in planned(rows).items()]
    if all(row is None for _, row in chosen):
        return None
    figure = Figure(figsize=(7.0, 0.62 * len(chosen) + 0.55))
    figure.set_layout_engine("constrained")
    axis = figure.subplots()
    far = 1.0
    for position, (_, row) in enumerate(chosen):
        if row is None or row.own is None:
            axis.annotate("not measured", (0.01, position), va="center", color=style.QUIET)
            continue
        far = max(far, _bar(axis, position, row, mark))
    axis.set_yticks(range(len(chosen)), [title for title, _ in chosen], fontweight="bold")
    axis.tick_params(axis="y", length=0, labelsize=8)
    axis.set_ylim(len(chosen) - 0.5, -0.55)
    far = min(far, FARTHEST)
    axis.set_xlim(0, far * 1.04)
    ticks = [0.2 * step for step in range(int(far / 0.2 + 1e-9) + 1)]
    axis.set_xticks(ticks, [f"{100 * tick:.0f}" for tick in ticks])
    known = [row.peak.value is not None for _, row in chosen if row is not None and row.own is not None]
    both = "% of the limit; where it is unknown, hatched: % of the reference"
    axis.set_xlabel(
        both if len(set(known)) > 1 else "% of the limit" if known[0] else "% of the reference; limits unknown"
    )
    axis.grid(axis="x")
    axis.grid(False, axis="y")
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    return figure


def _bar(axis: Axes, position: int, row: Row, mark: str) -> float:
    """Own value as a bar, best reference as an open mark, both in words above; the rightmost share drawn."""
    own, reference = row.measured, row.best_reference
    if row.peak.value is None and reference is None:
        words = f"{describe(row)}: {row.table.own.heading} {quantity(row.table, own.centre, mark)}"
        words += "; limit unknown, nothing to compare with"
        axis.annotate(words, (0, position), xytext=(2, 0), textcoords="offset points", va="center", fontsize=6.8)
        return 0.0
    whole = row.peak.value if row.peak.value is not None else reference[1].centre if reference else own.centre
    known = row.peak.value is not None
    colour = style.look(0).colour
    share = own.centre / whole
    axis.barh(
        position + 0.14, share, height=0.34, facecolor=colour if known else "white", edgecolor=colour,
        hatch=None if known else "////", linewidth=0.8, zorder=2,
    )  # fmt: skip
    axis.scatter(
        [value / whole for value in own.values], [position + 0.14] * own.summary.n, s=7, color=style.INK, zorder=4
    )
    words = f"{describe(row)}: {row.table.own.heading} {quantity(row.table, own.centre, mark)}"
    words += f" ({percent(share, mark)} %)" if known else ""
    far = share
    if known:  # a bar of its own share has no limit that could be drawn
        ends = [position - 0.1, position + 0.38]
        axis.plot([1, 1], ends, color="white", linewidth=3.4, zorder=4.8)
        axis.plot([1, 1], ends, color=style.LIMIT, linewidth=1.6, zorder=5)
        axis.annotate(
            "limit", (1.0, position + 0.14), xytext=(3, 0), textcoords="offset points", va="center", fontsize=6.5,
            zorder=6, color="white" if share > 1.02 else style.INK,
        )  # fmt: skip
    if reference is not None:
        heading, series = reference
        theirs = series.centre / whole
        far = max(far, theirs)
        look = style.look(1)
        axis.scatter(
            [theirs], [position + 0.14], s=42, marker=look.marker, facecolor="white", edgecolor=look.colour,
            linewidth=1.4, zorder=3,
        )  # fmt: skip
        words += f", {heading} {quantity(row.table, series.centre, mark)}"
        words += f" ({percent(theirs, mark)} %)" if known else ""
    if row.peak.value is not None:
        words += f", limit {quantity(row.table, row.peak.value, mark)}"
    elif reference is not None:
        words += "; limit unknown"
    if share > FARTHEST:
        axis.annotate(
            f"{percent(share, mark)} % →", (FARTHEST, position + 0.14), ha="right", va="center", fontsize=7, zorder=5,
            bbox={"boxstyle": "square,pad=0.2", "facecolor": "white", "edgecolor": "none"},
        )  # fmt: skip
    axis.annotate(words, (0, position - 0.2), xytext=(2, 0), textcoords="offset points", va="center", fontsize=6.8,
                  bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}, zorder=5)  # fmt: skip
    return far
