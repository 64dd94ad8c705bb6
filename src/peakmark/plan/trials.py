"""Trials of the verdict: extra cells of healthy rows, half of which are slowed in secret."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from peakmark.catalogue import SHAPES, SUBSYSTEMS
from peakmark.cell import TRIAL, Cell

MOST = 40
SHARE = 8
"""One node of so many is tried in a row at most, so that most stay as they are."""


class Trials(NamedTuple):
    """Extra cells, and the rows of those that are slowed."""

    cells: list[Cell]
    slowed: list[str]


def draw(cells: Iterable[Cell], seed: int) -> Trials:
    """Trials of rows whose CPUs a neighbour can slow down, at most ``MOST``.

    Args:
        cells: by which nodes are judged.
        seed: the campaign's.
    """
    rows: dict[str, list[Cell]] = defaultdict(list)
    points: dict[str, list[str]] = defaultdict(list)
    for cell in cells:
        if SUBSYSTEMS[cell.subsystem].pinned and cell.workload not in SHAPES:
            if cell.row not in rows:
                points[f"{cell.subsystem}/{cell.point}"].append(cell.row)
            rows[cell.row].append(cell)
    lot = random.Random(f"{seed}/trials")  # noqa: S311 - not a secret from anybody who has the seed
    tried = []
    for nodes in points.values():
        tried += lot.sample(sorted(nodes), max(1, len(nodes) // SHARE))
    chosen = lot.sample(tried, min(MOST, len(tried)))
    trials = [replace(cell, purpose=TRIAL) for row in chosen for cell in rows[row]]
    slowed = chosen[: (len(chosen) + 1) // 2]
    return Trials(trials, [replace(rows[row][0], purpose=TRIAL).row for row in slowed])
