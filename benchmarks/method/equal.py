"""How often findings call equal rows different: campaigns of rows that differ by chance alone.

Simulated, but judged by the code that writes the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.method.same import Count
from peakmark import statistics
from peakmark.analysis import findings
from peakmark.analysis.row import Key, Repetition, Row, Series
from peakmark.limits import Limit
from peakmark.messages import Message
from peakmark.tools.tables import BY_NAME

REPETITIONS = (3, 6, 12)
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


def claimed(campaigns: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Campaigns of equal rows of which a finding names a difference, of quiet and of disturbed ones."""
    for has_tail in (False, True):
        for repetitions in REPETITIONS:
            lot = np.random.default_rng((seed, repetitions, has_tail))
            different = sum(_is_claimed(lot, repetitions, has_tail) for _ in range(campaigns))
            kind = "some repetitions disturbed" if has_tail else "quiet"
            name = f"equal rows called different in findings, {kind}, n = {repetitions}"
            yield name, Count(different, campaigns)


def _is_claimed(lot: np.random.Generator, repetitions: int, has_tail: bool) -> bool:
    return any(
        _names_difference(each.message)
        for name in GRIDS
        for each in findings.conclusions(list(_rows(name, lot, repetitions, has_tail)))
    )


def _names_difference(message: Message) -> bool:
    if message.code == "compared":
        parts: Any = dict(message.values)["parts"]
        return any(part.code == "faster" for part in parts)
    return message.code in ("trend", "proportions")


def _rows(name: str, lot: np.random.Generator, repetitions: int, has_tail: bool) -> Iterator[Row]:
    """Equal rows of one table, each with a spread of its own between 0.2 and 5 %."""
    table = BY_NAME[name]
    workloads, blocks, counts, variant = GRIDS[name]
    limit = Limit(None, table.unit, "", "", "unknown")
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
        record: Any = None
        points = tuple(
            Repetition(float(value), repetition=place, record=record)
            for place, value in enumerate(1e10 * np.exp(logs))
        )
        summary = statistics.summarise([point.value for point in points])
        series = Series(points, summary, summary.median, None)
        yield Row(table, key, {table.own.instrument: series}, limit)
