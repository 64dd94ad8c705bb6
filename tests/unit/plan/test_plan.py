"""Configurations -> cells with their options, reference tools and order; what is possible nowhere is refused."""

import os

import pytest
from tests.programs import executable
from tests.unit.cases import cases
from tests.unit.hostile import one_grid, refused

from peakmark import plan
from peakmark.catalogue import KERNELS, NUMA, PAGES, SHAPES, UNITS, WORKLOADS
from peakmark.config import campaign
from peakmark.errors import ConfigError
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.plan import grids, jobs
from peakmark.plan.cluster import Cluster
from peakmark.plan.plan import describe
from peakmark.resources import ROOT
from peakmark.tools import REGISTRY, references
from peakmark.tools.programs import rambench
from peakmark.workflow import startup

CPU = {"workloads": ["DP"], "concurrency": [1]}
POOL = {**CPU, "workloads": ["RWS"], "variants": ["pool"], "blocks": ["1MiB"]}
LATENCY = {**CPU, "workloads": ["LAT"], "blocks": ["16KiB"]}
PINGED = {**CPU, "workloads": ["LAT-TCP"], "blocks": ["1B"]}
PINGED["references"] = {"ping": {}, "qperf": {}}
DISK = {"workloads": ["RS", "WS"], "concurrency": [1, 2], "blocks": ["1MiB", "100MiB"]}
DISK["references"] = {"iozone": {}, "fio": {}}


@pytest.fixture
def every_tool(tmp_path, monkeypatch):
    """A PATH with every reference tool: planning only asks whether there is an executable."""
    for name in (tool.executables[0] for tool in references().values()):
        executable(tmp_path / name, "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def make(repetitions=1, **changes):
    counts = {"repetitions": repetitions, "reference_repetitions": repetitions}
    return plan.make({"campaign": "t", **counts, **changes})


def points(made, instrument):
    return sorted(cell.point for cell in made.cells if cell.instrument == instrument)


def instruments(made):
    return {cell.instrument for cell in made.cells}


def test_own_cells_are_the_whole_grid_in_a_seeded_order():
    grid = [{"workloads": ["DP", "SP", "HP", "QP"], "concurrency": [1, 2]}]
    plans = [make(3, cpu=grid, seed=seed) for seed in (1, 1, 2)]
    assert instruments(plans[0]) == {"cpubench"}
    first, again, other = ([cell.id for cell in one.cells] for one in plans)
    assert len(first) == 4 * 2 * 3 and first == again != other
    # Repetitions are interleaved, each in an order of its own.
    repetitions = [cell.repetition for cell in plans[0].cells]
    assert repetitions == sorted(repetitions)
    ordered = [cell.point for cell in plans[0].cells]
    assert len({tuple(ordered[start : start + 8]) for start in (0, 8, 16)}) == 3


def test_references_stand_only_beside_rows_they_can_measure(every_tool):
    made = make(disk=[DISK])
    # One execution fills all patterns. Whether a build takes large records shows when it runs.
    sizes = ("100MiB_x1", "100MiB_x2", "1MiB_x1", "1MiB_x2")
    assert points(made, "iozone") == [f"ALL-psync_{size}" for size in sizes]
    assert len(points(made, "fio")) == 8
    ways = ["LAT-TCP", "LAT-UDP"]
    made = make(network=[{**PINGED, "workloads": ways, "concurrency": [1, 2]}])
    assert points(made, "ping") == ["LAT-ICMP_none_x1"]
    assert points(made, "qperf") == ["ALL_1B_x1"]


def test_a_setting_that_a_program_does_not_heed_changes_no_cell_of_it(every_tool):
    """ping sends so many packets, qperf measures so long; neither draws numbers or warms up."""
    changed = {"seed": {"netbench"}, "warmup": {"netbench"}, "seconds": {"netbench", "qperf"}}
    for key, instruments_of in changed.items():
        before, after = (make(network=[PINGED], **more).cells for more in ({}, {key: 9}))
        specs = {cell.spec() for cell in before}
        assert {cell.instrument for cell in after if cell.spec() not in specs} == instruments_of
    counted = make(network=[{**PINGED, "references": {"ping": {"count": 10}}}]).cells
    assert {"count"} <= next(cell.options for cell in counted if cell.instrument == "ping").keys()


def test_a_missing_tool_has_a_reason_and_no_cell(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    made = make(disk=[DISK])
    assert instruments(made) == {"diskbench"}
    assert {one.instrument for one in made.references if one.reason} == {"fio", "iozone"}
    assert "apt-get install fio" in describe(made)
    assert {"iozone", "fio"} <= instruments(make(disk=[DISK], tools_on="nodes"))


def test_a_tool_can_be_left_out_and_the_description_says_so(every_tool):
    made = make(disk=[DISK], tools={"fio": False})
    assert "fio" not in instruments(made) and "tools.fio" in str(made.references[0].reason)
    text = describe(made)
    for word in (f"{len(made.cells)} cells", "iozone", "tools.fio", "GB at most", "about"):
        assert word in text
    listed = describe(made, every_cell=True)
    assert all(cell.id in listed for cell in made.cells)


def test_latency_of_memory_has_no_working_set_and_may_leave_the_area_to_the_node():
    assert points(make(memory=[{**LATENCY, "variants": ["pool"]}]), "rambench") == ["LAT_16KiB_x1"]
    grid = {**LATENCY, "blocks": ["16KiB", "auto"], "concurrency": [1, 2]}
    made = make(memory=[{**grid, "references": {"pmbw": {}}}])
    every = {f"LAT_{block}_x{threads}" for block in ("16KiB", "auto") for threads in (1, 2)}
    assert set(points(made, "rambench")) == every
    assert "16KiB auto" in describe(made)


def test_quick_shows_the_usual_workloads_and_every_instrument(every_tool):
    made = plan.make(campaign.read([ROOT / "config/presets/quick.yaml"]))
    cores = grids.concurrency_aliases([1, "cores"], on_this_machine=True)["cores"]
    for subsystem, workloads in WORKLOADS.items():
        if subsystem in ("gpu", "mpi"):  # test_gpu.py plans a machine with GPUs
            continue
        own = [cell for cell in made.cells if cell.instrument == KERNELS[subsystem]]
        usual = set(workloads) - {*UNITS, *SHAPES} | ({"C2C", "LADDER-LAT"} & set(workloads))
        assert {cell.workload for cell in own} == usual
        assert len({cell.asked for cell in own}) >= (1 if cores == 1 else 2)
        assert {cell.repetition for cell in own} == {0, 1, 2}
    absent = {name for name, tool in REGISTRY.items() if tool.rows[0].subsystem in ("gpu", "mpi")}
    assert instruments(made) | absent == set(REGISTRY)


@pytest.mark.parametrize(("nodes", "cpus"), [(1, 1), (1, 2), (2, 2), (8, 256)])
def test_a_matrix_is_planned_where_it_has_two_ends(nodes, cpus, monkeypatch):
    monkeypatch.setattr(topology, "numa", lambda _host: [{"node": one} for one in range(nodes)])
    monkeypatch.setattr(grids, "threads_of", lambda _word: cpus)
    grid = {"workloads": ["RS", "C2C", "LOADED", *NUMA], "concurrency": ["cores"], "blocks": ["1MiB"]}  # fmt: skip
    planned = {cell.workload for cell in make(memory=[grid]).cells}
    absent = ({"C2C", "LOADED"} if cpus == 1 else set()) | (set(NUMA) if nodes == 1 else set())
    assert planned == set(grid["workloads"]) - absent
    elsewhere = Cluster("p", "any", ("any",), cpus=8, memory=1 << 20, limit=None, count=1)
    counts = {"repetitions": 1, "reference_repetitions": 1}
    everywhere = plan.make({"memory": [grid], **counts}, elsewhere).cells
    assert {cell.workload for cell in everywhere} == set(grid["workloads"])


def test_a_total_is_named_after_what_is_counted():
    memory = {**LATENCY, "workloads": ["RWS", "LAT"], "total": "100GiB"}
    network = {**CPU, "workloads": ["LAT-TCP"], "blocks": ["1B"], "total": 1000000}
    site = str(ROOT / "config/sites/hyperion.yaml")
    made = make(cpu=[{**CPU, "total": 1e12}], memory=[memory], network=[network], site=site)
    options = {cell.workload: cell.options for cell in made.cells}
    assert options["DP"]["operations"] == 10**12
    assert options["RWS"]["total"] == 100 << 30
    assert "accesses" in options["LAT"]
    assert options["LAT-TCP"]["round_trips"] == 10**6
    # The site is read when planning and kept in the plan.
    assert made.to_json()["config"]["site_facts"]["name"]


def test_a_word_is_planned_as_a_word_and_numbers_come_with_the_node(every_tool):
    grid = {**CPU, "concurrency": [1, "socket", "cores"]}
    grid["references"] = {"hpl": {"concurrency": ["cores"]}}
    on_nodes = Cluster("p", "any", ("any",), cpus=8, memory=1 << 20, limit=None, count=1)
    made = plan.make({"cpu": [grid], "repetitions": 1}, on_nodes)
    assert sorted(cell.id for cell in made.cells) == [
        *(f"cpu/cpubench/DP_none_x{value}/any/0" for value in (1, "cores", "socket")),
        "cpu/hpl/DP_none_xcores/any/0",
    ]
    words = [cell.to_json()["concurrency"] for cell in made.cells if cell.word == "cores"]
    assert words == ["cores"] * 2
    assert jobs.threads(made.cells, made) == 8  # What the word means there is not known before.


def test_a_word_for_a_number_that_is_measured_here_is_not_measured_again():
    cores = topology.resolve(topology.read(Host()), os.sched_getaffinity(0), "cores")
    aliases = grids.concurrency_aliases
    assert aliases([cores, "cores"], on_this_machine=True) == {cores: cores, "cores": cores}
    assert aliases([cores, "cores"], on_this_machine=False) == {cores: cores, "cores": "cores"}
    only = aliases([cores + 1, "cores", "cpus", "socket"], on_this_machine=True)
    assert only["cores"] == "cores" and set(only) == {cores + 1, "cores", "cpus", "socket"}


def test_own_kernel_and_pmbw_walk_a_pool_of_one_size_that_both_can(every_tool):
    grid = {**POOL, "workloads": ["RS"]}
    both = {**grid, "references": {"pmbw": {}, "likwid-bench": {}}}
    chosen = [cell.options.get("power_of_two") for cell in make(memory=[both]).cells]
    assert len(chosen) > 2 and set(chosen) == {True}
    block_only = {"variants": ["block", "pool"], "references": {"pmbw": {"variants": ["block"]}}}
    for other in (grid, {**both, "pool": "1GiB"}, {**both, **block_only}):
        assert not any("power_of_two" in cell.options for cell in make(memory=[other]).cells)


def test_pools_and_stores_are_options_where_they_are_set():
    def cell(grid, **more):
        (found,) = make(memory=[{**POOL, **grid}], **more).cells
        return found

    for pool, planned in (({}, "auto"), ({"pool": "auto"}, "auto"), ({"pool": "1GiB"}, 1 << 30)):
        assert cell(pool).options["pool"] == planned
    assert "store" not in cell({}).options
    assert cell({"store": "temporal"}).options["store"] == "temporal"
    assert cell({"store": "temporal"}).id == cell({}).id


def test_streaming_and_ordinary_stores_of_a_pool_are_two_rows():
    grid = {**POOL, "workloads": ["WS", "RWS"], "variants": ["pool", "pool-temporal"]}
    grid["references"] = {"likwid-bench": {}}
    cells = make(memory=[grid]).cells
    own = {cell.variant: rambench.store_of(cell) for cell in cells if cell.instrument == "rambench"}
    assert own == {"pool": "streaming", "pool-temporal": "temporal"}
    assert {cell.point for cell in cells} >= {"WS-pool_1MiB_x1", "WS-pool-temporal_1MiB_x1"}
    for cell in cells:
        assert cell.options["pool"] == "auto"
        assert rambench.store_of(cell) == own[cell.variant]  # of the references too
    with pytest.raises(ConfigError, match="no variant pool-temporal for RS: it has block, pool"):
        make(memory=[{**grid, "workloads": ["RS"]}])


LADDERS = {"workloads": ["LADDER-LAT", "LADDER-RS"], "concurrency": [1], "steps": 1}


def test_a_ladder_is_planned_on_small_and_on_huge_pages():
    cells = plan.make({"repetitions": 1, "memory": [LADDERS]}).cells
    assert sorted((cell.workload, cell.variant) for cell in cells) == [
        (workload, pages) for workload in sorted(LADDERS["workloads"]) for pages in sorted(PAGES)
    ]
    with pytest.raises(ConfigError, match="LADDER"):
        plan.make({"memory": [LADDERS | {"concurrency": [2]}]})
    with pytest.raises(ConfigError, match="block"):
        plan.make({"memory": [LADDERS | {"variants": ["block"]}]})


@cases("configuration")
def test_what_is_possible_nowhere_is_refused_when_it_is_planned(kind, values, words):
    with pytest.raises(ConfigError) as caught:
        plan.make(values)
    refused(str(caught.value), *words)


def test_more_cells_than_a_year_has_seconds_are_refused():
    grid = one_grid("cpu", concurrency=list(range(1, 4097)), repetitions=1000)
    with pytest.raises(ConfigError, match="more than 200000 cells"):
        plan.make(grid)


@cases("configuration")
def test_what_a_reference_cannot_do(values, row, words):
    made = plan.make(values)
    assert words in made.impossible[row]
    assert row in "\n".join(startup.check(made, made.cells))
