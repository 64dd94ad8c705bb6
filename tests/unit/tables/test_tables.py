"""Tables as CSV: what belongs together, under which heading, in which unit and order."""

import pandas as pd
import pytest
from tests.unit import campaign_data as make
from tests.unit.campaign_data import VM

from peakmark import tables
from peakmark.analysis import findings
from peakmark.config import layouts
from peakmark.tables import columns, layout_tables, presentation
from peakmark.tools.tables import BY_NAME, TABLES


def read(folder, name):
    return pd.read_csv(folder / "tables" / f"{name}.csv", keep_default_na=False)


def heading(name):
    """Heading of the measured values of the own kernel."""
    table = BY_NAME[name]
    return f"{table.own.heading} {columns.of_quantity(table, 'Measured')}"


@pytest.mark.parametrize(("instrument", "workload", "value", "signs"), [
    ("rambench", "RS", 5e9, "≤≥"), ("rambench", "LAT", 1e-7, "≥≥"),
])  # fmt: skip
def test_a_bound_is_printed_as_one_and_is_no_limit(tmp_path, instrument, workload, value, signs):
    place = {"block": 256 << 20} if workload == "LAT" else {"variant": "pool"}
    measured = make.runs(instrument, workload, value, **place)
    row = make.only_row(tmp_path / "c", measured, facts=VM)
    table = row.table
    (line,) = tables.frame(table, [row]).fillna("").to_dict("records")
    efficiency = f"{table.own.heading} {columns.EFFICIENCY}"
    assert (line[columns.of_quantity(table, "Theoretical")], line[efficiency]) == ("", "")
    assert line["Limit Kind"] == "at_most"
    assert line[f"Bound ({table.shown})"] == pytest.approx((row.limit.bound or 0) * table.factor)
    texts = [column.text(row) for column in columns.columns(table, [row])]
    assert "".join(text[0] for text in texts if text[:1] in ("≤", "≥")) == signs


@pytest.mark.parametrize(("n", "seconds", "is_shown"), [(1920, 0.035, False), (30_000, 90.0, True)])
def test_a_small_matrix_of_hpl_has_no_share_of_the_limit(tmp_path, n, seconds, is_shown):
    details = {"N": n, "seconds": seconds}
    records = make.runs("cpubench", "DP", 4e10) + make.runs("hpl", "DP", 3e10, details=details)
    row = make.only_row(tmp_path / "c", records, facts=VM)
    assert row.limit.value and row.measured.efficiency
    (line,) = tables.frame(row.table, [row]).fillna("").to_dict("records")
    assert (line[f"HPL {columns.EFFICIENCY}"] != "") is is_shown
    printed = {
        column.label: column.text(row)
        for column in columns.columns(row.table, [row])
        if column.group == columns.EFFICIENCY
    }
    assert bool(printed["HPL"]) is is_shown and printed["MyCPUBench"]
    shares = [each for each in findings.conclusions([row]) if "HPL reaches" in each.text]
    assert bool(shares) is is_shown
    (layout_table,) = [
        each
        for each in layouts.load("four-subsystems-2018-hyperion").layout_tables
        if each.table.name == "cpu"
    ]
    in_layout = layout_tables.frame(layout_table, [row])["HPL Efficiency (%)"]
    assert in_layout.notna().all() == is_shown


@pytest.mark.parametrize(("name", "instrument", "workload", "value", "unit", "per_joule"), [
    ("cpu", "cpubench", "DP", 4e10, "GigaOP", 0.4),
    ("memory_throughput", "rambench", "RS", 5e9, "GB", 0.05),
    ("network_throughput", "netbench", "TCP", 1e9, "Mb", 10.0),
    ("network_latency", "netbench", "LAT-TCP", 1e-5, "", None),
])  # fmt: skip
def test_joules_are_columns_where_the_kernel_lets_a_user_read_them(
    tmp_path, name, instrument, workload, value, unit, per_joule
):
    details = {"joules": 50.0, "watts": 100.0}
    known = make.runs(instrument, workload, *[value] * 3, details=details)
    unknown = make.runs(instrument, workload, value, repetition=3)
    (line,) = frame_of(tmp_path / "c", [*known, *unknown], name).to_dict("records")
    assert line["Energy (J)"] == 50.0
    assert line.get(f"Operations per joule ({unit}/J)") == pytest.approx(per_joule)
    columns = frame_of(tmp_path / "d", unknown, name).columns
    assert not columns.str.contains("Energy|joule").any()


def frame_of(folder, records, name):
    return tables.frame(BY_NAME[name], make.judge(folder, records).rows[name])


@pytest.mark.parametrize(("workload", "block", "is_small"), [
    ("RR", 4096, True), ("WR", 16384, True), ("RR", 65536, False), ("RS", 4096, False),
])  # fmt: skip
def test_small_random_accesses_are_iops_rows_and_only_those(workload, block, is_small):
    assert BY_NAME["disk_iops"].takes(workload, block) == is_small
    assert BY_NAME["disk_throughput"].takes(workload, block) != is_small


def test_an_empty_campaign_has_all_tables_with_headings(tmp_path):
    ping = make.cell("ping", "LAT-ICMP", subsystem="network")
    folder = make.write(tmp_path / "c", [], planned=[ping])
    tables.build(folder)
    for table in TABLES:
        assert list(read(folder, table.name).columns) == [*tables.frame(table, [])]


def test_a_planned_cell_without_a_record_is_a_hole_that_says_so(tmp_path):
    holes = [make.cell("cpubench", "QP", subsystem="cpu", repetition=number) for number in range(3)]
    holes += [make.cell("cpubench", "DP", subsystem="cpu", repetition=1)]
    failed = make.record(holes[0], status="failed", reason="cpubench ended with exit code 1")
    records = make.runs("cpubench", "DP", 4e10)
    found = make.judge(tmp_path / "c", records, planned=holes, attempts=[failed])
    tables.build(found)
    frame = read(tmp_path / "c", "cpu")
    assert list(frame["Workload"]) == ["QP", "DP"]
    hole = frame.iloc[0]
    assert (hole["n"], hole[heading("cpu")], hole["Standard Deviation"]) == (0, "", "")
    assert "not measured" in hole["Notes"] and "exit code 1" in hole["Notes"]
    half_measured = found.rows["cpu"][1]
    (note,) = [note for note in half_measured.warnings if note.code == "not-measured"]
    assert half_measured.missing == 1
    assert (dict(note.values)["missing"], dict(note.values)["planned"]) == (1, 2)


def test_a_warning_of_a_record_is_one_note_with_its_share(tmp_path):
    records = make.runs("cpubench", "DP", *[4e10] * 3)
    records[0]["warnings"] = ["something else"]
    (row,) = make.judge(tmp_path / "c", records).rows["cpu"]
    (note,) = [text for text in row.said(row.remarks) if "something else" in text]
    assert "1 of 3" in note


def between(folder, *pairs):
    """A campaign with its tables, whose one row has a repetition between each of these clients and
    servers.
    """
    records = []
    for number, (client, server) in enumerate(pairs):
        place = {"repetition": number, "host": client, "context": {"server_host": server}}
        records += make.runs("netbench", "TCP", 1e9, **place)
    found = make.judge(folder, records)
    tables.build(found)
    return found


@pytest.mark.parametrize(("pairs", "clients", "servers", "printed"), [
    ([("n1", "n2")], "n1", "n2", "n1 → n2"),
    ([("n1", "n2"), ("n2", "n1"), ("n1", "n2")], "n1; n2", "n2; n1", "2 pairs"),
    ([("n1", "n1")], "n1", "n1", ""),
])  # fmt: skip
def test_both_ends_of_pairs_of_nodes_are_in_every_table(tmp_path, pairs, clients, servers, printed):
    found = between(tmp_path / "c", *pairs)
    frame = read(tmp_path / "c", "network_throughput")
    assert (list(frame["Client"]), list(frame["Server"])) == ([clients], [servers])
    assert list(read(tmp_path / "c", "runs")["server_host"]) == [server for _, server in pairs]
    (row,) = found.rows["network_throughput"]
    grid = presentation.grid(found.results, row.table, [row])
    tex = (tmp_path / "c" / "tables" / "network_throughput.tex").read_text()
    named = [dict(note.values)["pairs"] for note in row.warnings if note.code == "pairs"]
    assert named == ([("n1 → n2", "n2 → n1")] if len(pairs) > 1 else [])
    assert (r"Client $\rightarrow$" in tex) == bool(printed)
    if printed:
        assert printed.replace("→", r"$\rightarrow$") in tex
        assert (grid.columns[0].label, grid.body[0][0]) == ("Client → server", printed)
    else:  # one machine is both ends
        assert grid.columns[0].label == "Protocol"


def test_nodes_are_kept_apart_and_named(tmp_path):
    first, second = (
        make.runs("cpubench", "DP", 4e10, node=node, host=node) for node in ("n1", "n2")
    )
    folder = make.write(tmp_path / "c", [*first, *second])
    tables.build(folder)
    assert list(read(folder, "cpu")["Node"]) == ["n1", "n2"]
    assert (folder / "tables" / "nodes.csv").exists()
    long, parquet = read(folder, "measurements"), folder / "tables" / "measurements.parquet"
    assert list(pd.read_parquet(parquet)["record"]) == list(long["record"])
    tables.build(make.write(folder, first))
    assert not (folder / "tables" / "nodes.csv").exists(), "one node"
