"""Rows and tables: what belongs together, under which heading, with which note."""

from __future__ import annotations

import statistics
from pathlib import Path

import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import analysis
from peakmark.storage.results import Results
from peakmark.tables import footnotes, presentation, tables
from peakmark.tools.tables import BY_NAME, TABLES

# As printed in the reports that students and administrators write by hand.
CLASSIC = {
    "cpu": [
        "Workload", "Concurrency", "MyCPUBench Measured Ops/Sec (GigaOPS)", "HPL Measured Ops/Sec (GigaOPS)",
        "Theoretical Ops/Sec (GigaOPS)", "MyCPUBench Efficiency (%)", "HPL Efficiency (%)", "Standard Deviation",
    ],
    "memory_throughput": [
        "Workload", "Concurrency", "Block Size", "MyRAMBench Measured Throughput (GB/sec)",
        "pmbw Measured Throughput (GB/sec)", "Theoretical Throughput (GB/sec)", "MyRAMBench Efficiency (%)",
        "pmbw Efficiency (%)", "Standard Deviation",
    ],
    "memory_latency": [
        "Workload", "Concurrency", "Block Size", "MyRAMBench Measured Latency (us)", "pmbw Measured Latency (us)",
        "Theoretical Latency (us)", "MyRAMBench Efficiency (%)", "pmbw Efficiency (%)", "Standard Deviation",
    ],
    "disk_throughput": [
        "Workload", "Concurrency", "Block Size", "MyDiskBench Measured Throughput (MB/sec)",
        "IOZone Measured Throughput (MB/sec)", "Theoretical Throughput (MB/sec)", "MyDiskBench Efficiency (%)",
        "IOZone Efficiency (%)", "Standard Deviation",
    ],
    "disk_latency": [
        "Workload", "Concurrency", "Block Size", "MyDiskBench Measured Latency (ms)", "IOZone Measured Latency (ms)",
        "Theoretical Latency (ms)", "MyDiskBench Efficiency (%)", "IOZone Efficiency (%)", "Standard Deviation",
    ],
    "disk_iops": [
        "Workload", "Concurrency", "Block Size", "MyDiskBench Measured IOPS", "IOZone Measured IOPS",
        "Theoretical IOPS", "MyDiskBench Efficiency (%)", "IOZone Efficiency (%)", "Standard Deviation",
    ],
    "network_throughput": [
        "Protocol", "Concurrency", "Block Size", "MyNETBench Measured Throughput (Mb/sec)",
        "iperf3 Measured Throughput (Mb/sec)", "Theoretical Throughput (Mb/sec)", "MyNETBench Efficiency (%)",
        "iperf3 Efficiency (%)",
    ],
    "network_latency": [
        "Protocol", "Concurrency", "Message Size", "MyNETBench Measured Latency (ms)", "ping Measured Latency (ms)",
        "Theoretical Latency (ms)", "MyNETBench Efficiency (%)",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All eight tables with figures in them, built once."""
    folder = make.write(tmp_path_factory.mktemp("results") / "sweep", make.sweep())
    tables.build(folder)
    return folder


def _read(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / "tables" / f"{name}.csv", keep_default_na=False)


def _heading(name: str, instrument: str = "") -> str:
    """Heading of the measured values of a program, by default of the own kernel."""
    table = BY_NAME[name]
    programs = {one.instrument: one for one in (table.own, *table.references)}
    return table.measured_heading(programs[instrument or table.own.instrument])


@pytest.mark.parametrize("name", CLASSIC)
def test_headings_are_those_of_the_classic_reports_in_their_order(swept: Path, name: str) -> None:
    columns = list(_read(swept, name).columns)
    positions = [columns.index(heading) for heading in CLASSIC[name]]
    assert positions == sorted(positions)


def test_all_eight_tables_have_their_own_column_filled(swept: Path) -> None:
    for table in TABLES:
        frame = _read(swept, table.name)
        assert len(frame) > 0, table.name
        assert (frame[table.measured_heading(table.own)] != "").all(), table.name
        assert (frame["n"] == 3).all(), table.name


def test_values_are_the_median_in_the_tables_unit_with_full_precision(swept: Path) -> None:
    results = Results.read(swept)
    built = analysis.build_rows(results)["network_throughput"]
    values = [
        entry["value"]
        for record in results.records
        for entry in record.data["measurements"]
        if record.cell.point == "UDP_32KiB_x2" and record.cell.instrument == "netbench"
    ]
    row = next(
        row
        for row in built
        if row.key.workload == "UDP" and row.key.block == 32768 and row.key.concurrency == 2
    )
    assert row.measured.centre == statistics.median(values)
    frame = _read(swept, "network_throughput")
    line = frame[
        (frame["Protocol"] == "UDP")
        & (frame["Concurrency"] == 2)
        & (frame["Block Size"] == "32KiB")
    ]
    assert line[_heading("network_throughput")].item() == statistics.median(values) / 1e6
    assert line["Standard Deviation"].item() == pytest.approx(statistics.stdev(values) / 1e6)


def test_rows_are_sorted_by_workload_then_concurrency_then_block(swept: Path) -> None:
    frame = _read(swept, "disk_throughput")
    keys = list(zip(frame["Workload"], frame["Concurrency"], frame["Block Size"], strict=True))
    first = [("RS", threads, block) for threads in (1, 2) for block in ("1MiB", "16MiB")]
    assert keys[:4] == first
    assert list(dict.fromkeys(frame["Workload"])) == ["RS", "RR", "WS", "WR"]


def test_the_summary_has_the_level_of_each_interval_and_the_doubt(swept: Path) -> None:
    results = Results.read(swept)
    found = analysis.build_rows(results)["memory_throughput"]
    frame = tables.summary(found)
    own = frame[frame.instrument == "rambench"]
    assert set(own.level) == {0.75}, "of three repetitions"
    assert list(own.doubt) == [str(row.level or "") for row in found if row.own is not None]


def test_working_sets_are_never_in_one_row(swept: Path) -> None:
    frame = _read(swept, "memory_throughput")
    pool, block = (frame[frame["Working Set"] == name] for name in ("pool", "block"))
    assert len(pool) == len(block) == 24
    pmbw = _heading("memory_throughput", "pmbw")
    assert (pool[pmbw] == "").all()
    assert (block[block["Workload"] == "RS"][pmbw] != "").all()


def test_small_random_accesses_are_iops_rows_and_only_those() -> None:
    throughput, iops = BY_NAME["disk_throughput"], BY_NAME["disk_iops"]
    places = (("RR", 4096), ("WR", 16384), ("RR", 65536), ("RS", 4096), ("WS", 1 << 20))
    for workload, block in places:
        assert throughput.takes(workload, block) != iops.takes(workload, block)
    assert iops.takes("RR", 4096)
    assert throughput.takes("RS", 4096)


def test_ping_stands_beside_every_protocol_and_stream_count(swept: Path) -> None:
    frame = _read(swept, "network_latency")
    assert set(frame["Protocol"]) == {"TCP", "UDP"}
    assert frame[_heading("network_latency", "ping")].nunique() == 1
    two = frame[frame["Concurrency"] == 2]
    assert list(two[_heading("network_latency", "qperf")]) == ["", ""]


def test_ping_is_printed_with_the_decimals_that_it_gives(tmp_path: Path) -> None:
    records = make.runs("netbench", "LAT-TCP", 1.5e-5, block=1)
    records += make.runs("ping", "LAT-ICMP", 23e-6, details={"resolution": 1e-6})
    found = make.judge(tmp_path / "c", records)
    grid = presentation.grid(
        found.results, BY_NAME["network_latency"], found.rows["network_latency"]
    )
    labels = [column.label for column in grid.columns]  # measured ones before efficiencies
    shown = [grid.body[0][labels.index(name)] for name in ("MyNETBench", "ping")]
    assert shown == ["0.01500", "0.023"]


def test_programs_of_a_disk_that_disagree_are_asked_for_their_buffers(tmp_path: Path) -> None:
    for pages, said in ((2 << 20, "MyDiskBench has huge pages"), (0, "buffers, files")):
        records = make.runs("diskbench", "RS", 2e9, details={"huge_pages": pages})
        records += make.runs("fio", "RS", 8e8)
        (row,) = make.judge(tmp_path / str(pages), records).rows["disk_throughput"]
        (note,) = [note for note in row.warnings if note.code == "disagreement"]
        assert dict(note.values)["factor"] == pytest.approx(2.5)
        assert said in str(dict(note.values)["compare"])


def test_a_latency_efficiency_is_theoretical_by_measured(tmp_path: Path) -> None:
    config = {"site_facts": {"network": {"latency": {"TCP": 5e-6}}}}
    records = make.runs("netbench", "LAT-TCP", 1e-5, block=1)
    (row,) = make.judge(tmp_path / "c", records, config=config, facts={}).rows["network_latency"]
    assert row.limit.value == 5e-6
    assert row.measured.efficiency == pytest.approx(0.5)


def test_mean_instead_of_median_when_the_configuration_asks(tmp_path: Path) -> None:
    records = make.runs("cpubench", "DP", 1e9, 2e9, 6e9)
    (row,) = make.judge(tmp_path / "c", records, config={"report": {"summary": "mean"}}).rows["cpu"]
    assert row.measured.centre == pytest.approx(3e9)


def test_runs_hold_every_repetition_and_measurements_rebuild_them(swept: Path) -> None:
    runs = _read(swept, "runs")
    count = sum(len(record.data["measurements"]) for record in Results.read(swept).records)
    assert len(runs) == count


def test_an_empty_campaign_has_all_tables_with_headings(tmp_path: Path) -> None:
    folder = make.write(
        tmp_path / "c", [], planned=[make.cell("ping", "LAT-ICMP", subsystem="network")]
    )
    tables.build(folder)
    for table in TABLES:
        assert list(_read(folder, table.name).columns) == [*tables.frame(table, [])]


def test_building_again_gives_the_same_bytes(swept: Path) -> None:
    folder = swept / "tables"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    tables.build(swept)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_row_keeps_its_own_number_of_a_sentence_that_it_shares(tmp_path: Path) -> None:
    spreads = {1: (0.7, 1.0, 1.3), 2: (0.8, 1.0, 1.2), 4: (1.0, 1.0, 1.0)}
    records = []
    for threads, values in spreads.items():
        records += make.runs(
            "cpubench", "DP", *(1e11 * value for value in values), concurrency=threads
        )
    results = Results.read(make.write(tmp_path / "c", records))
    grid = presentation.grid(results, BY_NAME["cpu"], analysis.build_rows(results)["cpu"])
    at = [column.label for column in grid.columns].index("Notes")
    ((letter, text),) = [(note.letter, note.text) for note in grid.notes if "spread" in note.text]
    assert "20 – 30\u00a0%" in text
    warnings = [line[at].split(footnotes.BETWEEN) for line in grid.body]
    own = [next((mark for mark in line if mark.startswith(letter)), "") for line in warnings]
    assert own == [f"{letter}\u00a030\u00a0%", f"{letter}\u00a020\u00a0%", ""]
    assert footnotes.BESIDE in grid.below


def test_what_holds_for_all_rows_is_said_once(tmp_path: Path) -> None:
    context = {"network": {"interface": "lo", "address": "127.0.0.1", "loopback": True}}
    small, large = (
        make.runs("netbench", "TCP", 1e9, block=block, context=context) for block in (1024, 32768)
    )
    found = make.judge(tmp_path / "c", [*small, *large])
    table = BY_NAME["network_throughput"]
    grid = presentation.grid(found.results, table, found.rows[table.name])
    assert sum("over loopback" in remark for remark in grid.shared) == 1
    assert not [note for note in grid.notes if "over loopback" in note.text]


def test_a_value_above_its_limit_is_doubtful(tmp_path: Path) -> None:
    config = {"site_facts": {"disk": {"throughput": {"RS": 5e8}}}}
    found = make.judge(tmp_path / "c", make.runs("diskbench", "RS", 1e9), config=config)
    (row,) = found.rows["disk_throughput"]
    assert row.measured.efficiency == pytest.approx(2.0)
    (warning,) = [note for note in row.specific_warnings if note.code == "above-limit"]
    assert dict(warning.values)["share"] == pytest.approx(2.0)


def test_letters_go_on_after_z() -> None:
    shown = [footnotes.letter(number) for number in (0, 25, 26, 27, 52)]
    assert shown == ["a", "z", "aa", "ab", "ba"]
