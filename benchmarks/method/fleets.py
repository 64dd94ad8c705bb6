"""How often ``fleet.judge`` is wrong about made-up fleets: healthy nodes that it calls slow, and
slow ones that it does not find.

Values are lognormal. Healthy nodes differ by ``EQUAL``, in all rows of a resource alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.method.same import Count
from peakmark.analysis import fleet

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


def measure(nodes: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Of each fleet the healthy nodes that are called slow in any row, and the slow ones that are
    found in none; ``nodes``: how many nodes are judged, at least.
    """
    for of in FLEETS:
        lot = np.random.default_rng((seed, *str(of).encode()))
        campaigns = -(-nodes // of.nodes)
        false = found = 0
        for _ in range(campaigns):
            slow = {int(node) for node, _ in fleet.judge(by_place(of.values(lot)))}
            found += len(slow & set(range(of.slow)))
            false += len(slow) - len(slow & set(range(of.slow)))
        yield f"healthy nodes called slow, {of}", Count(false, campaigns * (of.nodes - of.slow))
        if of.slow:
            slow_nodes = campaigns * of.slow
            yield f"slow nodes not found, {of}", Count(slow_nodes - found, slow_nodes)


def by_place(values: Values) -> fleet.Values:
    """What ``fleet.judge`` takes."""
    return {
        (str(node), row): repetitions
        for node, rows in enumerate(values.tolist())
        for row, repetitions in enumerate(rows)
    }
