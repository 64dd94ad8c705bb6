"""Many records read by every CPU that may be used."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.cell import Cell
from peakmark.storage import integrity, survey
from peakmark.storage.results import Results


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    """Of seven cells: one record is cut, one is of another cell, one is not there; read two at a
    time.
    """
    monkeypatch.setattr(survey, "PART", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    cells = [
        make.cell(
            "rambench", "RS", subsystem="memory", variant="pool", block=1024, repetition=number
        )
        for number in range(7)
    ]
    records = [
        make.record(cell, [make.measurement(cell, "throughput", 1e9 + cell.repetition)])
        for cell in cells
    ]
    results = Results.read(make.write(tmp_path / "many", records))
    cut, other, gone = (results.record_path(cell) for cell in cells[2:5])
    cut.write_text(cut.read_text()[:100])
    other.write_text(results.record_path(cells[0]).read_text())
    gone.unlink()
    return results


def _one_by_one(results: Results) -> dict[str, integrity.Finding]:
    return {cell.id: integrity.look(results.record_path(cell), cell) for cell in results.planned}


def _same(results: Results) -> None:
    found, alone = results.findings, _one_by_one(results)
    assert list(found) == list(alone)
    assert [vars(one) for one in found.values()] == [vars(one) for one in alone.values()]
    assert [one.state for one in found.values()] == [
        *("good", "good", integrity.DAMAGED, integrity.DAMAGED, "absent", "good", "good")
    ]


def test_several_processes_find_what_one_finds(
    campaign: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(path: Path, cell: Cell | None) -> integrity.Finding:
        (tmp_path / f"{os.getpid()}.reader").touch()
        return alone(path, cell)

    alone = integrity.look
    monkeypatch.setattr(integrity, "look", look)
    assert len(campaign.findings) == 7
    assert f"{os.getpid()}.reader" not in {path.name for path in tmp_path.glob("*.reader")} != set()
    _same(campaign)


def test_a_process_of_several_threads_starts_no_children(
    campaign: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        survey, "ProcessPoolExecutor", lambda *_: pytest.fail("a fork beside a thread")
    )
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        _same(campaign)
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize(
    "first, second", [(1, True), (1, 1.0), ([1], [True]), ({"a": 0}, {"a": False}), ([], {})]
)
def test_values_of_other_types_stay_what_they_are(first: object, second: object) -> None:
    once = survey._Once()
    for value in (first, second, first):
        assert repr(once.of(value)) == repr(value)
