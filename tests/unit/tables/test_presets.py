"""Presets that repeat published reports: their grids become tables with the headings, rows and
order of the report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from tests.unit import campaign_data as make

from peakmark.analysis.analysis import Analysis, build_rows
from peakmark.cell import Cell
from peakmark.config import layouts, overrides
from peakmark.plan import plan
from peakmark.report import document
from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.tables import layout_tables, tables
from peakmark.tools.programs import hpl
from peakmark.tools.tables import TABLES

SEEDS = make.DATA / "seeds"
PRESETS = (
    "four-subsystems-2018-hyperion",
    "four-subsystems-2018-prometheus",
    "disk-patterns-2020",
    "six-core-evaluation",
    "file-io-lab",
)
METRICS = {"cpu": ["rate"], "disk": ["throughput", "iops", "latency"]}


def planned(name: str, **changes: Any) -> plan.Plan:
    """The plan of a preset, every reference tool taken for there."""
    values = overrides.read([ROOT / "config" / "presets" / f"{name}.yaml"])
    return plan.make({**values, "tools_on": "nodes", **changes})


def record(cell: Cell, number: int) -> dict[str, Any]:
    """A record with all the values that the cell's instrument would give, none of them measured."""
    latency = cell.workload.startswith("LAT")
    metrics = METRICS.get(cell.subsystem, ["latency" if latency else "throughput"])
    if cell.workload != "ALL":
        return make.record(
            cell, [make.measurement(cell, metric, 1e9 + number) for metric in metrics]
        )
    return make.record(
        cell,
        [
            make.measurement(cell, metric, 2e9 + number, workload=workload)
            for workload in ("RS", "WS", "RR", "WR")
            for metric in (("iops", "latency") if cell.options.get("ops") else ("throughput",))
        ],
    )


def small_campaign(folder: Path, name: str) -> Path:
    """A campaign of every planned cell of a preset, one repetition each, except where three runs
    are listed.
    """
    made = planned(name)
    kept = 3 if name == "disk-patterns-2020" else 1
    cells = [cell for cell in made.cells if cell.repetition < kept]
    return make.write(
        folder / name,
        [record(cell, number) for number, cell in enumerate(cells)],
        config=made.config,
    )


@pytest.fixture(scope="module", params=PRESETS)
def printed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """A preset's name and its tables, built from a small campaign."""
    name = str(request.param)
    folder = small_campaign(tmp_path_factory.mktemp("results"), name)
    tables.build(folder)
    return name, folder / "tables" / name


def facts(name: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((SEEDS / f"{name}.yaml").read_text(encoding="utf-8"))
    return data


def _same(heading: str) -> str:
    """A heading without what printing changes: case and spaces."""
    return re.sub(r"\s+", "", heading).lower()


def _corrected(entries: list[Mapping[str, str]], table: str) -> dict[str, str]:
    return {str(one["printed"]): str(one["shown"]) for one in entries if one["table"] == table}


def test_headings_are_the_reports_own(printed: tuple[str, Path]) -> None:
    name, folder = printed
    expected = facts(name)
    for table, seed in expected["tables"].items():
        corrected = _corrected(expected["corrected_headings"], table)
        assert set(corrected) <= set(seed["headings"]), table
        headings = [corrected.get(heading, heading) for heading in seed["headings"]] + seed.get(
            "added", []
        )
        shown = list(pd.read_csv(folder / f"{table}.csv").columns)
        assert [_same(heading) for heading in shown] == [_same(heading) for heading in headings], (
            table
        )


def test_rows_are_the_reports_own_in_its_order(printed: tuple[str, Path]) -> None:
    name, folder = printed
    expected = facts(name)
    for table, seed in expected["tables"].items():
        corrected = _corrected(expected["corrected_keys"], table)
        keys = [
            " | ".join(corrected.get(part, part) for part in key.split(" | "))
            for key in seed["keys"]
        ]
        frame = pd.read_csv(folder / f"{table}.csv", dtype=str, keep_default_na=False)
        width = seed["keys"][0].count("|") + 1
        assert [" | ".join(line[:width]) for line in frame.values.tolist()] == keys, table


def test_tables_stand_in_the_order_of_the_report(printed: tuple[str, Path]) -> None:
    name, _ = printed
    seed = list(facts(name)["tables"])
    assert [layout_table.name for layout_table in layouts.load(name).layout_tables][
        : len(seed)
    ] == seed


def test_every_own_value_is_there_and_no_row_is_lost(printed: tuple[str, Path]) -> None:
    name, folder = printed
    results = Results.read(folder.parents[1])
    rows = build_rows(results)
    layout = layouts.load(name)
    for layout_table in layout.layout_tables:
        own = [
            column.heading
            for column in layout_table.columns
            if column.instrument == layout_table.table.own.instrument
        ]
        frame = layout_tables.frame(layout_table, rows[layout_table.table.name])
        measured = [
            column.heading
            for column in layout_table.columns
            if column.value in ("measured", "mean", "run")
        ]
        for heading in set(own) & set(measured):
            assert frame[heading].notna().all(), (layout_table.name, heading)
    for table in TABLES:
        if rows[table.name] and table.name != "disk_latency" and table.name != "disk_iops":
            assert layout_tables.left_over(layout, table.name, rows[table.name]) == [], table.name


def test_full_is_the_union_of_all_reports() -> None:
    def points(name: str) -> set[tuple[str, str, str, int | None, int]]:
        return {
            (cell.subsystem, cell.workload, cell.variant, cell.block, cell.concurrency)
            for cell in planned(name).cells
            if cell.instrument in ("cpubench", "rambench", "diskbench", "netbench")
        }

    union = set[tuple[str, str, str, int | None, int]]().union(*(points(name) for name in PRESETS))
    assert points("full") == union


def test_full_gives_each_point_at_least_the_work_of_the_reports() -> None:
    def work(name: str) -> dict[tuple[Any, ...], tuple[str, float]]:
        return {
            (cell.subsystem, cell.workload, cell.variant, cell.block, cell.concurrency): (
                key,
                float(value),
            )
            for cell in planned(name).cells
            for key, value in cell.options.items()
            if key in ("operations", "total", "accesses", "round_trips")
            and isinstance(value, int | float)
            if cell.instrument in ("cpubench", "rambench", "diskbench", "netbench")
        }

    full = work("full")
    for name in PRESETS:
        for point, (key, amount) in work(name).items():
            assert full[point][0] == key
            assert full[point][1] >= amount, (name, point)


def _asked(name: str, key: str, instrument: str) -> dict[str, set[Any]]:
    """Workload -> what a preset's cells of an instrument say under a key; ``None`` where they say
    nothing.
    """
    found: dict[str, set[Any]] = {}
    for cell in planned(name).cells:
        if cell.instrument == instrument:
            found.setdefault(cell.workload, set()).add(cell.options.get(key))
    return found


def test_presets_use_their_reports_own_definitions() -> None:
    for name in (*PRESETS[:2], "six-core-evaluation"):
        assert set().union(*_asked(name, "isa", "cpubench").values()) == {"scalar"}, name
        assert set().union(*_asked(name, "isa", "rambench").values()) == {"auto"}, name
    first = "four-subsystems-2018-hyperion"
    asked = _asked(first, "sync", "diskbench")
    assert asked == {"RS": {None}, "RR": {None}, "WS": {"each"}, "WR": {"each"}}
    assert _asked(first, "fill", "iozone") == {"ALL": {"new"}}
    assert _asked(first, "store", "rambench")["RWS"] == {"libc"}
    asked = _asked("six-core-evaluation", "store", "rambench")
    assert asked == {"RS": {None}, "RR": {None}, "RWS": {"libc"}}
    assert _asked("disk-patterns-2020", "fill", "diskbench")["WS"] == {"new"}
    assert _asked("disk-patterns-2020", "sync", "diskbench")["WS"] == {None}
    assert _asked("file-io-lab", "fill", "diskbench")["WS"] == {None}


@pytest.mark.parametrize("name", PRESETS[:2])
def test_fio_fills_the_column_of_an_iozone_that_takes_no_such_records(
    name: str, tmp_path: Path
) -> None:
    results = Results.read(small_campaign(tmp_path, name))
    rows = build_rows(results)["disk_throughput"]
    layout_table = next(
        one for one in layouts.load(name).layout_tables if one.table.name == "disk_throughput"
    )
    frame = layout_tables.frame(layout_table, rows)
    (heading,) = [name for name in frame.columns if re.match("IOZone Measured", name)]
    assert len(frame) == 36 and not frame[heading].isna().any()
    filled = [row for row in rows if row.key.block == 100 << 20]
    assert len(filled) == 12
    for row in rows:
        told = [dict(note.values) for note in row.warnings if note.code == "filled"]
        assert told == ([{"other": "IOZone", "size": "100 MiB"}] if row in filled else [])
        assert ("fio" in row.series) == (row in filled)


def test_amounts_of_work_are_those_of_the_reports() -> None:
    amounts = {
        (cell.subsystem, key, cell.options[key])
        for cell in planned("four-subsystems-2018-hyperion").cells
        for key in ("operations", "total", "accesses", "round_trips")
        if key in cell.options
        and cell.instrument in ("cpubench", "rambench", "diskbench", "netbench")
    }
    assert amounts == {
        ("cpu", "operations", 10**12),
        ("memory", "total", 100 * 10**9),
        ("memory", "accesses", 100 * 10**6),
        ("disk", "total", 10 << 30),
        ("disk", "total", 1 << 30),
        ("network", "total", 100 * 10**9),
        ("network", "round_trips", 10**6),
    }


def test_scale_shortens_every_total_size_and_time_but_leaves_a_block_for_each_thread() -> None:
    whole = {cell.id: cell for cell in planned("four-subsystems-2018-hyperion").cells}
    scaled = {cell.id: cell for cell in planned("four-subsystems-2018-hyperion", scale=0.001).cells}
    assert whole.keys() == scaled.keys()
    for name, cell in scaled.items():
        before = whole[name].options
        for key in [
            "operations",
            "accesses",
            "round_trips",
            "budget_s",
            "count",
            "seconds",
            "warmup",
            "total",
            "size",
        ]:
            if before.get(key) is not None:
                assert float(str(cell.options[key])) < float(str(before[key])), (name, key)
        if cell.subsystem == "disk" and cell.block:
            for key in ("size", "total"):
                if key in cell.options:
                    assert int(str(cell.options[key])) % (cell.block * cell.concurrency) == 0, (
                        name,
                        key,
                    )
        if cell.subsystem == "memory":
            assert cell.options["pool"] == before["pool"]
        if cell.subsystem == "memory" and "total" in cell.options and cell.block:
            # A copy reads and writes: below two blocks a thread would have nothing to show.
            assert int(str(cell.options["total"])) >= 2 * cell.block * cell.concurrency, name


def test_a_short_run_leaves_hpl_time_to_solve_something() -> None:
    budgets = {
        cell.options["budget_s"]
        for cell in planned("four-subsystems-2018-hyperion", scale=0.01).cells
        if cell.instrument == "hpl"
    }
    assert budgets == {3.0}
    assert hpl.choose_n(3.0, 1e11, 8 << 30, 192, hpcc=True)


def test_a_scale_of_one_changes_nothing() -> None:
    once = planned("file-io-lab").cells
    assert [cell.spec() for cell in planned("file-io-lab", scale=1.0).cells] == [
        cell.spec() for cell in once
    ]
    assert {cell.options["size"] for cell in once} == {1 << 30}


def test_the_report_shows_the_layouts_tables_in_its_order_and_no_others(
    printed: tuple[str, Path],
) -> None:
    name, folder = printed
    results = Results.read(folder.parents[1])
    data = document.build(Analysis(results), {})
    shown = [part["table"]["name"] for section in data["sections"] for part in section["parts"]]
    assert sorted(shown) == sorted(
        layout_table.name for layout_table in layouts.load(name).layout_tables
    )
    for section in data["sections"]:
        for part in section["parts"]:
            rows_of_headings = {entry["rows"] for entry in part["table"]["head"]}
            assert rows_of_headings == {1}  # a heading over two lines would cover the first row
