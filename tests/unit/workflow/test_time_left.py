"""The time left, replayed from the records of a real campaign, as they were and edited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from peakmark.workflow import progress

RECORDS = Path(__file__).parent / "quick-seconds.txt"
BETWEEN_S = 0.3
"""From the end of a cell to the start of the next one."""


class Moment(NamedTuple):
    """After a cell: seconds left as told, and as they turned out."""

    told: float
    truth: float


def as_it_was(_place: int, seconds: float) -> float:
    return seconds


def records() -> list[tuple[str, float, float]]:
    """Kind, expected and measured seconds of each cell."""
    lines = [line.split() for line in RECORDS.read_text().splitlines()[1:]]
    return [(kind, float(expected), float(measured)) for kind, expected, measured in lines]


def replay(edit: Callable[[int, float], float] = as_it_was, nodes: int = 1) -> Iterator[Moment]:
    expected = {f"{kind}/{place}": seconds for place, (kind, seconds, _) in enumerate(records())}
    measured = [edit(place, seconds) for place, (_, _, seconds) in enumerate(records())]
    whole = sum(seconds + BETWEEN_S for seconds in measured) / nodes
    left = progress.TimeLeft(expected)
    elapsed = 0.0
    for cell, seconds in zip(expected, measured, strict=True):
        elapsed += (seconds + BETWEEN_S) / nodes
        left.passed(cell, seconds)
        told = left.seconds(elapsed)
        assert told is not None
        yield Moment(told, whole - elapsed)


def largest_step(moments: list[Moment]) -> float:
    """Between two cells, until the last twenty: there any second is a large share."""
    told = [moment.told for moment in moments[:-20]]
    return max(max(after / before, before / after) for before, after in pairwise(told))


def test_the_time_left_of_a_real_campaign_is_told_within_a_third() -> None:
    moments = list(replay())
    assert largest_step(moments) < 1.3
    for moment in moments[:-20]:
        assert 0.67 < moment.told / moment.truth < 1.5


def test_three_slow_cells_at_the_start_do_not_multiply_the_time_left() -> None:
    """As on a machine that still wakes up: the three take 15 times as long."""
    moments = list(replay(lambda place, seconds: seconds * (15.0 if place < 3 else 1.0)))
    assert largest_step(moments) < 1.3
    at_first = sum(expected for _, expected, _ in records())
    assert max(moment.told for moment in moments) < 2 * at_first


@pytest.mark.parametrize(("slower", "nodes"), [(4.0, 1), (0.25, 1), (1.0, 2), (1.0, 8)])
def test_another_machine_is_learnt_by_the_middle(slower: float, nodes: int) -> None:
    moments = list(replay(lambda _, seconds: seconds * slower, nodes))
    assert largest_step(moments) < 1.7
    for moment in moments[len(moments) // 2 : -20]:
        assert 0.6 < moment.told / moment.truth < 1.6


def test_a_failed_cell_is_behind_and_says_nothing_of_its_kind() -> None:
    left = progress.TimeLeft({"cpu/hpl/0": 960.0, "cpu/hpl/1": 20.0, "cpu/hpl/2": 20.0})
    left.passed("cpu/hpl/0", None)
    left.passed("cpu/hpl/1", 20.0)
    assert left.seconds(980.0) == pytest.approx(20.0)
