"""Where the theoretical values of a table come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit import campaign_data as make

from peakmark.analysis import analysis
from peakmark.report import method_text
from peakmark.storage.results import Results


def test_what_was_asked_for_stands_where_its_number_is_not_known_yet(tmp_path: Path) -> None:
    one = make.cell("cpubench", "DP", subsystem="cpu")
    waiting = replace(one, workload="SP", concurrency=1, word="cores")
    folder = make.write(
        tmp_path, [make.record(one, [make.measurement(one, "rate", 4e10)])], planned=[waiting]
    )
    results = Results.read(folder)
    (line,) = [
        line
        for line in method_text.build_formulas(analysis.build_rows(results)["cpu"], {})["lines"]
        if "SP" in line["rows"]
    ]
    assert line["rows"] == "SP; cores"
