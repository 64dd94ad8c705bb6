"""What the report says, before it is set as PDF or page: verdicts, tables, notes, machine, artifact
and provenance.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import yaml
from tests.unit import campaign_data as make
from tests.unit.pdf import text as pdf_text

from peakmark.analysis import analysis, verdict
from peakmark.analysis.analysis import Analysis
from peakmark.formatting import duration
from peakmark.report import appendix, document, pictures
from peakmark.storage.results import Results
from peakmark.tables import tables


def _data(folder: Path, partial: bool = True) -> dict[str, Any]:
    results = Results.read(folder)
    return document.build(Analysis(results), {})


def test_one_node_comes_and_two_come_to_their_limits(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    folder = make.write(tmp_path / "c", [], planned=[of])
    one = _data(folder)["meta"]
    assert "its processor" in one["lead"]
    assert one["partial_text"].startswith("1 of 1 planned cell")
    (folder / "machine").mkdir(exist_ok=True)
    for host in ("node1", "node2"):
        (folder / "machine" / f"{host}.json").write_text("{}")
    guest = {"host": "vm", "cpu": {"model_name": "CPU", "cores": 2, "virtualised": "KVM"}}
    virtual = _data(make.write(tmp_path / "v", [], planned=[of], facts=guest))["meta"]
    assert "vm, CPU, 2 cores of a virtual" in virtual["lead"]
    results = Results.read(folder)
    two = document.build(Analysis(results), {})["meta"]
    assert "2 nodes come" in two["lead"] and "their processor" in two["lead"]


def test_the_first_page_judges_what_was_planned_and_says_what_to_know(tmp_path: Path) -> None:
    records = make.runs("cpubench", "DP", 4e10, 4e10) + make.runs("hpl", "DP", 5e10)
    data = _data(make.write(tmp_path / "c", records))
    ((resource, measured, limit, share, reference, confidence),) = data["verdicts"]
    assert resource[0] == "CPU"
    assert measured[1] == "(40.0 to 40.0)" or measured[1].startswith("(40")
    assert (limit[0], share[0], confidence[0]) == ("unknown", "", "no doubt seen")
    assert reference[0].replace("\u00a0", " ") == "0.800 × HPL (n = 1)"
    assert "memory" not in data["meta"]["lead"]
    no_limit, few, *_ = data["caveats"]
    assert no_limit.startswith("CPU") and "limit" in no_limit
    assert "at most 2 repetitions" in few
    assert {line[0] for line in data["method"]["workloads"]} == {"CPU"}
    assert {line[0] for line in data["method"]["programs"]} == {
        "cpubench (MyCPUBench)",
        "hpl",
        "likwid-bench",
    }


def test_a_share_of_the_limit_is_the_verdict_where_there_is_one(swept: Path) -> None:
    rows_ = analysis.build_rows(Results.read(swept))
    found = {entry.subsystem: entry for entry in verdict.verdicts(rows_)}
    for entry in found.values():
        assert entry.row is not None
        assert (entry.share != "") == (entry.row.measured.efficiency is not None)
        assert (
            (entry.confidence == "unsure") == (entry.why != "") == bool(entry.row.specific_warnings)
        )
        assert entry.row.level != "wrong"


def test_numbers_are_padded_to_one_decimal_mark(swept: Path) -> None:
    data = _data(swept)
    table = data["sections"][1]["parts"][0]["table"]
    for place, column in enumerate(table["columns"]):
        cells = [
            line[place]
            for line in table["body"]
            if isinstance(line[place], dict) and line[place]["text"]
        ]
        widths = {len((cell["text"] + cell["pad"]).partition(".")[2]) for cell in cells}
        assert len(widths) <= 1, column


def test_decimal_comma_reaches_every_number_of_the_tables(swept: Path, tmp_path: Path) -> None:
    folder = tmp_path / "comma"
    shutil.copytree(swept, folder)
    plan = json.loads((folder / "plan.json").read_text())
    plan["config"]["report"]["decimal_mark"] = ","
    (folder / "plan.json").write_text(json.dumps(plan))
    facts = make.ZEN3 | {"cpu": make.ZEN3["cpu"] | {"clock_hz": {"nominal": 2.445e9}}}
    (folder / "machine").mkdir(exist_ok=True)
    (folder / "machine" / "node1.json").write_text(json.dumps(facts))
    data = _data(folder)
    for section in data["sections"]:
        for part in section["parts"]:
            numbers = [
                cell["text"]
                for line in part["table"]["body"]
                for cell in line
                if isinstance(cell, dict)
            ]
            assert not [text for text in numbers if "." in text]
            prose = [text for _, text in part["table"]["notes"]] + list(part["table"]["remarks"])
            prose += [one["text"] for one in part["findings"]] + [
                one["formula"] for one in part["formulas"]["lines"]
            ]
            for text in prose:
                assert not re.search(r"(?<![\w./-])\d+\.\d+(?![\w.])", text), text
    assert any("," in line[1][0] for line in data["verdicts"])
    formulas = [
        one["formula"]
        for section in data["sections"]
        for part in section["parts"]
        for one in part["formulas"]["lines"]
    ]
    assert any(re.search(r"\d,\d", text) for text in formulas)
    lines = dict(
        line for node in data["machine"] for group in node["groups"] for line in group["items"]
    )
    assert "," in lines["Clock, nominal"]


def test_a_mean_is_not_called_a_median(swept: Path, tmp_path: Path) -> None:
    assert "arithmetic mean" not in _data(swept)["method"]["parts"][0]["paragraphs"][1]
    folder = tmp_path / "mean"
    shutil.copytree(swept, folder)
    plan = json.loads((folder / "plan.json").read_text())
    plan["config"]["report"]["summary"] = "mean"
    (folder / "plan.json").write_text(json.dumps(plan))
    assert "arithmetic mean" in _data(folder)["method"]["parts"][0]["paragraphs"][1]


def test_notes_verdicts_and_findings_call_programs_as_the_layout_does(tmp_path: Path) -> None:
    """A fifth above its limit and spread: the notes name the program, and so do figures and the
    first page.
    """
    records = []
    for tool in ("diskbench", "iozone"):
        records += make.runs(tool, "WS", 5e8, 9e8, 7e8, block=1 << 16)
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
            records += make.runs(
                "rambench", "LAT", 1e-9 * threads, block=block, concurrency=threads
            )
    config = {"report": {"tables": "four-subsystems-2018-hyperion"}}
    (part,) = _data(make.write(tmp_path / "c", records, config=config))["sections"][0]["parts"]
    assert part["findings"] == []  # page one says that there are too few repetitions
    assert [line[0] for line in part["table"]["body"]] == ["RWS", "RWS", "RWR", "RWR"]


def test_unknown_limits_that_differ_in_their_key_alone_are_told_once(tmp_path: Path) -> None:
    records = []
    for workload in ("RS", "WS", "RR"):
        records += make.runs("diskbench", workload, 1e8)
    facts = {"host": "node1", "storage": {"device": "vda", "interface": "virtio"}}
    data = _data(make.write(tmp_path / "c", records, facts=facts))
    (part,) = [part for section in data["sections"] for part in section["parts"] if part["table"]]
    (told,) = [remark for remark in part["table"]["remarks"] if remark.startswith("Theoretical")]
    assert "disk.throughput.RS, .RR and .WS" in told
    assert part["formulas"]["lines"] == []


def test_problems_name_failed_repeated_refused_and_missing_cells(tmp_path: Path) -> None:
    ok, refused, hole = (
        make.cell("cpubench", name, subsystem="cpu") for name in ("DP", "QPDOT", "SP")
    )
    folder = make.write(
        tmp_path / "c",
        [
            make.record(ok, [make.measurement(ok, "rate", 4e10)]),
            make.record(refused, status="unavailable", reason="no such instruction"),
        ],
        planned=[hole],
        attempts=[make.record(ok, status="failed", reason="killed by signal 9")],
    )
    lines = {line[0].split()[1]: line[1:] for line in _data(folder)["problems"]["lines"]}
    assert lines["QPDOT_none_x1"][1] == "no such instruction"
    assert lines["DP_none_x1"][1] == "killed by signal 9 (node1)"
    assert "repeated" in lines["DP_none_x1"][0]
    assert lines["SP_none_x1"][0] == "not measured"


def test_the_configuration_is_printed_short_and_reads_back_the_same(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    grid = {"total": 1e12, "workloads": ["DP"], "concurrency": [1]}
    config = {"cpu": [grid], "warmup": 0.2, "seconds": 12345.25, "seed": 1}
    folder = make.write(
        tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 4e10)])], config=config
    )
    text = _data(folder)["provenance"]["config"]
    assert "total: 1.0e+12" in text
    assert yaml.safe_load(text).items() >= config.items()


def test_the_printed_configuration_leaves_out_what_holds_nothing(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    formula = {
        "subsystem": "cpu",
        "workloads": ["DP"],
        "metric": "rate",
        "unit": "op/s",
        "formula": "a * b",
    }
    facts = {"name": "here", "cpu": {"cores": 2}, "formulas": {"report-1": [formula]}}
    config = {"seed": 0, "site": "here.yaml", "site_facts": facts, "scratch": None, "isa": "auto",
              "report": {"title": "Mine", "course": None, "authors": [], "text": {"design": None}}}  # fmt: skip
    folder = make.write(
        tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 4e10)])], config=config
    )
    printed = yaml.safe_load(_data(folder)["provenance"]["config"])
    assert printed["site_facts"] == {"name": "here", "cpu": {"cores": 2}}
    assert printed["report"]["title"] == "Mine"
    assert not {"course", "authors", "text"} & set(printed["report"])
    assert (printed["seed"], "scratch" in printed) == (0, False)


def test_two_tables_of_the_same_rows_have_their_notes_once(tmp_path: Path) -> None:
    records = []
    for threads in (1, 2):
        values = [value * threads for value in (5e8, 9e8, 7e8)]
        records += make.runs("diskbench", "WS", *values, block=1 << 16, concurrency=threads)
    folder = make.write(
        tmp_path / "c", records, config={"report": {"tables": "disk-patterns-2020"}}
    )
    first, second = (part for section in _data(folder)["sections"] for part in section["parts"])
    assert first["table"]["columns"][-1]["kind"] != "notes"
    assert first["table"]["notes"] == []
    assert any("“Write sequential: averages" in remark for remark in first["table"]["remarks"])
    assert any("spread" in remark for remark in second["table"]["remarks"])
    assert all(len(line) == len(first["table"]["columns"]) for line in first["table"]["body"])


def test_job_numbers_are_numbers_and_only_a_pool_that_is_walked_is_memory(tmp_path: Path) -> None:
    records = []
    for number, job in enumerate(("99", "100", "36")):
        place = {"repetition": number, "block": 4096, "context": {"job_id": job}}
        records += make.runs("rambench", "RS", 1e9, pool=256 << 20, **place)
        records += make.runs("rambench", "LAT", 1e-7, pool=1 << 30, **place)
    results = Results.read(make.write(tmp_path / "c", records))
    assert dict(appendix.provenance(results)["facts"])["Slurm jobs"] == "3, 36 to 100"
    assert dict(appendix._time(results))["Memory while measuring"].startswith("256 MiB")


def test_figures_tell_those_who_listen_the_values_that_matter(swept: Path) -> None:
    found = Analysis.of(swept)
    data = document.build(found, dict.fromkeys(pictures.names(found), 50))
    (part,) = next(section for section in data["sections"] if section["title"] == "CPU")["parts"]
    (figure,) = part["figures"]
    own = sorted((row.measured.centre, row.key.workload) for row in found.rows["cpu"] if row.own)
    assert figure["alt"].startswith(figure["caption"])
    for value, workload in (own[0], own[-1]):
        assert re.search(rf"{value * 1e-9:.4g}[0-9]* GigaOPS \({workload}, ", figure["alt"]), (
            figure["alt"]
        )


def test_the_artifact_description_names_software_expected_results_and_time(swept: Path) -> None:
    found = _data(swept)["artifact"]
    software = dict(found["software"])
    assert "Method" in software["Programs"]
    assert ["fio", "1.2"] in [line[:2] for line in _data(swept)["method"]["programs"]]
    assert "Page one" in found["expected"]
    results = Results.read(swept)
    # Every record of the sweep took a second.
    count = len(results.records)
    assert f"{duration(count)} for {count} cells" in dict(found["time"])["Measuring"]
    text = pdf_text(swept / "report.pdf")
    for words in (
        "Artifact description",
        "snakemake --profile local --configfile sweep.yaml",
        "peakmark report sweep.zip",
    ):
        assert words in text


def test_the_checksum_file_is_what_sha256sum_reads(swept: Path) -> None:
    tables.build(swept)
    lines = (swept / "tables" / "checksums.txt").read_text().splitlines()
    assert len(lines) == len(Results.read(swept).checksums)
    digest = hashlib.sha256((swept / "tables" / "checksums.txt").read_bytes()).hexdigest()
    assert digest in _data(swept)["provenance"]["checksums_text"]
    digest, path = lines[0].split("  ")
    assert len(digest) == 64
    assert path.startswith("cells/")
