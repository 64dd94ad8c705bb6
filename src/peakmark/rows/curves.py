"""Matrices and curves that one cell measures at once, merged over its repetitions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Line = Any
"""A line of ``rows`` or ``runs``, as ``schema.lines`` yields it."""
Matrix = dict[tuple[int, int], float]
"""Pair of places -> value in SI units."""
KNEE = 2.0
"""Multiple of the idle latency at which the knee of a latency under load is."""


def points_of(run: Line) -> list[list[float]]:
    """Return the points of a run: lists of place, place and value, or of place and values."""
    points: list[list[float]] = json.loads(run.points or "[]")
    return points


def matrix_of(runs: Iterable[Line]) -> Matrix:
    """Return the median over runs of each pair of places."""
    values: dict[tuple[int, int], list[float]] = defaultdict(list)
    for run in runs:
        for first, second, value in points_of(run):
            values[int(first), int(second)].append(value)
    return {pair: median(measured) for pair, measured in values.items()}


def order_of(runs: Sequence[Line]) -> list[int]:
    """Return CPUs in the order of the topology, or NUMA nodes in that of their numbers."""
    order: list[int] = json.loads(runs[0].order or "[]")
    if order:
        return order
    return sorted(set().union(*matrix_of(runs)))


def curve_of(rows_of_runs: Iterable[Sequence[Line]]) -> list[NDArray[np.float64]]:
    """Return the points of the curve that rows hold together.

    Args:
        rows_of_runs: the runs of each row; rows may have unequal numbers of them.

    Returns:
        For each point an array of runs x (place, value, ...), in SI units.
    """
    curve = []
    for runs in rows_of_runs:
        every = [points_of(run) for run in runs]
        curve += [np.array(same) for same in zip(*every, strict=False)]
    return curve


def medians(curve: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the medians of a curve over runs, as an array with a line for each point.

    Its columns are those of ``curve_of``: the place, then the values.
    """
    return np.array([np.median(point, axis=0) for point in curve])


class LoadedPoint(NamedTuple):
    """Traffic in B/s, and the latency of a dependent load in s."""

    rate: float
    latency: float


def loaded_curve(runs: Sequence[Line]) -> list[LoadedPoint]:
    """Return the points of a mix from idle to no pauses: medians over runs."""
    return [LoadedPoint(float(point[0]), float(point[1])) for point in medians(curve_of([runs]))]


def knee_of(points: Sequence[LoadedPoint]) -> float | None:
    """Return the traffic in B/s at which the latency first is ``KNEE`` times that of the first point.

    It is interpolated between two points; None where the latency never is so high.
    """
    limit = KNEE * points[0].latency
    for before, after in pairwise(points):
        if before.latency < limit <= after.latency:
            share = (limit - before.latency) / (after.latency - before.latency)
            return before.rate + share * (after.rate - before.rate)
    return None
