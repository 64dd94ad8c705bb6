"""Ratios of pairs, verdicts on them, and what is printed and written of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from benchmarks import results
from benchmarks.kernels.pairs import Row, Target
from peakmark import statistics
from peakmark.formatting import quantity
from peakmark.statistics import Summary

# Above this share of the machine used by others a line says so.
DISTURBED = 0.05
_UNITS = {"rate": "op/s", "clock": "Hz", "throughput": "B/s"}


@dataclass(frozen=True)
class Pair:
    """One turn of both, in one SI unit; None where that run failed. others: share of the machine's
    processor time that other programs used meanwhile.
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


def judge(target: Target, ratios: Summary | None) -> str:
    """``met`` or ``missed`` by the median ratio, ``?`` where the interval holds the bound."""
    if ratios is None:
        return "no pair"
    ends = [target.holds(ratios.low), target.holds(ratios.high)]
    if target.holds(ratios.median):
        return "met" if all(ends) else "met?"
    # Both ends outside of a two-sided target still enclose it when they lie on its two sides.
    two_sided = target.low is not None and target.high is not None
    across = two_sided and ratios.low < (target.low or 0) and ratios.high > (target.high or 0)
    return "missed?" if any(ends) or across else "missed"


@dataclass
class Line:
    """A row with what was measured for it. ``note`` is the first thing that went wrong, or why
    there is nothing.
    """

    row: Row
    pairs: list[Pair] = field(default_factory=list)
    note: str = ""

    @property
    def ratios(self) -> Summary | None:
        """Of the pairs. Its median is the ratio of the row, never the ratio of the medians: only
        runs next to each other saw the same machine.
        """
        ratios = [pair.ratio for pair in self.pairs if pair.ratio is not None]
        return statistics.summarise(ratios) if ratios else None

    @property
    def values(self) -> dict[str, Any]:
        """Pairs with a ratio and without; the medians in SI units, and the ratio with its spread."""
        ratios = self.ratios
        if ratios is None:
            return {"n": 0, "failed": len(self.pairs)}
        whole = [pair for pair in self.pairs if pair.ratio is not None]
        return {
            "ours": statistics.median([pair.ours or 0.0 for pair in whole]),
            "reference": statistics.median([pair.reference or 0.0 for pair in whole]),
            "ratio": ratios.median,
            "minimum": ratios.minimum,
            "maximum": ratios.maximum,
            "low": ratios.low,
            "high": ratios.high,
            "level": ratios.level,
            "others": statistics.median([pair.others for pair in self.pairs]),
            "n": ratios.n,
            "failed": len(self.pairs) - ratios.n,
        }

    @property
    def verdict(self) -> str:
        """See ``judge``."""
        return judge(self.row.target, self.ratios)

    @property
    def unit(self) -> str:
        """SI unit of both values."""
        if self.row.group == "network" and self.row.metric == "throughput":
            return "bit/s"
        return _UNITS.get(self.row.metric, "s")


def cells(line: Line) -> dict[str, str]:
    """The line's text by its heading."""
    row, found = line.row, line.values
    texts = {"row": row.name, "against": row.against, "target": str(row.target)}
    if not found["n"]:
        return {**texts, "n": "0", "verdict": "-", "others": line.note or "not measured"}
    return {
        **texts,
        "ours": quantity(found["ours"], line.unit),
        "reference": quantity(found["reference"], line.unit),
        "ratio": f"{found['ratio']:.3f}",
        "spread": f"{found['minimum']:.3f} to {found['maximum']:.3f}",
        "interval": f"{found['low']:.3f} to {found['high']:.3f} ({100 * found['level']:.0f} %)",
        "n": f"{found['n']}" + (f" ({found['failed']} failed)" if found["failed"] else ""),
        "verdict": line.verdict,
        "others": f"{found['others']:.0%}" + (" !" if found["others"] > DISTURBED else ""),
    }


def markdown(lines: Sequence[Line]) -> str:
    """All lines as aligned Markdown tables, one for each group."""
    names = "row against ours reference ratio spread interval n target verdict others"
    headings, parts = names.split(), []
    for group in dict.fromkeys(line.row.group for line in lines):
        texts = [cells(line) for line in lines if line.row.group == group]
        rows = [[text.get(name, "") for name in headings] for text in texts]
        parts.append(f"{group}\n\n{results.markdown(headings, rows)}")
    return "\n".join(parts)


def to_csv(lines: Sequence[Line]) -> str:
    """A line for each row: the table's columns, with numbers in SI units."""
    rows = [{"group": line.row.group, **cells(line), **line.values} for line in lines]
    units = [line.unit for line in lines]
    return str(pd.DataFrame(rows).assign(unit=units).to_csv(index=False))


def legend(lines: Sequence[Line]) -> str:
    """How many targets were met; what the columns mean is in docs/performance.md."""
    words = [line.verdict.removesuffix("?") for line in lines]
    counts = (f"{words.count(word)} {word}" for word in ("met", "missed", "no pair"))
    return f"{', '.join(counts)}; columns: docs/performance.md"
