"""Tables as a layout prints them: its columns, its names, and what is wrong with one."""

import pytest
import yaml
from tests.unit import campaign_data as make

from peakmark import plan
from peakmark.config import layouts
from peakmark.errors import ConfigError
from peakmark.tools.tables import BY_NAME
from peakmark.views import layout_tables
from peakmark.views.table import csv, rows_of

TABLE = {
    "name": "cpu", "of": "cpu", "title": "CPU",
    "columns": [{"heading": "Workload", "text": "{workload}"}],
}  # fmt: skip


def write_layout(folder, **changes):
    """The path of a layout ``mine`` of one table, with changes."""
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({"schema": 1, "name": "mine", "tables": [TABLE], **changes}))
    return str(path)


def shown_in(frames, layout, name):
    """A table of a layout as a page shows it."""
    (layout_table,) = [one for one in layouts.load(layout).layout_tables if one.name == name]
    frames = layout_tables.arrange(frames, layouts.load(layout))
    points = layout_tables.lines_of(
        layout_table, layout_table.table, rows_of(frames, layout_table.table)
    )
    columns = layout_tables.columns_of(frames, layout_table, points)
    return layout_tables.layout_table_of(frames, layout_table, layout_table.table, points, columns)


@pytest.mark.parametrize(("latency", "efficiency"), [(1e-4, 80.0), (1e-3, -100.0)])
def test_the_reports_own_efficiency_of_a_latency_is_used_and_named(tmp_path, latency, efficiency):
    layout = "four-subsystems-2018-prometheus"
    of = make.cell("diskbench", "RR", subsystem="disk", variant="psync", block=1024)
    measured = [make.measurement(of, "latency", latency), make.measurement(of, "iops", 1e4)]
    facts = {"disk": {"latency": {"RR": 5e-4}}}
    config = {"site_facts": facts, "report": {"tables": layout}}
    found = make.frames(tmp_path / "c", [make.record(of, measured)], config=config)
    shown = shown_in(found, layout, "disk_latency")
    values = csv(shown.columns)["MyDiskBench Efficiency (%)"]
    assert values.item() == pytest.approx(efficiency)
    remarks = " ".join(shown.below)
    assert "100 - 100 * measured / theoretical" in remarks
    assert f"is {50 / (latency * 1e3):.0f}" in remarks  # the share of the limit


def test_remarks_on_rows_follow_the_columns_of_the_report(tmp_path):
    records = make.runs("diskbench", "RS", 1e9, 2e9, 3e9)
    records += make.runs("diskbench", "RS", 1e9, block=16 << 20)
    found = make.frames(tmp_path / "c", records)
    grid = shown_in(found, "file-io-lab", "rs_throughput")
    labels = [column.label for column in grid.columns]
    assert labels[:3] == ["Workload", "Concurrency", "Record Size"]
    remarks = [line[-1] for line in grid.body]
    assert labels[-1] == "Remark" and remarks == ["spread 100\u00a0%", "one run"]


def column(**keys):
    return {"tables": [TABLE | {"columns": [{"heading": "X", **keys}]}]}


def figure(**keys):
    return {"figures": [{"name": "mine", "of": "disk_throughput", "title": "Mine", **keys}]}


@pytest.mark.parametrize(("change", "parts"), [
    ({"tables": [TABLE | {"of": "tape"}]}, ["tables[0].of", "tape", "cpu"]),
    (column(), ["X", "either text or value"]),
    (column(value="measured", of="fio"), ["X", "fio", "cpubench"]),
    (column(text="{threads}"), ["X", "{threads}", "{concurrency}"]),
    (column(text="{block.unit}"), ["X", "{block.unit}", "{concurrency}"]),
    (column(text="{block[unit]}"), ["X", "{block[unit]}", "{concurrency}"]),
    (column(value="efficiency", formula="import os"), ["formula", "measured / theoretical"]),
    (figure(kind="panels", value="deviation"), ["'mine'", "kind panels", "together or bars"]),
    ({"figures": 2 * figure()["figures"]}, ["two figures are called 'mine'"]),
    (figure(kind="pie"), ["figures[0].kind", '"together"']),
    (figure(of="tape"), ["figures[0].of", "disk_throughput"]),
])  # fmt: skip
def test_a_wrong_layout_is_one_sentence(tmp_path, change, parts):
    with pytest.raises(ConfigError) as error:
        layouts.load(write_layout(tmp_path, **change))
    assert "\n" not in str(error.value)
    assert [part for part in parts if part not in str(error.value)] == []


def test_an_unknown_layout_is_refused_before_anything_is_measured():
    grid = {"cpu": [{"workloads": ["DP"], "concurrency": [1]}]}
    with pytest.raises(ConfigError, match=r"report\.tables is 'mine'.*disk-patterns-2020"):
        plan.make({**grid, "report": {"tables": "mine"}})


@pytest.mark.parametrize("path", sorted(layouts.FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_column_belongs_to_its_table(path):
    for layout_table in layouts.load(path.stem).layout_tables:
        assert BY_NAME[layout_table.table.name] is layout_table.table
        headings = [column.heading for column in layout_table.columns]
        assert len(set(headings)) == len(headings), layout_table.name


def test_only_layouts_whose_columns_need_limits_print_formulas():
    shows = {
        name: layouts.load(name).prints_limits(BY_NAME["disk_throughput"])
        for name in layouts.names()
    }
    assert [name for name in shows if shows[name]] == [
        "disk-patterns-2020", "four-subsystems-2018-hyperion", "four-subsystems-2018-prometheus", "paper",
    ]  # fmt: skip
