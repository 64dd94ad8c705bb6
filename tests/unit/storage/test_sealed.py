"""Records and facts that are whole and yet no answer."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.hostile import CELL, Said, stored

from peakmark import files, machine
from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.plan import plan
from peakmark.storage import facts, integrity
from peakmark.storage.results import Results
from peakmark.workflow import startup

SEALED: dict[str, tuple[dict[str, Any], str]] = {
    "failed": ({"status": "failed", "reason": "no luck"}, "failed attempt"),
    "unit of another metric": (
        {"measured": {"unit": "B/s"}},
        "SP as rate in B/s, which is rate in op/s",
    ),
    "metric of another subsystem": (
        {"measured": {"metric": "iops", "unit": "1/s"}},
        "which is rate in op/s",
    ),
}


@pytest.mark.parametrize("kind", SEALED)
def test_a_sealed_record_that_is_no_answer_is_measured_again(kind: str, tmp_path: Path) -> None:
    changes, words = SEALED[kind]
    path = stored(tmp_path, **changes)
    finding = integrity.look(path, CELL)
    assert finding.state == integrity.DAMAGED
    assert words in finding.reason and str(path) in finding.reason
    assert integrity.set_aside(tmp_path, CELL) is not None


def test_a_record_of_another_node_is_not_that_nodes(tmp_path: Path) -> None:
    first, second = (
        Cell.from_json({**CELL.to_json(), "node": name}) for name in ("node1", "node2")
    )
    stored(tmp_path, second, context={"host": "node2.cluster.example"})
    good = stored(tmp_path, first, context={"host": "node1"})
    assert integrity.look(good, first).state == integrity.GOOD
    finding = integrity.look(stored(tmp_path, first, context={"host": "node2"}), first)
    assert finding.state == integrity.DAMAGED
    assert "node2" in finding.reason
    # Slurm may call a node otherwise than it calls itself.
    other = stored(tmp_path, first, context={"host": "ip-10-0-0-1"})
    assert integrity.look(other, first).state == integrity.GOOD


def edited(path: Path) -> None:
    content = json.loads(path.read_text())
    content["memory"]["channels"] = 99
    path.write_text(json.dumps(content))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "edited": edited,
    "cut off": lambda path: path.write_text(path.read_text()[:500]),
    "no object": lambda path: path.write_text("[]"),
    "not text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "not a number": lambda path: path.write_text(
        path.read_text().replace('"channels": ', '"channels": NaN, "a": ')
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_facts_give_no_limit_and_are_collected_again(
    kind: str, known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = plan.make(
        {"campaign": "c", "cpu": [{"workloads": ["SP"], "concurrency": [1]}], "repetitions": 2}
    )
    folder = made.directory
    shutil.copytree(known, folder / "machine")
    host = platform.node()
    path = folder / "machine" / f"{host}.json"
    for cell in made.cells:
        stored(folder, cell, context={"host": host})
    files.write_text(folder / "plan.json", json.dumps(made.to_json()))
    assert set(Results.read(folder).facts) == {host}
    assert not any(map(startup.is_unfit, startup.survey(Results.read(folder)).values()))
    DAMAGES[kind](path)
    with pytest.raises(RecordError, match="machine facts"):
        facts.read(path)
    results = Results.read(folder)
    assert not results.facts  # no limit is computed from them
    assert any(str(path) in reason for reason in results.left_out)
    assert len(results.records) == len(made.cells)  # what was measured still counts
    found = startup.survey(Results.read(folder))
    again = [cell for cell in made.cells if startup.is_unfit(found[cell.id])]
    assert len(again) == 1  # one cell is measured again: whoever does so collects the facts
    startup.set_aside(made, found)
    assert not path.exists() and not made.results.record_path(again[0]).exists()
    assert (folder / "set-aside" / "machine" / f"{host}.0.json").exists(), "nothing is lost"
    assert machine.cached(folder / "machine")["host"] == host
    assert facts.read(path)["host"] == host


def test_cells_that_are_not_possible_are_said_with_their_reason(
    tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    cells = [Cell.from_json({**CELL.to_json(), "repetition": number}) for number in range(5)]
    reasons = ["no FMA here"] * 4 + ["too little memory"]
    found = [
        make.record(one, status="unavailable", reason=reason) | {"raw": {}}
        for one, reason in zip(cells, reasons, strict=True)
    ]
    folder = make.write(tmp_path / "c", found)
    for command in ("status", "summary"):
        done = peakmark(command, folder)
        assert done.returncode == 0
        assert "5 cells" in done.stdout
        assert done.stdout.count("no FMA here") == done.stdout.count("too little memory") == 1
        assert "and 1 more" in done.stdout
        assert "report.html" not in done.stdout  # what is not there is not named
    assert peakmark("status", folder).stdout.splitlines()[-1] == "complete"
