"""What the report says, before it is set as PDF or HTML: page one, tables, notes and figures."""

import json
import re
from dataclasses import replace

from tests.unit import campaign_data as make

from peakmark.report import document, sections

CPU = make.cell("cpubench", "DP", subsystem="cpu")
NUMBER_WITH_POINT = re.compile(r"(?<![\w./-])\d+\.\d+(?![\w.])")


def judged(folder, records, **more):
    return document.build(make.judge(folder, records, **more))


def parts_of(data):
    return [part for section in data["sections"] for part in section["parts"]]


def numbers(part):
    """The cells of a table that are numbers."""
    cells = [cell for line in part["table"]["body"] for cell in line if isinstance(cell, dict)]
    return [cell["text"] for cell in cells]


def test_decimal_comma_reaches_every_number(comma_report):
    formulas = []
    for part in parts_of(comma_report):
        assert not [text for text in numbers(part) if "." in text]
        lines = [formula for _, formula, _, _ in part["formulas"]["lines"]]
        formulas += lines
        prose = [*(text for _, text in part["table"]["notes"]), *part["table"]["remarks"], *lines]
        for text in (*prose, *(finding["text"] for finding in part["findings"])):
            assert not NUMBER_WITH_POINT.search(text), text
    assert any("," in verdict["text"] for verdict in comma_report["verdicts"])
    assert any(re.search(r"\d,\d", text) for text in formulas)
    (node,) = comma_report["machine"]
    assert "," in dict(node["groups"]["Processor"])["Clock, nominal"]


def test_notes_verdicts_and_findings_call_programs_as_the_layout_does(tmp_path):
    """A fifth above its limit and spread: the notes name the program, and so do figures and the
    first page.
    """
    records = []
    for tool in ("diskbench", "iozone"):
        records += make.runs(tool, "WS", 5e8, 9e8, 7e8, block=1 << 16)
    data = judged(tmp_path / "lab", records, config={"report": {"tables": "file-io-lab"}})
    text = json.dumps([data["verdicts"], data["sections"], data["caveats"]])
    assert "FileIO: values spread" in text
    assert "MyDiskBench" not in text
    assert "WS of 64KB, 1 thread" in text
    # The programs' list says which program stands behind the name.
    assert any(line[0] == "diskbench (FileIO)" for line in data["method"]["programs"])


def test_a_workload_with_two_names_has_findings_under_both(tmp_path):
    records = []
    for block in (16 << 10, 256 << 20):
        for threads in (1, 2):
            place = {"block": block, "concurrency": threads}
            records += make.runs("rambench", "LAT", 1e-9 * threads, **place)
    config = {"report": {"tables": "four-subsystems-2018-hyperion"}}
    (part,) = parts_of(judged(tmp_path / "c", records, config=config))
    assert any("RWS" in each["text"] and "RWR" in each["text"] for each in part["findings"])
    assert [line[0] for line in part["table"]["body"]] == ["RWS", "RWS", "RWR", "RWR"]


def test_two_tables_of_the_same_rows_have_notes_and_findings_once(tmp_path):
    records = []
    for threads in (1, 2):
        values = [value * threads for value in (5e8, 9e8, 7e8) * 2]
        records += make.runs("diskbench", "WS", *values, block=1 << 16, concurrency=threads)
    config = {"report": {"tables": "disk-patterns-2020"}}
    parts = parts_of(judged(tmp_path / "c", records, config=config))
    assert [bool(part["findings"]) for part in parts] == [False, True]
    first, second = (part["table"] for part in parts)
    assert first["columns"][-1]["kind"] != "notes"
    assert first["notes"] == []
    assert any("“Write sequential: averages" in remark for remark in first["remarks"])
    assert any("spread" in remark for remark in second["remarks"])
    assert all(len(line) == len(first["columns"]) for line in first["body"])


def test_what_was_asked_for_stands_where_its_number_is_not_known_yet(tmp_path):
    waiting = replace(CPU, workload="SP", word="cores")
    rows = make.judge(tmp_path, make.runs("cpubench", "DP", 4e10), planned=[waiting]).rows["cpu"]
    lines = [line[0] for line in sections.build_formulas(rows)["lines"]]
    assert [line for line in lines if "SP" in line] == ["SP; cores"]


def test_brackets_that_formulas_share_are_told_once(tmp_path):
    records = make.runs("cpubench", "DP", 4e10) + make.runs("cpubench", "DP", 4e10, concurrency=2)
    rows = make.judge(tmp_path / "c", records, facts=make.ZEN3).rows["cpu"]
    formulas = sections.build_formulas(rows)
    assert all(row.limit.detail for row in rows), "otherwise this tests nothing"
    assert len(formulas["lines"]) == 2
    assert all("(Zen 3" not in formula for _, formula, _, _ in formulas["lines"])
    (source,) = [source for source in formulas["sources"] if "Zen 3" in source]
    number = source.partition(".")[0]
    assert all(number in sources.split(", ") for _, _, _, sources in formulas["lines"])
