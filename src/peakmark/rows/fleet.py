"""Find the nodes that are slower than their class of equal nodes.

A node is slow in a row if it is significantly worse than its class. The whole confidence interval of its
median must also be worse by more than ``DELTA``. docs/method.md (Many nodes) gives the error rates.

On the network, nodes and pairs are compared by medians of logarithms of times or of reciprocal
rates, so that a higher number is slower. A pair is *behind* by its difference from the median of
the pairs of healthy nodes that cross as many uplinks. A node is *behind* by the median over its
pairs with healthy nodes. Random rounds measure each node with several partners, so that a few pairs
for each node suffice.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from peakmark import statistics
from peakmark.formatting import natural
from peakmark.rows import schema
from peakmark.rows.node_classes import LEAST_NODES
from peakmark.rows.runs import ROW
from peakmark.tools.tables import BY_NAME

DELTA = 0.03
"""A slow node is worse than its class by more than this share. Two runs of a healthy node seldom differ
by more.
"""
LEAST_REPETITIONS = statistics.ENOUGH
"""Fewest repetitions of a judged row: with fewer, the interval of the median is too narrow."""
LEAST_PARTNERS = 3
"""Fewest partners of a slow node. With fewer, one of its pairs may be slow instead of the node."""
LEAST_PAIRS = 6
"""Fewest pairs that can be compared with each other."""
FALSE_DISCOVERY_RATE = 0.05
"""False discovery rate: expected share of healthy nodes among the nodes that are called slow."""
CUT = 2.5
"""Nodes within this distance of a class's median, in standard deviations, form the bulk of the class."""
ROUNDS = 10
"""Number of times that the bulk of a class is found, each time without the nodes beyond ``CUT``.

The bulk seldom changes after the third time.
"""
NORMAL = NormalDist()
USUAL_QUANTILES = (0.25, 0.5, 0.5)
"""For each pass, the quantile of the pairs' logarithms (higher is slower) that is taken as the usual pair.

In the first pass the slow nodes are not known yet. Its quantile is below the median, because a slow rack can
make most pairs slow. Later passes leave out pairs with a node that the pass before found slow.
"""
SPREADS = 4.0
"""A slow pair is behind by more than ``DELTA`` plus this many standard deviations.

They are those of the pairs of healthy nodes.
"""
SD_OF_MAD = 1.4826
"""Standard deviation of normally distributed values, as a multiple of their median absolute deviation."""

Kind = Literal["node", "pair"]

Array = NDArray[np.float64]
Place = tuple[Any, Any]
"""(node, place), which identify a row; a place is a point without its node (``places_of``)."""
Values = Mapping[Place, Sequence[float]]
"""Node and place -> values of the row, in the order of the repetitions."""


class SlowRow(NamedTuple):
    """A node that is slower than its class in one row.

    Attributes:
        behind: share of the class's value by which the node's median is worse.
        low: ``behind`` at the better end of the median's confidence interval.
        high: ``behind`` at the worse end of the interval.
        p: probability that a healthy node is this far behind.
    """

    behind: float
    low: float
    high: float
    p: float


# -- verdicts


def add_verdicts(rows: pd.DataFrame, runs: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    """Add the node's class, whether the row is judged, and whether the node is slow in the row.

    Rows of pairs of nodes are judged by ``list_slow_parts``.
    """
    classes = nodes.set_index("node")["class"]
    rows = rows.assign(
        node_class=rows["node"].map(classes).fillna(""),
        place=places_of(rows),
        is_judged=schema.is_usable(rows) & ~schema.is_pair(rows) & rows["n"].ge(LEAST_REPETITIONS),
    )
    # Compare the nodes of each class. A distance is that from which on a node would be called slow.
    verdicts: dict[Place, SlowRow] = {}
    distances = pd.Series(math.nan, index=rows.index)
    for _, of_class in rows[rows["is_judged"]].groupby("node_class"):
        # Places whose values are times.
        is_time = of_class["unit"].eq("s")
        times = set(of_class.loc[is_time, "place"])
        logs = logs_of(values_of(of_class, runs), times)
        verdicts |= slow_rows(logs)
        distances[of_class.index] = of_class["place"].map(smallest_distances(logs))
    # A line for each slow row, in the order of the fields of ``SlowRow``.
    columns = ["behind", "behind_low", "behind_high", "behind_p"]
    index = pd.MultiIndex.from_tuples([*verdicts], names=["node", "place"])
    slow = pd.DataFrame([*verdicts.values()], index=index, columns=columns, dtype=float)
    # Rows of references share node and place with the kernel's, and are not judged.
    places = pd.MultiIndex.from_frame(rows[["node", "place"]])
    numbers = slow.reindex(places).set_axis(rows.index).where(rows["is_own"])
    return rows.assign(is_slow=numbers["behind"].notna(), distance=distances, **numbers)


def count_judged(nodes: pd.DataFrame, rows: pd.DataFrame, warnings: pd.DataFrame) -> pd.DataFrame:
    """Add to each node the numbers of its rows, and the distance at which it is called slow.

    - ``rows``: number of rows with a value.
    - ``judged``: number of rows in which the node was judged.
    - ``disturbed``: number of disturbed rows among those in which it was judged with its class.
    - ``distance``: share behind the class from which on a row is called slow; the median of the
      rows in which the node was judged with its class.

    A row of a pair counts for both nodes, and is judged if its node has at least ``LEAST_PARTNERS``
    partners, and its place has at least ``LEAST_PAIRS`` pairs.
    """
    # Rows of single nodes: the class must have enough nodes at the same place.
    single = rows[schema.is_usable(rows) & ~schema.is_pair(rows)]
    candidates = single[single["is_judged"]]
    class_size = candidates.groupby(["node_class", "place"])["node"].transform("size")
    compared = candidates[class_size.ge(LEAST_NODES)]
    disturbed = compared.loc[schema.is_disturbed(compared, warnings), "node"].value_counts()
    # Rows of pairs, with a line for each of the two nodes.
    pairs = rows[schema.shows_link(rows)]
    ends = pairs.assign(node=pairs["node"].str.split("+")).explode("node")
    partners = ends.groupby(["place", "node"])["point"].transform("size")
    pairs_of_place = pairs.groupby("place")["point"].transform("size")[ends.index]
    is_judged = partners.ge(LEAST_PARTNERS) & pairs_of_place.ge(LEAST_PAIRS)
    judged_in_pairs = ends.loc[is_judged, "node"]
    measured = pd.concat([single["node"], ends["node"]]).value_counts()
    judged = pd.concat([compared["node"], judged_in_pairs]).value_counts()
    for name, counts in (("rows", measured), ("judged", judged), ("disturbed", disturbed)):
        nodes[name] = nodes["node"].map(counts).fillna(0).astype("Int64")
    distances = compared.groupby("node")["distance"].median()
    return nodes.assign(distance=nodes["node"].map(distances))


def places_of(rows: pd.DataFrame) -> pd.Series:
    """Return the place of each row: its point without the node.

    A concurrency such as ``cores`` stays a word, so that nodes with unequal numbers of cores share a
    place.
    """
    threads = rows["concurrency"].mask(rows["concurrency_word"].ne(""), 0)
    place = rows["table"].astype("str")
    for column in (rows["workload"], rows["variant"], rows["block_bytes"], threads):
        place = place.str.cat(column.astype("string").fillna(""), sep="/")
    return place.str.cat(rows["concurrency_word"].astype("string"), sep="/")


def values_of(rows: pd.DataFrame, runs: pd.DataFrame) -> dict[Place, list[float]]:
    """Return (node, place) -> the kept values of the row, in the order of the repetitions.

    For places see ``places_of``.
    """
    kept = runs[runs["kept"]].sort_values("repetition", kind="stable")
    of_rows = kept.merge(rows[[*ROW, "place"]], on=ROW)
    grouped = of_rows.groupby(["node", "place"], sort=False)["value"]
    return {place: values.tolist() for place, values in grouped}  # type: ignore[misc]


class ClassLogs(NamedTuple):
    """Logarithms of the rows of the nodes of one class; higher is slower.

    Attributes:
        nodes: node -> its number.
        keys: key of a row -> its number.
        logs: array of (better end of the interval, median, worse end) x nodes x keys, nan for rows with
            fewer than ``LEAST_REPETITIONS`` repetitions.
        is_time: whether the values of each key are times.
    """

    nodes: dict[Hashable, int]
    keys: dict[Hashable, int]
    logs: Array
    is_time: NDArray[np.bool_]


def logs_of(values: Values, lower_is_better: Collection[Hashable] = ()) -> ClassLogs:
    """Return the logarithms of the rows of one class.

    A key identifies a row among those of a node, such as its place.

    Args:
        values: node and key -> repetitions, positive, in any unit. Rows with fewer than
            ``LEAST_REPETITIONS`` repetitions are ignored.
        lower_is_better: keys whose values are times.
    """
    nodes = _numbered(node for node, _ in values)
    keys = _numbered(key for _, key in values)
    # (better end of the interval, median, worse end) x nodes x keys
    logs = np.full((3, len(nodes), len(keys)), np.nan)
    for (node, key), repetitions in values.items():
        if len(repetitions) >= LEAST_REPETITIONS:
            logs[:, nodes[node], keys[key]] = _log_interval(repetitions, key in lower_is_better)
    is_time = np.array([key in lower_is_better for key in keys], dtype=bool)
    return ClassLogs(nodes, keys, logs, is_time)


def slow_rows(of_class: ClassLogs) -> dict[Place, SlowRow]:
    """Return the slow rows of the nodes of one class; none for fewer than ``LEAST_NODES`` nodes.

    A node is slow in a row if it is significantly worse than its class (``_is_significant``). The whole
    confidence interval of its median must also be worse by more than ``DELTA``.
    """
    if len(of_class.nodes) < LEAST_NODES:
        return {}
    worse, p = _compare_with_class(of_class.logs)
    behind = _share_behind(worse, of_class.is_time)
    # A node is slow only if the better end of its interval is also far behind.
    better_end = behind[0]
    is_slow = _is_significant(p) & (better_end > DELTA)
    nodes, keys = list(of_class.nodes), list(of_class.keys)
    found = {}
    for node, key in np.argwhere(is_slow):
        low, middle, high = behind[:, node, key].tolist()
        row = SlowRow(behind=middle, low=low, high=high, p=float(p[node, key]))
        found[nodes[node], keys[key]] = row
    return found


def smallest_distances(of_class: ClassLogs) -> dict[Hashable, float]:
    """Return key -> smallest share behind the class at which ``slow_rows`` calls a node slow.

    The share follows from the spread of the other nodes and of the repetitions. It holds if no
    other node is slow, and if the node is equally far behind in all rows.
    """
    from scipy import stats

    # The p-value of the only slow node among these nodes, see ``_is_significant``.
    p = FALSE_DISCOVERY_RATE / len(of_class.nodes)
    # For each key, the distance from the class's logarithm from which on a node is slow.
    distances = []
    for better_ends, medians in zip(of_class.logs[0].T, of_class.logs[1].T, strict=True):
        _, scale, freedom = _bulk(medians)
        # Without the slow node, the bulk has at most one node less than the class.
        freedom = min(freedom, np.isfinite(medians).sum() - 2.0)
        # The median must be so far beyond the other nodes, and the better end of its interval behind by ``DELTA``.
        beyond_others = stats.t.isf(p, freedom) * _standard_error(scale, freedom)
        width = np.nanmedian(medians - better_ends)  # from the better end to the median
        distances.append(max(beyond_others, np.log1p(DELTA) + width))
    shares = _share_behind(np.array(distances), of_class.is_time)
    return dict(zip(of_class.keys, shares.tolist(), strict=True))


def _share_behind(worse: Array, is_time: NDArray[np.bool_]) -> Array:
    """Convert distances from the class's logarithms to shares: times are longer, rates lower."""
    shares: Array = np.where(is_time, np.expm1(worse), -np.expm1(-worse))
    return shares


def _standard_error(scale: Any, freedom: Any) -> Any:
    """Return the standard error of a node's distance from the mean of a bulk of ``freedom + 1`` nodes."""
    return scale * np.sqrt(1 + 1 / (freedom + 1))


def _numbered(names: Iterable[Hashable]) -> dict[Hashable, int]:
    """Return name -> number from 0; names are numbered in the order of their first occurrence."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _log_interval(repetitions: Sequence[float], is_time: bool) -> tuple[float, float, float]:
    """Return the better end, the median and the worse end of a row's interval, as logarithms.

    Rates are inverted first, so that a higher logarithm is slower.
    """
    # The logarithm of a reciprocal rate is the negative logarithm of the rate.
    sign = 1 if is_time else -1
    logs = np.sort(sign * np.log(repetitions))
    rank, _ = statistics.median_rank(len(logs))
    return logs[rank - 1], statistics.median(logs), logs[-rank]


def _compare_with_class(logs: Array) -> tuple[Array, Array]:
    """Return by how much nodes are worse than their class, and the p-value of each median.

    Args:
        logs: better ends, medians and worse ends of the rows' intervals, see ``_log_interval``.
            Each is an array of nodes x keys; higher is slower.

    Returns:
        ``logs`` minus the class's value, for all three, and one-sided p-values by node and key.
    """
    from scipy import stats

    centre, scale, freedom = np.array([_bulk(medians) for medians in logs[1].T]).T
    worse = logs - centre
    error = _standard_error(scale, freedom)
    return worse, np.nan_to_num(stats.t.sf(worse[1] / error, freedom), nan=1.0)


def _is_significant(p: Array) -> NDArray[np.bool_]:
    """Return whether each node is significantly slow in each row, at the false discovery rate ``FALSE_DISCOVERY_RATE``.

    The rate limits the share of healthy nodes among those that are found. Source: Benjamini and
    Bogomolov, Journal of the Royal Statistical Society B 76 (2014), pages 297-318.

    Args:
        p: p-values by node and row.
    """
    from scipy import stats

    # The smallest adjusted p-value of a node's rows is the p-value of the node (Simes).
    by_row = stats.false_discovery_control(p, axis=1)
    is_selected = stats.false_discovery_control(by_row.min(axis=1)) <= FALSE_DISCOVERY_RATE
    # Within the selected nodes the rate is scaled by the share of nodes selected.
    found: NDArray[np.bool_] = is_selected[:, None] & (
        by_row <= FALSE_DISCOVERY_RATE * is_selected.mean()
    )
    return found


def _bulk(values: Array) -> tuple[float, float, float]:
    """Return centre, standard deviation and degrees of freedom of the bulk of a class.

    The bulk starts as the shortest interval that holds half of the nodes. Then it consists of the
    nodes within ``CUT`` standard deviations of its median. Its nodes are healthy even if more than
    a third of the class is slow.

    Source: Rousseeuw and Leroy, Robust Regression and Outlier Detection, 1987, chapter 4.
    """
    ordered = np.sort(values[np.isfinite(values)])
    if ordered.size < LEAST_NODES:
        return np.nan, np.nan, np.nan
    half = ordered.size // 2 + 1
    widths = ordered[half - 1 :] - ordered[: 1 - half]
    first = int(widths.argmin())
    bulk = ordered[first : first + half]
    # Distance at which a normal distribution is cut if it keeps its middle half.
    cut = NORMAL.inv_cdf((1 + half / ordered.size) / 2)
    for _ in range(ROUNDS):
        centre = float(np.median(bulk))
        spread = float(bulk.std(ddof=1)) / math.sqrt(_truncated_variance(cut))
        scale = max(spread, statistics.LEAST_SPREAD)
        cut = CUT
        bulk = ordered[np.abs(ordered - centre) <= cut * scale]
    return centre, scale, bulk.size - 1.0


def _truncated_variance(cut: float) -> float:
    """Return the variance of a standard normal distribution that is truncated at -cut and cut."""
    inside = 2 * NORMAL.cdf(cut) - 1
    return 1 - 2 * cut * NORMAL.pdf(cut) / inside


# -- slow nodes


def list_slow_nodes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line of ``fleet`` for each node and subsystem in which it is slow, the slowest first."""
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
    return nodes.loc[places].assign(kind="node", table="", point="")


# -- slow nodes and pairs on the network


PART_COLUMNS = ["low", "behind", "high", "pairs"]
"""Columns of a frame of slow nodes or pairs, whose index has their names.

``behind`` is the distance to the usual pair, and ``low`` and ``high`` are the ends of its confidence
interval, all as logarithms; ``pairs`` is the number of pairs from which it was estimated.
"""


def list_slow_parts(
    rows: pd.DataFrame, runs: pd.DataFrame, known: Mapping[str, Collection[str]]
) -> pd.DataFrame:
    """Return a line of ``fleet`` for each slow node and pair, at each point.

    Here, pairs of nodes share a point if workload, variant, block and concurrency are equal.

    Args:
        rows: frame ``rows`` with ``wrong_codes`` and ``place``. Only the rows of pairs that measured their link count
            (``schema.shows_link``).
        runs: frame ``runs``.
        known: switch or uplink -> nodes behind it.
    """
    of_links = rows[schema.shows_link(rows)]
    behind = {name: frozenset(nodes) for name, nodes in known.items()}
    found = [pd.DataFrame()]
    for key, pairs in of_links.groupby(["table", "place"], sort=False):
        by_time = {pair: values for (pair, _), values in values_of(pairs, runs).items()}
        # Keep the order of the rows: the order of the runs must not decide how ties are listed.
        measured = {pair: by_time[pair] for pair in pairs["node"]}
        name, point = map(str, key)
        table = BY_NAME[name]
        parts = slow_parts(measured, table.lower_is_better, behind)
        found.append(parts.assign(table=name, point=point, subsystem=table.subsystem))
    return pd.concat(found, ignore_index=True)


def slow_parts(
    measured: Mapping[str, Sequence[float]],
    lower_is_better: bool,
    known: Mapping[str, Collection[str]],
) -> pd.DataFrame:
    """Return lines of ``fleet`` for the slow nodes, then the slow pairs, each with the slowest first.

    Args:
        measured: ``client+server`` -> the pair's repetitions, positive, in any unit.
        lower_is_better: whether the repetitions are times.
        known: switch or uplink -> nodes behind it.
    """
    if len(measured) < LEAST_PAIRS:
        return pd.DataFrame()  # too few pairs to say what is usual
    sign = 1 if lower_is_better else -1
    pairs = frame_of_pairs(
        {name: sign * np.log(values) for name, values in measured.items()}, known
    )
    slow = pd.DataFrame(columns=PART_COLUMNS, dtype=float)
    # Which nodes are slow depends on the usual pair, and the usual pair is one of healthy nodes. So
    # each pass computes the usual pair without the nodes that the pass before found slow. The first
    # pass knows of no slow node: its quantile is a faster pair than the median.
    for quantile in USUAL_QUANTILES:
        is_healthy = ~(pairs["client"].isin(slow.index) | pairs["server"].isin(slow.index))
        logs = pairs["log"].where(is_healthy)
        usual = logs.groupby(pairs["uplinks"]).transform("quantile", quantile)
        # If no healthy pair crosses as many uplinks, all pairs stand for them.
        behind = pairs["log"] - usual.fillna(pairs["log"].quantile(quantile))
        slow = slow_nodes(pairs.assign(behind=behind), slow.index)
    # Pairs are judged by the last pass, if both their nodes seemed healthy before it.
    healthy_pairs = pairs.assign(behind=behind)[is_healthy]
    found = [parts_of("node", slow, sign), parts_of("pair", slow_pairs(healthy_pairs), sign)]
    return pd.concat(found)


def frame_of_pairs(
    logs: Mapping[str, NDArray[np.float64]], known: Mapping[str, Collection[str]]
) -> pd.DataFrame:
    """Return a line for each pair: its nodes, the uplinks between them, and its median with confidence interval.

    Args:
        logs: pair -> logarithms of the values of its repetitions; a higher number is slower.
        known: switch or uplink -> nodes behind it.
    """
    lines = {}
    for name, values in logs.items():
        # A pair crosses an uplink if only one of its nodes is behind it.
        client, server = name.split("+")
        interval = statistics.median_interval(values)
        lines[name] = {
            "client": client,
            "server": server,
            "uplinks": sum((client in nodes) != (server in nodes) for nodes in known.values()),
            "log": statistics.median(values),
            "log_low": interval.low,
            "log_high": interval.high,
        }
    return pd.DataFrame.from_dict(lines, orient="index")


def slow_nodes(pairs: pd.DataFrame, suspected: pd.Index[str]) -> pd.DataFrame:
    """Return the slow nodes.

    The whole confidence interval of their median is more than ``DELTA`` behind.

    Args:
        pairs: frame of pairs with the column ``behind``.
        suspected: nodes that seemed slow before; pairs with them say nothing about their partners.
    """
    # Two lines for each pair: one for each of its nodes, with the other node as its partner.
    ends = pd.concat(
        [
            pairs.assign(node=pairs["client"], partner=pairs["server"]),
            pairs.assign(node=pairs["server"], partner=pairs["client"]),
        ]
    )
    lines = {}
    with_healthy = ends[~ends["partner"].isin(suspected)]
    for node, of_node in with_healthy.groupby("node")["behind"]:
        values = of_node.to_numpy()
        interval = statistics.median_interval(values)
        if len(values) >= LEAST_PARTNERS and interval.low > DELTA:
            lines[node] = {
                "low": interval.low,
                "behind": statistics.median(values),
                "high": interval.high,
                "pairs": len(values),
            }
    return pd.DataFrame.from_dict(lines, orient="index", columns=PART_COLUMNS, dtype=float)


def slow_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that are behind by more than ``DELTA`` plus ``SPREADS`` standard deviations.

    Args:
        pairs: frame of the pairs of healthy nodes, with the column ``behind``.
    """
    behind = pairs["behind"]
    spread = SD_OF_MAD * (behind - behind.median()).abs().median()
    slow = pairs[behind > DELTA + SPREADS * spread]
    return slow.assign(
        low=slow["behind"] + slow["log_low"] - slow["log"],
        high=slow["behind"] + slow["log_high"] - slow["log"],
        pairs=1,
    )


def parts_of(kind: Kind, slow: pd.DataFrame, sign: int) -> pd.DataFrame:
    """Return lines of ``fleet`` for slow nodes or pairs, the slowest first. Logarithms in ``slow`` become shares.

    Args:
        kind: what the lines of ``slow`` are.
        slow: frame with the columns ``PART_COLUMNS``.
        sign: 1 for times, -1 for rates.
    """
    ordered = slow.sort_values("behind", ascending=False, kind="stable")
    shares = sign * np.expm1(sign * ordered[["low", "behind", "high"]])
    return pd.DataFrame(
        {
            "kind": kind,
            "name": ordered.index,
            "behind": shares["behind"],
            "behind_low": shares["low"],
            "behind_high": shares["high"],
            "pairs": ordered["pairs"],
        }
    )
