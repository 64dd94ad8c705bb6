"""Promises that only many rows can show to be kept: marks on quiet rows, unchanged campaigns,
intervals. Simulated, but judged by the code that judges measurements.

Values are lognormal, as rates and times are positive; ``spread`` is their coefficient of variation.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from benchmarks.method import trends
from benchmarks.method.same import CLAIMED, Count
from peakmark import statistics
from peakmark.analysis import checks, compare, datasets
from peakmark.analysis.datasets import ComparedPoint, Dataset, DatasetRow

Values = NDArray[np.float64]

REPETITIONS = (3, 4, 6, 10, 20, 30)
ROWS = 110
TABLES = ("cpu", "memory_throughput", "disk_throughput", "network_throughput")
INSTRUMENTS = ("cpubench", "rambench", "diskbench", "netbench")
FASTER = 11
GOLDEN = Path(__file__).parents[2] / "tests" / "unit" / "data" / "golden"
"""Records of real campaigns."""
PROMISED = (
    (["called slow", "turbo"], None),
    (["called slow"], 0.001),
    (["slow nodes not found by pairs", "noise of 1%"], 0.1),
    (["slow nodes not found", "8% behind", "noise of 1%", "of 64 "], 0.1),
    (["slow nodes not found", "8% behind", "noise of 1%", "of 1000 "], 0.1),
    (["called unsure"], 0.05),
    (["called different"], 0.05),
    (["unchanged campaigns"], 0.05),
    (["false claims"], 0.05),
    (["that miss"], 0.05),
    (["with a change point"], 0.05),
    (["steps", "not found", "spread of 0.3%"], 0.05),
    (["steps", "not found", "spread of 0.5%"], 0.05),
)
"""Words of a promise's name, and the largest share that keeps it; the first line that fits counts."""


def warnings(rows: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Rows of a machine as restless as still counts as quiet: how many are called unsure."""
    for n in REPETITIONS:
        lot = np.random.default_rng((seed, n))
        unsure = 0
        for values in lot.normal(1.0, checks.QUIET, size=(rows, n)):
            unsure += checks.is_doubtful(values)
        yield f"quiet rows called unsure, n = {n}", Count(unsure, rows)


@dataclass(frozen=True)
class Tally:
    """Of many comparisons: those that call an unchanged row different, the sum of the shares of
    their claims that are false (their mean is the false discovery rate), changed rows not found.
    """

    different: Count
    false: Count
    missed: Count


Noise = Literal["normal", "as in real records", "with heavy tails"]


@dataclass(frozen=True)
class Pairs:
    """Pairs of campaigns of 110 rows.

    Attributes:
        repetitions: of each row.
        spread: of each row; 0: rows differ, from 0.2 to 5 %.
        drift: how far a table moves by itself during one campaign, as a share: a random walk.
        shift: by what share all rows of the second campaign are faster.
        change: by what share every eleventh row of the second campaign is faster.
        turned: measured in turn, each cell of A beside that of B; else B wholly after A.
        noise: how the logarithms of repetitions spread.
    """

    repetitions: int = 6
    spread: float = 0.0
    drift: float = 0.0
    shift: float = 0.0
    change: float = 0.0
    turned: bool = False
    noise: Noise = "normal"

    def __str__(self) -> str:
        spread = f"spread of {self.spread:.0%}" if self.spread else "spreads of 0.2 to 5 %"
        parts = [f"n = {self.repetitions}", spread]
        parts += [self.noise] if self.noise != "normal" else []
        parts += [f"drift of {self.drift:.0%}"] if self.drift else []
        parts += [f"all rows {self.shift:.0%} faster"] if self.shift else []
        return ", ".join([*parts, "in turn" if self.turned else "one after the other"])


@cache
def residuals() -> Values:
    """Distances of real repetitions from the mean of their row, as logarithms in units of the
    standard deviation of their table: 1 in the mean square, with the tails that records have.
    """
    found: list[Values] = []
    for archive in sorted(GOLDEN.glob("*.tar.xz")):
        with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
            entries = datasets.read(folder).entries
        for table in {point.table for point in entries}:
            logs = [
                np.log(entry.values)
                for point, entry in entries.items()
                if point.table == table and len(entry.values) >= 3
            ]
            errors = [(row - row.mean()) * np.sqrt(row.size / (row.size - 1)) for row in logs]
            if errors:
                every = np.concatenate(errors)
                found.append(every / np.sqrt((every**2).mean()))
    return np.concatenate(found)


def campaigns(pairs: int, of: Pairs, seed: int = 1) -> Tally:
    """How often ``peakmark compare`` is wrong about simulated pairs of campaigns."""
    lot = np.random.default_rng((seed, *str(of).encode()))
    different = missed = changed = 0
    false = 0.0
    for _ in range(pairs):
        moved = (_in_turn if of.turned else _apart)(lot, of.repetitions, of.drift)
        spreads = np.full(ROWS, of.spread) if of.spread else 0.002 * 25 ** lot.random(ROWS)
        first = _side(lot, of, spreads, moved[0], 0)
        second = _side(lot, of, spreads, moved[1], 1)
        found, _, _ = compare.compare(first, second)
        faster = {one.point for one in found if of.change and one.point.concurrency % FASTER == 0}
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
    lot: np.random.Generator, of: Pairs, spreads: Values, moved: Values, number: int
) -> Dataset:
    """Campaign A (0) or B (1) on a machine that ``moved`` so far, by row and round."""
    if of.noise == "as in real records":
        noise = lot.choice(residuals(), moved.shape)
    elif of.noise == "with heavy tails":  # Student's t, of standard deviation 1
        noise = lot.standard_t(3, moved.shape) / np.sqrt(3)
    else:
        noise = lot.normal(size=moved.shape)
    faster = np.zeros(ROWS)
    faster[FASTER - 1 :: FASTER] = number * np.log1p(of.change)
    logs = noise * spreads[:, None] + moved + faster[:, None] + number * np.log1p(of.shift)
    start = 0.0 if of.turned else 1e6 * number
    entries = {}
    for row, values in enumerate(np.exp(logs).tolist()):
        part = row % len(TABLES)
        point = ComparedPoint(TABLES[part], INSTRUMENTS[part], "X", "", 0, row + 1, "")
        turns = {
            place: datasets.Turn(value, start + 100 * place, start + 100 * place)
            for place, value in enumerate(values)
        }
        entries[point] = DatasetRow(tuple(values), turns=turns)
    names = "AB"[number], "BA"[number]
    return Dataset(names[0], entries, beside=names[1] if of.turned else "")


def coverage(rows: int, seed: int = 1) -> Iterator[tuple[str, Count]]:
    """Intervals of the median that do not hold the true one."""
    for n in (6, 10, 20, 30):
        lot = np.random.default_rng((seed, n))
        missed = 0
        for _ in range(rows):
            spread = 0.01 * 5 ** lot.random()
            values = np.exp(lot.normal(0, spread, size=30))
            interval = statistics.median_interval(values[:n])
            missed += not interval.low <= 1.0 <= interval.high
        yield f"95 % intervals that miss, n = {n}", Count(missed, rows)


def promised(name: str) -> float | None:
    """The largest share that keeps a promise; None where the report tells what was not found."""
    return next((most for words, most in PROMISED if all(word in name for word in words)), None)


def table(counts: Sequence[tuple[str, Count]]) -> str:
    """A Markdown table: measured beside promised."""
    lines = []
    for name, one in counts:
        share = f"{one.share:.2%}" if one.judged else "none there"
        most = promised(name)
        target = "none: told in the report" if most is None else f"at most {100 * most:g}%"
        lines.append([name, str(one.judged), f"{round(one.claimed, 1):g}", share, target])
    return results.markdown(["promise", "cases", "broken", "share", "promised"], lines)


def broken(counts: Sequence[tuple[str, Count]]) -> list[str]:
    """Promises that were broken more often than chance explains, a sentence each."""
    found = []
    for name, one in counts:
        most = promised(name)
        if most is not None and one.interval[0] > most:
            found.append(f"{name}: {one.share:.2%}, promised is at most {100 * most:g}%")
    return found


def measure(quick: bool) -> list[tuple[str, Count]]:
    """All promises; ``quick`` with a tenth of the cases."""
    rows, pairs = (400, 20) if quick else (4000, 200)
    over_time = [*trends.unchanged(rows // 10), *trends.steps(rows // 10)]
    return [*warnings(rows), *_campaigns(pairs), *coverage(rows), *over_time]


def _campaigns(pairs: int) -> Iterator[tuple[str, Count]]:
    sizes = (3, 6, 12)
    noises: tuple[Noise, ...] = get_args(Noise)
    unchanged = [Pairs(n, noise=noise) for noise in noises for n in sizes]
    unchanged += [Pairs(n, 0.02) for n in sizes]
    unchanged += [Pairs(n, 0.02, shift=0.03) for n in sizes]
    unchanged += [Pairs(drift=0.05, turned=turned) for turned in (False, True)]
    for of in unchanged:
        yield f"unchanged campaigns, {of}", campaigns(pairs, of).different
    changed = [Pairs(n, 0.02, change=0.05, noise=noise) for noise in noises for n in sizes]
    changed += [
        Pairs(n, drift=0.05, change=change, turned=True) for n in (6, 10) for change in (0.02, 0.05)
    ]
    for of in changed:
        tally = campaigns(pairs // 2, of)
        yield f"false claims where a tenth of rows is {of.change:.0%} faster, {of}", tally.false
        yield (
            f"changed rows not found where a tenth of rows is {of.change:.0%} faster, {of}",
            tally.missed,
        )
