"""Groups of nodes that use a shared disk at one moment: cells, jobs, and what is refused."""

import pytest
from tests.unit.campaign_data import cell_of
from tests.unit.plan.planned import DISK, where

from peakmark.catalogue import disk_variant
from peakmark.errors import ConfigError
from peakmark.plan import jobs, plan_text
from peakmark.plan import plan as plan_module

SITE = "{schema: 1, name: here, slurm: {scratch_shared: true}}"
KINDS = [
    {"cpus": 8, "memory": 4000, "nodes": ["n1", "n2", "n3", "n4"]},
    {"cpus": 16, "memory": 4000, "nodes": ["big1", "big2"]},
]
NODES = ("n1", "n2", "n3", "n4", "big1", "big2")


@pytest.fixture
def site(folder):
    """Site file of nodes that share scratch."""
    (folder / "site.yaml").write_text(SITE)
    return "site.yaml"


@pytest.fixture
def shared(planned, site):
    """Plan a disk grid on two classes of nodes that share scratch."""

    def plan(there=None, **grid):
        there = there or where(nodes=NODES, kinds=KINDS)
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
    assert "jobs          6" in plan_text.describe(one)


def test_a_job_of_several_nodes_may_write_and_wait_for_all_of_them(shared):
    seconds = []
    for count in (1, 4):
        one = shared(together=[count])
        cell = one.cells[0]
        seconds.append(one.durations.longest(cell))
    assert seconds[1] > seconds[0]


@pytest.fixture
def ranks(planned, monkeypatch):
    """Plan an MPI grid, as if this machine had a library."""
    monkeypatch.setattr(plan_module.mpi, "why_not", lambda _variables: "")
    grid = {"workloads": ["ALLREDUCE", "BARRIER"], "concurrency": [2], "blocks": ["8B", "1KiB"]}

    def plan(there, **keys):
        return planned(there, mpi=[{**grid, **keys}], fan_out="node")

    return plan


def test_ranks_run_on_the_first_nodes_of_each_class(ranks):
    one = ranks(where(nodes=NODES, kinds=KINDS), nodes=[2, 3, "all"])
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


@pytest.mark.parametrize(("grid", "words"), [
    ({"together": True}, r"numbers of nodes, such as \[1, 2, 4, all\]"),
    ({"one_file": True}, "one_file needs together"),
    ({"together": [2], "one_file": True, "fill": "new"}, "one_file excludes"),
    ({"together": [2], "references": {"iozone": {}}}, "only fio"),
    ({"together": [2], "one_file": True, "references": {"fio": {}}}, "no reference tool"),
    ({"together": [0]}, "together"),
])  # fmt: skip
def test_what_cannot_start_together_is_refused(grid, words, shared):
    with pytest.raises(ConfigError, match=words):
        shared(**grid)


@pytest.mark.parametrize(("there", "config", "words"), [
    (where(), {}, "needs named nodes"),
    (where(nodes=NODES, kinds=KINDS), {"site": None}, "scratch_shared: true"),
    (where(nodes=NODES, kinds=KINDS), {"fan_out": "cell"}, "set fan_out to node"),
])  # fmt: skip
def test_where_nodes_cannot_start_together_is_said(there, config, words, planned, site):
    known = {"fan_out": "node", "site": site, **config}
    with pytest.raises(ConfigError, match=words):
        planned(there, disk=[{**DISK, "together": [2]}], **known)
