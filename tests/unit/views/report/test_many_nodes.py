"""Many nodes in the report: paper has a line for each point, not for each node."""

from __future__ import annotations

from tests.unit import campaign_data as make
from tests.unit.rows.fleets import SLOW, campaign, facts, write

from peakmark.rows import build
from peakmark.tools.tables import BY_NAME
from peakmark.views import (
    appendix,
    document,
    layout_tables,
    rendering,
    sections,
    strip_figures,
    usual_tables,
)
from peakmark.views.table import rows_of
from peakmark.workflow import documents


def test_slow_nodes_are_named_in_the_figure(tmp_path):
    figure = strip_figures.plot_fleet(campaign(tmp_path / "c", 12, SLOW))
    assert figure is not None
    assert [text.get_text().split()[0] for text in figure.axes[0].texts] == ["node3", "node10"]


def test_nodes_of_several_classes_have_a_column_for_them(tmp_path):
    half = {f"node{node}": {"cpu": 0.5} for node in range(7, 12)} | {"node12": {"cpu": 0.45}}
    machine = {
        f"node{node}": facts(cpu={"model_name": "old" if node > 6 else "new", "threads": 2})
        for node in range(1, 13)
    }
    folder = write(tmp_path / "c", 12, half, machines=machine)
    frames = build.load(folder)
    arranged = layout_tables.arrange(frames, None)
    table = usual_tables.nodes_table(arranged, BY_NAME["cpu"], rows_of(frames, BY_NAME["cpu"]))
    assert "Class" in [column.label for column in table.columns]
    assert rendering.write_pdf(documents.collect(folder)).exists()


def test_a_table_that_no_node_has_measured_is_no_obstacle_to_the_report(tmp_path):
    """Of the CPU nothing counts, of the memory nobody has measured anything."""
    records = []
    for name in (f"node{number}" for number in range(1, 7)):
        place = {"node": name, "host": name, "concurrency": 2}
        records += make.runs("cpubench", "DP", 1e10, context={"cpus": [0]}, **place)
        of = make.cell("rambench", "LAT", subsystem="memory", node=name, concurrency=2)
        records.append(make.record(of, status="unavailable", reason="no memory", host=name))
    folder = make.write(tmp_path / "c", records)
    make.tables(folder)
    assert "node6" in (folder / "tables" / "paper" / "memory_latency.tex").read_text()
    assert rendering.write_pdf(documents.collect(folder)).exists()


def test_a_layout_beside_many_nodes_is_told(tmp_path):
    layout = "four-subsystems-2018-hyperion"
    of = build.load(write(tmp_path / "c", 12, SLOW, config={"report": {"tables": layout}}))
    names = sections.figure_names(of)
    assert names == ["fleet", "cpu", "memory_throughput_pool"]  # not those of the layout
    data = document.build(of)
    (caveat,) = [one for one in data["caveats"] if "layout" in one]
    assert f"tables/{layout}" in caveat
    assert data["overview"]["name"] == "fleet"
    assert len(data["sections"][0]["parts"][0]["figures"]) == 1


def test_what_befell_a_row_on_many_nodes_is_one_line(tmp_path):
    cells = [make.cell("hpl", "DP", subsystem="cpu", node=f"node{n}") for n in range(1, 13)]
    records = [
        make.record(of, status="unavailable", reason="no HPL", host=of.node) for of in cells[:10]
    ]
    folder = make.write(tmp_path / "c", records, planned=cells[10:])
    refused, missing = appendix.list_problems(build.load(folder))["lines"]
    assert refused == ["hpl DP_none_x1 on 10 nodes", "not possible here (10 times)", "no HPL"]
    assert missing[:2] == ["hpl on node11 and node12", "not measured (2 times)"]


def test_what_machines_have_alike_is_said_once():
    machines = [
        {
            "name": f"node{number}",
            "groups": {"Processor": [["Model", "one"], ["Turbo", on]]},
        }
        for number, on in enumerate(("on", "on", "off", "on", "on"), 1)
    ]
    (one,) = appendix.alike(machines)
    assert one["name"].startswith("5 nodes")
    assert list(one["groups"].values()) == [
        [["Model", "one"]], [["Turbo", "on (4 nodes); off (node3)"]]
    ]  # fmt: skip
    (two,) = appendix.alike(machines[:2])
    assert two["groups"] == {"Processor": [["Model", "one"], ["Turbo", "on"]]}
    assert appendix.alike(machines[:1]) == machines[:1]


def test_a_program_that_several_nodes_lack_is_one_failure_and_one_reason(tmp_path):
    records = []
    for number in range(4):
        place = {"node": f"n{number % 2}", "variant": ("pool", "block")[number // 2]}
        of = make.cell("pmbw", "RS", subsystem="memory", **place)
        reason = f"pmbw not found on {of.node}: give its path"
        records.append(make.record(of, status="unavailable", reason=reason, host=of.node))
    frames = build.load(make.write(tmp_path / "c", records))
    (line,) = appendix.list_problems(frames)["lines"]
    assert line[1:] == ["not possible here (4 times)", "pmbw not found: give its path"]
    assert frames.campaign["empty"]["pmbw"] == "on 2 nodes, pmbw not found: give its path"
