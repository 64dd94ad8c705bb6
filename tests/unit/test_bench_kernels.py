"""The benchmark of the kernels: ratios, verdicts, tables, choice of rows; one real turn."""

import csv
import io
import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from benchmarks.kernels import __main__ as command
from benchmarks.kernels import namespaces, pairs, table
from benchmarks.kernels.pairs import GROUPS, KIB, MIB, Plan, Row, Target
from benchmarks.kernels.run import INSTRUMENTS, Run, Runner
from benchmarks.kernels.table import Line, Pair, judge
from tests.unit import campaign_data
from tests.unit.cases import cases
from tests.unit.hostile import KERNELS

from peakmark import statistics
from peakmark.errors import Unavailable
from peakmark.machine.facts import collect
from peakmark.tools.base import Measurement

CACHES = (48 * KIB, MIB, 32 * MIB)
ROWS = pairs.rows(Plan(seconds=0.5, cpus=2, small_pages=True, caches=CACHES))
PEAK = next(one for one in ROWS if one.against == pairs.PEAK and one.ours.workload == "DP")
CLOCK = next(one for one in ROWS if one.metric == "clock")
CLOCKS = {"clock_hz_before": 3.1e9, "clock_hz_after": 2.9e9}


def row(workload, against):
    return next(one for one in ROWS if one.ours.workload == workload and one.against == against)


def measured(**details):
    return Run((Measurement("DP", "", None, 1, "rate", 1e9, "op/s", details),))


def runner():
    return Runner(KERNELS, Path(), campaign_data.VM, {})


def test_the_ratio_is_the_median_of_the_pairs_ratios_and_failed_pairs_have_none():
    # The machine halves its speed after two pairs, which the ratio of the medians, 20 / 11, shows.
    pairs = [Pair(20, 22), Pair(20, 20), Pair(10, 11), Pair(10, 10), Pair(10, 10.5)]
    found = Line(PEAK, pairs).values
    assert (found["ours"], found["reference"]) == (10, 11)
    assert found["ratio"] == pytest.approx(10 / 10.5)
    failed = [Pair(None, 3.0), Pair(3.0, None)]
    assert Line(PEAK, [Pair(1.0, 1.0), *failed]).values["failed"] == 2
    assert Line(PEAK, failed).values["n"] == 0 and Line(PEAK, failed).verdict == "no pair"


@cases("numbers")
def test_verdicts(target, found, word):
    ratio, low, high = found
    ratios = replace(statistics.summarise([ratio]), low=low, high=high)
    assert judge(Target(**target), ratios) == word


def test_the_table_scales_and_the_csv_is_in_si_units():
    unrolled = row("RS", "pmbw UnrollLoop")
    text = table.cells(Line(unrolled, [Pair(99e9, 1e11, 0.2)] * 5))
    shown = [text[name] for name in ("ours", "ratio", "verdict", "others")]
    assert shown == ["99 GB/s", "0.990", "missed", "20% !"]
    run = Run(routines={"ScanRead256PtrSimpleLoop": 1e11, "ScanRead256PtrUnrollLoop": 2e11})
    assert (run.value(unrolled), run.value(row("RS", "likwid-bench"))) == (2e11, None)
    latency = Line(row("LAT", "pmbw"), [Pair(2e-9, 1e-9), Pair(None, 1e-9)], "cut")
    lines = [latency, Line(row("TCP", "iperf3"), note="n/a: iperf3 not found")]
    assert "iperf3 not found" in table.markdown(lines)
    summary = table.to_csv(lines)
    first, second = csv.DictReader(io.StringIO(summary))
    assert (float(first["ours"]), float(first["ratio"]), first["unit"]) == (2e-9, 2.0, "s")
    assert [first[key] for key in ("n", "failed", "verdict", "row")] == [
        "1",
        "1",
        "missed",
        latency.row.name,
    ]
    assert [second[key] for key in ("unit", "ratio", "n")] == ["bit/s", "", "0"]


def test_both_sides_of_every_row_can_be_measured_alike():
    for one in ROWS:
        for cell in filter(None, (one.ours, one.reference)):
            instrument = INSTRUMENTS[cell.instrument]
            instrument.check(cell)
            assert instrument.estimate(cell).seconds > 0
        other = one.reference or one.ours
        assert one.ours.concurrency == other.concurrency
        assert (one.working_set or one.ours.block) == other.block
        assert not INSTRUMENTS[one.ours.instrument].reference
        if one.ours.variant == "pool" and one.against == "likwid-bench":
            assert one.ours.options["store"] == other.options["store"]
    assert {one.group for one in ROWS} == set(GROUPS)
    single = pairs.rows(Plan(0.5, 1, small_pages=False))
    assert {one.ours.concurrency for one in single if one.group != "network"} == {1}
    # Pages are small only where pmbw has small ones.
    for rows, pages in ((ROWS, False), (single, True)):
        areas = [one.ours.options for one in rows if one.ours.workload == "LAT"]
        assert {options.get("huge_pages", True) for options in areas} == {pages}


def test_a_ladder_is_compared_at_points_of_it():
    ladders = [one for one in ROWS if one.working_set]
    sizes = {24 * KIB << step for step in range(13)}
    assert len(ladders) == 4 + 3 + 1  # pmbw measures no 96 MiB
    assert {one.working_set for one in ladders} <= sizes
    assert max(one.working_set for one in ladders) <= 4 * CACHES[-1]
    points = [[size, 1e9 + size] for size in sizes]
    level = Measurement("LADDER-RS", "l1-small", None, 1, "ladder_throughput", 1.0, "B/s", {"points": points})  # fmt: skip
    one = next(one for one in ladders if one.against == "likwid-bench")
    theirs = Measurement("RS", "block", one.working_set, 1, "throughput", 1e9, "B/s", {})
    pair, wrong = runner()._pair(one, Run((level,)), Run((theirs,)))
    assert (pair.ours, pair.reference, wrong) == (1e9 + one.working_set, 1e9, "")
    assert runner()._pair(one, Run(), Run((theirs,)))[0].ours is None


def test_rows_are_chosen_by_the_beginning_of_their_name(capsys):
    chosen = command.select(ROWS, ["memory LAT", "cpu DP x2"], quick=False)
    assert {(one.ours.workload, one.group) for one in chosen} == {("LAT", "memory"), ("DP", "cpu")}
    assert {one.ours.concurrency for one in chosen if one.group == "cpu"} == {2}
    quick = command.select(ROWS, [], quick=True)
    assert 0 < len(quick) < len(ROWS) / 2 and {one.group for one in quick} == set(GROUPS)
    with pytest.raises(Unavailable, match="'gpu'"):
        command.select(ROWS, ["gpu"], quick=False)
    for words in (["--pairs", "4"], ["--seconds", "0"]):
        with pytest.raises(SystemExit):
            command.arguments(words)
        assert words[0] in capsys.readouterr().err


def test_clock_and_peak_are_those_under_the_work():
    for details in ({}, {**CLOCKS, "clock_hz_loaded": None}):
        lacking, why = runner()._pair(CLOCK, measured(**details), None)
        assert lacking.ratio is None and why
    ours = measured(**CLOCKS, clock_hz_loaded=2.7e9)
    pair, wrong = runner()._pair(CLOCK, ours, None)
    assert (pair.ours, pair.reference, pair.ratio, wrong) == (2.7e9, 3e9, pytest.approx(0.9), "")
    for of, clock in ((ours, 2.7e9), (measured(**CLOCKS), 3e9)):
        assert runner()._pair(PEAK, of, None)[0].reference == pytest.approx(clock * 16)
    # What the core's other thread takes of its pipes is not the kernel's.
    for held_up in (0, 1):
        pair, why = runner()._pair(PEAK, measured(**CLOCKS, held_up=held_up), None)
        assert (pair.ratio is None) == bool(why) == bool(held_up)


@pytest.mark.parametrize(("one", "calm", "turns"), [(PEAK, 1, 5), (PEAK, 2, 10), (PEAK, 9, 15), (CLOCK, 9, 5)])  # fmt: skip
def test_a_spoiled_peak_gets_three_times_as_many_turns(one, calm, turns):
    @dataclass
    class Crowded(Runner):
        turns: int = 0

        def turn(self, rows):
            self.turns += 1
            whole = self.turns % calm == 0 or rows[0].against != pairs.PEAK
            return [(Pair(1.0, 1.0), "") if whole else (Pair(None, None), "held up")]

    crowded = Crowded(KERNELS, Path(), {"limits": {"cpus_allowed": [0]}}, {})
    lines = []
    command.measure(crowded, [one], 5, lines)
    assert (crowded.turns, len(lines[0].pairs)) == (turns, turns)


def test_one_real_turn(tmp_path):
    if not (KERNELS / "rambench").exists():
        pytest.skip("the kernels are not built")
    short, pool = {"seconds": 0.02, "warmup": 0}, ("RWR", "pool", KIB, 1)
    ours, libc, theirs = (
        pairs._cell("memory", name, pool, **short, pool=MIB, **store)
        for name, store in (("rambench", {}), ("rambench", {"store": "libc"}), ("pmbw", {}))
    )
    cpu = pairs._cell("cpu", "cpubench", ("DP", "", None, 1), **short)
    rows = [Row(ours, other, "throughput", Target(low=1.0)) for other in (libc, theirs)]
    rows.append(Row(cpu, None, "rate", Target(low=0.97)))
    absent = {"pmbw": str(tmp_path / "absent")}
    here = Runner(KERNELS, tmp_path, collect(tmp_path), absent)
    (first, _), (second, why), (third, unknown) = here.turn(rows)
    assert first.ratio is not None and first.ratio > 0
    assert second.ratio is None and "not found" in why
    # Where the CPU's design is in no table, or others use its pipes, the line says so.
    assert third.ratio is not None or unknown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and ip")
def test_namespaces_are_removed_also_after_an_error():
    def listed():
        return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout

    try:
        with suppress(KeyboardInterrupt), namespaces.joined() as names:
            assert names.client in listed() and names.server in listed()
            raise KeyboardInterrupt
    except Unavailable as error:
        pytest.skip(str(error))
    assert names.client not in listed() and names.server not in listed()
