"""Find the nodes, links and switches that slow pairs of nodes down.

A pair of nodes may be slow because of its client, its server, its link, or an uplink between them. The
slowest of these parts limits a rate; a round trip is the sum of their times. ``find`` blames the parts
in this order:

1. a switch, if at least three quarters of the pairs through its uplink are slow;
2. a node, if the median of its pairs with healthy nodes is slow;
3. a link, if its pair is slower than its nodes and switches explain. The link is a suspect until the
   repetitions of the pair confirm it.

Random rounds measure each node with several partners, so that a few pairs for each node suffice.

Values are compared as logarithms of times or of reciprocal rates, so that a higher number is slower. A
pair's *kind* is the number of uplinks that it crosses. A pair is *behind* by its difference to the usual
pair of its kind. A node is behind by the median over its pairs with healthy nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from peakmark import statistics
from peakmark.plan.cluster import Behind, crossed
from peakmark.rows.fleet import DELTA, LEAST_PAIRS, LEAST_PARTNERS, RATE, values_of
from peakmark.rows.schema import is_mapped
from peakmark.tools.tables import BY_NAME

FEW = 3
"""Number of pairs up to which a node's fastest pair is used instead of the median: two of three links
may be slow.
"""
PASSES = 6
"""Largest number of passes of ``_fit``; the healthy nodes seldom change after two or three."""
FIRST_GUESS = 0.25
"""Quantile of the pairs' logarithms that the first pass of ``_fit`` treats as the normal value.

It is below the median because a slow rack can make most pairs slow. Later passes use the median.
"""
FASTEST_QUARTER = 0.25
"""A switch is slow if the pair at this quantile, counted from the fastest, is slow: then three quarters
of the switch's pairs are slow.
"""
EFFICIENCY = 0.37
"""Efficiency of the median absolute deviation: n values determine it as well as 0.37 n determine a
standard deviation. Source: Rousseeuw and Croux, Alternatives to the median absolute deviation, JASA 88
(1993), pages 1273-1283.
"""

Kind = Literal["node", "link", "switch"]


class SlowPart(NamedTuple):
    """A slow part of the network.

    Attributes:
        kind: ``node``, ``link``, or ``switch`` for a switch with its uplink.
        name: name of the node or switch; ``client+server`` for a link.
        low: ``behind`` at the lower end of its confidence interval.
        behind: share by which the part is behind.
        high: ``behind`` at the upper end of the interval.
        pairs: number of pairs from which this was estimated.
        confirmed: False for a link that the repetitions of its pair do not confirm.
    """

    kind: Kind
    name: str
    low: float
    behind: float
    high: float
    pairs: int
    confirmed: bool = True


class _Estimate(NamedTuple):
    """Amount by which a part is behind, with the ends of its confidence interval, as logarithms."""

    low: float
    middle: float
    high: float


class _Fit(NamedTuple):
    """Amounts by which pairs and nodes are behind, as logarithms, and the healthy nodes.

    Attributes:
        pairs: pair -> by how much the pair is behind the usual pair of its kind. The effect of slow
            nodes is part of it.
        nodes: node -> median of ``pairs`` over the node's pairs with healthy nodes.
        healthy: nodes that are behind by at most ``DELTA``.
    """

    pairs: pd.Series
    nodes: pd.Series
    healthy: frozenset[str]


def list_slow_parts(rows: pd.DataFrame, runs: pd.DataFrame, known: Behind) -> pd.DataFrame:
    """Return a line of ``fleet`` for each slow part of the network, at each point.

    A point is here what the pairs of nodes have in common: workload, variant, block and concurrency.

    Args:
        rows: frame ``rows`` with severities. Only the rows of pairs that measured their link count
            (``is_mapped``).
        runs: frame ``runs``.
        known: switch or uplink -> nodes behind it.
    """
    of_links = rows[is_mapped(rows)]
    lines = []
    for (table, point), pairs in of_links.groupby(["table", "place"], sort=False):
        by_time = {pair: values for (pair, _), values in values_of(pairs, runs).items()}
        # Keep the order of the rows: the order of the runs must not decide how ties are listed.
        measured = {pair: by_time[pair] for pair in pairs["node"]}
        for part in slow_parts(measured, BY_NAME[str(table)].lower_is_better, known):
            line = part._asdict() | {"table": table, "point": point}
            line |= {"behind_low": part.low, "behind_high": part.high, "subsystem": "network"}
            lines.append(line)
    return pd.DataFrame(lines)


def slow_parts(
    measured: Mapping[str, Sequence[float]], lower_is_better: bool, known: Behind
) -> list[SlowPart]:
    """Return the slow parts of a network: switches, then nodes, then links.

    Args:
        measured: ``client+server`` -> the pair's repetitions, positive, in any unit.
        lower_is_better: whether the repetitions are times.
        known: switch or uplink -> nodes behind it.
    """
    from scipy import stats  # late: most campaigns measure no pairs of nodes

    network = _Network.of(measured, lower_is_better, known)
    switches, behind = _slow_switches(network, known)
    fit = _fit(behind, network)
    # Spread of pairs that no node slows down, for the significance of nodes and links.
    unexplained = network.without_nodes(fit, fit.nodes[fit.nodes > DELTA])
    spread = float(stats.median_abs_deviation(unexplained, scale="normal"))
    nodes = _slow_nodes(network, fit, spread)
    links = network.without_nodes(fit, fit.nodes[[node.name for node in nodes]])
    return [*switches, *nodes, *_slow_links(network, links, spread)]


@dataclass(frozen=True)
class _Network:
    """The measured pairs of nodes of one point, and the uplinks that they cross.

    Attributes:
        logs: pair -> logarithms of its times or reciprocal rates; a higher number is slower.
        ends: frame with a line for each node of each pair: ``pair``, ``node`` and the ``other`` node.
        paths: pair -> uplinks that the pair crosses.
        kinds: pair -> number of uplinks; only pairs of the same kind are compared.
        sign: 1 for times, -1 for rates.
        combine: how two slow nodes slow down their pair. It is ``sum`` for times, which add up, and
            ``max`` for rates, which the slower node limits.
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
        """Return the network that the measured pairs form; ``slow_parts`` explains the arguments."""
        sign = 1 if lower_is_better else -1
        ends = []
        for name in measured:
            for node, other in permutations(name.split("+")):
                ends.append((name, node, other))
        paths = pd.Series({name: crossed(name.split("+"), known) for name in measured})
        kinds = paths.map(len)
        # A kind with too few pairs for a comparison is merged into the most common kind.
        kinds[kinds.map(kinds.value_counts()) < LEAST_PAIRS] = kinds.mode()[0]
        return cls(
            logs={name: sign * np.log(values) for name, values in measured.items()},
            ends=pd.DataFrame(ends, columns=["pair", "node", "other"]),
            paths=paths,
            kinds=kinds,
            sign=sign,
            combine="sum" if lower_is_better else "max",
        )

    def without_nodes(self, fit: _Fit, slow: pd.Series) -> pd.Series:
        """Return by how much pairs are behind, without the effect of slow nodes.

        Args:
            fit: estimates for the network.
            slow: slow node -> by how much the node is behind.
        """
        of_ends = self.ends["node"].map(slow).fillna(0.0)
        explained = of_ends.groupby(self.ends["pair"]).agg(self.combine)
        return fit.pairs - explained[fit.pairs.index]

    def part(
        self, kind: Kind, name: str, estimate: _Estimate, pairs: int = 1, confirmed: bool = True
    ) -> SlowPart:
        """Return a slow part, with the logarithms converted to shares."""
        low, middle, high = (float(self.sign * np.expm1(self.sign * limit)) for limit in estimate)
        return SlowPart(
            kind, name, low=low, behind=middle, high=high, pairs=pairs, confirmed=confirmed
        )


def _slow_switches(network: _Network, known: Behind) -> tuple[list[SlowPart], pd.Series]:
    """Return the slow switches, and the logarithm of each pair's time without the effect of switches.

    The switch with the most nodes behind it is judged first: a slow upper switch also slows down the
    pairs of the switches below it.
    """
    behind = pd.Series({name: np.median(values) for name, values in network.logs.items()})
    fit = _fit(behind, network)
    found = []
    for name in sorted(known, key=lambda name: (-len(known[name]), name)):
        pairs = _PairsOfSwitch.of(name, network, known, fit.healthy)
        estimate = _estimate_of_switch(fit.pairs[pairs.with_healthy])
        if estimate is None:
            continue
        slowed = pairs.through
        # Pairs inside do not cross the uplink. If these are slow too, the switch itself is slow.
        if pairs.inside.any() and fit.pairs[pairs.inside].median() > DELTA:
            slowed = pairs.through | pairs.inside
        found.append(network.part("switch", name, estimate, pairs=int(slowed.sum())))
        # Subtract what the switch explains before the next one is judged.
        behind = behind - estimate.middle * slowed
        fit = _fit(behind, network)
    return found, behind


def _estimate_of_switch(pairs: pd.Series) -> _Estimate | None:
    """Return by how much a switch is behind; None if it is not slow.

    Args:
        pairs: pair that crosses the switch's uplink to a healthy node -> by how much it is behind.
    """
    if pairs.size < LEAST_PAIRS or pairs.quantile(FASTEST_QUARTER) <= DELTA:
        return None
    interval = statistics.median_interval(pairs.to_numpy())
    if interval.low <= DELTA:
        return None
    return _Estimate(low=interval.low, middle=pairs.median(), high=interval.high)


class _PairsOfSwitch(NamedTuple):
    """Masks that select pairs by their path through a switch, in the order of ``_Network.logs``.

    Attributes:
        through: pairs that cross the uplink of the switch.
        with_healthy: pairs that cross the uplink and have a healthy node outside.
        inside: pairs with both nodes behind the switch.
    """

    through: np.ndarray
    with_healthy: np.ndarray
    inside: np.ndarray

    @classmethod
    def of(
        cls, name: str, network: _Network, known: Behind, healthy: frozenset[str]
    ) -> _PairsOfSwitch:
        """Return the masks of the switch ``name``."""
        healthy_outside = healthy - known[name]
        nodes = [set(pair.split("+")) for pair in network.logs]
        through = np.array([name in path for path in network.paths])
        has_healthy = np.array([not healthy_outside.isdisjoint(both) for both in nodes])
        inside = np.array([known[name].issuperset(both) for both in nodes])
        return cls(through=through, with_healthy=through & has_healthy, inside=inside)


def _slow_nodes(network: _Network, fit: _Fit, spread: float) -> list[SlowPart]:
    """Return the slow nodes.

    Args:
        network: the pairs.
        fit: estimates for the network.
        spread: standard deviation of pairs that nothing slows down.
    """
    pairs_of_node = network.ends.groupby("node").size()[fit.nodes.index]
    # Standard error of the median of normally distributed values.
    errors = spread * np.sqrt(np.pi / 2 / pairs_of_node.to_numpy())
    found = []
    for name, estimate in _significantly_slow(fit.nodes, errors, count=len(network.logs)):
        found.append(network.part("node", name, estimate, pairs=int(pairs_of_node[name])))
    return found


def _slow_links(network: _Network, links: pd.Series, spread: float) -> list[SlowPart]:
    """Return the slow links. A link is confirmed if the repetitions of its pair show it too.

    Args:
        network: the pairs.
        links: link, named by its pair -> by how much it is behind, as a logarithm, without the effect
            of slow nodes.
        spread: standard deviation of pairs that nothing slows down.
    """
    found = []
    errors = np.full(len(links), spread)
    for name, tested in _significantly_slow(links, errors, count=len(network.logs)):
        # Interval of the pair's median, relative to the median.
        scatter = network.logs[name] - np.median(network.logs[name])
        interval = statistics.median_interval(scatter)
        own_estimate = _Estimate(
            low=tested.middle + interval.low,
            middle=tested.middle,
            high=tested.middle + interval.high,
        )
        is_confirmed = interval.enough and own_estimate.low > DELTA
        estimate = own_estimate if is_confirmed else tested
        found.append(network.part("link", name, estimate, confirmed=is_confirmed))
    return found


def _fit(behind: pd.Series, network: _Network) -> _Fit:
    """Estimate by how much pairs and nodes are behind.

    Both are relative to healthy nodes, and which nodes are healthy depends on both. The estimate is
    repeated until the healthy nodes no longer change.

    Args:
        behind: logarithm of each pair's time, without the effect of slow switches.
        network: the pairs.
    """
    ends = network.ends
    healthy = every = frozenset(ends["node"])
    quantile = FIRST_GUESS
    for _ in range(PASSES):
        # Pairs relative to the usual pair of healthy nodes of the same kind.
        is_healthy = ends["node"].isin(healthy).groupby(ends["pair"]).all()[behind.index]
        usual = behind.where(is_healthy).groupby(network.kinds).transform("quantile", quantile)
        pairs = behind - usual.fillna(behind.quantile(quantile))
        # Nodes: median over the pairs with healthy partners.
        with_healthy = ends[ends["other"].isin(healthy)]
        of_node = with_healthy["pair"].map(pairs).groupby(with_healthy["node"])
        count = of_node.size()
        middle = of_node.quantile(quantile, interpolation="lower")
        middle = middle.where(count > FEW, of_node.min())
        nodes = middle[count >= LEAST_PARTNERS]
        before, healthy = healthy, every - {*nodes.index[nodes > DELTA]}
        if quantile == 0.5 and before == healthy:
            break
        quantile = 0.5
    return _Fit(pairs=pairs, nodes=nodes, healthy=healthy)


def _significantly_slow(
    behind: pd.Series, errors: np.ndarray, count: int
) -> Iterator[tuple[str, _Estimate]]:
    """Yield name and estimate of each node or link that is significantly slow, the slowest first.

    The whole confidence interval lies above ``DELTA``, at a false discovery rate of ``RATE``.

    Args:
        behind: name -> by how much the node or link is behind, as a logarithm.
        errors: standard errors of ``behind``, in the same order.
        count: number of values from which the errors were estimated.
    """
    from scipy import stats

    freedom = max(1, int(EFFICIENCY * count))
    errors = np.maximum(errors, np.finfo(float).eps)
    half = pd.Series(stats.t.ppf(0.975, freedom) * errors, index=behind.index)
    p_values = stats.t.sf(behind / errors, freedom).tolist()
    is_slow = np.array(statistics.discoveries(p_values, RATE), dtype=bool)
    found = behind[is_slow & (behind - half > DELTA)]
    for key, middle in found.sort_values(ascending=False).items():
        name = str(key)
        yield name, _Estimate(low=middle - half[name], middle=middle, high=middle + half[name])
