"""Rows as small multiples: lines or bars, with a dot for every repetition and dashed limits.

``draw`` takes a frame with a line for each dot or corner of a line:

panel   title of the panel
name    program or workload, which has a colour and a marker in the legend
line    block or number of threads, which has dashes in the legend; empty for a plain line
kind    path (value of a row, joined to others), run (a dot), left out (a run that does not count),
        limit (joined to others) or tick (limit of a single row)
x, y    place of the dot or corner
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from peakmark.catalogue import disk_variant
from peakmark.formatting import capitalised, significant
from peakmark.rows import schema
from peakmark.rows.labels import USUAL, Labels
from peakmark.tools.tables import Table
from peakmark.views import figure_style
from peakmark.views.figure_data import FigureData
from peakmark.views.figure_style import Look
from peakmark.views.points import Line
from peakmark.views.report.pictures import LINE, VALUES, has_limit_line, is_over_blocks

MAX_COLUMNS = 4
"""Largest number of panels side by side."""
SLIM = 6
"""Largest number of panels side by side if each has one or two places on its horizontal axis."""
MAX_PANELS = 2 * SLIM
"""Largest number of panels if each value has its own."""
MAX_TICKS = 6
"""Largest number of labels side by side below a panel."""
FEW = 5
"""Largest number of bars of a panel whose values are written above them."""
SHARE_OF_AXIS = 1 / 50
"""Horizontal distance between the marks of neighbouring programs, as a share of the axis."""
SIZE = re.compile(r"(\d) ?([A-Za-z]+)$")
"""End of a size, with or without a space before its unit."""
VARIANTS = {
    "pool": "",
    "pool-temporal": "ordinary stores",
    "block": "in caches",
    "sustained": "",
}
"""Printed variant of a row -> its shorter name in figures, see ``variant_name``."""
TICK: Mapping[str, Any] = {
    "color": figure_style.INK, "marker": "_", "markersize": 9, "linestyle": "none"
}  # fmt: skip
"""Look of the limit of a row whose limits are not joined."""
HOLLOW = Look(figure_style.INK, "o", "none")
"""Look of runs that do not count."""


# -- panels


def draw(
    shown: pd.DataFrame,
    labels: tuple[str, str],
    looks: Mapping[str, Look] | None = None,
    has_bars: bool = False,
    has_own_limits: bool = False,
    left_to_right: bool = True,
    shortest: int = 2,
    dashed: Sequence[str] = (),
    **panels: Any,
) -> tuple[Figure, Mapping[str, Axes]]:
    """Draw a panel for each title, and one legend.

    Args:
        shown: a frame as the docstring of this module describes it; at least one line.
        labels: labels of the horizontal and the vertical axis.
        looks: name -> its look; by default, looks are assigned in the order of the names.
        has_bars: whether to draw paths as bars.
        has_own_limits: whether to draw limits in the colours of their names.
        left_to_right: whether to join corners from left to right, or in the order of the frame.
        shortest: fewest corners that are joined to a line; fewer corners are drawn as marks.
        dashed: values of ``line`` in the order of the legend; by default in the order of the frame.
        panels: see ``figure_style.facets``.

    Returns:
        The figure, and title -> panel.
    """
    names = list(shown["name"].unique())
    shown = shown.assign(text=texts_of(shown, labels[1]))
    if looks is None:
        looks = {name: figure_style.look(place) for place, name in enumerate(names)}
    dashed = dashed or list(shown["line"].unique())
    dashes = dict(zip(dashed, cycle(figure_style.DASHES), strict=False))
    limit_looks = looks if has_own_limits else {}
    has_dots = bool(shown["kind"].eq("run").any())
    joined: set[str] = set()
    grid = figure_style.facets(shown, **panels)
    for panel, axis in grid.axes_dict.items():
        of_panel = shown[shown["panel"].eq(panel)]
        paths = of_panel[of_panel["kind"].eq("path")]
        if has_bars:
            draw_bars(axis, paths, looks)
        else:
            corners = paths.groupby(["name", "line"])["x"].transform("size")
            lines, single = paths[corners.ge(shortest)], paths[corners.lt(shortest)]
            joined.update(lines["name"])
            draw_paths(axis, lines, looks, dashes, left_to_right)
            draw_marks(axis, single if has_dots else paths, looks, has_dots)
        draw_dots(axis, of_panel, looks)
        draw_limits(axis, of_panel, limit_looks)
    figure_style.label_axes(grid, labels)
    figure_style.scale_values(list(grid.axes.flat), bool(panels.get("sharey")))
    entries = entries_of(shown, looks, has_bars, joined)
    if len(dashes) > 1 and joined:
        entries += [dashes_entry(name, each) for name, each in dashes.items()]
    if shown["kind"].eq("limit").any():
        entries.append(Line2D([], [], label="limit", **figure_style.LIMIT))
    elif shown["kind"].eq("tick").any():
        entries.append(Line2D([], [], label="limit", **TICK))
    figure_style.legend(grid.figure, entries)
    return grid.figure, grid.axes_dict


def texts_of(shown: pd.DataFrame, label: str) -> list[str]:
    """Return the text (tooltip) for each dot, or each vertex of a curve: panel, name, line and value."""
    texts = []
    for line in schema.lines(shown):
        parts = [line.panel, line.name, line.line, f"{label}: {significant(line.y)}"]
        texts.append(", ".join(filter(None, parts)))
    return texts


def draw_paths(
    axis: Axes,
    paths: pd.DataFrame,
    looks: Mapping[str, Look],
    dashes: Mapping[str, Any],
    left_to_right: bool,
) -> None:
    """Draw lines in the colours of their names.

    A line has the dashes of its ``line``, or those of its name if ``line`` is empty.
    """
    if left_to_right:
        paths = paths.sort_values("x", kind="stable")
    for (name, line), corners in paths.groupby(["name", "line"], sort=False):
        look = looks[str(name)]
        pattern = look.dashes
        if line:
            pattern = dashes[str(line)]
        axis.plot(
            corners["x"], corners["y"], color=look.colour, dashes=pattern, linewidth=1.1, zorder=3
        )


def draw_bars(axis: Axes, paths: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """Draw bars. If a panel has only a few bars, write their values above them."""
    for name, bars in paths.groupby("name", sort=False):
        colour = looks[str(name)].colour
        drawn = axis.bar(bars["x"], bars["y"], width=0.4 * bars["x"], facecolor=colour, linewidth=0)
        if len(bars) <= FEW:
            texts = [significant(value, 2) for value in bars["y"]]
            axis.bar_label(drawn, texts, padding=2, fontsize=figure_style.SMALL)


def draw_marks(axis: Axes, paths: pd.DataFrame, looks: Mapping[str, Look], has_dots: bool) -> None:
    """Draw a marker at each corner of paths, or a tick if dots show the runs."""
    for name, of_name in paths.groupby("name", sort=False):
        look = looks[str(name)]
        if has_dots:
            look = Look(look.colour, "_", look.colour)
        scatter(axis, of_name, look, size=16)


def draw_dots(axis: Axes, of_panel: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """Draw runs as dots, which are hollow for runs that do not count."""
    dots = of_panel[of_panel["kind"].eq("run")]
    for name, of_name in dots.groupby("name", sort=False):
        scatter(axis, of_name, looks[str(name)])
    left_out = of_panel[of_panel["kind"].eq("left out")]
    if len(left_out):
        scatter(axis, left_out, HOLLOW)


def scatter(axis: Axes, dots: pd.DataFrame, look: Look, size: float = 11) -> None:
    """Draw dots in a look, with ``text`` as their link, which ``figure_style.drawn`` makes a title.

    ``size`` is the area of a dot in square points.
    """
    colours: Any = {"facecolor": look.face, "edgecolor": look.colour}
    if look.marker == "_":
        # A tick has no face.
        colours = {"color": look.colour}
    axis.scatter(
        dots["x"], dots["y"], s=size, marker=look.marker, linewidth=0.7, zorder=4,
        urls=list(dots["text"]), **colours,
    )  # fmt: skip


def draw_limits(axis: Axes, of_panel: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """Draw a dashed line across the panel if all rows have the same limit.

    Otherwise draw a dashed line through the limits of each line's rows. Limits of kind ``tick`` are
    drawn as a tick at their row.
    """
    ticks = of_panel[of_panel["kind"].eq("tick")]
    if len(ticks):
        axis.plot(ticks["x"], ticks["y"], zorder=1, **TICK)
    limits = of_panel[of_panel["kind"].eq("limit")]
    distinct = limits["y"].round(9).unique()
    if len(distinct) == 1:
        axis.axhline(distinct[0], **figure_style.LIMIT)
        return
    for (name, _), of_line in limits.groupby(["name", "line"], sort=False):
        look = dict(figure_style.LIMIT)
        if looks:
            look["color"] = looks[str(name)].colour
        in_order = of_line.sort_values("x", kind="stable")
        axis.plot(in_order["x"], in_order["y"], marker="_", **look)


def entries_of(
    shown: pd.DataFrame, looks: Mapping[str, Look], has_bars: bool, joined: Collection[str]
) -> list[Patch | Line2D]:
    """Return one legend entry for each name that is drawn.

    It is a filled patch for a name drawn as bars; otherwise the marker and, for a name in ``joined``,
    the line.
    """
    with_values = set(shown.loc[shown["kind"].eq("path"), "name"])
    drawn = set(shown["name"])
    entries: list[Patch | Line2D] = []
    for name, look in looks.items():
        if has_bars and name in with_values:
            entries.append(Patch(facecolor=look.colour, label=name))
        elif name in drawn:
            entries.append(name_entry(name, look, name in joined))
    return entries


def name_entry(name: str, look: Look, is_joined: bool) -> Line2D:
    """Return the entry of a name in the legend: its marker, on a line if its values are joined."""
    entry = Line2D(
        [], [], color=look.colour, marker=look.marker, markerfacecolor=look.face, markersize=4,
        linewidth=1.1, dashes=look.dashes, label=name,
    )  # fmt: skip
    if not is_joined:
        entry.set_linestyle("none")
    return entry


def dashes_entry(name: str, dashes: Any) -> Line2D:
    """Return the entry of a ``line`` in the legend."""
    pattern = dashes or (None, None)
    return Line2D([], [], color=figure_style.QUIET, dashes=pattern, label=name)


# -- the rows of a table


def plot(figure: FigureData) -> Figure:
    """Draw the rows of a table.

    The horizontal axis is the block size or the concurrency, whichever has more values. A panel shows
    one workload with all programs. If a layout asks for it, a panel shows all workloads of one block
    size or number of threads instead. A figure of bars has the concurrency on its axis and an open
    marker for each reference.
    """
    kind, value = "panels", "measured"
    if figure.drawing is not None:
        kind, value = figure.drawing.kind, figure.drawing.value
    across, other = "concurrency", "block_bytes"
    if kind != "bars" and is_over_blocks(figure.rows):
        across, other = other, across
    rows = named_rows(figure, across, other).pipe(add_panels, figure, kind)
    looks = looks_of(figure.table, rows, kind)
    if kind == "together" or value == "deviation":
        rows = rows[rows["is_own"]]
    name = "full_name" if kind == "together" else "program"
    rows = rows.assign(name=rows[name])
    shown = corners_of(figure, rows, value, kind, looks)
    names: dict[int, str] = dict(zip(rows["across"], rows["across_name"], strict=True))
    panel = (0.23, panel_height(figure, across))
    most = SLIM if len(names) <= 2 else MAX_COLUMNS
    drawn, axes = draw(
        shown,
        (label_across(figure.table, across), figure_style.vertical_label(figure.table, value)),
        looks,
        has_bars=kind == "bars",
        has_own_limits=kind == "together",
        shortest=LINE,
        dashed=list(rows.sort_values("other_place", kind="stable")["line"].unique()),
        panel=panel,
        most=most,
        sharex=True,
        sharey=kind != "panels" or figure.table.subsystem != "cpu",
    )
    scale_places(axes.values(), names)
    return drawn


def panel_height(figure: FigureData, across: str) -> float:
    """Return the height of a panel in inches; block sizes need two lines of labels below it."""
    if figure.drawing is not None:
        return 1.3
    return 1.14 if across == "block_bytes" else 1.02


def named_rows(figure: FigureData, across: str, other: str) -> pd.DataFrame:
    """Return the rows of a figure with their names and places.

    The columns ``across`` and ``across_name`` are the place on the horizontal axis and the name of this
    place. ``other_place`` and ``other_name`` are place and name in the column ``other``. ``label`` is
    the workload; ``full_name`` also has the variant and the node.
    """
    names = []
    for row in schema.lines(figure.rows):
        labels = figure.labels(row)
        across_name, other_name = labels.block(row), labels.many(row.concurrency)
        if across == "concurrency":
            across_name, other_name = str(row.concurrency), labels.block(row)
        names.append(
            {
                "across": getattr(row, across) or 0,
                "across_name": across_name,
                "other_place": getattr(row, other) or 0,
                "other_name": other_name,
                "label": labels.workload(row),
                "full_name": full_name(labels, row),
            }
        )
    named = figure.rows.join(pd.DataFrame(names, index=figure.rows.index))
    # A layout may write the sizes of its own rows in another way: a place has the name in its first row.
    for place in ("across", "other_place"):
        name = place.replace("_place", "") + "_name"
        named[name] = named.groupby(place)[name].transform("first")
    return named


def variant_name(table: Table, variant: str) -> str:
    """Return the name of a row's variant in figures; empty for the usual variant."""
    label = table.variant_label(variant)
    return VARIANTS.get(label, label)


def full_name(labels: Labels, row: Line) -> str:
    """Return the workload of a row, with the variant of a memory row and the node if it has a name.

    Only memory measures one workload in several variants (working sets), which must be distinguished.
    The variant ``pool`` is not named.
    """
    parts = [labels.workload(row)]
    if labels.table.subsystem == "memory" and row.variant not in ("", "pool"):
        parts.append(row.variant)
    if row.node != "any":
        parts.append(row.node)
    return ", ".join(parts)


def add_panels(rows: pd.DataFrame, figure: FigureData, kind: str) -> pd.DataFrame:
    """Add the columns ``panel`` and ``line``, which the docstring of this module explains.

    The value that is not on the axis is a block size or a number of threads. Each value has its own
    panels if the table has one workload, or if several values would have the same look, as without
    lines. Otherwise each value has its own dashes.
    """
    distinct = rows[["full_name", "other_place"]].drop_duplicates()
    workloads, count = distinct["full_name"].nunique(), distinct["other_place"].nunique()
    is_split = len(distinct) > workloads
    if kind == "panels":
        has_lines = rows.groupby(["full_name", "other_place"])["across"].nunique().ge(LINE).any()
        if has_lines:
            is_split = workloads == 1 and 1 < count <= MAX_COLUMNS
        else:
            is_split = workloads < len(distinct) <= MAX_PANELS
    if is_split:
        rows = rows.sort_values("other_place", kind="stable")
    # Join the texts that distinguish panels.
    parts = []
    if kind != "together":
        parts.append(rows["label"])
    if is_split:
        parts.append(rows["other_name"])
    if kind != "together" and figure.table.variant and rows["variant"].nunique() > 1:
        parts.append(rows["variant"].map(partial(variant_name, figure.table)))
    if kind != "together" and rows["node"].nunique() > 1:
        parts.append(rows["node"])
    panels = [", ".join(filter(None, each)) for each in zip(*parts, strict=True)]
    if kind == "panels" and not is_split and count > 1:
        return rows.assign(panel=panels, line=rows["other_name"])
    # A single panel may have no title.
    return rows.assign(panel=panels or "", line="")


def looks_of(table: Table, rows: pd.DataFrame, kind: str) -> dict[str, Look]:
    """Return the look of each name in the legend, which is a workload or a program."""
    if kind == "together":
        names = rows["full_name"].unique()
        return {name: figure_style.look(place) for place, name in enumerate(names)}
    looks = {}
    for place, program in enumerate(table.series):
        looks[program.heading] = figure_style.look(place, is_open=place > 0)
    return looks


def corners_of(
    figure: FigureData,
    rows: pd.DataFrame,
    value: str,
    kind: str,
    looks: Mapping[str, Look],
) -> pd.DataFrame:
    """Return the values, runs and limits of rows as lines for ``draw``.

    A limit is a tick at its row, or joined to others, see ``has_limit_line``.
    """
    table, has_bars = figure.table, kind == "bars"
    percent = 100.0
    factor = percent if value == "efficiency" else table.factor
    rows = rows.assign(x=rows["across"], y=rows[VALUES[value]] * factor, kind="path")
    if has_bars:
        rows["kind"] = np.where(rows["is_own"], "path", "run")
    else:
        # Move each program or workload a little to the right of the one before.
        octaves = math.log2(rows["across"].max() / rows["across"].min()) or 1
        order = {name: place for place, name in enumerate(looks)}
        rows["x"] = rows["across"] * 2 ** (rows["name"].map(order) * octaves * SHARE_OF_AXIS)
    rows = rows.dropna(subset="y")
    layers = [rows]
    if value == "efficiency":
        paths = rows[rows["kind"].eq("path")]
        layers.append(paths.assign(x=paths["across"], y=percent, kind="limit"))
    if value == "measured" and not has_bars:
        places = rows[["point", "instrument", "panel", "name", "line", "x"]]
        layers.append(dots_of(figure, places))
        own = rows[rows["is_own"]]
        own = own.assign(kind=np.where(has_limit_line(own), "limit", "tick"))
        limited = own[own["limit"].notna()]
        layers.append(limited.assign(x=limited["across"], y=limited["limit"] * table.factor))
    columns = ["panel", "name", "line", "kind", "x", "y"]
    return pd.concat([layer[columns] for layer in layers], ignore_index=True)


def dots_of(figure: FigureData, places: pd.DataFrame) -> pd.DataFrame:
    """Return a dot for each run of rows, without runs above the limit.

    Args:
        figure: figure with the runs and the unit.
        places: a line for each row, with ``point``, ``instrument``, ``panel``, ``name``, ``line`` and
            ``x``.
    """
    runs = figure.runs[figure.runs["kept"] | figure.runs["disturbed"].ne("")]
    dots = runs.merge(places, on=["point", "instrument"])
    kind = dots["kept"].map({True: "run", False: "left out"})
    return dots.assign(y=dots["value"] * figure.table.factor, kind=kind)


def plot_several(figure: FigureData) -> Figure:
    """Draw the sums of nodes that were measured at one moment, over their number.

    There is a panel for each workload, block size, number of threads and variant.
    """
    panels = []
    numbers = []
    for row in schema.lines(figure.rows):
        labels = figure.labels(row)
        base, nodes, one_file = disk_variant(row.variant)
        kind = "one file" if one_file else base
        parts = [labels.point(row, node=False), kind if kind not in USUAL else ""]
        if figure.rows["node"].nunique() > 1:
            parts.append(f"from {row.node}")
        panels.append("\n".join(filter(None, parts)))
        numbers.append(nodes)
    rows = figure.rows.assign(across=numbers, panel=panels, name=figure.rows["program"], line="")
    looks = looks_of(figure.table, rows, "panels")
    drawn, axes = draw(
        corners_of(figure, rows, "measured", "panels", looks),
        ("Nodes", figure_style.vertical_label(figure.table, "measured")),
        looks,
        shortest=LINE,
        panel=(0.23, 1.02),
        most=MAX_COLUMNS,
        sharex=True,
        sharey=False,
    )
    scale_places(axes.values(), {number: str(number) for number in numbers})
    return drawn


def scale_places(axes: Iterable[Axes], names: Mapping[int, str]) -> None:
    """Scale horizontal axes logarithmically, and write the name of each place below them."""
    places = sorted(names)
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.margins(x=0.1)
        axis.set_xticks(places, tick_labels(places, names))
        axis.xaxis.set_minor_locator(NullLocator())


def label_across(table: Table, across: str) -> str:
    """Return the label of the horizontal axis."""
    if across == "concurrency":
        noun = Labels(table).noun
        return f"{capitalised(noun)}s"
    return "Area walked" if table.name == "memory_latency" else "Block size"


def tick_labels(places: Sequence[int], names: Mapping[int, str]) -> list[str]:
    """Return the labels of the horizontal axis: blocks in two lines, or numbers.

    A label is empty if it would touch the previous label.
    """
    least = math.log2(places[-1] / places[0]) / MAX_TICKS
    written = []
    last = -math.inf
    for place in places:
        label = ""
        if math.log2(place) - last >= least:
            last = math.log2(place)
            label = SIZE.sub(r"\1\n\2", names[place])
        written.append(label)
    return written
