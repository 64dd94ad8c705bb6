"""What the benchmarks print and write: aligned tables, CSV, the machine's facts."""

from __future__ import annotations

import datetime
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import statistics
from peakmark.errors import PeakmarkError
from peakmark.files import write_text
from peakmark.formatting import significant


def facts_in_short(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a line below a table says of the machine."""
    cpu = facts["cpu"]
    return {
        "host": facts["host"],
        "cpu": cpu.get("model_name"),
        "microarchitecture": cpu.get("microarchitecture"),
        "cpus": len(facts["limits"]["cpus_allowed"]),
        "clock_hz": (cpu.get("clock_hz") or {}).get("observed"),
        "kernel": facts["os"].get("kernel"),
        "load": round(os.getloadavg()[0], 2),
    }


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """An aligned Markdown table."""
    rows = [headings, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in padded)


def publish(directory: Path, facts: Mapping[str, Any], table: str, *more: str) -> Path:
    """Print a table, ``more`` and the machine in short; write ``table.md`` and ``machine.json`` into
    a folder named after the time. Returns it.
    """
    folder = directory / datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    write_text(folder / "table.md", table)
    write_text(folder / "machine.json", json.dumps(facts, indent=1, sort_keys=True) + "\n")
    short = ", ".join(f"{key} {value}" for key, value in facts_in_short(facts).items())
    print(table, *more, short, f"written to {folder}", sep="\n")
    return folder


def run(main: Callable[[], int], name: str) -> None:
    """Run a benchmark to the end of this process. SIGTERM ends it as an error does, so that
    namespaces, control groups and files are removed.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        sys.exit(main())
    except PeakmarkError as failure:
        sys.exit(f"{name}: {failure}")


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
        unit = "" if self.reference else f" {self.unit}"
        target = "" if self.at_most is None else f"at most {self.at_most:g}{unit}"
        ratio = f"{statistics.median(self.judged):.3f}" if self.reference else ""
        spread = f"{min(self.judged):.3g} to {max(self.judged):.3g}"
        n = str(len(self.judged))
        return [self.name, ours, self.beside, reference, ratio, spread, n, target, self.verdict]
