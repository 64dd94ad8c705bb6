"""The PDF: what it says, that hostile names cannot break it, that it never changes without a
reason.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit import campaign_data as make
from tests.unit.pdf import text as pdf_text

from peakmark.errors import ConfigError, PeakmarkError
from peakmark.figures import figures
from peakmark.formatting import duration
from peakmark.report import pdf_report, stored
from peakmark.resources import ROOT
from peakmark.storage.results import Results

GRID = {"cpu": [{"workloads": ["SP"], "concurrency": [1]}]}
HOSTILE = '#panic("x") $a$ *b* _c_ <d> @e [f] `g` \\ // "h" 漢字 \u202e\x07 🦄 ' + "very-long_" * 30


def test_the_report_holds_title_tables_runs_and_provenance(swept: Path) -> None:
    pdf = swept / "report.pdf"
    text = pdf_text(pdf)
    front = ("Limits", "Jane Dœ", "CS 553", "21. November 2026")
    programs = ("MyCPUBench", "MyNETBench", "likwid-bench")
    titles = ("CPU: operations per second", "Memory: latency", "Disk: throughput")
    chapters = ("Machine", "Method", "Every run", "Artifact description", "theoretical values")
    for words in (*front, *programs, *titles, *chapters):
        assert words in text, words
    pages = text.split("\f")
    on = next(
        number
        for number, page in enumerate(pages, 1)
        if re.search(r"^ *\d+ Memory$", page, re.MULTILINE)
    )
    assert f"Memory {on} " in pages[0], "contents"


def test_the_results_come_first_and_each_table_before_its_figures(swept: Path) -> None:
    text = pdf_text(swept / "report.pdf").replace("\f", "\n")
    chapters = re.findall(r"^ *\d+ ([A-Z][a-zA-Z ]+)$", text, re.MULTILINE)
    expected = ["CPU", "Memory", "Disk", "Network", "Machine", "Method", "Every run"]
    expected += ["Artifact description", "References"]
    assert [title for title in chapters if title in expected] == expected
    results = text[text.index("1.1 Operations") : text.index("How a number arises")]
    parts = [
        part for part in re.split(r"^ *\d\.\d ", results, flags=re.MULTILINE) if "Table " in part
    ]
    assert len(parts) == 8
    for part in parts:
        places = [part.find(words) for words in ("Table ", "Figure ", "What the numbers say")]
        assert 0 <= places[0] < min(place for place in places[1:] if place >= 0), part[:200]


def test_the_same_records_give_the_same_bytes(swept: Path, tmp_path: Path) -> None:
    before = (swept / "report.pdf").read_bytes()
    assert pdf_report.build(swept, target=tmp_path / "again.pdf").read_bytes() == before


def test_the_pdf_claims_the_archival_and_the_accessible_standard(swept: Path) -> None:
    content = (swept / "report.pdf").read_bytes()
    assert b"<pdfaid:part>2</pdfaid:part>" in content
    assert b"<pdfaid:conformance>A</pdfaid:conformance>" in content
    assert b"<pdfuaid:part>1</pdfuaid:part>" in content


def test_hostile_names_are_printed_not_executed(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    bad = make.record(of, [make.measurement(of, "rate", 4e10)], host=HOSTILE, warnings=[HOSTILE])
    failed = make.record(
        make.cell("hpl", "DP", subsystem="cpu"), status="failed", reason=HOSTILE, host=HOSTILE
    )
    config = {"report": {"title": HOSTILE, "author": HOSTILE, "course": HOSTILE}}
    folder = make.write(
        tmp_path / "c", [bad], attempts=[failed], config=config, facts={"host": HOSTILE}
    )
    assert '#panic("x") $a$ *b*' in pdf_text(pdf_report.build(folder))


def test_hebrew_and_faces_in_a_title_are_drawn(tmp_path: Path) -> None:
    config = {"report": {"title": "גבולות \U0001f600", "author": "Жанна Ω"}}
    folder = make.write(tmp_path / "c", [], config=config)
    text = pdf_text(pdf_report.build(folder))
    assert "\ufffd" not in text and "\U0001f600" in text and "Жанна Ω" in text
    assert set("גבולות") <= set(text)


def test_what_no_font_has_is_told_and_the_report_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"report": {"title": "Title \U0010fffd", "author": "Жанна"}}
    folder = make.write(tmp_path / "c", [], config=config)
    text = pdf_text(pdf_report.build(folder))
    assert "Title" in text and "Жанна" in text
    assert "no font" in capsys.readouterr().err


def test_missing_cells_need_partial_and_are_then_shown(tmp_path: Path) -> None:
    hole = make.cell("cpubench", "QP", subsystem="cpu")
    folder = make.write(tmp_path / "c", make.runs("cpubench", "DP", 4e10), planned=[hole])
    figures.build(folder)
    with pytest.raises(PeakmarkError, match=r"1 of 2 planned cells .* have no record"):
        pdf_report.build(folder)
    text = pdf_text(pdf_report.build(folder, partial=True))
    assert "Partial report" in text
    assert "not measured" in text


def test_a_plan_without_records_still_gives_a_report(tmp_path: Path) -> None:
    folder = make.write(tmp_path / "c", [], planned=[make.cell("cpubench", "DP", subsystem="cpu")])
    text = pdf_text(pdf_report.build(folder, partial=True))
    assert "not measured" in text
    assert "nothing measured yet" in text
    assert "1970" not in text


def test_a_logo_is_shown_and_a_missing_one_is_one_sentence(tmp_path: Path) -> None:
    logo = tmp_path / "logo.svg"
    logo.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="9" height="9"/></svg>'
    )
    folder = make.write(tmp_path / "c", [], config={"report": {"logo": str(logo)}})
    assert pdf_report.build(folder).stat().st_size > 0
    folder = make.write(tmp_path / "d", [], config={"report": {"logo": str(tmp_path / "none.svg")}})
    with pytest.raises(ConfigError, match=r"report\.logo: .*none\.svg' is not an image"):
        pdf_report.build(folder)


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    folder = make.write(tmp_path / "c", [])
    for target in (tmp_path / "no" / "r.pdf", tmp_path / "c"):
        with pytest.raises(
            PeakmarkError, match=r"cannot write .*(there is no folder|it is a folder)"
        ):
            pdf_report.build(folder, target=target)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def _top_right(pdf: Path, folder: Path) -> set[tuple[int, int, int]]:
    """Colours of the upper right corner of the first page, where the logo stands."""
    if shutil.which("pdftoppm") is None:
        pytest.skip("pdftoppm (poppler-utils) is not installed")
    words = ["pdftoppm", "-r", "50", "-f", "1", "-l", "1", "-singlefile"]
    subprocess.run([*words, str(pdf), str(folder / "page")], check=True)
    header, _, pixels = (folder / "page.ppm").read_bytes().partition(b"\n255\n")
    width = int(header.split()[1])
    lines = [pixels[start : start + 3 * width] for start in range(0, 3 * width * 80, 3 * width)]
    return {
        tuple(line[at : at + 3])
        for line in lines
        for at in range(3 * width // 2 // 3 * 3, 3 * width, 3)
    }  # type: ignore[misc]


def test_the_logo_stands_on_the_first_page(tmp_path: Path) -> None:
    logo = tmp_path / "logo.svg"
    red = '<rect width="40" height="40" fill="#ff0000"/>'
    logo.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">{red}</svg>')
    without = pdf_report.build(make.write(tmp_path / "c", []))
    assert (255, 0, 0) not in _top_right(without, tmp_path)
    shown = pdf_report.build(make.write(tmp_path / "d", [], config={"report": {"logo": str(logo)}}))
    assert (255, 0, 0) in _top_right(shown, tmp_path)


def test_durations_are_told_in_fitting_units() -> None:
    assert [duration(seconds) for seconds in (0.2, 48, 700, 7190, 12_000)] == [
        "1 s", "48 s", "12 min", "2 h 0 min", "3 h 20 min"
    ]  # fmt: skip


def test_verapdf_finds_nothing_wrong(swept: Path, tmp_path: Path) -> None:
    """The standards' own checker, which envs/install.sh brings where it can; it holds a file to all
    that it claims to be.
    """
    jars = ROOT / ".venv" / "verapdf"
    if not jars.is_dir():
        pytest.skip("veraPDF is not installed: see what envs/install.sh says")
    # It ends before a compiler that optimises has paid.
    java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
    java += [f"-Duser.home={tmp_path}"]
    java += [f"-Djava.io.tmpdir={tmp_path}", "-cp", f"{jars}/*"]
    pdf = swept / "report.pdf"
    words = [*java, "org.verapdf.apps.GreenfieldCliWrapper", "--format", "text", "-v", str(pdf)]
    done = subprocess.run(words, capture_output=True, text=True)
    verdicts = {
        line.split()[-1]: line.split()[0] for line in done.stdout.splitlines() if str(pdf) in line
    }
    assert verdicts == {"2a": "PASS", "ua1": "PASS"}, done.stdout + done.stderr


def test_what_is_stored_is_used_until_the_campaign_changes(tmp_path: Path) -> None:
    folder = make.write(tmp_path / "c", make.runs("cpubench", "DP", 4e10))
    first = stored.build(folder)
    path = folder / "analysis.json"
    before = path.stat().st_mtime_ns
    pdf_report.build(folder)
    assert path.stat().st_mtime_ns == before
    for spoil in (
        lambda: path.write_text(path.read_text().replace("DP", "QP")),
        lambda: path.write_text("[]"),
        (folder / "figures" / "cpu.svg").unlink,
    ):
        spoil()
        pdf_report.build(folder)
        assert stored.current(Results.read(folder), False, "report", folder) == first
        assert (folder / "figures" / "cpu.svg").exists()
    make.write(folder, make.runs("cpubench", "DP", 5e10))
    assert stored.current(Results.read(folder), False, "report", folder) != first


def test_a_warning_that_the_checks_repeat_is_said_once(tmp_path: Path) -> None:
    records = make.runs("cpubench", "DP", 4e10, concurrency=4, context={"cpus": [0, 1]})
    records[0]["warnings"] = [
        "4 threads share 2 CPUs: the threads take turns, so this is no scaling result",
        "something else",
    ]
    (row,) = make.judge(tmp_path / "c", records).rows["cpu"]
    assert len([note for note in row.said(row.remarks) if "2 CPUs" in note]) == 1
    assert "oversubscribed" in {note.code for note in row.warnings}
    assert any("something else" in note for note in row.said(row.remarks))
