"""Many nodes: the median speaks for all, slow nodes are named, and paper has a line for each point,
not for each node.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit import pdf

from peakmark.analysis import analysis, fleet, verdict
from peakmark.analysis.analysis import Analysis
from peakmark.analysis.row import Row
from peakmark.figures import dots
from peakmark.report import appendix, document, html_report, machine_text, pdf_report, pictures
from peakmark.storage.results import Results
from peakmark.tables import tables
from peakmark.tools.tables import BY_NAME
from peakmark.workflow import status

SLOW = {"node10": {"memory": 0.88}, "node3": {"cpu": 0.9}}


def campaign(
    folder: Path,
    nodes: int,
    slow: Mapping[str, Mapping[str, float]] = SLOW,
    repetitions: int = 3,
    config: Mapping[str, Any] | None = None,
) -> Path:
    """Four CPU rows and two memory rows on each node; the values of a node lie within one per cent
    of the others'.
    """
    records = []
    for number in range(1, nodes + 1):
        name = f"node{number}"
        by = slow.get(name, {})
        wobble = [
            1 + 0.002 * ((number * 7 + repetition * 3) % 5 - 2) for repetition in range(repetitions)
        ]
        for place, workload in enumerate(("QP", "HP", "SP", "DP")):
            values = [4e11 / 2**place * one * by.get("cpu", 1.0) for one in wobble]
            records += make.runs("cpubench", workload, *values, node=name, host=name)
        for workload in ("RS", "WS"):
            values = [1.5e10 * one * by.get("memory", 1.0) for one in wobble]
            records += make.runs("rambench", workload, *values, node=name, host=name)
    return make.write(folder, records, config=config)


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return campaign(tmp_path_factory.mktemp("nodes") / "twelve", 12)


def test_node2_comes_before_node10(twelve: Path) -> None:
    found = analysis.build_rows(Results.read(twelve))
    assert fleet.node_names(found) == [f"node{number}" for number in range(1, 13)]
    names = list(dict.fromkeys(row.key.node for row in found["cpu"]))
    assert names == fleet.node_names(found)


def test_the_median_speaks_for_all_and_the_slowest_is_named(twelve: Path) -> None:
    found = analysis.build_rows(Results.read(twelve))
    group = verdict.headline_group(found, "memory")
    assert group is not None
    assert len(group.rows) == 12
    assert group.median == pytest.approx(1.5e10, rel=0.005)
    assert group.worst.key.node == "node10"
    assert group.middle.measured.centre == pytest.approx(group.median, rel=1e-4)
    assert group.high > group.median * 1.001  # which is another node
    assert [row.key.node for row in group.slow] == ["node10"]
    memory = next(one for one in verdict.verdicts(found) if one.subsystem == "memory")
    assert memory.measured == "15.00 GB/s"
    assert memory.slowest == "node10" and memory.behind.startswith("13.")
    assert "12." in memory.behind.partition(", ")[2]
    assert "median of 12 nodes" in status.summary(twelve)
    assert "slowest node10" in status.summary(twelve)


def test_the_median_of_two_nodes_lies_between_them(tmp_path: Path) -> None:
    found = analysis.build_rows(
        Results.read(campaign(tmp_path / "two", 2, {"node2": {"cpu": 0.5}}))
    )
    (cpu,) = (one for one in verdict.verdicts(found) if one.subsystem == "cpu")
    (group,) = (one for one in fleet.group_rows(found["cpu"]) if one.rows[0].key.workload == "DP")
    low, high = sorted(row.measured.centre for row in group.rows)
    assert group.median == pytest.approx((low + high) / 2)
    assert cpu.measured == f"{group.median / 1e9:.2f} GigaOPS"


def test_slow_nodes_are_sentences_and_quiet_ones_are_not(twelve: Path, tmp_path: Path) -> None:
    said = fleet.slow_node_sentences(analysis.build_rows(Results.read(twelve)))
    memory, cpu, _ = said
    assert memory.startswith("node10 ") and "memory is 12." in memory and "all 2 rows" in memory
    assert cpu.startswith("node3 ") and "CPU is 10." in cpu
    even = fleet.slow_node_sentences(
        analysis.build_rows(Results.read(campaign(tmp_path / "even", 6, {})))
    )
    assert even[0].startswith("No node of 6 ")


def test_a_node_whose_interval_reaches_the_median_is_not_apart(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "c", 6, {})
    found = analysis.build_rows(Results.read(folder))["cpu"]
    (group, *_) = fleet.group_rows(found)
    assert not group.slow
    assert not group.fast
    assert group.behind(group.worst) < fleet.BEYOND


@pytest.fixture
def wild(tmp_path: Path) -> Mapping[str, Sequence[Row]]:
    """Twelve nodes whose rows spread so far that none lies apart by itself; node5 is slow in all of
    them together.
    """
    records = []
    for number in range(1, 13):
        name = f"node{number}"
        for place, workload in enumerate(("QP", "HP", "SP", "DP")):
            own = 1e10 * (1 + 0.003 * ((number + place) % 3 - 1)) * (0.9 if number == 5 else 1.0)
            values = [own * factor for factor in (0.6, 1.0, 1.4)]
            records += make.runs("cpubench", workload, *values, node=name, host=name)
    return make.judge(tmp_path / "c", records).rows


def test_rows_that_spread_name_a_slow_node_together(wild: Mapping[str, Sequence[Row]]) -> None:
    # No interval of three such values is beyond the others.
    assert not any(group.slow for group in fleet.group_rows(wild["cpu"]))
    said = fleet.slow_node_sentences(wild)
    slow, _ = said
    assert slow.startswith("node5 ") and "CPU" in slow and "4 rows" in slow


def test_figures_mark_and_name_a_node_that_is_slow_in_all_rows_together(
    wild: Mapping[str, Sequence[Row]],
) -> None:
    for figure in (
        dots.overview(wild),
        dots.plot(BY_NAME["cpu"], wild["cpu"], slow=dots.slow(wild)),
    ):
        assert figure is not None
        (axis,) = figure.axes
        lines = len(axis.get_yticks())
        assert sum(len(one.get_offsets()) for one in axis.collections) == 12 * lines
        assert [len(one.get_offsets()) for one in axis.collections if len(one.get_offsets())] == [
            11,
            1,
        ] * lines
        assert [text.get_text().split()[0] for text in axis.texts] == ["node5"] * lines


def test_every_node_is_in_the_csv_and_says_whether_it_lies_apart(twelve: Path) -> None:
    tables.build(twelve)
    with (twelve / "tables" / "nodes.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 12 * 6
    assert {(line["node"], line["table"]) for line in lines if line["apart"]} == {
        ("node10", "memory_throughput"), ("node3", "cpu"),
    }  # fmt: skip
    with (twelve / "tables" / "cpu.csv").open() as file:
        assert [line["Node"] for line in csv.DictReader(file)][:8:4] == ["node1", "node2"]


def test_latex_has_a_line_for_each_point_and_the_slowest_node(twelve: Path) -> None:
    tables.build(twelve)
    text = (twelve / "tables" / "memory_throughput.tex").read_text()
    assert text.count("node10") == 2
    assert "node2" not in text


def test_paper_has_a_line_for_each_point_and_the_page_one_for_each_node(tmp_path: Path) -> None:
    pages = {}
    for nodes in (6, 24):
        folder = campaign(tmp_path / str(nodes), nodes, {"node3": {"memory": 0.8}}, repetitions=1)
        made = pdf_report.build(folder)
        text, pages[nodes] = pdf.text(made), pdf.text(made).count("\f")
        assert "node3 is slow" in text
        assert "node2 " not in text
        page = html_report.build(folder).read_text()
        assert "node3 is slow" in page
        assert page.count(">node2</th>") == 6
    assert pages[6] == pages[24]


def test_a_table_that_no_node_has_measured_is_no_obstacle_to_the_report(tmp_path: Path) -> None:
    """Of the CPU nothing counts, of the memory nobody has measured anything."""
    names = [f"node{number}" for number in range(1, 7)]
    cpu, memory = [
        [make.cell(tool, workload, subsystem=subsystem, node=name, concurrency=2) for name in names]
        for tool, workload, subsystem in (("cpubench", "DP", "cpu"), ("rambench", "LAT", "memory"))
    ]
    measured = [
        make.record(of, [make.measurement(of, "rate", 1e10)], host=of.node, context={"cpus": [0]})
        for of in cpu
    ]
    missing = [
        make.record(of, status="unavailable", reason="no memory", host=of.node) for of in memory
    ]
    folder = make.write(tmp_path / "c", [*measured, *missing])
    tables.build(folder)
    assert "node6" in (folder / "tables" / "memory_latency.tex").read_text()
    assert pdf_report.build(folder).exists()


def test_a_layout_beside_many_nodes_is_told_and_figures_say_who_is_slow(tmp_path: Path) -> None:
    folder = campaign(
        tmp_path / "c", 12, config={"report": {"tables": "four-subsystems-2018-hyperion"}}
    )
    found = Analysis.of(folder)
    names = pictures.names(found)
    assert names == ["fleet", "cpu", "memory_throughput_pool"]  # not those of the layout
    data = document.build(found, dict.fromkeys(names, 50))
    (said,) = [one for one in data["caveats"] if "layout" in one]
    assert "tables/four-subsystems-2018-hyperion" in said
    assert "Memory: slowest node10" in data["overview"]["alt"]
    (cpu,) = data["sections"][0]["parts"][0]["figures"]
    assert cpu["alt"].startswith(cpu["caption"]) and "node3 (4 rows" in cpu["alt"]


def test_what_befell_a_row_on_many_nodes_is_one_line(tmp_path: Path) -> None:
    cells = [
        make.cell("hpl", "DP", subsystem="cpu", node=f"node{number}") for number in range(1, 13)
    ]
    folder = make.write(tmp_path / "c", [make.record(of, status="unavailable", reason="no HPL", host=of.node) for of in cells[:10]],
                        planned=cells[10:])  # fmt: skip
    refused, missing = appendix.problems(Results.read(folder))["lines"]
    assert "10 nodes (10 cells)" in refused[0] and refused[1:] == ["not possible here", "no HPL"]
    assert "node11 and node12 (2 cells)" in missing[0] and missing[1] == "not measured"


def test_what_machines_have_alike_is_said_once() -> None:
    machines = [
        {
            "name": f"node{number}",
            "groups": [{"title": "Processor", "items": [["Model", "one"], ["Turbo", on]]}],
        }
        for number, on in enumerate(("on", "on", "off", "on", "on"), 1)
    ]
    (one,) = machine_text.alike(machines)
    assert one["name"].startswith("5 nodes")
    alike, differ = (group["items"] for group in one["groups"])
    assert alike == [["Model", "one"]]
    assert differ == [["Turbo", "on (4 nodes); off (node3)"]]
    assert machine_text.alike(machines[:2]) == machines[:2]
