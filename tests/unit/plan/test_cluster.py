"""Which nodes of a cluster are chosen, and who talks to whom."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.plan.planned import CPU, NETWORK, where

from peakmark import slurm
from peakmark.errors import ConfigError
from peakmark.plan import cluster, jobs, plan, plan_text
from peakmark.plan.cluster import Cluster
from peakmark.storage import facts

Planned = Callable[..., plan.Plan]


def test_both_ends_of_a_pair_are_in_the_sample(planned: Planned) -> None:
    nodes = ("n1", "n2", "n3")
    ring, fixed, chance = (
        planned(where(nodes=nodes), network=[NETWORK], peers=how)
        for how in ("ring", "fixed", "random")
    )
    assert ring.peers == {"n1": "n2", "n2": "n3", "n3": "n1"}
    assert fixed.peers == {"n1": "n2", "n2": "n1", "n3": "n1"}
    assert set(chance.peers) == set(chance.peers.values()) == set(nodes)
    assert all(node != peer for node, peer in chance.peers.items())
    lists = {
        word
        for cell in ring.cells
        for word in jobs.options([cell], ring, {})
        if word.startswith("--nodelist")
    }
    assert lists == {"--nodelist=n1,n2", "--nodelist=n2,n3", "--nodelist=n3,n1"}
    lanes = {cell.node: jobs.name(ring, [cell], {"pairs": 2}) for cell in ring.cells}
    assert lanes == {"n1": "c.pair0", "n2": "c.pair1", "n3": "c.pair0"}


KINDS = [
    {"cpus": 2, "memory": 500, "nodes": ["n1", "n2"]},
    {"cpus": 256, "memory": 64000, "nodes": ["n3"]},
]
POOL = {"workloads": ["RS"], "variants": ["pool"], "blocks": ["1MiB"], "concurrency": [1]}
POOL["pool"] = "1GiB"  # type: ignore[assignment]


def too_small(one: plan.Plan) -> list[str]:
    return [line for line in plan_text.describe(one).splitlines() if line.startswith("too small")]


def test_the_plan_names_nodes_that_are_too_small(planned: Planned) -> None:
    there = where(nodes=("n1", "n3"), kinds=KINDS)
    (line,) = too_small(planned(there, cpu=[CPU], memory=[POOL]))
    assert "n1, n2: 2 CPUs and 0.5 GB, rows need up to 128 CPUs and 1.7 GB" in line


def test_the_plan_names_the_chosen_class_of_nodes_and_what_that_lacks(planned: Planned) -> None:
    one = planned(where(kinds=KINDS), cpu=[CPU], memory=[POOL])
    (line,) = (line for line in plan_text.describe(one).splitlines() if line.startswith("nodes "))
    assert "any of n3" in line and "256 CPUs" in line and "not used: n1, n2" in line
    assert not too_small(one)
    cpu, memory = {**CPU, "concurrency": [512]}, {**POOL, "pool": "128GiB"}
    (line,) = too_small(planned(where(kinds=KINDS[1:]), cpu=[cpu], memory=[memory]))
    assert "n3: 256 CPUs and" in line and "need up to 512 CPUs and 153.2 GB" in line


def described(name: str, **changes: Any) -> slurm.Node:
    values: dict[str, Any] = {"cpus": 8, "memory": 4000, "state": "idle", "layout": "1:8:1"}
    values |= {"features": frozenset(["a"]), "partition": "main", "limit": None, **changes}
    return slurm.Node(name=name, **values)


def test_nodes_are_equal_by_what_slurm_knows_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        described("n1"),
        described("n2", memory=3900),  # firmware keeps some for itself
        described("n3", memory=2000),
        described("n4", features=frozenset(["b"])),
        described("n5", layout="2:4:1"),
        described("n6", gres="gpu:1"),
        described("n10", state="down"),
    ]
    kinds = chooser(monkeypatch, found)("any").kinds
    assert [kind.nodes for kind in kinds if len(kind.nodes) > 1] == [["n1", "n2", "n10"]]
    assert sorted(len(kind.nodes) for kind in kinds) == [1, 1, 1, 1, 3]
    first = next(kind for kind in kinds if "n1" in kind.nodes)
    assert (first.memory, first.usable) == (3900, 2)


def test_facts_tell_apart_what_slurm_takes_for_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {"n1": "Xeon 6248", "n2": "EPYC 7763", "n3": "Xeon 6248"}
    for host, model in models.items():
        (tmp_path / "machine").mkdir(exist_ok=True)
        known = {"cpu": {"model_name": model, "threads": 8}}
        facts.write(tmp_path / "machine" / f"{host}.json", known)
    choose = chooser(monkeypatch, nodes("n1", "n2", "n3"))
    assert [kind.nodes for kind in choose("any").kinds] == [["n1", "n2", "n3"]]
    assert sorted(kind.nodes for kind in choose("any", tmp_path).kinds) == [["n1", "n3"], ["n2"]]


def test_a_second_run_keeps_the_class_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [*nodes("n1", "n2"), described("m1", cpus=16), described("m2", cpus=16)]
    choose = chooser(monkeypatch, found)
    first = choose("any").choose(1, 1, pair=False)
    assert first.chosen is not None
    (tmp_path / "plan.json").write_text(json.dumps({"cluster": first.to_json()}))
    away = [
        replace(node, state="down") if node.name in first.chosen.nodes else node for node in found
    ]
    again = chooser(monkeypatch, away)("any", tmp_path).choose(1, 1, pair=False)
    assert again.chosen is not None and again.chosen.nodes == first.chosen.nodes
    larger = chooser(monkeypatch, found)("any", tmp_path).choose(16, 1, pair=False)
    assert larger.chosen is not None and larger.chosen.nodes == ["m1", "m2"]


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
    samples = {choose({"sample": 2}, seed=seed).nodes for seed in range(20)}
    assert samples == {("n1", "n2"), ("n1", "n10"), ("n2", "n10")}


def test_a_choice_that_cannot_be_met_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = chooser(monkeypatch, nodes("n1", "n2"))
    with pytest.raises(ConfigError, match="nodes has 'n9': partition main has n1, n2"):
        choose(["n9"])
    with pytest.raises(ConfigError, match=r"nodes\.sample is 3: partition main has 2 nodes"):
        choose({"sample": 3})
    with pytest.raises(ConfigError, match="no node of partition main can be used now"):
        chooser(monkeypatch, nodes("n1", state="drained"))("all")


def test_a_second_run_keeps_the_nodes_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = chooser(monkeypatch, nodes("n1", "n2"))("all")
    path = tmp_path
    (path / "plan.json").write_text(json.dumps({"cluster": first.to_json()}))
    later = [*nodes("n1", "n3"), *nodes("n2", state="down")]
    assert chooser(monkeypatch, later)("all", path).nodes == ("n1", "n2")
    # Another choice is a new one.
    assert set(chooser(monkeypatch, later)({"sample": 2}, path).nodes) == {"n1", "n3"}


@pytest.mark.parametrize(
    "cluster", [{"nodes": ["n9"]}, 5, ["asked"], {"asked": "all", "partition": "main", "nodes": 5}]
)
def test_a_damaged_plan_keeps_no_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Any
) -> None:
    path = tmp_path
    (path / "plan.json").write_text(json.dumps({"cluster": cluster}))
    assert chooser(monkeypatch, nodes("n1", "n2"))("all", path).nodes == ("n1", "n2")
