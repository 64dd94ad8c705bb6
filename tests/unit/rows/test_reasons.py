"""Why slow nodes may be slow: facts that they alone have."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark.rows import schema
from peakmark.rows.node_classes import distinctive_facts

ROWS = {
    ("cpubench", "DP"): 5e9, ("cpubench", "SP"): 1e10, ("rambench", "RWS"): 4e9, ("rambench", "RR"): 1e9,
    ("rambench", "LAT"): 1e-7, ("diskbench", "RS"): 6e8, ("diskbench", "WS"): 3e8, ("netbench", "TCP"): 9e8,
    ("netbench", "LAT-TCP"): 2e-5,
}  # fmt: skip
OF = {"LAT": {"subsystem": "memory", "block": 1 << 28}, "LAT-TCP": {"block": 1}}


def campaign(folder, slow, machines=None, context=None):
    """Eight nodes within one per cent of each other, but for the factors of ``slow``."""
    lot = np.random.default_rng(1)
    records = []
    for node in (f"node{number}" for number in range(1, 9)):
        for (instrument, workload), value in ROWS.items():
            values = value * slow.get(node, {}).get(workload, 1) * np.exp(lot.normal(0, 0.004, 6))
            place = {"node": node, "host": node, "context": (context or {}).get(node)}
            records += make.runs(
                instrument, workload, *values.tolist(), **place, **OF.get(workload, {})
            )
    return make.frames(folder, records, machines=machines)


def test_what_slow_nodes_alone_have_is_named_and_what_is_unlike_on_each_is_not(tmp_path):
    """node5 and node6 have an old microcode; node6 a quota too; each node has a disk of its own in
    its kernel parameters.
    """
    slow = {"node5": {"DP": 0.9, "SP": 0.9}, "node6": {"DP": 0.9, "SP": 0.9}}
    machines = {
        f"node{number}": {
            "cpu": {"model_name": "one", "threads": 2, "microcode": code},
            "os": {"command_line": f"root=UUID={number}"},
        }
        for number, code in enumerate(("0x2",) * 4 + ("0x1",) * 2 + ("0x2",) * 2, 1)
    }
    quota = {
        "cpus": [0], "cores": 1, "cpu_quota": 1.5, "memory_bytes": None, "memory_limited_by": None,
        "node_cores": 2,
    }  # fmt: skip
    frames = campaign(tmp_path / "c", slow, machines, {"node6": {"allowed": quota}})
    assert set(frames.nodes["class"]) == {""}
    named = {}
    for line in schema.lines(frames.fleet):
        named[line.name] = json.loads(line.reasons)
    assert named["node6"] == named["node5"]  # the quota is of one of them
    (first,) = named["node5"]
    assert first.startswith("Microcode 0x1, usual is 0x2 (")
    assert "2 slow" in first and "6 other" in first


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
    found = distinctive_facts(facts, [f"node{number}" for number in slow])
    assert [each.values["what"] for each in found] == ["microcode"] * named
