"""Many nodes as dots on a line: each point of a table, or each resource, with every node as a share of their median."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.figures import style
from peakmark.formatting import percent
from peakmark.instruments.tables import Table
from peakmark.judging import fleet, verdict
from peakmark.judging.fleet import Spot
from peakmark.judging.naming import Naming
from peakmark.judging.row import Row

WIDTH, WIDE = 7.0, 10.2  # inches: a portrait page, a landscape page
LINE, BIG = 0.165, 0.5  # inches a line of dots takes in a table's figure, and on page one
FARTHEST = 0.5  # shares of the median beyond which a dot stands at the edge
NAMED = 3
Slow = frozenset[tuple[str, str]]
"""Subsystem and node."""
APART = style.look(1).colour


def overview(rows: Mapping[str, Sequence[Row]], mark: str = ".") -> Figure | None:
    """Every node in the row that speaks for each resource; None where nothing was measured."""
    spots = {name: verdict.headline_spot(rows, name) for name in verdict.planned(rows)}
    lines = [
        (f"{SUBSYSTEMS[name].title}\n{Naming.of(spot.middle).point_on_all(spot.middle)}", spot)
        for name, spot in spots.items()
        if spot is not None
    ]
    return _figure(lines, WIDTH, True, mark, slow(rows))


def plot(table: Table, rows: Sequence[Row], mark: str = ".", slow: Slow = frozenset()) -> Figure | None:
    """Every node in every point of a table; None where nothing was measured. ``slow``: see there."""
    lines = [(_name(table, spot), spot) for spot in fleet.spots(rows)]
    return _figure(lines, 0.54 * WIDE, False, mark, slow)


def slow(rows: Mapping[str, Sequence[Row]]) -> Slow:
    """The nodes that are slow in a resource, by most rows or by all together: they are marked in each of its rows."""
    return frozenset((entry.subsystem, entry.node) for entry in fleet.slow_nodes(rows) if entry.mostly)


def _name(table: Table, spot: Spot) -> str:
    row = spot.middle
    variant = f" {row.key.variant}" if table.variant and row.key.variant not in ("", "psync") else ""
    return Naming.of(row).point_on_all(row, variant)


def _figure(lines: Sequence[tuple[str, Spot]], width: float, large: bool, mark: str, slow: Slow) -> Figure | None:
    if not lines:
        return None
    figure = style.figure(width, (BIG if large else LINE) * len(lines) + 0.6)
    axis = figure.subplots()
    for position, (_, spot) in enumerate(lines):
        _dots(axis, position, spot, mark, _slow_in(spot, slow), large)
    axis.axvline(0, color=style.LIMIT, linewidth=0.8, zorder=1)
    for side in (-1, 1):
        axis.axvline(side * fleet.BEYOND, color=style.QUIET, linewidth=0.6, dashes=(4, 2), zorder=1)
    axis.set_yticks(range(len(lines)), [name for name, _ in lines])
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(lines) - 0.5, -0.6)
    low, high = _extent(lines, slow)
    axis.set_xlim(low, high)
    ticks = [tick for tick in (round(float(tick), 6) for tick in axis.get_xticks()) if low <= tick <= high]
    axis.set_xticks(ticks, [f"{100 * tick:+g}".replace(".", mark) if tick else "0" for tick in ticks])
    axis.set_xlim(low, high)
    axis.set_xlabel("% from the median of the nodes")
    axis.grid(axis="y")
    axis.grid(False, axis="x")
    sns.despine(ax=axis, left=True)
    return figure


def _share(spot: Spot, row: Row) -> float:
    """A node's distance from the median as a share of it, inside the axis."""
    share = row.measured.centre / spot.median - 1
    return max(-FARTHEST, min(FARTHEST, share))


def _slow_in(spot: Spot, slow: Slow) -> list[Row]:
    """The rows of nodes that are slow in the resource, of those that do not lie apart in this row already."""
    apart = {row.key.node for row in (*spot.slow, *spot.fast)}
    nodes = {node for subsystem, node in slow if subsystem == spot.table.subsystem} - apart
    return [row for row in spot.rows if row.key.node in nodes]


def _dots(axis: Axes, position: int, spot: Spot, mark: str, slow: Sequence[Row], large: bool) -> None:
    apart = [*spot.slow, *spot.fast]
    marked = {row.key.node for row in (*apart, *slow)}
    usual = [row for row in spot.rows if row.key.node not in marked]
    plain = style.look(0).colour
    looks = ((usual, plain, plain, "o", 0.55), (apart, APART, "white", "o", 1), (slow, APART, "white", "v", 1))

    def height(row: Row) -> float:
        return position + (0.3 if large else 0.16) * _aside(row.key.node)

    for rows, colour, face, marker, alpha in looks:
        axis.scatter([_share(spot, row) for row in rows], list(map(height, rows)), s=16 if large else 9, facecolor=face,
                     edgecolor=colour, linewidth=0.9, marker=marker, alpha=alpha, zorder=3)  # fmt: skip
    for place, row in enumerate(_named(spot, slow)):
        share = _share(spot, row)
        axis.annotate(
            f"{row.key.node} {percent(share, mark)} %" if large else row.key.node, (share, height(row)),
            xytext=(math.copysign(4, share), (0, 6, -6)[place] if large else 0), textcoords="offset points",
            ha="left" if share > 0 else "right", va="center", fontsize=6.5, color=style.INK, zorder=4,
        )  # fmt: skip


def _named(spot: Spot, slow: Sequence[Row]) -> list[Row]:
    """The nodes whose names stand beside their dots."""
    return sorted((*spot.slow, *spot.fast, *slow), key=lambda row: -abs(_share(spot, row)))[:NAMED]


def _extent(lines: Sequence[tuple[str, Spot]], slow: Slow) -> tuple[float, float]:
    """The ends of the axis, with room for names where there are some."""
    shares = [_share(spot, row) for _, spot in lines for row in spot.rows]
    named = [_share(spot, row) for _, spot in lines for row in _named(spot, _slow_in(spot, slow))]
    low, high = min(-1.6 * fleet.BEYOND, *shares), max(1.6 * fleet.BEYOND, *shares)
    room, margin = 0.22 * (high - low), 0.04 * (high - low)
    left = room if any(share < 0 for share in named) else margin
    return low - left, high + (room if any(share > 0 for share in named) else margin)


def _aside(node: str) -> float:
    """From -1 to 1, the same for a node in each line, so that dots do not hide each other."""
    return zlib.crc32(node.encode()) % 201 / 100 - 1
