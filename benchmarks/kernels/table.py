"""What is printed and written: one line per row, every pair, and the machine's facts."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.kernels.pairs import Row
from benchmarks.kernels.ratios import Comparison, Pair, Verdict, compare, judge
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
HEADINGS = (
    "row",
    "against",
    "ours",
    "reference",
    "unit",
    "ratio",
    "spread",
    "interval",
    "n",
    "target",
    "verdict",
    "others",
    "had CPUs",
)


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
    def verdict(self) -> Verdict:
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


def cells(line: Line) -> tuple[str, ...]:
    """The line's text below HEADINGS."""
    row, found = line.row, line.comparison
    if found is None:
        return (
            row.name,
            row.against,
            "",
            "",
            "",
            "",
            "",
            "",
            "0",
            str(row.target),
            "-",
            line.note or "not measured",
            "",
        )
    si_unit = unit(row)
    by, name = scale(found.ours, si_unit)
    ours, theirs = significant(found.ours / by), significant(found.reference / by)
    count = f"{found.n}" + (f" ({found.failed} failed)" if found.failed else "")
    others = f"{100 * found.neighbours:.0f} %" + (" !" if found.neighbours > DISTURBED else "")
    return (
        *(row.name, row.against, ours, theirs, name, f"{found.ratio:.3f}"),
        f"{found.minimum:.3f} to {found.maximum:.3f}",
        f"{found.low:.3f} to {found.high:.3f} ({100 * found.level:.0f} %)",
        *(count, str(row.target), str(line.verdict), others, _had(found)),
    )


def _had(found: Comparison) -> str:
    """``0.99, 1.00``: own kernel, reference."""
    return ", ".join(f"{share:.2f}" for share in (found.had, found.theirs_had) if share is not None)


def markdown(lines: Sequence[Line]) -> str:
    """All lines as aligned Markdown tables, one for each group."""
    parts = []
    for group in dict.fromkeys(line.row.group for line in lines):
        rows = [HEADINGS, *(cells(line) for line in lines if line.row.group == group)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
        text = [
            "| "
            + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            + " |"
            for row in rows
        ]
        text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        parts.append(f"{group}\n\n" + "\n".join(text) + "\n")
    return "\n".join(parts)


def legend(lines: Sequence[Line]) -> str:
    """What the columns mean and how many targets were met."""
    words = [line.verdict.word for line in lines]
    return (
        f"{words.count('met')} met, {words.count('missed')} missed, {words.count('no pair')} not measured.\n"
        "ratio: median of the pairs' ratios, ours / reference; spread: the smallest and largest of them; interval: of the\n"
        "median, with its probability. A verdict goes by the median alone; with '?' its interval holds the target's end.\n"
        f"others: share of the machine that other processes used meanwhile, marked '!' above {100 * DISTURBED:.0f} %.\n"
        "had CPUs: for which share of the time that their threads wanted a CPU ours and the reference had one; with\n"
        "--per-cpu-time the ratio is that of what each did in that time."
    )


def summary_csv(lines: Sequence[Line], machine: Mapping[str, Any]) -> str:
    """One line per row in SI units, the machine's facts (scalars) repeated in each."""
    fields = [
        "group",
        "row",
        "workload",
        "variant",
        "block",
        "concurrency",
        "route",
        "against",
        "unit",
    ]
    fields += [
        "ours",
        "reference",
        "ratio",
        "minimum",
        "maximum",
        "low",
        "high",
        "level",
        "n",
        "failed",
    ]
    fields += ["target_low", "target_high", "verdict", "others", "had", "theirs_had", "note"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*fields, *machine])
    for line in lines:
        row, found = line.row, line.comparison
        point = [
            row.group,
            row.name,
            row.ours.workload,
            row.ours.variant,
            row.ours.block,
            row.ours.concurrency,
            row.route,
        ]
        numbers: list[Any] = [""] * 8 + [0, len(line.pairs)]
        others: list[Any] = ["", "", ""]
        if found is not None:
            numbers = [
                found.ours,
                found.reference,
                found.ratio,
                found.minimum,
                found.maximum,
                found.low,
                found.high,
            ]
            numbers += [found.level, found.n, found.failed]
            others = [found.neighbours, found.had, found.theirs_had]
        end = [row.target.low, row.target.high, str(line.verdict), *others, line.note]
        writer.writerow([*point, row.against, unit(row), *numbers, *end, *machine.values()])
    return out.getvalue()


def pairs_csv(lines: Sequence[Line]) -> str:
    """Every pair in the order measured, also the failed and the disturbed ones."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "group",
            "row",
            "against",
            "pair",
            "unit",
            "ours",
            "reference",
            "ratio",
            "others",
            "had",
            "theirs_had",
        ]
    )
    for line in lines:
        for number, one in enumerate(line.pairs):
            name = (line.row.group, line.row.name, line.row.against, number, unit(line.row))
            writer.writerow(
                [
                    *name,
                    one.ours,
                    one.reference,
                    one.ratio,
                    round(one.neighbours, 4),
                    one.had,
                    one.theirs_had,
                ]
            )
    return out.getvalue()
