"""How often ``links.find`` is wrong about made-up fleets whose pairs were measured in random rounds.

Repetitions are lognormal. Rates are those of the slowest part of a pair, times the sum of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from benchmarks.method.same import Count
from peakmark.analysis import links
from peakmark.plan import pairs
from peakmark.plan.pairs import Behind


@dataclass(frozen=True)
class Fleet:
    """Nodes behind leaf switches, paired in five rounds.

    Attributes:
        nodes: behind leaves of ``leaf`` each.
        slow: how many nodes are slow by ``by``; the first ones, as in a rack.
        link: by what share one link is slow.
        switch: by what share the second leaf's uplink is slow.
        times: whether round-trip times are measured, else rates.
        known: whether the topology is known.
    """

    nodes: int = 64
    slow: int = 0
    by: float = 0.08
    noise: float = 0.01
    repetitions: int = 3
    link: float = 0.0
    switch: float = 0.0
    times: bool = False
    known: bool = False

    @property
    def leaf(self) -> int:
        return 16 if self.nodes < 100 else 40

    def __str__(self) -> str:
        parts = [f"{'round trips' if self.times else 'rates'} of 5 rounds of {self.nodes} nodes"]
        parts += [f"{self.slow} {self.by:.0%} behind"] * bool(self.slow)
        parts += [f"a link {self.link:.0%} behind"] * bool(self.link)
        parts += [f"an uplink {self.switch:.0%} behind"] * bool(self.switch)
        return ", ".join([*parts, f"noise of {self.noise:.0%}, n = {self.repetitions}"])

    def measured(self, seed: int) -> tuple[dict[str, list[float]], Behind, set[tuple[str, str]]]:
        """Repetitions of each pair, the topology, and what is slow: kind and name."""
        lot = np.random.default_rng((seed, *str(self).encode()))
        names = [f"node{number}" for number in range(self.nodes)]
        leaves = {
            f"leaf{first // self.leaf}": frozenset(names[first : first + self.leaf])
            for first in range(0, self.nodes, self.leaf)
        }
        every = [pair for turn in islice(pairs.rounds(names, seed), 5) for pair in turn]
        slow = {"node": dict.fromkeys(names[: self.slow], self.by)}
        place = int(lot.integers(len(every)))
        slow["link"] = {"+".join(every[place]): self.link} if self.link else {}
        slow["switch"] = {"leaf1": self.switch} if self.switch else {}
        values = {}
        for pair in every:
            parts = [slow["node"].get(node, 0.0) for node in pair]
            parts.append(slow["link"].get("+".join(pair), 0.0))
            parts += [slow["switch"].get(name, 0.0) for name in pairs.crossed(pair, leaves)]
            usual = 1 + sum(parts) if self.times else 1 - max(parts)
            values["+".join(pair)] = (
                usual * np.exp(lot.normal(0, self.noise, self.repetitions))
            ).tolist()
        named = {(kind, name) for kind, shares in slow.items() for name in shares}
        return values, leaves if self.known else {}, named


EVERY = (
    Fleet(),
    Fleet(slow=2),
    Fleet(slow=2, repetitions=1),
    Fleet(slow=2, noise=0.03),
    Fleet(link=0.2, repetitions=6),
    Fleet(switch=0.1, known=True),
)
FLEETS = [
    *(replace(each, nodes=n, slow=each.slow * n // 64) for n in (64, 1000) for each in EVERY),
    Fleet(slow=20),
]
FLEETS += [replace(each, times=True) for each in FLEETS]


def measure(nodes: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Of each fleet the healthy nodes, links and switches that are called slow, per node, and the
    slow ones that are not; ``nodes``: how many nodes are judged, at least.
    """
    for of in FLEETS:
        campaigns = -(-nodes // of.nodes)
        false = missed = judged = 0
        for number in range(campaigns):
            values, leaves, slow = of.measured(seed * 1000 + number)
            found = links.find(values, of.times, leaves)
            named = {(each.kind, each.name) for each in found if each.confirmed}
            false += len(named - slow)
            missed += len(slow - named)
            judged += len(slow)
        yield f"healthy nodes called slow by pairs, {of}", Count(false, campaigns * of.nodes)
        if judged:
            yield f"slow nodes not found by pairs, {of}", Count(missed, judged)
