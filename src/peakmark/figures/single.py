"""Points that no line joins: where a panel would have one place on its horizontal axis, its values
stand in a row of dots.
"""

from __future__ import annotations

from collections.abc import Sequence

import seaborn as sns
from matplotlib.axes import Axes

from peakmark.analysis.row import Row
from peakmark.analysis.rows import published_names
from peakmark.figures import across, style

LINE = 0.2  # inches that a row takes
ROOM = 0.62  # inches for axis and its label
APART = 0.16  # of a row: between two programs


def draw(axis: Axes, lines: Sequence[tuple[str, Sequence[Row]]]) -> None:
    """One row of dots per name: every repetition of each program, its summary as a tick, the limit
    dashed.
    """
    everything = [row for _, rows in lines for row in rows]
    factor = everything[0].table.factor
    values, limits = across.heights(everything)
    for number, row in ((number, row) for number, (_, rows) in enumerate(lines) for row in rows):
        _dots(axis, row, number, factor)
        for place, name in enumerate(published_names(everything)):
            if name in row.published:
                value = row.published[name] * factor
                axis.scatter(
                    [value], [number], s=20, linewidth=0.9, zorder=5, **style.published(place)
                )
        if row.limit.value is not None:
            axis.plot([row.limit.value * factor] * 2, [number - 0.45, number + 0.45], color=style.LIMIT, linewidth=0.9,
                      dashes=(3, 1.5), zorder=1)  # fmt: skip
    if max(values) > across.SPAN * min(values):
        axis.set_xscale("log")
    else:
        axis.set_xlim(0, 1.05 * max([*values, *limits]))
    axis.set_yticks(range(len(lines)), [name for name, _ in lines])
    axis.set_ylim(len(lines) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x")
    sns.despine(ax=axis, left=True)


def _dots(axis: Axes, row: Row, line: int, factor: float) -> None:
    present = [
        place for place, series in enumerate(row.table.series) if series.instrument in row.series
    ]
    for rank, place in enumerate(present):
        series = row.series[row.table.series[place].instrument]
        look = style.look(place)
        height = line + APART * (rank - (len(present) - 1) / 2)
        axis.scatter([value * factor for value in series.values], [height] * len(series.values), s=11, zorder=4,
                     marker=look.marker, facecolor=look.face, edgecolor=look.colour, linewidth=0.7, alpha=0.9)  # fmt: skip
        axis.scatter(
            [series.centre * factor],
            [height],
            s=60,
            marker="|",
            color=look.colour,
            linewidth=1.4,
            zorder=3,
        )


def inches(lines: int) -> float:
    """The height of so many rows of dots, with their axis."""
    return ROOM + LINE * lines
