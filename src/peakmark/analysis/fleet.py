"""Many nodes: classes of equal ones, the median of each at every point, and which nodes are slow.

A node is slow in a row where the whole interval of its median is worse than its class by ``DELTA``
and chance is ruled out. docs/method.md (Many nodes) tells how often that is wrong.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import eq
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from peakmark import statistics
from peakmark.analysis import findings
from peakmark.analysis.findings import Conclusion
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Row, Rows, SlowRow
from peakmark.formatting import counted, listed, natural, percent, plural, quantity
from peakmark.messages import Message, Severity, message
from peakmark.storage.facts import node_class
from peakmark.tools.tables import Table

DELTA = 0.03
"""Share of the class's value by which a node must be behind to be called slow."""
LEAST_REPETITIONS = statistics.ENOUGH
LEAST_NODES = 4
"""Fewer nodes of a class tell nothing of each other."""
RATE = 0.05
"""Share of false ones among the nodes that are called slow, at most."""
CUT = 2.5
"""Standard deviations from the class's value beyond which a node is none of its bulk."""
ROUNDS = 10
"""After so many the bulk stays as it is."""
NORMAL = NormalDist()
MANY = 4
"""Of more nodes than this, tables on paper have a row for each point, not for each node."""
NAMED = 8
"""So many nodes are named; the others are counted."""

Array = NDArray[np.float64]
PointOf = tuple[str, str, int | None, int, str]
Place = tuple[str, Hashable]
"""A node or a link, and the key of a row."""
Values = Mapping[Place, Sequence[float]]
Family = dict[Place, Row]
"""The rows of the nodes of one class, or of the links of one kind."""


class Equipment(NamedTuple):
    """What nodes of a class have in common, in words; empty where the facts do not tell it."""

    cpu: str = ""
    memory: str = ""
    network: str = ""
    kernel: str = ""
    clock: str = ""


@dataclass(frozen=True)
class FleetClass:
    """Nodes that are judged beside each other, in the order of their names.

    Attributes:
        name: A for the largest class, B for the next; empty where there is one class only.
        equipment: what most of its nodes have.
    """

    name: str
    equipment: Equipment
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class NodeGroup:
    """The rows of one point of a table, of which each is another node of one class; none is wrong,
    in the order of the nodes' names.

    every  the rows of all nodes that were to measure it
    """

    rows: tuple[Row, ...]
    every: tuple[Row, ...]

    @property
    def table(self) -> Table:
        """The table to which the point belongs."""
        return self.rows[0].table

    @property
    def point(self) -> PointOf:
        """What its rows have in common, see ``place``."""
        return place(self.rows[0])

    @cached_property
    def centres(self) -> list[float]:
        """The nodes' summarised values, in SI units."""
        return [row.measured.centre for row in self.rows]

    @cached_property
    def median(self) -> float:
        """Of the nodes' values."""
        return statistics.median(self.centres)

    @cached_property
    def middle(self) -> Row:
        """The node whose value is nearest to the median: it stands for all where one is to be
        shown.
        """
        return min(self.rows, key=lambda row: abs(row.measured.centre - self.median))

    @cached_property
    def worst(self) -> Row:
        """The slowest node."""
        worst = self.high if self.table.lower_is_better else self.low
        return self.rows[self.centres.index(worst)]

    @property
    def low(self) -> float:
        """The lowest node's value, in SI units."""
        return min(self.centres)

    @property
    def high(self) -> float:
        """The highest node's."""
        return max(self.centres)

    @property
    def range(self) -> float:
        """From the lowest to the highest node, as a share of the median."""
        return (self.high - self.low) / self.median

    def behind(self, row: Row) -> float:
        """By what share a node is worse than its class; negative where it is better."""
        if row.slow:
            return row.slow.behind
        share = row.measured.centre / self.median - 1
        return share if self.table.lower_is_better else -share

    @property
    def node_class(self) -> str:
        """The name of the class of the nodes, empty where there is one class only."""
        return self.rows[0].node_class

    @cached_property
    def slow(self) -> tuple[Row, ...]:
        """The nodes that are slow in this row."""
        return tuple(row for row in self.rows if row.slow)


@dataclass(frozen=True)
class SlowNode:
    """A node that is slow in some rows of a resource.

    Attributes:
        rows: the slow ones, the slowest first.
        judged: how many rows of the resource were judged on the node.
    """

    node: str
    subsystem: str
    rows: tuple[Row, ...]
    judged: int

    @cached_property
    def verdicts(self) -> list[SlowRow]:
        """The verdict on each slow row."""
        return [row.slow for row in self.rows if row.slow]

    @property
    def behind(self) -> float:
        """By what share of its class's value it is behind, in the median of its slow rows."""
        return statistics.median([each.behind for each in self.verdicts])

    @property
    def low(self) -> float:
        """The least that any slow row may be behind, by its interval."""
        return min(each.low for each in self.verdicts)

    @property
    def high(self) -> float:
        """The most."""
        return max(each.high for each in self.verdicts)


def node_names(rows: Rows) -> list[str]:
    """The nodes of a campaign, as far as rows name them, node2 before node10."""
    names = {row.key.node for table in rows.values() for row in table}
    return sorted({node for name in names for node in name.split("+")}, key=natural)


def is_many(rows: Rows) -> bool:
    """Whether there are too many nodes for tables with a row for each."""
    return len(node_names(rows)) > MANY


def equipment(facts: Mapping[str, Any]) -> Equipment:
    """What a node has, by its facts (``machine/<host>.json``)."""
    known = node_class(facts)
    if known is None:
        return Equipment()
    network, cpu = facts.get("network") or {}, facts.get("cpu") or {}
    speed = quantity(network["speed_bps"], "bit/s") if network.get("speed_bps") else ""
    card = " ".join(filter(None, [network.get("driver"), speed]))
    turbo = "" if cpu.get("turbo") is None else "turbo on" if cpu["turbo"] else "turbo off"
    clock = ", ".join(filter(None, [cpu.get("governor"), turbo]))
    return Equipment(known.cpu, known.memory, card, known.kernel, clock)


def classes(facts: Mapping[str, Mapping[str, Any]]) -> list[FleetClass]:
    """The classes of nodes, the largest first.

    A class of fewer than ``LEAST_NODES`` nodes joins the one that has most in common with it, of
    those with the same CPU: what makes its nodes slow may be just what they have alone.

    Args:
        facts: node -> its facts.
    """
    by_node = {node: equipment(facts[node]) for node in sorted(facts, key=natural)}
    counts = Counter(by_node.values())
    members: dict[Equipment, list[str]] = defaultdict(list)
    for node, own in by_node.items():

        def fit(other: Equipment, own: Equipment = own) -> tuple[bool, int, int]:
            is_large = counts[other] >= LEAST_NODES
            common = sum(map(eq, own, other)) if is_large else 0
            return is_large, common, counts[other]

        members[max((other for other in counts if other.cpu == own.cpu), key=fit)].append(node)
    ordered = sorted(members.items(), key=lambda pair: -len(pair[1]))
    names = [class_name(place) if len(ordered) > 1 else "" for place in range(len(ordered))]
    return [
        FleetClass(name, equal, tuple(nodes))
        for name, (equal, nodes) in zip(names, ordered, strict=True)
    ]


def class_name(place: int) -> str:
    """``A`` to ``Z``, then ``Z1`` and so on."""
    return chr(ord("A") + place) if place < 26 else f"Z{place - 25}"


def with_verdicts(by_table: Rows, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Row]]:
    """The rows with the class of their node, and where they are slow.

    Args:
        by_table: the rows of each table.
        facts: node -> its facts.
    """
    class_of = {node: each.name for each in classes(facts) for node in each.nodes}
    found = {
        name: [replace(row, node_class=class_of.get(row.key.node, "")) for row in table]
        for name, table in by_table.items()
    }
    slow: dict[Place, SlowRow] = {}
    for family in families(found):
        slow |= judge(values_of(family), times(family))
    return {
        name: [replace(row, slow=slow.get((row.key.node, (name, *place(row))))) for row in table]
        for name, table in found.items()
    }


def families(tables: Rows) -> list[Family]:
    """The rows by which the nodes of each class are judged."""
    classes: dict[str, Family] = defaultdict(dict)
    for name, rows in tables.items():
        for row in filter(is_judged, rows):
            classes[row.node_class][row.key.node, (name, *place(row))] = row
    return list(classes.values())


def values_of(family: Family) -> Values:
    """The repetitions of each row."""
    return {place: row.measured.values for place, row in family.items()}


def times(family: Family) -> set[Hashable]:
    """The keys of rows of which a low value is good."""
    return {key for (_, key), row in family.items() if row.table.lower_is_better}


def group_rows(rows: Iterable[Row]) -> list[NodeGroup]:
    """The points of one table for each class, in the order in which its rows have them; points that
    nobody measured are left out.
    """
    grouped: dict[tuple[str, PointOf], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row.node_class, place(row)), []).append(row)
    measured = [
        NodeGroup(tuple(filter(_usable, every)), tuple(every)) for every in grouped.values()
    ]
    return sorted((group for group in measured if group.rows), key=lambda group: group.node_class)


def place(row: Row) -> PointOf:
    """The row's point: all of its key but the node."""
    key = row.key
    # A word means another number on another kind of node, and is one point nevertheless.
    return key.workload, key.variant, key.block, 0 if key.word else key.concurrency, key.word


def _usable(row: Row) -> bool:
    return row.own is not None and row.level is not Severity.WRONG and row.measured.summary.low > 0


def is_judged(row: Row) -> bool:
    """Whether the row has what it takes to be judged; whether its class has, is not asked. Pairs of
    nodes are judged by ``links``.
    """
    return not row.is_pair and _usable(row) and row.measured.summary.n >= LEAST_REPETITIONS


def noun(rows: Iterable[Row]) -> str:
    """What rows are of: ``nodes``, ``pairs``, or both."""
    return listed(sorted({"pairs" if row.is_pair else "nodes" for row in rows}))


def typical_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows of one table on the node that comes nearest to the medians of the largest class: it
    stands for all where one is to.
    """
    off: dict[str, list[float]] = {}
    groups = group_rows(rows)
    largest = (group for group in groups if group.node_class == groups[0].node_class)
    for group in largest:
        for row in group.rows:
            off.setdefault(row.key.node, []).append(abs(group.behind(row)))
    if not off:
        return list(rows)
    node = min(off, key=lambda name: (-len(off[name]), statistics.median(off[name])))
    return [row for row in rows if row.key.node == node]


def slow_nodes(rows: Rows) -> list[SlowNode]:
    """Every node that is slow in a row of a resource, the slowest first."""
    judged: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for table in rows.values():
        for row in filter(is_judged, table):
            judged[row.key.node, row.table.subsystem].append(row)
    found = []
    for (node, subsystem), every in judged.items():
        slow = sorted(
            (row for row in every if row.slow),
            key=lambda row: -row.slow.behind if row.slow else 0,
        )
        if slow:
            found.append(SlowNode(node, subsystem, tuple(slow), len(every)))
    return sorted(found, key=lambda each: (-each.behind, natural(each.node)))


def judged_nodes(rows: Rows) -> set[str]:
    """The nodes of which a row was judged."""
    classes = ({node for node, _ in family} for family in families(rows))
    return {node for nodes in classes if len(nodes) >= LEAST_NODES for node in nodes}


def unjudged(rows: Rows, every: Sequence[FleetClass]) -> Iterator[Message]:
    """What no verdict was possible on: nodes without a value, small classes, rows of few
    repetitions.
    """
    usable = [row for table in rows.values() for row in filter(_usable, table)]
    with_value = node_names({"": usable})
    empty = [node for node in node_names(rows) if node not in with_value]
    if empty:
        yield message("unjudged", case="empty", nodes=counted(empty, NAMED))
    few = [node for each in every if len(each.nodes) < LEAST_NODES for node in each.nodes]
    if few:
        yield message("unjudged", case="class", nodes=counted(few, NAMED), least=LEAST_NODES)
    points = {(row.table.name, place(row)) for row in usable if not row.is_pair}
    judged = {(row.table.name, place(row)) for row in filter(is_judged, usable)}
    short = len(points - judged)
    if short:
        yield message("unjudged", case="rows", rows=short, of=len(points), least=LEAST_REPETITIONS)


def fleet_conclusions(rows: Sequence[Row]) -> list[Conclusion]:
    """The findings of one table of many nodes: on the nodes, then what the rows of the typical node
    say.
    """
    typical = [replace(row, key=row.key._replace(node="any")) for row in typical_rows(rows)]
    sentences = [
        replace(finding, heading=f"{finding.heading}, typical node")
        if finding.topic is Topic.LIMIT
        else finding
        for finding in findings.conclusions(typical)
    ]
    return [*node_conclusions(rows), *sentences]


def node_conclusions(rows: Sequence[Row]) -> list[Conclusion]:
    """How far nodes spread in the points of one table, and which are slow."""
    single = (row for row in rows if not row.is_pair)
    groups = [group for group in group_rows(single) if len(group.rows) > 1]
    if not groups:
        return []
    labels = LabelFormatter(groups[0].table)
    ordered = sorted(groups, key=lambda group: group.range)
    least, most = ordered[0], ordered[-1]
    spread = message(
        "nodes-spread",
        case="" if most is not least else "one",
        low=least.range,
        lowest=labels.point(least.middle, variant=True, node=False),
        high=most.range,
        highest=labels.point(most.middle, variant=True, node=False),
    )
    found = [(Topic.NODES, spread)]
    slow = slow_nodes({"": rows})
    if slow:
        named = [
            f"{each.node} ({plural(len(each.rows), 'row')}, up to {percent(each.verdicts[0].behind)}\u00a0%)"
            for each in slow
        ]
        found.append(
            (Topic.APART, message("slow-rows", rows=len(groups), nodes=counted(named, NAMED)))
        )
    return [Conclusion(topic, topic.heading(labels.table), each) for topic, each in found]


def judge(
    values: Values,
    lower_is_better: Collection[Hashable] = (),
    delta: float = DELTA,
    rate: float = RATE,
) -> dict[Place, SlowRow]:
    """The slow rows of the nodes of one class.

    A node is slow in a row where the whole interval of its median is worse than the class's value
    by more than ``delta``, and a healthy node would hardly be so: Simes's p of all rows of a node
    decides among the nodes, and Benjamini and Hochberg's among the rows of those found, so that
    the share of false ones among the nodes is at most ``rate``.

    Args:
        values: repetitions, positive, in any unit. Rows with fewer than ``LEAST_REPETITIONS`` are
            left out.
        lower_is_better: the keys of rows that are times.
        delta: share of the class's value.
        rate: false discovery rate.

    Returns:
        Slow rows; none of fewer than ``LEAST_NODES`` nodes.

    Source: Benjamini and Bogomolov, Journal of the Royal Statistical Society B 76 (2014), pages
    297-318.
    """
    from scipy import stats

    lines, columns = (_numbered(place[part] for place in values) for part in (0, 1))
    if len(lines) < LEAST_NODES:
        return {}
    is_time = np.array([key in lower_is_better for key in columns])
    # Low end of the interval, median, and high end, by node and row, as logarithms of times.
    medians = np.full((3, len(lines), len(columns)), np.nan)
    for (node, key), repetitions in values.items():
        if len(repetitions) >= LEAST_REPETITIONS:
            sign = 1 if key in lower_is_better else -1
            logs = np.sort(sign * np.log(repetitions))
            rank, _ = statistics.median_rank(len(logs))
            ends = logs[rank - 1], statistics.median(logs), logs[-rank]
            medians[:, lines[node], columns[key]] = ends
    centre, scale, freedom = np.array([_bulk(row) for row in medians[1].T]).T
    worse = medians - centre
    error = scale * np.sqrt(1 + 1 / (freedom + 1))
    p = np.nan_to_num(stats.t.sf(worse[1] / error, freedom), nan=1.0)
    by_row = stats.false_discovery_control(p, axis=1)
    found = stats.false_discovery_control(by_row.min(axis=1)) <= rate
    behind = np.where(is_time, np.expm1(worse), -np.expm1(-worse))
    slow = found[:, None] & (by_row <= rate * found.mean()) & (behind[0] > delta)
    verdicts = {}
    for place in values:
        at = lines[place[0]], columns[place[1]]
        if slow[at]:
            low, middle, high = behind[:, *at].tolist()
            verdicts[place] = SlowRow(middle, low, high, float(p[at]))
    return verdicts


def _numbered(names: Iterable[Hashable]) -> dict[Hashable, int]:
    """Each name once, with its number."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _bulk(values: Array) -> tuple[float, float, float]:
    """Centre and standard deviation of the bulk of a class, and its degrees of freedom.

    The bulk is the shortest half of the nodes, then those within ``CUT`` standard deviations of its
    median, until they stay the same. More than a third of the nodes may be slow.

    Source: Rousseeuw and Leroy, Robust Regression and Outlier Detection, 1987, chapter 4.
    """
    ordered = np.sort(values[np.isfinite(values)])
    if ordered.size < LEAST_NODES:
        return np.nan, np.nan, np.nan
    half = ordered.size // 2 + 1
    widths = ordered[half - 1 :] - ordered[: 1 - half]
    first = int(widths.argmin())
    bulk = ordered[first : first + half]
    end = NORMAL.inv_cdf((1 + half / ordered.size) / 2)
    for _ in range(ROUNDS):
        centre = float(np.median(bulk))
        # Of a normal distribution only the middle is seen, up to so many standard deviations.
        within = 2 * NORMAL.cdf(end) - 1
        seen = 1 - 2 * end * NORMAL.pdf(end) / within
        spread = float(bulk.std(ddof=1)) / math.sqrt(seen)
        scale = max(spread, statistics.LEAST_SPREAD)
        end = CUT
        bulk = ordered[np.abs(ordered - centre) <= end * scale]
    return centre, scale, bulk.size - 1.0
