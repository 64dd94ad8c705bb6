"""How it was measured, in words, and where the theoretical values of a table come from."""

import re
from dataclasses import replace

from tests.unit import campaign_data as make

from peakmark.analysis import Analysis
from peakmark.report import chapters, method_text, pdf_report
from peakmark.storage.results import Results


def test_each_reference_is_cited_where_it_is_listed_for(tmp_path):
    results = Results.read(make.write(tmp_path, []))
    method = " ".join(method_text.build(Analysis(results))["parts"][0]["paragraphs"])
    kernels = chapters.KERNELS_TEXT.read_text(encoding="utf-8")
    texts = {"method": method, "kernels": kernels}
    for path in pdf_report.TEMPLATE.glob("*.bib"):
        cited = re.findall(r"author = \{(.*?),.*?year = \{(\d+)", path.read_text(), re.DOTALL)
        assert len(cited) == path.read_text().count("@")
        for name, year in cited:
            assert re.search(rf"{name}\b.{{0,40}}{year}", texts[path.stem]), (path.stem, name)


def test_what_was_asked_for_stands_where_its_number_is_not_known_yet(tmp_path):
    waiting = replace(make.cell("cpubench", "SP", subsystem="cpu"), word="cores")
    rows = make.judge(tmp_path, make.runs("cpubench", "DP", 4e10), planned=[waiting]).rows["cpu"]
    lines = [line["rows"] for line in method_text.build_formulas(rows, {})["lines"]]
    assert [line for line in lines if "SP" in line] == ["SP; cores"]


def test_brackets_that_formulas_share_are_told_once(tmp_path):
    records = make.runs("cpubench", "DP", 4e10) + make.runs("cpubench", "DP", 4e10, concurrency=2)
    rows = make.judge(tmp_path / "c", records, facts=make.ZEN3).rows["cpu"]
    formulas = method_text.build_formulas(rows, {})
    assert all(row.limit.detail for row in rows), "otherwise this tests nothing"
    assert len(formulas["lines"]) == 2
    assert all("(Zen 3" not in line["formula"] for line in formulas["lines"])
    (source,) = [source for source in formulas["sources"] if "Zen 3" in source]
    number = source.partition(".")[0]
    assert all(number in line["source"].split(", ") for line in formulas["lines"])
