"""Rows as small multiples: lines of programs or of workloads with every repetition as a point and
dashed limits, or bars; and percentiles of single operations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from peakmark.analysis.label_formatter import LabelFormatter, noun
from peakmark.analysis.row import Row, Series
from peakmark.config.layouts import Drawing
from peakmark.figures import style
from peakmark.figures.style import Look
from peakmark.formatting import significant
from peakmark.tools.common import PERCENTILES
from peakmark.tools.tables import Table

MAX_COLUMNS = 4
SLIM = 6  # panels side by side where each has but one or two places
MAX_TICKS = 6  # labels side by side below one panel
FEW = 5  # bars of a panel, up to which each has its value written above it
_SIZE = re.compile(r"(\d) ?([A-Za-z]+)$")
"""The end of a size, with or without a space before its unit."""
_VARIANTS = {
    "pool": "pool (DRAM)",
    "pool-temporal": "pool (DRAM, ordinary stores)",
    "block": "one block (cache)",
}
Place = tuple[float, float]
"""Where something is drawn: to the right, and upwards."""


@dataclass
class DrawnLine:
    """What is drawn in one look in one panel.

    Attributes:
        panel: its title.
        name: in the legend, of the colour and the marker.
        dashes: what the dashes stand for, in the legend too; empty without a meaning.
        dashes_order: where these stand in the legend.
        path: summarised values, which are joined.
        points: repetitions.
        left_out: repetitions that no summary has.
        limits: of the values of the path.
        limit_colour: of these.
    """

    panel: str
    name: str
    dashes: str = ""
    dashes_order: int = 0
    path: list[Place] = field(default_factory=list)
    points: list[Place] = field(default_factory=list)
    left_out: list[Place] = field(default_factory=list)
    limits: list[Place] = field(default_factory=list)
    limit_colour: str = style.INK


def draw(
    lines: Sequence[DrawnLine],
    labels: tuple[str, str],
    looks: Mapping[str, Look] | None = None,
    bars: bool = False,
    **grid: Any,
) -> tuple[Figure, list[Axes]]:
    """A panel for each title of the lines, and one legend.

    Args:
        lines: at least one.
        labels: of the horizontal and of the vertical axis.
        looks: of names; by default in their order.
        bars: draw paths as bars.
        grid: see ``style.small_multiples``.
    """
    names = list(dict.fromkeys(line.name for line in lines))
    looks = looks or {name: style.look(place) for place, name in enumerate(names)}
    ordered = sorted(lines, key=lambda line: line.dashes_order)
    named = dict.fromkeys(line.dashes for line in ordered)
    dashes = dict(zip(named, style.DASHES * len(named), strict=False))
    titles = list(dict.fromkeys(line.panel for line in lines))
    figure, axes = style.small_multiples(titles, labels, **grid)
    for axis, title in zip(axes, titles, strict=True):
        shown = [line for line in lines if line.panel == title]
        for line in shown:
            _draw_line(axis, line, looks[line.name], dashes[line.dashes], bars)
        _draw_limits(axis, shown)
    style.scale_values(axes, bool(grid.get("sharey")))
    joined = {line.name for line in lines if line.path}
    handles: list[Patch | Line2D] = [
        Patch(facecolor=looks[name].colour, label=name)
        if bars and name in joined
        else _entry(looks[name], name, "-" if name in joined else "none")
        for name in looks
        if name in names
    ]
    if len(dashes) > 1:
        handles += [
            Line2D([], [], color=style.QUIET, dashes=each, label=name)
            for name, each in dashes.items()
        ]
    if any(line.limits for line in lines):
        handles.append(Line2D([], [], label="limit", **style.LIMIT))
    style.legend(figure, handles)
    return figure, axes


def _draw_line(axis: Axes, line: DrawnLine, look: Look, dashes: Any, bars: bool) -> None:
    places, values = np.reshape(line.path, (-1, 2)).T
    if bars:
        bar = axis.bar(places, values, width=0.4 * places, facecolor=look.colour, linewidth=0)
        if len(places) <= FEW:
            axis.bar_label(
                bar, [significant(value, 2) for value in values], padding=2, fontsize=style.SMALL
            )
    elif line.path:
        marker = "_" if len(places) == 1 else ""  # a path of one place would not be seen
        axis.plot(
            places, values, color=look.colour, dashes=dashes, linewidth=1.1, zorder=3, markersize=4,
            marker=marker if line.points else look.marker,
        )  # fmt: skip
    hollow = Look(style.INK, "o", "none")
    for points, each in ((line.points, look), (line.left_out, hollow)):
        if points:
            across, up = np.transpose(points)
            axis.scatter(
                across, up, s=11, marker=each.marker, facecolor=each.face, edgecolor=each.colour,
                linewidth=0.7, zorder=4,
            )  # fmt: skip


def _draw_limits(axis: Axes, lines: Sequence[DrawnLine]) -> None:
    """The limits dashed: one line where all rows have the same, else each along its rows."""
    limits = {round(limit, 9) for line in lines for _, limit in line.limits}
    if len(limits) == 1:
        axis.axhline(*limits, **style.LIMIT)
        return
    for line in lines:
        if line.limits:
            look = {**style.LIMIT, "color": line.limit_colour}
            axis.plot(*np.transpose(line.limits), marker="_", **look)


def _entry(look: Look, name: str, linestyle: Any) -> Line2D:
    return Line2D(
        [], [], color=look.colour, marker=look.marker, markerfacecolor=look.face, markersize=4, linewidth=1.1,
        linestyle=linestyle, label=name,
    )  # fmt: skip


def value_of(value: str, row: Row, series: Series) -> float | None:
    """What a figure shows of one instrument, by ``Drawing.value``: in the unit of the row's table or
    in percent, None where it is not known.
    """
    if value == "efficiency":
        return None if series.efficiency is None else 100 * series.efficiency
    if value == "deviation":
        return None if series.summary.stdev is None else series.summary.stdev * row.table.factor
    return series.centre * row.table.factor


def plot(table: Table, rows: Sequence[Row], drawing: Drawing | None = None) -> Figure | None:
    """The figure of one table, None when none of its rows was measured.

    Horizontal is the block size or the concurrency, whichever has more values. There is a panel for
    each workload with all programs or, as a layout may ask for, one for each block or number of
    threads with lines of all workloads. Bars stand over the concurrency, with the references as
    open marks.
    """
    measured = [row for row in rows if row.series]
    if not measured:
        return None
    kind, value = (drawing.kind, drawing.value) if drawing else ("panels", "measured")
    bars, is_together = kind == "bars", kind == "together"
    across, other = "concurrency", "block"
    if not bars and _is_over_blocks(measured):
        across, other = other, across
    names = {_place(row, across): _name(row, across) for row in measured}
    octaves = math.log2(max(names) / min(names)) or 1
    lines: dict[tuple[str, ...], DrawnLine] = {}
    looks = _looks(table, measured, is_together)
    programs = table.series[:1] if is_together or value == "deviation" else table.series
    for row, title, dashes in _panels(measured, other, kind):
        place = float(_place(row, across))

        rank = _place(row, other)

        def line_of(
            name: str, look: tuple[str, int] = (dashes, rank), title: str = title
        ) -> DrawnLine:
            return lines.setdefault((title, look[0], name), DrawnLine(title, name, *look))

        for program in programs:
            series = row.series.get(program.instrument)
            height = value_of(value, row, series) if series else None
            if series is None or height is None:
                continue
            name = workload(row) if is_together else program.heading
            line = line_of(name)
            if bars and program != table.own:
                line.points.append((place, height))
                continue
            # Programs and workloads stand a little to the right of each other.
            aside = place * 2 ** (0 if bars else [*looks].index(name) * octaves / 50)
            line.path.append((aside, height))
            if is_together:
                line.limit_colour = looks[name].colour
            if value == "efficiency":
                line.limits.append((place, 100))
            if value != "measured" or bars:
                continue
            line.points += [(aside, each * row.table.factor) for each in series.values]
            line.left_out += [(aside, each * row.table.factor) for each in series.disturbed]
            if row.limit.value is not None and program == table.own:
                line.limits.append((place, row.limit.value * row.table.factor))
    for line in lines.values():
        line.path.sort()
        line.limits.sort()
    is_shared = is_together or bars or table.subsystem != "cpu"
    figure, axes = draw(
        list(lines.values()),
        (_label(table, across), style.vertical_label(table, value)),
        looks,
        bars,
        panel=(0.23, 1.3 if drawing else 1.14 if across == "block" else 1.02),
        most=SLIM if len(names) <= 2 else MAX_COLUMNS,
        sharex=True,
        sharey=is_shared,
    )
    places = sorted(names)
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.margins(x=0.1)
        axis.set_xticks(places, tick_labels(places, names))
        axis.xaxis.set_minor_locator(NullLocator())
    return figure


def _is_over_blocks(rows: Sequence[Row]) -> bool:
    """Whether the rows of a workload have more block sizes than concurrencies."""
    blocks = {(row.key.workload, row.key.block) for row in rows}
    counts = {(row.key.workload, row.key.concurrency) for row in rows}
    return len({block for _, block in blocks}) > 1 and len(blocks) >= len(counts)


def _place(row: Row, across: str) -> int:
    """Where a row stands: its block in bytes, or its number of threads."""
    return (row.key.block or 0) if across == "block" else row.key.concurrency


def _name(row: Row, across: str) -> str:
    """``16 MiB`` or ``8``, as the row's layout has it."""
    return LabelFormatter.of(row).block(row) if across == "block" else str(row.key.concurrency)


def _label(table: Table, across: str) -> str:
    if across == "concurrency":
        return f"{noun(table).capitalize()}s"
    return "Area walked" if table.name == "memory_latency" else "Block size"


def tick_labels(places: Sequence[int], names: Mapping[int, str]) -> list[str]:
    """Labels of the horizontal axis: blocks in two lines, or numbers; of two that would touch, the
    first alone.
    """
    least = math.log2(places[-1] / places[0]) / MAX_TICKS
    written: list[str] = []
    last = -math.inf
    for place in places:
        is_free = math.log2(place) - last >= least
        last = math.log2(place) if is_free else last
        written.append(_SIZE.sub(r"\1\n\2", names[place]) if is_free else "")
    return written


def workload(row: Row) -> str:
    """Its name, with the variant and the node where there are several of them."""
    variant = row.key.variant if row.table.subsystem == "memory" else ""
    node = row.key.node if row.key.node != "any" else ""
    parts = LabelFormatter.of(row).workload(row), "" if variant == "pool" else variant, node
    return ", ".join(filter(None, parts))


def _panels(rows: Sequence[Row], other: str, kind: str) -> list[tuple[Row, str, str]]:
    """Each row with the title of its panel, and what its dashes stand for.

    A block or number of threads that is not on the axis has a panel for itself where a workload
    would else have several of them in one look, or where the table has but one workload.
    """
    table = rows[0].table
    nodes, variants = ({getattr(row.key, name) for row in rows} for name in ("node", "variant"))
    distinct = {(workload(row), _place(row, other)) for row in rows}
    count, workloads = len({place for _, place in distinct}), len({name for name, _ in distinct})
    is_split = len(distinct) > workloads
    if kind == "panels":
        is_split = workloads == 1 and 1 < count <= MAX_COLUMNS
    found = []
    for row in sorted(rows, key=lambda row: _place(row, other) if is_split else 0):
        labels = LabelFormatter.of(row)
        name = labels.block(row) if other == "block" else labels.many(row.key.concurrency)
        variant = table.variant_label(row.key.variant)
        parts = (
            labels.workload(row),
            name if is_split else "",
            _VARIANTS.get(variant, variant) if len(variants) > 1 and table.variant else "",
            row.key.node if len(nodes) > 1 else "",
        )
        title = ", ".join(filter(None, parts[1:2] if kind == "together" else parts))
        found.append((row, title, name if kind == "panels" and not is_split and count > 1 else ""))
    return found


def _looks(table: Table, rows: Sequence[Row], is_together: bool) -> dict[str, Look]:
    """Return the look of each name in the legend: of workloads, or of programs."""
    if is_together:
        names = dict.fromkeys(map(workload, rows))
        return {name: style.look(rank) for rank, name in enumerate(names)}
    return {one.heading: style.look(rank, rank > 0) for rank, one in enumerate(table.series)}


NINES = {name: -math.log10(1 - share) for name, share in PERCENTILES.items()}
"""Detail of a latency -> its place on the axis: so many nines."""


def plot_percentiles(table: Table, rows: Sequence[Row]) -> Figure:
    """Times of single operations on an axis of nines: a panel for each workload, a line for each
    number of threads or streams, each repetition's percentiles as points.
    """
    several = len({row.key.node for row in rows}) > 1
    lines = []
    for row in sorted(rows, key=lambda row: row.key.concurrency):
        labels = LabelFormatter.of(row)
        title = labels.workload(row) + (f", {row.key.node}" if several else "")
        line = DrawnLine(title, labels.many(row.key.concurrency))
        for name, nines in NINES.items():
            values = row.measured.percentiles(name)
            line.points += [(nines, value * table.factor) for value in values]
            if summary := row.measured.percentile(name):
                line.path.append((nines, summary.value * table.factor))
        lines.append(line)
    labels_of = "% of operations", style.vertical_label(table)
    # Two panels stand beside the figure of the means.
    figure, axes = draw(lines, labels_of, panel=(0.175, 1.02), sharex=True, sharey=True)
    names = [f"{100 * share:g}" for share in PERCENTILES.values()]
    for axis in axes:
        axis.set_xticks([*NINES.values()], names)
    return figure
