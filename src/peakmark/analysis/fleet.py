"""Many nodes at one point: their median, how far they spread, and which of them lie apart.

A node lies apart where the whole interval of its median is beyond the median of all nodes by
``BEYOND``. One row may be chance; what a node does in most rows of a resource is not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from peakmark import statistics
from peakmark.analysis import findings
from peakmark.analysis.findings import Conclusion
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Row, SlowRow
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import listed, natural, percent, plural
from peakmark.messages import Message, Severity, message
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
Array = NDArray[np.float64]

BEYOND = 0.03
MANY = 4
"""Of more nodes than this, tables on paper have a row for each point, not for each node."""
MOSTLY = 0.5
FAR = ((8, 10.0), (16, 6.0))
"""From so many nodes on, the modified z score beyond which one lies apart from all others: of equal
normal nodes one passes it in at most 0.4 % of 20,000 simulated resources. Of fewer nodes their
own spread is too uncertain.
"""

Rows = Mapping[str, Sequence[Row]]
PointOf = tuple[str, str, int | None, int, str]


@dataclass(frozen=True)
class NodeGroup:
    """The rows of one point of a table, of which each is another node; none is wrong, in the order
    of the nodes' names.

    every  the rows of all nodes that were to measure it
    """

    rows: tuple[Row, ...]
    every: tuple[Row, ...]

    @property
    def planned(self) -> int:
        """How many nodes were to measure it."""
        return len(self.every)

    @property
    def table(self) -> Table:
        """The table to which the point belongs."""
        return self.rows[0].table

    @cached_property
    def median(self) -> float:
        """Of the nodes' summarised values, in SI units."""
        return statistics.median([row.measured.centre for row in self.rows])

    @cached_property
    def middle(self) -> Row:
        """The node whose value is nearest to the median: it stands for all where one is to be
        shown.
        """
        return min(self.rows, key=lambda row: abs(row.measured.centre - self.median))

    @cached_property
    def worst(self) -> Row:
        """The slowest node."""
        return (max if self.table.lower_is_better else min)(
            self.rows, key=lambda row: row.measured.centre
        )

    @cached_property
    def low(self) -> float:
        """The lowest node's value, in SI units."""
        return min(row.measured.centre for row in self.rows)

    @cached_property
    def high(self) -> float:
        """The highest node's."""
        return max(row.measured.centre for row in self.rows)

    @property
    def range(self) -> float:
        """From the lowest to the highest node, as a share of the median."""
        return (self.high - self.low) / self.median

    def behind(self, row: Row) -> float:
        """By what share a node is slower than the median of all; negative where it is faster."""
        share = row.measured.centre / self.median - 1
        return share if self.table.lower_is_better else -share

    def apart(self, row: Row) -> str:
        """``slow`` where a node's whole interval is worse than the median of all by more than
        ``BEYOND``, ``fast`` where it is better by that, else nothing.
        """
        summary = row.measured.summary
        if self.median * (1 - BEYOND) <= summary.high and summary.low <= self.median * (1 + BEYOND):
            return ""
        behind = self.behind(row)
        return "slow" if behind > 0 else "fast" if behind < 0 else ""

    @cached_property
    def slow(self) -> tuple[Row, ...]:
        """The nodes that are."""
        return tuple(row for row in self.rows if self.apart(row) == "slow")

    @cached_property
    def fast(self) -> tuple[Row, ...]:
        """The same on the other side."""
        return tuple(row for row in self.rows if self.apart(row) == "fast")


@dataclass(frozen=True)
class Slow:
    """A node that is slower than most: in so many ``rows`` of all that were measured on it, of one
    resource.

    behind  by what share of the median of all, in the median of all rows of the resource
    apart   that is beyond ``BEYOND`` and far from what the other nodes show, whatever single rows
            tell
    """

    node: str
    subsystem: str
    rows: int
    of: int
    behind: float
    apart: bool = False

    @property
    def mostly(self) -> bool:
        """Whether it is so in most of its rows, or beyond all other nodes over its rows together:
        that is not chance.
        """
        return self.apart or self.rows >= max(1, MOSTLY * self.of)


def node_names(rows: Rows) -> list[str]:
    """The nodes of a campaign, as far as rows name them, node2 before node10."""
    names = {row.key.node for table in rows.values() for row in table}
    return sorted({node for name in names for node in name.split("+")}, key=natural)


def is_many(rows: Rows) -> bool:
    """Whether there are too many nodes for tables with a row for each."""
    return len(node_names(rows)) > MANY


def group_rows(rows: Iterable[Row]) -> list[NodeGroup]:
    """The points of one table, in the order in which its rows have them; points that nobody
    measured are left out.
    """
    grouped: dict[PointOf, list[Row]] = {}
    for row in rows:
        grouped.setdefault(place(row), []).append(row)
    measured = [
        NodeGroup(tuple(filter(_usable, every)), tuple(every)) for every in grouped.values()
    ]
    return [group for group in measured if group.rows]


def place(row: Row) -> PointOf:
    """The row's point: all of its key but the node."""
    key = row.key
    # A word means another number on another kind of node, and is one point nevertheless.
    return key.workload, key.variant, key.block, 0 if key.word else key.concurrency, key.word


def _usable(row: Row) -> bool:
    return row.own is not None and row.level is not Severity.WRONG and row.measured.summary.low > 0


def typical_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows of one table on the node that comes nearest to the medians of all: it stands for
    them where one is to.
    """
    off: dict[str, list[float]] = {}
    for group in group_rows(rows):
        for row in group.rows:
            off.setdefault(row.key.node, []).append(abs(group.behind(row)))
    if not off:
        return list(rows)
    most = max(map(len, off.values()))
    node = min(
        (name for name, shares in off.items() if len(shares) == most),
        key=lambda name: statistics.median(off[name]),
    )
    return [row for row in rows if row.key.node == node]


def slow_nodes(rows: Rows) -> list[Slow]:
    """Every node that is slow in any row of a resource, those that are so in most rows first, then
    by how far.
    """
    shown: dict[str, dict[str, list[tuple[float, bool]]]] = {}
    for table in rows.values():
        for group in group_rows(row for row in table if not row.is_pair):
            for row in group.rows if len(group.rows) > 1 else ():
                by_node = shown.setdefault(group.table.subsystem, {})
                by_node.setdefault(row.key.node, []).append(
                    (group.behind(row), group.apart(row) == "slow")
                )
    all_slow = []
    for subsystem, by_node in shown.items():
        middle = {
            node: statistics.median([behind for behind, _ in each])
            for node, each in by_node.items()
        }
        apart = _apart(middle)
        for node, each in by_node.items():
            count = sum(is_slow for _, is_slow in each)
            if count or node in apart:
                all_slow.append(
                    Slow(node, subsystem, count, len(each), middle[node], node in apart)
                )
    return sorted(all_slow, key=lambda slow: (not slow.mostly, -slow.behind, natural(slow.node)))


def _apart(behind: Mapping[str, float]) -> set[str]:
    """The nodes that are behind by more than ``BEYOND`` and whose modified z score among all nodes
    is beyond ``FAR``: how far nodes of one kind lie from each other, the nodes themselves tell.
    """
    limits = [limit for least, limit in FAR if len(behind) >= least]
    if not limits:
        return set()
    scores = statistics.modified_z(list(behind.values()))
    return {
        node
        for (node, share), z in zip(behind.items(), scores, strict=True)
        if share > BEYOND and float(z) > limits[-1]
    }


NAMED = 8
"""So many nodes are named; the others are counted."""


def slow_node_sentences(rows: Rows) -> list[str]:
    """Sentences on the nodes that are slow in a resource, and on single rows of others; what slow
    means stands last.
    """
    every = node_names(rows)
    if len(every) < 2:
        return []
    nodes = slow_nodes(rows)
    mostly = [entry for entry in nodes if entry.mostly]
    single = [entry for entry in nodes if not entry.mostly]
    found = [_slow(entry) for entry in mostly[:NAMED]]
    if len(mostly) > NAMED:
        rest = [f"{entry.node} ({SUBSYSTEMS[entry.subsystem].title})" for entry in mostly[NAMED:]]
        found.append(message("also-slow", nodes=_counted(rest, 2 * NAMED)))
    if single:
        count = sum(entry.rows for entry in single)
        found.append(
            message("single-rows", rows=count, nodes=len({entry.node for entry in single}))
        )
    if not mostly:
        found.insert(0, message("none-slow", nodes=len(every)))
    found.append(message("slow-means", beyond=BEYOND))
    return [each.full_sentence for each in found]


def _slow(entry: Slow) -> Message:
    """One node that is slow in a resource; ``all``: its single rows are too uncertain, together they
    are not.
    """
    return message(
        "slow-node",
        case="all" if entry.rows < MOSTLY * entry.of else "",
        node=entry.node,
        resource=SUBSYSTEMS[entry.subsystem].named,
        behind=entry.behind,
        rows=entry.rows,
        of=entry.of,
    )


def _counted(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    rest = [f"{len(names) - most} more"] if len(names) > most else []
    return listed([*names[:most], *rest])


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
    """How far nodes spread in the points of one table, and which lie apart."""
    single = [row for row in rows if not row.is_pair]
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
        lowest=labels.row(least.middle, on_all=True),
        high=most.range,
        highest=labels.row(most.middle, on_all=True),
    )
    found = [(Topic.NODES, spread), *((Topic.APART, each) for each in _distant_nodes(groups))]
    return [Conclusion(topic, topic.heading(labels.table), each) for topic, each in found]


def _distant_nodes(groups: Sequence[NodeGroup]) -> Iterator[Message]:
    """The nodes with rows that are slower, and those with rows that are faster than the median."""
    for case, sign in (("slower", 1), ("faster", -1)):
        by_node: dict[str, list[float]] = {}
        for group in groups:
            for row in group.slow if sign > 0 else group.fast:
                by_node.setdefault(row.key.node, []).append(sign * group.behind(row))
        if not by_node:
            continue
        ordered = sorted(by_node.items(), key=lambda pair: (-len(pair[1]), -max(pair[1])))
        named = [
            f"{node} ({plural(len(shares), 'row')}, up to {percent(max(shares))}\u00a0%)"
            for node, shares in ordered
        ]
        yield message(
            "distant-nodes",
            case=case,
            rows=len(groups),
            beyond=BEYOND,
            nodes=_counted(named, NAMED),
        )


def judge(
    values: Mapping[str, Mapping[Hashable, Sequence[float]]],
    lower_is_better: Collection[Hashable] = (),
    delta: float = DELTA,
    rate: float = RATE,
) -> list[SlowRow]:
    """The slow rows of the nodes of one class.

    A node is slow in a row where the whole interval of its median is worse than the class's value
    by more than ``delta``, and a healthy node would hardly be so: Simes's p of all rows of a node
    decides among the nodes, and Benjamini and Hochberg's among the rows of those found, so that
    the share of false ones among the nodes is at most ``rate``.

    Args:
        values: node -> row -> its repetitions, positive, in any unit. Rows with fewer than
            ``LEAST_REPETITIONS`` are left out.
        lower_is_better: the rows that are times.
        delta: share of the class's value.
        rate: false discovery rate.

    Returns:
        Slow rows, in the order of the nodes; none of fewer than ``LEAST_NODES`` nodes.

    Source: Benjamini and Bogomolov, Journal of the Royal Statistical Society B 76 (2014), pages
    297-318.
    """
    from scipy import stats

    keys = list(dict.fromkeys(key for rows in values.values() for key in rows))
    if len(values) < LEAST_NODES or not keys:
        return []
    is_time = np.array([key in lower_is_better for key in keys])
    medians = _medians(values, keys, is_time)
    centre, scale, freedom = np.array([_bulk(row) for row in medians[1].T]).T
    worse = medians - centre
    error = scale * np.sqrt(1 + 1 / (freedom + 1))
    p = np.nan_to_num(stats.t.sf(worse[1] / error, freedom), nan=1.0)
    by_row = stats.false_discovery_control(p, axis=1)
    found = stats.false_discovery_control(by_row.min(axis=1)) <= rate
    behind = np.where(is_time, np.expm1(worse), -np.expm1(-worse))
    slow = found[:, None] & (by_row <= rate * found.mean()) & (behind[0] > delta)
    names = list(values)
    return [
        SlowRow(
            names[node],
            keys[row],
            float(behind[1, node, row]),
            float(behind[0, node, row]),
            float(behind[2, node, row]),
            float(p[node, row]),
        )
        for node, row in np.argwhere(slow)
    ]


def _medians(
    values: Mapping[str, Mapping[Hashable, Sequence[float]]],
    keys: Sequence[Hashable],
    is_time: NDArray[np.bool_],
) -> Array:
    """Low end of the interval, median, and high end, by node and row, as logarithms of times; NaN
    where a row has too few repetitions.
    """
    columns = {key: place for place, key in enumerate(keys)}
    by_count: dict[int, list[tuple[int, int, Sequence[float]]]] = defaultdict(list)
    for node, rows in enumerate(values.values()):
        for key, repetitions in rows.items():
            by_count[len(repetitions)].append((node, columns[key], repetitions))
    medians = np.full((3, len(values), len(keys)), np.nan)
    for count, entries in by_count.items():
        if count >= LEAST_REPETITIONS:
            nodes, places, repeated = map(np.array, zip(*entries, strict=True))
            sign = np.where(is_time[places], 1, -1)
            logs = np.sort(sign[:, None] * np.log(repeated), axis=1)
            rank, _ = statistics.median_rank(count)
            ends = logs[:, rank - 1], np.median(logs, axis=1), logs[:, -rank]
            medians[:, nodes, places] = ends
    return medians


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
    first = int((ordered[half - 1 :] - ordered[: ordered.size - half + 1]).argmin())
    bulk, end = ordered[first : first + half], NORMAL.inv_cdf((1 + half / ordered.size) / 2)
    for _ in range(ROUNDS):
        centre = float(np.median(bulk))
        # Of a normal distribution only the middle is seen, up to so many standard deviations.
        seen = 1 - 2 * end * NORMAL.pdf(end) / (2 * NORMAL.cdf(end) - 1)
        scale = max(float(bulk.std(ddof=1)) / math.sqrt(seen), statistics.LEAST_SPREAD)
        bulk, end = ordered[np.abs(ordered - centre) <= CUT * scale], CUT
    return centre, scale, bulk.size - 1.0
