"""Lines of the table: what was measured, beside what, and whether the target holds. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import results
from peakmark import statistics
from peakmark.formatting import significant

HEADINGS = ("what", "ours", "beside", "reference", "ratio", "spread", "n", "target", "verdict")


@dataclass(frozen=True)
class Line:
    """Values of one quantity, lower is better.

    ours       one value a turn, in ``unit``
    at_most    target: of the ratio where there is a reference, else of the value; None where none
               was promised
    reference  the values of what stands beside it, turn by turn; empty where the target is an
               absolute one
    """

    name: str
    unit: str
    ours: Sequence[float]
    at_most: float | None = None
    beside: str = ""
    reference: Sequence[float] = ()

    @property
    def judged(self) -> list[float]:
        """The ratio of each turn, as only values of one turn saw the same machine; without a
        reference the values.
        """
        if not self.reference:
            return list(self.ours)
        return [own / other for own, other in zip(self.ours, self.reference, strict=True)]

    @property
    def verdict(self) -> str:
        """``met`` or ``missed``; nothing where nothing was promised."""
        if self.at_most is None:
            return ""
        return "met" if statistics.median(self.judged) <= self.at_most else "missed"

    def cells(self) -> list[str]:
        """The line's text under each heading."""
        ours, reference = (
            f"{significant(statistics.median(list(values)))} {self.unit}" if values else ""
            for values in (self.ours, self.reference)
        )
        target = "" if self.at_most is None else f"at most {self.at_most:g}"
        if target and not self.reference:
            target += f" {self.unit}"
        ratio = f"{statistics.median(self.judged):.3f}" if self.reference else ""
        spread = f"{min(self.judged):.3g} to {max(self.judged):.3g}"
        numbers = [ours, self.beside, reference, ratio, spread, str(len(self.judged))]
        return [self.name, *numbers, target, self.verdict]


def markdown(lines: Sequence[Line]) -> str:
    """An aligned Markdown table."""
    return results.markdown(HEADINGS, [line.cells() for line in lines])
