"""The plan on disk, of which a job takes its own cells."""

import json
import os

import pytest
from tests.unit.hostile import refuses

from peakmark.cell import Cell
from peakmark.storage import planfile

OPTIONS = {"scratch": '"id":"x",', "seconds": 0.02}
CELLS = [Cell("cpu", "cpubench", "SP", "", None, 1, "any", number, OPTIONS) for number in range(12)]
PLAN = {
    "schema": 1, "campaign": "c", "config": {"tools": {"fio": "/x"}, "scratch": "]\n"},
    "cluster": None,
    "cells": [
        {"job": f"any.own.{place // 5}", "id": cell.id, **cell.to_json()}
        for place, cell in enumerate(CELLS)
    ],
}  # fmt: skip


def test_one_cell_and_the_cells_of_a_job_are_found_and_all_is_json(tmp_path):
    path = tmp_path / "plan.json"
    planfile.write(path, PLAN)
    assert json.loads(path.read_text()) == PLAN
    assert [Cell.of(entry) for entry in planfile.read(path).cells] == CELLS
    one = planfile.cell(path, CELLS[1].id)
    assert one.cells == (CELLS[1],) and one.directory == tmp_path
    assert one.plan.config.tools == {"fio": "/x"} and one.plan.campaign == "c"
    assert planfile.job(path, "any.own.1").cells == tuple(CELLS[5:10])
    os.utime(path, (1, 1))
    planfile.write(path, PLAN)
    assert path.stat().st_mtime == 1  # the same plan is not written again


TEXT = planfile.text(PLAN)


@pytest.mark.parametrize(("text", "cell", "words"), [
    (None, CELLS[0].id, "No such file"),
    ("{}", CELLS[0].id, "plan"),
    ("", CELLS[0].id, "plan"),
    (TEXT[:600], CELLS[0].id, "plan"),
    (TEXT.replace('"campaign": "c"', '"campaign": 5'), CELLS[0].id, "damaged"),
    (TEXT, "cpu/cpubench/SP_none_x1/any/99", "peakmark plan --cells lists"),
])  # fmt: skip
def test_what_is_no_plan_is_a_sentence(tmp_path, text, cell, words):
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    refuses(lambda: planfile.cell(path, cell), str(path), words)
