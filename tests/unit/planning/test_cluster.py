"""Which nodes of a cluster are chosen, and who talks to whom."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.planning.planned import CPU, NETWORK, made, where

from peakmark import slurm
from peakmark.errors import ConfigError
from peakmark.planning import cluster, jobs, plan, plan_text
from peakmark.planning.cluster import Cluster


def test_both_ends_of_a_pair_are_in_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = ("n1", "n2", "n3")
    ring, fixed, chance = (
        made(tmp_path, monkeypatch, where(nodes=nodes), network=[NETWORK], peers=how)
        for how in ("ring", "fixed", "random")
    )
    assert ring.peers == {"n1": "n2", "n2": "n3", "n3": "n1"}
    assert fixed.peers == {"n1": "n2", "n2": "n1", "n3": "n1"}
    assert set(chance.peers) == set(chance.peers.values()) == set(nodes)
    assert all(node != peer for node, peer in chance.peers.items())
    lists = {word for cell in ring.cells for word in jobs.options([cell], ring, {}) if word.startswith("--nodelist")}
    assert lists == {"--nodelist=n1,n2", "--nodelist=n2,n3", "--nodelist=n3,n1"}
    lanes = {cell.node: jobs.name(ring, [cell], {"pairs": 2}) for cell in ring.cells}
    assert lanes == {"n1": "c.pair0", "n2": "c.pair1", "n3": "c.pair0"}


KINDS = [
    {"cpus": 2, "memory": 500, "nodes": ["n1", "n2"]},
    {"cpus": 256, "memory": 64000, "nodes": ["n3"]},
]
POOL = {"workloads": ["RS"], "variants": ["pool"], "blocks": ["1MiB"], "concurrency": [1], "pool": "1GiB"}


def too_small(one: plan.Plan) -> list[str]:
    return [line for line in plan_text.describe(one).splitlines() if line.startswith("too small")]


def test_the_plan_names_nodes_that_are_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = where(nodes=("n1", "n3"), kinds=KINDS)
    (line,) = too_small(made(tmp_path, monkeypatch, there, cpu=[CPU], memory=[POOL]))
    assert "n1, n2: 2 CPUs for up to 128 threads" in line and "of memory for up to" in line and "n3" not in line


def test_the_plan_says_which_nodes_rows_leave_to_others_and_what_no_node_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path, monkeypatch, where(kinds=KINDS), cpu=[CPU], memory=[POOL])
    (line,) = too_small(one)
    assert "n1, n2: with 2 CPUs and 0.5 GB too small for 2 of 3 rows, which need up to 128 CPUs and 1.7 GB" in line
    assert "3 nodes can be used now, 2 to 256 CPUs each" in plan_text.describe(one)
    larger = [{**CPU, "concurrency": [512]}], [{**POOL, "pool": "128GiB"}]
    found = too_small(made(tmp_path, monkeypatch, where(kinds=KINDS[1:]), cpu=larger[0], memory=larger[1]))
    assert "all nodes: at most 256 CPUs for up to 512 threads, which will share them" in found[0]
    assert "all nodes: 1 row may need up to 153.2 GB of memory" in found[1] and "not possible" in found[1]
    assert not too_small(made(tmp_path, monkeypatch, where(kinds=KINDS[1:]), cpu=[CPU], memory=[POOL]))


def nodes(*names: str, state: str = "idle") -> list[slurm.Node]:
    return [slurm.Node(name, "main", 8, 4000, state, None, frozenset()) for name in names]


def chooser(monkeypatch: pytest.MonkeyPatch, found: list[slurm.Node]) -> Callable[..., Cluster]:
    monkeypatch.setattr(slurm, "nodes", lambda _partition: found)

    def choose(asked: Any, earlier: Path | None = None, seed: int = 1) -> Cluster:
        return cluster.find({"nodes": asked, "seed": seed}, None, earlier)

    return choose


def test_nodes_are_any_a_list_all_or_a_seeded_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [*nodes("n1", "n2", "n10"), *nodes("n3", state="down*")]
    choose = chooser(monkeypatch, found)
    assert choose("any").nodes == ("any",)
    assert choose(["n10", "n1"]).nodes == ("n10", "n1")
    everything = choose("all")
    assert set(everything.nodes) == {"n1", "n2", "n10"}
    assert everything.left_out == {"n3": "down*"}
    assert choose({"sample": 2}).nodes == choose({"sample": 2}).nodes
    assert {choose({"sample": 2}, seed=seed).nodes for seed in range(20)} == {
        ("n1", "n2"),
        ("n1", "n10"),
        ("n2", "n10"),
    }


def test_a_choice_that_cannot_be_met_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = chooser(monkeypatch, nodes("n1", "n2"))
    with pytest.raises(ConfigError, match="nodes has 'n9': partition main has n1, n2"):
        choose(["n9"])
    with pytest.raises(ConfigError, match=r"nodes\.sample is 3: partition main has 2 nodes"):
        choose({"sample": 3})
    with pytest.raises(ConfigError, match="no node of partition main can be used now"):
        chooser(monkeypatch, nodes("n1", state="drained"))("all")


def test_a_second_run_keeps_the_nodes_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = chooser(monkeypatch, nodes("n1", "n2"))("all")
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"cluster": first.to_json()}))
    later = [*nodes("n1", "n3"), *nodes("n2", state="down")]
    assert chooser(monkeypatch, later)("all", path).nodes == ("n1", "n2")
    assert set(chooser(monkeypatch, later)({"sample": 2}, path).nodes) == {"n1", "n3"}, "another choice is a new one"


@pytest.mark.parametrize(
    "cluster", [{"nodes": ["n9"]}, 5, ["asked"], {"asked": "all", "partition": "main", "nodes": 5}]
)
def test_a_damaged_plan_keeps_no_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Any) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"cluster": cluster}))
    assert chooser(monkeypatch, nodes("n1", "n2"))("all", path).nodes == ("n1", "n2")
