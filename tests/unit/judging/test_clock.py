"""Which clock a row's limit takes: the one under the work where the records have it, as before where they do not."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark.judging import rows
from peakmark.judging.row import Row
from peakmark.storage.results import Results

FACTS = {
    "host": "node1",
    "cpu": {"clock_hz": {"nominal": 2e9}, "cores": 2, "isa": ["avx2", "fma"], "isa_best": "avx2", "microarchitecture": "Zen 3"},
    "limits": {"physical_cores_allowed": 2},
}  # fmt: skip
IDLE = {"clock_hz_before": 3.0e9, "clock_hz_after": 3.1e9}


def row(folder: Path, loaded: list[float | None]) -> Row:
    """The row of cpubench DP x1 whose repetitions observed these clocks under the work, beside a reference."""
    records = []
    for repetition, hz in enumerate(loaded):
        cell = make.cell("cpubench", "DP", subsystem="cpu", repetition=repetition)
        details: dict[str, Any] = IDLE if hz is None else {**IDLE, "clock_hz_loaded": hz}
        records.append(make.record(cell, [make.measurement(cell, "rate", 43e9, details=details)], context=IDLE))
    other = make.cell("likwid-bench", "DP", subsystem="cpu")
    records.append(make.record(other, [make.measurement(other, "rate", 42e9)]))
    [built] = rows.build(Results.read(make.write(folder / "c", records, facts=FACTS)))["cpu"]
    return built


def test_the_limit_takes_the_clock_under_the_work(tmp_path: Path) -> None:
    built = row(tmp_path, [2.70e9, 2.72e9, 2.75e9])
    assert built.limit.value == pytest.approx(2.72e9 * 16)
    assert "2.72 GHz (clock observed under the work)" in built.limit.formula
    assert any("lowers the clock by" in note for note in built.said(built.remarks))
    # The reference has the same limit: it told no clock of its own.
    assert built.series["likwid-bench"].efficiency == pytest.approx(42 / (2.72 * 16))


def test_runs_that_could_not_tell_it_leave_it_to_the_others(tmp_path: Path) -> None:
    assert row(tmp_path, [None, 2.72e9, None]).limit.value == pytest.approx(2.72e9 * 16)


def test_records_from_before_are_read_as_before(tmp_path: Path) -> None:
    built = row(tmp_path, [None, None, None])
    assert built.limit.value == pytest.approx(3.05e9 * 16)
    assert "(observed clock)" in built.limit.formula
    assert not any("lowers the clock" in note for note in built.said(built.remarks))
