"""Points that several nodes measured: the median speaks for all, and every node is in the CSV."""

import pandas as pd
import pytest

from peakmark.rows.labels import rows_of_typical_node, with_medians
from peakmark.tools.tables import BY_NAME
from peakmark.views import table_files
from peakmark.views.layout_tables import arrange
from peakmark.views.table import rows_of
from peakmark.views.usual_tables import nodes_table


def test_the_median_speaks_for_all_and_the_slowest_is_named(twelve):
    rows = rows_of(twelve, BY_NAME["memory_throughput"])
    usable = with_medians(rows)
    assert usable.groupby("group").size().eq(12).all()
    assert usable["median_of_nodes"].to_numpy() == pytest.approx(1.5e10, rel=0.005)
    slow = usable[usable["is_slow"]]
    assert set(slow["node"]) == {"node10"}
    assert slow["behind"].to_numpy() == pytest.approx(0.12, abs=0.01)
    assert set(rows_of_typical_node(rows)["node"]) == {"node1"}
    shown = nodes_table(arrange(twelve, None), BY_NAME["memory_throughput"], rows)
    cells = {column.label: column.texts for column in shown.columns}
    assert cells["median"] == ["15.00", "15.00"]
    assert (cells["Nodes"], cells["Slow"]) == (["12", "12"], ["node10", "node10"])


def test_every_node_is_in_the_csv_and_the_typical_one_in_latex(twelve, tmp_path):
    table_files.write_tables(twelve, tmp_path)
    nodes = pd.read_csv(tmp_path / "nodes.csv")
    assert len(nodes) == 12 * 6
    slow = nodes[nodes["slow"].eq("slow")]
    assert {*zip(slow["node"], slow["table"], strict=True)} == {
        ("node10", "memory_throughput"), ("node3", "cpu"),
    }  # fmt: skip
    names = [f"node{number}" for number in range(1, 13)]  # node2 comes before node10
    assert list(dict.fromkeys(pd.read_csv(tmp_path / "cpu.csv")["Node"])) == names
    # LaTeX has the points of one node that is like most.
    text = (tmp_path / "paper" / "memory_pool.tex").read_text()
    assert text.count("node1,") == 1 and "node10" not in text
