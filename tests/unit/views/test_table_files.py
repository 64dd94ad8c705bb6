"""Tables as CSV: what belongs together, under which heading, in which unit and order."""

import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark.tools.tables import BY_NAME
from peakmark.views import layout_tables, table_files
from peakmark.views.table import NOT_MEASURED, rows_of
from peakmark.views.usual_tables import of_quantity, usual_table


def read(folder, name):
    return pd.read_csv(folder / "tables" / f"{name}.csv", keep_default_na=False)


def heading(name):
    """Heading of the measured values of the own kernel."""
    table = BY_NAME[name]
    return f"{table.own.heading} {of_quantity(table, 'Measured')}"


def shown(frames, name):
    """A table as a page shows it."""
    arranged = layout_tables.arrange(frames, None)
    return usual_table(arranged, BY_NAME[name], rows_of(frames, BY_NAME[name]))


def printed_texts(frames, name):
    """Label and group of each column of a table -> its texts."""
    grid = shown(frames, name)
    return {(column.group, column.label): column.texts for column in grid.columns}


@pytest.mark.parametrize(("workload", "block", "is_small"), [
    ("RR", 4096, True), ("WR", 16384, True), ("RR", 65536, False), ("RS", 4096, False),
])  # fmt: skip
def test_small_random_accesses_are_iops_rows_and_only_those(workload, block, is_small):
    assert BY_NAME["disk_iops"].takes(workload, block) == is_small
    assert BY_NAME["disk_throughput"].takes(workload, block) != is_small


def test_a_campaign_has_the_tables_that_its_plan_fills_and_no_others(tmp_path):
    small = make.cell("diskbench", "RR", subsystem="disk", variant="psync", block=4096)
    config = {"report": {"tables": "four-subsystems-2018-hyperion"}}
    folder = make.write(tmp_path / "c", [], planned=[small], config=config)
    make.tables(folder)
    written = {path.stem for path in folder.glob("tables/*.csv")}
    assert written == {"disk_iops", "disk_latency", "runs"}
    of_layout = {path.stem for path in folder.glob("tables/four*/*.csv")}
    assert of_layout == {"disk_iops", "disk_latency"}


def test_a_planned_cell_without_a_record_is_a_hole_that_says_so(tmp_path):
    holes = [make.cell("cpubench", "QP", subsystem="cpu", repetition=number) for number in range(3)]
    holes += [make.cell("cpubench", "DP", subsystem="cpu", repetition=1)]
    failed = make.record(holes[0], status="failed", reason="cpubench ended with exit code 1")
    records = make.runs("cpubench", "DP", 4e10)
    frames = make.tables(make.write(tmp_path / "c", records, planned=holes, attempts=[failed]))
    frame = read(tmp_path / "c", "cpu")
    assert list(frame["Workload"]) == ["QP", "DP"]
    hole = frame.iloc[0]
    assert (hole["n"], hole[heading("cpu")], hole["Standard Deviation"]) == (0, "", "")
    assert "not measured" in hole["Notes"] and "exit code 1" in hole["Notes"]
    measured = of_quantity(BY_NAME["cpu"], "Measured")
    assert printed_texts(frames, "cpu")[measured, "MyCPUBench"][0] == NOT_MEASURED
    assert list(frames.rows["missing"])[1] == 1
    assert "1 of 2" in frame["Notes"][1]


@pytest.mark.parametrize(("pairs", "clients", "servers", "place"), [
    ([("n1", "n2")], "n1", "n2", "n1 → n2"),
    ([("n1", "n2"), ("n2", "n1"), ("n1", "n2")], "n1; n2", "n2; n1", "2 pairs"),
    ([("n1", "n1")], "n1", "n1", ""),
])  # fmt: skip
def test_both_ends_of_pairs_of_nodes_are_in_every_table(tmp_path, pairs, clients, servers, place):
    """The one row has a repetition between each of these clients and servers."""
    records = []
    for number, (client, server) in enumerate(pairs):
        context = {"server_host": server}
        records += make.runs(
            "netbench", "TCP", 1e9, repetition=number, host=client, context=context
        )
    frames = make.tables(make.write(tmp_path / "c", records))
    frame = read(tmp_path / "c", "network_throughput")
    assert (list(frame["Client"]), list(frame["Server"])) == ([clients], [servers])
    assert list(read(tmp_path / "c", "runs")["server_host"]) == [server for _, server in pairs]
    grid = shown(frames, "network_throughput")
    tex = (tmp_path / "c" / "tables" / "paper" / "network_throughput.tex").read_text()
    assert (r"Client $\rightarrow$" in tex) == bool(place)
    if place:
        assert place.replace("→", r"$\rightarrow$") in tex
        assert (grid.columns[0].label, grid.body[0][0]) == ("Client → server", place)
    else:  # one machine is both ends
        assert grid.columns[0].label == "Protocol"


def test_nodes_are_kept_apart_and_named(tmp_path):
    first, second = (
        make.runs("cpubench", "DP", 4e10, node=node, host=node) for node in ("n1", "n2")
    )
    folder = make.write(tmp_path / "c", [*first, *second])
    make.tables(folder)
    assert list(read(folder, "cpu")["Node"]) == ["n1", "n2"]
    assert list(read(folder, "nodes")["median_of_nodes"]) == [4e10, 4e10]
    make.tables(make.write(folder, first))
    assert not (folder / "tables" / "nodes.csv").exists(), "one node"


def test_tables_of_many_nodes_are_in_their_order_and_latex_has_the_typical_one(twelve, tmp_path):
    table_files.write_tables(twelve, tmp_path)
    names = [f"node{number}" for number in range(1, 13)]  # node2 comes before node10
    assert list(dict.fromkeys(pd.read_csv(tmp_path / "cpu.csv")["Node"])) == names
    text = (tmp_path / "paper" / "memory_pool.tex").read_text()
    assert text.count("node1,") == 1 and "node10" not in text
