"""Many nodes: classes of equal ones, and which nodes are slow.

A node is slow in a row where the whole interval of its median is worse than its class by ``DELTA``
and chance is ruled out. docs/method.md (Many nodes) says how often that is wrong.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import eq
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from peakmark import statistics
from peakmark.formatting import natural, quantity
from peakmark.rows import schema
from peakmark.rows.runs import ROW
from peakmark.storage.facts import node_class
from peakmark.storage.results import Results
from peakmark.tools.tables import BY_NAME

DELTA = 0.03
"""Share of the class's value by which a node must be behind to be called slow: two runs of a healthy
node seldom differ by more.
"""
LEAST_REPETITIONS = statistics.ENOUGH
"""Fewest repetitions of a row that counts: of fewer the interval of the median is too narrow."""
LEAST_NODES = 4
"""Fewest nodes of a class that say anything of each other."""
LEAST_PARTNERS = 2
"""Fewest partners of a node with which a slow node is told from a slow link."""
LEAST_PAIRS = 6
"""Fewest pairs that are compared with each other alone: fewer say nothing of their nodes."""
RATE = 0.05
"""Largest share of false ones among the nodes that are called slow."""
MANY = 4
"""Number of nodes above which tables on paper have a line for each point, not for each node."""
CUT = 2.5
"""Standard deviations from the class's value beyond which a node is not part of its bulk."""
ROUNDS = 10
"""Largest number of steps until the bulk no longer changes; two or three are usual."""
NORMAL = NormalDist()

Array = NDArray[np.float64]
Place = tuple[Any, Any]
"""A node, and the place of one of its rows: see ``places_of``."""
Values = Mapping[Place, Sequence[float]]


class Equipment(NamedTuple):
    """What nodes of a class have in common, in words; empty where the facts do not tell it."""

    cpu: str = ""
    memory: str = ""
    network: str = ""
    kernel: str = ""
    clock: str = ""


class SlowRow(NamedTuple):
    """A node that is slower than its class in one row.

    Attributes:
        behind: share of the class's value by which the node's median is worse.
        low: the least that it may be behind, by the interval of the median.
        high: the most.
        p: chance of a healthy node of the class so far behind.
    """

    behind: float
    low: float
    high: float
    p: float


# -- classes of nodes


def list_nodes(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return ``nodes``: every node that rows name, with its class, the largest class first."""
    names = set()
    for name in rows["node"].unique():
        names.update(name.split("+"))
    facts = {node: results.facts_for(node) for node in sorted(names, key=natural)}
    lines = []
    for name, members in classes_of(facts).items():
        for node in members:
            cpu = facts[node].get("cpu") or {}
            memory = facts[node].get("memory") or {}
            line = {
                "node": node,
                "class": name,
                "sockets": cpu.get("sockets"),
                "cores": cpu.get("cores"),
                "threads": cpu.get("threads"),
                "memory_bytes": memory.get("total"),
            }
            lines.append(line | equipment_of(facts[node])._asdict())
    return schema.typed("nodes", pd.DataFrame(lines))


def equipment_of(facts: Mapping[str, Any]) -> Equipment:
    """Return what a node has, by its facts (``machine/<host>.json``)."""
    known = node_class(facts)
    if known is None:
        return Equipment()
    network, cpu = facts.get("network") or {}, facts.get("cpu") or {}
    speed = quantity(network["speed_bps"], "bit/s") if network.get("speed_bps") else ""
    card = " ".join(filter(None, [network.get("driver"), speed]))
    turbo = ""
    if cpu.get("turbo") is not None:
        turbo = "turbo on" if cpu["turbo"] else "turbo off"
    clock = ", ".join(filter(None, [cpu.get("governor"), turbo]))
    return Equipment(known.cpu, known.memory, card, known.kernel, clock)


def classes_of(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return name of each class -> its nodes, the largest class first; its name is empty if alone.

    A class of fewer than ``LEAST_NODES`` nodes joins the one with the same CPU that has most in
    common with it: what makes its nodes slow may be just what they have alone.

    Args:
        facts: node -> its facts.
    """
    equipment = {node: equipment_of(known) for node, known in facts.items()}
    sizes = Counter(equipment.values())
    members: dict[Equipment, list[str]] = defaultdict(list)
    for node, own in equipment.items():
        members[joined_class(own, sizes)].append(node)
    largest_first = sorted(members.values(), key=lambda nodes: -len(nodes))
    if len(largest_first) == 1:
        return {"": largest_first[0]}
    return {class_name(place): nodes for place, nodes in enumerate(largest_first)}


def joined_class(own: Equipment, sizes: Mapping[Equipment, int]) -> Equipment:
    """Return the equipment of the class that a node belongs to."""
    best, best_fit = own, (False, -1, -1)
    for other, size in sizes.items():
        if other.cpu != own.cpu:
            continue
        is_large = size >= LEAST_NODES
        common = sum(map(eq, own, other)) if is_large else 0
        fit = (is_large, common, size)
        if fit > best_fit:
            best, best_fit = other, fit
    return best


def class_name(place: int) -> str:
    """Return ``A`` to ``Z``, then ``Z1`` and so on."""
    return chr(ord("A") + place) if place < 26 else f"Z{place - 25}"


# -- verdicts


def add_verdicts(rows: pd.DataFrame, runs: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    """Add the class of each node, whether a row is judged, and where the node is slow.

    Pairs of nodes are judged by ``links``.
    """
    classes = nodes.set_index("node")["class"]
    rows = rows.assign(
        node_class=rows["node"].map(classes).fillna(""),
        place=places_of(rows),
        is_judged=is_usable(rows) & ~is_pair(rows) & rows["n"].ge(LEAST_REPETITIONS),
    )
    verdicts: dict[Place, SlowRow] = {}
    for _, family in rows[rows["is_judged"]].groupby("node_class"):
        is_time = family["unit"].eq("s")
        verdicts |= judge(values_of(family, runs), set(family.loc[is_time, "place"]))
    places = zip(rows["node"], rows["place"], strict=True)
    found = [verdicts.get(place) for place in places]
    is_slow = pd.Series([verdict is not None for verdict in found], index=rows.index)
    columns = ["behind", "behind_low", "behind_high", "behind_p"]
    numbers = pd.DataFrame(
        [verdict or (None,) * 4 for verdict in found], columns=columns, index=rows.index
    )
    return rows.assign(is_slow=is_slow & rows["is_own"], **numbers.where(rows["is_own"]))


def count_judged(nodes: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Add to ``nodes`` in how many rows each has a value, and by how many it was judged.

    Those of pairs count for both of their nodes, and judge a node that has ``LEAST_PARTNERS`` among
    at least ``LEAST_PAIRS`` pairs of one place.
    """
    single = rows[is_usable(rows) & ~is_pair(rows)]
    judged = single[single["is_judged"]]
    alike = judged.groupby(["node_class", "place"])["node"].transform("size")
    pairs = rows[is_mapped(rows)]
    ends = pairs.assign(node=pairs["node"].str.split("+")).explode("node")
    partners = ends.groupby(["place", "node"])["point"].transform("size")
    of_place = pairs.groupby("place")["point"].transform("size")[ends.index]
    known = pd.concat([single["node"], ends["node"]]).value_counts()
    by_pairs = ends["node"][partners.ge(LEAST_PARTNERS) & of_place.ge(LEAST_PAIRS)]
    counted = pd.concat([judged["node"][alike.ge(LEAST_NODES)], by_pairs]).value_counts()
    of_node = nodes["node"]
    return nodes.assign(
        rows=of_node.map(known).fillna(0).astype("Int64"),
        judged=of_node.map(counted).fillna(0).astype("Int64"),
    )


def is_pair(rows: pd.DataFrame) -> pd.Series:
    """Return for each row whether ``node`` names client and server, ``node1+node2``."""
    return rows["node"].str.contains("+", regex=False)


def is_usable(rows: pd.DataFrame) -> pd.Series:
    """Return for each row whether peakmark's kernel has a value there that can be right."""
    is_right = rows["severity"].ne("wrong") & rows["low"].gt(0)
    return rows["is_own"] & rows["n"].gt(0) & is_right


def is_mapped(rows: pd.DataFrame) -> pd.Series:
    """Return for each row whether it has a value of a pair of nodes.

    That of a link that ``tc`` slows down is right here, so ``shaped`` alone does not count.
    """
    has_value = rows["is_own"] & rows["n"].gt(0) & is_pair(rows)
    return has_value & (rows["severity"].ne("wrong") | rows["wrong_codes"].eq("shaped"))


def places_of(rows: pd.DataFrame) -> pd.Series:
    """Return the point of each row without its node.

    A word such as ``cores`` stays a word, so that nodes with different numbers of cores share a key.
    """
    threads = rows["concurrency"].mask(rows["concurrency_word"].ne(""), 0)
    place = rows["table"].astype("str")
    for column in (rows["workload"], rows["variant"], rows["block_bytes"], threads):
        place = place.str.cat(column.astype("string").fillna(""), sep="/")
    return place.str.cat(rows["concurrency_word"].astype("string"), sep="/")


def values_of(rows: pd.DataFrame, runs: pd.DataFrame) -> dict[Place, list[float]]:
    """Return node and place -> the values of each row, in the order of the repetitions."""
    kept = runs[runs["kept"]].sort_values("repetition", kind="stable")
    of_rows = kept.merge(rows[[*ROW, "place"]], on=ROW)
    grouped = of_rows.groupby(["node", "place"], sort=False)["value"]
    return {place: values.tolist() for place, values in grouped}  # type: ignore[misc]


def judge(
    values: Values,
    lower_is_better: Collection[Hashable] = (),
    delta: float = DELTA,
    rate: float = RATE,
) -> dict[Place, SlowRow]:
    """Return the slow rows of the nodes of one class.

    A node is slow in a row where the whole interval of its median is worse than the class's value
    by more than ``delta``, and a healthy node would hardly be so: Simes's p of all rows of a node
    decides among the nodes, and Benjamini and Hochberg's among the rows of those found, so that
    the share of false ones among the nodes is at most ``rate``.

    Args:
        values: node and key -> repetitions, positive, in any unit. Rows with fewer than
            ``LEAST_REPETITIONS`` are left out.
        lower_is_better: keys of rows that are times.
        delta: share of the class's value.
        rate: false discovery rate.

    Returns:
        Slow rows; none of fewer than ``LEAST_NODES`` nodes.

    Source: Benjamini and Bogomolov, Journal of the Royal Statistical Society B 76 (2014), pages
    297-318.
    """
    from scipy import stats

    lines = _numbered(node for node, _ in values)
    columns = _numbered(key for _, key in values)
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
    for node, key in values:
        at = lines[node], columns[key]
        if slow[at]:
            low, middle, high = behind[:, *at].tolist()
            verdicts[node, key] = SlowRow(middle, low, high, float(p[at]))
    return verdicts


def _numbered(names: Iterable[Hashable]) -> dict[Hashable, int]:
    """Return each name once, with its number."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _bulk(values: Array) -> tuple[float, float, float]:
    """Return centre and standard deviation of the bulk of a class, and its degrees of freedom.

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


# -- nodes that stand for all


def typical_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one table on the node that stands for all, its node called ``any``.

    That is the node of the largest class whose values come nearest to the class's medians. A table
    of few nodes is returned as it is.
    """
    if rows["node"].nunique() <= MANY:
        return rows
    usable = rows[is_usable(rows)]
    first = usable["node_class"].min()
    usable = usable[usable["node_class"].eq(first)]
    medians = usable["value"].groupby(usable["place"]).transform("median")
    off = (usable["value"] / medians - 1).abs().groupby(usable["node"])
    nodes = pd.DataFrame({"rows": off.size(), "off": off.median()})
    if nodes.empty:
        return rows
    node = nodes.sort_values(["rows", "off"], ascending=[False, True], kind="stable").index[0]
    return rows[rows["node"].eq(node)].assign(node="any")


# -- slow nodes


def list_slow_nodes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return every node that is slow in a row of a subsystem, the slowest first."""
    judged = rows[rows["is_judged"]]
    counts = judged.groupby(["node", "subsystem"]).size().rename("judged")
    slow = judged[judged["is_slow"]].groupby(["node", "subsystem"], sort=False)
    found = slow.agg(
        behind=("behind", "median"),
        behind_low=("behind_low", "min"),
        behind_high=("behind_high", "max"),
        rows=("point", "size"),
    )
    nodes = found.join(counts).reset_index().rename(columns={"node": "name"})
    places = sorted(nodes.index, key=lambda at: (-nodes["behind"][at], natural(nodes["name"][at])))
    return nodes.loc[places].assign(kind="node", confirmed=True, table="", point="")


def lower_is_better(table: str) -> bool:
    """Return whether a low value of a table is good."""
    return BY_NAME[table].lower_is_better
