"""Which node, link or switch slows pairs of nodes down.

A pair is as slow as the slowest of its client, its server, its link and the uplinks between them; a
round trip takes what they add. A node's share is the median over its pairs with healthy nodes, so
that few pairs suffice: random rounds bring each node to other partners. What all nodes behind an
uplink have in common is the uplink's. What nodes and uplinks do not explain is the link's; one
slow pair is a suspect until its own repetitions confirm it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from peakmark import statistics
from peakmark.analysis.findings import Conclusion
from peakmark.analysis.fleet import DELTA, RATE, node_names
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Key, Row
from peakmark.messages import message
from peakmark.plan.cluster import Behind, crossed

LEAST_PAIRS = 2
"""With fewer healthy partners, a slow node cannot be told from a slow link."""
FEW = 3
"""A node of so few pairs is as far behind as the least of them: of three, two links may be slow."""
LEAST_CLASS = 6
"""So many pairs that cross equally many uplinks are compared with each other alone."""
PASSES = 6
"""The healthy nodes no longer change after two or three."""
EFFICIENCY = 0.37
"""Of the median absolute deviation: so many values count in it. Source: Rousseeuw and Croux,
Alternatives to the median absolute deviation, JASA 88 (1993), pages 1273-1283.
"""


Kind = Literal["node", "link", "switch"]


class SlowPart(NamedTuple):
    """What is slower than its like: a ``node``, a ``switch`` with its uplink, or a ``link``.

    Attributes:
        name: of the node or the switch; of a link ``client+server``.
        behind: by what share, with the interval ``low`` to ``high``.
        pairs: in how many pairs it was measured.
        confirmed: False for a link whose own repetitions do not show it yet.
    """

    kind: Kind
    name: str
    low: float
    behind: float
    high: float
    pairs: int
    confirmed: bool = True


class _Fit(NamedTuple):
    """By how much pairs and nodes are behind, as logarithms of times, and which nodes are not."""

    pairs: pd.Series
    nodes: pd.Series
    healthy: frozenset[str]


def find(
    measured: Mapping[str, Sequence[float]], lower_is_better: bool, known: Behind
) -> list[SlowPart]:
    """What is slow: switches, then nodes, then links.

    Args:
        measured: ``client+server`` -> the pair's repetitions, positive, in any unit.
        lower_is_better: whether they are times.
        known: switch or uplink -> nodes behind it.
    """
    sign = 1 if lower_is_better else -1
    combine = "sum" if lower_is_better else "max"
    logs = {name: sign * np.log(values) for name, values in measured.items()}
    worse = pd.Series({name: np.median(values) for name, values in logs.items()})
    ends = pd.DataFrame(
        [(name, *both) for name in measured for both in permutations(name.split("+"))],
        columns=["pair", "node", "other"],
    )
    paths = pd.Series({name: crossed(name.split("+"), known) for name in measured})
    kinds = paths.map(len)
    kinds[kinds.map(kinds.value_counts()) < LEAST_CLASS] = kinds.mode()[0]
    counts = ends.groupby("node").size()
    found = []

    def add(kind: Kind, name: str, *limits: float, pairs: int = 1, confirmed: bool = True) -> None:
        low, middle, high = (float(sign * np.expm1(sign * limit)) for limit in limits)
        found.append(SlowPart(kind, name, low, middle, high, pairs, confirmed))

    def rest(slow: pd.Series) -> pd.Series:
        shares = ends["node"].map(slow).fillna(0.0).groupby(ends["pair"]).agg(combine)
        return fit.pairs - shares[fit.pairs.index]

    fit = _fit(worse, ends, kinds)
    for name in sorted(known, key=lambda name: (-len(known[name]), name)):
        through = np.array([name in path for path in paths])
        others = fit.healthy - known[name]
        with_healthy = [not others.isdisjoint(each.split("+")) for each in measured]
        shares = fit.pairs[through & with_healthy]
        if shares.size < LEAST_CLASS or shares.quantile(0.25) <= DELTA:
            continue
        interval = statistics.median_interval(shares.to_numpy())
        if interval.low <= DELTA:
            continue
        inside = np.array([known[name].issuperset(each.split("+")) for each in measured])
        if inside.any() and fit.pairs[inside].median() > DELTA:
            through |= inside
        limits = interval.low, shares.median(), interval.high
        add("switch", name, *limits, pairs=int(through.sum()))
        worse = worse - shares.median() * through
        fit = _fit(worse, ends, kinds)
    unexplained = rest(fit.nodes[fit.nodes > DELTA])
    spread = stats.median_abs_deviation(unexplained, scale="normal")
    # The standard error of a median of normal values.
    errors = np.sqrt(np.pi / 2 / counts[fit.nodes.index]) * spread
    slow = list(_beyond(fit.nodes, errors, worse.size))
    for name, low, middle, high in slow:
        add("node", name, low, middle, high, pairs=int(counts[name]))
    links = rest(fit.nodes[[name for name, *_ in slow]])
    for name, low, middle, high in _beyond(links, pd.Series(spread, links.index), worse.size):
        distances = logs[name] - np.median(logs[name])
        interval = statistics.median_interval(distances)
        if interval.enough and middle + interval.low > DELTA:
            add("link", name, middle + interval.low, middle, middle + interval.high)
        else:
            add("link", name, low, middle, high, confirmed=False)
    return found


def _fit(worse: pd.Series, ends: pd.DataFrame, kinds: pd.Series) -> _Fit:
    """Medians of nodes over their pairs with healthy nodes, until these stay the same.

    Args:
        worse: logarithm of each pair's time, without what slow switches explain.
        ends: each pair from both sides.
        kinds: pairs of one kind cross equally many uplinks.
    """
    healthy = every = frozenset(ends["node"])
    # The first guess is that of the faster pairs: of a slow rack, most pairs may be slow.
    share = 0.25
    for _ in range(PASSES):
        clean = ends["node"].isin(healthy).groupby(ends["pair"]).all()[worse.index]
        usual = worse.where(clean).groupby(kinds).transform("quantile", share)
        pairs = worse - usual.fillna(worse.quantile(share))
        known = ends[ends["other"].isin(healthy)]
        shares = known["pair"].map(pairs).groupby(known["node"])
        count = shares.size()
        middle = shares.quantile(share, interpolation="lower").where(count > FEW, shares.min())
        nodes = middle[count >= LEAST_PAIRS]
        before, healthy = healthy, every - {*nodes.index[nodes > DELTA]}
        if share == 0.5 and before == healthy:
            break
        share = 0.5
    return _Fit(pairs, nodes, healthy)


def _beyond(
    behind: pd.Series, errors: pd.Series, count: int
) -> Iterator[tuple[str, float, float, float]]:
    """What is behind by more than ``DELTA`` with its whole interval at a false discovery rate of
    ``RATE``: name, low, middle and high, the slowest first.

    Args:
        behind: logarithms.
        errors: their standard errors.
        count: number of values from which the errors were estimated.
    """
    freedom = max(1, int(EFFICIENCY * count))
    errors = errors.clip(lower=np.finfo(float).eps)
    half = stats.t.ppf(0.975, freedom) * errors
    chances = stats.t.sf(behind / errors, freedom).tolist()
    is_slow = np.array(statistics.discoveries(chances, RATE), dtype=bool)
    found = behind[is_slow & (behind - half > DELTA)]
    for name, middle in found.sort_values(ascending=False).items():
        yield str(name), middle - half[name], middle, middle + half[name]


class LinkMap(NamedTuple):
    """The rows of all pairs of one point, what is slow among them, and what their nodes share."""

    rows: Sequence[Row]
    slow: Sequence[SlowPart]
    behind: Behind


def is_mapped(row: Row) -> bool:
    """Whether a row has a figure of a pair: that of a link which ``tc`` slows down is right here."""
    return row.is_pair and row.own is not None and not row.is_wrong_but_for("shaped")


def points(rows: Iterable[Row]) -> list[list[Row]]:
    """The pairs of each point of a table; none where no pairs were asked for."""
    by_point: dict[Key, list[Row]] = defaultdict(list)
    for row in filter(is_mapped, rows):
        by_point[row.key._replace(node="")].append(row)
    return list(by_point.values())


def link_maps(rows: Iterable[Row], known: Behind) -> list[LinkMap]:
    """What is slow in each point of a table."""
    maps = []
    for pairs in points(rows):
        measured = {row.key.node: row.measured.values for row in pairs}
        slow = find(measured, pairs[0].table.lower_is_better, known)
        maps.append(LinkMap(pairs, slow, known))
    return maps


def conclusions(maps: Sequence[LinkMap]) -> list[Conclusion]:
    """What is slow among the pairs of one table, each once, by the row in which it is furthest
    behind.
    """
    found: dict[tuple[str, str], list[tuple[SlowPart, Row]]] = defaultdict(list)
    for each in maps:
        for part in each.slow:
            found[part.kind, part.name].append((part, each.rows[0]))
    messages = []
    for same in found.values():
        part, row = max(same, key=lambda one: (one[0].confirmed, one[0].behind))
        messages.append(
            message(
                "slow-link",
                case=part.kind if part.confirmed else "suspect",
                name=part.name.replace("+", " → "),
                behind=part.behind,
                low=part.low,
                high=part.high,
                pairs=part.pairs,
                row=LabelFormatter.of(row).point(row, node=False),
                rows=len(same),
                of=len(maps),
            )
        )
    if maps and not messages:
        nodes, links = len(node_names({"": maps[0].rows})), len(maps[0].rows)
        messages.append(message("no-slow-link", nodes=nodes, links=links, beyond=DELTA))
    return [Conclusion(Topic.LINKS, Topic.LINKS.value, each) for each in messages]
