"""Which node, link or switch slows pairs of nodes down.

A pair is as slow as the slowest of its client, its server, its link and the uplinks between them; a
round trip takes what they add. A node's share is the median over its pairs with healthy nodes, so
that few pairs suffice: random rounds bring each node to other partners. What all nodes behind an
uplink have in common is the uplink's. What nodes and uplinks do not explain is the link's; one
slow pair is a suspect until its own repetitions confirm it.

Times are compared as logarithms, of rates those of their reciprocals, so that a high number is bad. A
pair is *behind* by the difference to the usual pair that crosses as many uplinks (its *kind*), a node
by the median over its pairs with healthy nodes. ``_fit`` estimates both; ``_Network.without_nodes`` takes
out of the pairs what slow nodes explain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from peakmark import statistics
from peakmark.plan.cluster import Behind, crossed
from peakmark.rows.fleet import (
    DELTA,
    LEAST_PAIRS,
    LEAST_PARTNERS,
    RATE,
    is_mapped,
    values_of,
)
from peakmark.tools.tables import BY_NAME

FEW = 3
"""Pairs up to which a node is as far behind as the least of them: of three, two links may be slow."""
PASSES = 6
"""Largest number of passes; the healthy nodes no longer change after two or three."""
FIRST_GUESS = 0.25
"""Quantile of the first guess: that of the faster pairs, as most pairs of a slow rack are slow."""
EFFICIENCY = 0.37
"""Of the median absolute deviation: so many values count in it. Source: Rousseeuw and Croux,
Alternatives to the median absolute deviation, JASA 88 (1993), pages 1273-1283.
"""

Kind = Literal["node", "link", "switch"]


class SlowPart(NamedTuple):
    """What is slower than its like: a ``node``, a ``switch`` with its uplink, or a ``link``.

    Attributes:
        name: of the node or the switch; of a link ``client+server``.
        low: the least share by which it may be behind.
        behind: share by which it is behind.
        high: the most.
        pairs: in how many pairs it was measured.
        confirmed: False for a link that its own repetitions do not show yet.
    """

    kind: Kind
    name: str
    low: float
    behind: float
    high: float
    pairs: int
    confirmed: bool = True


class _Fit(NamedTuple):
    """By how much pairs and nodes are behind, as logarithms, and which nodes are healthy.

    Attributes:
        pairs: pair -> by how much it is behind the usual pair of its kind; what its nodes explain is
            still in it.
        nodes: node -> the median of that over its pairs with healthy nodes.
        healthy: nodes that are behind by at most ``DELTA``.
    """

    pairs: pd.Series
    nodes: pd.Series
    healthy: frozenset[str]


def list_slow_parts(rows: pd.DataFrame, runs: pd.DataFrame, known: Behind) -> pd.DataFrame:
    """Return what is slow among the pairs of each point.

    Args:
        rows: see ``schema.ROWS``, with severities.
        runs: see ``schema.RUNS``.
        known: switch or uplink -> nodes behind it.
    """
    mapped = rows[is_mapped(rows)]
    lines = []
    for (table, place), pairs in mapped.groupby(["table", "place"], sort=False):
        values = {node: found for (node, _), found in values_of(pairs, runs).items()}
        ordered = {node: values[node] for node in pairs["node"]}
        for part in find(ordered, BY_NAME[str(table)].lower_is_better, known):
            line = part._asdict() | {"table": table, "point": place}
            line |= {"behind_low": part.low, "behind_high": part.high, "subsystem": "network"}
            lines.append(line)
    return pd.DataFrame(lines)


def find(
    measured: Mapping[str, Sequence[float]], lower_is_better: bool, known: Behind
) -> list[SlowPart]:
    """Return what is slow: switches, then nodes, then links.

    Args:
        measured: ``client+server`` -> the pair's repetitions, positive, in any unit.
        lower_is_better: whether they are times.
        known: switch or uplink -> nodes behind it.
    """
    network = _Network.of(measured, lower_is_better, known)
    switches, behind = _slow_switches(network, known)
    fit = _fit(behind, network)
    unexplained = network.without_nodes(fit, fit.nodes[fit.nodes > DELTA])
    spread = float(stats.median_abs_deviation(unexplained, scale="normal"))
    nodes = _slow_nodes(network, fit, spread)
    links = network.without_nodes(fit, fit.nodes[[node.name for node in nodes]])
    return [*switches, *nodes, *_slow_links(network, links, spread)]


@dataclass(frozen=True)
class _Network:
    """The pairs of one point.

    Attributes:
        logs: pair -> logarithms of its times, of rates of their reciprocals: a high one is bad.
        ends: a line for each pair and each of its nodes: ``pair``, ``node``, ``other``.
        paths: pair -> switches that it crosses.
        kinds: pair -> number of switches, by which pairs are compared.
        sign: 1 for times, -1 for rates.
        combine: how the shares of a pair's two nodes make its own: ``sum`` of times, which add up on
            the way, ``max`` of rates, which the slower node limits.
    """

    logs: Mapping[str, np.ndarray]
    ends: pd.DataFrame
    paths: pd.Series
    kinds: pd.Series
    sign: int
    combine: str

    @classmethod
    def of(
        cls, measured: Mapping[str, Sequence[float]], lower_is_better: bool, known: Behind
    ) -> _Network:
        """Build the tables of a network from the values of each pair."""
        sign = 1 if lower_is_better else -1
        ends = []
        for name in measured:
            for node, other in permutations(name.split("+")):
                ends.append((name, node, other))
        paths = pd.Series({name: crossed(name.split("+"), known) for name in measured})
        kinds = paths.map(len)
        # Too few pairs of a kind to be compared with each other count as the commonest kind.
        kinds[kinds.map(kinds.value_counts()) < LEAST_PAIRS] = kinds.mode()[0]
        return cls(
            logs={name: sign * np.log(values) for name, values in measured.items()},
            ends=pd.DataFrame(ends, columns=["pair", "node", "other"]),
            paths=paths,
            kinds=kinds,
            sign=sign,
            combine="sum" if lower_is_better else "max",
        )

    @property
    def pairs(self) -> int:
        """Return the number of pairs."""
        return len(self.logs)

    def without_nodes(self, fit: _Fit, slow: pd.Series) -> pd.Series:
        """Return by how much pairs are behind, without what slow nodes explain.

        Args:
            fit: of the pairs.
            slow: node -> by how much it is behind, of the slow nodes alone.
        """
        of_ends = self.ends["node"].map(slow).fillna(0.0)
        shares = of_ends.groupby(self.ends["pair"]).agg(self.combine)
        return fit.pairs - shares[fit.pairs.index]

    def part(
        self, kind: Kind, name: str, limits: Sequence[float], pairs: int = 1, confirmed: bool = True
    ) -> SlowPart:
        """Return a slow part; ``limits`` are low, middle and high as logarithms."""
        low, middle, high = (float(self.sign * np.expm1(self.sign * limit)) for limit in limits)
        return SlowPart(kind, name, low, middle, high, pairs, confirmed)


def _slow_switches(network: _Network, known: Behind) -> tuple[list[SlowPart], pd.Series]:
    """Return the slow switches, and the logarithm of each pair's time without what they explain.

    The switch with most nodes behind it comes first, as a slow upper switch explains the lower ones.
    """
    behind = pd.Series({name: np.median(values) for name, values in network.logs.items()})
    fit = _fit(behind, network)
    found = []
    for name in sorted(known, key=lambda name: (-len(known[name]), name)):
        pairs = _PairsOfSwitch.of(name, network, known, fit.healthy)
        shares = fit.pairs[pairs.with_healthy]
        # Most of its pairs must be slow: the faster quarter is not.
        if shares.size < LEAST_PAIRS or shares.quantile(FIRST_GUESS) <= DELTA:
            continue
        interval = statistics.median_interval(shares.to_numpy())
        if interval.low <= DELTA:
            continue
        slowed = pairs.through
        # Pairs below it do not cross its uplink, but are slow where the switch itself is.
        if pairs.inside.any() and fit.pairs[pairs.inside].median() > DELTA:
            slowed = pairs.through | pairs.inside
        limits = interval.low, shares.median(), interval.high
        found.append(network.part("switch", name, limits, pairs=int(slowed.sum())))
        behind = behind - shares.median() * slowed
        fit = _fit(behind, network)
    return found, behind


class _PairsOfSwitch(NamedTuple):
    """Masks of the pairs of a network that a switch concerns, in the order of ``_Network.logs``.

    Attributes:
        through: those that cross it.
        with_healthy: those of them that have a healthy node on its other side.
        inside: those with both nodes behind it.
    """

    through: np.ndarray
    with_healthy: np.ndarray
    inside: np.ndarray

    @classmethod
    def of(
        cls, name: str, network: _Network, known: Behind, healthy: frozenset[str]
    ) -> _PairsOfSwitch:
        """Return the masks of a switch."""
        others = healthy - known[name]
        nodes = [set(pair.split("+")) for pair in network.logs]
        through = np.array([name in path for path in network.paths])
        has_healthy = np.array([not others.isdisjoint(both) for both in nodes])
        inside = np.array([known[name].issuperset(both) for both in nodes])
        return cls(through, through & has_healthy, inside)


def _slow_nodes(network: _Network, fit: _Fit, spread: float) -> list[SlowPart]:
    """Return the slow nodes.

    Args:
        network: the pairs.
        fit: of the pairs.
        spread: standard deviation of pairs that nothing slows down.
    """
    pairs_of_node = network.ends.groupby("node").size()[fit.nodes.index]
    # The standard error of a median of normal values.
    errors = spread * np.sqrt(np.pi / 2 / pairs_of_node.to_numpy())
    found = []
    for name, low, middle, high in _beyond(fit.nodes, errors, network.pairs):
        limits = low, middle, high
        found.append(network.part("node", name, limits, pairs=int(pairs_of_node[name])))
    return found


def _slow_links(network: _Network, links: pd.Series, spread: float) -> list[SlowPart]:
    """Return the slow links, confirmed where their own repetitions show it.

    Args:
        network: the pairs.
        links: pair -> by how much it is behind, without what slow nodes explain.
        spread: standard deviation of pairs that nothing slows down.
    """
    found = []
    errors = np.full(len(links), spread)
    for name, low, middle, high in _beyond(links, errors, network.pairs):
        # The interval of its own repetitions around their median, moved to the link's share.
        scatter = network.logs[name] - np.median(network.logs[name])
        interval = statistics.median_interval(scatter)
        is_confirmed = interval.enough and middle + interval.low > DELTA
        if is_confirmed:
            limits = middle + interval.low, middle, middle + interval.high
        else:
            limits = low, middle, high
        found.append(network.part("link", name, limits, confirmed=is_confirmed))
    return found


def _fit(behind: pd.Series, network: _Network) -> _Fit:
    """Return medians of nodes over their pairs with healthy nodes, until these stay the same.

    Args:
        behind: logarithm of each pair's time, without what slow switches explain.
        network: its pairs.
    """
    ends = network.ends
    healthy = every = frozenset(ends["node"])
    share = FIRST_GUESS
    for _ in range(PASSES):
        clean = ends["node"].isin(healthy).groupby(ends["pair"]).all()[behind.index]
        usual = behind.where(clean).groupby(network.kinds).transform("quantile", share)
        pairs = behind - usual.fillna(behind.quantile(share))
        known = ends[ends["other"].isin(healthy)]
        shares = known["pair"].map(pairs).groupby(known["node"])
        count = shares.size()
        middle = shares.quantile(share, interpolation="lower").where(count > FEW, shares.min())
        nodes = middle[count >= LEAST_PARTNERS]
        before, healthy = healthy, every - {*nodes.index[nodes > DELTA]}
        if share == 0.5 and before == healthy:
            break
        share = 0.5
    return _Fit(pairs, nodes, healthy)


def _beyond(
    behind: pd.Series, errors: np.ndarray, count: int
) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, low, middle and high of what is behind by more than ``DELTA``, the slowest first.

    The whole interval must be, at a false discovery rate of ``RATE``.

    Args:
        behind: name -> by how much it is behind, as logarithms.
        errors: their standard errors, in the same order.
        count: number of values from which the errors were estimated.
    """
    freedom = max(1, int(EFFICIENCY * count))
    errors = np.maximum(errors, np.finfo(float).eps)
    half = pd.Series(stats.t.ppf(0.975, freedom) * errors, index=behind.index)
    chances = stats.t.sf(behind / errors, freedom).tolist()
    is_slow = np.array(statistics.discoveries(chances, RATE), dtype=bool)
    found = behind[is_slow & (behind - half > DELTA)]
    for key, middle in found.sort_values(ascending=False).items():
        name = str(key)
        yield name, middle - half[name], middle, middle + half[name]
