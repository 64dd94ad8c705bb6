"""How far a campaign has come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.planning.planned import CPU, made, where

from peakmark import files
from peakmark.running import failures, status
from peakmark.storage.results import Results


@pytest.mark.parametrize("left", ["gone", "torn"])
def test_a_job_that_ends_while_it_is_looked_at_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    one = made(tmp_path, monkeypatch, where(nodes=("n1",)), cpu=[CPU], fan_out="node")
    files.write_text(one.directory / "plan.json", json.dumps(one.to_json()))
    present = one.directory / "nodes" / "n1.own.now"
    present.parent.mkdir()
    if left == "gone":
        present.symlink_to("removed-between-listing-and-reading")
    else:
        present.write_bytes(b"\xff\xfe\x00")
    assert {one.state for one in status.look(Results.read(one.directory))} == {"missing"}
    assert failures._present(one, one.cells) is None
