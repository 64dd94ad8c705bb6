"""A remark is about an instrument; what a layout calls the program is drawn last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import analysis
from peakmark.analysis.row import Row
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
    records = make.runs("netbench", "LAT-TCP", 3e-5, block=1) + make.runs("ping", "LAT-ICMP", 3e-6)
    config = {"report": {"tables": str(layout)}}
    (row,) = make.judge(tmp_path / "c", records, config=config).rows["network_latency"]
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


def _codes(rows: Sequence[Row]) -> set[str]:
    (row,) = rows
    return {note.code for note in row.warnings}


def test_what_is_missing_and_what_a_program_said_are_remarks(tmp_path: Path) -> None:
    hole = make.cell("cpubench", "DP", subsystem="cpu", repetition=1)
    records = make.runs("cpubench", "DP", 4e10)
    records[0]["warnings"] = ["the clock source is a slow one"]
    found = make.judge(tmp_path / "c", records, planned=[hole])
    assert {"not-measured", "warning"} <= _codes(found.rows["cpu"])


def test_echoes_of_fewer_streams_say_so(tmp_path: Path) -> None:
    records = make.runs("netbench", "LAT-TCP", 3e-5, block=1, concurrency=4)
    records += make.runs("ping", "LAT-ICMP", 3e-5)
    found = make.judge(tmp_path / "c", records)
    assert "ping-streams" in _codes(found.rows["network_latency"])


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
    (row,) = analysis.build_rows(Results.read(make.write(tmp_path / "c", records)))[
        "disk_throughput"
    ]
    (ways,) = [dict(note.values)["ways"] for note in row.warnings if note.code == "otherwise"]
    assert ways == "fill overwrite, not new"


@pytest.mark.parametrize(("rate", "apart"), [(60e9, "1.7"), (170e9, "1.7"), (99e9, "")])
def test_a_reference_that_disagrees_says_so(rate: float, apart: str, tmp_path: Path) -> None:
    records = []
    for tool, value in (("cpubench", 100e9), ("hpl", rate), ("likwid-bench", 99e9)):
        records += make.runs(tool, "DP", value)
    (row,) = make.judge(tmp_path / "c", records).rows["cpu"]
    found = [note for note in row.specific_warnings if note.code == "disagreement"]
    assert bool(found) == bool(apart)
    for note in found:
        assert note.fact.startswith("MyCPUBench and HPL") and apart in note.fact


@pytest.mark.parametrize(("isa", "codes"), [("auto", {"disagreement"}), ("scalar", {"otherwise"})])
def test_scalar_operations_beside_hpl_are_no_contradiction(
    tmp_path: Path, isa: str, codes: set[str]
) -> None:
    records = make.runs("cpubench", "DP", 3e9, isa=isa) + make.runs("hpl", "DP", 9e10, isa=isa)
    found = _codes(make.judge(tmp_path / "c", records).rows["cpu"])
    assert found & {"disagreement", "otherwise"} == codes


def test_a_published_value_that_was_defined_otherwise_says_so(tmp_path: Path) -> None:
    name = "four-subsystems-2018-hyperion"
    for isa in ("auto", "scalar"):
        records = make.runs("cpubench", "DP", 3e9, isa=isa)
        config = {"report": {"published": [name]}}
        (row,) = make.judge(tmp_path / isa, records, config=config).rows["cpu"]
        defined = [dict(note.values) for note in row.warnings if note.code == "defined"]
        expected = {"source": name, "name": "instruction set", "there": "scalar", "here": "auto"}
        assert defined == ([expected] if isa == "auto" else [])
