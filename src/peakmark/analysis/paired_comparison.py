"""What rows say together: two choices compared at every point that both were measured at, of few
repetitions each.

Three repetitions of one row prove nothing against three of another, as chance sets them apart in
one case of ten. Seven such pairs that all agree are another matter. The rank sums of all pairs
(strata) are added, and their distribution without any difference is counted exactly: van Elteren,
On the Combination of Independent Two-Sample Tests of Wilcoxon, Bulletin of the International
Statistical Institute 37 (1960), pages 351-361, with equal weights.

All comparisons of a table share the 5 %, but for those of too few points to reach them whatever
they show: Tarone, A Modified Bonferroni Method for Discrete Data, Biometrics 46 (1990), pages
515-522; Hommel and Krummenauer, Improvements and Modifications of Tarone's Multiple Test Procedure
for Discrete Data, Biometrics 54 (1998), pages 673-681.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from peakmark import statistics
from peakmark.analysis import ratios
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Key, Row, Series
from peakmark.formatting import significant
from peakmark.messages import Severity

LEVEL = 0.05
LEAST = 2
"""Of fewer pairs of rows nothing is said together: single rows have their own rule."""
MANY = 4
"""So many points are named; of fewer it is not said that they tell nothing."""
PAIRS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cpu": (("QP", "HP"), ("HP", "SP"), ("SP", "DP")),
    "memory": (("RS", "RR"), ("WS", "WR"), ("RWS", "RWR"), ("RS", "WS")),
    "disk": (("RS", "RR"), ("WS", "WR"), ("RS", "WS"), ("RR", "WR")),
    "network": (("TCP", "UDP"), ("LAT-TCP", "LAT-UDP")),
}
"""Workloads that readers compare, by subsystem; a layout may have others."""

Choice = tuple[str, str]
"""What is chosen and what it does where it is ahead: ``1 thread``, ``is faster``; ``8 threads``,
``are faster``.
"""


@dataclass(frozen=True)
class PairedComparison:
    """Two choices at all points that both have.

    ahead, behind  rows in which the first is better or worse, by their medians, beside a reference
                   by those of the rounds
    p              two-sided probability of rank sums as uneven without any difference
    least          the smallest that it can be with so many values: all of them apart
    instrument     the reference that is the second, empty where two choices of the own program are
                   compared
    """

    first: Choice
    second: Choice
    ahead: tuple[Row, ...]
    behind: tuple[Row, ...]
    factors: tuple[float, ...]
    p: float
    least: float
    instrument: str = ""


def sentences(
    labels: LabelFormatter, rows: Sequence[Row]
) -> tuple[list[tuple[Topic, str]], dict[str, str]]:
    """(topic, sentence) of each pair of workloads, of neighbouring block sizes, of numbers of
    threads and of the own program and a reference, as far as chance is ruled out: at 5 % for all
    comparisons of the table together, and of the own program's where it is not. Beside them, for
    each reference that is told apart, a clause for the sentence about it.
    """
    right = [row for row in rows if row.own is not None and row.level is not Severity.WRONG]
    compared = [(Topic.WORKLOADS, together) for together in _workloads(labels, right)]
    if any(not row.measured.summary.enough for row in right):
        compared += [(Topic.BLOCKS, together) for together in _blocks(labels, right)]
        compared += [(Topic.THREADS, together) for together in _threads(labels, right)]
        compared += [(Topic.REFERENCE, together) for together in _references(labels, right)]
    holding = _holding([together for _, together in compared])
    said = [
        (topic, _sentence(labels, together))
        for topic, together in compared
        if together in holding and not together.instrument
    ]
    # What too few points could never tell is not worth a word, nor are points that are read one by
    # one as fast.
    undecided = [
        _undecided(together)
        for topic, together in compared
        if together.least <= LEVEL
        and len(together.factors) >= MANY
        and together not in holding
        and not together.instrument
    ]
    if undecided:
        said.append(
            (
                Topic.UNDECIDED,
                f"Chance is not ruled out, at 5 % for all of these together: {'; '.join(undecided)}.",
            )
        )
    return said, {
        together.instrument: _clause(together)
        for _, together in compared
        if together in holding and together.instrument
    }


def _holding(compared: Sequence[PairedComparison]) -> list[PairedComparison]:
    """Those that are no chance: step by step from the least likely one (Holm), among as many as can
    reach it (Tarone).
    """
    among = next(
        (
            count
            for count in range(1, len(compared) + 1)
            if sum(together.least <= LEVEL / count for together in compared) <= count
        ),
        1,
    )
    holding: list[PairedComparison] = []
    for together in sorted(
        (together for together in compared if together.least <= LEVEL / among),
        key=lambda together: together.p,
    ):
        if together.p > LEVEL / max(1, among - len(holding)):
            break
        holding.append(together)
    return holding


def _workloads(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[PairedComparison]:
    chosen = labels.layout_table.compare if labels.layout_table else None
    does = "is shorter" if labels.table.lower_is_better else "is faster"
    for first, second in PAIRS[labels.table.subsystem] if chosen is None else chosen:
        yield from _pair(
            labels, rows, "workload", (first, second), lambda row: (labels.workload(row), does)
        )


def _blocks(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[PairedComparison]:
    blocks = sorted({row.key.block for row in rows if row.key.block is not None})
    for smaller, larger in pairwise(blocks):
        yield from _pair(
            labels,
            rows,
            "block",
            (larger, smaller),
            lambda row: (labels.block(row), _times(labels, "has", "is")),
        )


def _threads(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[PairedComparison]:
    """The most beside the fewest: whether more of them help."""
    counts = sorted({row.key.concurrency for row in rows})
    if len(counts) > 1:

        def name(row: Row) -> Choice:
            does = (
                _times(labels, "has", "is")
                if row.key.concurrency == 1
                else _times(labels, "have", "are")
            )
            return labels.many(row.key.concurrency), does

        yield from _pair(labels, rows, "concurrency", (counts[-1], counts[0]), name)


def _times(labels: LabelFormatter, has: str, is_: str) -> str:
    """Of what is ahead: a latency is shorter, but a size or a number of threads has shorter times."""
    return f"{has} shorter times" if labels.table.lower_is_better else f"{is_} faster"


def _references(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[PairedComparison]:
    """The own program beside each reference that measured the same."""
    said = "says shorter times" if labels.table.lower_is_better else "says more"
    for entry in ratios.references(labels.table):
        there = ratios.pairs(rows, entry.instrument)
        pairs = [(row, row.measured, series) for row, series, _ in there]
        factors = [ratio.value for *_, ratio in there]  # as the sentence about it says them
        own, other = labels.program(labels.table.own), labels.program(entry)
        for together in _together(labels, (own, said), (other, said), pairs, factors):
            yield replace(together, instrument=entry.instrument)


def _pair(
    labels: LabelFormatter,
    rows: Sequence[Row],
    field: str,
    values: tuple[object, object],
    name: Callable[[Row], Choice],
) -> Iterator[PairedComparison]:
    """The rows with the first and with the second value of one field of their keys that are alike
    in all others.
    """
    firsts, seconds = (
        [row for row in rows if getattr(row.key, field) == value] for value in values
    )
    there = {_without(row.key, field): row for row in seconds}
    pairs = [
        (row, row.measured, there[point].measured)
        for row in firsts
        if (point := _without(row.key, field)) in there
    ]
    if pairs:
        other = there[_without(pairs[0][0].key, field)]
        yield from _together(labels, name(pairs[0][0]), name(other), pairs)


def _without(key: Key, field: str) -> frozenset[tuple[str, object]]:
    """A word means a number of threads, which says what is to be said of it."""
    return frozenset(item for item in key._asdict().items() if item[0] not in (field, "word"))


def _together(
    labels: LabelFormatter,
    first: Choice,
    second: Choice,
    pairs: Sequence[tuple[Row, Series, Series]],
    factors: Sequence[float] = (),
) -> Iterator[PairedComparison]:
    """What ``pairs`` of series say together, each with the row that names it; nothing of fewer than
    two. ``factors``: the first's figure over the second's at each point, of medians unless they
    are given.
    """
    if len(pairs) < LEAST:
        return
    factors = factors or [own.summary.median / other.summary.median for _, own, other in pairs]
    better = [(factor < 1) if labels.table.lower_is_better else (factor > 1) for factor in factors]
    yield PairedComparison(
        first,
        second,
        tuple(row for (row, _, _), ahead in zip(pairs, better, strict=True) if ahead),
        tuple(row for (row, _, _), ahead in zip(pairs, better, strict=True) if not ahead),
        tuple(factors),
        statistics.rank_test([(own.values, other.values) for _, own, other in pairs]),
        min(
            1.0,
            2
            / math.prod(
                math.comb(own.summary.n + other.summary.n, own.summary.n) for _, own, other in pairs
            ),
        ),
    )


def _sign_conflicts(together: PairedComparison) -> PairedComparison:
    """The same with the one first that is ahead at most points."""
    if len(together.behind) <= len(together.ahead):
        return together
    factors = tuple(1 / factor for factor in together.factors)
    return replace(
        together,
        first=together.second,
        second=together.first,
        ahead=together.behind,
        behind=together.ahead,
        factors=factors,
    )


def _sentence(labels: LabelFormatter, together: PairedComparison) -> str:
    together = _sign_conflicts(together)
    total, factors = len(together.factors), sorted(together.factors)
    low, high = labels.times(factors[0]), labels.times(factors[-1])
    many = "at both points" if total == 2 else f"at all {total} points"
    if together.behind:
        many = f"at {len(together.ahead)} of {total} points"
    text = f"{' '.join(together.first)} than {together.second[0]} {many} ({low} to {high} times its figure; by chance {probability(together.p)})"
    if together.behind and len(together.behind) <= MANY:
        text += (
            f"; the other way round with {', '.join(labels.row(row) for row in together.behind)}"
        )
    return f"{text}."


def _clause(together: PairedComparison) -> str:
    """``IOZone says more at 62 of 84 points, by chance 8e-17``."""
    together = _sign_conflicts(together)
    count = len(together.ahead)
    points = (
        f"{count} of {len(together.factors)}" if count < len(together.factors) else f"all {count}"
    )
    return f"{' '.join(together.first)} at {points} points, by chance {probability(together.p)}"


def _undecided(together: PairedComparison) -> str:
    together = _sign_conflicts(together)
    points = f"{len(together.ahead)} of {len(together.factors)} points"
    return f"{' '.join(together.first)} than {together.second[0]} at {points} (by chance {probability(together.p)})"


def probability(p: float) -> str:
    """One digit, as ``0.005`` or ``8e-17``."""
    return significant(p, 1) if p >= 1e-4 else f"{p:.0e}".replace("e-0", "e-")
