"""Many nodes: classes of equal ones, and which are slow."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.unit import campaign_data as make
from tests.unit.campaign_data import fleet_frames, node_facts

from peakmark import promises
from peakmark.formatting import typeset
from peakmark.promises import Promise
from peakmark.rows import fleet, node_classes
from peakmark.views import fleet_report


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
    assert {node for node, _ in fleet.slow_rows(fleet.logs_of(of))} == {
        f"node{node}" for node in slow
    }
    times = {place: [1 / value for value in each] for place, each in of.items()}
    assert {node for node, _ in fleet.slow_rows(fleet.logs_of(times, range(4)))} == {
        f"node{node}" for node in slow
    }
    assert fleet.slow_rows(fleet.logs_of(times)) == {}  # which are faster


def test_less_than_delta_is_not_slow_however_sure(monkeypatch):
    logs = fleet.logs_of(values(64, {5: 0.025}, rows=20))
    assert fleet.slow_rows(logs) == {}
    monkeypatch.setattr(fleet, "DELTA", 0.005)
    assert fleet.slow_rows(logs) != {}


def test_a_limit_that_one_node_of_a_class_alone_has_is_named():
    gib = 1 << 30
    usual = {
        "limits": {"cpu_quota": None},
        "memory": {"total": 500 * gib}, "network": {"speed_bps": 1e11}, "gpu": {"count": 16},
    }  # fmt: skip
    odd = {
        "n1": {"limits": {"cpu_quota": 0.5}}, "n2": {"memory": {"total": 469 * gib}},
        "n3": {"network": {"speed_bps": 1e10}}, "n4": {"gpu": {"count": 15}},
        "n6": {"memory": {"total": 490 * gib}}, "n7": {},
    }  # fmt: skip
    found = node_classes.limits_of({node: usual | own for node, own in odd.items()})
    named = [
        "n1 has a CPU quota of 0.5 CPUs, other nodes of its class no CPU quota",
        "n2 has 503.6 GB, other nodes of its class 536.9 GB",
        "n3 has a link of 10 Gb/s, other nodes of its class a link of 100 Gb/s",
        "n4 has 15 GPUs, other nodes of its class 16 GPUs",
    ]
    assert sorted(text.partition(":")[0] for _, text in found) == named


@pytest.mark.parametrize(("odd", "said"), [
    ({"n2": {"governor": "powersave"}}, "differ in governor: performance on n1 and powersave on n2"),
    ({"n2": {"turbo": False}}, "differ in turbo mode: enabled on n1 and disabled on n2"),
    ({"n1": {"smt": False, "threads": 32}}, "differ in SMT: disabled on n1 and enabled on n2"),
    ({"n2": {"model_name": "another", "governor": "powersave"}}, ""), ({"n2": {"governor": None, "turbo": None}}, ""),
    ({f"n{node}": {"governor": "powersave"} for node in range(3, 9)}, "performance on n1 and n2 and powersave on 6 nodes"),
])  # fmt: skip
def test_settings_in_which_nodes_with_the_same_processor_differ_are_named(odd, said, tmp_path):
    """Two nodes or eight; half of them may be a class by itself."""
    usual = {
        "model_name": "one",
        "threads": 64,
        "governor": "performance",
        "turbo": True,
        "smt": True,
    }
    machines = {node: {"cpu": usual | odd.get(node, {})} for node in ("n1", "n2", *odd)}
    records = []
    for node in machines:
        records += make.runs("cpubench", "DP", *make.near(1e10), node=node, host=node)
    frames = make.frames(tmp_path / "c", records, machines=machines)
    sentences = fleet_report.lone_limits(frames)
    assert len(sentences) == bool(said) and said in " ".join(sentences)


@pytest.mark.parametrize(("noise", "nodes"), [(0.01, 4), (0.03, 8), (0.1, 64)])
def test_the_smallest_distance_is_found_about_every_second_time(noise, nodes):
    lot = np.random.default_rng(1)
    found = 0
    for _ in range(40):
        of = {
            (f"n{node}", row): np.exp(lot.normal(0, noise, 6)).tolist()
            for node in range(nodes) for row in range(3)
        }  # fmt: skip
        distance = np.median(list(fleet.smallest_distances(fleet.logs_of(of)).values()))
        for row in range(3):
            of["n0", row] = [value * (1 - distance) for value in of["n0", row]]
        found += any(node == "n0" for node, _ in fleet.slow_rows(fleet.logs_of(of)))
    assert 10 <= found <= 37


@pytest.mark.parametrize(
    ("odd", "classes"),
    [
        ({3: {"cpu": {"model_name": "two", "threads": 2}}}, [("A", 7), ("B", 1)]),
        ({3: {"os": {"kernel": "6.8"}}}, [("", 8)]),  # which is judged beside the others
        ({node: {"os": {"kernel": "6.8"}} for node in range(4)}, [("A", 4), ("B", 4)]),
        (
            {
                3: {"cpu": {**node_facts()["cpu"], "governor": "powersave"}},
                4: {"memory": {"total": 2**34}},
            },
            [("", 8)],
        ),
    ],
)
def test_classes_are_of_equal_nodes_and_a_lone_one_joins_the_most_similar(odd, classes):
    known = {f"node{node}": node_facts(**odd.get(node, {})) for node in range(8)}
    found = node_classes.classes_of(known)
    assert [(name, len(nodes)) for name, nodes in found.items()] == classes


def test_nodes_are_judged_by_their_class(tmp_path):
    """Six nodes at half speed are equal among each other; of them node12 is slower still."""
    half = {f"node{node}": {"cpu": 0.5} for node in range(7, 12)} | {"node12": {"cpu": 0.45}}
    machines = {
        f"node{node}": node_facts(cpu={"model_name": "old" if node > 6 else "new", "threads": 2})
        for node in range(1, 13)
    }
    frames = fleet_frames(tmp_path / "c", 12, half, machines=machines)
    assert frames.fleet[["name", "rows"]].to_numpy().tolist() == [["node12", 4]]
    assert frames.nodes.groupby("class").size().to_dict() == {"A": 6, "B": 6}
    classes = frames.rows.groupby("node_class")["node"].nunique()
    assert classes.to_dict() == {"A": 6, "B": 6}


@pytest.mark.parametrize(
    ("values", "slow", "named"),
    [
        ("bbbbbbbba", {8}, True),  # alone
        ("bbbbbbbaa", {7, 8}, True),  # all slow ones
        ("bbbbbbbca", {7, 8}, False),  # the slow ones differ
        ("bbbbbbaaa", {7, 8}, False),  # another has it
        ("abcdefghi", {8}, False),  # all differ: it is a name
        ("bbbbbbbbb", {8}, False),  # as usual
        ("--------a", {8}, True),  # the others have no such fact
        ("a", {0}, False),  # nobody else to tell
    ],
)
def test_a_fact_is_named_where_all_slow_nodes_have_it_and_no_other(values, slow, named):
    lines = []
    for number, value in enumerate(values):
        lines.append((f"node{number}", "kernel", "6"))
        if value != "-":
            lines.append((f"node{number}", "microcode", value))
    facts = pd.DataFrame(lines, columns=["node", "title", "text"])
    found = node_classes.distinctive_facts(facts, [f"node{number}" for number in slow])
    assert [each.values["what"] for each in found] == ["microcode"] * named


def test_a_rate_of_mpis_messages_can_be_promised():
    promise = Promise.parse("mpi/MSGRATE/xcores", "2.5 M messages/s")
    assert re.fullmatch(promises.AMOUNT, "2.5 M messages/s")
    assert (promise.amount, promise.unit) == (2.5e6, "message/s")


def test_promises_are_judged_by_the_best_row_of_each_node(tmp_path):
    records = []
    for node, share in (("n1", 1.0), ("n2", 0.95)):
        for threads, part in ((1, 0.3), (2, 1.0)):
            rates = make.near(4e11 * share * part)
            place = {"node": node, "host": node, "concurrency": threads}
            records += make.runs("rambench", "TRIAD", *rates, **place)
        records += make.runs("rambench", "LAT", *make.near(9e-8), node=node, host=node, block=2**30)
    for zero in ("0 GB/s", "at most 0.00 ns"):
        assert not re.match(promises.AMOUNT, zero)
    promise = {
        "memory/TRIAD/pool": "390 GB/s", "memory/TRIAD/x1": "at least 100 GB/s",
        "memory/LAT": "at most 80 ns", "disk/RS": "3 GB/s", "memory/TRIAD/x2": "401 GB/s",
    }  # fmt: skip
    frames = make.frames(tmp_path / "c", records, config={"site_facts": {"promise": promise}})
    assert fleet_report.promise_lines(frames) == [typeset(line) for line in (
        "Promises: failed, 4 of 9 values missed.",
        "memory/TRIAD/pool, at least 390 GB/s: kept on n1; missed by 2.5 % (1.6 to 3.5) on n2.",
        "memory/TRIAD/x1, at least 100 GB/s: kept on n1 and n2.",
        "memory/LAT, at most 80 ns: missed by 13 % (11 to 14) on n1 and n2.",
        "disk/RS, at least 3 GB/s: no row with these words and this unit on any node.",
        "memory/TRIAD/x2, at least 401 GB/s: undecided, 0.15 % short (-0.75 to 1.2) on n1; missed by"
        " 5.1 % (4.3 to 6.2) on n2.",
    )]  # fmt: skip
    assert fleet_report.judge_promises(frames)[0] == 1
    notes = frames.warnings[frames.warnings["code"].eq("promise")]
    assert notes["short"].str.startswith("promise kept").sum() == 3 and len(notes) == 8
