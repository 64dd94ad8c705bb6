"""Simulated campaigns of a machine with one state: how often a finding says that it had two, or that it
warmed up.

Probes and values are lognormal. Each cell has a probe before and one after its work.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.method.promises import Count, Counts
from peakmark.rows import states

Values = NDArray[np.float64]

NOISES = (
    "spread of 5%",
    "spread of 10%",
    "spread of 20%",
    "heavy tails of 10%",
    "some cells disturbed",
)
SERIES = ((6, 4), (27, 2), (120, 2))
"""Cells of a number of threads, and numbers of threads: a small campaign, ``quick``, the default."""
OFTEN, FAR = 0.1, 0.15
"""Share of cells that something slowed down, and by how much (standard deviation)."""
CELLS, ROUNDS = 95, 3
"""Cells of ``quick`` with a value in each round."""


def two_states(campaigns: int, seed: int = 1) -> Counts:
    """Yield how many campaigns of one state are said to have had two."""
    for cells, counts in SERIES:
        for noise in NOISES:
            lot = np.random.default_rng((seed, cells, *noise.encode()))
            found = sum(shows_states(lot, noise, cells, counts) for _ in range(campaigns))
            yield (
                f"one state called two, {counts} x {cells} cells, {noise}",
                Count(found, campaigns),
            )


def shows_states(lot: np.random.Generator, noise: str, cells: int, counts: int) -> bool:
    """Return whether one of several numbers of threads shows two states."""
    record = np.repeat(np.arange(cells), 2)
    for _ in range(counts):
        series = pd.DataFrame({"value": np.exp(logs(lot, noise, cells)), "record": record})
        if states.find_border(series) is not None:
            return True
    return False


def logs(lot: np.random.Generator, noise: str, cells: int) -> Values:
    """Return logarithms of the probes of so many cells, two of each cell beside each other."""
    if noise == "heavy tails of 10%":  # Student's t with three degrees of freedom
        tails: Values = 0.1 * lot.standard_t(3, 2 * cells) / np.sqrt(3)
        return tails
    if noise == "some cells disturbed":
        slowed = (lot.random(cells) < OFTEN) * np.abs(lot.normal(0, FAR, cells))
        return lot.normal(0, 0.05, 2 * cells) - np.repeat(slowed, 2)
    spread = float(noise.removeprefix("spread of ").removesuffix("%")) / 100
    return lot.normal(0, spread, 2 * cells)


def warm_up(campaigns: int, seed: int = 1) -> Counts:
    """Yield how many campaigns without a warm-up are said to have one.

    Rows spread by 0.2 to 5 %. A machine that drifts has a random walk over all cells.
    """
    for drift in (0.0, 0.05):
        lot = np.random.default_rng((seed, round(100 * drift)))
        found = sum(shows_warm_up(lot, drift) for _ in range(campaigns))
        name = f"drift of {drift:.0%} called a warm-up" if drift else "no warm-up called one"
        yield f"{name}, {CELLS} cells of {ROUNDS} rounds", Count(found, campaigns)


def shows_warm_up(lot: np.random.Generator, drift: float) -> bool:
    """Return whether a campaign is said to have warmed up."""
    spread = 0.002 * 25 ** lot.random(CELLS)
    moved = np.cumsum(lot.normal(0, drift / np.sqrt(CELLS * ROUNDS), CELLS * ROUNDS))
    values = np.exp(lot.normal(0, 1, (ROUNDS, CELLS)) * spread + moved.reshape(ROUNDS, CELLS))
    rounds, cells = np.indices(values.shape)
    names = [f"{cell}/{number}" for number, cell in zip(rounds.flat, cells.flat, strict=True)]
    runs = pd.DataFrame({"cell": names, "record": names, "value": values.flat, "time": rounds.flat})
    return states.count_first_rounds(runs.assign(kept=True, unit="op/s")).is_warm_up
