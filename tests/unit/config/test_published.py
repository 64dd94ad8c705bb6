"""Published results: transcribed whole, fed through the tables, set beside a machine."""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections import Counter
from pathlib import Path

import pytest
from tests.unit import campaign_data as make
from tests.unit.config.published_sets import entries_of

from peakmark.config import published
from peakmark.tools.tables import BY_NAME

DATA = make.DATA / "published"


def _lines(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("path", sorted(published.FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_every_set_is_whole_and_in_the_tables_units(path: Path) -> None:
    entries = entries_of(path.stem)
    keys = Counter(
        (e.table, e.workload, e.concurrency, e.block, e.program, e.metric, e.run) for e in entries
    )
    assert [key for key, count in keys.items() if count > 1] == []
    for entry in entries:
        table = BY_NAME[entry.table]
        assert entry.source
        assert entry.hardware
        assert (entry.block is None) == (table.block is None)
        assert entry.metric in (table.metric, "efficiency", "standard_deviation")
        assert entry.unit == ("1" if entry.metric == "efficiency" else table.unit)


@pytest.mark.parametrize("line", _lines("sums.csv"), ids=str)
def test_the_sums_are_those_of_the_report(line: dict[str, str]) -> None:
    """Rows, and the sums of printed columns (own program, reference) in the report's units, added
    up by a second reading of the reports with another program; factor: printed value x factor = SI
    value.
    """
    sums: dict[bool, list[float]] = {True: [], False: []}
    own = BY_NAME[line["table"]].own.instrument
    for entry in published.load(line["set"]).measured():
        if entry.table == line["table"] and line["run"] in ("", entry.run):
            sums[entry.instrument == own].append(entry.value / float(line["factor"]))
    assert len(sums[True]) == int(line["rows"])
    assert math.fsum(sums[True]) == pytest.approx(float(line["own"]), rel=1e-8)
    assert math.fsum(sums[False]) == pytest.approx(float(line["reference"]), rel=1e-8)


@pytest.mark.parametrize("line", _lines("efficiencies.csv"), ids=str)
def test_the_printed_efficiencies_are_kept_as_they_are(line: dict[str, str]) -> None:
    """In percent, summed up as printed (own program, reference)."""
    sums: dict[bool, list[float]] = {True: [], False: []}
    own = BY_NAME[line["table"]].own.instrument
    for entry in entries_of(line["set"]):
        if entry.table == line["table"] and entry.metric == "efficiency":
            sums[entry.instrument == own].append(100 * entry.value)
    assert math.fsum(sums[True]) == pytest.approx(float(line["own"]), rel=1e-8)
    assert math.fsum(sums[False]) == pytest.approx(float(line["reference"]), rel=1e-6)


@pytest.mark.parametrize("line", _lines("spots.csv"), ids=str)
def test_single_values_are_as_printed(line: dict[str, str]) -> None:
    """Values in SI units, read by eye."""
    keys = ("table", "workload", "concurrency", "block", "program", "run")
    found = []
    for entry in published.load(line["set"]).measured():
        block = "" if entry.block is None else str(entry.block)
        place = (
            entry.table,
            entry.workload,
            str(entry.concurrency),
            block,
            entry.program,
            entry.run,
        )
        if place == tuple(line[key] for key in keys):
            found.append(entry.value)
    assert found == [pytest.approx(float(line["value"]), rel=1e-6)]


def test_what_the_printed_numbers_contradict_is_noted() -> None:
    notes = {
        (entry.workload, entry.concurrency, entry.metric): entry.note
        for entry in entries_of("four-subsystems-2018-prometheus")
        if entry.table == "cpu" and entry.program == "MyCPUBench"
    }
    assert "changed places" in notes["DP", 1, "rate"]
    assert "give 6.327 %" in notes["DP", 1, "efficiency"]
    for name in ("four-subsystems-2018-hyperion", "four-subsystems-2018-prometheus"):
        for entry in entries_of(name):
            if entry.table == "disk_iops" and entry.program == published.THEORETICAL:
                assert entry.note


def test_copies_that_were_counted_once_are_doubled_and_say_so() -> None:
    found = published.load("four-subsystems-2018-hyperion")
    own, reference = (
        published.beside("memory_throughput", "RWS", 1 << 20, 1, name)
        for name in ("rambench", "pmbw")
    )
    assert found.value(own) == pytest.approx(2 * 3.973819e9)
    assert found.value(reference) == pytest.approx(27.8342e9)
    assert any("doubled here" in remark for remark in found.remarks[own])
    assert reference not in found.remarks


def _first_report() -> dict[tuple[str, ...], published.Entry]:
    return {
        (
            one.table,
            one.workload,
            str(one.concurrency),
            str(one.block),
            one.program,
            one.metric,
        ): one
        for one in published.load("four-subsystems-2018-hyperion").entries
        if one.program != published.THEORETICAL
    }


def test_the_first_reports_slips_are_noted_with_their_evidence() -> None:
    """Each note is worked out again from the printed numbers; rows without one do not have what it
    says.
    """
    found = _first_report()
    counts: Counter[str] = Counter()
    for (table, workload, threads, block, program, metric), entry in found.items():

        def beside(
            other: str,
            its: str,
            at: str = table,
            where: tuple[str, ...] = (workload, threads, block),
        ) -> float:
            return found[(at, *where, other, its)].value

        if (table, program, metric) == ("disk_iops", "IOZone", "iops"):
            apart = entry.value - beside("MyDiskBench", "iops")
            round_number = abs(apart - round(apart)) <= 0.05
            assert ("a round number" in entry.note) == round_number
            assert not round_number or f"{apart:.2f} away" in entry.note
            counts["round"] += round_number
        if table == "disk_iops" and metric == "iops":
            could = int(threads) / beside(program, "latency", "disk_latency")
            assert could > 2 * entry.value or could < entry.value / 2
            assert f"would make {float(f'{could:.3g}'):.0f} operations per second" in entry.note
            counts["excluded"] += 1
        if (table, program, metric) == (
            "memory_throughput",
            "MyRAMBench",
            "throughput",
        ) and "whole seconds" in entry.note:
            seconds = [
                int(one) for one in re.findall(r"in (\d+), (\d+) and (\d+) s", entry.note)[0]
            ]
            rates = [100e9 / one for one in seconds]
            assert entry.value == pytest.approx(statistics.mean(rates), rel=2e-6)
            assert beside(program, "standard_deviation") == pytest.approx(
                statistics.stdev(rates), rel=1e-4
            )
            counts["whole seconds"] += 1
        said = re.search(r"the log of IOZone in the same report says ([\d.]+) kB/s", entry.note)
        if said:
            logged = float(said.group(1)) * 1024
            assert f"{logged / 1e6:.1f} MB/s" in entry.note and not 0.6 < logged / entry.value < 1.6
            counts["log"] += 1
    for workload in ("QP", "HP"):
        one, two = (
            found["cpu", workload, threads, "None", "MyCPUBench", "rate"] for threads in ("1", "2")
        )
        assert two.value > 6 * one.value
        assert f"{two.value / one.value:.1f} times" in two.note
    assert counts == {"round": 7, "excluded": 32, "whole seconds": 14, "log": 4}
