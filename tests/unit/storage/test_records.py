import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark.errors import RecordError
from peakmark.storage import records

CELL = make.cell("cpubench", "DP", subsystem="cpu")


def record(**changes: Any) -> dict[str, Any]:
    return {**make.record(CELL, [make.measurement(CELL, "rate", 1e9)]), **changes}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cells" / "0.json"
    records.write(path, record())
    assert records.read(path) == record()
    assert [one.name for one in path.parent.iterdir()] == ["0.json"]  # no temporary file stays


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"status": "done"}, "status"),
        ({"measurements": [{**record()["measurements"][0], "value": 0}]}, "value"),
        ({"measurements": [{**record()["measurements"][0], "unit": "MB/s"}]}, "unit"),
        ({"schema": 2}, "schema"),
    ],
)
def test_what_does_not_fit_is_not_written(
    tmp_path: Path, change: dict[str, Any], field: str
) -> None:
    path = tmp_path / "0.json"
    with pytest.raises(RecordError, match=field):
        records.write(path, record(**change))
    assert not list(tmp_path.iterdir())


def test_a_value_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    broken = record()
    broken["measurements"][0]["value"] = float("nan")
    with pytest.raises((RecordError, ValueError)):
        records.write(tmp_path / "0.json", broken)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_a_truncated_record_is_refused_and_named(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "0.json"
    records.write(path, record())
    text = path.read_text().rstrip()
    path.write_text(text[: int(len(text) * keep)])
    with pytest.raises(RecordError, match=r"0\.json.*damaged"):
        records.read(path)


def test_a_record_edited_by_hand_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "0.json"
    path.write_text(json.dumps(record(status="fine")))
    with pytest.raises(RecordError, match="status"):
        records.read(path)
