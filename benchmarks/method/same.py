"""Like against like: two campaigns of the same cells on the same machine at the same time. Every
difference is false.
"""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.method.sides import Bench, Surroundings
from peakmark import statistics
from peakmark.analysis import compare
from peakmark.analysis.datasets import ComparedPoint, Dataset, DatasetRow, Turn, read
from peakmark.cell import Cell
from peakmark.files import write_text

CLAIMED = ("better", "worse")

GRIDS: dict[str, Any] = {
    "cpu": [{"workloads": ["DP", "HP"], "concurrency": [1], "seconds": 0.05}],
    "memory": [
        {"workloads": ["RWS"], "concurrency": [1], "variants": ["block"], "blocks": ["16KiB"], "seconds": 0.05},
        {"workloads": ["RS"], "concurrency": [1], "variants": ["pool"], "blocks": ["1MiB"], "pool": "64MiB",
         "seconds": 0.05},
        {"workloads": ["LAT"], "concurrency": [1], "blocks": ["256KiB"], "seconds": 0.05},
    ],
    "disk": [
        {"workloads": ["RS", "WS"], "concurrency": [1], "blocks": ["1MiB"], "size": "16MiB", "seconds": 0.05},
        {"workloads": ["RR"], "concurrency": [1], "blocks": ["4KiB"], "size": "8MiB", "seconds": 0.05},
    ],
    "network": [
        {"workloads": ["TCP"], "concurrency": [1], "blocks": ["32KiB"], "seconds": 0.05},
        {"workloads": ["LAT-TCP"], "concurrency": [1], "blocks": ["1B"], "seconds": 0.05},
    ],
}  # fmt: skip
QUICK: dict[str, Any] = {"cpu": GRIDS["cpu"], "memory": GRIDS["memory"][:1]}


@dataclass(frozen=True)
class Count:
    """How many of those that were judged broke what is promised, such as to claim no difference
    that is none.
    """

    claimed: float
    judged: int

    @property
    def share(self) -> float:
        return self.claimed / self.judged if self.judged else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the share."""
        if not self.judged:
            return math.nan, math.nan
        return statistics.wilson(self.claimed, self.judged)


def measure(
    bench: Bench,
    grids: Mapping[str, Any],
    blocks: int,
    repetitions: int,
    in_turn: bool = True,
) -> list[tuple[Path, Path]]:
    """Pairs of campaigns of the same cells.

    In turn each repetition of A stands beside that of B, the first of the two by lot. Else B is
    wholly after A: what the machine does differently meanwhile is a difference.
    """
    pairs = []
    for block in range(blocks):
        name = f"same/{'turn' if in_turn else 'apart'}/{block}"
        before, first = bench.campaign(f"{name}/A", grids, repetitions)
        after, second = bench.campaign(f"{name}/B", grids, repetitions)
        pairs.append((before, after))
        if not in_turn:
            bench.measure([(before, cell) for cell in first], Surroundings())
            bench.measure([(after, cell) for cell in second], Surroundings())
            continue
        for folder, other in ((before, after), (after, before)):
            plan = json.loads((folder / "plan.json").read_text())
            write_text(folder / "plan.json", json.dumps({**plan, "beside": other.name}))
        lot = random.Random(block)  # noqa: S311 - an order, not a secret
        orders: list[tuple[Path, Cell]] = []
        for one, two in zip(first, second, strict=True):
            orders += lot.sample([(before, one), (after, two)], 2)
        bench.measure(orders, Surroundings())
    return pairs


def really(
    pairs: Iterable[tuple[Path, Path]], turned: bool = False
) -> tuple[Count, Count, dict[ComparedPoint, list[float]]]:
    """By ``peakmark compare`` on campaigns as they were measured: all rows, those on which no note
    casts doubt, and all values of each row. turned: cells that were measured in turn are judged
    by pair, else as of two times.
    """
    claimed, judged, calm_claimed, calm_judged = 0, 0, 0, 0
    values: dict[ComparedPoint, list[float]] = defaultdict(list)
    for before, after in pairs:
        first, second = (read(str(side)) for side in (before, after))
        if not turned:
            first = replace(first, beside="")
        found, _, _ = compare.compare(first, second)
        for one in found:
            judged += one.verdict != "cannot tell"
            claimed += one.verdict in CLAIMED
            if not any(one.warnings):
                calm_judged += one.verdict != "cannot tell"
                calm_claimed += one.verdict in CLAIMED
            values[one.point] += [*one.before, *one.after]
    return Count(claimed, judged), Count(calm_claimed, calm_judged), dict(values)


def failed(pairs: Iterable[tuple[Path, Path]], turned: bool = False) -> Count:
    """The same by whole comparisons: how many call any row better or worse."""
    counts = [really([pair], turned)[0].claimed > 0 for pair in pairs]
    return Count(sum(counts), len(counts))


def _at_one_time(values: Sequence[float]) -> DatasetRow:
    turns = {number: Turn(value, number, number) for number, value in enumerate(values)}
    return DatasetRow(tuple(values), turns=turns)


def resampled(
    values: Mapping[ComparedPoint, Sequence[float]], size: int, draws: int, seed: int = 1
) -> Count:
    """By the same verdict on campaigns drawn by lot, without repeats, from all real values of a row;
    by row.
    """
    lot = np.random.default_rng(seed)
    claimed, judged = 0, 0
    enough = {point: each for point, each in values.items() if len(each) >= 2 * size}
    for _ in range(draws if enough else 0):
        drawn = {point: lot.permutation(each) for point, each in sorted(enough.items())}
        sides = []
        for part in (slice(size), slice(size, 2 * size)):
            rows = {point: _at_one_time(each[part].tolist()) for point, each in drawn.items()}
            sides.append(Dataset("drawn", rows))
        found, _, _ = compare.compare(sides[0], sides[1], tolerance=0.0)
        judged += sum(one.verdict != "cannot tell" for one in found)
        claimed += sum(one.verdict in CLAIMED for one in found)
    return Count(claimed, judged)
