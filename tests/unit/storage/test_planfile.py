"""The plan on disk: plain JSON, of which a job reads the lines that are its own, and starts without
heavy modules.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.storage import planfile

CELLS = [
    Cell(
        "cpu",
        "cpubench",
        "SP",
        "",
        None,
        1,
        "any",
        number,
        {"scratch": '"id":"x",', "seconds": 0.02},
    )
    for number in range(12)
]


def plan(**more: Any) -> dict[str, Any]:
    cells = [
        {"job": f"any.own.{place // 5}", "id": cell.id, **cell.to_json()}
        for place, cell in enumerate(CELLS)
    ]
    return {
        "schema": 1,
        "campaign": "c",
        "config": {"tools": {"fio": "/x"}, "note": "]\n"},
        "cluster": None,
        "cells": cells,
        **more,
    }


def test_one_cell_and_the_cells_of_a_job_are_found_and_all_is_json(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    criterion = {"least": 6, "most": 9, "until": 0.02, "within_s": None}
    planfile.write(path, plan(adaptive={"row": criterion}))
    assert json.loads(path.read_text()) == plan(adaptive={"row": criterion})
    one = planfile.cell(path, CELLS[1].id)
    assert (
        one.cells == (CELLS[1],)
        and one.directory == tmp_path
        and one.plan["adaptive"] == {"row": criterion}
    )
    assert one.plan["config"] == plan()["config"]
    assert planfile.job(path, "any.own.1").cells == tuple(CELLS[5:10])


def test_the_same_plan_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    planfile.write(path, plan())
    os.utime(path, (1, 1))
    planfile.write(path, plan())
    assert path.stat().st_mtime == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("{}", "no plan of this peakmark"),
        ("cut", "is damaged|no plan of"),
        ("", "no plan of"),
    ],
)
def test_what_is_no_plan_is_a_sentence(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(planfile.text(plan())[:600] if text == "cut" else text)
    with pytest.raises(RecordError, match=words):
        planfile.cell(path, CELLS[0].id)


def test_a_cell_that_is_not_planned_is_a_sentence(tmp_path: Path) -> None:
    planfile.write(tmp_path / "plan.json", plan())
    with pytest.raises(RecordError, match="peakmark plan --cells lists"):
        planfile.cell(tmp_path / "plan.json", "cpu/cpubench/SP_none_x1/any/99")
