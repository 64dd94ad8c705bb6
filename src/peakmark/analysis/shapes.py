"""The node's shape: matrices and curves that one cell measures at once, merged over its repetitions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from peakmark.analysis.row import Row
from peakmark.catalogue import PAGES
from peakmark.formatting import binary
from peakmark.messages import Message, message
from peakmark.tools.tables import Table

OUTLIER = 1.5
"""So many times the median of its kind a pair must take to be named."""
MOST_NAMED = 3

LEFT = 2.0
"""Factor of its plateau at which a curve has left it."""
LEVEL_UNTIL = 1.25
"""Where the next plateau is no higher, the size of a cache cannot be told."""

Matrix = Mapping[tuple[int, int], float]


def matrix_of(row: Row) -> Matrix:
    """Median over the repetitions of each pair of places, in SI units."""
    values: dict[tuple[int, int], list[float]] = defaultdict(list)
    for repetition in row.measured.points:
        for first, second, value in repetition.details["points"]:
            values[int(first), int(second)].append(float(value))
    return {pair: median(measured) for pair, measured in values.items()}


def places_of(rows: Sequence[Row]) -> list[int]:
    """CPUs as the topology orders them, or NUMA nodes by their number."""
    order = rows[0].measured.points[0].details.get("order")
    pairs = (pair for row in rows for pair in matrix_of(row))
    return list(order or sorted({place for pair in pairs for place in pair}))


def matrices(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """(node, workload) -> its rows; empty where they hold but one number."""
    grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.key.node, row.key.workload].append(row)
    numbers = [sum(len(matrix_of(row)) for row in group) for group in grouped.values()]
    return grouped if max(numbers, default=0) > 1 else {}


def outliers(rows: Sequence[Row]) -> Iterator[Message]:
    """Pairs of CPUs or NUMA nodes that are much slower than others as far apart."""
    for row in rows:
        matrix = matrix_of(row)
        usual = median(matrix.values())
        way = 1 if row.table.lower_is_better else -1
        factors = {pair: (value / usual) ** way for pair, value in matrix.items()}
        slow = [pair for pair, factor in factors.items() if factor > OUTLIER]
        if slow:
            worst = sorted(slow, key=lambda pair: -factors[pair])[:MOST_NAMED]
            yield message(
                "slow-pairs",
                workload=row.key.workload,
                places="CPUs" if row.table.metric == "core_to_core" else "NUMA nodes",
                distance=row.key.variant,
                count=len(slow),
                pairs=len(matrix),
                worst=tuple(f"{first} and {second}" for first, second in worst),
                factor=factors[worst[0]],
            )


def level_of(row: Row) -> str:
    """``L1`` to ``DRAM`` of a ladder's row."""
    return row.key.variant.partition("-")[0].upper()


def curve_of(rows: Iterable[Row]) -> list[NDArray[np.float64]]:
    """The points of the curve that the rows hold together: of each point an array of repetitions x
    (place, value, ...) in SI units. Rows may have unequal numbers of repetitions.
    """
    every = ([point.details["points"] for point in row.measured.points] for row in rows)
    return [np.array(same) for points in every for same in zip(*points, strict=False)]


def medians(curve: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Of such a curve, points x (place, value, ...)."""
    return np.array([np.median(point, axis=0) for point in curve])


def measured_caches(rows: Sequence[Row]) -> Iterator[Message]:
    """Up to which working set a ladder of latencies on one node stays below ``LEFT`` times each
    plateau, at most the geometric mean with the next one.
    """
    one_node = len({row.key.node for row in rows}) == 1
    for pages in PAGES if one_node else ():
        levels = [row for row in rows if row.key.variant.endswith(pages)]
        parts = []
        for level, beyond in pairwise(levels):
            places, values = medians(curve_of(levels)).T
            plateau = level.measured.centre
            rise = beyond.measured.centre / plateau
            if rise > LEVEL_UNTIL:
                inside = places[values < plateau * min(LEFT, math.sqrt(rise))]
                sizes = {
                    "measured": str(binary(inside.max(initial=0))),
                    "stated": str(binary(level.measured.points[0].details["cache"])),
                }
                parts.append(
                    message("measured-caches", case="level", level=level_of(level), **sizes)
                )
        if parts:
            yield message("measured-caches", pages=pages, levels=tuple(parts))


KNEE = 2.0
"""The knee is where the latency is so many times the idle one."""


class LoadedPoint(NamedTuple):
    """Traffic in B/s, and the latency of a dependent load in s."""

    rate: float
    latency: float


def loaded_curve(row: Row) -> list[LoadedPoint]:
    """The points of a mix from idle to no pauses: medians of the repetitions."""
    return [LoadedPoint(*map(float, point[:2])) for point in medians(curve_of([row]))]


def knee(points: Sequence[LoadedPoint]) -> float | None:
    """The traffic in B/s at which the latency first is twice that of the first point, in proportion
    between two points; None where it never is.
    """
    limit = KNEE * points[0].latency
    for before, after in pairwise(points):
        if before.latency < limit <= after.latency:
            share = (limit - before.latency) / (after.latency - before.latency)
            return before.rate + share * (after.rate - before.rate)
    return None


def loaded_finding(row: Row) -> Message:
    """Idle latency, saturation and knee of a measured row."""
    points = loaded_curve(row)
    saturation = max(points, key=lambda point: point.rate)
    doubled, bandwidth = knee(points), row.limit.bandwidth
    share = message("loaded-share", share=saturation.rate / bandwidth) if bandwidth else ""
    return message(
        "loaded",
        case="" if doubled else "flat",
        reads=int(row.key.variant.removeprefix("r")),
        idle=points[0].latency,
        saturation=saturation.rate,
        latency=saturation.latency,
        share=share,
        knee=doubled or 0.0,
    )


def findings(table: Table, rows: Sequence[Row]) -> Iterator[Message]:
    """What a matrix or curve says beyond its rows."""
    if table.metric in ("core_to_core", "numa_latency", "numa_throughput"):
        yield from outliers(rows)
    if table.metric == "ladder_latency":
        yield from measured_caches(rows)
    if table.metric == "loaded_latency":
        yield from map(loaded_finding, rows)
