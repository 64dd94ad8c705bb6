"""Which node, link or switch slows pairs of nodes down.

A pair is as slow as the slowest of its client, its server, its link and the uplinks between them; a
round trip takes what they add. A node's share is the median over its pairs with healthy nodes, so
that few pairs suffice: random rounds bring each node to other partners. What all nodes behind an
uplink have in common is the uplink's. What nodes and uplinks do not explain is the link's; one
slow pair is a suspect until its own repetitions confirm it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from peakmark import statistics
from peakmark.analysis.findings import Conclusion
from peakmark.analysis.fleet import DELTA, RATE
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Key, Row
from peakmark.messages import Severity, message
from peakmark.plan.pairs import Behind, Pair, crossed

Values = NDArray[np.float64]

LEAST_PAIRS = 2
"""With fewer healthy partners, a slow node cannot be told from a slow link."""
LEAST_CLASS = 6
"""So many pairs that cross equally many uplinks are compared with each other alone."""
PASSES = 6
"""The healthy nodes no longer change after two or three."""
EFFICIENCY = 0.37
"""Of the median absolute deviation: so many values count in it. Source: Rousseeuw and Croux,
Alternatives to the median absolute deviation, JASA 88 (1993), pages 1273-1283.
"""


@dataclass(frozen=True)
class SlowPart:
    """What is slower than its like: a ``node``, a ``switch`` with its uplink, or a ``link``.

    Attributes:
        name: of the node or the switch; of a link ``client+server``.
        behind: by what share, with the interval ``low`` to ``high``.
        pairs: in how many pairs it was measured.
        confirmed: False for a link whose own repetitions do not show it yet.
    """

    kind: Literal["node", "link", "switch"]
    name: str
    behind: float
    low: float
    high: float
    pairs: int
    confirmed: bool = True


@dataclass
class _Fit:
    """The pairs of one point and what is known of them by now.

    Attributes:
        sign: 1 where lower values are better, else -1.
        kinds: of each pair, how many uplinks it crosses.
        partners: node -> its pairs and the other ends.
        explained: by what share of each pair's value slow switches are behind.
        effects: node -> by what share it is behind; nodes that cannot be judged are not in it.
        behind: by what share each pair is behind the usual pair, switches apart.
        healthy: nodes that are not known to be slow.
    """

    pairs: list[Pair]
    values: Values
    sign: int
    kinds: NDArray[np.int_]
    partners: dict[str, list[tuple[int, str]]]
    explained: Values
    effects: dict[str, float] = field(default_factory=dict)
    behind: Values = field(default_factory=lambda: np.zeros(0))
    healthy: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Median of each node over its pairs with healthy nodes, until these stay the same."""
        self.healthy = set(self.partners)
        # The first guess is that of the faster pairs: of a slow rack, most pairs may be slow.
        quantile = 0.25
        for _ in range(PASSES):
            clean = np.array([self.healthy.issuperset(pair) for pair in self.pairs])
            corrected = self.values / (1 + self.sign * self.explained)
            usual = _usual(corrected * self.sign, self.kinds, clean, quantile) * self.sign
            self.behind = self.sign * (corrected / usual - 1)
            self.effects = {}
            for node, partners in self.partners.items():
                known = sorted(
                    self.behind[pair] for pair, other in partners if other in self.healthy
                )
                if len(known) >= LEAST_PAIRS:
                    self.effects[node] = float(known[int((len(known) - 1) * quantile)])
            before = self.healthy
            self.healthy = {node for node in self.partners if self.effects.get(node, 0.0) <= DELTA}
            if quantile == 0.5 and before == self.healthy:
                return
            quantile = 0.5

    def predicted(self, slow: Mapping[str, float]) -> Values:
        """By what share each pair is behind, by what its two nodes are."""
        combined = sum if self.sign > 0 else max
        return np.array([combined(slow.get(node, 0.0) for node in pair) for pair in self.pairs])


def _usual(
    values: Values, kinds: NDArray[np.int_], clean: NDArray[np.bool_], share: float
) -> Values:
    """What a pair without a slow part has, of each pair; pairs of a rare kind are held to all."""
    usual: Values = np.full(
        values.size, np.quantile(values[clean] if clean.any() else values, share)
    )
    for kind in np.unique(kinds):
        members = clean & (kinds == kind)
        if members.sum() >= LEAST_CLASS:
            usual[kinds == kind] = np.quantile(values[members], share)
    return usual


def find(
    measured: Mapping[Pair, Sequence[float]], lower_is_better: bool, known: Behind
) -> list[SlowPart]:
    """What is slow: switches, then nodes, then links, each the slowest first.

    Args:
        measured: client and server -> the pair's repetitions in SI units.
        lower_is_better: whether they are times.
        known: switch or uplink -> nodes behind it.
    """
    pairs = list(measured)
    partners: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, (client, server) in enumerate(pairs):
        partners[client].append((number, server))
        partners[server].append((number, client))
    paths = [crossed(pair, known) for pair in pairs]
    fit = _Fit(
        pairs,
        np.array([statistics.median(values) for values in measured.values()]),
        1 if lower_is_better else -1,
        np.array([len(path) for path in paths]),
        partners,
        np.zeros(len(pairs)),
    )
    fit.run()
    switches = _slow_switches(fit, known, paths)
    loud = {node: share for node, share in fit.effects.items() if share > DELTA}
    rest = fit.behind - fit.predicted(loud)
    spread = float(stats.median_abs_deviation(rest, scale="normal"))
    nodes = [*_slow_nodes(fit, spread)]
    rest = fit.behind - fit.predicted({slow.name: slow.behind for slow in nodes})
    return [*switches, *nodes, *_slow_links(fit, measured, rest, spread)]


def _slow_switches(fit: _Fit, known: Behind, paths: Sequence[frozenset[str]]) -> list[SlowPart]:
    """Switches that slow three quarters of the pairs down that cross them, the largest first; the pairs are then free of them."""
    found = []
    for name, nodes in sorted(known.items(), key=lambda item: (-len(item[1]), item[0])):
        through = np.array([name in path for path in paths])
        others = fit.healthy - nodes
        outside = np.array([not others.isdisjoint(pair) for pair in fit.pairs])
        shares = fit.behind[through & outside]
        if not shares.size or np.quantile(shares, 0.25) <= DELTA:
            continue
        interval, behind = statistics.median_interval(shares), statistics.median(shares)
        if not interval.enough or interval.low <= DELTA:
            continue
        inside = np.array([nodes.issuperset(pair) for pair in fit.pairs])
        if inside.any() and np.median(fit.behind[inside]) > DELTA:
            through |= inside
        fit.explained[through] += behind
        ends = interval.low, interval.high
        found.append(SlowPart("switch", name, behind, *ends, int(through.sum())))
        fit.run()
    return sorted(found, key=lambda slow: -slow.behind)


def _slow_nodes(fit: _Fit, spread: float) -> Iterator[SlowPart]:
    names = sorted(fit.effects, key=lambda node: -fit.effects[node])
    counts = np.array([len(fit.partners[name]) for name in names])
    effects = np.array([fit.effects[name] for name in names])
    # The standard error of a median of normal values.
    errors = np.sqrt(np.pi / 2) * spread / np.sqrt(counts)
    for place, half in _beyond(effects, errors, len(fit.pairs)):
        behind = float(effects[place])
        ends = behind - half, behind + half
        yield SlowPart("node", names[place], behind, *ends, int(counts[place]))


def _slow_links(
    fit: _Fit, measured: Mapping[Pair, Sequence[float]], rest: Values, spread: float
) -> list[SlowPart]:
    found = []
    for place, half in _beyond(rest, np.full(rest.size, spread), rest.size):
        pair, behind = fit.pairs[place], float(rest[place])
        low, high = behind - half, behind + half
        interval = statistics.median_interval(measured[pair])
        confirmed = interval.enough
        if confirmed:
            worst = sorted(share / fit.values[place] - 1 for share in (interval.low, interval.high))
            low, high = sorted(behind + fit.sign * each * (1 + fit.sign * behind) for each in worst)
            confirmed = low > DELTA
        found.append(SlowPart("link", "+".join(pair), behind, low, high, 1, confirmed))
    return sorted(found, key=lambda slow: -slow.behind)


def _beyond(effects: Values, errors: Values, count: int) -> Iterator[tuple[int, float]]:
    """Places of the effects that are beyond ``DELTA`` with their whole interval, and half of it, at
    a false discovery rate of ``RATE``.

    Args:
        effects: shares by which things are behind.
        errors: their standard errors.
        count: number of values from which the errors were estimated.

    Source: Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995), pages 289-300.
    """
    if not effects.size:
        return
    freedom = max(1, int(EFFICIENCY * count))
    errors = np.maximum(errors, np.finfo(float).eps)
    chances = stats.false_discovery_control(stats.t.sf(effects / errors, freedom))
    halves = stats.t.ppf(0.975, freedom) * errors
    for place in np.flatnonzero((chances <= RATE) & (effects - halves > DELTA)):
        yield int(place), float(halves[place])


@dataclass(frozen=True)
class LinkMap:
    """All pairs of one point: their rows, and what is slow among them."""

    rows: Mapping[Pair, Row]
    slow: Sequence[SlowPart]

    @property
    def nodes(self) -> set[str]:
        """The nodes of the pairs."""
        return {node for pair in self.rows for node in pair}


def is_mapped(row: Row) -> bool:
    """Whether a row has a figure of a pair: that of a link which ``tc`` slows down is right here."""
    notes = row.warnings_of(row.table.own.instrument)
    wrong = {note.code for note in notes if note.severity is Severity.WRONG}
    return row.pair is not None and row.own is not None and wrong <= {"shaped"}


def link_maps(rows: Sequence[Row], known: Behind) -> list[LinkMap]:
    """The pairs of each point of a table, in the order of its rows; none where no pairs were asked
    for.
    """
    points: dict[Key, dict[Pair, Row]] = defaultdict(dict)
    for row in rows:
        if row.pair and is_mapped(row):
            points[row.key._replace(node="")][row.pair] = row
    maps = []
    for point in points.values():
        values = {pair: row.measured.values for pair, row in point.items()}
        lower_is_better = next(iter(point.values())).table.lower_is_better
        maps.append(LinkMap(point, find(values, lower_is_better, known)))
    return maps


def suspects(rows: Sequence[Row], known: Behind) -> list[Row]:
    """The rows of pairs whose link looks slow, by too few repetitions to be sure."""
    return [
        each.rows[pair]
        for each in link_maps(rows, known)
        for slow in each.slow
        for pair in each.rows
        if slow.name == "+".join(pair) and not slow.confirmed
    ]


def conclusions(rows: Sequence[Row], known: Behind) -> list[Conclusion]:
    """What is slow among the pairs of one table, each once, by the row in which it is furthest
    behind.
    """
    maps = link_maps(rows, known)
    found: dict[tuple[str, str], list[tuple[SlowPart, Row]]] = defaultdict(list)
    for each in maps:
        for slow in each.slow:
            found[slow.kind, slow.name].append((slow, next(iter(each.rows.values()))))
    messages = []
    for same in found.values():
        slow, row = max(same, key=lambda one: (one[0].confirmed, one[0].behind))
        messages.append(
            message(
                "slow-link",
                case=slow.kind if slow.confirmed else "suspect",
                name=slow.name.replace("+", " → "),
                behind=slow.behind,
                low=slow.low,
                high=slow.high,
                pairs=slow.pairs,
                row=LabelFormatter.of(row).point_on_all(row),
                rows=len(same),
                of=len(maps),
            )
        )
    if maps and not messages:
        nodes, links = len(maps[0].nodes), len(maps[0].rows)
        messages.append(message("no-slow-link", nodes=nodes, links=links, beyond=DELTA))
    return [Conclusion(Topic.LINKS, Topic.LINKS.value, each) for each in messages]
