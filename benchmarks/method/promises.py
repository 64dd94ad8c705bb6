"""Promises that only many rows can show to be kept: marks on quiet rows, unchanged campaigns, intervals. Simulated, but judged
by the code that judges measurements.

Values are lognormal, as rates and times are positive; ``spread`` is their coefficient of variation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.method.same import CLAIMED, Count
from peakmark import statistics
from peakmark.config.repetitions import Criterion
from peakmark.judging import compare, spread
from peakmark.judging.compare import Point, Side

Values = NDArray[np.float64]

REPETITIONS = (3, 4, 6, 10, 20, 30)
ROWS = 110
UNTIL = 0.02


def marks(rows: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Rows of a machine as restless as still counts as quiet: how many are called unsure, how many have an outlier named."""
    for n in REPETITIONS:
        lot = np.random.default_rng((seed, n))
        unsure = odd = 0
        for values in lot.normal(1.0, spread.QUIET, size=(rows, n)):
            unsure += bool(spread.is_wide(values) or spread.first_differs(values) or spread.drifts(values))
            odd += bool(spread.outliers(values).places)
        yield f"quiet rows called unsure, n = {n}", Count(unsure, rows)
        if n >= statistics.ENOUGH:
            yield f"quiet rows with an outlier named, n = {n}", Count(odd, rows)


def campaigns(pairs: int, repetitions: int = 6, drift: float = 0.0, seed: int = 1) -> Count:
    """Pairs of unchanged campaigns of 110 rows, one after the other: how many comparisons call any row better or worse.

    drift  how far the machine moves during one campaign, as a share: a random walk in equal steps from round to round, the
           same for all rows of a table
    """
    lot = np.random.default_rng((seed, repetitions, round(1000 * drift)))
    failed = 0
    for _ in range(pairs):
        path = np.cumsum(lot.normal(0, drift / np.sqrt(repetitions), size=(4, 2 * repetitions)), axis=1)
        before, after = _campaign(lot, path[:, :repetitions]), _campaign(lot, path[:, repetitions:])
        found, _, _ = compare.compare(before, after)
        failed += any(one.verdict in CLAIMED for one in found)
    return Count(failed, pairs)


def _campaign(lot: np.random.Generator, path: Values) -> Side:
    """110 rows of four tables, each with a spread of its own between 0.2 and 5 %."""
    tables = ("cpu", "memory_throughput", "disk_throughput", "network_throughput")
    instruments = ("cpubench", "rambench", "diskbench", "netbench")
    values: dict[Point, tuple[float, ...]] = {}
    changes: dict[str, list[float]] = {}
    for row in range(ROWS):
        part = row % len(tables)
        noise = lot.normal(0, 0.002 * 25 ** lot.random(), size=path.shape[1])
        found = tuple(np.exp(noise + path[part]).tolist())
        values[Point(tables[part], instruments[part], "X", "", 0, row + 1, "")] = found
        changes.setdefault(tables[part], []).extend(compare.halves(found))
    return Side("simulated", values, bare=False, drift=compare.drift_of(changes))


def coverage(rows: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Intervals of the median that do not hold the true one: with a fixed number of repetitions, and ended adaptively."""
    for n in (6, 10, 20, 30):
        yield f"95 % intervals that miss, n = {n}", _missed(rows, lambda values, n=n: values[:n], (seed, n))  # type: ignore[misc]
    counts = Criterion(6, 30, UNTIL, None).counts

    def ended(values: Values) -> Values:
        return next(
            (values[:n] for n in counts if statistics.is_narrow(statistics.summarise(values[:n]), UNTIL)), values
        )

    yield f"95 % intervals that miss, rows ended at {UNTIL:.0%}", _missed(rows, ended, (seed, 99))


def _missed(rows: int, chosen: Callable[[Values], Values], seed: Sequence[int]) -> Count:
    lot = np.random.default_rng(seed)
    missed = 0
    for _ in range(rows):
        cv = 0.01 * 5 ** lot.random()
        interval = statistics.median_interval(chosen(np.exp(lot.normal(0, cv, size=30))))
        missed += not interval.low <= 1.0 <= interval.high
    return Count(missed, rows)


PROMISED = {"called unsure": 0.05, "outlier named": 0.05, "unchanged campaigns": 0.05, "that miss, n": 0.05}
"""Words of a promise -> the largest share that keeps it; ended rows are told as they are."""


def table(counts: Sequence[tuple[str, Count]]) -> str:
    """A Markdown table: measured beside promised."""
    lines = ["| promise | cases | broken | share | promised |", "|---|---|---|---|---|"]
    for name, one in counts:
        lines.append(f"| {name} | {one.judged} | {one.claimed} | {one.share:.1%} | {_promised(name)} |")
    return "\n".join(lines)


def broken(counts: Sequence[tuple[str, Count]]) -> list[str]:
    """Promises that were broken more often than chance explains, a sentence each."""
    found = []
    for name, one in counts:
        allowed = next((share for words, share in PROMISED.items() if words in name), None)
        if allowed is not None and one.interval[0] > allowed:
            found.append(f"{name}: {one.share:.1%}, promised is at most {allowed:.0%}")
    return found


def _promised(name: str) -> str:
    share = next((share for words, share in PROMISED.items() if words in name), None)
    return "none: told in the report" if share is None else f"at most {share:.0%}"


def measure(quick: bool) -> list[tuple[str, Count]]:
    """All promises; ``quick`` with a tenth of the cases."""
    rows, pairs = (400, 20) if quick else (4000, 200)
    counts = [*marks(rows)]
    for drift in (0.0, 0.02, 0.05):
        name = f"unchanged campaigns of {ROWS} rows, drift of {drift:.0%} within each"
        counts.append((name, campaigns(pairs, drift=drift)))
    return [*counts, *coverage(rows)]
