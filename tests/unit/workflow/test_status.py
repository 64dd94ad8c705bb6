"""How far a campaign has come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit import campaign_data
from tests.unit.plan.planned import CPU, NOW, made, where

from peakmark import files
from peakmark.messages import message
from peakmark.plan.plan import Plan
from peakmark.storage import records
from peakmark.storage.results import Results
from peakmark.workflow import failures, status


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


def planned(one: Plan) -> Results:
    files.write_text(one.directory / "plan.json", json.dumps(one.to_json()))
    return Results.read(one.directory)


@pytest.fixture
def six(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    return made(tmp_path, monkeypatch, None, cpu=[{**CPU, "workloads": ["DP", "SP", "QP"]}])


def test_equal_reasons_are_told_together_and_all_that_is_missing_is_named(six: Plan) -> None:
    for number, cell in enumerate(six.cells[:4]):
        failures.refused(
            six, [cell], message("job-ended", case="NODE_FAIL", job=f"job {number}"), NOW
        )
    failures.refused(six, six.cells[4:5], message("job-forgotten", job="job 9"), NOW)
    told = status.describe(planned(six), only_failed=True)
    assert not told.complete and "complete" not in told.text
    lines = [line.strip() for line in told.text.splitlines()]
    # Numbers of jobs are no other reason.
    assert any(line.startswith("4 cells, any") and "NODE_FAIL" in line for line in lines)
    assert told.text.count("NODE_FAIL") == 1 and "job 9" in told.text
    assert lines[-3].startswith("1 more cell")
    for cell in six.cells:
        assert cell.id in lines


def test_a_run_that_failed_behind_its_cells_is_not_called_complete(six: Plan) -> None:
    """The same campaign in two commands: `status` speaks of the cells, the last word of a failed
    run of what failed.
    """
    for cell in six.cells:
        record = campaign_data.record(cell, status="unavailable", reason="too many threads")
        records.write(Path(six.record_name(cell)), record | {"raw": {}})
    assert status.describe(planned(six)).text.splitlines()[-1] == "complete"
    last = status.describe(planned(six), only_failed=True)
    assert last.complete and "report" in last.text
    assert "complete" not in last.text.splitlines()
    ended = status.describe(planned(six), only_failed=True, interrupted=True).text
    assert (
        "interrupted" in ended and "failed" not in ended and status.command(planned(six)) in ended
    )
