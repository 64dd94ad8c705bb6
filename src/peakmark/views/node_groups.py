"""Points that several nodes measured: the median over nodes, and the nodes that are slow."""

from __future__ import annotations

from collections import defaultdict
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
"""With at most this many nodes, tables on paper have a line for each node."""


@dataclass(frozen=True)
class NodeGroup:
    """The nodes of one class at one point.

    Attributes:
        points: the point on each node whose value counts, in the order of the nodes.
        every: the point on each node that was planned to measure it.
    """

    points: tuple[Point, ...]
    every: tuple[Point, ...]

    @cached_property
    def values(self) -> list[float]:
        """Return the values of the nodes, in SI units."""
        return [float(point.own.value) for point in self.points]

    @cached_property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    @property
    def range(self) -> float:
        """Return the difference between the highest and the lowest value, as a share of the median."""
        return (self.high - self.low) / self.median

    @cached_property
    def middle(self) -> Point:
        """Return the point of the node nearest to the median, which represents all nodes."""
        return min(self.points, key=lambda point: abs(point.own.value - self.median))

    @cached_property
    def worst(self) -> Point:
        """Return the point of the slowest node."""
        is_time = BY_NAME[self.points[0].own.table].lower_is_better
        worst = self.high if is_time else self.low
        return self.points[self.values.index(worst)]

    @property
    def node_class(self) -> str:
        """Return the name of the class; empty if all nodes belong to one class."""
        return str(self.points[0].own.node_class)

    @cached_property
    def slow(self) -> tuple[Point, ...]:
        """Return the points of the slow nodes."""
        return tuple(point for point in self.points if point.own.is_slow)

    def behind(self, point: Point) -> float:
        """Return the share by which a node is worse than its class; negative if it is better."""
        if point.own.is_slow:
            return float(point.own.behind)
        share = float(point.own.value) / self.median - 1
        return share if BY_NAME[point.own.table].lower_is_better else -share


def group_points(points: Iterable[Point]) -> list[NodeGroup]:
    """Return the points of one table as groups, class by class.

    A group needs at least one node with a usable value.
    """
    grouped: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        grouped[point.own.node_class, place_of(point)].append(point)
    groups = []
    for every in grouped.values():
        usable = tuple(point for point in every if is_usable(point))
        if usable:
            groups.append(NodeGroup(usable, tuple(every)))
    return sorted(groups, key=lambda group: group.node_class)


def place_of(point: Point) -> str:
    """Return the part of a point's name that is the same on all nodes: the name without the node."""
    return str(point.own.place)


def is_usable(point: Point) -> bool:
    """Return whether the value of peakmark's kernel can be compared with those of other nodes."""
    own = point.own
    return point.is_measured and own.severity != Severity.WRONG and own.low > 0


def is_many(frames: CampaignFrames) -> bool:
    """Return whether tables on paper have no room for a line for each node."""
    return len(frames.nodes) > MANY


def noun(points: Iterable[Point]) -> str:
    """Return the noun for the nodes of points: ``nodes``, ``pairs``, or both."""
    kinds = set()
    for point in points:
        kinds.add("pairs" if "+" in point.own.node else "nodes")
    return listed(sorted(kinds))


def typical_points(points: Sequence[Point]) -> list[Point]:
    """Return the points of the node that represents all nodes.

    Among the nodes of the largest class with the most points, it is the one nearest to the medians.
    """
    groups = group_points(points)
    off: dict[str, list[float]] = defaultdict(list)
    for group in groups:
        if group.node_class == groups[0].node_class:
            for point in group.points:
                off[point.own.node].append(abs(group.behind(point)))
    if not off:
        return list(points)
    node = min(off, key=lambda name: (-len(off[name]), statistics.median(off[name])))
    return [point for point in points if point.own.node == node]
