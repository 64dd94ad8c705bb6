"""The PDF: what it says, that hostile names cannot break it, that it never changes without a reason."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark import document, figures, report, rows, tables
from peakmark.errors import ConfigError, PeakmarkError
from peakmark.results import Results

HOSTILE = '#panic("x") $a$ *b* _c_ <d> @e [f] `g` \\ // "h" 漢字 \u202e\x07 🦄 ' + "very-long_" * 30


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole campaign with every figure, built once."""
    config = {"report": {"title": "Limits", "author": "Jane Dœ", "course": "CS 553", "language": "de"}}
    folder = make.write(tmp_path_factory.mktemp("results") / "sweep", make.sweep(), config=config)
    figures.build(folder)
    return folder


def _text(pdf: Path) -> str:
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext (poppler-utils) is not installed")
    done = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], capture_output=True, text=True, check=True)
    return done.stdout


def _data(folder: Path, partial: bool = True) -> dict[str, Any]:
    results = Results.read(folder)
    return document.build(results, rows.build(results), {}, None, partial)


def test_the_report_holds_title_tables_runs_and_provenance(swept: Path) -> None:
    pdf = report.build(swept)
    text = _text(pdf)
    for words in ("Limits", "Jane Dœ", "CS 553", "21. November 2026", "MyCPUBench", "MyNETBench", "likwid-bench"):
        assert words in text, words
    for table in ("CPU: operations per second", "Memory: latency", "Disk: throughput", "Network: latency"):
        assert table in text, table
    for chapter in ("Machine", "Method", "Every run", "Provenance", "Where the theoretical values come from"):
        assert chapter in text, chapter


def test_the_same_records_give_the_same_bytes(swept: Path) -> None:
    before = report.build(swept).read_bytes()
    assert report.build(swept).read_bytes() == before


def test_the_pdf_claims_the_archival_and_the_accessible_standard(swept: Path) -> None:
    content = report.build(swept).read_bytes()
    assert b"<pdfaid:part>2</pdfaid:part>" in content
    assert b"<pdfaid:conformance>A</pdfaid:conformance>" in content
    assert b"<pdfuaid:part>1</pdfuaid:part>" in content


def test_hostile_names_are_printed_not_executed(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    bad = make.record(of, [make.measurement(of, "rate", 4e10)], host=HOSTILE, warnings=[HOSTILE])
    failed = make.record(make.cell("hpl", "DP", subsystem="cpu"), status="failed", reason=HOSTILE, host=HOSTILE)
    config = {"report": {"title": HOSTILE, "author": HOSTILE, "course": HOSTILE}}
    folder = make.write(tmp_path / "c", [bad], attempts=[failed], config=config, facts={"host": HOSTILE})
    figures.build(folder)
    assert '#panic("x") $a$ *b*' in _text(report.build(folder))


def test_characters_without_a_glyph_are_replaced() -> None:
    assert report.printable({"a": ["x漢", 1, None], "b": "é – ✓ ∑"}) == {"a": ["x\ufffd", 1, None], "b": "é – ✓ ∑"}


def test_missing_cells_need_partial_and_are_then_shown(tmp_path: Path) -> None:
    done, hole = (make.cell("cpubench", workload, subsystem="cpu") for workload in ("DP", "QP"))
    folder = make.write(tmp_path / "c", [make.record(done, [make.measurement(done, "rate", 4e10)])], planned=[hole])
    figures.build(folder)
    with pytest.raises(PeakmarkError, match=r"1 of 2 planned cells .* have no record"):
        report.build(folder)
    text = _text(report.build(folder, partial=True))
    assert "Partial report" in text
    assert "not measured" in text


def test_an_empty_plan_still_gives_a_report(tmp_path: Path) -> None:
    folder = make.write(tmp_path / "c", [])
    figures.build(folder)
    assert "Nothing was measured" in _text(report.build(folder))


def test_a_logo_is_shown_and_a_missing_one_is_one_sentence(tmp_path: Path) -> None:
    logo = tmp_path / "logo.svg"
    logo.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="9" height="9"/></svg>')
    folder = make.write(tmp_path / "c", [], config={"report": {"logo": str(logo)}})
    assert report.build(folder).stat().st_size > 0
    folder = make.write(tmp_path / "d", [], config={"report": {"logo": str(tmp_path / "none.svg")}})
    with pytest.raises(ConfigError, match=r"report\.logo: .*none\.svg' is not an image"):
        report.build(folder)


def test_a_missing_figure_is_one_sentence(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    folder = make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 4e10)])])
    with pytest.raises(PeakmarkError, match=r"overview\.svg is missing"):
        report.build(folder)


def test_numbers_are_padded_to_one_decimal_mark(swept: Path) -> None:
    data = _data(swept)
    table = data["sections"][1]["parts"][0]["table"]
    for place, column in enumerate(table["columns"]):
        cells = [line[place] for line in table["body"] if isinstance(line[place], dict) and line[place]["text"]]
        widths = {len((cell["text"] + cell["pad"]).partition(".")[2]) for cell in cells}
        assert len(widths) <= 1, column


def test_decimal_comma_reaches_every_number_of_the_tables(swept: Path, tmp_path: Path) -> None:
    folder = tmp_path / "comma"
    shutil.copytree(swept, folder)
    plan = json.loads((folder / "plan.json").read_text())
    plan["config"]["report"]["decimal_mark"] = ","
    (folder / "plan.json").write_text(json.dumps(plan))
    data = _data(folder)
    for section in data["sections"]:
        for part in section["parts"]:
            numbers = [cell["text"] for line in part["table"]["body"] for cell in line if isinstance(cell, dict)]
            assert not [text for text in numbers if "." in text]
    assert "," in data["numbers"][0]["number"]


def test_problems_name_failed_repeated_refused_and_missing_cells(tmp_path: Path) -> None:
    ok, refused, hole = (make.cell("cpubench", name, subsystem="cpu") for name in ("DP", "QPDOT", "SP"))
    folder = make.write(
        tmp_path / "c",
        [
            make.record(ok, [make.measurement(ok, "rate", 4e10)]),
            make.record(refused, status="unavailable", reason="the CPU has no such instruction"),
        ],
        planned=[hole],
        attempts=[make.record(ok, status="failed", reason="killed by signal 9")],
    )
    lines = {line[0].split()[1]: line[1:] for line in _data(folder)["problems"]["lines"]}
    assert lines["QPDOT_none_x1"] == ["not possible here", "the CPU has no such instruction"]
    assert lines["DP_none_x1"] == ["failed, repeated later", "killed by signal 9 (node1)"]
    assert lines["SP_none_x1"] == ["not measured", "no record yet"]


def test_the_checksum_file_is_what_sha256sum_reads(swept: Path) -> None:
    tables.build(swept)
    lines = (swept / "tables" / "checksums.txt").read_text().splitlines()
    assert len(lines) == len(Results.read(swept).checksums)
    digest, path = lines[0].split("  ")
    assert len(digest) == 64
    assert path.startswith("cells/")
