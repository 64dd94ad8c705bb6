"""Many nodes as dots on a line: each point of a table, or each resource, with every node as a share
of their median.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.analysis import fleet, verdict
from peakmark.analysis.fleet import NodeGroup
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.figures import style
from peakmark.formatting import percent
from peakmark.tools.tables import Table

WIDTH, WIDE = 7.0, 10.2  # inches: a portrait page, a landscape page
LINE, BIG = 0.165, 0.5  # inches a line of dots takes in a table's figure, and on page one
FARTHEST = 0.5  # shares of the median beyond which a dot stands at the edge
NAMED = 3
Slow = frozenset[tuple[str, str]]
"""Subsystem and node."""
APART = style.look(1).colour


def overview(rows: Mapping[str, Sequence[Row]]) -> Figure | None:
    """Every node in the row that speaks for each resource; None where nothing was measured."""
    groups = {name: verdict.headline_group(rows, name) for name in verdict.planned(rows)}
    lines = [
        (
            f"{SUBSYSTEMS[name].title}\n{LabelFormatter.of(group.middle).point_on_all(group.middle)}",
            group,
        )
        for name, group in groups.items()
        if group is not None
    ]
    return _figure(lines, WIDTH, True, slow(rows))


def plot(table: Table, rows: Sequence[Row], slow: Slow = frozenset()) -> Figure | None:
    """Every node in every point of a table; None where nothing was measured. ``slow``: see there."""
    lines = [(_name(table, group), group) for group in fleet.group_rows(rows)]
    return _figure(lines, 0.54 * WIDE, False, slow)


def slow(rows: Mapping[str, Sequence[Row]]) -> Slow:
    """The nodes that are slow in a resource, by most rows or by all together: they are marked in
    each of its rows.
    """
    return frozenset(
        (entry.subsystem, entry.node) for entry in fleet.slow_nodes(rows) if entry.mostly
    )


def _name(table: Table, group: NodeGroup) -> str:
    row = group.middle
    variant = (
        f" {row.key.variant}" if table.variant and row.key.variant not in ("", "psync") else ""
    )
    return LabelFormatter.of(row).point_on_all(row, variant)


def _figure(
    lines: Sequence[tuple[str, NodeGroup]], width: float, large: bool, slow: Slow
) -> Figure | None:
    if not lines:
        return None
    figure = style.figure(width, (BIG if large else LINE) * len(lines) + 0.6)
    axis = figure.subplots()
    for position, (_, group) in enumerate(lines):
        _dots(axis, position, group, _slow_in(group, slow), large)
    axis.axvline(0, color=style.LIMIT, linewidth=0.8, zorder=1)
    for side in (-1, 1):
        axis.axvline(side * fleet.BEYOND, color=style.QUIET, linewidth=0.6, dashes=(4, 2), zorder=1)
    axis.set_yticks(range(len(lines)), [name for name, _ in lines])
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(lines) - 0.5, -0.6)
    low, high = _extent(lines, slow)
    axis.set_xlim(low, high)
    ticks = [
        tick
        for tick in (round(float(tick), 6) for tick in axis.get_xticks())
        if low <= tick <= high
    ]
    axis.set_xticks(ticks, [f"{100 * tick:+g}" if tick else "0" for tick in ticks])
    axis.set_xlim(low, high)
    axis.set_xlabel("% from the median of the nodes")
    axis.grid(axis="y")
    axis.grid(False, axis="x")
    sns.despine(ax=axis, left=True)
    return figure


def _share(group: NodeGroup, row: Row) -> float:
    """A node's distance from the median as a share of it, inside the axis."""
    share = row.measured.centre / group.median - 1
    return max(-FARTHEST, min(FARTHEST, share))


def _slow_in(group: NodeGroup, slow: Slow) -> list[Row]:
    """The rows of nodes that are slow in the resource, of those that do not lie apart in this row
    already.
    """
    apart = {row.key.node for row in (*group.slow, *group.fast)}
    nodes = {node for subsystem, node in slow if subsystem == group.table.subsystem} - apart
    return [row for row in group.rows if row.key.node in nodes]


def _dots(axis: Axes, position: int, group: NodeGroup, slow: Sequence[Row], large: bool) -> None:
    apart = [*group.slow, *group.fast]
    marked = {row.key.node for row in (*apart, *slow)}
    usual = [row for row in group.rows if row.key.node not in marked]
    plain = style.look(0).colour
    looks = (
        (usual, plain, plain, "o", 0.55),
        (apart, APART, "white", "o", 1),
        (slow, APART, "white", "v", 1),
    )

    def height(row: Row) -> float:
        return position + (0.3 if large else 0.16) * _aside(row.key.node)

    for rows, colour, face, marker, alpha in looks:
        axis.scatter([_share(group, row) for row in rows], list(map(height, rows)), s=16 if large else 9, facecolor=face,
                     edgecolor=colour, linewidth=0.9, marker=marker, alpha=alpha, zorder=3)  # fmt: skip
    for place, row in enumerate(_named(group, slow)):
        share = _share(group, row)
        axis.annotate(
            f"{row.key.node} {percent(share)} %" if large else row.key.node, (share, height(row)),
            xytext=(math.copysign(4, share), (0, 6, -6)[place] if large else 0), textcoords="offset points",
            ha="left" if share > 0 else "right", va="center", fontsize=style.SMALL, color=style.INK, zorder=4,
        )  # fmt: skip


def _named(group: NodeGroup, slow: Sequence[Row]) -> list[Row]:
    """The nodes whose names stand beside their dots."""
    return sorted((*group.slow, *group.fast, *slow), key=lambda row: -abs(_share(group, row)))[
        :NAMED
    ]


def _extent(lines: Sequence[tuple[str, NodeGroup]], slow: Slow) -> tuple[float, float]:
    """The ends of the axis, with room for names where there are some."""
    shares = [_share(group, row) for _, group in lines for row in group.rows]
    named = [
        _share(group, row) for _, group in lines for row in _named(group, _slow_in(group, slow))
    ]
    low, high = min(-1.6 * fleet.BEYOND, *shares), max(1.6 * fleet.BEYOND, *shares)
    room, margin = 0.22 * (high - low), 0.04 * (high - low)
    left = room if any(share < 0 for share in named) else margin
    return low - left, high + (room if any(share > 0 for share in named) else margin)


def _aside(node: str) -> float:
    """From -1 to 1, the same for a node in each line, so that dots do not hide each other."""
    return zlib.crc32(node.encode()) % 201 / 100 - 1
