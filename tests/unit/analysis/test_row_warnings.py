"""What a row is marked with beside the checks: holes, programs that differ, what most rows share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.analysis.checked import N, U, contains, noise, values_of

from peakmark.analysis import verdict
from peakmark.analysis.row import Row
from peakmark.messages import Message, Severity

Records = list[dict[str, Any]]


def notes(row: Row, code: str) -> list[Message]:
    return [note for note in row.warnings if note.code == code]


@pytest.mark.parametrize("ping", ["ping", "Ping", "ICMP echo"])
def test_a_message_is_about_an_instrument_whatever_a_layout_calls_it(
    tmp_path: Path, ping: str
) -> None:
    """TCP's round trips beside a ping of a tenth, which is no reference for them."""
    headings = [("netbench", "Our kernel"), ("ping", ping)]
    columns: list[dict[str, str]] = [{"heading": "Protocol", "text": "{workload}"}]
    for tool, heading in headings:
        columns.append(
            {"heading": f"{heading} Measured Latency (ms)", "value": "measured", "of": tool}
        )
    table = {"name": "x", "of": "network_latency", "title": "Latency", "columns": columns}
    layout = {"schema": 1, "name": "mine", "description": "A table.", "tables": [table]}
    (tmp_path / "mine.yaml").write_text(json.dumps(layout))
    records = make.runs("netbench", "LAT-TCP", 3e-5, block=1) + make.runs("ping", "LAT-ICMP", 3e-6)
    config = {"report": {"tables": str(tmp_path / "mine.yaml")}}
    row = make.only_row(tmp_path / "c", records, config=config)
    assert row.table.references[0].heading == ping
    assert not notes(row, "disagreement")
    about = [note for note in row.warnings if note.about == "netbench"]
    assert about and not [note for note in row.warnings if "Our kernel" in note.text]
    assert all(f"Our kernel: {note.text}" in row.said(row.remarks) for note in about)


def test_what_is_missing_and_what_a_program_said_are_remarks(tmp_path: Path) -> None:
    hole = make.cell("cpubench", "DP", subsystem="cpu", repetition=1)
    records = make.runs("cpubench", "DP", 4e10)
    records[0]["warnings"] = ["the clock source is a slow one"]
    row = make.only_row(tmp_path / "c", records, planned=[hole])
    assert notes(row, "not-measured") and notes(row, "warning")


def test_echoes_of_fewer_streams_say_so(tmp_path: Path) -> None:
    own = make.runs("netbench", "LAT-TCP", 3e-5, block=1, concurrency=4)
    (note,) = notes(
        make.only_row(tmp_path / "c", own + make.runs("ping", "LAT-ICMP", 3e-5)), "ping-streams"
    )
    assert contains(values_of(note), {"echoes": 1, "streams": 4})


def test_a_reference_that_cannot_do_as_ours_was_asked_to_says_so(tmp_path: Path) -> None:
    records = make.runs("diskbench", "WR", 4e8, fill="new")
    records += make.runs("iozone", "WR", 4e8, details={"fill": "overwrite"}, fill="new")
    (note,) = notes(make.only_row(tmp_path / "c", records), "otherwise")
    assert note.about == "iozone" and contains(values_of(note), {"ways": "fill overwrite, not new"})


DISK = ("diskbench", "fio", "RS", 1e9)


@pytest.mark.parametrize(
    ("programs", "factor", "details", "level"),
    [
        (("cpubench", "hpl", "DP", 1e11), 1 / 0.6, {}, U),
        (("cpubench", "hpl", "DP", 1e11), 1 / 1.7, {}, U),
        (("cpubench", "hpl", "DP", 1e11), 1 / 0.99, {}, None),
        # What is known to differ explains a factor of two.
        (DISK, 1.4, {"huge_pages": 2 << 20}, None),
        (DISK, 1.8, {"huge_pages": 2 << 20}, N),
        (DISK, 2.5, {"huge_pages": 2 << 20}, U),
        (DISK, 1.8, {"huge_pages": 0}, U),
    ],
)
def test_a_reference_that_disagrees_says_so(
    tmp_path: Path,
    programs: tuple[str, str, str, float],
    factor: float,
    details: dict[str, Any],
    level: Severity | None,
) -> None:
    own, other, workload, value = programs
    records = make.runs(own, workload, value, details=details)
    records += make.runs(other, workload, value / factor)
    found = notes(make.only_row(tmp_path / "c", records), "disagreement")
    assert [note.severity for note in found] == ([level] if level else [])
    assert all(contains(values_of(note), {"factor": max(factor, 1 / factor)}) for note in found)


@pytest.mark.parametrize(("isa", "code"), [("auto", "disagreement"), ("scalar", "otherwise")])
def test_scalar_operations_beside_hpl_are_no_contradiction(
    tmp_path: Path, isa: str, code: str
) -> None:
    records = make.runs("cpubench", "DP", 3e9, isa=isa) + make.runs("hpl", "DP", 9e10, isa=isa)
    row = make.only_row(tmp_path / "c", records)
    assert {note.code for note in row.warnings} & {"disagreement", "otherwise"} == {code}


@pytest.mark.parametrize("isa", ["auto", "scalar"])
def test_a_published_value_that_was_defined_otherwise_says_so(tmp_path: Path, isa: str) -> None:
    name = "four-subsystems-2018-hyperion"
    config = {"report": {"published": [name]}}
    row = make.only_row(tmp_path / "c", make.runs("cpubench", "DP", 3e9, isa=isa), config=config)
    expected = {"source": name, "name": "instruction set", "there": "scalar", "here": "auto"}
    defined = [dict(note.values) for note in notes(row, "defined")]
    assert defined == ([expected] if isa == "auto" else [])


@pytest.mark.parametrize(("disturbed", "shared"), [(1, False), (6, True)])
@pytest.mark.parametrize(
    ("code", "place", "bad", "good"),
    [
        ("waited", "details", {"cpu_share": 0.5}, {"cpu_share": 1.0}),
        ("crowded-core", "details", {"held_up": 1}, {"held_up": 0}),
        ("steal", "context", noise(steal=0.3), noise()),
    ],
)
def test_what_most_rows_have_that_can_show_it_is_the_campaigns(
    tmp_path: Path, code: str, place: str, bad: Any, good: Any, disturbed: int, shared: bool
) -> None:
    """One row of eight, or six; beside them eight of the network that can show none of it."""
    records: Records = []
    points = [(workload, count) for workload in ("DP", "SP", "HP", "QP") for count in (1, 2)]
    for number, (workload, threads) in enumerate(points):
        load = bad if number < disturbed else good
        of_row: dict[str, Any] = {"concurrency": threads, place: load}
        records += make.runs("cpubench", workload, 5e10, 5e10, **of_row)
        records += make.runs("netbench", "TCP", 1e10, block=1 << number)
    rows = make.judge(tmp_path / "c", records).rows["cpu"]
    marked = [note for row in rows for note in notes(row, code)]
    assert [note.is_shared for note in marked] == [shared] * disturbed
    assert [row.level for row in rows].count(U) == (0 if shared else disturbed)
    assert sum(bool(row.shared_warnings) for row in rows) == (disturbed if shared else 0)


def test_what_only_some_rows_can_show_is_counted_among_these(tmp_path: Path) -> None:
    """Clocks that move in most rows of the CPU are the machine's, however many rows of the network
    know none.
    """
    records: Records = []
    for threads in (1, 2, 3, 4):
        for number, hz in enumerate((3.0e9, 3.0e9, 2.7e9)):
            details = {"clock_hz_before": hz, "clock_hz_after": 2.7e9 if threads > 2 else hz}
            place = {"concurrency": threads, "repetition": number, "details": details}
            records += make.runs("cpubench", "DP", 5e10, **place)
    for block in range(1, 9):
        records += make.runs("netbench", "TCP", 1e10, block=block << 10)
    rows = make.judge(tmp_path / "c", records).rows
    found = [note for row in rows["cpu"] for note in row.warnings if note.code.startswith("clock")]
    assert sorted(note.code for note in found) == ["clock-differs"] * 2 + ["clock-moved"] * 2
    assert all(note.is_shared for note in found)
    (condition,) = (each for each in verdict.conditions(rows) if "clock" in each.text)
    values = dict(condition.values)
    assert (values["rows"], values["of"], len(values["parts"])) == (4, 12, 2)


@pytest.mark.parametrize(
    ("virtual", "flush", "kept"), [(True, 1e-4, True), (True, 0.1, False), (False, 1e-4, False)]
)
def test_a_disk_whose_host_keeps_its_writes_is_not_read_without_doubt(
    tmp_path: Path, virtual: bool, flush: float, kept: bool
) -> None:
    """What it read may have come from there, too."""
    moved = {"work": 8e8, "device_bytes": 8e8}
    records = make.runs("diskbench", "RS", *make.near(3e9, 3), details=moved)
    records += make.runs("diskbench", "WS", 1e9, details=moved | {"flush_seconds": flush})
    facts = {"cpu": {"virtualised": "KVM" if virtual else None}}
    read, written = make.judge(tmp_path / "c", records, facts=facts).rows["disk_throughput"]
    assert [read.level, written.level] == [None, U if kept else None]
    assert [note.code for note in read.shared_warnings] == (["host-cache"] if kept else [])
