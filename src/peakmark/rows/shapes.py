"""What matrices and curves say beyond their rows: slow pairs, measured caches, latency under load."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import pandas as pd

from peakmark.catalogue import PAGES
from peakmark.formatting import binary
from peakmark.messages import Message, message
from peakmark.rows import schema
from peakmark.rows.curves import curve_of, knee_of, loaded_curve, matrix_of, medians
from peakmark.tools.tables import Table

OUTLIER = 1.5
"""Multiple of the median of its kind from which on a pair is named."""
MOST_NAMED = 3
"""Number of slow pairs that are named."""
LEFT = 2.0
"""Multiple of its plateau at which a curve has left it."""
LEVEL_UNTIL = 1.25
"""Rise to the next plateau up to which the size of a cache cannot be told."""

Line = Any
"""A line of ``rows`` or ``runs``, as ``schema.lines`` yields it."""
Runs = Mapping[str, Sequence[Line]]
"""Point -> the runs of peakmark's kernel that count."""


def shape_sentences(
    table: Table, rows: Sequence[Line], runs: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """Yield what a matrix or curve says, as lines of ``findings``."""
    of_table = runs[runs["table"].eq(table.name) & runs["kept"]]
    runs_of: dict[str, list[Line]] = defaultdict(list)
    for run in schema.lines(of_table[of_table["instrument"].eq(table.own.instrument)]):
        runs_of[run.point].append(run)
    found: list[Message] = []
    if table.metric in ("core_to_core", "numa_latency", "numa_throughput"):
        found += slow_pairs(table, rows, runs_of)
    if table.metric == "ladder_latency":
        found += measured_caches(rows, runs_of)
    if table.metric == "loaded_latency":
        found += [latency_under_load(row, runs_of[row.point]) for row in rows]
    for each in found:
        yield {"topic": "Best and worst", "points": "[]", "text": each.full_sentence}


def slow_pairs(table: Table, rows: Sequence[Line], runs: Runs) -> Iterator[Message]:
    """Yield pairs of CPUs or NUMA nodes that are much slower than others as far apart."""
    places = "CPUs" if table.metric == "core_to_core" else "NUMA nodes"
    for row in rows:
        matrix = matrix_of(runs[row.point])
        usual = median(matrix.values())
        way = 1 if table.lower_is_better else -1
        factors = {pair: (value / usual) ** way for pair, value in matrix.items()}
        slow = [pair for pair, factor in factors.items() if factor > OUTLIER]
        if not slow:
            continue
        worst = sorted(slow, key=lambda pair: -factors[pair])[:MOST_NAMED]
        yield message(
            "slow-pairs",
            workload=row.workload,
            places=places,
            distance=row.variant,
            count=len(slow),
            pairs=len(matrix),
            worst=tuple(f"{first} and {second}" for first, second in worst),
            factor=factors[worst[0]],
        )


def measured_caches(rows: Sequence[Line], runs: Runs) -> Iterator[Message]:
    """Yield up to which working set a ladder of latencies on one node stays on each plateau.

    It has left a plateau at ``LEFT`` times its latency, at most at the geometric mean with the next.
    """
    if len({row.node for row in rows}) != 1:
        return
    for pages in PAGES:
        levels = [row for row in rows if row.variant.endswith(pages)]
        parts = []
        for level, beyond in pairwise(levels):
            curve = medians(curve_of([runs[row.point] for row in levels]))
            places, values = curve[:, 0], curve[:, 1]
            rise = beyond.value / level.value
            if rise <= LEVEL_UNTIL:
                continue
            inside = places[values < level.value * min(LEFT, math.sqrt(rise))]
            stated = runs[level.point][0].cache_bytes
            parts.append(
                message(
                    "measured-caches",
                    case="level",
                    level=level_of(level),
                    measured=str(binary(inside.max(initial=0))),
                    stated=str(binary(stated)),
                )
            )
        if parts:
            yield message("measured-caches", pages=pages, levels=tuple(parts))


def level_of(row: Line) -> str:
    """Return ``L1`` to ``DRAM`` of a ladder's row."""
    level, _, _ = row.variant.partition("-")
    return str(level.upper())


def latency_under_load(row: Line, runs: Sequence[Line]) -> Message:
    """Return idle latency, saturation and knee of a row."""
    points = loaded_curve(runs)
    saturation = max(points, key=lambda point: point.rate)
    knee = knee_of(points)
    share: Message | str = ""
    if row.limit_bandwidth:
        share = message("loaded-share", share=saturation.rate / row.limit_bandwidth)
    return message(
        "loaded",
        case="" if knee else "flat",
        reads=int(row.variant.removeprefix("r")),
        idle=points[0].latency,
        saturation=saturation.rate,
        latency=saturation.latency,
        share=share,
        knee=knee or 0.0,
    )
