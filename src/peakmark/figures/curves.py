"""The shape of a node, of many nodes, and of time: curves of ladders and loaded latencies, the
roofline, rows over campaigns, matrices as heat maps, and nodes as dots on a line.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from itertools import permutations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.analysis import fleet, links, shapes, verdict
from peakmark.analysis.fleet import NodeGroup
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row, Rows
from peakmark.catalogue import SUBSYSTEMS
from peakmark.figures import panels, style
from peakmark.figures.panels import DrawnLine
from peakmark.formatting import counted, natural, percent, significant, size
from peakmark.plan.cluster import Behind
from peakmark.tools.tables import BY_NAME, Table

PANEL = (0.46, 1.7)
"""Share of the page's width, and height in inches."""
TALL = 1.45  # of a row over time
DAY_S = 86400.0


def plot_ladder(table: Table, rows: Sequence[Row]) -> Figure | None:
    """The table of a ladder: a line for each kind of pages of each node."""
    levels: dict[str, list[Row]] = {}
    caches = {}
    for row in rows:
        level, _, pages = row.key.variant.partition("-")
        node = f", {row.key.node}" if row.key.node != "any" else ""
        levels.setdefault(f"{pages} pages{node}", []).append(row)
        caches[level.upper()] = row.measured.points[0].details["cache"]
    lines = [_line("", name, members, (1, table.factor)) for name, members in levels.items()]
    labels = "Working set", style.vertical_label(table)
    figure, (axis,) = panels.draw(lines, labels, panel=PANEL)
    _draw_uprights(axis, [(held, f"{name}: {size(held)}") for name, held in caches.items() if held])
    axis.set_xscale("log", base=4, subs=[])
    axis.xaxis.set_major_formatter(lambda place, _: size(int(place)))
    return figure


def plot_loaded(table: Table, rows: Sequence[Row]) -> Figure | None:
    """Latency over traffic: a panel for each node and number of threads, a line for each mix."""
    lines, most = [], {}
    for row in rows:
        title = LabelFormatter.of(row).threads(row)
        title += f", {row.key.node}" if row.key.node != "any" else ""
        name = f"{row.key.variant.removeprefix('r')} % reads"
        lines.append(_line(title, name, [row], (1e-9, table.factor)))
        most[title] = row.limit.bandwidth
    labels = "Traffic (GB/s)", style.vertical_label(table)
    figure, axes = panels.draw(lines, labels, panel=PANEL, sharey=True)
    for axis, bandwidth in zip(axes, most.values(), strict=True):
        if bandwidth:
            _draw_uprights(axis, [(bandwidth * 1e-9, "theoretical bandwidth")])
        axis.set_xlim(0)
    return figure


def _line(panel: str, name: str, rows: Sequence[Row], factors: tuple[float, float]) -> DrawnLine:
    """The curve of the rows: through the medians, with every repetition."""
    curve = [point[:, :2] * factors for point in shapes.curve_of(rows)]
    return DrawnLine(
        panel, name, path=list(shapes.medians(curve)), points=list(np.concatenate(curve))
    )


def _draw_uprights(axis: Axes, uprights: Collection[tuple[float, str]]) -> None:
    """Mark places that have a name, which stands above the panel."""
    for place, name in uprights:
        axis.axvline(place, color=style.QUIET, linewidth=0.7, zorder=1)
        where = axis.get_xaxis_transform()
        axis.text(place, 1, name, transform=where, fontsize=style.SMALL, color=style.QUIET,
                  ha="center", va="bottom")  # fmt: skip
    axis.set_title(axis.get_title(loc="left"), pad=12)


def plot_trends(trends: pd.DataFrame) -> Figure:
    """Draw rows over campaigns: a panel for each, with uprights at its change points.

    Args:
        trends: see ``views.history.frame``.
    """
    rows = dict(tuple(trends.groupby("row", sort=False)))
    titles = []
    for label, lines in rows.items():
        table = BY_NAME[lines["table"].iloc[0]]
        titles.append(f"{label!s}: {style.vertical_label(table)}")
    figure, axes = style.small_multiples(titles, ("", ""), (0.91, TALL), 1, sharex=True)
    for axis, lines in zip(axes, rows.values(), strict=True):
        factor = BY_NAME[lines["table"].iloc[0]].factor
        days = (
            np.array([datetime.fromisoformat(each).timestamp() for each in lines["began"]]) / DAY_S
        )
        low, middle, high = (lines[["low", "median", "high"]].to_numpy() * factor).T
        reach = middle - low, high - middle
        colour = style.look(0).colour
        axis.errorbar(days, middle, yerr=reach, color=colour, marker="o", markersize=3, capsize=2)
        uprights = []
        for place, change in enumerate(lines["change"]):
            if isinstance(change, str):
                uprights.append((days[place - 1 : place + 1].mean(), change))
        _draw_uprights(axis, uprights)
        axis.xaxis_date()
    return figure


ROOFLINE = "roofline"
RATES, LADDER = "cpu", "memory_ladder_throughput"
LEAST, MOST = 1 / 64, 64
"""Operations on each byte that are drawn."""


def roofs(rows: Rows) -> list[Row]:
    """The rows of one thread and of the most that are roofs; none of several nodes, or without rates
    of one thread and the ladder.
    """
    names = (RATES, LADDER, "memory_throughput")
    every = [row for name in names for row in rows[name] if row.own and _is_roof(row)]
    counts = {row.key.concurrency for row in every if row.table.name == RATES}
    ladder = [row for row in every if row.table.name == LADDER]
    if not ladder or 1 not in counts or len({row.key.node for row in every}) > 1:
        return []
    return [row for row in every if row.key.concurrency in (1, max(counts))]


def _is_roof(row: Row) -> bool:
    """Floating-point rates, levels of the ladder on huge pages; of more than one thread sweeps of a
    cache, and reads from DRAM.
    """
    kind = row.key.workload, row.key.variant
    if row.key.variant == "block" or kind == ("RS", "pool"):
        return row.key.concurrency > 1
    return row.key.workload in ("FP32", "DP") or row.key.variant.endswith("-huge")


def plot_roofline(rows: Sequence[Row]) -> Figure:
    """How fast a program can compute at most, by how often it uses each byte that it reads: of one
    thread, and of the most. Whole lines are measured rows, dashed ones their limits.

    Source: Williams, Waterman and Patterson, CACM 52 (2009).
    """
    table = rows[0].table
    lines = []
    for row in sorted(rows, key=lambda row: row.key.concurrency):
        equal = [each for each in rows if each.key.concurrency == row.key.concurrency]
        rate = max(each.measured.centre for each in equal if each.table.name == RATES)
        slopes = [each.measured.centre for each in equal if each.table.name != RATES]
        steepest = max(slopes, default=rate / LEAST)
        is_rate = row.table.name == RATES
        line = DrawnLine(LabelFormatter.of(rows[0]).many(row.key.concurrency), _name(row))
        for value, path in ((row.measured.centre, line.path), (row.limit.value, line.limits)):
            if value is not None:
                # Rates begin at the steepest slope, and slopes end at the highest rate.
                uses = (value / steepest, MOST) if is_rate else (LEAST, rate / value)
                path += [(use, value * table.factor * (1 if is_rate else use)) for use in uses]
        lines.append(line)
    labels = "Operations on each byte", style.vertical_label(table)
    figure, axes = panels.draw(lines, labels, panel=PANEL, sharey=True)
    for axis in axes:
        axis.set_xscale("log", base=4, subs=[])
        axis.xaxis.set_major_formatter("{x:.2g}")
    return figure


def _name(row: Row) -> str:
    """``DP avx512``, ``L1``, ``DRAM``, ``RWS of 1 KiB avx512``."""
    if row.table.name == LADDER:
        return shapes.level_of(row)
    isa = row.measured.points[0].details.get("isa", "")
    return (
        "DRAM" if row.key.variant == "pool" else f"{LabelFormatter.of(row).line(row, [row])} {isa}"
    )


FEW, MOST_NUMBERS = 4, 10
"""Up to so many places the figure is small, or each field holds its number."""
MOST_SHAPES = 128
"""Of more places than this, an SVG file holds a matrix as a picture."""


def plot_matrices(table: Table, rows: Sequence[Row]) -> Figure | None:
    """The figure of one table: a heat map for each workload of each node; None without rows, or
    with one number.

    CPUs stand in the order of the topology, so that those that lie near each other are neighbours.
    """
    grouped = shapes.matrices(rows)
    several = len({node for node, _ in grouped}) > 1
    symmetric = table.metric == "core_to_core"
    fields = {}
    for (node, _), members in grouped.items():
        matrix = [shapes.matrix_of(row) for row in members]
        values = {pair: value for each in matrix for pair, value in each.items()}
        field = pd.Series(values).unstack() * table.factor
        if symmetric:
            field = field.combine_first(field.T)
        places = shapes.places_of(members)
        title = LabelFormatter.of(members[0]).workload(members[0])
        fields[f"{title}, {node}" if several else title] = field.reindex(places, columns=places)
    axes_names = ("CPU", "CPU") if symmetric else ("Memory of node", "Cores of node")
    return _heat_maps(table, fields, axes_names) if fields else None


def plot_links(table: Table, rows: Sequence[Row], behind: Behind) -> Figure:
    """A heat map for each point: from each client to each server.

    Nodes stand in the order of the topology: below the largest switch, then the next smaller one.
    """
    switches = sorted(behind, key=lambda name: (-len(behind[name]), natural(name)))
    fields = {}
    for point in links.points(rows):
        nodes = fleet.node_names({"": point})
        nodes.sort(key=lambda node: [node not in behind[name] for name in switches])
        values = {
            pair: row.measured.centre * table.factor
            for row in point
            for pair in permutations(row.key.node.split("+"))
        }
        title = LabelFormatter.of(point[0]).point(point[0], node=False)
        fields[title] = pd.Series(values).unstack().reindex(nodes, columns=nodes)
    return _heat_maps(table, fields, ("Node", "Node"))


def _heat_maps(table: Table, fields: dict[str, pd.DataFrame], labels: tuple[str, str]) -> Figure:
    """Title -> matrix, as heat maps side by side; ``labels`` as of other figures."""
    side = 2.1 if max(map(len, fields.values())) <= FEW else style.WIDTH / 2
    panel = (side * 1.15 / style.WIDTH, side)
    figure, axes = style.small_multiples(list(fields), labels, panel, 2)
    for axis, places in zip(axes, fields.values(), strict=True):
        field = places.rename(index=str, columns=str)
        numbers = field.map(partial(significant, digits=3)) if len(field) <= MOST_NUMBERS else None
        sns.heatmap(
            field, ax=axis, square=True, cmap="viridis_r" if table.lower_is_better else "viridis",
            annot=numbers, fmt="", annot_kws={"fontsize": style.SMALL}, rasterized=len(field) > MOST_SHAPES,
            cbar_kws={"label": style.vertical_label(table), "shrink": 0.9, "format": style.NUMBER},
        )  # fmt: skip
        axis.set(xlabel=labels[0], ylabel=labels[1])
        axis.tick_params(axis="y", rotation=0)
    return figure


LINE, HEADLINE = 0.165, 0.5  # inches a line of dots takes in a table's figure, and on page one
NAMED = 2  # slow nodes beside their dots, in each line


def plot_fleet(rows: Rows) -> Figure | None:
    """Every node in the row that speaks for each resource; None where nothing was measured."""
    lines = []
    for name in verdict.planned(rows):
        groups = verdict.headline_groups(rows, name)
        if groups:
            point = LabelFormatter.of(groups[0].middle).point(groups[0].middle, node=False)
            lines.append((f"{SUBSYSTEMS[name].title}\n{point}", groups))
    return _plot_dots(lines, 7.0, HEADLINE)


def plot_nodes(rows: Sequence[Row]) -> Figure | None:
    """Every node in every point of a table; None where nothing was measured."""
    points: dict[fleet.PointOf, list[NodeGroup]] = {}
    for group in fleet.group_rows(rows):
        points.setdefault(fleet.place(group.middle), []).append(group)
    lines = []
    for groups in points.values():
        middle = groups[0].middle
        point = LabelFormatter.of(middle).point(middle, variant=True, node=False)
        lines.append((point, groups))
    return _plot_dots(lines, 5.5, LINE)


def _plot_dots(
    lines: Sequence[tuple[str, Sequence[NodeGroup]]], width: float, height: float
) -> Figure | None:
    """A line for each name and its classes of nodes: each node as a share of its class's median."""
    if not lines:
        return None
    figure, axis = style.named_lines([name for name, _ in lines], width, height)
    for position, (_, groups) in enumerate(lines):
        _draw_dots(axis, position, groups)
    axis.axvline(0, color=style.INK, linewidth=0.8, zorder=1)
    for side in (-fleet.DELTA, fleet.DELTA):
        axis.axvline(side, color=style.QUIET, linewidth=0.6, dashes=(4, 2), zorder=1)
    axis.margins(x=0.2)
    low, high = axis.get_xlim()
    axis.set_xlim(min(low, -1.6 * fleet.DELTA), max(high, 1.6 * fleet.DELTA))
    axis.xaxis.set_major_formatter(lambda share, _: f"{100 * share:+g}" if share else "0")
    noun = fleet.noun(row for _, groups in lines for group in groups for row in group.rows)
    axis.set_xlabel(f"{noun}: % from the median of their class")
    return figure


def _draw_dots(axis: Axes, position: int, groups: Sequence[NodeGroup]) -> None:
    """The nodes of one line; slow ones are open, and the slowest have their names."""
    rows = [row for group in groups for row in group.rows]
    shares = [row.measured.centre / group.median - 1 for group in groups for row in group.rows]
    # Each node has its height in all lines, so that dots do not hide each other.
    heights = [position + 0.3 * (zlib.crc32(row.key.node.encode()) % 201 / 100 - 1) for row in rows]
    usual, slow = style.look(0), style.look(1, is_open=True)
    looks = [slow if row.slow else usual for row in rows]
    axis.scatter(shares, heights, s=12, facecolor=[look.face for look in looks],
                 edgecolor=[look.colour for look in looks], linewidth=0.9, alpha=0.7, zorder=3)  # fmt: skip
    slowest = sorted(
        (
            (share, height, row.key.node)
            for share, height, row in zip(shares, heights, rows, strict=True)
            if row.slow
        ),
        key=lambda dot: -abs(dot[0]),
    )
    if slowest:
        share, height, _ = slowest[0]
        names = counted([f"{node} {percent(share)} %" for share, _, node in slowest], NAMED)
        axis.annotate(names, (share, height), xytext=(math.copysign(4, share), 0), textcoords="offset points",
                      ha="left" if share > 0 else "right", va="center", fontsize=style.SMALL, zorder=4)  # fmt: skip
