"""The numbers of published reports, as ``reports/published`` has them."""

import csv
from dataclasses import dataclass

from peakmark.resources import ROOT
from peakmark.tools.tables import BY_NAME

FOLDER = ROOT / "reports" / "published"
THEORETICAL = "theoretical"
COPIES = ("RWS", "RWR")
RUNS = ("run", "mean", "", "final")
"""Averages count only where the runs themselves are not printed; the first kind that there is."""
INSTRUMENTS = {"hpl": "hpl", "pmbw": "pmbw", "iozone": "iozone", "iperf": "iperf3", "ping": "ping"}
"""Programs as reports call them -> the instrument here; any other is a kernel's."""
DECIMAL = {10**9: 1 << 30, 10**6: 1 << 20, 10**3: 1 << 10}
"""Units of reports that count in 1000 -> those of the presets that repeat them."""


@dataclass(frozen=True)
class Entry:
    """One line: a value in SI base units; ``block`` is in bytes, None where there is none."""

    source: str
    hardware: str
    table: str
    workload: str
    concurrency: int
    block: int | None
    program: str
    metric: str
    value: float
    unit: str
    run: str
    note: str
    definition: dict[str, str]

    @property
    def instrument(self):
        return INSTRUMENTS.get(self.program.lower(), BY_NAME[self.table].own.instrument)

    @property
    def is_measured(self):
        return self.program != THEORETICAL and self.metric == BY_NAME[self.table].metric

    @property
    def like_here(self):
        """The value as peakmark counts it: a copied byte is read and written."""
        once = self.definition.get("copied") == "once" and self.workload in COPIES
        return 2 * self.value if once and self.table == "memory_throughput" else self.value

    @property
    def key(self):
        return self.table, self.workload, rounded(self.block), self.concurrency, self.instrument


def rounded(block):
    """Return the block of a preset that repeats one of so many bytes."""
    for decimal, binary in DECIMAL.items():
        if block and block % decimal == 0:
            return block // decimal * binary
    return block


def load(name):
    """Read every line of a set."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [_entry(line) for line in csv.DictReader(file)]


def _entry(line):
    parts = (part.partition("=") for part in line.pop("definition").split(";") if part.strip())
    program = line.pop("instrument")
    numbers = {
        "concurrency": int(line["concurrency"]),
        "block": int(line["block"]) if line["block"] else None,
        "value": float(line["value"]),
        "definition": {name.strip(): word.strip() for name, _, word in parts},
    }
    return Entry(**{**line, **numbers, "program": program})


def measured(name):
    """Read the measured values of a set: no limits, efficiencies and deviations."""
    return [entry for entry in load(name) if entry.is_measured]


def runs(name):
    """Return the measured values of each row: the single runs, else the average that is printed."""
    by_key = {}
    for entry in measured(name):
        kind = "run" if entry.run.isdecimal() else entry.run
        by_key.setdefault(entry.key, {}).setdefault(kind, []).append(entry.like_here)
    return {key: kinds[min(kinds, key=RUNS.index)] for key, kinds in by_key.items()}
