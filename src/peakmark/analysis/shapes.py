"""The node's shape: matrices and curves that one cell measures at once, merged over its repetitions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from statistics import median

from peakmark.analysis.row import Row
from peakmark.catalogue import PAGES
from peakmark.formatting import binary
from peakmark.messages import Message, message

OUTLIER = 1.5
"""So many times the median of its kind a pair must take to be named."""
MOST_NAMED = 3

LEFT = 2.0
"""Factor of its plateau at which a curve has left it."""
LEVEL_UNTIL = 1.25
"""Two levels whose plateaus differ by less are not told apart."""

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


def outliers(rows: Sequence[Row]) -> Iterator[Message]:
    """Pairs of CPUs that are much slower than others as far apart."""
    for row in rows:
        matrix = matrix_of(row)
        usual = median(matrix.values())
        slow = {pair: time for pair, time in matrix.items() if time > OUTLIER * usual}
        if slow:
            worst = sorted(slow, key=lambda pair: -slow[pair])[:MOST_NAMED]
            yield message(
                "slow-pairs",
                distance=row.key.variant,
                count=len(slow),
                pairs=len(matrix),
                worst=tuple(f"{first} and {second}" for first, second in worst),
                factor=slow[worst[0]] / usual,
            )


def curve_of(rows: Iterable[Row]) -> list[tuple[tuple[float, float], ...]]:
    """The points of the curve that the rows hold together, in SI units; of each point its place and
    its value in every repetition.
    """
    points = []
    for row in rows:
        every = [repetition.details["points"] for repetition in row.measured.points]
        for same in zip(*every, strict=False):
            points.append(tuple((float(place), float(value)) for place, value, *_ in same))
    return points


def measured_caches(rows: Sequence[Row]) -> Iterator[Message]:
    """Up to which working set a ladder of latencies stays below ``LEFT`` times each plateau, at most
    the geometric mean with the next one.
    """
    for node, pages in product(dict.fromkeys(row.key.node for row in rows), PAGES):
        levels = [
            row for row in rows if row.key.node == node and row.key.variant.endswith(f"-{pages}")
        ]
        curve = [
            (points[0][0], median(value for _, value in points)) for points in curve_of(levels)
        ]
        parts = []
        for level, beyond in pairwise(levels):
            name, further = (row.key.variant.partition("-")[0].upper() for row in (level, beyond))
            plateau, next_one = level.measured.centre, beyond.measured.centre
            if next_one < LEVEL_UNTIL * plateau:
                parts.append(message("measured-caches", case="none", level=name, beyond=further))
                continue
            until = min(LEFT * plateau, math.sqrt(plateau * next_one))
            served = max((place for place, value in curve if value < until), default=curve[0][0])
            sizes = served, level.measured.points[0].details["cache"]
            measured, stated = (binary(size) or "" for size in sizes)
            parts.append(
                message(
                    "measured-caches", case="level", level=name, measured=measured, stated=stated
                )
            )
        if parts:
            yield message("measured-caches", pages=pages, levels=tuple(parts))
