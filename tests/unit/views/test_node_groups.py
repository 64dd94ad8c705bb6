"""Points that several nodes measured: the median speaks for all, and every node is in the CSV."""

import pandas as pd
import pytest
from tests.unit.rows.fleets import SLOW, campaign

from peakmark.tools.tables import BY_NAME
from peakmark.views import score_card, tables
from peakmark.views.node_groups import group_points
from peakmark.views.points import points_of, rows_of


def test_the_median_speaks_for_all_and_the_slowest_is_named(tmp_path):
    frames = campaign(tmp_path / "twelve", 12, SLOW)
    (*_, group) = group_points(points_of(frames, rows_of(frames, BY_NAME["memory_throughput"])))
    assert len(group.points) == 12
    assert group.median == pytest.approx(1.5e10, rel=0.005)
    assert group.middle.own.value == pytest.approx(group.median, rel=1e-4)
    assert group.high > group.median * 1.001  # which is another node
    assert [point.own.node for point in (group.worst, *group.slow)] == ["node10", "node10"]
    assert group.behind(group.worst) == pytest.approx(0.12, abs=0.01)


def test_the_median_of_two_nodes_lies_between_them(tmp_path):
    frames = campaign(tmp_path / "two", 2, {"node2": {"cpu": 0.5}})
    points = points_of(frames, rows_of(frames, BY_NAME["cpu"]))
    (*_, group) = group_points(points)
    assert group.median == pytest.approx(sum(point.own.value for point in group.points) / 2)
    assert score_card.build(frames)[0].value == group.median


def test_every_node_is_in_the_csv_and_the_typical_one_in_latex(tmp_path):
    tables.write_tables(campaign(tmp_path / "twelve", 12, SLOW), tmp_path)
    nodes = pd.read_csv(tmp_path / "nodes.csv")
    assert len(nodes) == 12 * 6
    slow = nodes[nodes["slow"].eq("slow")]
    assert {*zip(slow["node"], slow["table"], strict=True)} == {
        ("node10", "memory_throughput"), ("node3", "cpu"),
    }  # fmt: skip
    names = [f"node{number}" for number in range(1, 13)]  # node2 comes before node10
    assert list(dict.fromkeys(pd.read_csv(tmp_path / "cpu.csv")["Node"])) == names
    # LaTeX has the points of one node that is like most.
    text = (tmp_path / "memory_throughput.tex").read_text()
    assert text.count("node1,") == 1 and "node10" not in text
