"""Published results: transcribed whole, fed through the tables, set beside a machine."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.config.published_sets import entries_of

from peakmark.config import published
from peakmark.instruments.tables import BY_NAME

# Rows, and the sums of printed columns (own program, reference) in the report's units, added up by
# a second reading of the reports with another program; factor: printed value x factor = SI value.
SUMS = [
    ("four-subsystems-2018-hyperion", "cpu", "", 12, 112.265931, 181.7263, 1e9),
    ("four-subsystems-2018-hyperion", "memory_throughput", "", 18, 186.360983, 276.30658, 1e9),
    ("four-subsystems-2018-hyperion", "memory_latency", "", 6, 0.7186086, 0.256136, 1e-6),
    ("four-subsystems-2018-hyperion", "disk_throughput", "", 36, 2415.577707, 13747.067, 1e6),
    ("four-subsystems-2018-hyperion", "disk_latency", "", 16, 0.096553447, 1.0814, 1e-3),
    ("four-subsystems-2018-hyperion", "disk_iops", "", 16, 42345.27677, 93139.11722, 1.0),
    ("four-subsystems-2018-hyperion", "network_throughput", "", 16, 129858.1734, 72210.13, 1e6),
    ("four-subsystems-2018-hyperion", "network_latency", "", 8, 0.079081658, 15.92, 1e-3),
    ("four-subsystems-2018-prometheus", "cpu", "", 12, 168.945278, 171.6223, 1e9),
    ("four-subsystems-2018-prometheus", "disk_throughput", "", 36, 9241.140262, 8845, 1e6),
    ("four-subsystems-2018-prometheus", "disk_latency", "", 16, 0.053146, 18.94, 1e-3),
    ("four-subsystems-2018-prometheus", "disk_iops", "", 16, 9004432.493, 8223726, 1.0),
    ("four-subsystems-2018-prometheus", "memory_throughput", "", 18, 89.226365, 263.56, 1e9),
    ("four-subsystems-2018-prometheus", "memory_latency", "", 6, 0.462845, 1.2235, 1e-6),
    ("four-subsystems-2018-prometheus", "network_throughput", "", 16, 78819.81013, 70508.94, 1e6),
    ("four-subsystems-2018-prometheus", "network_latency", "", 8, 1.523991, 0.02431, 1e-3),
    (
        "disk-patterns-2020",
        "disk_throughput",
        "1",
        84,
        4700 + 8483 + 8197 + 4827,
        9551 + 8796 + 8430 + 9492,
        1e6,
    ),
    (
        "disk-patterns-2020",
        "disk_throughput",
        "2",
        84,
        4577 + 8574 + 8268 + 4819,
        9562 + 8783 + 8437 + 9531,
        1e6,
    ),
    (
        "disk-patterns-2020",
        "disk_throughput",
        "3",
        84,
        4572 + 8531 + 8178 + 4797,
        9543 + 8788 + 8417 + 9518,
        1e6,
    ),
    (
        "disk-patterns-2020",
        "disk_throughput",
        "mean",
        84,
        4611 + 8532 + 8211 + 4816,
        9552 + 8786 + 8421 + 9516,
        1e6,
    ),
    (
        "disk-patterns-2020",
        "disk_throughput",
        "final",
        84,
        4607 + 8531 + 8209 + 4816,
        9552 + 8783 + 8421 + 9506,
        1e6,
    ),
    ("disk-patterns-2020", "disk_iops", "", 14, 194395 + 38689, 308802 + 392663, 1.0),
    ("file-io-lab", "disk_throughput", "", 48, 20009.035286, 49594.766488, 1e6),
    ("file-io-lab", "disk_iops", "", 8, 83650.9541, 260435.85, 1.0),
]


# Efficiencies in percent, summed up as printed (own program, reference).
EFFICIENCIES = [
    ("four-subsystems-2018-hyperion", "cpu", 41.411568, 246.91074),
    ("four-subsystems-2018-hyperion", "disk_throughput", 402.596293, 2291.17783),
    ("four-subsystems-2018-hyperion", "disk_iops", 732.3006209, 1610.706991),
    ("four-subsystems-2018-prometheus", "disk_latency", 1589.3708, -2188),
    ("four-subsystems-2018-prometheus", "memory_latency", -2485.633333, -7556.66666),
    ("four-subsystems-2018-prometheus", "network_latency", -216912.947, -2672.857147),
    (
        "disk-patterns-2020",
        "disk_throughput",
        908.45 + 1672.11 + 1608.4 + 963.81,
        1871.6 + 1720.3 + 1650.2 + 1862.8,
    ),
    ("disk-patterns-2020", "disk_iops", 215.9 + 386.89, 342.84 + 3926.63),
]


# (set, table, workload, concurrency, block, program, run) -> value in SI units, read by eye.
SPOTS = [
    ("four-subsystems-2018-hyperion", "cpu", "DP", 2, None, "HPL", "", 73.4327e9),
    (
        "four-subsystems-2018-hyperion",
        "memory_throughput",
        "RWR",
        4,
        10 << 20,
        "MyRAMBench",
        "mean",
        19.75224e9,
    ),
    (
        "four-subsystems-2018-hyperion",
        "disk_throughput",
        "RR",
        2,
        100 << 20,
        "MyDiskBench",
        "mean",
        82.888889e6,
    ),
    (
        "four-subsystems-2018-hyperion",
        "disk_latency",
        "WR",
        128,
        1024,
        "MyDiskBench",
        "mean",
        5.733333e-6,
    ),
    ("four-subsystems-2018-hyperion", "disk_iops", "RR", 4, 1024, "IOZone", "", 36895.14572),
    (
        "four-subsystems-2018-hyperion",
        "network_latency",
        "UDP",
        4,
        1,
        "MyNETBench",
        "mean",
        1.55e-8,
    ),
    (
        "four-subsystems-2018-prometheus",
        "disk_throughput",
        "WR",
        4,
        10 << 20,
        "MyDiskBench",
        "",
        164.275875e6,
    ),
    ("four-subsystems-2018-prometheus", "memory_latency", "RWR", 4, 1, "pmbw", "", 0.516e-6),
    (
        "four-subsystems-2018-prometheus",
        "network_throughput",
        "UDP",
        8,
        32 << 10,
        "iperf",
        "",
        9217.62e6,
    ),
    ("disk-patterns-2020", "disk_throughput", "RS", 12, 16 << 20, "MyDiskBench", "2", 464e6),
    ("disk-patterns-2020", "disk_iops", "RR", 48, 4096, "IOZone", "", 81608.0),
    ("six-core-evaluation", "memory_throughput", "RWS", 2, 1024, "memorybench", "", 7780.415994e6),
    ("file-io-lab", "disk_throughput", "RR", 8, 16 << 20, "FileIO", "", 2209.681055e6),
    ("file-io-lab", "disk_iops", "WR", 8, 4096, "IOZone", "", 19596.54),
]


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


@pytest.mark.parametrize(("name", "table", "run", "rows", "own", "reference", "factor"), SUMS)
def test_the_sums_are_those_of_the_report(
    name: str, table: str, run: str, rows: int, own: float, reference: float, factor: float
) -> None:
    sums: dict[bool, list[float]] = {True: [], False: []}
    for entry in published.load(name).measured():
        if entry.table == table and (not run or entry.run == run):
            sums[entry.instrument == BY_NAME[table].own.instrument].append(entry.value / factor)
    assert len(sums[True]) == rows
    assert math.fsum(sums[True]) == pytest.approx(own, rel=1e-8)
    assert math.fsum(sums[False]) == pytest.approx(reference, rel=1e-8)


@pytest.mark.parametrize(("name", "table", "own", "reference"), EFFICIENCIES)
def test_the_printed_efficiencies_are_kept_as_they_are(
    name: str, table: str, own: float, reference: float
) -> None:
    found = [
        entry for entry in entries_of(name) if entry.table == table and entry.metric == "efficiency"
    ]
    mine = [
        100 * entry.value for entry in found if entry.instrument == BY_NAME[table].own.instrument
    ]
    assert math.fsum(mine) == pytest.approx(own, rel=1e-8)
    assert math.fsum(100 * entry.value for entry in found) - math.fsum(mine) == pytest.approx(
        reference, rel=1e-6
    )


@pytest.mark.parametrize(
    ("name", "table", "workload", "concurrency", "block", "program", "run", "value"), SPOTS
)
def test_single_values_are_as_printed(
    name: str,
    table: str,
    workload: str,
    concurrency: int,
    block: int | None,
    program: str,
    run: str,
    value: float,
) -> None:
    found = [
        entry.value
        for entry in published.load(name).measured()
        if (entry.table, entry.workload, entry.concurrency, entry.block, entry.program, entry.run)
        == (table, workload, concurrency, block, program, run)
    ]
    assert found == [pytest.approx(value, rel=1e-6)]


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
    assert "doubled here" in found.remarks[own]
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
