"""Pairs of nodes: rounds and jobs."""

from itertools import combinations, islice
from pathlib import Path

import pytest
from tests.unit.campaign_data import cell_of
from tests.unit.plan.planned import NETWORK, where

from peakmark.errors import ConfigError
from peakmark.plan import jobs
from peakmark.plan import plan as plan_module
from peakmark.plan.cluster import rounds
from peakmark.plan.plan import describe
from peakmark.storage import planfile

NODES = ("n1", "n2", "n3", "n4")
LEAVES = {"leaf1": ["n1", "n2"], "leaf2": ["n3", "n4"]}


def grid(asked):
    return [{**NETWORK, "pairs": asked}]


@pytest.mark.parametrize("count", [2, 3, 8, 33])
def test_rounds_are_disjoint_and_every_two_nodes_meet_once(count):
    names = [f"n{number}" for number in range(count)]
    every = list(rounds(names, 1))
    for disjoint in every:
        ends = [name for pair in disjoint for name in pair]
        assert len(ends) == len(set(ends)) == count - count % 2
    met = [frozenset(pair) for disjoint in every for pair in disjoint]
    assert sorted(map(sorted, met)) == sorted(map(sorted, combinations(names, 2)))
    assert list(rounds(names, 1)) == every
    assert count < 8 or list(rounds(names, 2)) != every
    five = [pair for disjoint in islice(every, 5) for pair in disjoint]
    clients = [sum(client == name for client, _ in five) for name in names]
    assert count < 8 or (min(clients) >= 1 and max(clients) <= 4)


def test_each_pair_is_a_row_of_client_and_server(planned):
    one = planned(where(nodes=NODES), network=grid({"rounds": 2}), repetitions=2)
    assert len(one.cells) == 8
    for cell in one.cells:
        assert cell.row.endswith(f"/{cell.node}+{cell.peer}")
        assert cell_of(cell.to_json()) == cell
        assert f"--nodelist={cell.node},{cell.peer}" in jobs.options([cell], one, {})
        # Pairs are measured one after the other.
        assert "--dependency=singleton" in jobs.options([cell], one, {})
        assert jobs.name(one, [cell], {}) == f"{one.campaign}.pair"
    jobs_of = planned(where(nodes=NODES), network=grid("all"), fan_out="node")
    planfile.write(Path("plan.json"), jobs_of.to_json())
    for name, cells in jobs_of.jobs.items():
        assert planfile.job(Path("plan.json"), name).cells == (*cells,)
    every = planned(where(nodes=NODES), network=grid("all"))
    assert len(every.cells) == 6 and "pairs         6" in describe(every)


def test_mpi_measures_pairs_too(planned, monkeypatch):
    monkeypatch.setattr(plan_module.software, "why_no_mpi", lambda _variables: "")
    keys = {"workloads": ["PINGPONG"], "concurrency": [1], "blocks": ["8B"], "pairs": "all"}
    one = planned(where(nodes=NODES), mpi=[keys], fan_out="node")
    assert {frozenset((cell.node, cell.peer)) for cell in one.cells} == {
        frozenset(pair) for pair in combinations(NODES, 2)
    }
    (cells,) = {len(cells) for cells in one.jobs.values()}
    assert cells == 1 and {jobs.eligible(cells, one)[1] for cells in one.jobs.values()} == {2}


@pytest.mark.parametrize("nodes", [("any",), ("n1",)])
def test_pairs_need_two_named_nodes(nodes, planned):
    with pytest.raises(ConfigError, match=r"network\[0\]\.pairs"):
        planned(where(nodes=nodes), network=grid("all"))


def together(**keys):
    return [{**NETWORK, "pairs": {"rounds": 2}, "together": True, **keys}]


def test_the_pairs_of_a_round_together_are_one_job(planned):
    there = where(nodes=NODES, switches=LEAVES)
    one = planned(there, network=together(), repetitions=2, fan_out="node")
    rounds_of = {name: cells for name, cells in one.jobs.items() if name.endswith(".together")}
    assert len(rounds_of) == 4  # two rounds, each repeated
    for cells in rounds_of.values():
        pairs = [(cell.node, cell.peer) for cell in cells]
        assert {name for pair in pairs for name in pair} == set(NODES)
        options = jobs.options(cells, one, {})
        assert "--nodes=4" in options
        assert f"--nodelist={','.join(name for pair in pairs for name in pair)}" in options
        # No other pair may run meanwhile.
        assert "--dependency=singleton" in options
    alone = [cell for cell in one.cells if not cell.variant]
    assert [*one.cells[: len(alone)]] == alone  # each pair is first measured by itself
    assert {cell.row for cell in alone} == {
        cell.row.replace("-together", "") for cell in one.cells[len(alone) :]
    }


@pytest.mark.parametrize(("keys", "fan_out", "words"), [
    ({}, "cell", "set fan_out to node"),
    ({"workloads": ["LAT-TCP"]}, "node", "TCP or UDP"),
    ({"variants": ["gso"], "workloads": ["UDP"]}, "node", "without variants"),
])  # fmt: skip
def test_what_cannot_be_together_is_refused(keys, fan_out, words, planned):
    with pytest.raises(ConfigError, match=words):
        planned(where(nodes=NODES), network=together(**keys), fan_out=fan_out)
