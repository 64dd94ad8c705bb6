"""Which nodes of a cluster are chosen, and who talks to whom."""

import json
from dataclasses import replace

import msgspec
import pytest
from tests.unit.plan.planned import CPU, NETWORK, where

from peakmark import slurm
from peakmark.config.types import Planned
from peakmark.errors import ConfigError
from peakmark.plan import cluster, jobs
from peakmark.plan.plan import describe, node_names
from peakmark.storage import records
from peakmark.storage.results import Results


def test_both_ends_of_a_pair_are_in_the_sample(planned):
    names = ("n1", "n2", "n3")
    ring = planned(where(nodes=names), network=[NETWORK])
    assert ring.peers == {"n1": "n2", "n2": "n3", "n3": "n1"}
    words = {word for cell in ring.cells for word in jobs.options([cell], ring, {})}
    lists = {word for word in words if word.startswith("--nodelist")}
    assert lists == {"--nodelist=n1,n2", "--nodelist=n2,n3", "--nodelist=n3,n1"}
    assert {jobs.name(ring, [cell], {}) for cell in ring.cells} == {"c.pair"}


SMALL = {"cpus": 2, "memory": 500, "nodes": ["n1", "n2"]}
LARGE = {"cpus": 256, "memory": 64000, "nodes": ["n3"]}
POOL = {"workloads": ["RS"], "variants": ["pool"], "blocks": ["1MiB"]}
POOL |= {"concurrency": [1], "pool": "1GiB"}


def lines(one, start):
    return [line for line in describe(one).splitlines() if line.startswith(start)]


def test_the_plan_names_the_chosen_class(planned):
    one = planned(where(kinds=[SMALL, LARGE]), cpu=[CPU], memory=[POOL])
    (line,) = lines(one, "nodes ")
    assert "any of n3" in line and "256 CPUs" in line and "not used: n1 and n2" in line


def described(name, **changes):
    values = {"cpus": 8, "memory": 4000, "state": "idle", "layout": "1:8:1"}
    values |= {"features": frozenset(["a"]), "partition": "main", "limit": None, **changes}
    return slurm.Node(name=name, **values)


def nodes(*names, state="idle"):
    return [described(name, state=state) for name in names]


@pytest.fixture
def choose(monkeypatch):
    """The choice among nodes that Slurm would name; ``earlier``: the folder of an earlier run."""

    def choice(found, asked="any", earlier=None, seed=1):
        monkeypatch.setattr(slurm, "nodes", lambda _partition, _reservation: found)
        return cluster.find(msgspec.convert({"nodes": asked, "seed": seed}, Planned), None, earlier)

    return choice


def keep(folder, chosen):
    """Write the plan of an earlier run."""
    (folder / "plan.json").write_text(json.dumps({"cluster": chosen}))


def test_nodes_are_equal_by_what_slurm_knows_of_them(choose):
    kinds = choose([
        described("n1"),
        described("n2", memory=3900),  # firmware keeps some for itself
        described("n3", memory=2000),
        described("n4", features=frozenset(["b"])),
        described("n5", layout="2:4:1"),
        described("n6", gres="gpu:1"),
        described("n10", state="down"),
    ]).kinds  # fmt: skip
    assert [kind.nodes for kind in kinds if len(kind.nodes) > 1] == [["n1", "n2", "n10"]]
    assert sorted(len(kind.nodes) for kind in kinds) == [1, 1, 1, 1, 3]
    first = next(kind for kind in kinds if "n1" in kind.nodes)
    assert (first.memory, first.usable) == (3900, 2)


def test_nodes_of_any_have_the_hardware_that_was_found_on_them(tmp_path, choose):
    """The facts have names with a domain, or another name than Slurm's; n5 was not measured yet."""
    for number in range(1, 5):
        cpu = {"model_name": "EPYC 9654" if number < 3 else "EPYC 7763", "threads": 8}
        memory = {"total": (256 if number < 4 else 384) << 30}
        name = f"n{number}.hpc.example" if number < 4 else "ip-10-0-0-4"
        path = tmp_path / "machine" / f"{name}.json"
        records.write_facts(path, {"cpu": cpu, "memory": memory, "slurm": {"node": f"n{number}"}})
    found = choose(nodes("n1", "n2", "n3", "n4", "n5"), earlier=tmp_path)
    assert [kind.nodes for kind in found.kinds] == [["n1", "n2", "n5"], ["n3"], ["n4"]]
    assert Results(tmp_path, None, ()).facts_for("n3")["cpu"]["model_name"] == "EPYC 7763"
    # The host of another node may have a node's name.
    records.write_facts(tmp_path / "machine" / "n3.json", {"host": "n3", "slurm": {"node": "n9"}})
    assert Results(tmp_path, None, ()).facts_for("n3")["cpu"]["model_name"] == "EPYC 7763"


def test_a_node_that_cannot_be_used_now_is_named(choose):
    found = choose([*nodes("n1", "n2"), *nodes("n4", state="drained")]).choose(
        1, 1, needs_pair=False
    )
    assert node_names(found).endswith("; not usable now: n4 (drained)")


def test_a_second_run_keeps_the_class_of_the_first(tmp_path, choose):
    def chosen(found, earlier, threads=1):
        kept = choose(found, earlier=earlier).choose(threads, 1, needs_pair=False)
        if earlier is None:
            keep(tmp_path, msgspec.to_builtins(kept))
        return kept.chosen.nodes

    found = [*nodes("n1", "n2"), described("m1", cpus=16), described("m2", cpus=16)]
    first = chosen(found, None)
    away = [replace(node, state="down") if node.name in first else node for node in found]
    assert chosen(away, tmp_path) == first
    assert chosen(found, tmp_path, threads=16) == ["m1", "m2"]


def test_nodes_are_any_a_list_all_or_a_seeded_sample(choose):
    found = [*nodes("n1", "n2", "n10"), *nodes("n3", state="down*")]
    assert choose(found, "any").nodes == ("any",)
    assert choose(found, ["n10", "n1"]).nodes == ("n10", "n1")
    everything = choose(found, "all")
    assert set(everything.nodes) == {"n1", "n2", "n10"}
    assert everything.left_out == {"n3": "down*"}
    assert choose(found, {"sample": 2}).nodes == choose(found, {"sample": 2}).nodes
    samples = {choose(found, {"sample": 2}, seed=seed).nodes for seed in range(20)}
    assert samples == {("n1", "n2"), ("n1", "n10"), ("n2", "n10")}


def test_a_choice_that_cannot_be_met_is_one_sentence(choose):
    for state, asked, words in (
        ("idle", ["n9"], "nodes has 'n9': partition main has n1 and n2"),
        ("idle", {"sample": 3}, r"nodes\.sample is 3: partition main has 2 nodes"),
        ("drained", "all", "no node of partition main can be used now"),
    ):
        with pytest.raises(ConfigError, match=words):
            choose(nodes("n1", "n2", state=state), asked)


@pytest.mark.parametrize("asked", ["all", ["n1", "n2"], {"sample": 2}])
def test_without_slurm_several_nodes_are_refused_in_one_sentence(asked):
    requested = msgspec.convert({"nodes": asked}, Planned).nodes
    with pytest.raises(ConfigError, match="without Slurm only this machine is measured"):
        cluster.local_nodes(requested)


def test_a_second_run_keeps_the_nodes_of_the_first(tmp_path, choose):
    keep(tmp_path, msgspec.to_builtins(choose(nodes("n1", "n2"), "all")))
    later = [*nodes("n1", "n3"), *nodes("n2", state="down")]
    assert choose(later, "all", tmp_path).nodes == ("n1", "n2")
    # Another choice is a new one.
    assert set(choose(later, {"sample": 2}, tmp_path).nodes) == {"n1", "n3"}
