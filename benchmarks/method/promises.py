"""Promises that only many rows can show to be kept: marks on quiet rows, unchanged campaigns,
intervals. Simulated, but judged by the code that judges measurements.

Values are lognormal, as rates and times are positive; ``spread`` is their coefficient of variation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from benchmarks.method.same import CLAIMED, Count
from peakmark import statistics
from peakmark.analysis import checks, compare, datasets
from peakmark.analysis.datasets import ComparedPoint, Dataset, DatasetRow
from peakmark.config.types import Criterion
from peakmark.plan import sequential_testing
from peakmark.statistics import Interval

Values = NDArray[np.float64]

REPETITIONS = (3, 4, 6, 10, 20, 30)
ROWS = 110
TABLES = ("cpu", "memory_throughput", "disk_throughput", "network_throughput")
INSTRUMENTS = ("cpubench", "rambench", "diskbench", "netbench")
FASTER = 11
UNTIL = 0.02
ENDED = (0.01, 0.02, 0.03, 0.05)


def warnings(rows: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Rows of a machine as restless as still counts as quiet: how many are called unsure, how many
    have an outlier named.
    """
    for n in REPETITIONS:
        lot = np.random.default_rng((seed, n))
        unsure = odd = 0
        for values in lot.normal(1.0, checks.QUIET, size=(rows, n)):
            unsure += checks.is_doubtful(values)
            odd += bool(checks.outliers(values).places)
        yield f"quiet rows called unsure, n = {n}", Count(unsure, rows)
        if n >= statistics.ENOUGH:
            yield f"quiet rows with an outlier named, n = {n}", Count(odd, rows)


@dataclass(frozen=True)
class Tally:
    """Of many comparisons: those that call an unchanged row different, the sum of the shares of
    their claims that are false (their mean is the false discovery rate), changed rows not found.
    """

    different: Count
    false: Count
    missed: Count


def campaigns(
    pairs: int,
    repetitions: int = 6,
    drift: float = 0.0,
    change: float = 0.0,
    turned: bool = False,
    seed: int = 1,
) -> Tally:
    """Pairs of campaigns of 110 rows, of which ``change`` makes every eleventh row of the second
    faster by that share.

    drift   how far the machine moves during one campaign, as a share: a random walk, the same for
            all rows of a table
    turned  measured in turn, each cell of A beside that of B, which of them first by turns; else B
            wholly after A
    """
    lot = np.random.default_rng(
        (seed, repetitions, round(1000 * drift), round(1000 * change), turned)
    )
    different = missed = changed = 0
    false = 0.0
    for _ in range(pairs):
        moved = (_in_turn if turned else _apart)(lot, repetitions, drift)
        spreads = 0.002 * 25 ** lot.random(ROWS)
        names = ("A", "B") if turned else ("", "")
        before = _side(lot, spreads, moved[0], 0.0, names)
        after = _side(lot, spreads, moved[1], change, names[::-1])
        found, _, _ = compare.compare(before, after)
        faster = {one.point for one in found if change and one.point.concurrency % FASTER == 0}
        wrong = sum(one.verdict in CLAIMED and one.point not in faster for one in found)
        claims = sum(one.verdict in CLAIMED for one in found)
        different, false = different + bool(wrong), false + (wrong / claims if claims else 0.0)
        missed += sum(one.verdict != "better" for one in found if one.point in faster)
        changed += len(faster)
    return Tally(Count(different, pairs), Count(false, pairs), Count(missed, changed))


def _apart(lot: np.random.Generator, repetitions: int, drift: float) -> tuple[Values, Values]:
    """How far the machine has moved, by row and round, in two campaigns one after the other.

    Tables move by equal steps from round to round.
    """
    steps = lot.normal(0, drift / np.sqrt(repetitions), size=(len(TABLES), 2 * repetitions))
    moved = np.cumsum(steps, axis=1)[np.arange(ROWS) % len(TABLES)]
    return moved[:, :repetitions], moved[:, repetitions:]


def _in_turn(lot: np.random.Generator, repetitions: int, drift: float) -> tuple[Values, Values]:
    """The same of two campaigns in turn; the machine moves by equal steps from cell to cell."""
    steps = lot.normal(0, drift / np.sqrt(repetitions * ROWS), size=2 * repetitions * ROWS)
    # Row and round -> the two moments at which they are measured, A's first in every other round.
    moments = np.cumsum(steps).reshape(repetitions, ROWS, 2).transpose(1, 0, 2)
    moments[:, 1::2] = moments[:, 1::2, ::-1]
    return moments[:, :, 0], moments[:, :, 1]


def _side(
    lot: np.random.Generator,
    spreads: Values,
    moved: Values,
    change: float,
    names: tuple[str, ...],
) -> Dataset:
    """Rows with a spread of their own between 0.2 and 5 %, on a machine that ``moved`` so far, by
    row and round.

    change  by so much every eleventh row is faster; names: of the campaign and of that with which
            it was measured in turn
    """
    values: dict[ComparedPoint, tuple[float, ...]] = {}
    changes: dict[str, list[float]] = {}
    turns: dict[ComparedPoint, dict[int, datasets.Turn]] = {}
    for row in range(ROWS):
        part = row % len(TABLES)
        faster = np.log1p(change) if (row + 1) % FASTER == 0 else 0.0
        found = tuple(
            np.exp(lot.normal(faster, spreads[row], size=moved.shape[1]) + moved[row]).tolist()
        )
        point = ComparedPoint(TABLES[part], INSTRUMENTS[part], "X", "", 0, row + 1, "")
        values[point] = found
        turns[point] = {
            place: datasets.Turn(value, 100.0 * place, 100.0 * place)
            for place, value in enumerate(found)
        }
        changes.setdefault(TABLES[part], []).extend(datasets.halves(found))
    entries = {
        point: DatasetRow(measured, turns=turns.get(point, {}))
        for point, measured in values.items()
    }
    return Dataset(names[0], entries, bare=False, drift=datasets.drift_of(changes), beside=names[1])


def coverage(rows: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Intervals of the median that do not hold the true one: with a fixed number of repetitions,
    and ended adaptively, of rows that spread little, so much that luck decides where they end,
    and more.
    """
    for n in (6, 10, 20, 30):

        def fixed(values: Values, n: int = n) -> Interval:
            return statistics.median_interval(values[:n])

        yield f"95 % intervals that miss, n = {n}", _missed(rows, fixed, (seed, n))
    criterion = Criterion(6, 30, UNTIL)

    def ended(values: Values) -> Interval:
        every = (sequential_testing.summarise(values[:n], criterion) for n in criterion.counts)
        last = next(
            (one for one in every if statistics.is_narrow(one, UNTIL)),
            sequential_testing.summarise(values, criterion),
        )
        return Interval(last.low, last.high, last.level, last.enough)

    for cv in ENDED:
        name = f"95 % intervals that miss, rows that spread by {cv:.0%} ended at {UNTIL:.0%}"
        yield name, _missed(rows, ended, (seed, 99, round(1000 * cv)), cv)


def _missed(
    rows: int, interval_of: Callable[[Values], Interval], seed: Sequence[int], spread: float = 0.0
) -> Count:
    """Of rows of 30 lognormal values with that coefficient of variation; without it each row has
    another, of 1 to 5 %.
    """
    lot = np.random.default_rng(seed)
    missed = 0
    for _ in range(rows):
        cv = spread or 0.01 * 5 ** lot.random()
        interval = interval_of(np.exp(lot.normal(0, cv, size=30)))
        missed += not interval.low <= 1.0 <= interval.high
    return Count(missed, rows)


def promised(name: str) -> float | None:
    """The largest share that keeps a promise; None where the report tells what was not found."""
    words = ("called unsure", "outlier named", "unchanged campaigns", "false claims", "that miss")
    return 0.05 if any(word in name for word in words) else None


def table(counts: Sequence[tuple[str, Count]]) -> str:
    """A Markdown table: measured beside promised."""
    lines = []
    for name, one in counts:
        share = f"{one.share:.1%}" if one.judged else "none there"
        most = promised(name)
        target = "none: told in the report" if most is None else f"at most {most:.0%}"
        lines.append([name, str(one.judged), f"{round(one.claimed, 1):g}", share, target])
    return results.markdown(["promise", "cases", "broken", "share", "promised"], lines)


def broken(counts: Sequence[tuple[str, Count]]) -> list[str]:
    """Promises that were broken more often than chance explains, a sentence each."""
    found = []
    for name, one in counts:
        most = promised(name)
        if most is not None and one.interval[0] > most:
            found.append(f"{name}: {one.share:.1%}, promised is at most {most:.0%}")
    return found


def measure(quick: bool) -> list[tuple[str, Count]]:
    """All promises; ``quick`` with a tenth of the cases."""
    rows, pairs = (400, 20) if quick else (4000, 200)
    return [*warnings(rows), *_campaigns(pairs), *coverage(rows)]


def _campaigns(pairs: int) -> Iterator[tuple[str, Count]]:
    for drift in (0.0, 0.02, 0.05):
        name = f"unchanged campaigns of {ROWS} rows, drift of {drift:.0%} within each"
        yield name, campaigns(pairs, drift=drift).different
    for drift in (0.0, 0.05):
        name = (
            f"unchanged campaigns of {ROWS} rows measured in turn, drift of {drift:.0%} within each"
        )
        yield name, campaigns(pairs, drift=drift, turned=True).different
    for repetitions in (6, 10):
        for change in (0.02, 0.05):
            for turned, words in ((False, "one after the other"), (True, "in turn")):
                told = campaigns(pairs // 2, repetitions, 0.05, change, turned)
                where = (
                    f"a tenth of rows {change:.0%} faster, {words}, n = {repetitions}, drift of 5%"
                )
                yield f"false claims where {where}", told.false
                yield f"changed rows not found where {where}", told.missed
