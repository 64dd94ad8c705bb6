"""The benchmark of the kernels: ratios of pairs, verdicts, table, choice of rows; one real turn and
the namespaces.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from benchmarks.kernels import __main__ as command
from benchmarks.kernels import had, namespaces, pairs, presets, table
from benchmarks.kernels.neighbours import Reading, share
from benchmarks.kernels.pairs import GROUPS, KIB, MIB, Plan, Row
from benchmarks.kernels.ratios import Comparison, Pair, Target, compare, judge
from benchmarks.kernels.run import Run, Runner
from benchmarks.kernels.table import Line
from tests.programs import needs
from tests.unit import campaign_data

from peakmark import machine, yamlfile
from peakmark.instruments import REGISTRY
from peakmark.instruments.base import Measurement
from peakmark.instruments.programs import rambench
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.planning import plan
from peakmark.reasons import Unavailable

KERNELS = Path(__file__).parents[2] / "build" / "kernels"
PLAN = Plan(seconds=0.5, cpus=2, small_pages=True)
ROWS = pairs.rows(PLAN)


def pair(ratio: float, reference: float = 10.0, neighbours: float = 0.0) -> Pair:
    return Pair(ratio * reference, reference, neighbours)


def comparison(ratio: float, low: float, high: float) -> Comparison:
    return Comparison(5, 0, ratio, 1.0, ratio, low, high, low, high, 0.9375, 0.0)


def test_the_ratio_is_the_median_of_the_pairs_ratios() -> None:
    # The machine halves its speed after two pairs: the ratio of the medians, 20 / 11, would tell of
    # nothing but that.
    found = compare([Pair(20, 22), Pair(20, 20), Pair(10, 11), Pair(10, 10), Pair(10, 10.5)])
    assert found is not None
    assert found.ratio == pytest.approx(10 / 10.5)
    assert (found.ours, found.reference) == (10, 11)
    assert (found.minimum, found.maximum) == (pytest.approx(20 / 22), 1.0)


def test_five_pairs_give_the_whole_range_and_its_true_level() -> None:
    found = compare([pair(ratio) for ratio in (1.0, 0.5, 1.2, 1.1, 0.9)])
    assert found is not None
    assert (found.low, found.high, found.level) == (0.5, 1.2, 1 - 2 / 2**5)


def test_nine_pairs_narrow_the_interval_but_keep_the_disturbed_one_in_the_spread() -> None:
    found = compare([pair(ratio) for ratio in (0.1, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.2)])
    assert found is not None
    assert (found.ratio, found.low, found.high) == (1.0, 0.9, 1.1)
    assert (found.minimum, found.maximum) == (0.1, 1.2)
    assert found.level >= 0.95


def test_failed_pairs_are_counted_and_have_no_ratio() -> None:
    found = compare([pair(1.0), Pair(None, 3.0), Pair(3.0, None), pair(3.0, neighbours=0.4)])
    assert found is not None
    assert (found.n, found.failed, found.ratio) == (2, 2, 2.0)
    assert compare([Pair(None, 3.0)]) is None
    assert compare([]) is None


@pytest.mark.parametrize(
    ("target", "found", "word"),
    [
        (Target(low=1.0), comparison(1.2, 1.1, 1.3), "met"),
        (Target(low=1.0), comparison(1.2, 0.9, 1.3), "met?"),
        (Target(low=1.0), comparison(1.0, 1.0, 1.0), "met"),
        (Target(low=1.0), comparison(0.99999, 0.9, 0.99999), "missed"),
        (Target(low=1.0), comparison(0.99999, 0.9, 1.1), "missed?"),
        (Target(low=1.0, strict=True), comparison(1.0, 0.9, 1.1), "missed?"),
        (Target(0.98, 1.02), comparison(1.0, 0.98, 1.02), "met"),
        (Target(0.98, 1.02), comparison(1.0, 0.5, 1.02), "met?"),
        (Target(0.98, 1.02), comparison(1.1, 1.05, 1.2), "missed"),
        (Target(0.98, 1.02), comparison(1.1, 1.01, 1.2), "missed?"),
        (Target(0.98, 1.02), comparison(1.1, 0.9, 1.2), "missed?"),
        (Target(high=1.0), comparison(0.8, 0.7, 0.9), "met"),
        (Target(high=1.0), comparison(1.1, 1.05, 1.2), "missed"),
        (Target(low=1.0), None, "no pair"),
    ],
)
def test_verdicts(target: Target, found: Comparison | None, word: str) -> None:
    assert str(judge(target, found)) == word


def test_targets_in_words() -> None:
    words = [
        str(Target(low=1.0)),
        str(Target(low=1.0, strict=True)),
        str(Target(0.98, 1.02)),
        str(Target(high=1.0)),
    ]
    assert words == ["at least 1", "above 1", "0.98 to 1.02", "at most 1"]


def test_neighbours_have_what_is_not_ours() -> None:
    assert share(Reading(0, 100, 10), Reading(2, 103, 11), 2) == 0.5
    assert share(Reading(0, 100, 10), Reading(2, 102, 12), 2) == 0.0
    assert share(Reading(0, 100, 10), Reading(2, 101.99, 12), 2) == 0.0  # the counter of 10 ms lags
    assert share(Reading(1, 100, 10), Reading(1, 100, 10), 2) == 0.0


def row(workload: str, against: str) -> Row:
    return next(one for one in ROWS if one.ours.workload == workload and one.against == against)


def test_table_shows_scaled_values_and_the_verdict() -> None:
    line = Line(
        row("RS", "pmbw UnrollLoop"),
        [Pair(99e9 * factor, 1e11, 0.2) for factor in (1.0, 1.1, 0.9, 1.0, 1.0)],
    )
    text = dict(zip(table.HEADINGS, table.cells(line), strict=True))
    assert text == {
        "row": "RS block 1KiB x1",
        "against": "pmbw UnrollLoop",
        "ours": "99.00",
        "reference": "100.0",
        "unit": "GB/s",
        "ratio": "0.990",
        "spread": "0.891 to 1.089",
        "interval": "0.891 to 1.089 (94 %)",
        "n": "5",
        "target": "at least 1",
        "verdict": "missed?",
        "others": "20 % !",
        "had CPUs": "",
    }


def test_a_routine_is_compared_with_its_own_value() -> None:
    run = Run(routines={"ScanRead256PtrSimpleLoop": 1e11, "ScanRead256PtrUnrollLoop": 2e11})
    assert run.value(row("RS", "pmbw UnrollLoop")) == 2e11
    assert run.value(row("RS", "pmbw SimpleLoop")) == 1e11
    assert run.value(row("RS", "likwid-bench")) is None


def test_table_says_what_was_not_measured_and_why() -> None:
    line = Line(row("RS", "pmbw UnrollLoop"), note="n/a: pmbw not found")
    assert "n/a: pmbw not found" in table.markdown([line])
    assert "0 met, 0 missed, 1 not measured" in table.legend([line])


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (2e9, "B/s", (1e9, "GB/s")),
        (2e7, "B/s", (1e6, "MB/s")),
        (2e-9, "s", (1e-9, "ns")),
        (2e-5, "s", (1e-6, "us")),
    ],
)
def test_scales(value: float, unit: str, expected: tuple[float, str]) -> None:
    assert table.scale(value, unit) == expected


def test_csv_is_in_si_units_with_the_machine_in_every_line() -> None:
    lines = [
        Line(row("LAT", "pmbw"), [Pair(2e-9, 1e-9), Pair(None, 1e-9)], "cut"),
        Line(row("TCP", "iperf3")),
    ]
    first, second = csv.DictReader(
        io.StringIO(table.summary_csv(lines, {"host": "n1", "load": 0.5}))
    )
    assert (float(first["ours"]), float(first["ratio"]), first["unit"]) == (2e-9, 2.0, "s")
    assert (first["n"], first["failed"], first["verdict"], first["note"]) == (
        "1",
        "1",
        "missed",
        "cut",
    )
    assert (second["unit"], second["ratio"], second["n"], second["verdict"]) == (
        "bit/s",
        "",
        "0",
        "no pair",
    )
    assert {one["host"] for one in (first, second)} == {"n1"}
    whole, failed = csv.DictReader(io.StringIO(table.pairs_csv(lines)))
    assert (whole["ratio"], failed["ours"], failed["ratio"]) == ("2.0", "", "")


def test_every_row_can_be_prepared_by_both_sides() -> None:
    """An instrument refuses a cell that is not its own; each side must be one that the other can be
    compared with.
    """
    for one in ROWS:
        for cell in (one.ours, one.reference):
            if cell is not None:
                instrument = REGISTRY[cell.instrument]
                assert cell.workload in instrument.workloads[cell.subsystem]
                assert instrument.estimate(cell).seconds > 0
        if one.reference is not None:
            assert (one.ours.block, one.ours.concurrency) == (
                one.reference.block,
                one.reference.concurrency,
            )
        assert not REGISTRY[one.ours.instrument].reference
    assert {one.group for one in ROWS} == set(GROUPS)


def test_rows_need_a_cpu_for_each_thread() -> None:
    single = pairs.rows(Plan(0.5, 1, small_pages=True))
    assert {one.ours.concurrency for one in single if one.group != "network"} == {1}


def test_pages_are_small_only_where_pmbw_has_small_ones() -> None:
    for small in (True, False):
        found = [one for one in pairs.rows(Plan(0.5, 2, small)) if one.ours.workload == "LAT"]
        assert {one.ours.options.get("huge_pages", True) for one in found} == {not small}


def test_rows_are_chosen_by_the_beginning_of_their_name() -> None:
    chosen = command.select(ROWS, ["memory LAT", "cpu DP x2"], quick=False)
    assert {(one.ours.workload, one.group) for one in chosen} == {("LAT", "memory"), ("DP", "cpu")}
    assert {one.ours.concurrency for one in chosen if one.group == "cpu"} == {2}
    quick = command.select(ROWS, [], quick=True)
    assert 0 < len(quick) < len(ROWS) / 2
    assert {one.group for one in quick} == set(GROUPS)
    with pytest.raises(Unavailable, match="'gpu' fits no row"):
        command.select(ROWS, ["gpu"], quick=False)


def test_a_cell_that_fills_several_rows_is_counted_once_per_turn() -> None:
    disk = [one for one in ROWS if one.bundle == f"disk psync {4 * KIB} 1"]
    assert len(disk) == 8
    cells = {one.reference.spec() for one in disk if one.reference}
    assert len(cells) == 5  # fio four times, IOZone once
    assert command.expected_seconds(disk, 5) == pytest.approx(5 * command.expected_seconds(disk, 1))


@pytest.mark.parametrize("words", [["--pairs", "4"], ["--seconds", "0"]])
def test_too_little_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.arguments(words)
    assert stopped.value.code == 2
    assert words[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    "details", [{}, {"clock_hz_loaded": None, "clock_hz_before": 3e9, "clock_hz_after": 3e9}]
)
def test_a_run_that_could_not_tell_the_clock_under_the_work_is_no_pair(
    details: dict[str, float | None],
) -> None:
    clock = next(one for one in ROWS if one.metric == "clock")
    ours = Run((Measurement("DP", "", None, 1, "rate", 1e9, "op/s", details),))
    lacking, why = Runner(KERNELS, Path(), {}, {})._pair(clock, ours, None)
    assert lacking.ratio is None and why == "the kernel told no clock under the work"


def test_the_clock_under_the_work_stands_beside_the_one_before_and_after() -> None:
    """For each workload and number of threads as it is measured, and in plain C, which lowers no
    clock.
    """
    clocks = [one for one in ROWS if one.metric == "clock"]
    peaks = [one for one in ROWS if one.against == pairs.PEAK]
    assert [one.ours for one in clocks if "isa" not in one.ours.options] == [
        one.ours for one in peaks
    ]
    assert {one.name for one in clocks} == {
        name for one in peaks for name in (one.name, one.name.replace(" x", " scalar x"))
    }
    details = {"clock_hz_loaded": 2.7e9, "clock_hz_before": 3.1e9, "clock_hz_after": 2.9e9}
    ours = Run((Measurement("DP", "", None, 1, "rate", 1e9, "op/s", details),), had=0.5)
    pair, wrong = Runner(KERNELS, Path(), {}, {}, per_cpu_time=True)._pair(clocks[0], ours, None)
    assert (pair.ours, pair.reference, pair.ratio, wrong) == (2.7e9, 3e9, pytest.approx(0.9), "")
    text = dict(zip(table.HEADINGS, table.cells(Line(clocks[0], [pair] * 5)), strict=True))
    assert (text["against"], text["ours"], text["unit"]) == (
        "clock before and after",
        "2.700",
        "GHz",
    )


def test_work_that_a_neighbour_held_up_is_no_pair_of_the_peak() -> None:
    """What the core's other thread takes of its pipes is not the kernel's; the reference stands
    beside it as before.
    """
    facts = json.loads((campaign_data.DATA / "machine" / "zen3-vm.json").read_text())
    peak = next(one for one in ROWS if one.against == pairs.PEAK and one.ours.workload == "DP")
    for held_up, why in ((1, "something else used the pipes of 1 of its cores"), (0, "")):
        details = {"clock_hz_before": 3.1e9, "clock_hz_after": 2.9e9, "held_up": held_up}
        ours = Run((Measurement("DP", "", None, 1, "rate", 1e9, "op/s", details),))
        pair, wrong = Runner(KERNELS, Path(), facts, {})._pair(peak, ours, None)
        assert (pair.ratio is None, wrong) == (bool(held_up), why)


def test_a_peak_that_was_spoiled_gets_more_turns() -> None:
    """As many whole pairs as were asked for, if three times as many turns have them; other rows get
    no more.
    """

    @dataclass
    class Crowded(Runner):
        calm: int = 1
        turns: int = 0

        def turn(self, rows: Sequence[Row]) -> list[tuple[Pair, str]]:
            self.turns += 1
            whole = self.turns % self.calm == 0 or rows[0].against != pairs.PEAK
            return [(Pair(1.0, 1.0) if whole else Pair(None, None), "" if whole else "held up")]

    peak, other = (
        next(one for one in ROWS if (one.against == pairs.PEAK) is wanted)
        for wanted in (True, False)
    )
    for row, calm, expected in ((peak, 1, 5), (peak, 2, 10), (peak, 9, 15), (other, 9, 5)):
        runner, lines = (
            Crowded(KERNELS, Path(), {"limits": {"cpus_allowed": [0]}}, {}, calm=calm),
            list[Line](),
        )
        command.measure(runner, [row], 5, 0.0, lines)
        assert (runner.turns, len(lines[0].pairs)) == (expected, expected)


def test_the_peak_is_that_of_the_clock_under_the_work() -> None:
    facts = json.loads((campaign_data.DATA / "machine" / "zen3-vm.json").read_text())
    peak = next(one for one in ROWS if one.against == pairs.PEAK and one.ours.workload == "DP")
    runner = Runner(KERNELS, Path(), facts, {})

    def limit(**clocks: float) -> float:
        details = {f"clock_hz_{when}": value for when, value in clocks.items()}
        return runner._limit(peak, Measurement("DP", "", None, 1, "rate", 1e9, "op/s", details))

    assert limit(loaded=2.7e9, before=3.1e9, after=2.9e9) == pytest.approx(2.7e9 * 16)
    assert limit(before=3.1e9, after=2.9e9) == pytest.approx(3e9 * 16)


def test_one_real_turn(tmp_path: Path) -> None:
    if not (KERNELS / "rambench").exists():
        pytest.skip("the kernels are not built")
    ours = pairs._cell(
        "memory", "rambench", "RWR", "pool", KIB, 1, seconds=0.02, warmup=0, pool=MIB
    )
    libc = pairs._cell(
        "memory", "rambench", "RWR", "pool", KIB, 1, seconds=0.02, warmup=0, pool=MIB, store="libc"
    )
    cpu = pairs._cell("cpu", "cpubench", "DP", "", None, 1, seconds=0.02, warmup=0)
    rows = [
        Row(ours, libc, "throughput", Target(low=1.0)),
        Row(
            ours,
            pairs._cell("memory", "pmbw", "RWS", "pool", KIB, 1),
            "throughput",
            Target(low=1.0),
        ),
        Row(cpu, None, "rate", Target(low=0.97)),
        Row(cpu, None, "clock", Target(high=1.05)),
    ]
    runner = Runner(
        KERNELS, tmp_path, machine.collect(tmp_path), {"pmbw": str(tmp_path / "absent")}
    )
    (first, _), (second, why), (third, unknown), (fourth, untold) = runner.turn(rows)
    assert first.ratio is not None
    assert first.ratio > 0
    assert second.ratio is None
    assert "not found" in why
    # Where the CPU's design is in no table there is no peak, and the line says so.
    assert third.ratio is not None or unknown.startswith("n/a: ")
    assert fourth.ratio is not None or "told no clock" in untold
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and ip"
)
def test_namespaces_are_removed_also_after_an_error() -> None:
    def there() -> str:
        return subprocess.run(
            ["ip", "netns", "list"], capture_output=True, text=True, check=True
        ).stdout

    try:
        with namespaces.joined() as names:
            assert names.client in there()
            assert names.server in there()
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    except Unavailable as error:
        pytest.skip(str(error))
    assert names.client not in there()
    assert names.server not in there()


@needs("likwid-bench", "pmbw")
@pytest.mark.parametrize("name", ["quick", "full"])
def test_a_presets_rows_are_its_own_cells_each_beside_its_like(name: str) -> None:
    seats = topology.read(Host(), sorted(os.sched_getaffinity(0)))
    rows = presets.rows(name, seats, sorted(os.sched_getaffinity(0)), 64 << 30)
    assert {row.group for row in rows} == {"cpu", "memory"}
    planned = {
        cell.id for cell in plan.make(yamlfile.read(Path(f"config/presets/{name}.yaml"))).cells
    }
    for row in rows:
        assert row.ours.id in planned and (
            row.ours.variant != "pool" or row.ours.options["pool"] != "auto"
        )
        if row.reference is not None:
            assert row.reference.id in planned
            assert (row.reference.variant, row.reference.block) == (
                row.ours.variant,
                row.ours.block,
            )
            if row.group == "memory":
                assert rambench.store_of(row.reference) == rambench.store_of(row.ours)
    with pytest.raises(Unavailable, match=r"choose one of .*quick"):
        presets.rows("none", seats, [0], 1 << 30)


def test_pool_rows_compare_stores_with_their_like() -> None:
    for row in pairs.rows(Plan(0.5, 2, False)):
        if row.group == "memory" and row.ours.variant == "pool" and row.against == "likwid-bench":
            assert row.ours.options["store"] == row.reference.options["store"]  # type: ignore[union-attr]
            assert str(row.ours.options["store"]) in row.name


def test_what_each_did_in_the_time_that_it_had() -> None:
    """A fifth of the rate with a fifth of a CPU is the same rate; without the option the ratio
    stays as it was measured.
    """
    fifth = [Pair(2e10, 1e11, 0.8, 0.2, 1.0, per_cpu_time) for per_cpu_time in (False, True)]
    assert [one.ratio for one in fifth] == [pytest.approx(0.2), pytest.approx(1.0)]
    assert Pair(2e10, 1e11, 0.8, None, 1.0, per_cpu_time=True).ratio == pytest.approx(0.2)
    line = Line(row("RS", "likwid-bench"), fifth[1:] * 5)
    assert dict(zip(table.HEADINGS, table.cells(line), strict=True))["had CPUs"] == "0.20, 1.00"


def test_a_thread_that_shares_its_cpu_is_seen_to_have_half_of_it() -> None:
    cpu = min(os.sched_getaffinity(0))
    spin = [
        "taskset",
        "-c",
        str(cpu),
        sys.executable,
        "-c",
        "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass",
    ]
    with had.watching() as watch:
        both = [subprocess.Popen(spin) for _ in range(2)]
        assert [one.wait(120) for one in both] == [0, 0]
    assert watch.share is not None and 0 < watch.share < 0.8
    with had.watching() as watch:
        pass
    assert watch.share is None
