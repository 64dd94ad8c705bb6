"""The plan on disk, of which a job takes its own cells; and the long table of records."""

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.unit import campaign_data as make
from tests.unit.hostile import refuses

from peakmark.cell import Cell
from peakmark.storage import planfile
from peakmark.storage.results import Results
from peakmark.tables import tables

OPTIONS: dict[str, Any] = {"scratch": '"id":"x",', "seconds": 0.02}
CELLS = [Cell("cpu", "cpubench", "SP", "", None, 1, "any", number, OPTIONS) for number in range(12)]
PLAN: dict[str, Any] = {
    "schema": 1, "campaign": "c", "config": {"tools": {"fio": "/x"}, "scratch": "]\n"},
    "cluster": None,
    "adaptive": {"row": {"least": 6, "most": 9, "until": 0.02}},
    "cells": [
        {"job": f"any.own.{place // 5}", "id": cell.id, **cell.to_json()}
        for place, cell in enumerate(CELLS)
    ],
}  # fmt: skip


def test_one_cell_and_the_cells_of_a_job_are_found_and_all_is_json(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    planfile.write(path, PLAN)
    assert json.loads(path.read_text()) == planfile.read(path) == PLAN
    one = planfile.cell(path, CELLS[1].id)
    assert one.cells == (CELLS[1],) and one.directory == tmp_path
    assert {**one.plan, "cells": PLAN["cells"]} == PLAN
    assert planfile.job(path, "any.own.1").cells == tuple(CELLS[5:10])
    os.utime(path, (1, 1))
    planfile.write(path, PLAN)
    assert path.stat().st_mtime == 1, "the same plan is not written again"


TEXT = planfile.text(PLAN)


@pytest.mark.parametrize(("text", "cell", "words"), [
    (None, CELLS[0].id, "No such file"),
    ("{}", CELLS[0].id, "plan"),
    ("", CELLS[0].id, "plan"),
    (TEXT[:600], CELLS[0].id, "plan"),
    (TEXT.replace('"campaign": "c"', '"campaign": 5'), CELLS[0].id, "damaged"),
    (planfile.text(PLAN | {"cells": PLAN["cells"] * 2}), CELLS[0].id, "twice"),
    (TEXT, "cpu/cpubench/SP_none_x1/any/99", "peakmark plan --cells lists"),
])  # fmt: skip
def test_what_is_no_plan_is_a_sentence(
    tmp_path: Path, text: str | None, cell: str, words: str
) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    refuses(lambda: planfile.cell(path, cell), str(path), words)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    good = make.cell("rambench", "RS", subsystem="memory", variant="pool", block=1024)
    absent = make.cell("pmbw", "RS", subsystem="memory", variant="block", block=1024)
    broken = make.cell("fio", "RR", subsystem="disk", variant="psync", block=4096)
    disk = {"subsystem": "disk", "variant": "psync", "block": 1 << 20, "concurrency": 2}
    several = make.cell("iozone", "ALL", **disk)
    values = [
        make.measurement(several, "throughput", 1e9, workload="RS", details={"parent": 9e8}),
        make.measurement(several, "throughput", 2e9, workload="WS"),
    ]
    found = [make.measurement(good, "throughput", 2e10)]
    records = [
        make.record(good, found, warnings=["clock moved", "load 2.0"]),
        make.record(absent, status="unavailable", reason="pmbw not found"),
        make.record(several, values),
    ]
    lost = make.record(broken, status="failed", reason="fio ended with exit code 1")
    return make.write(tmp_path / "small", records, attempts=[lost])


def test_one_line_per_value_and_per_cell_without_one(folder: Path) -> None:
    frame = tables.long_table(Results.read(folder))
    assert list(frame.columns) == list(tables.COLUMNS)
    assert len(frame) == 5
    failed = frame[frame["status"] == "failed"].iloc[0]
    assert failed["reason"].endswith("exit code 1") and pd.isna(failed["value"])
    assert failed["record"].startswith("attempts/disk/fio/")
    (own,) = frame.loc[frame["instrument"] == "rambench", "warnings"]
    assert own == "clock moved; load 2.0"
    # A tool that fills several rows names the row, not its cell.
    iozone = frame[frame["instrument"] == "iozone"]
    assert list(iozone["workload"]) == ["RS", "WS"]
    assert json.loads(iozone.iloc[0]["details"]) == {"parent": 9e8}
    # CSV and Parquet hold the same.
    parquet = pd.read_parquet(folder / "tables" / "measurements.parquet")
    csv = pd.read_csv(folder / "tables" / "measurements.csv")
    assert list(csv.columns) == list(parquet.columns)
    for other in (csv, parquet):
        assert list(other["value"].dropna()) == list(frame["value"].dropna())
