"""What the figures share: axes, labels at lines, legends, and rows of dots."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from peakmark.analysis.analysis import published_names
from peakmark.analysis.label_formatter import LabelFormatter, noun
from peakmark.analysis.row import Row
from peakmark.figures import style
from peakmark.tools.tables import UNITS, Table

MAX_TICKS = 6  # labels beside each other below one panel
DECADES = 200  # highest by lowest end from which on a logarithmic axis names powers of ten only
SPAN = 20  # highest by lowest value from which on the vertical axis is logarithmic

_SIZE = re.compile(
    r"(\d) ?([A-Za-z]+)$"
)  # the end of a size, with or without a space before its unit


@dataclass(frozen=True)
class Across:
    """What stands on the horizontal axis: the block size, or else the concurrency."""

    block: bool

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Across:
        """Whichever has more values among the rows."""
        blocks = {row.key.block for row in rows}
        return cls(len(blocks) > 1 and len(blocks) >= len({row.key.concurrency for row in rows}))

    @property
    def other(self) -> Across:
        """The one that is not on the axis."""
        return Across(not self.block)

    def place(self, row: Row) -> int:
        """Where a row stands: its block in bytes, or its number of threads."""
        return (row.key.block or 0) if self.block else row.key.concurrency

    def places(self, rows: Iterable[Row]) -> list[int]:
        """Where rows stand, each place once, left to right."""
        return sorted({self.place(row) for row in rows})

    def ordered(self, rows: Iterable[Row]) -> list[Row]:
        """The rows from left to right."""
        return sorted(rows, key=self.place)

    def name(self, row: Row) -> str:
        """``16 MiB`` or ``8 threads``, as the row's layout has it."""
        labels = LabelFormatter.of(row)
        return labels.block(row) if self.block else labels.many(row.key.concurrency)

    def label(self, table: Table) -> str:
        """What the axis is called."""
        if not self.block:
            return f"{noun(table).capitalize()}s"
        return "Area walked" if table.name == "memory_latency" else "Block size"

    def scale(self, axis: Axes, rows: Sequence[Row], room: float = 0.0) -> None:
        """Equal steps for doublings, from the first to the last place of the rows and ``room``
        octaves to the right of it.
        """
        places = self.places(rows)
        margin = 2 ** max(0.35, octaves(places) / 10)
        axis.set_xscale("log", base=2)
        axis.set_xlim(places[0] / margin, places[-1] * margin * 2**room)
        names = {
            self.place(row): LabelFormatter.of(row).block(row) if self.block else "" for row in rows
        }
        axis.set_xticks(places, tick_labels(places, names))
        axis.xaxis.set_minor_locator(NullLocator())


def tick_labels(places: Sequence[int], names: Mapping[int, str]) -> list[str]:
    """Labels of the horizontal axis: blocks in two lines, or numbers; of two that would touch, the
    first alone.
    """
    least = octaves(places) / MAX_TICKS
    written: list[str] = []
    last = 0.0
    for place in places:
        if written and math.log2(place) - last < least:
            written.append("")
            continue
        last = math.log2(place)
        written.append(_SIZE.sub(r"\1\n\2", names[place]) or str(place))
    return written


def octaves(places: Sequence[int]) -> float:
    """How many doublings lie between the first and the last place, 1 for a single one."""
    return math.log2(places[-1] / places[0]) if len(places) > 1 else 1.0


def heights(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """All values of rows that points stand for, and their limits, in the table's unit."""
    values = [
        value * row.table.factor
        for row in rows
        for series in row.series.values()
        for value in (*series.values, *series.disturbed)
    ]
    values += [value * row.table.factor for row in rows for value in row.published.values()]
    return values, [
        row.limit.value * row.table.factor for row in rows if row.limit.value is not None
    ]


def scale_values(axis: Axes, logarithmic: bool) -> None:
    """The vertical axis, whose ends are known: few round numbers."""
    if not logarithmic:
        axis.yaxis.set_major_formatter(style.Ticks())
        return
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    steps = (1.0, 2.0, 5.0) if high < DECADES * low else (1.0,)
    axis.yaxis.set_major_locator(LogLocator(subs=steps, numticks=MAX_TICKS * len(steps)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def vertical_label(table: Table, value: str = "measured") -> str:
    """``Throughput (MB/s)``, a quantity that is its own unit alone; of other values than measured
    ones, see ``Drawing``, ``Standard deviation (MB/s)`` or ``% of the limit``.
    """
    if value == "efficiency":
        return "% of the limit"
    unit = UNITS.get((table.unit, table.factor), table.shown)
    if value == "deviation":
        return f"Standard deviation ({unit or table.quantity})"
    return unit if unit in ("GigaOPS", table.quantity) else f"{table.quantity} ({unit})"


LEGEND_WIDTH = 1.35  # inches that one entry takes
LABEL_LINE = 8.0  # points between two labels

Label = tuple[float, float, str]  # where a line ends, and its name


def at_lines(axis: Axes, labels: Sequence[Label], right: float, extent: float) -> None:
    """Names of the own kernel's lines inside a panel of ``extent`` pixels, right of all points at
    ``right``.
    """
    for (_, _, name), share in zip(
        labels, _spread(axis, [y for _, y, _ in labels], extent), strict=True
    ):
        axis.annotate(name, (right, share), xycoords=("data", "axes fraction"), xytext=(7, 0), textcoords="offset points",
                      fontsize=style.SMALL, va="center", color=style.look(0).ink)  # fmt: skip


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
            fontsize=style.SMALL, va="center", fontweight="bold", color=style.look(position).ink, annotation_clip=False,
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
    gap = axis.figure.dpi / 72 * LABEL_LINE
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


LINE = 0.14  # inches that a row takes
ROOM = 0.5  # inches for axis and its label
APART = 0.16  # of a row: between two programs


def draw(axis: Axes, lines: Sequence[tuple[str, Sequence[Row]]]) -> None:
    """One row of dots per name: every repetition of each program, its summary as a tick, the limit
    dashed.
    """
    everything = [row for _, rows in lines for row in rows]
    factor = everything[0].table.factor
    values, limits = heights(everything)
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
    if max(values) > SPAN * min(values):
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
        disturbed = [value * factor for value in series.disturbed]
        style.left_out(axis, disturbed, [height] * len(disturbed))
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
