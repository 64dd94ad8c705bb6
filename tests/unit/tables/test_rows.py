"""What tables say of holes, tools that are missing, warnings, and of where a row was measured."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark.analysis.analysis import Analysis
from peakmark.tables import columns, presentation, tables
from peakmark.tools.tables import BY_NAME


def _read(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / "tables" / f"{name}.csv", keep_default_na=False)


def _grid(analysis: Analysis, name: str) -> presentation.PrintedTable:
    rows = analysis.rows[name]
    return presentation.grid(analysis.results, rows[0].table, rows)


def test_a_planned_cell_without_a_record_is_a_hole_that_says_so(tmp_path: Path) -> None:
    holes = [make.cell("cpubench", "QP", subsystem="cpu", repetition=number) for number in range(3)]
    failed = make.record(holes[0], status="failed", reason="cpubench ended with exit code 1")
    records = make.runs("cpubench", "DP", 4e10)
    tables.build(make.write(tmp_path / "c", records, planned=holes, attempts=[failed]))
    frame = _read(tmp_path / "c", "cpu")
    assert list(frame["Workload"]) == ["QP", "DP"]
    hole = frame.iloc[0]
    own = BY_NAME["cpu"].measured_heading(BY_NAME["cpu"].own)
    assert (hole["n"], hole[own], hole["Standard Deviation"]) == (0, "", "")
    assert "not measured" in hole["Notes"] and "exit code 1" in hole["Notes"]


def test_a_half_measured_row_says_how_much_is_missing(tmp_path: Path) -> None:
    missing = make.cell("cpubench", "DP", subsystem="cpu", repetition=1)
    found = make.judge(tmp_path / "c", make.runs("cpubench", "DP", 4e10), planned=[missing])
    (row,) = found.rows["cpu"]
    assert row.missing == 1
    (note,) = [note for note in row.warnings if note.code == "not-measured"]
    assert (dict(note.values)["missing"], dict(note.values)["planned"]) == (1, 2)


def test_a_missing_tool_has_a_sentence_instead_of_an_empty_column(tmp_path: Path) -> None:
    absent = {"instrument": "iozone", "executable": "iozone", "path": None, "package": "iozone3"}
    absent["reason"] = "iozone not found on PATH"
    found = make.judge(tmp_path / "c", make.runs("diskbench", "RS", 1e9), references=[absent])
    table, grid = BY_NAME["disk_throughput"], _grid(found, "disk_throughput")
    assert [column.label for column in grid.columns if column.group.startswith("Measured")] == [
        "MyDiskBench"
    ]
    of_iozone, of_fio = [remark for remark in grid.remarks if remark.startswith("No columns")]
    assert "IOZone" in of_iozone and "`apt install iozone3`" in of_iozone
    assert "fio" in of_fio and "plan" in of_fio
    columns = tables.frame(table, found.rows[table.name]).columns
    assert {table.measured_heading(one) for one in table.references} <= set(columns)


def test_what_is_the_same_in_all_rows_is_said_once_and_empty_columns_go(tmp_path: Path) -> None:
    one, two = (
        make.runs("diskbench", "RS", 1e9, variant="io_uring", concurrency=threads)
        for threads in (1, 2)
    )
    grid = _grid(make.judge(tmp_path / "c", [*one, *two]), "disk_throughput")
    labels = {column.label for column in grid.columns}
    assert not {"Engine", "n", "Standard Deviation", "Theoretical Throughput (MB/sec)"} & labels
    assert {"Engine: io_uring.", "n = 1 in all rows."} <= set(grid.remarks)
    assert all(len(line) == len(grid.columns) for line in grid.body)


def test_times_are_printed_in_a_unit_that_reads_well_and_filed_in_that_of_the_reports(
    tmp_path: Path,
) -> None:
    near, far = (
        make.runs("rambench", "LAT", 1.708e-9, block=block) for block in (1 << 14, 1 << 26)
    )
    found = make.judge(tmp_path / "c", [*near, *far])
    table, grid = BY_NAME["memory_latency"], _grid(found, "memory_latency")
    assert ("MyRAMBench", "Measured Latency (ns)") in [
        (column.label, column.group) for column in grid.columns
    ]
    assert "1.708" in grid.body[0]
    filed = tables.frame(table, found.rows[table.name])[table.measured_heading(table.own)]
    assert filed.name.endswith("(us)")
    assert filed.tolist() == pytest.approx([1.708e-3] * 2)


def test_warnings_of_records_become_notes_with_their_share(tmp_path: Path) -> None:
    records = make.runs("cpubench", "DP", 4e10, 4e10, 4e10)
    records[1]["warnings"] = ["the clock moved"]
    (row,) = make.judge(tmp_path / "c", records).rows["cpu"]
    (note,) = [note for note in row.warnings if note.code == "warning"]
    assert "clock moved" in note.text and "1 of 3" in note.text


def test_loopback_is_said_in_every_row(tmp_path: Path) -> None:
    context = {"network": {"interface": "lo", "address": "127.0.0.1", "loopback": True}}
    records = make.runs("netbench", "TCP", 1e9, context=context)
    (row,) = make.judge(tmp_path / "c", records).rows["network_throughput"]
    assert "loopback" in {note.code for note in row.warnings}


def between(folder: Path, *pairs: tuple[str, str]) -> Analysis:
    """A campaign whose one row has a repetition between each of these clients and servers, with its
    tables.
    """
    records = []
    for number, (client, server) in enumerate(pairs):
        context = {"server_host": server}
        records += make.runs(
            "netbench", "TCP", 1e9, repetition=number, host=client, context=context
        )
    found = make.judge(folder, records)
    tables.build(found)
    return found


def test_both_ends_of_a_pair_of_nodes_are_in_every_table(tmp_path: Path) -> None:
    found = between(tmp_path / "c", ("n1", "n2"))
    frame = _read(tmp_path / "c", "network_throughput")
    assert list(frame["Client"]) == ["n1"] and list(frame["Server"]) == ["n2"]
    assert list(_read(tmp_path / "c", "runs")["server_host"]) == ["n2"]
    tex = (tmp_path / "c" / "tables" / "network_throughput.tex").read_text()
    assert r"n1 $\rightarrow$ n2" in tex and r"Client $\rightarrow$" in tex
    grid = _grid(found, "network_throughput")
    assert grid.columns[0].label == "Client → server" and grid.body[0][0] == "n1 → n2"


def test_a_row_of_several_pairs_names_them_all(tmp_path: Path) -> None:
    found = between(tmp_path / "c", ("n1", "n2"), ("n2", "n1"), ("n1", "n2"))
    frame = _read(tmp_path / "c", "network_throughput")
    assert list(frame["Client"]) == ["n1; n2"] and list(frame["Server"]) == ["n2; n1"]
    (row,) = found.rows["network_throughput"]
    (note,) = [note for note in row.warnings if note.code == "pairs"]
    assert dict(note.values)["pairs"] == ("n1 → n2", "n2 → n1")
    assert columns.place([row]) == "2 pairs"


def test_one_machine_is_both_ends_and_no_column_of_the_report(tmp_path: Path) -> None:
    found = between(tmp_path / "c", ("n1", "n1"))
    frame = _read(tmp_path / "c", "network_throughput")
    assert list(frame["Client"]) == list(frame["Server"]) == ["n1"]
    assert _grid(found, "network_throughput").columns[0].label == "Protocol"


def test_nodes_are_kept_apart_and_named(tmp_path: Path) -> None:
    first, second = (
        make.runs("cpubench", "DP", 4e10, node=node, host=node) for node in ("n1", "n2")
    )
    folder = make.write(tmp_path / "c", [*first, *second])
    tables.build(folder)
    assert list(_read(folder, "cpu")["Node"]) == ["n1", "n2"]
    assert (folder / "tables" / "nodes.csv").exists()
    tables.build(make.write(folder, first))
    assert not (folder / "tables" / "nodes.csv").exists(), "one node"
