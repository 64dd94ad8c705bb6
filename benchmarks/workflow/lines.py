"""Lines of the table: what was measured, beside what, and whether the target holds. Pure functions."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
        return (
            [own / other for own, other in zip(self.ours, self.reference, strict=True)]
            if self.reference
            else []
        )

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


def _cells(line: Line) -> tuple[str, ...]:
    values = line.ratios or list(line.ours)
    target = (
        ""
        if line.at_most is None
        else f"at most {line.at_most:g}" + ("" if line.reference else f" {line.unit}")
    )
    return (
        line.name,
        f"{significant(statistics.median(list(line.ours)))} {line.unit}",
        line.beside,
        f"{significant(statistics.median(list(line.reference)))} {line.unit}"
        if line.reference
        else "",
        f"{line.judged:.3f}" if line.reference else "",
        f"{min(values):.3g} to {max(values):.3g}",
        str(len(values)),
        target,
        line.verdict,
    )


def markdown(lines: Sequence[Line]) -> str:
    """An aligned Markdown table."""
    rows = [HEADINGS, *(_cells(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text) + "\n"


def as_csv(lines: Sequence[Line], facts: Mapping[str, Any]) -> str:
    """Every turn of every line, with the machine's facts in each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "what",
            "turn",
            "unit",
            "ours",
            "beside",
            "reference",
            "ratio",
            "target",
            "verdict",
            *facts,
        ]
    )
    for line in lines:
        for turn, own in enumerate(line.ours):
            other = line.reference[turn] if line.reference else ""
            ratio = line.ratios[turn] if line.reference else ""
            target = "" if line.at_most is None else line.at_most
            writer.writerow(
                [
                    line.name,
                    turn,
                    line.unit,
                    own,
                    line.beside,
                    other,
                    ratio,
                    target,
                    line.verdict,
                    *facts.values(),
                ]
            )
    return out.getvalue()
