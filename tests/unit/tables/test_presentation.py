"""Tables as printed: their columns, units and digits, the notes below them and their captions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark.analysis.analysis import Analysis
from peakmark.figures import selection
from peakmark.messages import Sentence
from peakmark.tables import captions, footnotes, presentation, tables
from peakmark.tables.presentation import PrintedTable
from peakmark.tools.tables import BY_NAME

REMEDY = "repeat on an idle node, or set pool: auto"


def printed(analysis: Analysis, name: str) -> PrintedTable:
    return presentation.grid(analysis.results, BY_NAME[name], analysis.rows[name])


def test_a_missing_tool_has_a_sentence_instead_of_an_empty_column(tmp_path: Path) -> None:
    absent = {"instrument": "iozone", "executable": "iozone", "path": None, "package": "iozone3"}
    absent["reason"] = "iozone not found on PATH"
    found = make.judge(tmp_path / "c", make.runs("diskbench", "RS", 1e9), references=[absent])
    table, grid = BY_NAME["disk_throughput"], printed(found, "disk_throughput")
    measured = [column.label for column in grid.columns if column.group.startswith("Measured")]
    assert measured == ["MyDiskBench"]
    of_iozone, of_fio = [remark for remark in grid.remarks if remark.startswith("No columns")]
    assert "IOZone" in of_iozone and "`apt install iozone3`" in of_iozone
    assert "fio" in of_fio and "plan" in of_fio
    columns = tables.frame(table, found.rows[table.name]).columns
    assert {table.measured_heading(program) for program in table.references} <= set(columns)


def test_what_is_the_same_in_all_rows_is_said_once_and_empty_columns_go(tmp_path: Path) -> None:
    context = {"network": {"interface": "lo", "address": "127.0.0.1", "loopback": True}}
    records: list[dict[str, Any]] = []
    for threads, block in ((1, 1024), (2, 32768)):
        records += make.runs("diskbench", "RS", 1e9, variant="io_uring", concurrency=threads)
        records += make.runs("netbench", "TCP", 1e9, block=block, context=context)
    found = make.judge(tmp_path / "c", records)
    grid = printed(found, "disk_throughput")
    labels = {column.label for column in grid.columns}
    assert not {"Engine", "n", "Standard Deviation", "Theoretical Throughput (MB/sec)"} & labels
    assert {"Engine: io_uring.", "n = 1 in all rows."} <= set(grid.remarks)
    assert all(len(line) == len(grid.columns) for line in grid.body)
    network = printed(found, "network_throughput")
    assert sum("over loopback" in remark for remark in network.shared) == 1
    assert not [note for note in network.notes if "over loopback" in note.text]


def test_times_are_printed_in_a_unit_that_reads_well_and_filed_in_that_of_the_reports(
    tmp_path: Path,
) -> None:
    near, far = (
        make.runs("rambench", "LAT", 1.708e-9, block=block) for block in (1 << 14, 1 << 26)
    )
    found = make.judge(tmp_path / "c", [*near, *far])
    rows, table = found.rows["memory_latency"], BY_NAME["memory_latency"]
    grid = presentation.grid(found.results, rows[0].table, rows)
    headings = [(column.label, column.group) for column in grid.columns]
    assert ("MyRAMBench", "Measured Latency (ns)") in headings
    assert "1.708" in grid.body[0]
    filed = tables.frame(table, rows)[table.measured_heading(table.own)]
    assert filed.name.endswith("(us)")
    assert filed.tolist() == pytest.approx([1.708e-3] * 2)


def test_ping_is_printed_with_the_decimals_that_it_gives(tmp_path: Path) -> None:
    records = make.runs("netbench", "LAT-TCP", 1.5e-5, block=1)
    records += make.runs("ping", "LAT-ICMP", 23e-6, details={"resolution": 1e-6})
    grid = printed(make.judge(tmp_path / "c", records), "network_latency")
    labels = [column.label for column in grid.columns]  # measured ones before efficiencies
    shown = [grid.body[0][labels.index(name)] for name in ("MyNETBench", "ping")]
    assert shown == ["0.01500", "0.023"]


def test_a_row_keeps_its_own_number_of_a_sentence_that_it_shares(tmp_path: Path) -> None:
    records = []
    for threads, spread in ((1, 0.3), (2, 0.2), (4, 0.0)):
        values = [1e11 * (1 + spread * side) for side in (-1, 0, 1)]
        records += make.runs("cpubench", "DP", *values, concurrency=threads)
    grid = printed(make.judge(tmp_path / "c", records), "cpu")
    ((letter, text),) = [(note.letter, note.text) for note in grid.notes if "spread" in note.text]
    assert "20 – 30\u00a0%" in text
    warnings = [line.split(footnotes.BETWEEN) for line in grid.texts("notes")]
    numbers = [next((mark for mark in line if mark.startswith(letter)), "") for line in warnings]
    assert numbers == [f"{letter}\u00a030\u00a0%", f"{letter}\u00a020\u00a0%", ""]
    assert footnotes.BESIDE in grid.below


def test_a_remedy_stands_at_the_first_note_that_names_it() -> None:
    sentences = {
        "a": Sentence("Mine: it spread by 7 %", REMEDY),
        "b": Sentence("Mine: 1 of 3 not measured: the disk is full", REMEDY),
        "c": Sentence("Mine: something else", "see there"),
        "d": Sentence("Mine: the clock fell"),
    }
    notes = footnotes.Notes({}, sentences, (), {})
    assert [note.text for note in notes.footnotes()] == [
        f"Mine: it spread by 7 %: {REMEDY}.",
        "Mine: 1 of 3 not measured: the disk is full.",
        "Mine: something else: see there.",
        "Mine: the clock fell.",
    ]


def test_letters_go_on_after_z() -> None:
    shown = [footnotes.letter(number) for number in (0, 25, 26, 27, 52)]
    assert shown == ["a", "z", "aa", "ab", "ba"]


def test_every_figure_has_a_caption() -> None:
    drawn = {one.name for table in BY_NAME.values() for one in selection.figures_of(table, [])}
    assert set(captions.FIGURES) == {"overview", "fleet", *drawn}
    others = {*captions.KINDS, captions.NODES, captions.WORKLOAD}
    assert set(captions.sentences()) == {*captions.FIGURES, *others}


def test_a_caption_speaks_of_the_limit_only_where_it_is_drawn() -> None:
    assert "dashed" in captions.text("cpu")
    for name in {*captions.FIGURES} - {"overview", "fleet"}:
        without = captions.text(name, {"limit"})
        assert "dashed" not in without
        assert without.endswith(".") and len(without) > 60


def test_a_caption_is_silent_about_programs_that_are_not_in_the_figure() -> None:
    without = captions.text("network_latency", {"qperf"})
    assert "qperf" in captions.text("network_latency")
    assert "qperf" not in without and "ping" in without


def test_figures_of_one_workload_have_a_caption_that_fits_them() -> None:
    texts = captions.texts()
    assert "panel" in texts["disk_throughput_RS"]
    assert "whether random access" not in texts["disk_throughput_RS"]
    assert "lower is better" in texts["disk_latency_RR"]


@pytest.mark.parametrize(
    ("title", "subsystem", "caption"),
    [
        ("Throughput", "disk", "Disk: throughput"),
        ("Disk latency (IOPS)", "disk", "Disk latency (IOPS)"),
        ("TCP and UDP", "network", "Network: TCP and UDP"),
    ],
)
def test_a_caption_names_the_resource_once(title: str, subsystem: str, caption: str) -> None:
    assert captions.of_table(title, subsystem) == caption
