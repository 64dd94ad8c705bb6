"""What tables say of holes, tools that are missing, warnings, and of where a row was measured."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark.instruments.tables import BY_NAME
from peakmark.judging import rows
from peakmark.storage.results import Results
from peakmark.tables import presentation, tables

# As printed in the reports that students and administrators write by hand.


def _read(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / "tables" / f"{name}.csv", keep_default_na=False)


def test_a_planned_cell_without_a_record_is_a_hole_that_says_so(tmp_path: Path) -> None:
    done = make.cell("cpubench", "DP", subsystem="cpu")
    holes = [make.cell("cpubench", "QP", subsystem="cpu", repetition=number) for number in range(3)]
    failed = make.record(holes[0], status="failed", reason="cpubench ended with exit code 1")
    folder = make.write(
        tmp_path / "c",
        [make.record(done, [make.measurement(done, "rate", 4e10)])],
        planned=holes,
        attempts=[failed],
    )
    tables.build(folder)
    frame = _read(folder, "cpu")
    assert list(frame["Workload"]) == ["QP", "DP"]
    hole = frame.iloc[0]
    own = BY_NAME["cpu"].measured_heading(BY_NAME["cpu"].own)
    assert (hole["n"], hole[own], hole["Standard Deviation"]) == (0, "", "")
    assert "not measured" in hole["Notes"] and "exit code 1" in hole["Notes"]


def test_a_half_measured_row_says_how_much_is_missing(tmp_path: Path) -> None:
    done = make.cell("cpubench", "DP", subsystem="cpu")
    missing = make.cell("cpubench", "DP", subsystem="cpu", repetition=1)
    folder = make.write(
        tmp_path / "c",
        [make.record(done, [make.measurement(done, "rate", 4e10)])],
        planned=[missing],
    )
    (row,) = rows.build(Results.read(folder))["cpu"]
    assert row.missing == 1
    (note,) = [note for note in row.warnings if note.code == "not-measured"]
    assert (dict(note.values)["missing"], dict(note.values)["planned"]) == (1, 2)


def test_a_missing_tool_has_a_sentence_instead_of_an_empty_column(tmp_path: Path) -> None:
    of = make.cell("diskbench", "RS", subsystem="disk", variant="psync", block=1 << 20)
    absent = {
        "instrument": "iozone",
        "executable": "iozone",
        "path": None,
        "reason": "iozone not found on PATH",
    }
    folder = make.write(
        tmp_path / "c",
        [make.record(of, [make.measurement(of, "throughput", 1e9)])],
        references=[absent | {"package": "iozone3"}],
    )
    results = Results.read(folder)
    table = BY_NAME["disk_throughput"]
    grid = presentation.grid(results, table, rows.build(results)[table.name])
    assert [column.label for column in grid.columns if column.group.startswith("Measured")] == [
        "MyDiskBench"
    ]
    of_iozone, of_fio = [remark for remark in grid.remarks if remark.startswith("No columns")]
    assert "IOZone" in of_iozone and "`apt install iozone3`" in of_iozone
    assert "fio" in of_fio and "plan" in of_fio
    columns = tables.frame(table, rows.build(results)[table.name]).columns
    assert {table.measured_heading(one) for one in table.references} <= set(columns)


def test_what_is_the_same_in_all_rows_is_said_once_and_empty_columns_go(tmp_path: Path) -> None:
    cells = [
        make.cell(
            "diskbench",
            "RS",
            subsystem="disk",
            variant="io_uring",
            block=1 << 20,
            concurrency=threads,
        )
        for threads in (1, 2)
    ]
    records = [make.record(of, [make.measurement(of, "throughput", 1e9)]) for of in cells]
    results = Results.read(make.write(tmp_path / "c", records))
    grid = presentation.grid(
        results, BY_NAME["disk_throughput"], rows.build(results)["disk_throughput"]
    )
    labels = [column.label for column in grid.columns]
    assert not {"Engine", "n", "Standard Deviation", "Theoretical Throughput (MB/sec)"} & set(
        labels
    )
    assert {"Engine: io_uring.", "n = 1 in all rows."} <= set(grid.remarks)
    assert all(len(line) == len(labels) for line in grid.body)


def test_times_are_printed_in_a_unit_that_reads_well_and_filed_in_that_of_the_reports(
    tmp_path: Path,
) -> None:
    cells = [
        make.cell("rambench", "LAT", subsystem="memory", block=block)
        for block in (16 << 10, 64 << 20)
    ]
    records = [make.record(of, [make.measurement(of, "latency", 1.708e-9)]) for of in cells]
    results = Results.read(make.write(tmp_path / "c", records))
    (row, _) = found = rows.build(results)["memory_latency"]
    grid = presentation.grid(results, row.table, found)
    assert ("MyRAMBench", "Measured Latency (ns)") in [
        (column.label, column.group) for column in grid.columns
    ]
    assert "1.708" in grid.body[0]
    table = BY_NAME["memory_latency"]
    filed = tables.frame(table, found)[table.measured_heading(table.own)]
    assert filed.name.endswith("(us)")
    assert filed.tolist() == pytest.approx([1.708e-3] * 2)


def test_warnings_of_records_become_notes_with_their_share(tmp_path: Path) -> None:
    cells = [make.cell("cpubench", "DP", subsystem="cpu", repetition=number) for number in range(3)]
    records = [
        make.record(
            of,
            [make.measurement(of, "rate", 4e10)],
            warnings=["the clock moved"] if number == 1 else [],
        )
        for number, of in enumerate(cells)
    ]
    (row,) = rows.build(Results.read(make.write(tmp_path / "c", records)))["cpu"]
    (note,) = [note for note in row.warnings if note.code == "warning"]
    assert "clock moved" in note.text and "1 of 3" in note.text


def test_loopback_is_said_in_every_row(tmp_path: Path) -> None:
    of = make.cell("netbench", "TCP", subsystem="network", block=1024)
    context = {"network": {"interface": "lo", "address": "127.0.0.1", "loopback": True}}
    folder = make.write(
        tmp_path / "c",
        [make.record(of, [make.measurement(of, "throughput", 1e9)], context=context)],
    )
    (row,) = rows.build(Results.read(folder))["network_throughput"]
    assert "loopback" in {note.code for note in row.warnings}


def between(folder: Path, *pairs: tuple[str, str], node: str = "any") -> Path:
    """A campaign whose one row has a repetition between each of these clients and servers."""
    cells = [
        make.cell("netbench", "TCP", subsystem="network", block=1024, node=node, repetition=number)
        for number in range(len(pairs))
    ]
    records = [
        make.record(
            of,
            [make.measurement(of, "throughput", 1e9)],
            host=client,
            context={"server_host": server},
        )
        for of, (client, server) in zip(cells, pairs, strict=True)
    ]
    return make.write(folder, records)


def test_both_ends_of_a_pair_of_nodes_are_in_every_table(tmp_path: Path) -> None:
    folder = between(tmp_path / "c", ("n1", "n2"))
    tables.build(folder)
    frame = _read(folder, "network_throughput")
    assert list(frame["Client"]) == ["n1"] and list(frame["Server"]) == ["n2"]
    assert list(_read(folder, "runs")["server_host"]) == ["n2"]
    tex = (folder / "tables" / "network_throughput.tex").read_text()
    assert r"n1 $\rightarrow$ n2" in tex and r"Client $\rightarrow$" in tex
    results = Results.read(folder)
    grid = presentation.grid(
        results, BY_NAME["network_throughput"], rows.build(results)["network_throughput"]
    )
    assert grid.columns[0].label == presentation.ENDS and grid.body[0][0] == "n1 → n2"


def test_a_row_of_several_pairs_names_them_all(tmp_path: Path) -> None:
    folder = between(tmp_path / "c", ("n1", "n2"), ("n2", "n1"), ("n1", "n2"))
    tables.build(folder)
    frame = _read(folder, "network_throughput")
    assert list(frame["Client"]) == ["n1; n2"] and list(frame["Server"]) == ["n2; n1"]
    results = Results.read(folder)
    (row,) = rows.build(results)["network_throughput"]
    (note,) = [note for note in row.warnings if note.code == "pairs"]
    assert dict(note.values)["pairs"] == ("n1 → n2", "n2 → n1")
    assert presentation.where([row]) == "2 pairs"


def test_one_machine_is_both_ends_and_no_column_of_the_report(tmp_path: Path) -> None:
    folder = between(tmp_path / "c", ("n1", "n1"))
    tables.build(folder)
    frame = _read(folder, "network_throughput")
    assert list(frame["Client"]) == list(frame["Server"]) == ["n1"]
    results = Results.read(folder)
    grid = presentation.grid(
        results, BY_NAME["network_throughput"], rows.build(results)["network_throughput"]
    )
    assert grid.columns[0].label == "Protocol"


def test_nodes_are_kept_apart_and_named(tmp_path: Path) -> None:
    cells = [make.cell("cpubench", "DP", subsystem="cpu", node=node) for node in ("n1", "n2")]
    records = [make.record(of, [make.measurement(of, "rate", 4e10)], host=of.node) for of in cells]
    folder = make.write(tmp_path / "c", records)
    tables.build(folder)
    frame = _read(folder, "cpu")
    assert list(frame["Node"]) == ["n1", "n2"]
    assert (folder / "tables" / "nodes.csv").exists()
    tables.build(make.write(folder, records[:1]))
    assert not (folder / "tables" / "nodes.csv").exists(), "one node"
