"""Tables as a layout prints them: its columns, its names, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from tests.unit import campaign_data as make

from peakmark.analysis.analysis import build_rows
from peakmark.config import layouts
from peakmark.errors import ConfigError
from peakmark.plan import plan
from peakmark.storage.results import Results
from peakmark.tables import layout_tables, tables
from peakmark.tools.tables import BY_NAME


def test_the_reports_own_efficiency_of_a_latency_is_used_and_named(tmp_path: Path) -> None:
    of = make.cell("diskbench", "RR", subsystem="disk", variant="psync", block=1024)
    settings = {
        "site_facts": {"disk": {"latency": {"RR": 5e-4}}},
        "report": {"tables": "four-subsystems-2018-prometheus"},
    }
    records = [
        make.record(of, [make.measurement(of, "latency", 1e-4), make.measurement(of, "iops", 1e4)])
    ]
    results = Results.read(make.write(tmp_path / "c", records, config=settings))
    layout_table = next(
        one
        for one in layouts.load("four-subsystems-2018-prometheus").layout_tables
        if one.name == "disk_latency"
    )
    rows = build_rows(results)["disk_latency"]
    assert layout_tables.frame(layout_table, rows)[
        "MyDiskBench Efficiency (%)"
    ].item() == pytest.approx(80.0)
    remarks = " ".join(layout_tables.grid(results, layout_table, rows).remarks)
    assert "100 - 100 * measured / theoretical" in remarks


def test_three_runs_stand_beside_their_average(tmp_path: Path) -> None:
    records = make.runs("diskbench", "WS", 99e6, 93e6, 97e6)
    config = {"report": {"tables": "disk-patterns-2020"}}
    folder = make.write(tmp_path / "c", records, config=config)
    tables.build(folder)
    line = pd.read_csv(folder / "tables" / "disk-patterns-2020" / "ws_runs.csv").iloc[0]
    assert "1 and 1MB" in line.tolist()
    assert [line[f"MyDiskBenchmark Run {run}"] for run in (1, 2, 3)] == [99.0, 93.0, 97.0]
    assert line["Average MyDiskBenchmark"] == pytest.approx(289 / 3)
    assert pd.isna(line["Iozone bench. Run 1"])


def test_notes_of_rows_are_kept_beside_the_reports_columns(tmp_path: Path) -> None:
    records = make.runs("diskbench", "RS", 1e9) + make.runs("diskbench", "RS", 1e9, block=16 << 20)
    records[0]["warnings"] = ["the clock moved"]
    results = Results.read(make.write(tmp_path / "c", records))
    layout_table = next(
        one for one in layouts.load("file-io-lab").layout_tables if one.name == "rs_throughput"
    )
    grid = layout_tables.grid(results, layout_table, build_rows(results)["disk_throughput"])
    labels = [column.label for column in grid.columns]
    assert labels[:3] == ["Workload", "Concurrency", "Record Size"]
    assert [line[-1] for line in grid.body] == ["a", ""]
    assert "the clock moved" in grid.notes[0].text


TABLE = {
    "name": "cpu", "of": "cpu", "title": "CPU",
    "columns": [{"heading": "Workload", "text": "{workload}"}],
}  # fmt: skip


def column(**keys: str) -> dict[str, Any]:
    return {"columns": [{"heading": "X", **keys}]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"of": "gpu"}, ["tables[0].of", "gpu", "cpu"]),
        ({"columns": [{"heading": "X"}]}, ["X", "either text or value"]),
        (column(value="measured", of="fio"), ["X", "fio", "cpubench"]),
        (column(text="{threads}"), ["X", "{threads}", "{concurrency}"]),
        (column(text="{block.unit}"), ["X", "{block.unit}", "{concurrency}"]),
        (column(text="{block[unit]}"), ["X", "{block[unit]}", "{concurrency}"]),
        (column(value="efficiency", formula="import os"), ["X", "arithmetic"]),
    ],
)
def test_a_wrong_layout_is_told_in_one_sentence(
    tmp_path: Path, change: dict[str, Any], words: list[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"schema": 1, "name": "mine", "tables": [TABLE | change]}))
    with pytest.raises(ConfigError) as error:
        layouts.load(str(path))
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_a_layout_compares_workloads_of_its_subsystem_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        yaml.safe_dump(
            {"schema": 1, "name": "mine", "compare": {"cpu": [["QP", "RS"]]}, "tables": [TABLE]}
        )
    )
    with pytest.raises(ConfigError, match=r"compare\.cpu names 'RS': allowed are QP, HP"):
        layouts.load(str(path))


def test_an_unknown_layout_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(ConfigError, match=r"report\.tables is 'mine'.*disk-patterns-2020"):
        plan.make(
            {"cpu": [{"workloads": ["DP"], "concurrency": [1]}], "report": {"tables": "mine"}}
        )


def test_every_column_belongs_to_its_table() -> None:
    for path in layouts.FOLDER.glob("*.yaml"):
        for layout_table in layouts.load(path.stem).layout_tables:
            assert BY_NAME[layout_table.table.name] is layout_table.table
            assert len({column.heading for column in layout_table.columns}) == len(
                layout_table.columns
            ), layout_table.name
