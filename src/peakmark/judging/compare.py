"""Two campaigns, or a campaign and published results, row by row: what became better or worse, and how sure that is."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from peakmark import statistics
from peakmark.catalogue.tables import BY_NAME, TABLES, Table
from peakmark.formatting import listed, natural
from peakmark.judging import alike, chance, paired, sides
from peakmark.judging.sides import Point, Side

Verdict = Literal["better", "worse", "no difference shown", "cannot tell", "not alike"]
VERDICTS: tuple[Verdict, ...] = ("better", "worse", "no difference shown", "cannot tell", "not alike")
CLAIMS: tuple[Verdict, ...] = ("better", "worse")
TOLERANCE = 0.03
"""By so much a row may differ without a verdict: campaigns of one machine at two times seldom differ by less."""
IN_TURN = 0.01
"""The same for campaigns that were measured in turn, which share their time."""


@dataclass(frozen=True)
class Comparison:
    """One row on both sides. ratio: median after / before, with its interval; above 1 is more, which may be worse.

    doubtful   ``unsure: A and B``: how the figures of the sides are in doubt, empty where they are not
    tolerance  the share by which the row may differ without a verdict
    pairs      before and after of each round, where both were measured in turn; empty where they were not
    left_out   how many repetitions are not among them
    differ     what was asked otherwise, in words
    """

    point: Point
    before: tuple[float, ...]
    after: tuple[float, ...]
    ratio: float
    low: float
    high: float
    verdict: Verdict
    reason: str
    doubtful: str = ""
    tolerance: float = 0.0
    pairs: tuple[tuple[float, float], ...] = ()
    left_out: int = 0
    differ: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """The table to which the row belongs."""
        return BY_NAME[self.point.table]


def judge(
    before: Sequence[float],
    after: Sequence[float],
    lower_is_better: bool,
    confidence: float = 0.95,
    tolerance: float = 0.0,
) -> tuple[float, float, float, Verdict, str]:
    """(ratio, low, high, verdict, reason) of two samples.

    better, worse         the whole interval of the ratio lies beyond 1 by more than ``tolerance``, and the ranks are as
                          uneven as like and like would rarely be: intervals of so few values alone are too bold
    no difference shown   not both; a difference that is smaller than the interval may be there
    cannot tell           too few values: even wholly apart they would not be rarer than chance
    """
    ratio, low, high = statistics.ratio_interval(before, after, confidence)
    if not statistics.can_differ(len(before), len(after), confidence):
        counts = f"{len(before)} and {len(after)}"
        return ratio, low, high, "cannot tell", f"{counts} values are too few: chance alone sets them apart as far"
    if statistics.rank_test(before, after) > 1 - confidence:
        return ratio, low, high, "no difference shown", ""
    if low > 1 + tolerance:
        return ratio, low, high, "worse" if lower_is_better else "better", ""
    if high < 1 - tolerance:
        return ratio, low, high, "better" if lower_is_better else "worse", ""
    return ratio, low, high, "no difference shown", ""


def judge_pairs(
    pairs: Sequence[tuple[float, float]], lower_is_better: bool, confidence: float = 0.95, tolerance: float = 0.0
) -> tuple[float, float, float, Verdict, str]:
    """The same of what was measured in turn: the interval is of the median of the pairs' own ratios, by order statistics."""
    if len(pairs) < 2:
        return math.nan, math.nan, math.nan, "cannot tell", "fewer than two rounds have both"
    ratio, low, high, enough = paired.ratio(pairs, confidence)
    if not enough:
        return ratio, low, high, "cannot tell", f"{len(pairs)} rounds are too few: chance alone sets them apart as far"
    if low > 1 + tolerance:
        return ratio, low, high, "worse" if lower_is_better else "better", ""
    if high < 1 - tolerance:
        return ratio, low, high, "better" if lower_is_better else "worse", ""
    return ratio, low, high, "no difference shown", ""


def in_turn(before: Side, after: Side) -> bool:
    """Whether the two campaigns were measured in turn, by what their plans say."""
    return bool(before.beside) and (before.beside, after.beside) == (after.name, before.name)


def drifts(before: Side, after: Side, level: float) -> float:
    """The share by which a table may have moved between two campaigns, by how tables moved within each.

    Each table of each side is one look at how far the machine moves in half a campaign. Between the campaigns it moves as
    in a walk by steps of chance, sqrt(2) times as far; Student's t of so few looks, divided among the tables, allows for how
    little they tell.
    """
    looks = [*before.drift.values(), *after.drift.values()]
    if not looks:
        return 0.0
    typical = math.sqrt(sum(look * look for look in looks) / len(looks))
    tables = max(1, len({*before.drift, *after.drift}))
    return math.expm1(chance.quantile(level / tables, len(looks)) * math.sqrt(2) * typical)


def compare(
    before: Side,
    after: Side,
    confidence: float = 0.95,
    tolerance: float | None = None,
    repeat: Side | None = None,
) -> tuple[list[Comparison], int, int]:
    """(rows that both have in the order of the tables, rows that only ``before`` has, rows that only ``after`` has).

    A claim must hold by itself, see ``judge``, and stand among all rows that are judged: the false discovery rate over
    them is at most 1 - ``confidence``. ``repeat`` is a second campaign of what ``before`` measured: how far the two differ is the
    drift that a row may have without a verdict. Campaigns that were measured in turn are judged by pair: they have no drift
    between them, and what differs in what was asked is what is compared.
    """
    bare = before.bare or after.bare
    one_node = not bare and len(before.nodes) == len(after.nodes) == 1
    old, new = (_named(side, bare, one_node) for side in (before, after))
    shared = sorted(old.keys() & new.keys(), key=_place)
    if in_turn(before, after):
        allowed = IN_TURN if tolerance is None else tolerance
        comparisons = [_of_pairs(before, after, point, old[point], new[point], confidence, allowed) for point in shared]
    else:
        drift = {} if repeat is None else _between(before, repeat)
        moved = max(TOLERANCE if tolerance is None else tolerance, drifts(before, after, 1 - confidence))
        moves = {point: max(moved, drift.get(point.table, 0.0)) for point in shared}
        comparisons = [
            _of_two(before, after, point, old[point], new[point], confidence, moves[point]) for point in shared
        ]
    return _standing(comparisons, confidence), len(old.keys() - new.keys()), len(new.keys() - old.keys())


def _of_two(
    before: Side, after: Side, point: Point, first: Point, second: Point, confidence: float, allowed: float
) -> Comparison:
    """A row of two campaigns of different times."""
    old, new = before.values[first], after.values[second]
    judged = judge(old, new, BY_NAME[point.table].lower_is_better, confidence, allowed)
    differ = alike.differences(before.terms.get(first, {}), after.terms.get(second, {}))
    differ += alike.mixing(before.mixed.get(first, ""), after.mixed.get(second, ""))
    if differ:
        judged = (*judged[:3], "not alike", "; ".join(differ))
    doubtful = _doubtful(before.doubts.get(first, ""), after.doubts.get(second, ""))
    return Comparison(point, old, new, *judged, doubtful, allowed, differ=tuple(differ))


def _of_pairs(
    before: Side, after: Side, point: Point, first: Point, second: Point, confidence: float, allowed: float
) -> Comparison:
    """A row of two campaigns that were measured in turn: of a round that has one half only nothing is judged."""
    pairs = tuple(paired.pairs(before.turns[first], after.turns[second]))
    judged = judge_pairs(pairs, BY_NAME[point.table].lower_is_better, confidence, allowed)
    left_out = max(len(before.values[first]), len(after.values[second])) - len(pairs)
    differ = tuple(alike.differences(before.terms.get(first, {}), after.terms.get(second, {})))
    doubtful = _doubtful(before.doubts.get(first, ""), after.doubts.get(second, ""))
    old = tuple(value for value, _ in pairs) or before.values[first]
    new = tuple(other for _, other in pairs) or after.values[second]
    return Comparison(point, old, new, *judged, doubtful, allowed, pairs, left_out, differ)


def _named(side: Side, bare: bool, one_node: bool) -> dict[Point, Point]:
    """The points of a side by the names they have in the comparison: nodes do not matter where each side has one."""
    if one_node:
        return {replace(point, node=""): point for point in side.values}
    return sides.bare_points(side) if bare and not side.bare else {point: point for point in side.values}


def _doubtful(before: str, after: str) -> str:
    """``unsure: A and B``, ``wrong: A; unsure: B``, nothing without doubt."""
    sides = {"A": before, "B": after}
    kinds = [kind for kind in ("wrong", "unsure") if kind in sides.values()]
    return "; ".join(f"{kind}: {listed([name for name, word in sides.items() if word == kind])}" for kind in kinds)


def _between(before: Side, repeat: Side) -> dict[str, float]:
    """By table, the share by which 19 of 20 rows differ at most between a campaign and its repeat."""
    shares: dict[str, list[float]] = {}
    for point, values in before.values.items():
        if point in repeat.values:
            ratio = statistics.median(repeat.values[point]) / statistics.median(values)
            shares.setdefault(point.table, []).append(abs(math.log(ratio)))
    return {table: sorted(of_table)[math.ceil(0.95 * len(of_table)) - 1] for table, of_table in shares.items()}


def _standing(comparisons: Sequence[Comparison], confidence: float) -> list[Comparison]:
    """The comparisons, without the claims that chance would bring among so many rows."""
    judged = [comparison for comparison in comparisons if comparison.verdict not in ("cannot tell", "not alike")]
    chances = [_chance(comparison) if comparison.verdict in CLAIMS else 1.0 for comparison in judged]
    stands = {
        id(comparison)
        for comparison, holds in zip(judged, chance.discoveries(chances, 1 - confidence), strict=True)
        if holds
    }
    reason = f"chance would bring it among {len(judged)} rows"
    return [
        replace(comparison, verdict="no difference shown", reason=reason)
        if comparison.verdict in CLAIMS and id(comparison) not in stands
        else comparison
        for comparison in comparisons
    ]


def _chance(comparison: Comparison) -> float:
    return paired.p_value(comparison.pairs) if comparison.pairs else chance.welch(comparison.before, comparison.after)


def _place(point: Point) -> tuple[object, ...]:
    table = BY_NAME[point.table]
    instruments = [series.instrument for series in table.series]
    # A word mostly means more threads than any number beside it.
    count = sys.maxsize if point.word else point.concurrency
    return (
        TABLES.index(table),
        natural(point.node),
        instruments.index(point.instrument),
        *table.order(point.workload, point.variant, count, point.block),
        point.word,
    )
