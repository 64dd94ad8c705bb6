"""Ratios of pairs, and verdicts on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from peakmark import statistics
from peakmark.statistics import Summary


@dataclass(frozen=True)
class Target:
    """Bounds of the median ratio own / reference, included unless ``strict``; None: no bound."""

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
    """One turn of both, in one SI unit; None where that run failed.

    Attributes:
        ours: value of the own kernel.
        reference: value of the reference.
        others: share of the machine's processor time that other programs used meanwhile.
    """

    ours: float | None
    reference: float | None
    others: float = 0.0

    @property
    def ratio(self) -> float | None:
        """Own / reference; None where a run failed."""
        if self.ours is None or self.reference is None:
            return None
        return self.ours / self.reference


@dataclass(frozen=True)
class Comparison:
    """The pairs of a row.

    Attributes:
        ratios: summary of the pairs' ratios. Its median is the ratio of the row, never the ratio of
            the medians: only runs next to each other saw the same machine.
        failed: pairs without a ratio.
        ours: median over the pairs with a ratio; ``reference`` likewise.
        others: median over all pairs.
    """

    ratios: Summary
    failed: int = 0
    ours: float | None = None
    reference: float | None = None
    others: float = 0.0


def compare(pairs: Sequence[Pair]) -> Comparison | None:
    """The comparison over all pairs, None when no pair has a ratio."""
    whole = [one for one in pairs if one.ratio is not None]
    if not whole:
        return None
    return Comparison(
        ratios=statistics.summarise([one.ratio for one in whole if one.ratio is not None]),
        failed=len(pairs) - len(whole),
        ours=_median(one.ours for one in whole),
        reference=_median(one.reference for one in whole),
        others=statistics.median([one.others for one in pairs]),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def judge(target: Target, comparison: Comparison | None) -> str:
    """``met`` or ``missed`` by the median ratio, ``?`` where the interval holds the bound."""
    if comparison is None:
        return "no pair"
    ratios = comparison.ratios
    ends = [target.holds(ratios.low), target.holds(ratios.high)]
    if target.holds(ratios.median):
        return "met" if all(ends) else "met?"
    # Both ends outside of a two-sided target still enclose it when they lie on its two sides.
    two_sided = target.low is not None and target.high is not None
    across = two_sided and ratios.low < (target.low or 0) and ratios.high > (target.high or 0)
    return "missed?" if any(ends) or across else "missed"
