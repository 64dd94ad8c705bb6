"""One table as small multiples: a panel per workload, repetitions as points, summaries as lines,
the limit dashed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from peakmark.analysis.analysis import published_names
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row, Series
from peakmark.figures import elements, style
from peakmark.figures.elements import Across
from peakmark.formatting import significant
from peakmark.tools.tables import Table

WIDTH = 6.85  # inches; an A4 page between its margins
HEIGHT = 7.0  # inches; leaves room for the caption on that page
PANEL_HEIGHT = 1.02
MAX_COLUMNS = 4
NARROW = 0.6 * WIDTH  # panels up to this width have the rows of dots at their right
HIGH = 2.4  # inches of rows of dots up to which they stand there
SLIM = 6  # panels side by side where each has but one or two places

_VARIANTS = {
    "pool": "pool (DRAM)",
    "pool-temporal": "pool (DRAM, ordinary stores)",
    "block": "one block (cache)",
}


@dataclass(frozen=True)
class Panel:
    """The rows of one panel, and its title."""

    title: str
    rows: tuple[Row, ...]


def plot(table: Table, rows: Sequence[Row]) -> Figure | None:
    """The figure of one table, None when none of its rows was measured.

    Horizontal is the block size or the concurrency, whichever has more values; the other
    distinguishes lines, named at their right end. Vertical is logarithmic where the values, or they
    and the limit, span more than a factor of 20, else it starts at zero; panels of one line share
    it, except those of the CPU, whose workloads differ by their operand size. Panels of a single
    place are rows of dots below the others.
    """
    measured = [row for row in rows if row.series]
    if not measured:
        return None
    horizontal = Across.of(measured)
    every = _panels(table, measured, horizontal)
    panels = [panel for panel in every if len(horizontal.places(panel.rows)) > 1]
    dots = _dot_rows([panel for panel in every if panel not in panels], horizontal)
    columns = _columns(panels, horizontal) if panels else 3
    lines = math.ceil(len(panels) / columns)
    height = PANEL_HEIGHT if lines < 2 else max(1.25, min(1.4, (HEIGHT - 0.5) / lines))
    entries = len({name for row in measured for name in (*row.series, *row.published)})
    legend = 0.62 if len(horizontal.other.places(measured)) > 1 else 0.47
    above = height * lines + legend if lines else 0.17 * entries
    below = elements.inches(len(dots)) if dots else 0.0
    width = WIDTH * min(1.0, 0.23 * columns + (0.09 if columns > 1 else 0.2))
    halves: list[FigureBase]
    if panels and dots and width <= NARROW and below <= HIGH:
        figure = style.figure(WIDTH, max(above, below + 0.17), w_pad=0.06, h_pad=0.06)
        halves = list(
            figure.subfigures(1, 2, squeeze=False, width_ratios=[width, WIDTH - width])[0]
        )
    elif panels and dots:
        figure = style.figure(width, above + below, w_pad=0.06, h_pad=0.06)
        halves = list(figure.subfigures(2, 1, squeeze=False, height_ratios=[above, below])[:, 0])
    else:
        figure = style.figure(width, above + below, w_pad=0.06, h_pad=0.06)
        halves = [figure, figure]
    if dots:
        axis = halves[1].subplots()
        elements.draw(axis, dots)
        axis.set_xlabel(elements.vertical_label(table))
    ends = _draw(halves[0], table, panels, horizontal, columns, named=not dots) if panels else {}
    elements.legend(figure, table, measured, programs=not ends)
    return figure


def _dot_rows(panels: Sequence[Panel], horizontal: Across) -> list[tuple[str, list[Row]]]:
    """A row of dots for each panel of one place, and for each block or number of threads that it
    has lines of.
    """
    grouped: dict[str, list[Row]] = {}
    for panel in panels:
        several = len(horizontal.other.places(panel.rows)) > 1
        for row in horizontal.other.ordered(panel.rows):
            point = (
                panel.title,
                horizontal.name(row),
                horizontal.other.name(row) if several else "",
            )
            grouped.setdefault(", ".join(filter(None, point)), []).append(row)
    return list(grouped.items())


def _draw(
    figure: FigureBase,
    table: Table,
    panels: Sequence[Panel],
    horizontal: Across,
    columns: int,
    named: bool,
) -> dict[str, float]:
    """The panels in so many columns. Returns where each program is ``named`` at its line, see
    ``_ends``.
    """
    shared = table.subsystem != "cpu"
    axes = style.panels(
        figure, len(panels), columns, sharex=True, sharey="row" if shared else False
    )
    for place, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
        line = place // columns * columns
        scale = _scale(table, panels[line : line + columns] if shared else [panel])
        _panel(axis, table, panel, horizontal, scale)
        if place == line:
            axis.set_ylabel(elements.vertical_label(table))
        if place + columns >= len(panels):
            axis.set_xlabel(horizontal.label(table))
            axis.tick_params(labelbottom=True)
    ends = _ends(panels, horizontal, table) if named else {}
    if ends:
        elements.beside(axes[-1], table, ends, _extent(axes[-1]))
    return ends


def _ends(panels: Sequence[Panel], horizontal: Across, table: Table) -> dict[str, float]:
    """Where each program's line ends in the last panel, in the table's unit; empty where that
    cannot name the lines: one has none there, or they are named by threads or blocks.
    """
    if any(len(horizontal.other.places(panel.rows)) > 1 for panel in panels):
        return {}
    ordered = horizontal.ordered(panels[-1].rows)
    ends = {
        name: series.centre * table.factor for row in ordered for name, series in row.series.items()
    }
    everywhere = {name for panel in panels for row in panel.rows for name in row.series}
    return ends if set(ends) == everywhere else {}


def _extent(axis: Axes) -> float:
    """The panel's height in pixels; the layout is not final yet, so nearly."""
    return PANEL_HEIGHT * 0.72 * axis.figure.dpi


def _columns(panels: Sequence[Panel], horizontal: Across) -> int:
    """Panels side by side: workloads of one variant fill whole lines of at most ``MAX_COLUMNS``;
    slim ones stand in one.
    """
    rows = [row for panel in panels for row in panel.rows]
    slim = max(len(horizontal.places(panel.rows)) for panel in panels) <= 2
    if slim and len(panels) <= SLIM and len(horizontal.other.places(rows)) == 1:
        return len(panels)
    workloads = len({LabelFormatter.of(row).workload(row) for row in rows})
    if workloads == 1 and len({(row.key.node, row.key.variant) for row in rows}) == 1:
        return min(len(panels), MAX_COLUMNS)
    if workloads <= MAX_COLUMNS:
        return min(workloads, len(panels))
    return MAX_COLUMNS if workloads % MAX_COLUMNS == 0 or len(panels) > 9 else MAX_COLUMNS - 1


def _scale(table: Table, panels: Sequence[Panel]) -> tuple[bool, float, float]:
    """Whether the vertical axis of these panels is logarithmic, and its ends in the table's unit."""
    values, limits = elements.heights([row for panel in panels for row in panel.rows])
    lowest, highest = min(values), max(values)
    # Far below its limit, all that was measured would lie on the lower edge.
    logarithmic = (
        highest > elements.SPAN * lowest or max(limits, default=0.0) > elements.SPAN * highest
    )
    highest = max([highest, *limits])
    if table.lower_is_better and logarithmic:
        lowest = min(
            [lowest / 1.4, *(limit / 3 for limit in limits)]
        )  # room for the word below the limit
    return (True, lowest / 1.4, highest * 1.6) if logarithmic else (False, 0.0, highest * 1.2)


def _panels(table: Table, rows: Sequence[Row], horizontal: Across) -> list[Panel]:
    """A panel per workload; of a single workload one per block or concurrency, so that few lines
    meet in each.
    """
    other = horizontal.other
    alone = len({(row.key.node, row.key.variant, row.key.workload) for row in rows}) == 1
    split = alone and 1 < len(other.places(rows)) <= MAX_COLUMNS
    nodes = {row.key.node for row in rows}
    variants = {row.key.variant for row in rows}
    grouped: dict[str, list[Row]] = {}
    for row in other.ordered(rows) if split else rows:
        parts = [LabelFormatter.of(row).workload(row)]
        if split:
            parts.append(other.name(row))
        if len(variants) > 1 and table.variant:
            variant = table.variant_label(row.key.variant)
            parts.append(_VARIANTS.get(variant, variant))
        if len(nodes) > 1:
            parts.append(row.key.node)
        grouped.setdefault(", ".join(parts), []).append(row)
    return [Panel(title, tuple(members)) for title, members in grouped.items()]


def _panel(
    axis: Axes,
    table: Table,
    panel: Panel,
    horizontal: Across,
    scale: tuple[bool, float, float],
) -> None:
    logarithmic, lowest, highest = scale
    axis.set_title(panel.title)
    axis.set_xscale("log", base=2)
    axis.set_ylim(lowest, highest)
    elements.scale_values(axis, logarithmic)
    wide = elements.octaves(horizontal.places(panel.rows))
    step = (
        wide / 40
    )  # octaves between instruments; a tenth of it between repetitions would hide them
    others = horizontal.other.places(panel.rows)
    named = []
    for position, series in enumerate(table.series):
        shift = 2 ** (step * (position - (len(table.series) - 1) / 2))
        for rank, other in enumerate(others):
            rows = [
                row
                for row in horizontal.ordered(panel.rows)
                if horizontal.other.place(row) == other
            ]
            rows = [row for row in rows if series.instrument in row.series]
            if not rows:
                continue
            places = [horizontal.place(row) * shift for row in rows]
            entries = [row.series[series.instrument] for row in rows]
            _line(axis, table, position, rank, places, entries, step)
            if position == 0 and len(others) > 1:
                named.append(
                    (places[-1], entries[-1].centre * table.factor, horizontal.other.name(rows[-1]))
                )
    _published(axis, table, panel.rows, horizontal)
    _limits(axis, table, panel.rows, horizontal)
    horizontal.scale(axis, panel.rows, room=wide / 3.2 if named else 0.0)
    axis.set_xlabel("")
    axis.set_ylabel("")
    sns.despine(ax=axis)
    right = horizontal.places(panel.rows)[-1] * 2 ** (step * (len(table.series) - 1) / 2)
    elements.at_lines(axis, named, right, _extent(axis))


def _line(
    axis: Axes,
    table: Table,
    position: int,
    rank: int,
    places: Sequence[float],
    entries: Sequence[Series],
    step: float,
) -> None:
    """One instrument at one concurrency or block: a line through the summarised values, every
    repetition beside it.
    """
    appearance = style.look(position)
    sns.lineplot(
        x=places, y=[entry.centre * table.factor for entry in entries], ax=axis, estimator=None, legend=False, zorder=3,
        color=appearance.colour, linewidth=1.1, marker="_", markersize=8, markeredgecolor=appearance.colour,
        markeredgewidth=1.4,
    )  # fmt: skip
    axis.lines[-1].set_dashes(style.DASHES[rank % len(style.DASHES)] or (None, None))
    points = [
        (
            place * 2 ** (step * 0.7 * ((number + 0.5) / len(entry.values) - 0.5)),
            value * table.factor,
        )
        for place, entry in zip(places, entries, strict=True)
        for number, value in enumerate(entry.values)
    ]
    disturbed = [
        (place, value * table.factor)
        for place, entry in zip(places, entries, strict=True)
        for value in entry.disturbed
    ]
    style.left_out(axis, [x for x, _ in disturbed], [y for _, y in disturbed])
    sns.scatterplot(
        x=[x for x, _ in points], y=[y for _, y in points], ax=axis, legend=False, zorder=4, s=11,
        alpha=0.9, linewidth=0.7, marker=appearance.marker, facecolor=appearance.face, edgecolor=appearance.colour,
    )  # fmt: skip


def _published(axis: Axes, table: Table, rows: Sequence[Row], horizontal: Across) -> None:
    """A mark for each value that others published, in the middle of its place."""
    for number, name in enumerate(published_names(rows)):
        shown = [row for row in rows if name in row.published]
        values = [row.published[name] * table.factor for row in shown]
        axis.scatter(
            list(map(horizontal.place, shown)),
            values,
            s=20,
            linewidth=0.9,
            zorder=5,
            **style.published(number),
        )


def _limits(axis: Axes, table: Table, rows: Sequence[Row], horizontal: Across) -> None:
    """The theoretical value as a thin dark line: through the panel where it is one number, else
    along its rows.
    """
    known = [(row, row.limit.value * table.factor) for row in rows if row.limit.value is not None]
    if not known:
        return
    by_place = sorted((horizontal.place(row), value) for row, value in known)
    first, last = max(p for p in by_place if p[0] == by_place[0][0]), by_place[-1]
    if len({round(value, 9) for _, value in known}) == 1:
        style.limit_line(axis, first[1])
    else:
        for other in horizontal.other.places(row for row, _ in known):
            line = sorted(
                (horizontal.place(row), value)
                for row, value in known
                if horizontal.other.place(row) == other
            )
            axis.plot(
                *zip(*line, strict=True),
                color=style.LIMIT,
                linewidth=0.9,
                dashes=(5, 2),
                marker="_",
                zorder=1,
            )
    rising = (
        last[1] > first[1]
    )  # the word stands at the higher end, where the line does not run through it
    # Where lower is better the points lie above the limit: the word goes below it, unless there is
    # no room above zero.
    below = table.lower_is_better and axis.get_yscale() == "log"
    axis.annotate(
        f"limit {significant((last if rising else first)[1], 3)}", last if rising else first,
        xytext=(0, -4 if below else 3), va="top" if below else "baseline",
        textcoords="offset points", fontsize=style.SMALL, color=style.LIMIT, ha="right" if rising else "left", zorder=6,
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
    )  # fmt: skip
