"""A campaign beside a program that wakes for 6 s each half minute: real records, an artificial clock."""

import json
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark.analysis.analysis import Analysis
from peakmark.run import cleanup, lock, measure, noise
from peakmark.storage.results import Results
from peakmark.tools.base import Measurement, Parsed

PERIOD_S, AWAKE_S, CPUS = 30.0, 6.0, 2
QUIET = {"steal": 0.0, "busy": 0, "users": 0, "throttled_s": None, "hot": None}


class Machine:
    """Measures cells by their golden records, on a clock of its own; the other program takes half
    of the CPUs while it is awake. Of a row the first value counts, within one per cent.
    """

    def __init__(self, golden: Path, bursts: bool) -> None:
        self.now, self.bursts = 3.0, bursts
        self.golden, self.bases = golden, dict[Any, float]()

    def awake(self, begin: float, end: float) -> float:
        """Seconds of an interval in which the other program computes."""
        if not self.bursts:
            return 0.0
        first, last = int(begin // PERIOD_S), int(end // PERIOD_S)
        spans = ((begin, end, PERIOD_S * number) for number in range(first, last + 1))
        return sum(max(0.0, min(b, start + AWAKE_S) - max(a, start)) for a, b, start in spans)

    def read(self, _: Any) -> Any:
        moment = {"load": None, "clock_hz": None, "clock_limit_hz": None, "celsius": None}
        return SimpleNamespace(at=self.now, to_json=lambda: {**moment, "running": 0, "users": 0})

    def between(self, before: Any, after: Any) -> dict[str, Any]:
        seconds = after.at - before.at
        share = self.awake(before.at, after.at) / seconds
        return {**QUIET, "seconds": seconds, "others": share * CPUS}

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def measure_once(self, request: Any, attempt: Any) -> None:
        cell = request.cell
        record = json.loads((self.golden / "cells" / f"{cell.id}.json").read_text())
        began = self.now
        self.sleep(min(record["context"]["seconds"], 2.0))
        lost = self.awake(began, self.now) / (self.now - began) / 2
        own = ("started", "noise", "server_noise", "seconds", "load_before", "load_after")
        kept = {name: value for name, value in record["context"].items() if name not in own}
        attempt.context |= {**kept, "clock_hz_before": 3e9, "clock_hz_after": 3e9}
        measured = []
        for number, entry in enumerate(record["measurements"]):
            row = (cell.row, number)
            jitter = 1 + 0.01 * (cell.repetition - 1)
            value = self.bases.setdefault(row, entry["value"]) * jitter
            slower = 1 / (1 - lost) if entry["unit"] == "s" else 1 - lost
            details = {**entry["details"], "cpu_share": 1 - lost, "held_up": 0}
            measured.append(Measurement(**{**entry, "value": value * slower, "details": details}))
        attempt.parsed = Parsed(tuple(measured))
        self.sleep(0.4)


def measured(
    golden: Path, folder: Path, patch: pytest.MonkeyPatch, bursts: bool, repeats: int
) -> Analysis:
    """The campaign as it comes out beside that program or alone."""
    machine = Machine(golden, bursts)
    clock = {"monotonic": lambda: machine.now, "time": time.time, "sleep": machine.sleep}
    patch.setattr(noise, "time", SimpleNamespace(**clock))
    patch.setattr(measure, "time", SimpleNamespace(**clock))
    patch.setattr(noise, "read", machine.read)
    patch.setattr(noise, "between", machine.between)
    patch.setattr(measure, "_measure_once", machine.measure_once)
    patch.setattr(lock, "held", nullcontext)
    patch.setattr(cleanup, "watchdog", nullcontext)
    (folder / "machine").mkdir(parents=True)
    for path in (golden / "plan.json", *golden.glob("machine/*.json")):
        (folder / path.relative_to(golden)).write_bytes(path.read_bytes())
    for cell in Results.read(golden).planned:
        if cell.instrument != "rambench":
            continue
        output = folder / "cells" / f"{cell.id}.json"
        measure.measure(measure.Request(cell, output, folder, Path(), repeats=repeats))
    return Analysis.of(folder)


def marked(analysis: Analysis) -> int:
    rows = [row for table in analysis.rows.values() for row in table]
    return sum(row.own is not None and row.level is not None for row in rows)


def again(analysis: Analysis) -> int:
    return sum(bool(record.data["disturbed"]) for record in analysis.results.records)


def test_beside_bursts_no_more_rows_are_marked_than_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = make.golden("two-nodes", tmp_path / "golden")
    alone, once, twice = (
        measured(golden, tmp_path / name, monkeypatch, name != "alone", repeats)
        for name, repeats in (("alone", 2), ("once", 0), ("twice", 2))
    )
    assert marked(twice) <= marked(alone) < marked(once)
    assert (again(alone), again(once)) == (0, 0) and again(twice) > 0
