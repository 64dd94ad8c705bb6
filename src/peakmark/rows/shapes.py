"""Write findings on matrices and curves: slow pairs, measured cache sizes, latency under load."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from peakmark.catalogue import PAGES
from peakmark.formatting import binary
from peakmark.messages import Message, message
from peakmark.rows import schema
from peakmark.rows.curves import curve_of, knee_of, loaded_curve, matrix_of, medians
from peakmark.tools.tables import Table

OUTLIER = 1.5
"""A pair counts as slow if it is worse than the median of its row by more than this factor."""
MOST_NAMED = 3
"""Largest number of slow pairs that a sentence names."""
LEFT = 2.0
"""Multiple of a plateau's latency at which the curve has left the plateau."""
LEVEL_UNTIL = 1.25
"""The end of a plateau is not visible if the next plateau's latency is at most this factor higher."""

Line = Any
"""A line of ``rows`` or ``runs``, as ``schema.lines`` yields it."""
Runs = Mapping[str, Sequence[Line]]
"""Point -> the kept runs of peakmark's kernel."""


def shape_sentences(
    table: Table, rows: Sequence[Line], runs: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """Yield the lines of ``findings`` on the matrices or curves of a table, without disturbed rows."""
    of_table = runs[runs["table"].eq(table.name) & runs["kept"]]
    runs_of: dict[str, list[Line]] = defaultdict(list)
    for run in schema.lines(of_table[of_table["instrument"].eq(table.own.instrument)]):
        runs_of[run.point].append(run)
    calm = [row for row in rows if not row.disturbances]
    topic, found = "", list[Message]()
    if table.metric in ("core_to_core", "numa_latency", "numa_throughput"):
        topic, found = "Pairs", list(slow_pairs(table, calm, runs_of))
    if table.metric == "ladder_latency":
        topic, found = "Caches", list(measured_caches(rows, runs_of))
    if table.metric == "loaded_latency":
        topic, found = "Load", [latency_under_load(row, runs_of[row.point]) for row in calm]
    for each in found:
        yield {"topic": topic, "points": "[]", "text": each.full_sentence}


def slow_pairs(table: Table, rows: Sequence[Line], runs: Runs) -> Iterator[Message]:
    """Yield a message on the pairs of CPUs or NUMA nodes that are slower than others equally far apart.

    A row holds the pairs of one distance, such as all pairs within a socket.
    """
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
    """Yield a message on the cache sizes that a ladder of latencies shows, for the kinds of pages.

    A ladder of several nodes has no such message.
    """
    if len({row.node for row in rows}) != 1:
        return
    # Small and huge pages with the same result share a sentence.
    pages_of: dict[tuple[Message, ...], list[str]] = defaultdict(list)
    for pages in PAGES:
        levels = [row for row in rows if row.variant.endswith(pages)]
        if len(levels) < 2:
            continue
        curve = medians(curve_of([runs[row.point] for row in levels]))
        parts = []
        for level, next_level in pairwise(levels):
            end = end_of_plateau(curve, level.value, next_level.value)
            if end is None or level.disturbances or next_level.disturbances:
                continue
            stated = runs[level.point][0].cache_bytes
            parts.append(
                message(
                    "measured-caches",
                    case="level",
                    level=level_of(level),
                    measured=str(binary(end)),
                    stated=str(binary(stated)),
                )
            )
        if parts:
            pages_of[tuple(parts)].append(pages)
    for levels_found, kinds in pages_of.items():
        yield message("measured-caches", pages=tuple(kinds), levels=levels_found)


def end_of_plateau(curve: NDArray[np.float64], latency: float, next_latency: float) -> float | None:
    """Return the largest working set on a plateau of a ladder, B; None if its end is not visible.

    The curve leaves the plateau at ``LEFT`` times its latency, or at the geometric mean with the next
    plateau's latency if that is lower.

    Args:
        curve: working sets, B, and latencies, s.
        latency: latency of the plateau, s.
        next_latency: latency of the next plateau, s.
    """
    rise = next_latency / latency
    if rise <= LEVEL_UNTIL:
        return None
    working_sets, latencies = curve[:, 0], curve[:, 1]
    on_plateau = working_sets[latencies < latency * min(LEFT, math.sqrt(rise))]
    return float(on_plateau.max(initial=0))


def level_of(row: Line) -> str:
    """Return the level of a ladder's row, ``L1`` to ``DRAM``."""
    level, _, _ = row.variant.partition("-")
    return str(level.upper())


def latency_under_load(row: Line, runs: Sequence[Line]) -> Message:
    """Return a message on the idle latency, the saturation and the knee of a row's curve."""
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
