"""Simulated rows: quiet ones that are called unsure, intervals that miss, equal ones that a finding
calls different, change points over time. Judged by the code that judges measurements.

Values are lognormal, as rates and times are positive; ``spread`` is their coefficient of variation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.method.promises import Count, Counts
from peakmark import statistics
from peakmark.analysis import checks, findings
from peakmark.analysis.row import Key, Repetition, Row, Series
from peakmark.limits import Limit
from peakmark.messages import Message
from peakmark.tools.tables import BY_NAME
from peakmark.views import history

Values = NDArray[np.float64]

KIB, MIB = 1 << 10, 1 << 20
GRIDS: dict[str, tuple[tuple[str, ...], tuple[int | None, ...], tuple[int, ...], str]] = {
    "cpu": (("QP", "HP", "SP", "DP"), (None,), (1, 2), ""),
    "memory_throughput": (("RS", "WS", "RWS", "RR", "WR", "RWR"), (KIB, MIB), (1, 2), "pool"),
    "disk_throughput": (("RS", "WS", "RR", "WR"), (64 * KIB, MIB), (1, 2, 4), "psync"),
    "network_throughput": (("TCP", "UDP"), (KIB, 32 * KIB), (1, 2), ""),
}
"""Table -> its workloads, block sizes, numbers of threads and variant."""
TAIL, FAR = 0.1, 0.15
"""Share of repetitions that something slowed down, and by how much (standard deviation)."""
LENGTHS = (8, 12, 26, 52, 104)
"""Campaigns of an unchanged row."""
BEFORE = (4, 8, 12, 26, 48)
"""Campaigns before a step; ``history.LEAST`` follow it."""
STEP = 0.03


def warnings(rows: int, seed: int = 1) -> Counts:
    """Rows of a machine as restless as still counts as quiet: how many are called unsure."""
    for n in (3, 4, 6, 10, 20, 30):
        lot = np.random.default_rng((seed, n))
        many = lot.normal(1.0, checks.QUIET, size=(rows, n))
        unsure = [values for values in many if checks.is_wide(values) or checks.drifts(values)]
        yield f"quiet rows called unsure, n = {n}", Count(len(unsure), rows)


def coverage(rows: int, seed: int = 1) -> Counts:
    """Intervals of the median that do not hold the true one, of rows that spread by 1 to 5 %."""
    for n in (6, 10, 20, 30):
        lot = np.random.default_rng((seed, n))
        missed = 0
        for _ in range(rows):
            values = np.exp(lot.normal(0, 0.01 * 5 ** lot.random(), size=30))
            interval = statistics.median_interval(values[:n])
            missed += not interval.low <= 1.0 <= interval.high
        yield f"95 % intervals that miss, n = {n}", Count(missed, rows)


def equal(campaigns: int, seed: int = 1) -> Counts:
    """Campaigns of equal rows of which a finding names a difference, of quiet and of disturbed ones."""
    for has_tail in (False, True):
        for repetitions in (3, 6, 12):
            lot = np.random.default_rng((seed, repetitions, has_tail))
            different = sum(_is_claimed(lot, repetitions, has_tail) for _ in range(campaigns))
            kind = "some repetitions disturbed" if has_tail else "quiet"
            name = f"equal rows called different in findings, {kind}, n = {repetitions}"
            yield name, Count(different, campaigns)


def _is_claimed(lot: np.random.Generator, repetitions: int, has_tail: bool) -> bool:
    return any(
        _names_difference(each.message)
        for name in GRIDS
        for each in findings.conclusions(list(_equal_rows(name, lot, repetitions, has_tail)))
    )


def _names_difference(message: Message) -> bool:
    if message.code == "compared":
        parts: Any = dict(message.values)["parts"]
        return any(part.code == "faster" for part in parts)
    return message.code in ("trend", "proportions")


def _equal_rows(
    name: str, lot: np.random.Generator, repetitions: int, has_tail: bool
) -> Iterator[Row]:
    """Equal rows of one table, each with a spread of its own between 0.2 and 5 %."""
    table = BY_NAME[name]
    workloads, blocks, counts, variant = GRIDS[name]
    limit = Limit(None, table.unit, "", "", "unknown")
    record: Any = None
    for key in (
        Key("any", workload, variant, block, count)
        for workload in workloads
        for block in blocks
        for count in counts
    ):
        logs = lot.normal(0, 0.002 * 25 ** lot.random(), size=repetitions)
        if has_tail:
            slowed = lot.random(repetitions) < TAIL
            logs -= slowed * np.abs(lot.normal(0, FAR, size=repetitions))
        values = (1e10 * np.exp(logs)).tolist()
        points = tuple(
            Repetition(value, repetition=place, record=record) for place, value in enumerate(values)
        )
        summary = statistics.summarise(values)
        series = Series(points, summary, summary.median, None)
        yield Row(table, key, {table.own.instrument: series}, limit)


def over_time(
    rows: int, campaigns: int, spread: float, after: int = 0, tails: bool = False, seed: int = 1
) -> Values:
    """Rows over campaigns.

    Args:
        rows: how many.
        campaigns: of each row.
        spread: coefficient of variation from campaign to campaign.
        after: so many last campaigns are slower by ``STEP``.
        tails: values have heavy tails (Student's t with three degrees of freedom).
        seed: of the generator.
    """
    lot = np.random.default_rng((seed, campaigns, after, tails, round(1e6 * spread)))
    size = (rows, campaigns)
    noise = lot.standard_t(3, size) / np.sqrt(3) if tails else lot.normal(size=size)
    noise *= spread
    noise[:, campaigns - after :] += np.log1p(-STEP) if after else 0.0
    return np.exp(noise)


def trends(rows: int) -> Counts:
    """Unchanged rows with a change point; rows whose step is not found, at most one campaign off,
    when four campaigns have followed.
    """
    for tails in (False, True):
        for campaigns in LENGTHS:
            many = over_time(rows, campaigns, 0.01, tails=tails)
            found = sum(any(history.change_points(row)) for row in many)
            name = f"unchanged rows with a change point in {campaigns} campaigns"
            yield name + (", heavy tails" if tails else ""), Count(found, rows)
    for spread in (0.003, 0.005, 0.01):
        for before in BEFORE:
            many = over_time(rows, before + history.LEAST, spread, history.LEAST)
            near = {before - 1, before, before + 1}
            each = ({place for place, _ in history.change_points(row)} for row in many)
            missed = sum(not places & near for places in each)
            about = f"{before} campaigns before and 4 after, spread of {spread:.1%}"
            yield f"steps of {STEP:.0%} not found, {about}", Count(missed, rows)
