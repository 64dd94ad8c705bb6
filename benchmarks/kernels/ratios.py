"""Ratios of pairs and verdicts on them: pure functions. Medians and intervals are those of
``peakmark.statistics``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from peakmark import statistics

Word = Literal["met", "missed", "no pair"]


@dataclass(frozen=True)
class Target:
    """What the median of the ratios own / reference must lie in, ends included unless ``strict``;
    None: no bound.
    """

    low: float | None = None
    high: float | None = None
    strict: bool = False

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"{'above' if self.strict else 'at least'} {self.low:g}"
        return f"{'below' if self.strict else 'at most'} {self.high:g}"

    def holds(self, ratio: float) -> bool:
        """Whether one ratio, as measured and not as printed, lies within."""
        if self.strict and ratio in (self.low, self.high):
            return False
        return (self.low is None or ratio >= self.low) and (self.high is None or ratio <= self.high)


@dataclass(frozen=True)
class Pair:
    """One turn of both, in one SI unit. None where that side's run failed; it stays in the data.

    neighbours  share of the machine's processor time, 0 to 1, that others used while the pair ran
    had, theirs_had  for which share of the time that its threads wanted a CPU each had one; None
                     where nothing tells
    per_cpu_time     its ratio is that of what each did in the time that it had
    """

    ours: float | None
    reference: float | None
    neighbours: float = 0.0
    had: float | None = None
    theirs_had: float | None = None
    per_cpu_time: bool = False

    @property
    def ratio(self) -> float | None:
        if self.ours is None or self.reference is None:
            return None
        ratio = self.ours / self.reference
        if self.per_cpu_time and self.had and self.theirs_had:
            return ratio / (self.had / self.theirs_had)
        return ratio


@dataclass(frozen=True)
class Comparison:
    """What a line of the table shows of its pairs.

    n, failed    pairs with a ratio, and without
    ours, reference   medians over the pairs with a ratio
    ratio        median of the ratios, never the ratio of the medians: only runs next to each other
                 saw the same machine
    minimum, maximum  of the ratios
    low, high    interval of the median ratio, which holds with probability ``level``: below 95 %
                 for n < 6
    neighbours   median of the pairs'
    had, theirs_had  medians of the pairs'; None where nothing tells
    """

    n: int
    failed: int
    ours: float
    reference: float
    ratio: float
    minimum: float
    maximum: float
    low: float
    high: float
    level: float
    neighbours: float
    had: float | None = None
    theirs_had: float | None = None


def compare(pairs: Sequence[Pair]) -> Comparison | None:
    """The comparison over all pairs, None when no pair has a ratio."""
    whole = [one for one in pairs if one.ratio is not None]
    ratios = _known(one.ratio for one in whole)
    if not ratios:
        return None
    summary = statistics.summarise(ratios)
    return Comparison(
        n=len(whole),
        failed=len(pairs) - len(whole),
        ours=statistics.median(_known(one.ours for one in whole)),
        reference=statistics.median(_known(one.reference for one in whole)),
        ratio=summary.median,
        minimum=summary.minimum,
        maximum=summary.maximum,
        low=summary.low,
        high=summary.high,
        level=summary.level,
        neighbours=statistics.median([one.neighbours for one in pairs]),
        had=_median(one.had for one in whole),
        theirs_had=_median(one.theirs_had for one in whole),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _median(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return statistics.median(known) if known else None


@dataclass(frozen=True)
class Verdict:
    """``word`` by the median ratio alone; ``sure`` when the whole interval lies on the same side of
    the target.
    """

    word: Word
    sure: bool

    def __str__(self) -> str:
        return self.word if self.sure else f"{self.word}?"


def judge(target: Target, comparison: Comparison | None) -> Verdict:
    """Whether the target is met. A miss is sure only when the interval has no part within the
    target.
    """
    if comparison is None:
        return Verdict("no pair", True)
    ends = [target.holds(comparison.low), target.holds(comparison.high)]
    if target.holds(comparison.ratio):
        return Verdict("met", all(ends))
    # Both ends outside of a two-sided target still enclose it when they lie on its two sides.
    across = (
        target.low is not None
        and target.high is not None
        and comparison.low < target.low <= target.high < comparison.high
    )
    return Verdict("missed", not any(ends) and not across)
