"""Simulated fleets: how often healthy nodes and links are called slow, how often slow ones are not
found.

Values are lognormal. Healthy nodes differ by ``EQUAL``, in all rows of a resource alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from benchmarks.method.promises import Count, Counts
from peakmark.plan.cluster import rounds
from peakmark.rows import fleet
from peakmark.rows.fleet import Place

Values = NDArray[np.float64]

RESOURCES, ROWS = 4, 15
"""Rows of each resource."""
EQUAL, TURBO = 0.003, 0.035
"""Standard deviations of healthy nodes, the second of clocks that each chip chooses for itself: of
64 nodes the fastest is then 16 % before the slowest.
"""
OFTEN, FAR = 0.05, 0.15
"""Share of repetitions that something slowed down, and by how much (standard deviation)."""


@dataclass(frozen=True)
class Fleet:
    """Campaigns of equal nodes of which some are slow.

    Attributes:
        nodes: of one class.
        slow: how many of them are slow, in so many ``rows`` of one resource.
        noise: standard deviation of a repetition.
        kind: how repetitions and nodes spread.
        by: by what share the slow ones are slow.
        repetitions: of each row.
    """

    nodes: int = 64
    slow: int = 2
    noise: float = 0.01
    kind: str = ""
    rows: int = ROWS
    by: float = 0.08
    repetitions: int = 6

    def __str__(self) -> str:
        rows = "one row" if self.rows == 1 else f"{self.rows} rows"
        slow = f"{self.slow} of {self.nodes} {self.by:.0%} behind in {rows}"
        return f"{slow}, noise of {self.noise:.0%}{self.kind and f', {self.kind}'}"

    def values(self, lot: np.random.Generator) -> Values:
        """Nodes x rows x repetitions; the slow nodes are the first."""
        shape = (self.nodes, RESOURCES * ROWS, self.repetitions)
        noise = lot.normal(0, self.noise, shape)
        if self.kind == "heavy tails":  # Student's t, of the same standard deviation
            noise = lot.standard_t(3, shape) * self.noise / np.sqrt(3)
        elif self.kind == "disturbed":
            noise -= (lot.random(shape) < OFTEN) * np.abs(lot.normal(0, FAR, shape))
        equal = TURBO if self.kind == "turbo" else EQUAL
        nodes = np.repeat(lot.normal(0, equal, (self.nodes, RESOURCES)), ROWS, axis=1)
        noise[: self.slow, : self.rows] += np.log1p(-self.by)
        return np.asarray(np.exp(noise + nodes[:, :, None]))


FLEETS = (
    *(Fleet(slow=0, noise=noise) for noise in (0.01, 0.03)),
    *(
        Fleet(nodes, slow, noise, kind)
        for nodes, slow in ((64, 2), (64, 20), (1000, 5), (1000, 40))
        for noise in (0.01, 0.03)
        for kind in ("", "heavy tails")
    ),
    *(Fleet(noise=noise, kind="disturbed") for noise in (0.01, 0.03)),
    *(Fleet(noise=noise, rows=1) for noise in (0.01, 0.03)),
    Fleet(by=0.04),
    Fleet(8, 1),
    Fleet(4, 1),
    Fleet(kind="turbo", by=0.3),
)


def slow_nodes(nodes: int, seed: int = 1) -> Counts:
    """Of each fleet the healthy nodes that are called slow in any row, and the slow ones that are
    found in none; ``nodes``: how many nodes are judged, at least.
    """
    for of in FLEETS:
        lot = np.random.default_rng((seed, *str(of).encode()))
        campaigns = -(-nodes // of.nodes)
        false = found = 0
        for _ in range(campaigns):
            by_place: dict[Place, list[float]] = {
                (str(node), row): repetitions
                for node, rows in enumerate(of.values(lot).tolist())
                for row, repetitions in enumerate(rows)
            }
            slow = {int(node) for node, _ in fleet.slow_rows(fleet.logs_of(by_place))}
            found += len(slow & set(range(of.slow)))
            false += len(slow - set(range(of.slow)))
        yield f"healthy nodes called slow, {of}", Count(false, campaigns * (of.nodes - of.slow))
        if of.slow:
            every = campaigns * of.slow
            yield f"slow nodes not found, {of}", Count(every - found, every)


@dataclass(frozen=True)
class Paired:
    """Nodes behind leaf switches, paired in five random rounds. Rates are those of the slowest part
    of a pair, times the sum of all.

    Attributes:
        nodes: behind leaves of ``leaf`` each.
        slow: how many nodes are slow by ``by``; the first ones, as in a rack.
        link: by what share one pair is slow.
        times: whether round-trip times are measured, else rates.
        known: whether the topology is known.
    """

    nodes: int = 64
    slow: int = 0
    by: float = 0.08
    noise: float = 0.01
    repetitions: int = 3
    link: float = 0.0
    times: bool = False
    known: bool = False

    @property
    def leaf(self) -> int:
        return 16 if self.nodes < 100 else 40

    def __str__(self) -> str:
        parts = [f"{'round trips' if self.times else 'rates'} of 5 rounds of {self.nodes} nodes"]
        parts += [f"{self.slow} {self.by:.0%} behind"] * bool(self.slow)
        parts += [f"a pair {self.link:.0%} behind"] * bool(self.link)
        return ", ".join([*parts, f"noise of {self.noise:.0%}, n = {self.repetitions}"])

    def measured(
        self, seed: int
    ) -> tuple[dict[str, list[float]], dict[str, frozenset[str]], set[tuple[str, str]]]:
        """Repetitions of each pair, the topology, and what is slow: kind and name."""
        lot = np.random.default_rng((seed, *str(self).encode()))
        names = [f"node{number}" for number in range(self.nodes)]
        leaves = {
            f"leaf{first // self.leaf}": frozenset(names[first : first + self.leaf])
            for first in range(0, self.nodes, self.leaf)
        }
        every = [pair for turn in islice(rounds(names, seed), 5) for pair in turn]
        slow = {"node": dict.fromkeys(names[: self.slow], self.by)}
        place = int(lot.integers(len(every)))
        slow["pair"] = {"+".join(every[place]): self.link} if self.link else {}
        values = {}
        for pair in every:
            parts = [slow["node"].get(node, 0.0) for node in pair]
            parts.append(slow["pair"].get("+".join(pair), 0.0))
            usual = 1 + sum(parts) if self.times else 1 - max(parts)
            noise = np.exp(lot.normal(0, self.noise, self.repetitions))
            values["+".join(pair)] = (usual * noise).tolist()
        named = {(kind, name) for kind, shares in slow.items() for name in shares}
        return values, leaves if self.known else {}, named


EVERY = (
    Paired(),
    Paired(slow=2),
    Paired(slow=2, repetitions=1),
    Paired(slow=2, noise=0.03),
    Paired(link=0.2, repetitions=6),
    Paired(known=True),
)
PAIRED = [
    *(replace(each, nodes=n, slow=each.slow * n // 64) for n in (64, 1000) for each in EVERY),
    Paired(slow=20),
]
PAIRED += [replace(each, times=True) for each in PAIRED]


def is_healthy(name: str, slow: set[tuple[str, str]]) -> bool:
    """Return whether neither node of a pair, or not the node, is slow: a pair with a slow node is slow."""
    return all(("node", node) not in slow for node in name.split("+"))


def slow_links(nodes: int, seed: int = 1) -> Counts:
    """Of each fleet the healthy nodes and pairs that are called slow, per node, and the
    slow ones that are not; ``nodes``: how many nodes are judged, at least.
    """
    for of in PAIRED:
        campaigns = -(-nodes // of.nodes)
        false = missed = judged = 0
        for number in range(campaigns):
            values, leaves, slow = of.measured(seed * 1000 + number)
            found = fleet.slow_parts(values, of.times, leaves)
            named = {(str(each.kind), str(each.name)) for each in found.itertuples()}
            false += sum(is_healthy(name, slow) for _, name in named - slow)
            missed += len(slow - named)
            judged += len(slow)
        yield f"healthy nodes called slow by pairs, {of}", Count(false, campaigns * of.nodes)
        if judged:
            yield f"slow nodes not found by pairs, {of}", Count(missed, judged)
