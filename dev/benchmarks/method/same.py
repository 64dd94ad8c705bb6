"""Like against like: two campaigns of the same cells on the same machine at the same time. Every
difference is false.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.method.promises import Count, Counts
from benchmarks.method.sides import Bench, Surroundings
from peakmark.cell import Cell
from peakmark.rows import build
from peakmark.storage.results import Results
from peakmark.views import compare
from peakmark.views.compare import Dataset, dataset_of

GRIDS: dict[str, Any] = {
    "cpu": [{"workloads": ["DP", "HP"]}],
    "memory": [
        {"workloads": ["RWS"], "variants": ["block"], "blocks": ["16KiB"]},
        {"workloads": ["RS"], "variants": ["pool"], "blocks": ["1MiB"], "pool": "64MiB"},
        {"workloads": ["LAT"], "blocks": ["256KiB"]},
    ],
    "disk": [
        {"workloads": ["RS", "WS"], "blocks": ["1MiB"], "size": "16MiB"},
        {"workloads": ["RR"], "blocks": ["4KiB"], "size": "8MiB"},
    ],
    "network": [
        {"workloads": ["TCP"], "blocks": ["32KiB"]},
        {"workloads": ["LAT-TCP"], "blocks": ["1B"]},
    ],
}
SHORT = {"concurrency": [1], "seconds": 0.05}
"""Of each grid."""
QUICK: dict[str, Any] = {"cpu": GRIDS["cpu"], "memory": GRIDS["memory"][:1]}


def measure(
    bench: Bench, grids: Mapping[str, Any], blocks: int, repetitions: int
) -> list[tuple[Path, Path]]:
    """Pairs of campaigns of the same cells: each repetition of A stands beside that of B, the first
    of the two by lot.
    """
    grids = {name: [{**SHORT, **grid} for grid in each] for name, each in grids.items()}
    pairs = []
    for block in range(blocks):
        before, first = bench.campaign(f"same/{block}/A", grids, repetitions)
        after, second = bench.campaign(f"same/{block}/B", grids, repetitions)
        pairs.append((before, after))
        lot = random.Random(block)  # noqa: S311 - an order, not a secret
        orders: list[tuple[Path, Cell]] = []
        for one, two in zip(first, second, strict=True):
            orders += lot.sample([(before, one), (after, two)], 2)
        bench.measure(orders, Surroundings())
    return pairs


def side(campaign: Path) -> Dataset:
    """A measured campaign as one side of a comparison."""
    return dataset_of(campaign.name, build.judge(Results.read(campaign)))


def claims(pairs: Sequence[tuple[Path, Path]]) -> tuple[Count, Count]:
    """Campaigns, and rows, that ``peakmark compare`` calls better or worse."""
    campaigns = rows = judged = 0
    for before, after in pairs:
        found, _, _ = compare.compare(side(before), side(after))
        claimed = int(found["verdict"].isin(compare.CLAIMS).sum())
        campaigns += bool(claimed)
        rows += claimed
        judged += int(found["verdict"].ne("cannot tell").sum())
    return Count(campaigns, len(pairs)), Count(rows, judged)


def counted(bench: Bench, quick: bool, repetitions: int) -> Counts:
    """Differences that are none, of whole campaigns and of their rows."""
    grids, many = QUICK if quick else GRIDS, f"{repetitions} against {repetitions}"
    campaigns, rows = claims(measure(bench, grids, 1 if quick else 4, repetitions))
    yield f"unchanged campaigns, real ones, at one time, {many}", campaigns
    yield f"rows of unchanged campaigns, real ones, at one time, {many}", rows
