"""Records -> the long table."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark.storage import measurements
from peakmark.storage.results import Results


def _campaign(folder: Path) -> Path:
    good = make.cell("rambench", "RS", subsystem="memory", variant="pool", block=1024)
    absent = make.cell("pmbw", "RS", subsystem="memory", variant="block", block=1024)
    broken = make.cell("fio", "RR", subsystem="disk", variant="psync", block=4096)
    several = make.cell(
        "iozone", "ALL", subsystem="disk", variant="psync", block=1 << 20, concurrency=2
    )
    values = [
        make.measurement(several, "throughput", 1e9, workload="RS", details={"parent": 9e8}),
        make.measurement(several, "throughput", 2e9, workload="WS"),
    ]
    return make.write(
        folder / "small",
        [
            make.record(
                good,
                [make.measurement(good, "throughput", 2e10)],
                warnings=["clock moved", "load 2.0"],
            ),
            make.record(absent, status="unavailable", reason="pmbw not found"),
            make.record(several, values),
        ],
        attempts=[make.record(broken, status="failed", reason="fio ended with exit code 1")],
    )


def test_one_line_per_value_and_per_cell_without_one(tmp_path: Path) -> None:
    frame = measurements.build(Results.read(_campaign(tmp_path)))
    assert list(frame.columns) == list(measurements.COLUMNS)
    assert len(frame) == 5
    assert set(frame.loc[frame["status"] == "ok", "workload"]) == {"RS", "WS"}
    failed = frame[frame["status"] == "failed"].iloc[0]
    assert failed["reason"] == "fio ended with exit code 1"
    assert failed["record"].startswith("attempts/disk/fio/")
    assert pd.isna(failed["value"])
    assert (
        frame.loc[frame["instrument"] == "rambench", "warnings"].item() == "clock moved; load 2.0"
    )


def test_a_tool_that_fills_several_rows_names_the_row_not_its_cell(tmp_path: Path) -> None:
    frame = measurements.build(Results.read(_campaign(tmp_path)))
    iozone = frame[frame["instrument"] == "iozone"]
    assert list(iozone["workload"]) == ["RS", "WS"]
    assert json.loads(iozone.iloc[0]["details"]) == {"parent": 9e8}


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    folder = _campaign(tmp_path)
    frame = measurements.build(Results.read(folder))
    parquet = pd.read_parquet(folder / "tables" / "measurements.parquet")
    assert list(parquet["value"].dropna()) == list(frame["value"].dropna())
    csv = pd.read_csv(folder / "tables" / "measurements.csv")
    assert list(csv["value"].dropna()) == list(frame["value"].dropna())
    assert list(csv.columns) == list(parquet.columns)


def test_raw_output_that_is_json_is_no_record(tmp_path: Path) -> None:
    folder = _campaign(tmp_path)
    raw = next((folder / "cells").rglob("0.json")).with_suffix(".raw")
    raw.mkdir()
    (raw / "0.result.json").write_text('{"cell": 1, "status": "ok"}')
    assert len(measurements.build(Results.read(folder))) == 5


def test_a_damaged_record_is_named_and_its_cell_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _campaign(tmp_path)
    path = next((folder / "cells" / "memory" / "rambench").rglob("0.json"))
    path.write_text(path.read_text()[:100])
    frame = measurements.build(Results.read(folder))
    assert str(path) in capsys.readouterr().err
    assert "rambench" not in set(frame["instrument"])
    assert [cell.instrument for cell in Results.read(folder).missing] == ["rambench"]
