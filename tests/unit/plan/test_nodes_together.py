"""Groups of nodes that use a shared disk at one moment: cells, jobs, and what is refused."""

import pytest
from tests.unit.campaign_data import cell_of, measurement, struct
from tests.unit.plan.planned import DISK, where

from peakmark.catalogue import HPL, disk_variant
from peakmark.errors import ConfigError
from peakmark.plan import jobs
from peakmark.plan import plan as plan_module
from peakmark.plan.plan import describe
from peakmark.storage import records

SITE = "{schema: 1, name: here, slurm: {scratch_shared: true}}"
KINDS = [
    {"cpus": 8, "memory": 4000, "nodes": ["n1", "n2", "n3", "n4"]},
    {"cpus": 16, "memory": 4000, "nodes": ["big1", "big2"]},
]
NAMED = where(nodes=("n1", "n2", "n3", "n4", "big1", "big2"), kinds=KINDS)


@pytest.fixture
def site(folder):
    """Site file of nodes that share scratch."""
    (folder / "site.yaml").write_text(SITE)
    return "site.yaml"


@pytest.fixture
def shared(planned, site):
    """Plan a disk grid on two classes of nodes that share scratch."""

    def plan(there=None, **grid):
        there = there or NAMED
        return planned(there, disk=[{**DISK, **grid}], fan_out="node", site=site)

    return plan


def test_each_class_measures_its_first_nodes_in_one_job(shared):
    one = shared(together=[1, 2, 3, "all"])
    groups = {}
    for name, cells in one.jobs.items():
        variants = {cell.variant for cell in cells}
        assert name.endswith(".together") and len(variants) == 1
        options = jobs.options(cells, one, {})
        assert one.durations.total(cells) == max(map(one.durations.expected, cells))
        cells.sort(key=lambda cell: cell.options["part"])
        assert [cell.options["part"] for cell in cells] == [*range(len(cells))]
        names = [cell.node for cell in cells]
        groups[tuple(names)] = variants.pop()
        assert f"--nodes={len(cells)}" in options
        (listed,) = [word for word in options if word.startswith("--nodelist=")]
        assert sorted(listed.removeprefix("--nodelist=").split(",")) == sorted(names)
        assert "--dependency=singleton" in options
    assert groups == {
        ("n1",): "psync-nodes1",
        ("n1", "n2"): "psync-nodes2",
        ("n1", "n2", "n3"): "psync-nodes3",
        ("n1", "n2", "n3", "n4"): "psync-nodes4",
        ("big1",): "psync-nodes1",
        ("big1", "big2"): "psync-nodes2",
    }
    assert all(cell_of(cell.to_json()) == cell for cell in one.cells)
    assert "jobs          6" in describe(one)


def test_a_job_of_several_nodes_may_write_and_wait_for_all_of_them(shared):
    seconds = []
    for count in (1, 4):
        one = shared(together=[count])
        cell = one.cells[0]
        seconds.append(one.durations.longest(cell))
    assert seconds[1] > seconds[0]


@pytest.fixture
def library(monkeypatch):
    """As if this machine had an MPI library."""
    monkeypatch.setattr(plan_module.software, "why_no_mpi", lambda _variables: "")


@pytest.fixture
def ranks(planned, library):
    """Plan an MPI grid."""
    grid = {"workloads": ["ALLREDUCE", "BARRIER"], "concurrency": [2], "blocks": ["8B", "1KiB"]}

    def plan(there, **keys):
        return planned(there, mpi=[{**grid, **keys}], fan_out="node")

    return plan


def test_ranks_run_on_the_first_nodes_of_each_class(ranks):
    one = ranks(NAMED, nodes=[2, 3, "all"])
    assert {cell.point for cell in one.cells if cell.node == "big1"} == {
        "ALLREDUCE-2-nodes_8B_x2", "ALLREDUCE-2-nodes_1KiB_x2", "BARRIER-2-nodes_none_x2",
    }  # fmt: skip
    groups = {}
    for name, cells in one.jobs.items():
        options = jobs.options(cells, one, {})
        groups[name] = [word for word in options if word.startswith(("--nodes=", "--nodelist="))]
    assert groups == {
        "n1.pair2": ["--nodes=2", "--nodelist=n1,n2"],
        "n1.pair3": ["--nodes=3", "--nodelist=n1,n2,n3"],
        "n1.pair4": ["--nodes=4", "--nodelist=n1,n2,n3,n4"],
        "big1.pair2": ["--nodes=2", "--nodelist=big1,big2"],
    }


def test_slurm_chooses_the_nodes_of_ranks_too(ranks):
    one = ranks(where(kinds=KINDS), nodes=[2, "all", 64])
    assert {cell.variant for cell in one.cells} == {"2-nodes", "4-nodes"}
    assert {jobs.eligible(cells, one)[1] for cells in one.jobs.values()} == {2, 4}


def hpl(**keys):
    """Keys of a configuration that solves a system over nodes, which are found to have hpcc."""
    references = {"hpl": {"repetitions": 1, **keys}}
    grid = {"workloads": ["DP"], "concurrency": [1], "references": references}
    return {"cpu": [grid], "fan_out": "node", "tools_on": "nodes"}


def test_hpl_takes_the_share_of_the_memory_of_all_nodes(planned, library):
    one = planned(NAMED, **hpl(nodes=[1, 2, "all", 64], memory=0.5))
    of_nodes = {}
    for cell in one.cells:
        if cell.workload == HPL:
            assert cell.options["node_bytes"] == 4000 << 20 and cell.word == "cores"
            of_nodes[cell.node, cell.variant] = cell.options["nodes"]
            # All of the memory, and all of the time that a slow machine and the slowest network need.
            assert jobs.megabytes([cell], one) == pytest.approx(0.6 * 4194 / 0.9 + 512, rel=0.01)
    assert of_nodes == {
        ("n1", "1-nodes"): "n1", ("n1", "2-nodes"): "n1 n2", ("n1", "4-nodes"): "n1 n2 n3 n4",
        ("big1", "1-nodes"): "big1", ("big1", "2-nodes"): "big1 big2",
    }  # fmt: skip
    # N^2 of 8 bytes are half of the memory, and 2/3 N^3 operations are done by 8 CPUs of 15 GFLOP/s on each node.
    said = describe(one)
    reaching = "if one reaches 120 GFLOP/s (assumed)"
    assert f"HPL, 2 nodes (n1 and n2): N = 22848 in about 33 s, {reaching}" in said
    assert f"HPL, 4 nodes (n1, n2, n3 and n4): N = 32256 in about 47 s, {reaching}" in said
    assert all(cell_of(cell.to_json()) == cell for cell in one.cells)


def test_the_rate_of_one_node_predicts_that_of_several(planned, library):
    one = planned(where(kinds=KINDS), **hpl(nodes=[1, 2], memory=0.5))
    (single,) = [cell for cell in one.cells if cell.variant == "1-nodes"]
    known = struct(single, [measurement(single, "rate", 5e11)])
    records.write(one.results.record_path(single), known)
    said = describe(one)
    assert "HPL, 2 nodes: N = 22848 in about 8 s, if one reaches 500 GFLOP/s (measured)" in said


@pytest.mark.parametrize(("variant", "base", "nodes", "one_file"), [
    ("psync", "psync", 0, False),
    ("psync-nodes16", "psync", 16, False),
    ("io_uring-qd8-nodes2-onefile", "io_uring-qd8", 2, True),
    ("nodes4", "", 4, False),
    ("create-nodes4", "create", 4, False),
])  # fmt: skip
def test_a_variant_names_its_nodes(variant, base, nodes, one_file):
    parts = disk_variant(variant)
    assert parts == (base, nodes, one_file) and parts.text == variant


def disk(**keys):
    return {"disk": [{**DISK, **keys}]}


TWO = disk(together=[2])


@pytest.mark.parametrize(("there", "config", "words"), [
    (where(kinds=KINDS), hpl(nodes=[64]), r"nodes is \[64\]: the largest class of equal nodes has 4 nodes"),
    (where(), hpl(nodes=[2], memory=0), "a share of the memory, above 0 and at most 0.95"),
    (where(), hpl(nodes=[]), r"numbers of nodes, such as \[1, 2, 4, all\]"),
    (where(), hpl(memory=0.5), "has memory or ranks without nodes: add nodes"),
    (NAMED, disk(together=True), r"numbers of nodes, such as \[1, 2, 4, all\]"),
    (NAMED, disk(together=[0]), "together"),
    (NAMED, disk(one_file=True), "one_file needs together"),
    (NAMED, disk(together=[2], one_file=True, fill="new"), "one_file excludes"),
    (NAMED, disk(together=[2], one_file=True, references={"fio": {}}), "no reference tool"),
    (NAMED, disk(together=[2], references={"iozone": {}}), "only fio"),
    (where(), TWO, "needs named nodes"),
    (NAMED, TWO | {"site": None}, "scratch_shared: true"),
    (NAMED, TWO | {"fan_out": "cell"}, "set fan_out to node"),
])  # fmt: skip
def test_what_nodes_cannot_do_together_is_refused(there, config, words, planned, site, library):
    with pytest.raises(ConfigError, match=words):
        planned(there, **{"fan_out": "node", "site": site, **config})


def test_one_machine_is_one_node():
    words = r"nodes is \[2\]: .* has 1 node; without --slurm it is this machine"
    with pytest.raises(ConfigError, match=words):
        plan_module.make({"campaign": "c", **hpl(nodes=[2])})
