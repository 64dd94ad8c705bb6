"""What a run says of the records that earlier ones have left."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.plan import plan
from peakmark.storage import integrity, records
from peakmark.workflow import resume

GRID = {"cpu": [{"workloads": ["SP"], "concurrency": [1]}], "campaign": "c"}


@pytest.mark.parametrize(
    ("repetitions", "sentence"),
    [
        (2, "1 cell is"),
        (3, "2 cells are"),
    ],
)
def test_one_cell_and_several_are_said_as_such(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    repetitions: int,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    made = plan.make({**GRID, "repetitions": repetitions, "seconds": 2})
    before = plan.make({**GRID, "repetitions": repetitions, "seconds": 1})
    for cell, other in zip(made.cells, before.cells, strict=True):
        stored = cell if cell.repetition == 0 else other
        record = make.record(stored, [make.measurement(stored, "rate", 4e10)])
        records.write(made.directory / "cells" / f"{stored.id}.json", record | {"raw": {}})
    found = resume.survey(made.results)
    assert [found[cell.id].state for cell in made.cells].count(integrity.OTHER) == repetitions - 1
    resume.begin(made, found)
    said = capsys.readouterr().err
    assert sentence in said and "1 finished cell" in said
