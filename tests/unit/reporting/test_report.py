"""The PDF: what it says, that hostile names cannot break it, that it never changes without a reason."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit import campaign_data as make
from tests.unit.pdf import text as pdf_text

from peakmark import fonts
from peakmark.errors import ConfigError, PeakmarkError
from peakmark.figures import figures
from peakmark.formatting import duration
from peakmark.judging import rows, verdict
from peakmark.planning import plan
from peakmark.reporting import artifact, document, provenance, report
from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.tables import tables

GRID = {"cpu": [{"workloads": ["SP"], "concurrency": [1]}]}
HOSTILE = '#panic("x") $a$ *b* _c_ <d> @e [f] `g` \\ // "h" 漢字 \u202e\x07 🦄 ' + "very-long_" * 30


def _data(folder: Path, partial: bool = True) -> dict[str, Any]:
    results = Results.read(folder)
    return document.build(results, rows.build(results), {}, None, partial)


def test_the_report_holds_title_tables_runs_and_provenance(swept: Path) -> None:
    pdf = swept / "report.pdf"
    text = pdf_text(pdf)
    for words in ("Limits", "Jane Dœ", "CS 553", "21. November 2026", "MyCPUBench", "MyNETBench", "likwid-bench"):
        assert words in text, words
    for table in ("CPU: operations per second", "Memory: latency", "Disk: throughput", "Network: latency"):
        assert table in text, table
    for chapter in ("Machine", "Method", "Every run", "Artifact description", "Where the theoretical values come from"):
        assert chapter in text, chapter
    pages = text.split("\f")
    on = next(number for number, page in enumerate(pages, 1) if re.search(r"^ *\d+ Memory$", page, re.MULTILINE))
    assert f"Memory {on} " in pages[0], "the contents on page one say the page"


def test_the_results_come_first_and_each_table_before_its_figures(swept: Path) -> None:
    text = pdf_text(swept / "report.pdf").replace("\f", "\n")
    chapters = re.findall(r"^ *\d+ ([A-Z][a-zA-Z ]+)$", text, re.MULTILINE)
    expected = [
        "CPU",
        "Memory",
        "Disk",
        "Network",
        "Machine",
        "Method",
        "Every run",
        "Artifact description",
        "References",
    ]
    assert [title for title in chapters if title in expected] == expected
    results = text[text.index("1.1 Operations") : text.index("How a number arises")]
    parts = [part for part in re.split(r"^ *\d\.\d ", results, flags=re.MULTILINE) if "Table " in part]
    assert len(parts) == 8
    for part in parts:
        places = [part.find(words) for words in ("Table ", "Figure ", "What the numbers say")]
        assert 0 <= places[0] < min(place for place in places[1:] if place >= 0), part[:200]


def test_the_same_records_give_the_same_bytes(swept: Path, tmp_path: Path) -> None:
    before = (swept / "report.pdf").read_bytes()
    assert report.build(swept, target=tmp_path / "again.pdf").read_bytes() == before


def test_the_pdf_claims_the_archival_and_the_accessible_standard(swept: Path) -> None:
    content = (swept / "report.pdf").read_bytes()
    assert b"<pdfaid:part>2</pdfaid:part>" in content
    assert b"<pdfaid:conformance>A</pdfaid:conformance>" in content
    assert b"<pdfuaid:part>1</pdfuaid:part>" in content


def test_hostile_names_are_printed_not_executed(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    bad = make.record(of, [make.measurement(of, "rate", 4e10)], host=HOSTILE, warnings=[HOSTILE])
    failed = make.record(make.cell("hpl", "DP", subsystem="cpu"), status="failed", reason=HOSTILE, host=HOSTILE)
    shown = HOSTILE.replace("漢字", "").replace("🦄", "")  # what no font has is refused there
    config = {"report": {"title": shown, "author": shown, "course": shown}}
    folder = make.write(tmp_path / "c", [bad], attempts=[failed], config=config, facts={"host": HOSTILE})
    figures.build(folder)
    assert '#panic("x") $a$ *b*' in pdf_text(report.build(folder))


def test_characters_without_a_glyph_are_replaced() -> None:
    value = {"a": ["x漢", 1, None], "b": "é – ✓ ∑"}
    assert report.printable(value, fonts.known([])) == {"a": ["x\ufffd", 1, None], "b": "é – ✓ ∑"}


def test_hebrew_and_faces_in_a_title_are_drawn(tmp_path: Path) -> None:
    config = {"report": {"title": "גבולות \U0001f600", "author": "Жанна Ω"}}
    folder = make.write(tmp_path / "c", [], config=config)
    figures.build(folder)
    text = pdf_text(report.build(folder))
    assert "\ufffd" not in text and "\U0001f600" in text and "Жанна Ω" in text
    assert set("גבולות") <= set(text)


def test_what_no_font_has_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_installed", list)
    for title, character, package in (
        ("性能", "性", "fonts-noto-cjk"),
        ("a \U0001f9e9", "\U0001f9e9", "fonts-symbola"),
    ):
        with pytest.raises(ConfigError, match=f"report.title has .*{character}.*install {package}"):
            plan.make({**GRID, "report": {"title": title}})
    plan.make({**GRID, "report": {"title": "Straße – Ω ≥ Ж"}})


def test_a_font_that_is_installed_here_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes with matplotlib stands for it: what it has beyond the others."""
    own = {path: fonts._characters(path) for path in fonts._shipped("DejaVuSans").parent.glob("*.ttf")}
    others = own[fonts._shipped("DejaVuSans")] | own[fonts._shipped("DejaVuSansMono")]
    path, more = next((path, more) for path, codes in sorted(own.items()) if (more := sorted(codes - others)))
    assert fonts._choose(chr(more[0])) != ([path], []), "not without installing it"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "fonts" / "new").mkdir(parents=True)
    copy = Path(shutil.copy(path, tmp_path / "fonts" / "new"))
    monkeypatch.setattr(fonts, "FOLDERS", ())
    assert fonts._choose(chr(more[0])) == ([copy], [])
    assert fonts.needed({"title": "Straße"}) == []


def test_missing_cells_need_partial_and_are_then_shown(tmp_path: Path) -> None:
    done, hole = (make.cell("cpubench", workload, subsystem="cpu") for workload in ("DP", "QP"))
    folder = make.write(tmp_path / "c", [make.record(done, [make.measurement(done, "rate", 4e10)])], planned=[hole])
    figures.build(folder)
    with pytest.raises(PeakmarkError, match=r"1 of 2 planned cells .* have no record"):
        report.build(folder)
    text = pdf_text(report.build(folder, partial=True))
    assert "Partial report" in text
    assert "not measured" in text


def test_one_node_comes_and_two_come_to_their_limits(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    folder = make.write(tmp_path / "c", [], planned=[of])
    one = _data(folder)["meta"]
    assert "comes to the limits of its processor" in one["lead"]
    assert one["partial_text"] == "1 of 1 planned cell has no record yet; its row says “not measured”."
    (folder / "machine").mkdir(exist_ok=True)
    for host in ("node1", "node2"):
        (folder / "machine" / f"{host}.json").write_text("{}")
    guest = {"host": "vm", "cpu": {"model_name": "CPU", "cores": 2, "virtualised": "KVM"}}
    virtual = _data(make.write(tmp_path / "v", [], planned=[of], facts=guest))["meta"]
    assert "how close vm, CPU, 2 cores of a virtual machine, comes to" in virtual["lead"]
    results = Results.read(folder)
    two = document.build(results, rows.build(results), {}, None, partial=True)["meta"]
    assert "how close 2 nodes come to the limits of their processor" in two["lead"]


def test_an_empty_plan_still_gives_a_report(tmp_path: Path) -> None:
    folder = make.write(tmp_path / "c", [])
    figures.build(folder)
    text = pdf_text(report.build(folder))
    assert "not measured" in text
    assert "nothing measured yet" in text
    assert "1970" not in text


def test_a_logo_is_shown_and_a_missing_one_is_one_sentence(tmp_path: Path) -> None:
    logo = tmp_path / "logo.svg"
    logo.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="9" height="9"/></svg>')
    folder = make.write(tmp_path / "c", [], config={"report": {"logo": str(logo)}})
    assert report.build(folder).stat().st_size > 0
    folder = make.write(tmp_path / "d", [], config={"report": {"logo": str(tmp_path / "none.svg")}})
    with pytest.raises(ConfigError, match=r"report\.logo: .*none\.svg' is not an image"):
        report.build(folder)


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    folder = make.write(tmp_path / "c", [])
    for target in (tmp_path / "no" / "r.pdf", tmp_path / "c"):
        with pytest.raises(PeakmarkError, match=r"cannot write .*(there is no folder|it is a folder)"):
            report.build(folder, target=target)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def _top_right(pdf: Path, folder: Path) -> set[tuple[int, int, int]]:
    """Colours of the upper right corner of the first page, where the logo stands."""
    if shutil.which("pdftoppm") is None:
        pytest.skip("pdftoppm (poppler-utils) is not installed")
    argv = ["pdftoppm", "-r", "50", "-f", "1", "-l", "1", "-singlefile", str(pdf), str(folder / "page")]
    subprocess.run(argv, check=True)
    header, _, pixels = (folder / "page.ppm").read_bytes().partition(b"\n255\n")
    width = int(header.split()[1])
    lines = [pixels[start : start + 3 * width] for start in range(0, 3 * width * 80, 3 * width)]
    return {tuple(line[at : at + 3]) for line in lines for at in range(3 * width // 2 // 3 * 3, 3 * width, 3)}  # type: ignore[misc]


def test_the_logo_stands_on_the_first_page(tmp_path: Path) -> None:
    logo = tmp_path / "logo.svg"
    red = '<rect width="40" height="40" fill="#ff0000"/>'
    logo.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">{red}</svg>')
    without = report.build(make.write(tmp_path / "c", []))
    assert (255, 0, 0) not in _top_right(without, tmp_path)
    shown = report.build(make.write(tmp_path / "d", [], config={"report": {"logo": str(logo)}}))
    assert (255, 0, 0) in _top_right(shown, tmp_path)


def test_the_first_page_judges_what_was_planned_and_says_what_to_know(tmp_path: Path) -> None:
    own = [make.cell("cpubench", "DP", subsystem="cpu", repetition=number) for number in range(2)]
    theirs = make.cell("hpl", "DP", subsystem="cpu")
    records = [make.record(of, [make.measurement(of, "rate", 4e10)]) for of in own]
    records.append(make.record(theirs, [make.measurement(theirs, "rate", 5e10)]))
    data = _data(make.write(tmp_path / "c", records))
    ((resource, measured, limit, share, reference, confidence),) = data["verdicts"]
    assert resource[0] == "CPU"
    assert measured[1] == "(40.0 to 40.0)" or measured[1].startswith("(40")
    assert (limit[0], share[0], confidence[0]) == ("unknown", "", "no doubt seen")
    assert reference[0].replace("\u00a0", " ") == "0.800 × HPL (n = 1)"
    assert "of its processor. The processor is measured by an own kernel" in data["meta"]["lead"]
    assert data["caveats"][0].startswith("CPU has no known limit, so no share of one: this machine does not tell it.")
    assert data["caveats"][1].startswith("With at most 2 repetitions no single row is called faster")
    assert {line[0] for line in data["method"]["workloads"]} == {"CPU"}
    assert {line[0] for line in data["method"]["programs"]} == {"cpubench (MyCPUBench)", "hpl", "likwid-bench"}


def test_a_share_of_the_limit_is_the_verdict_where_there_is_one(swept: Path) -> None:
    rows_ = rows.build(Results.read(swept))
    found = {entry.subsystem: entry for entry in verdict.verdicts(rows_)}
    for entry in found.values():
        assert entry.row is not None
        assert (entry.share != "") == (entry.row.measured.efficiency is not None)
        assert (entry.confidence == "unsure") == (entry.why != "") == bool(entry.row.doubts)
        assert entry.row.level != "wrong"


def test_the_artifact_description_names_software_expected_results_and_time(swept: Path) -> None:
    found = _data(swept)["artifact"]
    software = dict(found["software"])
    assert "Method" in software["Programs"]
    assert ["fio", "1.2"] in [line[:2] for line in _data(swept)["method"]["programs"]]
    assert "Page one has" in found["expected"], "what is expected stands there, and once"
    results = Results.read(swept)
    # Every record of the sweep took a second.
    assert (
        dict(found["time"])["Measuring"]
        == f"{duration(len(results.records))} for {len(results.records)} cells, one after the other"
    )
    text = pdf_text(swept / "report.pdf")
    for words in (
        "Artifact description",
        "snakemake --profile local --configfile sweep.yaml",
        "peakmark report sweep.zip",
    ):
        assert words in text


def test_durations_are_told_in_fitting_units() -> None:
    assert [duration(seconds) for seconds in (0.2, 48, 700, 7190, 12_000)] == [
        "1 s", "48 s", "12 min", "2 h 0 min", "3 h 20 min"
    ]  # fmt: skip


def test_verapdf_finds_nothing_wrong(swept: Path) -> None:
    """The standards' own checker, which envs/install.sh brings where it can; it holds a file to all that it claims to be."""
    jars = ROOT / ".venv" / "verapdf"
    if not jars.is_dir():
        pytest.skip("veraPDF is not installed: see what envs/install.sh says")
    # It ends before a compiler that optimises has paid.
    java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
    pdf = swept / "report.pdf"
    words = [*java, "org.verapdf.apps.GreenfieldCliWrapper", "--format", "text", "-v", str(pdf)]
    done = subprocess.run(words, capture_output=True, text=True)
    verdicts = {line.split()[-1]: line.split()[0] for line in done.stdout.splitlines() if str(pdf) in line}
    assert verdicts == {"2a": "PASS", "ua1": "PASS"}, done.stdout + done.stderr


def test_a_missing_figure_is_one_sentence(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    folder = make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 4e10)])])
    with pytest.raises(PeakmarkError, match=r"cpu\.svg is missing"):
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
    facts = {
        "host": "node1",
        "cpu": {"clock_hz": {"nominal": 2.445e9}, "cores": 2, "isa_best": "avx2", "microarchitecture": "Zen 3"},
        "limits": {"physical_cores_allowed": 2},
    }
    (folder / "machine").mkdir(exist_ok=True)
    (folder / "machine" / "node1.json").write_text(json.dumps(facts))
    data = _data(folder)
    for section in data["sections"]:
        for part in section["parts"]:
            numbers = [cell["text"] for line in part["table"]["body"] for cell in line if isinstance(cell, dict)]
            assert not [text for text in numbers if "." in text]
            prose = [note[1] for note in part["table"]["notes"]] + list(part["table"]["remarks"])
            prose += [one["text"] for one in part["findings"]] + [one["formula"] for one in part["formulas"]["lines"]]
            for text in prose:
                assert not re.search(r"(?<![\w./-])\d+\.\d+(?![\w.])", text), text
    assert any("," in line[1][0] for line in data["verdicts"])
    formulas = [
        one["formula"] for section in data["sections"] for part in section["parts"] for one in part["formulas"]["lines"]
    ]
    assert any(re.search(r"\d,\d", text) for text in formulas)
    lines = dict(line for node in data["machine"] for group in node["groups"] for line in group["items"])
    assert "," in lines["Clock, nominal"]


def test_a_mean_is_not_called_a_median(swept: Path, tmp_path: Path) -> None:
    assert "median of the repetitions" in _data(swept)["method"]["parts"][0]["paragraphs"][1]
    folder = tmp_path / "mean"
    shutil.copytree(swept, folder)
    plan = json.loads((folder / "plan.json").read_text())
    plan["config"]["report"]["summary"] = "mean"
    (folder / "plan.json").write_text(json.dumps(plan))
    assert "arithmetic mean of the repetitions" in _data(folder)["method"]["parts"][0]["paragraphs"][1]


def test_notes_verdicts_and_findings_call_programs_as_the_layout_does(tmp_path: Path) -> None:
    """A fifth above its limit and spread: the notes name the program, and so do figures and the first page."""
    records = []
    for repetition, value in enumerate((5e8, 9e8, 7e8)):
        for tool in ("diskbench", "iozone"):
            of = make.cell(tool, "WS", subsystem="disk", variant="psync", block=1 << 16, repetition=repetition)
            records.append(make.record(of, [make.measurement(of, "throughput", value)]))
    folder = make.write(tmp_path / "lab", records, config={"report": {"tables": "file-io-lab"}})
    data = _data(folder)
    said = json.dumps([data["verdicts"], data["sections"], data["caveats"]])
    assert "FileIO: values spread" in said
    assert "MyDiskBench" not in said
    assert "WS of 64KB, 1 thread" in said
    # The programs' list says which program stands behind the name.
    assert any(line[0] == "diskbench (FileIO)" for line in data["method"]["programs"])


def test_a_workload_with_two_names_has_findings_under_both(tmp_path: Path) -> None:
    records = []
    for block in (16 << 10, 256 << 20):
        for threads in (1, 2):
            of = make.cell("rambench", "LAT", subsystem="memory", block=block, concurrency=threads)
            records.append(make.record(of, [make.measurement(of, "latency", 1e-9 * threads)]))
    config = {"report": {"tables": "four-subsystems-2018-hyperion"}}
    (part,) = _data(make.write(tmp_path / "c", records, config=config))["sections"][0]["parts"]
    assert part["findings"] == [], "page one says that there are too few repetitions"
    assert [line[0] for line in part["table"]["body"]] == ["RWS", "RWS", "RWR", "RWR"]


def test_unknown_limits_that_differ_in_their_key_alone_are_told_once(tmp_path: Path) -> None:
    records = []
    for workload in ("RS", "WS", "RR"):
        of = make.cell("diskbench", workload, subsystem="disk", variant="psync", block=1 << 20)
        records.append(make.record(of, [make.measurement(of, "throughput", 1e8)]))
    facts = {"host": "node1", "storage": {"device": "vda", "interface": "virtio"}}
    data = _data(make.write(tmp_path / "c", records, facts=facts))
    (part,) = [part for section in data["sections"] for part in section["parts"] if part["table"]]
    (told,) = [remark for remark in part["table"]["remarks"] if remark.startswith("Theoretical")]
    assert "disk.throughput.RS, .RR and .WS" in told
    assert part["formulas"]["lines"] == []


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
    digest = hashlib.sha256((swept / "tables" / "checksums.txt").read_bytes()).hexdigest()
    assert digest in _data(swept)["provenance"]["checksums_text"]
    digest, path = lines[0].split("  ")
    assert len(digest) == 64
    assert path.startswith("cells/")


def test_the_configuration_is_printed_short_and_reads_back_the_same(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    config = {"cpu": [{"total": 1e12, "workloads": ["DP"]}], "warmup": 0.2, "seconds": 123456789.25, "seed": 1}
    folder = make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 4e10)])], config=config)
    text = _data(folder)["provenance"]["config"]
    assert "total: 1.0e+12" in text
    assert yaml.safe_load(text) == config


def test_the_printed_configuration_leaves_out_what_holds_nothing(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    facts = {"name": "here", "cpu": {"cores": 2}, "formulas": {"report-1": [{"formula": "a * b"}]}}
    config = {"seed": 0, "site": "here.yaml", "site_facts": facts, "logo": None, "scratch": None, "isa": "auto",
              "report": {"title": "Mine", "course": None, "authors": [], "text": {"design": None}}}  # fmt: skip
    folder = make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 4e10)])], config=config)
    assert yaml.safe_load(_data(folder)["provenance"]["config"]) == {
        "seed": 0, "site": "here.yaml", "site_facts": {"name": "here", "cpu": {"cores": 2}}, "logo": None, "isa": "auto",
        "report": {"title": "Mine"},
    }, "what no schema knows stays as it is"  # fmt: skip


def test_a_warning_that_the_checks_repeat_is_said_once(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu", concurrency=4)
    warnings = ["4 threads share 2 CPUs: the threads take turns, so this is no scaling result", "something else"]
    record = make.record(of, [make.measurement(of, "rate", 4e10)], warnings=warnings, context={"cpus": [0, 1]})
    (row,) = rows.build(Results.read(make.write(tmp_path / "c", [record])))["cpu"]
    assert [note for note in row.said(row.remarks) if "2 CPUs" in note] == [
        "MyCPUBench: 4 threads shared 2 CPUs: they waited for each other; ask Slurm for more CPUs or read this row as "
        "oversubscribed"
    ]
    assert any("something else" in note for note in row.said(row.remarks))


def test_two_tables_of_the_same_rows_have_their_notes_once(tmp_path: Path) -> None:
    records = []
    for threads in (1, 2):
        for repetition, value in enumerate((5e8, 9e8, 7e8)):
            of = make.cell(
                "diskbench",
                "WS",
                subsystem="disk",
                variant="psync",
                block=1 << 16,
                concurrency=threads,
                repetition=repetition,
            )
            records.append(make.record(of, [make.measurement(of, "throughput", value * threads)]))
    folder = make.write(tmp_path / "c", records, config={"report": {"tables": "disk-patterns-2020"}})
    first, second = (part for section in _data(folder)["sections"] for part in section["parts"])
    assert first["table"]["columns"][-1]["kind"] != "notes"
    assert first["table"]["notes"] == []
    assert any("stand below the table “Write sequential: averages" in remark for remark in first["table"]["remarks"])
    assert any("spread" in remark for remark in second["table"]["remarks"])
    assert all(len(line) == len(first["table"]["columns"]) for line in first["table"]["body"])


def test_job_numbers_are_numbers_and_only_a_pool_that_is_walked_is_memory(tmp_path: Path) -> None:
    walked = make.cell("rambench", "RS", subsystem="memory", variant="pool", block=4096)
    latency = make.cell("rambench", "LAT", subsystem="memory", block=4096)
    cells = [replace(walked, options={"pool": 256 << 20}), replace(latency, options={"pool": 1 << 30})]
    found = [
        make.record(
            replace(cell, repetition=number),
            [make.measurement(cell, metric, value)],
            context={"job_id": str(number)},
        )
        for cell, metric, value in ((cells[0], "throughput", 1e9), (cells[1], "latency", 1e-7))
        for number in (99, 100, 36)
    ]
    results = Results.read(make.write(tmp_path / "c", found))
    assert dict(provenance.build(results)["facts"])["Slurm jobs"] == "3, 36 to 100"
    assert dict(artifact._time(results))["Memory while measuring"].startswith("256 MiB")


def test_figures_tell_those_who_listen_the_values_that_matter(swept: Path) -> None:
    results = Results.read(swept)
    found = rows.build(results)
    data = document.build(results, found, dict.fromkeys(document.figure_names(found), 50), None, partial=True)
    (part,) = next(section for section in data["sections"] if section["title"] == "CPU")["parts"]
    (figure,) = part["figures"]
    own = sorted((row.measured.centre, row.key.workload) for row in found["cpu"] if row.own)
    assert figure["alt"].startswith(figure["caption"])
    for value, workload in (own[0], own[-1]):
        assert re.search(rf"{value * 1e-9:.4g}[0-9]* GigaOPS \({workload}, ", figure["alt"]), figure["alt"]
