"""What ``peakmark fleet`` prints of many nodes, and what page one says of them."""

import shlex

import pytest
from tests.unit import campaign_data as make
from tests.unit.campaign_data import SLOW, fleet_frames

from peakmark.views import fleet_report, rendering
from peakmark.workflow import status


@pytest.mark.parametrize(
    ("nodes", "n", "slow", "gap"),
    [
        (6, 6, {}, ""),
        (12, 5, SLOW, "node8 and 4 more."),
        (3, 6, {"node3": {"cpu": 0.5}}, "node1, node2 and node3."),
    ],
)
def test_what_no_verdict_was_possible_on_is_said(tmp_path, peakmark, nodes, n, slow, gap):
    """It takes four nodes of a class and six repetitions."""
    frames = fleet_frames(tmp_path / "c", nodes, slow, n)
    assert frames.fleet.empty and frames.nodes["judged"].gt(0).eq(not gap).all()
    found = fleet_report.unjudged(frames)
    assert bool(found) == bool(gap) and gap in found
    assert ("cannot tell" in fleet_report.headline(frames)) == bool(gap)
    done = peakmark("fleet", tmp_path / "c", "--fail-on", "slow")
    assert done.returncode == (3 if gap else 0)
    assert ("cannot tell: no node was judged" in done.stdout) == bool(gap)
    assert done.stdout.count("a verdict needs 4 nodes of a class") == 1
    # Without a promise nothing can be accepted.
    done = peakmark("fleet", tmp_path / "c", "--fail-on", "promise")
    assert done.returncode == 3 and "promises no value" in done.stderr


@pytest.mark.parametrize(
    ("others", "quota", "share", "first", "code"),
    [
        # As seen: 10 of 12 rows were disturbed, and nothing was said of node3.
        (1.7, 0.5, 0.43, "cannot tell: ", 3),
        (0.0, 0.5, 0.43, "1 slow node", 1),
        (0.0, 0.5, 1.0, "0 slow nodes", 1),
        (0.0, None, 1.0, "0 slow nodes", 0),
    ],
)
def test_no_all_clear_is_given_that_cannot_be_given(tmp_path, others, quota, share, first, code):
    """Real records of four nodes; edited so that all but node3 are equally fast and node3 has a quota."""

    def change(record):
        node = record["cell"]["node"]
        factor = share if node == "node3" else 1.0 - others * int(node[4:]) / 20
        for measured in record["measurements"]:
            spread = 0.002 + others / 12
            measured["value"] = 3e10 * factor * (1 + spread * (record["cell"]["repetition"] - 5))
            measured["details"] |= {"clock_hz_before": 4e9, "clock_hz_after": 4e9, "cpu_share": 1.0}
        quiet = {"steal": 0.0, "users": 0, "throttled_s": 0.0, "hot": None}
        record["context"]["noise"]["during"] |= quiet | {"others": others, "busy": 2 * (others > 0)}

    def limit(facts):
        if facts["host"] == "node3":
            facts["limits"]["cpu_quota"] = quota

    cells = "cpu/cpubench/DP_none_x1/node?"
    frames = make.edited("cluster", tmp_path / "c", cells, change, limit)
    if others:
        facts = frames.nodes.set_index("node")
        assert facts["disturbed"].sum() > facts["judged"].sum() / 2
    assert fleet_report.headline(frames).startswith(f"cluster: {first}"), fleet_report.describe(
        frames
    )
    assert fleet_report.exit_code(frames) == code
    said = " ".join(fleet_report.describe(frames))
    assert ("node3 has a CPU quota of 0.5 CPUs" in said) == (quota is not None)
    assert ("behind in every row would have been found" in said) == first.startswith("0")


def test_a_spread_that_hides_a_slow_node_is_no_all_clear(tmp_path):
    records = []
    for node, factor in enumerate((0.94, 1.0, 1.02, 1.1, 0.97), 1):
        name = f"node{node}"
        records += make.runs("cpubench", "DP", *make.near(1e10 * factor), node=name, host=name)
    frames = make.frames(tmp_path / "c", records)
    assert "cannot tell: among 5 nodes" in fleet_report.headline(frames)
    assert fleet_report.exit_code(frames) == 3


def test_a_node_without_a_value_is_named(tmp_path):
    records = []
    for number in range(1, 6):
        name = f"node{number}"
        records += make.runs("cpubench", "DP", *make.near(1e10), node=name, host=name)
    planned = [make.cell("cpubench", "DP", subsystem="cpu", node="node6")]
    frames = make.frames(tmp_path / "c", records, planned=planned)
    assert fleet_report.unjudged(frames).startswith("Not judged: node6.")
    assert "records of 1 of 31 planned cells are missing" in fleet_report.describe(frames)
    assert (
        fleet_report.headline(frames)
        == "c: cannot tell: a node was not judged, and records are missing"
    )
    assert fleet_report.exit_code(frames) == 3


def test_nodes_of_which_the_reasons_read_alike_share_a_sentence(tmp_path):
    slow = {f"node{number}": {"cpu": 0.9} for number in range(1, 13)}
    frames = fleet_frames(tmp_path / "c", 64, slow)
    sentence, *_ = fleet_report.slow_paragraphs(frames)
    assert (
        sentence.startswith("Slow: ")
        and "and 4 more, " in sentence
        and "behind their class" in sentence
    )


def test_the_summary_to_paste_names_the_slow_nodes(tmp_path):
    folder = make.write_fleet(tmp_path / "c", 5, {"node2": {"cpu": 0.8}})
    make.tables(folder)
    rendering.write_all(status.collect_report(folder))
    summary = (folder / "summary.md").read_text()
    assert "\n\nSlow: node2, " in summary and "\n\nA node is slow in a row" in summary


def test_one_node_has_no_verdict_on_page_one(tmp_path):
    frames = fleet_frames(tmp_path / "c", 1, {})
    assert fleet_report.slow_paragraphs(frames) == [] and fleet_report.slow_table(frames) == {}
    first, rule = fleet_report.describe(frames)
    assert "cannot tell: no node was judged" in first and "4 nodes of a class" in rule


def test_slow_nodes_are_drained_by_one_command_and_fail_a_job_of_cron(tmp_path, peakmark):
    def measure(name, slow):
        every = [
            make.runs("cpubench", "DP", *make.near(4e10 * share), node=f"n{node}", host=f"n{node}")
            for node, share in enumerate([1.0] * 8 + [slow, slow], 1)
        ]
        return make.write(tmp_path / name, [record for records in every for record in records])

    done = peakmark("fleet", measure("well", 1.0), "--fail-on", "slow")
    assert done.returncode == 0 and "scontrol" not in done.stdout
    slow = measure("ill", 0.8)
    done = peakmark("fleet", slow, "--fail-on", "slow")
    assert (done.returncode, peakmark("fleet", slow).returncode) == (1, 0)
    command = shlex.split(done.stdout.splitlines()[-1])
    assert command[:4] == ["scontrol", "update", "nodename=n9,n10", "state=drain"]
