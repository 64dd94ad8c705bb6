"""Does a certificate tell the truth? Rates that it draws from the records of one simulated campaign,
beside those of 200 such campaigns in which the slow rows are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.method.same import Count
from peakmark import statistics
from peakmark.analysis import fleet, suspects
from peakmark.analysis.fleet import Place, Values
from peakmark.analysis.suspects import PART, Rates
from peakmark.storage.planfile import LOSS

CAMPAIGNS = 200


class Cluster(NamedTuple):
    """Equal nodes, rows and repetitions; how far repetitions of a row and nodes lie apart."""

    nodes: int
    rows: int
    noise: float
    spread: float
    repetitions: int = 6


CLUSTERS = (
    Cluster(4, 12, 0.01, 0.005),
    Cluster(16, 10, 0.02, 0.005),
    Cluster(64, 10, 0.03, 0.01),
)


def campaign(of: Cluster, lot: np.random.Generator, slow: bool) -> tuple[Values, set[Place]]:
    """The values of a campaign, and the rows of nodes that are slow."""
    shape = of.nodes, of.rows, of.repetitions
    levels = lot.normal(0, of.spread, shape[:2])
    logs = levels[:, :, None] + lot.normal(0, of.noise, shape)
    slowed: set[Place] = set()
    for row in range(of.rows if slow else 0):
        for node in lot.choice(of.nodes, max(1, of.nodes // PART), replace=False):
            logs[node, row] += np.log(1 - LOSS)
            slowed.add((f"node{node}", row))
    values: Values = {
        (f"node{node}", row): np.exp(logs[node, row]).tolist()
        for node in range(of.nodes)
        for row in range(of.rows)
    }
    return values, slowed


def missed(
    certificates: int, campaigns: int = CAMPAIGNS, seed: int = 1
) -> Iterator[tuple[str, Count]]:
    """Certificates whose interval does not meet that of the rate of all campaigns."""
    for of in CLUSTERS:
        lot = np.random.default_rng((seed, of.nodes))
        truth = Rates()
        for _ in range(campaigns):
            values, slowed = campaign(of, lot, slow=True)
            found = fleet.judge(values, ()).keys()
            healthy = of.nodes * of.rows - len(slowed)
            rates = len(found & slowed), len(slowed), len(found - slowed), healthy
            truth = truth.plus(Rates(*rates))
        wrong = [0, 0]
        for number in range(certificates):
            values, _ = campaign(of, lot, slow=False)
            drawn = suspects.of_records(values, (), number)
            for place in (0, 1):
                low, high = statistics.wilson(*drawn[2 * place : 2 * place + 2])
                least, most = statistics.wilson(*truth[2 * place : 2 * place + 2])
                wrong[place] += high < least or low > most
        for name, count in zip(("detection", "false alarms"), wrong, strict=True):
            yield (
                f"certificates that miss the rate of {name} of {campaigns} campaigns, {of.nodes} nodes",
                Count(count, certificates),
            )
