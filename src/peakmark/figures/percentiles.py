"""Times of single operations on an axis of nines: a panel per workload, a line per number of threads or
streams.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from peakmark import histograms
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.figures import elements, panels, style
from peakmark.figures.elements import Across
from peakmark.tools.tables import Table

NINES = {name: -math.log10(1 - share) for name, share in histograms.SHARES.items()}
"""Detail of a latency -> its place on the axis: so many nines."""
CURVE = np.linspace(NINES["p50"], 4, 112).tolist()
"""Places at which a histogram is drawn."""


def plot(table: Table, rows: Sequence[Row]) -> Figure | None:
    """The figure of one table, None without rows that have percentiles."""
    if not rows:
        return None
    grouped: dict[str, list[Row]] = {}
    several = len({row.key.node for row in rows}) > 1
    for row in rows:
        title = LabelFormatter.of(row).workload(row)
        grouped.setdefault(f"{title}, {row.key.node}" if several else title, []).append(row)
    ticks = [*NINES.values(), *([4] if any(row.measured.histogram for row in rows) else [])]
    labels = [f"{100 - 100 * 10**-nines:g}" for nines in ticks]
    labels[4:] = [f"\n{label}" for label in labels[4:]]  # no room beside the one before
    counts = Across(block=False).places(rows)
    columns = min(len(grouped), panels.MAX_COLUMNS)
    lines = math.ceil(len(grouped) / columns)
    width = panels.WIDTH * min(1.0, 0.225 * max(2, columns))
    figure = style.figure(width, panels.PANEL_HEIGHT * lines + 0.56, w_pad=0.06, h_pad=0.06)
    axes = style.panels(figure, len(grouped), columns, sharex=True, sharey=True)
    for place, (axis, (title, members)) in enumerate(zip(axes, grouped.items(), strict=True)):
        for row in members:
            _line(axis, row, counts.index(row.key.concurrency))
        axis.set_title(title)
        elements.scale_values(axis, logarithmic=True)
        axis.set_xticks(ticks, labels)
        axis.set_xlabel("% of operations")
        if place % columns == 0:
            axis.set_ylabel(elements.vertical_label(table))
        sns.despine(ax=axis)
    names = [LabelFormatter.of(rows[0]).many(count) for count in counts]
    handles = [Line2D([], [], **_style(rank), label=name) for rank, name in enumerate(names)]
    style.legend(figure, handles, max(2, columns), 2.2)
    return figure


def _style(rank: int) -> dict[str, Any]:
    """Colour and dashes of the line of a number of threads or streams."""
    dashes = style.DASHES[rank % len(style.DASHES)]
    return {
        "color": style.line(rank).colour,
        "linewidth": 1.1,
        "linestyle": (0, dashes) if dashes else "-",
    }


def _line(axis: Axes, row: Row, rank: int) -> None:
    """The operations of all repetitions as a curve, each repetition's percentiles as points; without
    histograms the medians of these as the line.
    """
    known = {name: row.measured.percentile(name) for name in NINES}
    shown = {NINES[name]: value.value for name, value in known.items() if value}
    for name in NINES:
        values = np.multiply(row.measured.percentiles(name), row.table.factor)
        places = np.full(len(values), NINES[name])
        axis.scatter(places, values, s=7, alpha=0.6, color=style.line(rank).colour, linewidth=0)
    if row.measured.histogram:
        shares = [1 - 10**-nines for nines in CURVE]
        times = histograms.percentiles(row.measured.histogram, shares)
        shown = dict(zip(CURVE, times, strict=False))
    axis.plot([*shown], np.multiply([*shown.values()], row.table.factor), **_style(rank))
