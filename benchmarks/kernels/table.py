"""What is printed and written: one line per row, every pair, and the machine's facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks import results
from benchmarks.kernels.pairs import Row
from benchmarks.kernels.ratios import Comparison, Pair, compare, judge
from peakmark.formatting import significant

# Above this share of the machine used by others a line says so.
DISTURBED = 0.05
_SCALES = {
    "op/s": (1e9, "Gop/s"),
    "Hz": (1e9, "GHz"),
    "B/s": (1e9, "GB/s"),
    "bit/s": (1e9, "Gbit/s"),
}
_UNITS = {"rate": "op/s", "clock": "Hz", "throughput": "B/s", "latency": "s"}
_UNITS |= {"loaded_latency": "s", "core_to_core": "s"}


@dataclass
class Line:
    """A row with what was measured for it. ``note`` is the first thing that went wrong, or why
    there is nothing.
    """

    row: Row
    pairs: list[Pair] = field(default_factory=list)
    note: str = ""

    @property
    def comparison(self) -> Comparison | None:
        return compare(self.pairs)

    @property
    def verdict(self) -> str:
        """See ``judge``."""
        return judge(self.row.target, self.comparison)


def unit(row: Row) -> str:
    """SI unit of both values of a row."""
    if row.group == "network" and row.metric == "throughput":
        return "bit/s"
    return _UNITS[row.metric]


def scale(value: float, si_unit: str) -> tuple[float, str]:
    """What to divide a value by, and the unit it then has: ``(1e9, GB/s)``, ``(1e-9, ns)``."""
    if si_unit == "s":
        return (1e-9, "ns") if value < 1e-6 else (1e-6, "us")
    if si_unit == "B/s" and value < 1e8:
        return 1e6, "MB/s"
    return _SCALES[si_unit]


def cells(line: Line) -> dict[str, str]:
    """The line's text by its heading."""
    row, found = line.row, line.comparison
    texts = {"row": row.name, "against": row.against, "target": str(row.target)}
    if found is None or found.ours is None or found.reference is None:
        return {**texts, "n": "0", "verdict": "-", "others": line.note or "not measured"}
    by, name = scale(found.ours, unit(row))
    ratios = found.ratios
    return {
        **texts,
        "ours": significant(found.ours / by),
        "reference": significant(found.reference / by),
        "unit": name,
        "ratio": f"{ratios.median:.3f}",
        "spread": f"{ratios.minimum:.3f} to {ratios.maximum:.3f}",
        "interval": f"{ratios.low:.3f} to {ratios.high:.3f} ({100 * ratios.level:.0f} %)",
        "n": f"{ratios.n}" + (f" ({found.failed} failed)" if found.failed else ""),
        "verdict": line.verdict,
        "others": f"{found.others:.0%}" + (" !" if found.others > DISTURBED else ""),
    }


def markdown(lines: Sequence[Line]) -> str:
    """All lines as aligned Markdown tables, one for each group."""
    names = "row against ours reference unit ratio spread interval n target verdict others"
    headings = names.split()
    parts = []
    for group in dict.fromkeys(line.row.group for line in lines):
        texts = [cells(line) for line in lines if line.row.group == group]
        rows = [[text.get(name, "") for name in headings] for text in texts]
        parts.append(f"{group}\n\n{results.markdown(headings, rows)}")
    return "\n".join(parts)


def legend(lines: Sequence[Line]) -> str:
    """What the columns mean and how many targets were met."""
    words = [line.verdict.removesuffix("?") for line in lines]
    return (
        f"{words.count('met')} met, {words.count('missed')} missed, {words.count('no pair')} not measured.\n"
        "ratio: median of the pairs' ratios, ours / reference; spread: the smallest and largest of them; interval: of the\n"
        "median, with its probability. A verdict goes by the median alone; with '?' its interval holds the target's end.\n"
        f"others: share of the machine that other processes used meanwhile, marked '!' above {DISTURBED:.0%}."
    )


def summary_csv(lines: Sequence[Line], machine: Mapping[str, Any]) -> str:
    """One line per row in SI units, the machine's facts (scalars) repeated in each."""
    return results.to_csv({**_summary(line), **machine} for line in lines)


def _summary(line: Line) -> dict[str, Any]:
    row, found, ours = line.row, line.comparison, line.row.ours
    ratios = found.ratios if found else None
    values = {
        "ours": found and found.ours,
        "reference": found and found.reference,
        "ratio": ratios and ratios.median,
        "minimum": ratios and ratios.minimum,
        "maximum": ratios and ratios.maximum,
        "low": ratios and ratios.low,
        "high": ratios and ratios.high,
        "level": ratios and ratios.level,
    }
    return {
        **{"group": row.group, "row": row.name, "workload": ours.workload, "variant": ours.variant},
        **{"block": ours.block, "concurrency": ours.concurrency, "route": row.route},
        **{"against": row.against, "unit": unit(row), **values},
        "n": ratios.n if ratios else 0,
        "failed": found.failed if found else len(line.pairs),
        **{"target_low": row.target.low, "target_high": row.target.high, "verdict": line.verdict},
        **{"others": found and found.others, "note": line.note},
    }
