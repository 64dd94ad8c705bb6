"""Campaigns over time, simulated: how often an unchanged row has a change point, and a changed row
has none. Values are lognormal; ``spread`` is what a campaign's median varies by from week to week.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.method.same import Count
from peakmark.analysis import history

LENGTHS = (8, 12, 26, 52, 104)
"""Campaigns of an unchanged row."""
BEFORE = (4, 8, 12, 26, 48)
"""Campaigns before a step; ``history.LEAST`` follow it."""
SPREADS = (0.003, 0.005, 0.01)
STEP = 0.03


def rows(
    count: int, campaigns: int, spread: float, after: int = 0, tails: bool = False, seed: int = 1
) -> NDArray[np.float64]:
    """Made-up rows, each over so many campaigns.

    Args:
        count: of rows.
        campaigns: of each row.
        spread: coefficient of variation from campaign to campaign.
        after: so many last campaigns are slower by ``STEP``.
        tails: values have heavy tails (Student's t with three degrees of freedom).
        seed: of the generator.
    """
    lot = np.random.default_rng((seed, campaigns, after, tails, round(1e6 * spread)))
    size = (count, campaigns)
    noise = lot.standard_t(3, size) / np.sqrt(3) if tails else lot.normal(size=size)
    noise *= spread
    noise[:, campaigns - after :] += np.log1p(-STEP) if after else 0.0
    return np.exp(noise)


def unchanged(count: int) -> Iterator[tuple[str, Count]]:
    """Unchanged rows with a change point."""
    for tails in (False, True):
        for campaigns in LENGTHS:
            many = rows(count, campaigns, 0.01, tails=tails)
            found = sum(any(history.change_points(row)) for row in many)
            heavy = ", heavy tails" if tails else ""
            name = f"unchanged rows with a change point in {campaigns} campaigns{heavy}"
            yield name, Count(found, count)


def steps(count: int) -> Iterator[tuple[str, Count]]:
    """Rows whose step is not found, at most one campaign off, when four campaigns have followed."""
    for spread in SPREADS:
        for before in BEFORE:
            many = rows(count, before + history.LEAST, spread, history.LEAST)
            missed = sum(not _is_found(row, before) for row in many)
            about = f"{before} campaigns before and 4 after, spread of {spread:.1%}"
            yield f"steps of {STEP:.0%} not found, {about}", Count(missed, count)


def _is_found(row: NDArray[np.float64], before: int) -> bool:
    return any(abs(place - before) <= 1 for place, _ in history.change_points(row))
