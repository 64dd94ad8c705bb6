"""Pairs of four nodes behind two switches, of which one link is slow."""

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from testcluster import Cluster
from testcluster.config import address

from conftest import start
from peakmark.plan import pairs
from workflow import Workflow

SLOW = ("node2", "node3")
SHAPE = """qdisc add dev eth0 root handle 1: htb default 10
class add dev eth0 parent 1: classid 1:10 htb rate 200mbit
class add dev eth0 parent 1: classid 1:20 htb rate 100mbit
filter add dev eth0 parent 1: protocol ip u32 match ip dst {far}/32 flowid 1:20
"""


@pytest.fixture(scope="module")
def four() -> Iterator[Cluster]:
    """Four equal nodes whose cards are slow, so that no load of this machine is."""
    for cluster in start(4, leaf=2):
        for name in cluster.layout.names:
            far = SLOW[name == SLOW[0]] if name in SLOW else "login"
            on_node = ["srun", f"--nodelist={name}", "tc", "-batch", "-"]
            cluster.run(on_node, input=SHAPE.format(far=address(far)))
        yield cluster


def test_the_slow_link_is_named_from_three_rounds(four: Cluster, tmp_path: Path) -> None:
    workflow = Workflow.make(four, tmp_path / "checkout")
    grid = {"workloads": ["TCP"], "blocks": ["64KiB"], "concurrency": [1], "pairs": {"rounds": 3}}
    workflow.configure(nodes="all", network=[grid], repetitions=6, seconds=0.5, fan_out="node")
    workflow.snakemake()
    plan = json.loads((workflow.results / "plan.json").read_text())
    leaves = {"leaf1": ["node1", "node2"], "leaf2": ["node3", "node4"]}
    assert plan["cluster"]["switches"] == leaves
    records = [record for record in workflow.records().values() if record["status"] == "ok"]
    assert len(records) == 36
    known = {name: frozenset(nodes) for name, nodes in leaves.items()}
    crossing = []
    for record in records:
        cell, context = record["cell"], record["context"]
        assert (context["host"], context["server_host"]) == (cell["node"], cell["peer"])
        if pairs.crossed((cell["node"], cell["peer"]), known):
            begin = datetime.fromisoformat(context["started"]).timestamp()
            crossing.append((begin, begin + context["seconds"]))
    assert len(crossing) == 24
    crossing.sort()
    assert all(end <= begin for (_, end), (begin, _) in pairwise(crossing))
    findings = (workflow.results / "tables" / "findings.csv").read_text()
    named = [line for line in findings.splitlines() if ",Links," in line]
    # Where others use this machine a node may be slow too; which link is, they do not change.
    (link,) = (line for line in named if "The link" in line)
    assert set(SLOW) <= set(link.split()), named
    assert (workflow.results / "report.pdf").exists()
