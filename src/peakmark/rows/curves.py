"""Merge the repetitions of matrices and curves, which one cell measures as a whole."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

Line = Any
"""A line of ``rows`` or ``runs``, as ``schema.lines`` yields it."""
Matrix = dict[tuple[int, int], float]
"""(CPU or NUMA node, CPU or NUMA node) -> latency or rate between them, in SI units."""


def points_of(run: Line) -> list[list[float]]:
    """Return the points of a run.

    A point of a matrix is ``[CPU, CPU, value]`` or ``[NUMA node, NUMA node, value]``. A point of a curve
    is ``[position, value, ...]``.
    """
    points: list[list[float]] = json.loads(run.points or "[]")
    return points


def matrix_of(runs: Iterable[Line]) -> Matrix:
    """Return the matrix of a row: for each pair of CPUs or NUMA nodes, the median over the runs."""
    values: dict[tuple[int, int], list[float]] = defaultdict(list)
    for run in runs:
        for first, second, value in points_of(run):
            values[int(first), int(second)].append(value)
    return {pair: median(measured) for pair, measured in values.items()}


def order_of(runs: Sequence[Line]) -> list[int]:
    """Return the order of a matrix's lines: CPUs by topology, or NUMA nodes by number."""
    order: list[int] = json.loads(runs[0].order or "[]")
    if order:
        return order
    return sorted(set().union(*matrix_of(runs)))


def curve_of(rows_of_runs: Iterable[Sequence[Line]]) -> list[NDArray[np.float64]]:
    """Return the curve that several rows make up, such as a ladder with one row for each cache level.

    Args:
        rows_of_runs: the runs of each row; rows may differ in their number of runs.

    Returns:
        One array for each point, with a line for each run and columns (position, value, ...), in SI units.
    """
    curve = []
    for runs in rows_of_runs:
        points_of_runs = [points_of(run) for run in runs]
        curve += [np.array(point) for point in zip(*points_of_runs, strict=False)]
    return curve


def medians(curve: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the median over runs of each point: an array of points x (position, value, ...).

    Args:
        curve: as ``curve_of`` returns it.
    """
    return np.array([np.median(point, axis=0) for point in curve])
