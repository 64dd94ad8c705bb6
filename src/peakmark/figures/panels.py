"""Rows as small multiples: lines of programs or of workloads, repetitions as points, limits dashed;
and bars of single rows, as layouts ask for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from peakmark.analysis.analysis import published_names
from peakmark.analysis.label_formatter import LabelFormatter, noun
from peakmark.analysis.row import Row, Rows, Series
from peakmark.config.layouts import Drawing
from peakmark.figures import style
from peakmark.figures.style import Look
from peakmark.formatting import significant
from peakmark.tools.tables import Table

MAX_COLUMNS = 4
SLIM = 6  # panels side by side where each has but one or two places
MAX_TICKS = 6  # labels beside each other below one panel
SPAN = 20  # highest by lowest value from which on the vertical axis is logarithmic

_SIZE = re.compile(r"(\d) ?([A-Za-z]+)$")
"""The end of a size, with or without a space before its unit."""
_VARIANTS = {
    "pool": "pool (DRAM)",
    "pool-temporal": "pool (DRAM, ordinary stores)",
    "block": "one block (cache)",
}
Panels = Rows
"""Title -> rows."""


@dataclass(frozen=True)
class Across:
    """What stands on the horizontal axis: the block size, or else the concurrency."""

    block: bool

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Across:
        """Whichever has more values among the rows of a workload."""
        blocks = {(row.key.workload, row.key.block) for row in rows}
        counts = {(row.key.workload, row.key.concurrency) for row in rows}
        return cls(len({block for _, block in blocks}) > 1 and len(blocks) >= len(counts))

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

    def name(self, row: Row) -> str:
        """``16 MiB`` or ``8 threads``, as the row's layout has it."""
        labels = LabelFormatter.of(row)
        return labels.block(row) if self.block else labels.many(row.key.concurrency)

    def label(self, table: Table) -> str:
        """What the axis is called."""
        if not self.block:
            return f"{noun(table).capitalize()}s"
        return "Area walked" if table.name == "memory_latency" else "Block size"

    def scale(self, axis: Axes, rows: Sequence[Row]) -> None:
        """Equal steps for doublings, from the first to the last place of the rows."""
        places = self.places(rows)
        margin = 2 ** max(0.35, octaves(places) / 10)
        axis.set_xscale("log", base=2)
        axis.set_xlim(places[0] / margin, places[-1] * margin)
        names = {self.place(row): self.name(row) if self.block else "" for row in rows}
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


def value_of(value: str, row: Row, series: Series) -> float | None:
    """What a figure shows of one instrument, by ``Drawing.value``: in the unit of the row's table or
    in percent, None where it is not known.
    """
    if value == "efficiency":
        return None if series.efficiency is None else 100 * series.efficiency
    if value == "deviation":
        return None if series.summary.stdev is None else series.summary.stdev * row.table.factor
    return series.centre * row.table.factor


@dataclass(frozen=True)
class DrawnLine:
    """Rows that differ in their place alone, with the program whose values are joined.

    Attributes:
        look: of the program or of the workload.
        dashes: of the number of threads, or of the block.
        limit: colour of the rows' limits, empty where another line has the same.
    """

    instrument: str
    rows: Sequence[Row]
    look: Look
    dashes: Any = ()
    limit: str = ""


def plot(table: Table, rows: Sequence[Row], drawing: Drawing | None = None) -> Figure | None:
    """The figure of one table, None when none of its rows was measured.

    Horizontal is the block size or the concurrency, whichever has more values. There is a panel for
    each workload with lines of all programs, or, as a layout may ask for, a panel for each block or
    number of threads with lines of all workloads. Vertical is logarithmic where the values and
    their limits span more than a factor of 20, else it starts at zero.
    """
    measured = [row for row in rows if row.series]
    if not measured:
        return None
    across = Across.of(measured)
    value = drawing.value if drawing else "measured"
    is_together = drawing is not None and drawing.kind == "together"
    panels = (_by_place if is_together else _by_workload)(measured, across)
    names = list(dict.fromkeys(map(workload, measured)))
    is_slim = all(len(across.places(members)) <= 2 for members in panels.values())
    is_shared = is_together or table.subsystem != "cpu"
    figure, axes = style.small_multiples(
        list(panels),
        (across.label(table), style.vertical_label(table, value)),
        (0.23, 1.14 if across.block else 1.02),  # blocks have labels of two lines
        most=SLIM if is_slim else MAX_COLUMNS,
        sharex=True,
        sharey=is_shared,
    )
    for axis, members in zip(axes, panels.values(), strict=True):
        lines = (
            [*_of_workloads(members, names)] if is_together else [*_of_programs(members, across)]
        )
        for rank, line in enumerate(lines):
            shift = (rank - (len(lines) - 1) / 2) / 50
            _draw(axis, line, across, value, shift * octaves(across.places(measured)))
        if value == "measured":
            _draw_limits(axis, lines, across)
            _draw_published(axis, members, across)
        _scale(axis, measured if is_shared else members, value)
        across.scale(axis, measured)
    handles = _workloads(names) if is_together else _programs(table, measured, across)
    style.legend(figure, handles)
    return figure


def workload(row: Row) -> str:
    """Its name, with the variant and the node where there are several of them."""
    variant = row.key.variant if row.table.subsystem == "memory" else ""
    node = row.key.node if row.key.node != "any" else ""
    parts = LabelFormatter.of(row).workload(row), "" if variant == "pool" else variant, node
    return ", ".join(filter(None, parts))


def _by_workload(rows: Sequence[Row], across: Across) -> Panels:
    """A panel for each workload; of a single workload one for each block or concurrency, so that few
    lines meet in each.
    """
    table, other = rows[0].table, across.other
    nodes, variants = ({getattr(row.key, name) for row in rows} for name in ("node", "variant"))
    is_alone = len({(row.key.node, row.key.variant, row.key.workload) for row in rows}) == 1
    is_split = is_alone and 1 < len(other.places(rows)) <= MAX_COLUMNS
    grouped: dict[str, list[Row]] = {}
    for row in sorted(rows, key=other.place) if is_split else rows:
        variant = table.variant_label(row.key.variant)
        parts = (
            LabelFormatter.of(row).workload(row),
            other.name(row) if is_split else "",
            _VARIANTS.get(variant, variant) if len(variants) > 1 and table.variant else "",
            row.key.node if len(nodes) > 1 else "",
        )
        grouped.setdefault(", ".join(filter(None, parts)), []).append(row)
    return grouped


def _by_place(rows: Sequence[Row], across: Across) -> Panels:
    """A panel for each block size, or number of threads, that is not on the horizontal axis.

    A workload that has one block of its own, such as a latency under two names, needs no panel for
    it.
    """
    other = across.other
    distinct: dict[str, set[int]] = {}
    for row in rows:
        distinct.setdefault(workload(row), set()).add(other.place(row))
    if all(len(places) == 1 for places in distinct.values()):
        return {"": rows}
    grouped: dict[str, list[Row]] = {}
    for row in sorted(rows, key=other.place):
        grouped.setdefault(other.name(row), []).append(row)
    return grouped


def _of_programs(rows: Sequence[Row], across: Across) -> Iterator[DrawnLine]:
    """A line for each program and each block or number of threads that is not on the axis."""
    table = rows[0].table
    for position, program in enumerate(table.series):
        for rank, place in enumerate(across.other.places(rows)):
            line = [
                row
                for row in rows
                if across.other.place(row) == place and program.instrument in row.series
            ]
            dashes = style.DASHES[rank % len(style.DASHES)]
            limit = style.LIMIT if program is table.own else ""
            yield DrawnLine(program.instrument, line, style.look(position), dashes, limit)


def _of_workloads(rows: Sequence[Row], names: Sequence[str]) -> Iterator[DrawnLine]:
    """A line for each workload of the own kernel."""
    for rank, name in enumerate(names):
        line = [row for row in rows if workload(row) == name and row.own]
        look = style.line(rank)
        yield DrawnLine(rows[0].table.own.instrument, line, look, limit=look.colour)


def _draw(axis: Axes, line: DrawnLine, across: Across, value: str, shift: float) -> None:
    """A line through the summarised values, every repetition beside it, ``shift`` octaves to the
    right.
    """
    shown: list[tuple[float, float]] = []
    points: list[tuple[float, float]] = []
    disturbed: list[tuple[float, float]] = []
    for row in sorted(line.rows, key=across.place):
        series, place = row.series[line.instrument], across.place(row) * 2**shift
        number = value_of(value, row, series)
        if number is not None:
            shown.append((place, number))
        if value == "measured":
            points += [(place, each * row.table.factor) for each in series.values]
            disturbed += [(place, each * row.table.factor) for each in series.disturbed]
    if not shown:
        return
    axis.plot(
        *zip(*shown, strict=True), color=line.look.colour, linewidth=1.1, zorder=3, markersize=4,
        dashes=line.dashes or (None, None), marker="_" if points else line.look.marker,
    )  # fmt: skip
    for x, y in points:
        axis.scatter(x, y, s=11, zorder=4, alpha=0.9, linewidth=0.7, marker=line.look.marker,
                     facecolor=line.look.face, edgecolor=line.look.colour)  # fmt: skip
    style.left_out(axis, [x for x, _ in disturbed], [y for _, y in disturbed])


def _draw_limits(axis: Axes, lines: Sequence[DrawnLine], across: Across) -> None:
    """The limits dashed: one line where all rows have the same, else each along its rows."""
    known = [
        (
            line.limit,
            sorted((across.place(row), limit) for row in line.rows if (limit := _limit(row))),
        )
        for line in lines
        if line.limit
    ]
    limits = [limit for _, places in known for _, limit in places]
    if len({round(limit, 9) for limit in limits}) == 1:
        style.limit_line(axis, limits[0])
        return
    for colour, places in known:
        if places:
            axis.plot(*zip(*places, strict=True), color=colour, linewidth=0.9, dashes=(5, 2),
                      marker="_", zorder=1)  # fmt: skip


def _limit(row: Row) -> float | None:
    """In the unit of the table."""
    return None if row.limit.value is None else row.limit.value * row.table.factor


def _draw_published(axis: Axes, rows: Sequence[Row], across: Across) -> None:
    """A mark for each value that others published, in the middle of its place."""
    for number, name in enumerate(published_names(rows)):
        shown = [row for row in rows if name in row.published]
        values = [row.published[name] * row.table.factor for row in shown]
        look = style.published(number)
        axis.scatter([*map(across.place, shown)], values, s=20, linewidth=0.9, zorder=5, **look)


def _scale(axis: Axes, rows: Sequence[Row], value: str) -> None:
    """The vertical axis for all that is drawn of these rows; one of deviations is never logarithmic,
    as some are none.
    """
    every = [
        number
        for row in rows
        for series in row.series.values()
        for number in (
            [each * row.table.factor for each in (*series.values, *series.disturbed)]
            if value == "measured"
            else [value_of(value, row, series)]
        )
        if number
    ]
    if value == "measured":
        every += [limit for row in rows if (limit := _limit(row))]
        every += [each * row.table.factor for row in rows for each in row.published.values()]
    highest, lowest = max(every, default=1.0), min(every, default=1.0)
    is_logarithmic = value != "deviation" and highest > SPAN * lowest
    ends = (lowest / 1.4, highest * 1.6) if is_logarithmic else (0.0, highest * 1.12)
    axis.set_ylim(*ends)
    style.scale_values(axis, is_logarithmic)


def _workloads(names: Sequence[str]) -> list[Line2D]:
    return [style.entry(style.line(rank), name) for rank, name in enumerate(names)]


def _programs(table: Table, rows: Sequence[Row], across: Across) -> list[Line2D]:
    """What is in a figure of programs, as far as it has more than one of it."""
    handles = [
        style.entry(style.look(position), series.heading)
        for position, series in enumerate(table.series)
        if any(series.instrument in row.series for row in rows)
    ]
    for number, name in enumerate(published_names(rows)):
        mark = style.published(number)["marker"]
        handles.append(
            Line2D([], [], linestyle="none", marker=mark, markerfacecolor="none",
                   markeredgecolor=style.INK, markersize=4.5, label=f"{name} (published)")
        )  # fmt: skip
    panels = _by_workload(rows, across).values()
    if any(len(across.other.places(members)) > 1 for members in panels):
        names = {across.other.place(row): across.other.name(row) for row in rows}
        for rank, place in enumerate(sorted(names)):
            dashes = style.DASHES[rank % len(style.DASHES)] or (None, None)
            handles.append(Line2D([], [], color=style.QUIET, dashes=dashes, label=names[place]))
    if any(row.limit.value is not None for row in rows):
        handles.append(
            Line2D([], [], color=style.LIMIT, linewidth=0.9, dashes=(5, 2), label="limit")
        )
    return handles


BARS = 0.46, 1.2  # share of the page's width, and inches, of a panel
HALF = 24  # bars that half the width holds
FARTHEST = 150.0  # percent of the limit: a reference beyond it is a mark at the upper edge
FEW = 12  # bars of a panel, up to which each has its value written above it
GAP = 0.8  # bars between two groups


def plot_bars(table: Table, rows: Sequence[Row], drawing: Drawing) -> Figure | None:
    """The figure of ``drawing``, None without rows.

    Tables without block sizes have one panel with a group of bars for each workload; others a panel
    for each workload with a group for each size.
    """
    if not rows:
        return None
    grouped = _bars(rows)
    widest = max(sum(map(len, groups.values())) for groups in grouped.values())
    labels = Across(block=False).label(table), style.vertical_label(table, drawing.value)
    most = 1 if widest > HALF else 2
    figure, axes = style.small_multiples(list(grouped), labels, BARS, most, sharey=True)
    for axis, groups in zip(axes, grouped.values(), strict=True):
        _draw_bars(axis, drawing, groups, _top(drawing, rows))
    handles: list[Patch | Line2D] = [Patch(facecolor=style.look(0).colour, label=table.own.heading)]
    for rank, program in enumerate(table.references, 1):
        if any(_reference(drawing, row, program.instrument) is not None for row in rows):
            handles.append(style.entry(style.look(rank), program.heading, linestyle="none"))
    style.legend(figure, handles)
    return figure


def _bars(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Title of a panel -> name of a group -> rows in the order of their threads."""
    is_sized = len({row.key.block for row in rows}) > 1
    grouped: dict[str, dict[str, list[Row]]] = {}
    for row in sorted(rows, key=lambda row: row.key.concurrency):
        name = workload(row)
        title, group = (name, LabelFormatter.of(row).block(row)) if is_sized else ("", name)
        grouped.setdefault(title, {}).setdefault(group, []).append(row)
    return grouped


def _top(drawing: Drawing, rows: Sequence[Row]) -> float:
    """The upper end of the vertical axis, the same in all panels; what lies beyond is drawn at it."""
    own = [value_of(drawing.value, row, row.measured) or 0.0 for row in rows]
    every = [
        value_of(drawing.value, row, series) or 0.0
        for row in rows
        for series in row.series.values()
    ]
    if drawing.value == "efficiency":
        return max(105.0, 1.08 * max(own), min(FARTHEST, 1.08 * max(every)))
    return 1.12 * (max(own) if drawing.value == "deviation" else max(every))


def goes_beyond(drawing: Drawing, rows: Sequence[Row]) -> bool:
    """Whether a reference lies beyond the upper edge, where a filled triangle stands for it."""
    if drawing.kind != "bars" or not rows:
        return False
    top = _top(drawing, rows)
    every = (_reference(drawing, row, name) or 0.0 for row in rows for name in row.series)
    return any(value > top for value in every)


def _draw_bars(axis: Axes, drawing: Drawing, groups: Panels, top: float) -> None:
    colour = style.look(0).colour
    is_few = sum(map(len, groups.values())) <= FEW
    ticks: list[tuple[float, str]] = []
    at = 0.0
    for name, members in groups.items():
        first = at
        for row in members:
            value = value_of(drawing.value, row, row.measured) or 0.0
            bar = axis.bar(at, value, width=0.74, facecolor=colour, linewidth=0, zorder=2)
            if is_few:
                axis.bar_label(bar, [significant(value, 2)], padding=2, fontsize=style.SMALL)
            _mark_references(axis, drawing, row, at, top)
            ticks.append((at, str(row.key.concurrency or row.key.word)))
            at += 1
        axis.annotate(name, ((first + at - 1) / 2, 0), xycoords=("data", "axes fraction"), xytext=(0, -15),
                      textcoords="offset points", ha="center", va="top", fontsize=style.SMALL, fontweight="bold",
                      color=style.INK, annotation_clip=False)  # fmt: skip
        at += GAP
    places, texts = zip(*ticks, strict=True)
    axis.set_xticks(places, texts, fontsize=style.SMALL)
    axis.tick_params(axis="x", length=0, labelbottom=True)
    axis.set_xlim(-0.8, at - GAP - 0.2)
    axis.set_ylim(0, top)
    axis.xaxis.labelpad = 17  # below the names of the groups
    style.scale_values(axis, logarithmic=False)
    if drawing.value == "efficiency":
        style.limit_line(axis, 100)


def _reference(drawing: Drawing, row: Row, instrument: str) -> float | None:
    """What stands beside the bar of a row; nothing beside deviations, which are the own kernel's."""
    series = row.series.get(instrument) if drawing.value != "deviation" else None
    return value_of(drawing.value, row, series) if series else None


def _mark_references(axis: Axes, drawing: Drawing, row: Row, at: float, top: float) -> None:
    """An open mark for each reference tool, at the upper edge where its value lies beyond."""
    for rank, program in enumerate(row.table.references, 1):
        value, look = _reference(drawing, row, program.instrument), style.look(rank)
        if value is not None:
            is_beyond = value > top
            axis.scatter([at], [0.985 * top if is_beyond else value], s=16, marker="^" if is_beyond else look.marker,
                         facecolor=look.colour if is_beyond else "white", edgecolor=look.colour, linewidth=1.0, zorder=5,
                         clip_on=False)  # fmt: skip
