"""A remark is about an instrument; what a layout calls the program is drawn last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.judging import rows
from peakmark.judging.row import Row
from peakmark.storage.results import Results


def _row(tmp_path: Path, ping: str, own: str = "MyNETBench") -> Row:
    """One of TCP's round trips beside a ping of a tenth, in a table that calls the programs so."""
    columns = [
        {"heading": "Protocol", "text": "{workload}"},
        {"heading": f"{own} Measured Latency (ms)", "value": "measured"},
        {"heading": f"{ping} Measured Latency (ms)", "value": "measured", "of": "ping"},
    ]
    layout_table = {
        "name": "latency",
        "of": "network_latency",
        "title": "Latency",
        "columns": columns,
    }
    layout = tmp_path / "mine.yaml"
    layout.write_text(
        json.dumps(
            {"schema": 1, "name": "mine", "description": "A table.", "tables": [layout_table]}
        )
    )
    cells = (
        make.cell("netbench", "LAT-TCP", subsystem="network", block=1),
        make.cell("ping", "LAT-ICMP", subsystem="network"),
    )
    records = [
        make.record(cell, [make.measurement(cell, "latency", value)])
        for cell, value in zip(cells, (3e-5, 3e-6), strict=True)
    ]
    folder = make.write(tmp_path / "c", records, config={"report": {"tables": str(layout)}})
    (row,) = rows.build(Results.read(folder))["network_latency"]
    return row


@pytest.mark.parametrize("ping", ["ping", "Ping", "ICMP echo"])
def test_an_echo_is_no_reference_whatever_a_layout_calls_it(tmp_path: Path, ping: str) -> None:
    row = _row(tmp_path, ping)
    assert next(entry.heading for entry in row.table.references) == ping
    assert not [note for note in row.warnings if note.code == "disagreement"]


def test_a_remark_carries_no_heading_until_it_is_shown(tmp_path: Path) -> None:
    row = _row(tmp_path, "ping", own="Our kernel")
    about = [note for note in row.warnings if note.about == "netbench"]
    assert about and not [note for note in row.warnings if "Our kernel" in note.text]
    assert all(f"Our kernel: {note.text}" in row.said(row.remarks) for note in about)


def _codes(folder: Path, table: str) -> list[set[str]]:
    return [{note.code for note in row.warnings} for row in rows.build(Results.read(folder))[table]]


def test_what_is_missing_and_what_a_program_said_are_remarks(tmp_path: Path) -> None:
    done, hole = (
        make.cell("cpubench", "DP", subsystem="cpu", repetition=number) for number in (0, 1)
    )
    record = make.record(
        done, [make.measurement(done, "rate", 4e10)], warnings=["the clock source is a slow one"]
    )
    (codes,) = _codes(make.write(tmp_path / "c", [record], planned=[hole]), "cpu")
    assert {"not-measured", "warning"} <= codes


def test_echoes_of_fewer_streams_say_so(tmp_path: Path) -> None:
    own = make.cell("netbench", "LAT-TCP", subsystem="network", block=1, concurrency=4)
    ping = make.cell("ping", "LAT-ICMP", subsystem="network")
    records = [make.record(cell, [make.measurement(cell, "latency", 3e-5)]) for cell in (own, ping)]
    (codes,) = _codes(make.write(tmp_path / "c", records), "network_latency")
    assert "ping-streams" in codes


def test_a_reference_that_cannot_do_as_ours_was_asked_to_says_so(tmp_path: Path) -> None:
    place = {"subsystem": "disk", "variant": "psync", "block": 1 << 20}
    own = make.cell("diskbench", "WR", **place, fill="new")
    iozone = make.cell("iozone", "ALL", **place, fill="new")
    records = [
        make.record(own, [make.measurement(own, "throughput", 4e8)]),
        make.record(
            iozone,
            [
                make.measurement(
                    iozone, "throughput", 4e8, workload="WR", details={"fill": "overwrite"}
                )
            ],
        ),
    ]
    (row,) = rows.build(Results.read(make.write(tmp_path / "c", records)))["disk_throughput"]
    (ways,) = [dict(note.values)["ways"] for note in row.warnings if note.code == "otherwise"]
    assert ways == "fill overwrite, not new"


@pytest.mark.parametrize(("rate", "apart"), [(60e9, "1.7"), (170e9, "1.7"), (99e9, "")])
def test_a_reference_that_disagrees_says_so(rate: float, apart: str, tmp_path: Path) -> None:
    cells = [make.cell(name, "DP", subsystem="cpu") for name in ("cpubench", "hpl", "likwid-bench")]
    records = [
        make.record(of, [make.measurement(of, "rate", value)])
        for of, value in zip(cells, (100e9, rate, 99e9), strict=True)
    ]
    (row,) = rows.build(Results.read(make.write(tmp_path / "c", records)))["cpu"]
    found = [note for note in row.specific_warnings if note.code == "disagreement"]
    assert bool(found) == bool(apart)
    for note in found:
        assert note.fact.startswith("MyCPUBench and HPL") and apart in note.fact


@pytest.mark.parametrize(("isa", "codes"), [("auto", {"disagreement"}), ("scalar", {"otherwise"})])
def test_scalar_operations_beside_hpl_are_no_contradiction(
    tmp_path: Path, isa: str, codes: set[str]
) -> None:
    cells = [make.cell(name, "DP", subsystem="cpu", isa=isa) for name in ("cpubench", "hpl")]
    records = [
        make.record(of, [make.measurement(of, "rate", value)])
        for of, value in zip(cells, (3e9, 9e10), strict=True)
    ]
    (found,) = _codes(make.write(tmp_path / "c", records), "cpu")
    assert found & {"disagreement", "otherwise"} == codes


def test_a_published_value_that_was_defined_otherwise_says_so(tmp_path: Path) -> None:
    name = "four-subsystems-2018-hyperion"
    for isa in ("auto", "scalar"):
        of = make.cell("cpubench", "DP", subsystem="cpu", isa=isa)
        record = make.record(of, [make.measurement(of, "rate", 3e9)])
        folder = make.write(tmp_path / isa, [record], config={"report": {"published": [name]}})
        (row,) = rows.build(Results.read(folder))["cpu"]
        defined = [dict(note.values) for note in row.warnings if note.code == "defined"]
        expected = {"source": name, "name": "instruction set", "there": "scalar", "here": "auto"}
        assert defined == ([expected] if isa == "auto" else [])
