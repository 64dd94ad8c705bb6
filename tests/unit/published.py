"""The numbers of published reports, as ``reports/published`` has them, and the rows files made of
them: ``PEAKMARK_GOLDEN=write pytest tests/unit/config/test_published.py`` writes these anew.
"""

import csv
import json
from dataclasses import dataclass

import pandas as pd

from peakmark import plan, statistics
from peakmark.config import campaign
from peakmark.resources import ROOT
from peakmark.rows import schema
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


TITLES = {
    "isa": "instruction set", "store": "stores", "direct": "O_DIRECT", "sync": "sync", "fill": "fill",
}  # fmt: skip
"""How a report says that it measured -> title of the setting in a comparison."""


def variants(name):
    """Return subsystem, workload, block and concurrency -> the variant that the preset measures."""
    found = {}
    for cell in plan.make(campaign.read([ROOT / "config" / "presets" / f"{name}.yaml"])).cells:
        place = cell.subsystem, cell.workload, cell.block, cell.concurrency
        found.setdefault(place, cell.variant)
    return found


def frames(name):
    """Return a set as a judged campaign: its runs and rows, and the hardware as a fact."""
    entries = {entry.key: entry for entry in measured(name)}
    variant_of, runs_, rows = variants(name), [], []
    for key, values in runs(name).items():
        entry, own = entries[key], BY_NAME[key[0]].own.instrument
        block = rounded(entry.block)
        place = BY_NAME[entry.table].subsystem, entry.workload, block, entry.concurrency
        usual = "psync" if place[0] == "disk" else ""
        told = {TITLES[way]: word for way, word in entry.definition.items() if way in TITLES}
        line = {
            "table": entry.table, "node": "any", "workload": entry.workload,
            "variant": variant_of.get(place, usual), "block_bytes": block,
            "concurrency": entry.concurrency, "concurrency_word": "",
        }  # fmt: skip
        point = "/".join(str("" if part is None else part) for part in line.values())
        line |= {"point": point, "subsystem": place[0], "instrument": entry.instrument}
        line |= {"unit": entry.unit, "is_own": entry.instrument == own}
        summary = statistics.summarise(values)
        numbers = {
            "n": summary.n, "planned": summary.n, "missing": 0, "measured_again": 0,
            "above_limit": 0, "value": summary.median, "mean": summary.mean,
            "median": summary.median, "sd": summary.stdev, "min": summary.minimum,
            "max": summary.maximum, "low": summary.low, "high": summary.high,
            "level": summary.level, "resolution": 0.0,
        }  # fmt: skip
        settings = json.dumps(told, ensure_ascii=False)
        more = {"program": entry.program, "limit_kind": "none", "settings": settings, "hosts": "[]"}
        rows.append(line | numbers | more)
        for repetition, value in enumerate(values):
            run = {"status": "ok", "metric": entry.metric, "value": value, "kept": True}
            runs_.append(line | run | {"host": name, "attempt": 0, "repetition": repetition})
    hardware = json.dumps(next(iter(entries.values())).hardware, ensure_ascii=False)
    facts = [{"host": name, "key": "cpu.model_name", "value": hardware}]
    every = {"runs": runs_, "rows": rows, "facts": facts}
    typed = {each: schema.typed(each, pd.DataFrame(every.get(each, []))) for each in schema.FILES}
    title = next(iter(entries.values())).source
    return schema.CampaignFrames(**typed, campaign={
        "name": name, "config": {"report": {"title": title}}, "cells": len(runs_), "missing": 0,
        "damaged": [], "times": {}, "versions": [],
    })  # fmt: skip
