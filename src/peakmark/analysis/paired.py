"""Two campaigns that were measured in turn: each repetition of a row beside that of the other,
judged by pair.

What the machine does meanwhile is in both halves of a pair and goes out of their ratio, so that no
drift between two times has to be allowed for. Which half comes first alternates from round to
round: what the first does to the second goes out, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from peakmark import statistics
from peakmark.analysis import significance
from peakmark.analysis.row import Repetition

GAP_S = 60.0
"""So long after its other half has ended a repetition may begin: halves of two runs of the command
are no pair.
"""


class Turn(NamedTuple):
    """One repetition of a row: its value in SI units, when it was begun and ended, in seconds of
    the clock, and where.
    """

    value: float
    begun: float
    ended: float
    host: str = ""


Turns = Mapping[int, Turn]


def turns(points: Iterable[Repetition]) -> dict[int, Turn]:
    """The repetitions of a series by their number."""
    by_repetition = {}
    for point in points:
        context = point.context
        begun = datetime.fromisoformat(str(context["started"])).timestamp()
        by_repetition[point.repetition] = Turn(
            point.value, begun, begun + float(context["seconds"] or 0), str(context["host"])
        )
    return by_repetition


def pairs(before: Turns, after: Turns) -> list[tuple[float, float]]:
    """The values of the repetitions that both sides have, one right after the other on one host."""
    both = [(before[number], after[number]) for number in sorted(before.keys() & after.keys())]
    return [
        (turn.value, other.value)
        for turn, other in both
        if turn.host == other.host and _gap(turn, other) <= GAP_S
    ]


def _gap(turn: Turn, other: Turn) -> float:
    first, second = sorted((turn, other), key=lambda each: each.begun)
    return second.begun - first.ended


def ratio(
    pairs: Sequence[tuple[float, float]], confidence: float = 0.95
) -> tuple[float, float, float, bool]:
    """(ratio, low, high, enough) of positive values: the median of the pairs' own ratios, and its
    interval by order statistics, for which no distribution is assumed; ``enough`` whether there
    are enough pairs for that confidence.
    """
    logs = [math.log(after / before) for before, after in pairs]
    interval = statistics.median_interval(logs, confidence)
    centre, low, high = (
        math.exp(value) for value in (statistics.median(logs), interval.low, interval.high)
    )
    return centre, low, high, interval.enough


def p_value(pairs: Sequence[tuple[float, float]]) -> float:
    """Two-sided p of Student's test on the logarithms of the ratios, at least two pairs: its place
    among many rows.
    """
    logs = [math.log(after / before) for before, after in pairs]
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    distance = abs(statistics.mean(logs))
    if error == 0:
        return 1.0 if distance == 0 else 0.0
    return significance.student(distance / error, len(logs) - 1)
