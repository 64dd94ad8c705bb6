"""Pairs of four nodes behind two switches, of which one link is slow."""

import csv
import json
from itertools import pairwise

import pytest
from testcluster.config import address
from tests.checkout import TO_TABLES

from conftest import start
from peakmark.rows import build
from workflow import Workflow, spans

SLOW = ("node2", "node3")
ROUNDS, MOMENT = "64KiB", "32KiB"
"""Blocks of the pairs one after the other, and of those that are together with others too."""
SHAPE = """qdisc add dev eth0 root handle 1: htb default 10
class add dev eth0 parent 1: classid 1:10 htb rate 200mbit
class add dev eth0 parent 1: classid 1:20 htb rate 100mbit
filter add dev eth0 parent 1: protocol ip u32 match ip dst {far}/32 flowid 1:20
"""


@pytest.fixture(scope="module")
def four():
    """Four equal nodes whose cards are slow, so that no load of this machine is."""
    for cluster in start(4, leaf=2):
        for name in cluster.layout.names:
            far = SLOW[name == SLOW[0]] if name in SLOW else "login"
            on_node = ["srun", f"--nodelist={name}", "tc", "-batch", "-"]
            cluster.run(on_node, input=SHAPE.format(far=address(far)))
        yield cluster


@pytest.fixture(scope="module")
def measured(four, tmp_path_factory):
    """A campaign of all pairs in three rounds, and of the pairs of one round at one moment."""
    workflow = Workflow.make(four, tmp_path_factory.mktemp("links") / "checkout")
    usual = {"workloads": ["TCP"], "concurrency": [1]}
    rounds = {**usual, "blocks": [ROUNDS], "pairs": {"rounds": 3}, "repetitions": 2, "seconds": 0.3}
    moment = {**usual, "blocks": [MOMENT], "pairs": {"rounds": 1}, "together": True}
    moment |= {"repetitions": 2, "seconds": 0.5}
    workflow.configure(nodes="all", network=[rounds, moment], fan_out="node")
    workflow.snakemake(*TO_TABLES)
    return workflow


def ok_records(workflow, block):
    """The campaign's records of this block size, which are all without an error."""
    records = []
    for name, record in workflow.records().items():
        if f"_{block}_" in name:
            assert record["status"] == "ok", record["reason"]
            records.append(record)
    return records


def test_the_slow_pair_is_named_from_three_rounds(measured):
    plan = json.loads((measured.results / "plan.json").read_text())
    leaves = {"leaf1": ["node1", "node2"], "leaf2": ["node3", "node4"]}
    assert plan["cluster"]["switches"] == leaves
    records = ok_records(measured, ROUNDS)
    assert len(records) == 12
    known = {name: frozenset(nodes) for name, nodes in leaves.items()}
    crossing = []
    for record in records:
        cell, context = record["cell"], record["context"]
        assert (context["host"], context["server_host"]) == (cell["node"], cell["peer"])
        if any((cell["node"] in nodes) != (cell["peer"] in nodes) for nodes in known.values()):
            crossing.append(record)
    assert len(crossing) == 8
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans(crossing)))
    with (measured.results / "rows" / "fleet.csv").open() as stream:
        links = [line["name"] for line in csv.DictReader(stream) if line["kind"] == "pair"]
    # Where others use this machine more may be slow; that this pair is, they do not change.
    assert len([link for link in links if {*link.split("+")} == {*SLOW}]) == 1, links


def test_the_pairs_of_a_round_start_at_one_moment(measured):
    jobs = {}
    for record in ok_records(measured, MOMENT):
        if record["cell"]["variant"] == "together":
            jobs.setdefault(record["context"]["job_id"], []).append(record)
    assert [len(pairs) for pairs in jobs.values()] == [2, 2]
    for one, other in jobs.values():
        nodes = {one["cell"]["node"], one["cell"]["peer"], other["cell"]["node"]}
        assert len(nodes | {other["cell"]["peer"]}) == 4
        assert {one["context"]["host"], other["context"]["host"]} < nodes
        (_, first_end), (second_begin, _) = spans([one, other])
        assert second_begin < first_end
    frames = build.load(measured.results)
    # A pair that is together with others is no reason to call a link slow.
    assert not frames.fleet["point"].str.contains("together").any()
    assert measured.planned() == set()
