"""What real values show that were measured while nothing changed: drawn by lot, without repeats, as
many cases as are wanted.

Drawn, they have no order in time and no difference between two sides, but the distributions that
they have here: with two modes, with tails.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.method.same import CLAIMED, Count
from peakmark import statistics
from peakmark.judging import compare, datasets, row_warnings, rows, spread
from peakmark.judging import row as judged
from peakmark.judging.datasets import ComparedPoint, Dataset, DatasetRow
from peakmark.storage.results import Results

Values = Mapping[ComparedPoint, Sequence[float]]

REPETITIONS = (3, 4, 6, 10, 20, 30)
SIZES = (6, 10)
LEAST = 10
"""Of fewer values it is not known whether a row is quiet."""
DISTURBED = {"other-load", "steal", "throttled", "hot", "waited", "clock-moved"}
"""Codes of the notes that say of a repetition that something else went on. Its value does not come
into them.
"""


def undisturbed(folders: Iterable[Path]) -> dict[ComparedPoint, list[float]]:
    """The values of the own kernels of campaigns, without repetitions during which something else
    went on by their record: what a quiet machine would have shown here, chosen without a look at
    the values.
    """
    values: dict[ComparedPoint, list[float]] = defaultdict(list)
    for folder in folders:
        results = Results.read(folder)
        for row in (
            row for table in rows.build(results).values() for row in table if row.own is not None
        ):
            point = datasets.point_of(row.table.name, row.table.own.instrument, row.key)
            values[point] += [
                one.value for one in row.measured.points if _is_undisturbed(results, row, one)
            ]
    return dict(values)


def _is_undisturbed(results: Results, row: judged.Row, point: judged.Repetition) -> bool:
    """By what is noted on a row of that repetition alone."""
    alone = judged.Series((point,), statistics.summarise([point.value]), point.value, None)
    facts = results.facts_for(row.key.node, str(point.context["host"]))
    found = row_warnings.checked(replace(row, series={row.table.own.instrument: alone}), facts)
    return DISTURBED.isdisjoint(note.code for note in found)


def quiet(values: Values) -> dict[ComparedPoint, Sequence[float]]:
    """The rows that spread so little over all their values that the machine counts as quiet for
    them. Values: ``undisturbed``.
    """
    summaries = {
        point: statistics.summarise(list(found))
        for point, found in values.items()
        if len(found) >= LEAST
    }
    return {
        point: values[point]
        for point, one in summaries.items()
        if one.cv is not None and one.cv <= spread.QUIET
    }


def warnings(values: Values, draws: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Of rows that are quiet over all their values, how many samples are called unsure for how they
    spread.
    """
    found = quiet(values)
    for n in REPETITIONS:
        lot = np.random.default_rng((seed, n))
        samples = [
            _drawn(lot, every, n)
            for _, every in sorted(found.items())
            if len(every) >= n
            for _ in range(draws)
        ]
        unsure = sum(spread.is_doubtful(one) for one in samples)
        yield f"quiet real rows called unsure, n = {n}", Count(unsure, len(samples))


def campaigns(values: Values, draws: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Of whole comparisons of two campaigns of all rows, how many call any of them better or worse."""
    for size in SIZES:
        lot = np.random.default_rng((seed, size))
        rows = {point: every for point, every in sorted(values.items()) if len(every) >= 2 * size}
        failed = 0
        for _ in range(draws if rows else 0):
            both = {point: _drawn(lot, every, 2 * size) for point, every in rows.items()}
            found, _, _ = compare.compare(
                _side({point: tuple(every[:size]) for point, every in both.items()}),
                _side({point: tuple(every[size:]) for point, every in both.items()}),
            )
            failed += any(one.verdict in CLAIMED for one in found)
        name = f"unchanged campaigns of {len(rows)} rows drawn from the real values, {size} against {size}"
        yield name, Count(failed, draws if rows else 0)


def _drawn(lot: np.random.Generator, values: Sequence[float], n: int) -> list[float]:
    array: NDArray[np.float64] = lot.permutation(np.asarray(values))[:n]
    return [float(value) for value in array]


def _side(values: Mapping[ComparedPoint, tuple[float, ...]]) -> Dataset:
    """A campaign of these values: its drift is what their order by lot looks like."""
    changes: dict[str, list[float]] = {}
    for point, found in values.items():
        changes.setdefault(point.table, []).extend(datasets.halves(found))
    entries = {point: DatasetRow(measured) for point, measured in values.items()}
    return Dataset("", entries, bare=False, drift=datasets.drift_of(changes))
