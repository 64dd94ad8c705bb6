"""Many nodes as dots on a line: each point of a table, or each resource, with every node as a share
of their median.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peakmark.analysis import fleet, verdict
from peakmark.analysis.fleet import NodeGroup
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row, Rows
from peakmark.catalogue import SUBSYSTEMS
from peakmark.figures import style
from peakmark.formatting import percent

WIDTH, WIDE = 7.0, 10.2  # inches: a portrait page, a landscape page
LINE, BIG = 0.165, 0.5  # inches a line of dots takes in a table's figure, and on page one
FARTHEST = 1.0  # shares of the median beyond which a dot stands at the edge
NAMED = 3
SLOW = style.look(1).colour
Places = Sequence[tuple[Row, float]]
"""Rows of one point with their distances, of all classes."""


def overview(rows: Rows) -> Figure | None:
    """Every node in the row that speaks for each resource; None where nothing was measured."""
    lines = []
    for name in verdict.planned(rows):
        groups = verdict.headline_groups(rows, name)
        if groups:
            point = LabelFormatter.of(groups[0].middle).point(groups[0].middle, node=False)
            lines.append((f"{SUBSYSTEMS[name].title}\n{point}", _places(groups)))
    return _figure(lines, WIDTH, True)


def plot(rows: Sequence[Row]) -> Figure | None:
    """Every node in every point of a table; None where nothing was measured."""
    by_point: dict[fleet.PointOf, list[NodeGroup]] = {}
    for group in fleet.group_rows(rows):
        by_point.setdefault(fleet.place(group.middle), []).append(group)
    lines = [(_name(groups[0]), _places(groups)) for groups in by_point.values()]
    return _figure(lines, 0.54 * WIDE, False)


def _places(groups: Sequence[NodeGroup]) -> Places:
    """Each node with its distance from the median of its class, as a share of it."""
    return [(row, row.measured.centre / group.median - 1) for group in groups for row in group.rows]


def _name(group: NodeGroup) -> str:
    return LabelFormatter.of(group.middle).point(group.middle, variant=True, node=False)


def _figure(lines: Sequence[tuple[str, Places]], width: float, large: bool) -> Figure | None:
    if not lines:
        return None
    figure = style.figure(width, (BIG if large else LINE) * len(lines) + 0.6)
    axis = figure.subplots()
    for position, (_, places) in enumerate(lines):
        _dots(axis, position, places, large)
    axis.axvline(0, color=style.INK, linewidth=0.8, zorder=1)
    for side in (-1, 1):
        axis.axvline(side * fleet.DELTA, color=style.QUIET, linewidth=0.6, dashes=(4, 2), zorder=1)
    axis.set_yticks(range(len(lines)), [name for name, _ in lines])
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(lines) - 0.5, -0.6)
    axis.margins(x=0.2)  # room for names
    low, high = axis.get_xlim()
    axis.set_xlim(min(low, -1.6 * fleet.DELTA), max(high, 1.6 * fleet.DELTA))
    axis.xaxis.set_major_formatter(lambda share, _: f"{100 * share:+g}" if share else "0")
    every = fleet.noun(row for _, places in lines for row, _ in places)
    axis.set_xlabel(f"{every}: % from the median of their class")
    axis.grid(axis="y")
    axis.grid(False, axis="x")
    sns.despine(ax=axis, left=True)
    return figure


def _inside(share: float) -> float:
    """A distance inside the axis."""
    return max(-FARTHEST, min(FARTHEST, share))


def _dots(axis: Axes, position: int, places: Places, large: bool) -> None:
    plain = style.look(0).colour

    def height(row: Row) -> float:
        return position + (0.3 if large else 0.16) * _aside(row.key.node)

    for slow, colour, face, alpha in ((False, plain, plain, 0.55), (True, SLOW, "white", 1)):
        shown = [(row, share) for row, share in places if bool(row.slow) is slow]
        axis.scatter([_inside(share) for _, share in shown], [height(row) for row, _ in shown], s=16 if large else 9,
                     facecolor=face, edgecolor=colour, linewidth=0.9, alpha=alpha, zorder=3)  # fmt: skip
    for place, (row, share) in enumerate(_named(places)):
        axis.annotate(
            f"{row.key.node} {percent(share)} %" if large else row.key.node, (_inside(share), height(row)),
            xytext=(math.copysign(4, share), (0, 6, -6)[place] if large else 0), textcoords="offset points",
            ha="left" if share > 0 else "right", va="center", fontsize=style.SMALL, color=style.INK, zorder=4,
        )  # fmt: skip


def _named(places: Places) -> list[tuple[Row, float]]:
    """The nodes whose names stand beside their dots."""
    slow = [(row, share) for row, share in places if row.slow]
    return sorted(slow, key=lambda pair: -abs(pair[1]))[:NAMED]


def _aside(node: str) -> float:
    """From -1 to 1, the same for a node in each line, so that dots do not hide each other."""
    return zlib.crc32(node.encode()) % 201 / 100 - 1
