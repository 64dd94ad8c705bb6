"""Where a cell's threads run, what its words mean on a node, and what memory it may have."""

import dataclasses
from pathlib import Path

import pytest
from tests.unit.campaign_data import cell_of

from peakmark.cell import Cell
from peakmark.errors import Unavailable
from peakmark.machine import topology
from peakmark.machine.topology import CpuLocation
from peakmark.run import job, measure, pinning
from peakmark.storage.planfile import Part
from peakmark.storage.record_types import PlanFile
from peakmark.tools import REGISTRY
from peakmark.tools.base import Command

MIB, GIB = 1 << 20, 1 << 30
CELL = Cell("cpu", "cpubench", "DP", "", None, 1, "any", 0)


def sockets(cache=0):
    """Two sockets of four cores, each with one cache of so many bytes, counted one by one."""
    caches = ((0, 1, 2, 3), (4, 5, 6, 7))
    return {
        cpu: CpuLocation(cpu, cpu, cpu // 4, cpu // 4, caches[cpu // 4], cache) for cpu in range(8)
    }


def limits(memory=64 * GIB, limited_by=None, **slurm):
    granted = {"cpus_on_node": 4, "memory_per_node_bytes": None, "memory_per_cpu_bytes": None}
    granted |= slurm
    known = {"cpus_allowed": list(range(8)), "physical_cores_allowed": 8, "cpu_quota": None}
    return {**known, "memory_bytes": memory, "memory_limited_by": limited_by, "slurm": granted}


def cell(concurrency, block=MIB, **options):
    point = {"workload": "RWS", "variant": "pool", "block": block, "concurrency": concurrency}
    place = {"subsystem": "memory", "instrument": "rambench", "node": "any", "repetition": 0}
    return cell_of({**point, **place, "options": {"pool": "auto", **options}})


def test_a_cell_takes_the_cpus_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "_cpu_locations", sockets)
    monkeypatch.setattr(measure, "cached", lambda *_: {"limits": limits()})
    point = ("RS", "pool", 1 << 20, 2, "any", 0)
    spread = Cell("memory", "rambench", *point, {"scratch": str(tmp_path)})
    request = measure.Request(spread, tmp_path / "record.json", tmp_path, tmp_path)
    with measure.workspace(request, REGISTRY["rambench"]) as space:
        assert space.cpus == (0, 1, 2, 3, 4, 5, 6, 7)


@pytest.mark.parametrize(("variant", "chosen", "lacks"), [
    ("same-socket", "0,1", [0, 4]), ("other-socket", "0,4", [0, 1, 2, 3]),
])  # fmt: skip
def test_two_ranks_on_one_node_have_cores_of_one_or_of_two_sockets(variant, chosen, lacks):
    pair = Cell("mpi", "mpibench", "PINGPONG", variant, 8, 2, "any", 0)
    locations = sockets()
    resolved = pinning.resolve_cell(pair, locations, [*locations], 64 << 30)
    assert resolved.options["cpus"] == chosen
    with pytest.raises(Unavailable, match=f"no pair of cores for the variant {variant}"):
        pinning.resolve_cell(pair, locations, lacks, 64 << 30)


def test_a_cell_is_resolved_on_the_node_and_keeps_its_name():
    planned = cell("socket")
    assert planned.id == "memory/rambench/RWS-pool_1MiB_xsocket/any/0"
    locations = sockets(24 << 20)
    cpus = topology.order(locations, locations)
    resolved = pinning.resolve_cell(planned, locations, cpus, 64 << 30)
    assert (resolved.concurrency, resolved.id) == (4, planned.id)
    assert resolved.to_json()["concurrency"] == "socket"
    assert resolved.options["pool"] == 256 << 20  # four times 24 MiB is less than the least
    placed = pinning.placed(resolved, locations, cpus)
    assert (placed.word, placed.threads, placed.sockets) == ("socket", 4, 1)
    assert placed.cpus == (0, 1, 2, 3)
    assert cell_of(planned.to_json()) == planned
    # A record tells the cores of the job and those of the node.
    granted = {**limits(), "cpus_allowed": [5], "physical_cores_allowed": 1}
    allowed = pinning.allowed(granted, sockets())
    assert (allowed.cpus, allowed.cores, allowed.node_cores) == ((5,), 1, 8)


@pytest.mark.parametrize(("threads", "caches"), [(1, 4), (2, 4), ("socket", 4), ("cores", 8)])
def test_a_pool_has_four_times_the_caches_that_the_threads_reach(threads, caches):
    locations = sockets(300 << 20)
    cpus = topology.order(locations, locations)
    resolved = pinning.resolve_cell(cell(threads), locations, cpus, 64 << 30)
    assert round(int(str(resolved.options["pool"])) / (300 << 20)) == caches


def test_latency_under_load_has_room_for_its_copies_and_its_area():
    locations = sockets(300 << 20)
    planned = dataclasses.replace(cell("cores"), workload="LOADED", variant="", block=None)
    REGISTRY["rambench"].check(planned)  # the word means one thread only where it is resolved
    cpus = topology.order(locations, locations)
    for memory, pool in ((64 * GIB, 2400 * MIB), (4 * GIB, GIB)):
        resolved = pinning.resolve_cell(planned, locations, cpus, memory)
        assert pool <= int(str(resolved.options["pool"])) < 1.05 * pool
        assert REGISTRY["rambench"].estimate(resolved).memory_bytes < memory


def test_an_automatic_pool_or_area_lies_beyond_the_caches():
    for threads, block in ((1, 1 << 10), (2, 10 << 20)):
        planned = cell(threads, block)
        assert 1200 * MIB <= pinning.pool(planned, 300 * MIB, 64 * GIB) <= 1300 * MIB
        assert pinning.pool(planned, 8 * MIB, 64 * GIB) == 256 * MIB
        assert pinning.pool(planned, GIB, 2 * GIB) == GIB  # no more than half of the job's memory
    assert pinning.area(1, 300 * MIB, 64 * GIB) == pinning.area(8, 300 * MIB, 64 * GIB) == 2 * GIB
    assert pinning.area(4, 300 * MIB, 8 * GIB) == GIB
    assert pinning.area(1, 8 * MIB, 64 * GIB) == 256 * MIB


def test_whole_blocks_of_the_three_arrays_of_a_triad_lie_beyond_the_caches():
    planned = dataclasses.replace(cell(2, 10 << 20), workload="TRIAD")
    pool = pinning.pool(planned, 300 * MIB, 64 * GIB)
    blocks = pool // (3 * 2 * (10 << 20))
    assert blocks * 3 * 2 * (10 << 20) >= 1200 * MIB


@pytest.mark.parametrize(("cached", "memory", "size"), [
    (300 * MIB, 64 * GIB, 2 * GIB), (8 * MIB, 64 * GIB, 256 * MIB), (GIB, 3 * GIB, GIB),
])  # fmt: skip
def test_a_pool_beside_pmbw_is_a_size_that_it_measures(cached, memory, size):
    planned = cell(2, 10 << 20, power_of_two=True)
    assert pinning.pool(planned, cached, memory) == size
    options = {**planned.options, "pool": size, "store": "temporal"}
    as_pmbw = {"instrument": "pmbw", "workload": "RS", "options": options}
    REGISTRY["pmbw"].check(dataclasses.replace(planned, **as_pmbw))


@pytest.mark.parametrize(
    ("ranks", "cpus"), [("socket", "0,1,2,3:4,5,6,7"), ("core", "0:1:2:3:4:5:6:7")]
)
def test_each_process_of_hpl_has_a_socket_or_a_core(ranks, cpus):
    planned = Cell("mpi", "hpl", "HPL", "2-nodes", None, 1, "any", 0, {"ranks": ranks}, "cores")
    locations = sockets()
    resolved = pinning.resolve_cell(planned, locations, [*locations], GIB)
    assert (resolved.concurrency, resolved.options["cpus"]) == (8, cpus)


@pytest.mark.parametrize("instrument", ["rambench", "pmbw"])
def test_a_cell_with_an_automatic_area_keeps_its_name(instrument):
    latency = {"workload": "LAT", "variant": "", "block": None, "instrument": instrument}
    planned = cell_of({**cell(2).to_json(), **latency})
    locations = sockets(24 << 20)
    resolved = pinning.resolve_cell(planned, locations, [*locations], 64 << 30)
    assert planned.id == resolved.id == f"memory/{instrument}/LAT_auto_x2/any/0"
    assert (planned.area, resolved.area) == (None, 256 << 20)
    REGISTRY[instrument].check(planned)
    assert REGISTRY[instrument].estimate(resolved).memory_bytes >= 2 * (256 << 20)


def test_network_tools_are_pinned_as_netbench_pins_itself_and_disk_tools_are_free():
    def of(subsystem, instrument):
        return Cell(subsystem, instrument, "TCP", "", 1024, 2, "any", 0)

    command, cpus = Command(argv=("x",), timeout_s=1), [0, 2, 4, 6]
    assert pinning.pinned(of("network", "iperf3"), command, cpus).cpus == (0, 2)
    assert pinning.pinned_server(of("network", "iperf3"), command, cpus).cpus == (6, 4)
    assert pinning.pinned(of("disk", "fio"), command, cpus).cpus == ()
    assert pinning.pinned(of("network", "netbench"), command, cpus).cpus == ()  # --cpus


def test_what_slurm_grants_is_the_limit_unless_a_cgroup_grants_less():
    for slurm, memory in (
        ({"memory_per_node_bytes": 8 * GIB}, 8 * GIB),  # --mem=8G
        ({"memory_per_cpu_bytes": 2 * GIB}, 8 * GIB),  # --mem-per-cpu=2G, four CPUs
        ({}, 60 * GIB),  # --mem=0: all that Slurm has of the node
    ):
        granted = pinning.granted(limits(**slurm), 60 * GIB)
        assert (granted["memory_bytes"], granted["memory_limited_by"]) == (memory, "slurm")
    less = limits(4 * GIB, "cgroup", memory_per_node_bytes=8 * GIB)
    outside = {**limits(), "slurm": None}
    for unchanged, node in ((less, None), (limits(), None), (limits(None), None), (outside, GIB)):
        assert pinning.granted(unchanged, node) == unchanged


def test_the_plan_tells_what_slurm_has_of_the_node(monkeypatch):
    one = {"cpus": 1, "memory": 1200, "nodes": ["n1"]}
    cluster = {"kinds": [one, {"cpus": 2, "memory": 6000, "nodes": ["n2", "n3"]}]}
    for node, plan, size in (
        ("n3", cluster, 6000 << 20),
        ("n9", cluster, None),
        ("n3", None, None),
    ):
        monkeypatch.setenv("SLURMD_NODENAME", node)
        stored = PlanFile(campaign="a", cells=[], cluster=plan)
        part = Part(Path("results/a"), stored, (CELL,))
        assert job.request(part, CELL, Path("build")).node_bytes == size
