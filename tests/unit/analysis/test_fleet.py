"""Many nodes: the median speaks for all, slow nodes are named, and paper has a line for each point,
not for each node.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import Analysis, fleet, verdict
from peakmark.figures import curves
from peakmark.report import (
    ReportContent,
    appendix,
    document,
    nodes,
    rendering,
    sections,
)
from peakmark.rows import build
from peakmark.tools.tables import BY_NAME
from peakmark.views import printed
from peakmark.views.points import rows_of
from peakmark.workflow import status

SLOW = {"node10": {"memory": 0.88}, "node3": {"cpu": 0.9}}


def campaign(folder, nodes, slow, n=6, **more):
    """Four CPU rows and two memory rows on each node; the values of a node lie within one per cent
    of the others'.
    """
    records = []
    for number in range(1, nodes + 1):
        name = f"node{number}"
        by = slow.get(name, {})
        wobble = [1 + 0.002 * ((number * 7 + each * 3) % 5 - 2) for each in range(n)]
        for place, workload in enumerate(("QP", "HP", "SP", "DP")):
            values = [4e11 / 2**place * one * by.get("cpu", 1.0) for one in wobble]
            records += make.runs("cpubench", workload, *values, node=name, host=name)
        for workload in ("RS", "WS"):
            values = [1.5e10 * one * by.get("memory", 1.0) for one in wobble]
            records += make.runs("rambench", workload, *values, node=name, host=name)
    return make.write(folder, records, **more)


@pytest.fixture(scope="module")
def twelve(tmp_path_factory):
    folder = campaign(tmp_path_factory.mktemp("nodes") / "twelve", 12, SLOW)
    make.tables(folder)
    return Analysis.of(folder)


def lines(of, name):
    with (of.results.directory / "tables" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_median_speaks_for_all_and_the_slowest_is_named(twelve):
    group = verdict.headline_group(twelve.rows, "memory")
    assert group is not None and len(group.rows) == 12
    assert group.median == pytest.approx(1.5e10, rel=0.005)
    assert group.middle.measured.centre == pytest.approx(group.median, rel=1e-4)
    assert group.high > group.median * 1.001  # which is another node
    assert [row.key.node for row in (group.worst, *group.slow)] == ["node10", "node10"]
    _, memory = verdict.verdicts(twelve.rows)
    values = dict(memory.text.values)
    nodes = dict(values["nodes"].values)
    assert (values["value"], nodes["nodes"], nodes["slowest"]) == ("15.00 GB/s", 12, "node10")
    assert nodes["behind"] == pytest.approx(0.12, abs=0.01)
    assert memory.text.full_sentence in status.summary(twelve.results.directory)


def test_the_median_of_two_nodes_lies_between_them(tmp_path):
    rows = Analysis.of(campaign(tmp_path / "two", 2, {"node2": {"cpu": 0.5}})).rows
    (*_, group) = fleet.group_rows(rows["cpu"])
    assert group.median == pytest.approx(sum(row.measured.centre for row in group.rows) / 2)
    values = dict(verdict.verdicts(rows)[0].text.values)
    assert values["value"] == f"{group.median / 1e9:.2f} GigaOPS"


def test_slow_nodes_are_told(twelve):
    memory, cpu = fleet.slow_nodes(twelve.rows)
    for slow, node, subsystem, rows, behind in (
        (memory, "node10", "memory", 2, 0.12), (cpu, "node3", "cpu", 4, 0.1)
    ):  # fmt: skip
        assert (slow.node, slow.subsystem, len(slow.rows), slow.judged) == (
            node, subsystem, rows, rows,
        )  # fmt: skip
        assert slow.low <= slow.behind <= slow.high
        assert slow.behind == pytest.approx(behind, abs=0.01)
        assert all(each.p < 1e-4 for each in slow.verdicts)
    text = " ".join(nodes.slow_paragraphs(twelve))
    assert "node10" in text and "12." in text and "node3" in text and "node2" not in text
    lines = nodes.fleet_data(twelve)["lines"]
    assert [line[0] for line in lines] == ["node10"] * 2 + ["node3"] * 4
    figure = curves.plot_fleet(twelve.rows)
    assert figure is not None
    assert [text.get_text().split()[0] for text in figure.axes[0].texts] == ["node3", "node10"]


@pytest.mark.parametrize(
    ("nodes", "n", "slow"), [(6, 6, {}), (12, 5, SLOW), (3, 6, {"node3": {"cpu": 0.5}})]
)
def test_nobody_is_slow_among_equals_few_repetitions_and_few_nodes(tmp_path, nodes, n, slow):
    of = Analysis.of(campaign(tmp_path / "c", nodes, slow, n))
    assert fleet.slow_nodes(of.rows) == []
    gaps = list(fleet.unjudged(of.rows, of.classes))
    assert [gap.case for gap in gaps] == [["class"], ["rows"], []][(nodes > 3) + (n > 5 < nodes)]


def values(nodes, behind, rows=4):
    """Repetitions of nodes that lie within one per cent of each other."""
    lot = np.random.default_rng(nodes)
    made = lot.lognormal(0, 0.01, (nodes, rows, 6))
    for node, share in behind.items():
        made[node] *= 1 - share
    return {
        (f"node{node}", row): made[node, row].tolist()
        for node in range(nodes)
        for row in range(rows)
    }


@pytest.mark.parametrize(
    ("nodes", "slow"), [(64, range(2)), (64, range(20)), (1000, range(5)), (8, range(1))]
)
def test_lone_slow_nodes_and_a_slow_rack_are_found_and_no_other(nodes, slow):
    of = values(nodes, dict.fromkeys(slow, 0.08))
    assert {node for node, _ in fleet.judge(of)} == {f"node{node}" for node in slow}
    times = {place: [1 / value for value in each] for place, each in of.items()}
    assert {node for node, _ in fleet.judge(times, range(4))} == {f"node{node}" for node in slow}
    assert fleet.judge(times) == {}  # which are faster


def test_less_than_delta_is_not_slow_however_sure():
    assert fleet.judge(values(64, {5: 0.025}, rows=20)) == {}
    assert fleet.judge(values(64, {5: 0.025}, rows=20), delta=0.005) != {}


CPU = {"model_name": "one", "threads": 2}


def facts(**changes):
    return {"cpu": CPU, "memory": {"total": 2**35}, "os": {"kernel": "6.1"}} | changes


@pytest.mark.parametrize(
    ("odd", "classes"),
    [
        ({3: {"cpu": {"model_name": "two", "threads": 2}}}, [("A", 7), ("B", 1)]),
        ({3: {"os": {"kernel": "6.8"}}}, [("", 8)]),  # which is judged beside the others
        ({node: {"os": {"kernel": "6.8"}} for node in range(4)}, [("A", 4), ("B", 4)]),
        (
            {3: {"cpu": {**CPU, "governor": "powersave"}}, 4: {"memory": {"total": 2**34}}},
            [("", 8)],
        ),
    ],
)
def test_classes_are_of_equal_nodes_and_a_lone_one_joins_the_most_similar(odd, classes):
    known = {f"node{node}": facts(**odd.get(node, {})) for node in range(8)}
    assert [(each.name, len(each.nodes)) for each in fleet.classes(known)] == classes


def test_nodes_are_judged_by_their_class(tmp_path):
    """Six nodes at half speed are equal among each other; of them node12 is slower still."""
    half = {f"node{node}": {"cpu": 0.5} for node in range(7, 12)} | {"node12": {"cpu": 0.45}}
    machine = {
        f"node{node}": facts(cpu={"model_name": "old" if node > 6 else "new", "threads": 2})
        for node in range(1, 13)
    }
    of = Analysis.of(campaign(tmp_path / "c", 12, half, machines=machine))
    (slow,) = fleet.slow_nodes(of.rows)
    assert (slow.node, len(slow.rows)) == ("node12", 4)
    group = verdict.headline_group(of.rows, "cpu")
    assert group is not None and len(group.rows) == 6
    frames = build.load(tmp_path / "c")
    table = printed.nodes_table(frames, BY_NAME["cpu"], rows_of(frames, BY_NAME["cpu"]))
    assert "Class" in [column.label for column in table.columns]
    assert rendering.write_pdf(ReportContent.read(of.results.directory)).exists()


def test_every_node_is_in_the_csv_and_the_slowest_on_paper(twelve):
    nodes = lines(twelve, "nodes")
    assert len(nodes) == 12 * 6
    assert {(line["node"], line["table"]) for line in nodes if line["slow"]} == {
        ("node10", "memory_throughput"), ("node3", "cpu"),
    }  # fmt: skip
    names = [f"node{number}" for number in range(1, 13)]  # node2 comes before node10
    assert list(dict.fromkeys(line["Node"] for line in lines(twelve, "cpu"))) == names
    assert fleet.node_names(twelve.rows) == names
    # LaTeX has the points of one node that is like most.
    text = (twelve.results.directory / "tables" / "memory_throughput.tex").read_text()
    assert text.count("node1,") == 1 and "node10" not in text


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
    assert "node6" in (folder / "tables" / "memory_latency.tex").read_text()
    assert rendering.write_pdf(ReportContent.read(folder)).exists()


def test_a_layout_beside_many_nodes_is_told(tmp_path):
    layout = "four-subsystems-2018-hyperion"
    of = Analysis.of(campaign(tmp_path / "c", 12, SLOW, config={"report": {"tables": layout}}))
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
    refused, missing = appendix.problems(Analysis.of(folder))["lines"]
    assert refused == ["hpl DP_none_x1 10 nodes", "not possible here (10 times)", "no HPL"]
    assert missing[:2] == ["hpl node11 and node12", "not measured (2 times)"]


def test_what_machines_have_alike_is_said_once():
    machines = [
        {
            "name": f"node{number}",
            "groups": {"Processor": [["Model", "one"], ["Turbo", on]]},
        }
        for number, on in enumerate(("on", "on", "off", "on", "on"), 1)
    ]
    (one,) = nodes.alike(machines)
    assert one["name"].startswith("5 nodes")
    assert list(one["groups"].values()) == [
        [["Model", "one"]], [["Turbo", "on (4 nodes); off (node3)"]]
    ]  # fmt: skip
    (two,) = nodes.alike(machines[:2])
    assert two["groups"] == {"Processor": [["Model", "one"], ["Turbo", "on"]]}
    assert nodes.alike(machines[:1]) == machines[:1]
