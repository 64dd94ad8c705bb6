"""Many nodes in the report: paper has a line for each point, not for each node."""

from __future__ import annotations

from tests.unit import campaign_data as make
from tests.unit.campaign_data import SLOW, write_fleet

from peakmark.rows import build
from peakmark.views import (
    appendix,
    document,
    rendering,
)
from peakmark.workflow import status


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
    assert rendering.pdf(status.collect_report(folder))


def test_a_layout_beside_many_nodes_is_told(tmp_path):
    layout = "four-subsystems-2018-hyperion"
    of = build.load(write_fleet(tmp_path / "c", 12, SLOW, config={"report": {"tables": layout}}))
    data = document.build(of)
    names = rendering.figure_names(data)
    assert names == ["fleet", "cpu", "memory_throughput_pool"]  # not those of the layout
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
    assert frames.campaign["empty"]["pmbw"] == "pmbw not found: give its path"
