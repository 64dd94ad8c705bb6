"""What names the lines of a figure: words at their right end where there is room, else a legend
above the panels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from peakmark.analysis.row import Row
from peakmark.analysis.rows import published_names
from peakmark.figures import style
from peakmark.tools.tables import Table

LEGEND_WIDTH = 1.35  # inches that one entry takes
LINE = 8.0  # points between two labels

Label = tuple[float, float, str]  # where a line ends, and its name


def at_lines(axis: Axes, labels: Sequence[Label], right: float, extent: float) -> None:
    """Names of the own kernel's lines inside a panel of ``extent`` pixels, right of all points at
    ``right``.
    """
    for (_, _, name), share in zip(
        labels, _spread(axis, [y for _, y, _ in labels], extent), strict=True
    ):
        axis.annotate(name, (right, share), xycoords=("data", "axes fraction"), xytext=(7, 0), textcoords="offset points",
                      fontsize=6.5, va="center", color=style.look(0).ink)  # fmt: skip


def beside(axis: Axes, table: Table, ends: Mapping[str, float], extent: float) -> None:
    """The programs' names right of the last panel, each at the height where its line ends (``ends``
    by instrument).
    """
    named = [
        (position, series)
        for position, series in enumerate(table.series)
        if series.instrument in ends
    ]
    shares = _spread(axis, [ends[series.instrument] for _, series in named], extent)
    for (position, series), share in zip(named, shares, strict=True):
        axis.annotate(
            series.heading, (1.0, share), xycoords="axes fraction", xytext=(4, 0), textcoords="offset points",
            fontsize=7, va="center", fontweight="bold", color=style.look(position).ink, annotation_clip=False,
        )  # fmt: skip


def _spread(axis: Axes, heights: Sequence[float], extent: float) -> list[float]:
    """Heights in units of the data as shares of the panel, moved apart where two labels would
    overlap.
    """
    low, high = axis.get_ylim()
    logarithmic = axis.get_yscale() == "log"
    shares = [
        math.log(y / low) / math.log(high / low) if logarithmic else (y - low) / (high - low)
        for y in heights
    ]
    gap = axis.figure.dpi / 72 * LINE
    return [top / extent for top in style.spread([share * extent for share in shares], gap)]


def legend(figure: Figure, table: Table, rows: Sequence[Row], programs: bool) -> None:
    """A legend of published values and of the programs, unless their lines are named; limits are
    named where drawn.
    """
    named = list(enumerate(table.series)) if programs else []
    handles = [
        style.entry(style.look(position), series.heading)
        for position, series in named
        if any(series.instrument in row.series for row in rows)
    ]
    for number, name in enumerate(published_names(rows)):
        handles.append(
            Line2D([], [], linestyle="none", marker=style.published(number)["marker"], markerfacecolor="none",
                   markeredgecolor=style.INK, markersize=4.5, label=f"{name} (published)")
        )  # fmt: skip
    if not handles:
        return
    # As many side by side as the figure is wide: it would cut off the rest.
    longest = max(len(str(handle.get_label())) for handle in handles)
    width = max(LEGEND_WIDTH, 0.6 + 0.075 * longest)
    side_by_side = max(1, min(len(handles), int(figure.get_figwidth() / width)))
    style.legend(figure, handles, side_by_side, 2.6)
