"""Lines of the table: what was measured, beside what, and whether the target holds. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks import results
from peakmark import statistics
from peakmark.formatting import significant

HEADINGS = ("what", "ours", "beside", "reference", "ratio", "spread", "n", "target", "verdict")


@dataclass(frozen=True)
class Line:
    """Values of one quantity, lower is better.

    ours       one value a turn, in ``unit``
    reference  the values of what stands beside it, turn by turn; empty where the target is an
               absolute one
    at_most    target: of the ratio where there is a reference, else of the value; None where none
               was promised
    """

    name: str
    unit: str
    ours: Sequence[float]
    at_most: float | None = None
    beside: str = ""
    reference: Sequence[float] = field(default=())

    @property
    def ratios(self) -> list[float]:
        """Ratio of each turn; only values of one turn saw the same machine."""
        if not self.reference:
            return []
        return [own / other for own, other in zip(self.ours, self.reference, strict=True)]

    @property
    def judged(self) -> float:
        """The median ratio, or the median value where there is no reference."""
        return statistics.median(self.ratios or list(self.ours))

    @property
    def verdict(self) -> str:
        """``met`` or ``missed``; nothing where nothing was promised."""
        if self.at_most is None:
            return ""
        return "met" if self.judged <= self.at_most else "missed"


def _cells(line: Line) -> list[str]:
    values = line.ratios or list(line.ours)
    own, *other = (
        f"{significant(statistics.median(list(side)))} {line.unit}"
        for side in (line.ours, line.reference)
        if side
    )
    target = "" if line.at_most is None else f"at most {line.at_most:g}"
    if target and not line.reference:
        target += f" {line.unit}"
    ratio = f"{line.judged:.3f}" if line.reference else ""
    spread = f"{min(values):.3g} to {max(values):.3g}"
    beside = [line.beside, *(other or [""])]
    return [line.name, own, *beside, ratio, spread, str(len(values)), target, line.verdict]


def markdown(lines: Sequence[Line]) -> str:
    """An aligned Markdown table."""
    return results.markdown(HEADINGS, map(_cells, lines))
