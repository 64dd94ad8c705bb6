"""How it was measured, in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.analysis.analysis import Analysis
from peakmark.config.types import Criterion
from peakmark.report import chapters, method_text, pdf_report
from peakmark.storage.decisions import Decision
from peakmark.storage.results import Results


def test_each_reference_is_cited_where_it_is_listed_for(tmp_path: Path) -> None:
    results = Results.read(make.write(tmp_path, []))
    texts = {"method": " ".join(method_text.build(Analysis(results))["parts"][0]["paragraphs"])}
    vars(results)["decisions"] = {"row": Decision(Criterion(6, 9, 0.02), 6, 6, 0.001, "narrow")}
    texts["adaptive"] = " ".join(method_text._adaptive(results))
    texts["kernels"] = chapters.KERNELS_TEXT.read_text(encoding="utf-8")
    for path in pdf_report.TEMPLATE.glob("*.bib"):
        cited = re.findall(r"author = \{(.*?),.*?year = \{(\d+)", path.read_text(), re.DOTALL)
        assert len(cited) == path.read_text().count("@")
        for name, year in cited:
            assert re.search(rf"{name}\b.{{0,40}}{year}", texts[path.stem]), (path.stem, name)


@pytest.mark.parametrize(
    ("count", "words"), [(1, "at most 1 repetition of"), (2, "at most 2 repetitions of")]
)
def test_few_repetitions_are_told(tmp_path: Path, count: int, words: str) -> None:
    results = Results.read(make.write(tmp_path, make.runs("cpubench", "DP", *[4e10] * count)))
    reading = method_text.build(Analysis(results))["parts"][1]["paragraphs"]
    assert words in reading[-1]
