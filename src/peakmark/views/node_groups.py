"""Points that several nodes measured: the median over nodes, and the nodes that are slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from peakmark import statistics
from peakmark.formatting import listed
from peakmark.messages import Severity
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME
from peakmark.views.points import Point

MANY = 4
"""Largest number of nodes for which tables on paper have a line for each node."""
Place = tuple[str, str, int | None, int, str]
"""Workload, variant, block, concurrency and its word."""


@dataclass(frozen=True)
class NodeGroup:
    """The nodes of one class at one point.

    Attributes:
        points: of the nodes whose value counts, in the order of the nodes.
        every: of all nodes that were to measure it.
    """

    points: tuple[Point, ...]
    every: tuple[Point, ...]

    @cached_property
    def values(self) -> list[float]:
        """The values of the nodes, in SI units."""
        return [float(point.own.value) for point in self.points]

    @cached_property
    def median(self) -> float:
        """The median over the nodes."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The lowest value of a node."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The highest value of a node."""
        return max(self.values)

    @property
    def range(self) -> float:
        """The distance of the lowest from the highest node, as a share of the median."""
        return (self.high - self.low) / self.median

    @cached_property
    def middle(self) -> Point:
        """The node nearest to the median: it stands for all where one is shown."""
        return min(self.points, key=lambda point: abs(point.own.value - self.median))

    @cached_property
    def worst(self) -> Point:
        """The slowest node."""
        is_time = BY_NAME[self.points[0].own.table].lower_is_better
        worst = self.high if is_time else self.low
        return self.points[self.values.index(worst)]

    @property
    def node_class(self) -> str:
        """The name of the class, empty where there is one class only."""
        return str(self.points[0].own.node_class)

    @cached_property
    def slow(self) -> tuple[Point, ...]:
        """The nodes that are slow here."""
        return tuple(point for point in self.points if point.own.is_slow)

    def behind(self, point: Point) -> float:
        """Return by what share a node is worse than its class; negative where it is better."""
        if point.own.is_slow:
            return float(point.own.behind)
        share = float(point.own.value) / self.median - 1
        return share if BY_NAME[point.own.table].lower_is_better else -share


def group_points(points: Iterable[Point]) -> list[NodeGroup]:
    """Return the points of one table for each class, in their order.

    Points that no node measured well are left out.
    """
    grouped: dict[tuple[str, Place], list[Point]] = {}
    for point in points:
        grouped.setdefault((point.own.node_class, place_of(point)), []).append(point)
    groups = []
    for every in grouped.values():
        usable = tuple(point for point in every if is_usable(point))
        if usable:
            groups.append(NodeGroup(usable, tuple(every)))
    return sorted(groups, key=lambda group: group.node_class)


def place_of(point: Point) -> Place:
    """Return the point without its node.

    A word such as ``cores`` means another number on another kind of node, and is one place all the
    same.
    """
    own = point.own
    concurrency = 0 if own.concurrency_word else own.concurrency
    return own.workload, own.variant, own.block_bytes, concurrency, own.concurrency_word


def is_usable(point: Point) -> bool:
    """Return whether the value of peakmark's kernel may stand beside those of other nodes."""
    own = point.own
    return point.is_measured and own.severity != Severity.WRONG and own.low > 0


def is_many(frames: CampaignFrames) -> bool:
    """Return whether there are too many nodes for tables with a line for each."""
    return len(frames.nodes) > MANY


def noun(points: Iterable[Point]) -> str:
    """Return what points are of: ``nodes``, ``pairs``, or both."""
    kinds = set()
    for point in points:
        kinds.add("pairs" if "+" in point.own.node else "nodes")
    return listed(sorted(kinds))


def typical_points(points: Sequence[Point]) -> list[Point]:
    """Return the points of the node nearest to the medians of the largest class.

    It stands for all nodes where one is shown.
    """
    groups = group_points(points)
    off: dict[str, list[float]] = {}
    for group in groups:
        if group.node_class == groups[0].node_class:
            for point in group.points:
                off.setdefault(point.own.node, []).append(abs(group.behind(point)))
    if not off:
        return list(points)
    node = min(off, key=lambda name: (-len(off[name]), statistics.median(off[name])))
    return [point for point in points if point.own.node == node]
