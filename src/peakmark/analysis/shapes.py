"""The node's shape: matrices and curves that one cell measures at once, merged over its repetitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from peakmark.analysis.row import Row
from peakmark.messages import Message, message

OUTLIER = 1.5
"""So many times the median of its kind a pair must take to be named."""
MOST_NAMED = 3

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
