"""How it was measured, in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.judging import rows
from peakmark.reporting import method_text
from peakmark.storage.results import Results


@pytest.mark.parametrize(("count", "words"), [(1, "at most 1 repetition of"), (2, "at most 2 repetitions of")])
def test_few_repetitions_are_told(tmp_path: Path, count: int, words: str) -> None:
    cells = [make.cell("cpubench", "DP", subsystem="cpu", repetition=number) for number in range(count)]
    results = Results.read(
        make.write(tmp_path, [make.record(of, [make.measurement(of, "rate", 4e10)]) for of in cells])
    )
    reading = method_text.build(results, rows.build(results))["parts"][1]["paragraphs"]
    assert words in reading[-1]
