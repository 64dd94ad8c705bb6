"""Repetitions in the order in which they were made, whatever offset from UTC their times have."""

import csv
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.unit import campaign_data as make

BEGUN = datetime(2026, 10, 24, 23, 0, tzinfo=UTC)
"""Two hours before the summer time of Central Europe ends."""
IN_UTC = [0] * 8
OFFSETS = {"autumn": [2] * 4 + [1] * 4, "in turn": [-5, 9] * 4}
"""Hours from UTC of eight repetitions, twenty minutes apart."""
VALUES = {
    "rising": [4e10 * 1.02**number for number in range(8)],
    "in turn": [4.00e10, 4.50e10, 4.01e10, 4.53e10, 4.02e10, 4.51e10, 4.03e10, 4.52e10],
}


def tables_of(peakmark, folder, offsets, values):
    """The tables of a campaign and what they are made of, by their names."""
    records = make.runs("cpubench", "DP", *values)
    for number, (record, hours) in enumerate(zip(records, offsets, strict=True)):
        at = BEGUN + timedelta(minutes=20 * number)
        record["context"]["started"] = at.astimezone(timezone(timedelta(hours=hours))).isoformat()
    make.write(folder, records, facts=make.ZEN3)
    done = peakmark("tables", folder)
    assert done.returncode == 0, done.stderr
    paths = [*(folder / "tables").glob("*.csv"), folder / "rows" / "findings.csv"]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


@pytest.mark.parametrize(("offsets", "values"), [("autumn", "rising"), ("in turn", "in turn")])
def test_a_drift_is_that_of_the_same_instants_in_utc(peakmark, tmp_path, offsets, values):
    local = tables_of(peakmark, tmp_path / "a" / "c", OFFSETS[offsets], VALUES[values])
    utc = tables_of(peakmark, tmp_path / "b" / "c", IN_UTC, VALUES[values])
    assert ("drift" in utc["cpu.csv"]) is (values == "rising")
    for name in ("cpu.csv", "findings.csv"):
        assert local[name] == utc[name]
    runs = csv.DictReader(local["runs.csv"].splitlines())
    assert [run["repetition"] for run in runs] == list("01234567")  # as they were made
