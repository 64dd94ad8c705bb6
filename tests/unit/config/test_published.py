"""Published results: transcribed whole, fed through the tables, set beside a machine."""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark.catalogue.tables import BY_NAME
from peakmark.cell import Cell
from peakmark.config import layouts, published, site
from peakmark.errors import ConfigError
from peakmark.judging.rows import build as build_rows
from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.tables import presentation, sheets, tables

NAME = "disk-patterns-2020"
DIFFERENCES = make.DATA / "seeds" / "disk-patterns-2020-differences.csv"

# Rows, and the sums of printed columns (own program, reference) in the report's units, added up by a second reading of the
# reports with another program; factor: printed value x factor = SI value.
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
    ("disk-patterns-2020", "disk_throughput", "1", 84, 4700 + 8483 + 8197 + 4827, 9551 + 8796 + 8430 + 9492, 1e6),
    ("disk-patterns-2020", "disk_throughput", "2", 84, 4577 + 8574 + 8268 + 4819, 9562 + 8783 + 8437 + 9531, 1e6),
    ("disk-patterns-2020", "disk_throughput", "3", 84, 4572 + 8531 + 8178 + 4797, 9543 + 8788 + 8417 + 9518, 1e6),
    ("disk-patterns-2020", "disk_throughput", "mean", 84, 4611 + 8532 + 8211 + 4816, 9552 + 8786 + 8421 + 9516, 1e6),
    ("disk-patterns-2020", "disk_throughput", "final", 84, 4607 + 8531 + 8209 + 4816, 9552 + 8783 + 8421 + 9506, 1e6),
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
    ("disk-patterns-2020", "disk_throughput", 908.45 + 1672.11 + 1608.4 + 963.81, 1871.6 + 1720.3 + 1650.2 + 1862.8),
    ("disk-patterns-2020", "disk_iops", 215.9 + 386.89, 342.84 + 3926.63),
]

# (set, table, workload, concurrency, block, program, run) -> value in SI units, read by eye.
SPOTS = [
    ("four-subsystems-2018-hyperion", "cpu", "DP", 2, None, "HPL", "", 73.4327e9),
    ("four-subsystems-2018-hyperion", "memory_throughput", "RWR", 4, 10 << 20, "MyRAMBench", "mean", 19.75224e9),
    ("four-subsystems-2018-hyperion", "disk_throughput", "RR", 2, 100 << 20, "MyDiskBench", "mean", 82.888889e6),
    ("four-subsystems-2018-hyperion", "disk_latency", "WR", 128, 1024, "MyDiskBench", "mean", 5.733333e-6),
    ("four-subsystems-2018-hyperion", "disk_iops", "RR", 4, 1024, "IOZone", "", 36895.14572),
    ("four-subsystems-2018-hyperion", "network_latency", "UDP", 4, 1, "MyNETBench", "mean", 1.55e-8),
    ("four-subsystems-2018-prometheus", "disk_throughput", "WR", 4, 10 << 20, "MyDiskBench", "", 164.275875e6),
    ("four-subsystems-2018-prometheus", "memory_latency", "RWR", 4, 1, "pmbw", "", 0.516e-6),
    ("four-subsystems-2018-prometheus", "network_throughput", "UDP", 8, 32 << 10, "iperf", "", 9217.62e6),
    ("disk-patterns-2020", "disk_throughput", "RS", 12, 16 << 20, "MyDiskBench", "2", 464e6),
    ("disk-patterns-2020", "disk_iops", "RR", 48, 4096, "IOZone", "", 81608.0),
    ("six-core-evaluation", "memory_throughput", "RWS", 2, 1024, "memorybench", "", 7780.415994e6),
    ("file-io-lab", "disk_throughput", "RR", 8, 16 << 20, "FileIO", "", 2209.681055e6),
    ("file-io-lab", "disk_iops", "WR", 8, 4096, "IOZone", "", 19596.54),
]


def _entries(name: str) -> tuple[published.Entry, ...]:
    return published.load(name).entries


@pytest.mark.parametrize("path", sorted(published.FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_every_set_is_whole_and_in_the_tables_units(path: Path) -> None:
    entries = _entries(path.stem)
    keys = Counter((e.table, e.workload, e.concurrency, e.block, e.program, e.metric, e.run) for e in entries)
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
def test_the_printed_efficiencies_are_kept_as_they_are(name: str, table: str, own: float, reference: float) -> None:
    found = [entry for entry in _entries(name) if entry.table == table and entry.metric == "efficiency"]
    mine = [100 * entry.value for entry in found if entry.instrument == BY_NAME[table].own.instrument]
    assert math.fsum(mine) == pytest.approx(own, rel=1e-8)
    assert math.fsum(100 * entry.value for entry in found) - math.fsum(mine) == pytest.approx(reference, rel=1e-6)


@pytest.mark.parametrize(("name", "table", "workload", "concurrency", "block", "program", "run", "value"), SPOTS)
def test_single_values_are_as_printed(
    name: str, table: str, workload: str, concurrency: int, block: int | None, program: str, run: str, value: float
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
        for entry in _entries("four-subsystems-2018-prometheus")
        if entry.table == "cpu" and entry.program == "MyCPUBench"
    }
    assert "changed places" in notes["DP", 1, "rate"]
    assert "give 6.327 %" in notes["DP", 1, "efficiency"]
    for name in ("four-subsystems-2018-hyperion", "four-subsystems-2018-prometheus"):
        for entry in _entries(name):
            if entry.table == "disk_iops" and entry.program == published.THEORETICAL:
                assert entry.note


def _fed(folder: Path) -> Results:
    """A campaign of the three runs of the report, with the theoretical values that it used."""
    records = []
    for entry in published.load(NAME).measured():
        if entry.run.isdigit() or entry.table == "disk_iops":
            repetition = int(entry.run or 1) - 1
            variant = "psync"
            of = Cell(
                "disk", entry.instrument, entry.workload, variant, entry.block, entry.concurrency, "any", repetition, {}
            )
            records.append(make.record(of, [make.measurement(of, entry.metric, entry.value)]))
    facts = site.load(ROOT / "config" / "sites" / "chameleon-skylake-ssd.yaml")
    return Results.read(
        make.write(folder, records, config={"site_facts": facts, "report": {"tables": NAME, "summary": "mean"}})
    )


def _printed(quantity: str, run: str, table: str = "disk_throughput") -> dict[tuple[str, int, int | None, str], float]:
    metric = "efficiency" if quantity == "efficiency" else BY_NAME[table].metric
    return {
        (entry.workload, entry.concurrency, entry.block, entry.program): entry.value
        for entry in _entries(NAME)
        if entry.table == table and entry.metric == metric and entry.run == run
        if entry.program != published.THEORETICAL
    }


def _listed() -> dict[tuple[str, str, str, str, str, str], tuple[float, float, str]]:
    with DIFFERENCES.open(encoding="utf-8", newline="") as file:
        return {
            (line["table"], line["quantity"], line["workload"], line["concurrency"], line["record"], line["program"]): (
                float(line["printed"]),
                float(line["computed"]),
                line["why"],
            )
            for line in csv.DictReader(file)
        }


def test_the_tables_give_the_averages_and_efficiencies_of_the_report_but_for_what_is_listed(tmp_path: Path) -> None:
    results = _fed(tmp_path / NAME)
    tables.build(tmp_path / NAME)
    rows = build_rows(results)
    found: dict[tuple[str, str, str, str, str, str], tuple[float, float]] = {}
    compared = 0
    for sheet in layouts.load(NAME).sheets:
        quantities = ("average",) if sheet.name.endswith("_runs") else ("average", "efficiency")
        for line in sheets.lines(sheet, rows[sheet.table.name]):
            (row,) = line.rows
            for column in sheet.columns:
                quantity = {"mean": "average", "efficiency": "efficiency"}.get(str(column.value))
                if quantity not in quantities:
                    continue
                program = "MyDiskBench" if column.instrument == "diskbench" else "IOZone"
                run = "" if sheet.table.name == "disk_iops" else "mean" if sheet.name.endswith("_runs") else "final"
                place = (row.key.workload, row.key.concurrency, row.key.block, program)
                printed = _printed(quantity, run, sheet.table.name)[place]
                printed *= 100 if quantity == "efficiency" else sheet.factor
                computed = sheets.value(sheet, column, line)
                assert computed is not None
                compared += 1
                # Averages are printed as whole numbers, cut or rounded; efficiencies were computed from those.
                agrees = (
                    round(printed) in (math.floor(computed), math.floor(computed + 0.5))
                    if quantity == "average"
                    else abs(computed - printed) <= (0.3 if sheet.table.name == "disk_throughput" else 0.1)
                )
                if not agrees:
                    where = (sheet.name, quantity, *(line.names[key] for key in ("workload", "concurrency", "block")))
                    found[*where, program] = (printed, computed)
    assert compared == 4 * 21 * 2 * 3 + 2 * 7 * 2 * 2
    listed = _listed()
    assert found.keys() == listed.keys()
    for where, (printed, computed) in found.items():
        assert listed[where][0] == pytest.approx(printed), where
        assert listed[where][1] == pytest.approx(computed, abs=0.006), where
        assert listed[where][2], where


def test_the_runs_are_listed_as_the_report_lists_them(tmp_path: Path) -> None:
    rows = build_rows(_fed(tmp_path / NAME))
    sheet = next(one for one in layouts.load(NAME).sheets if one.name == "rs_runs")
    line = sheets.frame(sheet, rows["disk_throughput"]).set_index("Concurrency and Record Size").loc["12 and 16MB"]
    assert list(line)[:6] == [488.0, 464.0, 475.0, 480.0, 483.0, 477.0]


def test_a_published_set_is_a_column_beside_this_machine(tmp_path: Path) -> None:
    of = make.cell("diskbench", "RS", subsystem="disk", variant="psync", block=16 << 20, concurrency=12)
    odd = make.cell("diskbench", "RS", subsystem="disk", variant="psync", block=16 << 20, concurrency=13)
    records = [make.record(one, [make.measurement(one, "throughput", 1e9)]) for one in (of, odd)]
    folder = make.write(tmp_path / "c", records, config={"report": {"published": [NAME, "file-io-lab"]}})
    results = Results.read(folder)
    rows = build_rows(results)["disk_throughput"]
    assert [row.published for row in rows] == [{NAME: 475e6}, {}]  # the median of its three runs
    table = BY_NAME["disk_throughput"]
    grid = presentation.grid(results, table, rows)
    place = [column.label for column in grid.columns].index(NAME)
    assert grid.columns[place].group == "Published Throughput (MB/sec)"
    assert [line[place] for line in grid.body] == ["475", ""]
    assert "file-io-lab" not in [column.label for column in grid.columns]
    frame = tables.frame(table, rows)
    assert list(frame[f"{NAME}: Published Throughput (MB/sec)"].fillna(0)) == [475.0, 0.0]


def test_caches_are_never_set_beside_published_memory(tmp_path: Path) -> None:
    cells = [
        make.cell("rambench", "RWS", subsystem="memory", variant=variant, block=1 << 20)
        for variant in ("pool", "block")
    ]
    records = [make.record(of, [make.measurement(of, "throughput", 2e10)]) for of in cells]
    config = {"report": {"published": ["four-subsystems-2018-prometheus"]}}
    rows = build_rows(Results.read(make.write(tmp_path / "c", records, config=config)))["memory_throughput"]
    # Its block was 1000000 bytes; the nearest power stands for it.
    assert {row.key.variant: dict(row.published) for row in rows} == {
        "pool": {"four-subsystems-2018-prometheus": pytest.approx(2 * 3.876088e9)},  # it counted a copied byte once
        "block": {},
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("s,h,gpu,RS,1,4096,X,throughput,1,B/s,,", ["table", "gpu", "disk_throughput"]),
        ("s,h,disk_throughput,RS,one,4096,X,throughput,1,B/s,,", ["concurrency"]),
        ("s,h,disk_throughput,RS,1,4KB,X,throughput,1,B/s,,", ["column block", "4KB", "64KiB"]),
        ("s,h,disk_throughput,RS,1,4096,X,throughput,1,mph,,", ["column unit", "mph", "B/s", "GB/s"]),
        ("s,h,disk_throughput,RS,1,4096,X,throughput,nan,B/s,,", ["column value", "nan"]),
        ("s,h,disk_throughput,RS,1,4096,X,throughput,,B/s,,", ["column value", "''"]),
        ("s,h,disk_throughput,RS,1,4096,X", ["fields"]),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, line: str, words: list[str]) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(",".join(published.COLUMNS) + "\n" + line + "\n")
    with pytest.raises(ConfigError) as error:
        published.load(str(path))
    assert "line 2" in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_a_set_that_does_not_exist_is_refused_before_anything_is_measured() -> None:
    from peakmark.planning import plan

    values: dict[str, Any] = {"cpu": [{"workloads": ["DP"], "concurrency": [1]}], "report": {"published": ["nobody"]}}
    with pytest.raises(ConfigError, match=r"nobody.*disk-patterns-2020"):
        plan.make(values)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_what_a_spreadsheet_writes_is_read(tmp_path: Path, separator: str) -> None:
    """A byte order mark, its own separator, decimal commas with it, lines that end in CR LF, units with prefixes."""
    path = tmp_path / "mine.csv"
    mark = "," if separator == ";" else "."
    rows = [
        ("s", "h", "disk_throughput", "RS", "1", "64KiB", "X", "throughput", f"3{mark}2", "GB/s", "", "Straße"),
        ("s", "h", "disk_latency", "RR", "1", "4096", "X", "latency", "85", "us", "", ""),
    ]
    columns = published.COLUMNS[::-1]
    lines = [separator.join(columns), *(separator.join(row[::-1]) for row in rows)]
    path.write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())
    first, second = published.load(str(path)).entries
    assert (first.value, first.unit, first.block, first.note) == (3.2e9, "B/s", 65536, "Straße")
    assert (second.value, second.unit) == (pytest.approx(85e-6), "s")


def test_missing_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("source,table,value\n")
    with pytest.raises(ConfigError, match=r"line 1.*missing are hardware, workload"):
        published.load(str(path))


def test_a_column_that_stands_twice_is_named(tmp_path: Path) -> None:
    """The first of the two would be lost in silence."""
    path = tmp_path / "mine.csv"
    path.write_text(",".join((*published.COLUMNS, "value")) + "\n")
    with pytest.raises(ConfigError, match=r"line 1: the columns must be .*; there twice are value$"):
        published.load(str(path))


HEADER = ",".join((*published.COLUMNS, published.DEFINITION))


def test_a_definition_is_read_and_an_unknown_one_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    line = "s,h,disk_throughput,WS,1,4096,X,throughput,1,B/s,,,"
    path.write_text(f"{HEADER}\n{line}sync=each; fill = new\n")
    (entry,) = published.load(str(path)).entries
    assert entry.definition == {"sync": "each", "fill": "new"}
    other = tmp_path / "other.csv"
    for wrong in ("sync=often", "stores=libc", "sync"):
        other.write_text(f"{HEADER}\n{line}{wrong}\n")
        published._load.cache_clear()
        with pytest.raises(ConfigError, match=rf"line 2, column definition has '{wrong}': allowed are isa=scalar"):
            published.load(str(other))


def test_copies_that_were_counted_once_are_doubled_and_say_so() -> None:
    found = published.load("four-subsystems-2018-hyperion")
    where = ("memory_throughput", "RWS", 1 << 20, 1)
    assert found.value(*where, "rambench") == pytest.approx(2 * 3.973819e9)
    assert found.value(*where, "pmbw") == pytest.approx(27.8342e9)
    assert "copied bytes are counted once there: doubled here" in found.remarks_on(*where, "rambench")
    assert not found.remarks_on(*where, "pmbw")


def _first_report() -> dict[tuple[str, ...], published.Entry]:
    return {
        (one.table, one.workload, str(one.concurrency), str(one.block), one.program, one.metric): one
        for one in published.load("four-subsystems-2018-hyperion").entries
        if one.program != published.THEORETICAL
    }


def test_the_first_reports_slips_are_noted_with_their_evidence() -> None:
    """Each note is worked out again from the printed numbers; rows without one do not have what it says."""
    found = _first_report()
    counts: Counter[str] = Counter()
    for (table, workload, threads, block, program, metric), entry in found.items():

        def beside(other: str, its: str, at: str = table, where: tuple[str, ...] = (workload, threads, block)) -> float:
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
            seconds = [int(one) for one in re.findall(r"in (\d+), (\d+) and (\d+) s", entry.note)[0]]
            rates = [100e9 / one for one in seconds]
            assert entry.value == pytest.approx(statistics.mean(rates), rel=2e-6)
            assert beside(program, "standard_deviation") == pytest.approx(statistics.stdev(rates), rel=1e-4)
            counts["whole seconds"] += 1
        said = re.search(r"the log of IOZone in the same report says ([\d.]+) kB/s", entry.note)
        if said:
            logged = float(said.group(1)) * 1024
            assert f"{logged / 1e6:.1f} MB/s" in entry.note and not 0.6 < logged / entry.value < 1.6
            counts["log"] += 1
    for workload in ("QP", "HP"):
        one, two = (found["cpu", workload, threads, "None", "MyCPUBench", "rate"] for threads in ("1", "2"))
        assert two.value > 6 * one.value
        assert f"{two.value / one.value:.1f} times the rate of one thread, on two cores" in two.note
    assert counts == {"round": 7, "excluded": 32, "whole seconds": 14, "log": 4}
