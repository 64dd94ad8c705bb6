"""Limits: known machines give known numbers, unknown ones give a reason and nothing else."""

import copy
import csv
import math

import msgspec
import pytest
from tests.unit.campaign_data import DATA, VM, ZEN3
from tests.unit.cases import cases

from peakmark import limits
from peakmark.catalogue import metrics
from peakmark.config.types import SiteValues
from peakmark.formatting import parse_size

KIB, MIB = 1 << 10, 1 << 20
ONE = {"cores": 1, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
"""Where a thread may be placed on the first of two sockets."""
MILAN = {"virtualised": None, "model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 2}
CHANNELS = {"memory": {"channels": 8, "speed_mts": 3200}}
NEW_CHIP = {"virtualised": None, "microarchitecture": None, "model_name": "New Chip 9000"}


def machine(**changes):
    """The facts of a real VM with some of them changed, by part."""
    facts = copy.deepcopy(VM)
    for part, values in changes.items():
        facts[part] |= values
    return facts


def limit_of(*row, site=None, **more):
    """The limit of a row on a machine with these values in its site file."""
    stated = msgspec.convert(site or {}, SiteValues)
    return limits.for_row(limits.Question(*row, site=stated, **more))


def cpu(workload, threads, facts, **more):
    return limit_of("cpu", workload, "", None, threads, "rate", facts, **more)


def memory(row, block, threads, facts, **more):
    """The limit of a row such as ``RS-pool``."""
    workload, _, variant = row.partition("-")
    metric = "latency" if workload == "LAT" else "throughput"
    return limit_of("memory", workload, variant, block, threads, metric, facts, **more)


def dram(facts, **more):
    return memory("RS-pool", MIB, 2, facts, **more)


def disk(metric, facts, **more):
    return limit_of("disk", "RR", "psync", 4096, 1, metric, facts, **more)


def network(workload, size, facts, n=1, **more):
    metric = "latency" if workload.startswith("LAT") else "throughput"
    return limit_of("network", workload, "", size, n, metric, facts, **more)


def reason(limit):
    assert limit.value is None
    return limit.reason


def test_efficiency_is_one_at_the_limit_and_none_without_facts():
    rate = cpu("DP", 1, VM, clock_hz=3e9)
    assert rate.share(rate.value) == 1
    assert rate.share(rate.value / 4) == 0.25
    time = memory("LAT", KIB, 1, VM, clock_hz=4e9)
    assert time.share(4e-9) == pytest.approx(0.25)
    for limit in (cpu("DP", 1, {}), memory("RWS-block", KIB, 1, {}), disk("iops", {})):
        assert limit.share(1e9) is None
        assert reason(limit)


PER_CYCLE = [("DP", 16), ("FP32", 32), ("SP", 32), ("HP", 64), ("QP", 128), ("QPDOT", 64)]


@pytest.mark.parametrize(("workload", "per_cycle"), PER_CYCLE)
def test_zen_3_at_the_clock_measured_beside_the_row(workload, per_cycle):
    limit = cpu(workload, 2, VM, clock_hz=3.2e9)
    assert limit.value == pytest.approx(2 * 3.2e9 * per_cycle)
    assert limit.origin == "measured" and "Zen 3" in limit.detail
    assert "2 cores x 3.2 GHz (observed clock)" in limit.formula
    # Threads beyond the cores do not raise it.
    many = cpu(workload, 4, VM, clock_hz=3.2e9)
    assert many.value == limit.value
    assert many.remarks == ("4 threads shared 2 cores: the limit is that of 2 cores",)


@cases("limits")
def test_cores_of_a_row(allowed, virtual, placed, cores, source):
    facts = machine(limits={"physical_cores_allowed": allowed}, cpu={"virtualised": virtual})
    limit = cpu("DP", 2, facts, clock_hz=3e9, placed=placed)
    assert limit.value == pytest.approx(cores * 3e9 * 16)
    assert source in limit.cores


THREE = {"nominal": 2.4e9, "maximum": 3.6e9, "observed": 3.1e9}


@cases("limits")
def test_the_clock_of_a_limit(observed, more, words):
    facts = machine(cpu={"clock_hz": {**THREE, "observed": observed}})
    limit = cpu("DP", 1, facts, **more)
    assert f"1 core x {words} x" in limit.formula
    assert limit.clock in words
    assert reason(cpu("DP", 1, machine(cpu={"clock_hz": dict.fromkeys(THREE)})))


def test_an_unknown_cpu_has_no_limit():
    facts = machine(cpu=NEW_CHIP)
    limit = cpu("DP", 2, facts, clock_hz=3e9)
    assert "New Chip 9000" in reason(limit) and "cpu.operations_per_cycle.DP" in reason(limit)
    site = {"name": "x", "cpu": {"operations_per_cycle": {"DP": 8}}}
    assert cpu("DP", 2, facts, clock_hz=3e9, site=site).value == pytest.approx(48e9)


@cases("limits")
def test_instruction_sets(best, isa, workload, value):
    facts = machine(cpu={"microarchitecture": "Ice Lake-SP", "isa_best": best, "isa": isa})
    assert cpu(workload, 1, facts, clock_hz=1e9).value == value


def test_nodes_that_solve_one_system_have_the_sum_of_their_limits():
    one = limit_of("mpi", "HPL", "1-nodes", None, 2, "rate", VM, clock_hz=3e9)
    four = limit_of("mpi", "HPL", "4-nodes", None, 2, "rate", VM, clock_hz=3e9)
    assert one.value == cpu("DP", 2, VM, clock_hz=3e9).value and four.value == 4 * one.value
    assert four.formula.startswith("4 nodes x 2 cores x 3 GHz")
    assert "machine facts" in reason(
        limit_of("mpi", "HPL", "2-nodes", None, 2, "rate", {}, clock_hz=1e9)
    )


@pytest.mark.parametrize("workload", ["DP", "FP32", "SP", "HP", "QP", "DPMIX"])
def test_a_source_is_about_the_machine_and_the_instructions_that_ran(workload):
    isa = {"isa": ["avx2", "fma", "avx512f"], "isa_best": "avx512", "microarchitecture": "Zen 4"}
    limit = cpu(workload, 1, machine(cpu=isa), clock_hz=3e9, isa="avx512")
    assert limit.detail.startswith("Zen 4, AVX512")
    assert "Zen 3" not in str(limit.sources) and "Zen 5" not in str(limit.sources)


@cases("limits")
def test_all_pipes_together_do_more_than_multiply_adds_alone(design, isa, fused, mixed):
    best = "avx512" if "avx512f" in isa else isa[0]
    facts = machine(cpu={"microarchitecture": design, "isa": isa, "isa_best": best})
    for times, names in ((1, ("DP", "DPMIX")), (2, ("FP32", "FP32MIX"))):
        alone, together = (cpu(name, 1, facts, clock_hz=1e9) for name in names)
        assert (alone.value, together.value) == (times * fused * 1e9, times * mixed * 1e9)
        assert "limit of fused multiply-adds (HPL's Rpeak)" in alone.detail
        assert "HPL" not in together.detail


# -- memory


@cases("limits")
def test_channels_read_stated_or_tabled(changes, site, value, origin):
    limit = dram(machine(**changes), site={"memory": site})
    assert (limit.value, limit.origin) == (pytest.approx(value), origin)
    assert ("max for the CPU" in limit.formula) == (origin == "datasheet")


def test_unknown_memory_says_why_and_a_stated_one_where_it_is_from():
    assert "virtual machine" in reason(dram(machine(cpu={"model_name": MILAN["model_name"]})))
    of_host = {"channels": 8, "speed_mts": 3200}
    assert "virtual machine" in reason(dram(machine(memory=of_host)))
    assert "site file" in reason(dram(machine(cpu=NEW_CHIP)))
    site = {"name": "x", "memory": {"channels": 4, "speed_mts": 3200, "source": "label"}}
    assert dram(VM, site=site).source == "site file x (label)"


@cases("limits")
def test_a_block_meets_its_cache(row, block, per_cycle, level):
    limit = memory(row, parse_size(block), 2, VM, clock_hz=3e9)
    assert limit.value == (per_cycle and pytest.approx(2 * 3e9 * per_cycle))
    assert level in limit.formula


def test_threads_share_the_last_cache():
    alone, both = (memory("RS-block", 16 * MIB, n, VM, clock_hz=3e9) for n in (1, 2))
    assert "fits L3" in alone.formula
    assert "partly in a cache" in reason(both)
    for guest in ("KVM", None):
        limit = memory("RS-block", 20 * MIB, 1, machine(cpu={"virtualised": guest}), clock_hz=3e9)
        assert ("fits L3" in limit.formula) == (guest is None)
    facts = machine(cpu={"virtualised": None}, memory={"channels": 2, "speed_mts": 3200})
    far = memory("RS-block", 256 * MIB, 2, facts, clock_hz=3e9)
    assert far.value == pytest.approx(51.2e9)
    # A last-level cache without threads holds nothing; 16 threads have 32 MiB.
    caches = [
        {"level": 1, "type": "data", "size": 32 << 10, "shared_by": 2, "count": 32},
        {"level": 3, "type": "unified", "size": 32 << 20, "shared_by": 32, "count": 2},
    ]
    facts = machine(cpu={"caches": caches})
    for reached, fits in ((32 * MIB, False), (64 * MIB, True)):
        placed = {**ONE, "cores": 16, "last_level_bytes": reached}
        limit = memory("RS-block", 2 * MIB, 16, facts, clock_hz=3e9, placed=placed)
        assert ("fits L3" in limit.formula) == fits


@cases("limits")
def test_a_cpu_whose_memory_speed_no_source_states(name, channels):
    facts = machine(cpu={**MILAN, "model_name": name})
    words = reason(dram(facts))
    assert {"memory.channels", "memory.speed_mts"} <= set(words.split())
    assert (f"{channels} channels a socket" in words) is (channels is not None)
    # What to do then helps, and so do modules that can be read; one channel without a module is
    # still found.
    stated = dram(facts, site={"memory": {"channels": 24, "speed_mts": 6000}})
    assert stated.value == pytest.approx(24 * 6000 * 8e6)
    read = dram({**facts, "memory": {"channels": 7, "speed_mts": 2400}})
    assert read.value == pytest.approx(7 * 2400 * 8e6)
    assert bool(read.finding) is (channels is not None)


def test_latency_of_caches_and_of_memory():
    site = {"memory": {"latency": 80e-9}}
    first, second, dram = (
        memory("LAT", area * KIB, 1, VM, clock_hz=4e9) for area in (16, 256, 256 << 10)
    )
    assert first.value == pytest.approx(1e-9)
    assert second.value == pytest.approx(12 / 4e9)
    assert reason(dram)
    assert memory("LAT", 256 * MIB, 1, VM, site=site).value == 80e-9
    # Without a clock, a cache has no limit, and memory's is not taken for it.
    still = machine(cpu={"clock_hz": {}})
    assert "clock" in reason(memory("LAT", 16 * KIB, 1, still, site=site))
    # The VM's L2 has 512 KiB, its L3 32 MiB.
    for area in (MIB // 2, 48 * MIB):
        assert "a cache may" in reason(memory("LAT", area, 1, VM, site=site))


SHARES = [
    ("WS", 1 / 2), ("WR", 1 / 2), ("RWS", 2 / 3), ("RWR", 2 / 3), ("TRIAD", 3 / 4), ("RS", 1),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "share"), SHARES)
def test_an_ordinary_store_reads_its_line_first(workload, share):
    stores = ("streaming", None, "temporal")  # None: a record that does not tell
    best, untold, ordinary = (
        memory(f"{workload}-pool", MIB, 2, VM, site=CHANNELS, store=store) for store in stores
    )
    assert best.value == untold.value == pytest.approx(204.8e9)
    assert ordinary.value == pytest.approx(204.8e9 * share)
    assert ("reads the line" in ordinary.formula) == (share < 1)
    if share < 1:  # Some designs write without that read, and keep the whole limit.
        facts = machine(cpu={"microarchitecture": "Emerald Rapids"})
        kept = memory(f"{workload}-pool", MIB, 2, facts, site=CHANNELS, store="temporal")
        (remark,) = kept.remarks
        assert kept.value == best.value and remark.startswith("ordinary stores: ")


MODELS = list(csv.DictReader((DATA / "memory-models.csv").open(encoding="utf-8")))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model["model_name"]))
def test_memory_is_that_of_the_model_not_of_its_familys_best(model):
    limit = dram(machine(cpu={**MILAN, "model_name": model["model_name"]}))
    channels, megatransfers = int(model["channels"]), int(model["speed_mts"])
    assert limit.value == pytest.approx(2 * channels * megatransfers * 1e6 * 8)


def test_memorys_limit_is_that_of_the_channels_the_threads_reach():
    nodes = [{"node": number, "cpus": f"{number}", "memory": 1 << 36} for number in (0, 1)]
    # A node of memory alone, as one behind CXL is, has no channel of a socket; one without memory
    # has none either.
    more = [*nodes, {**nodes[0], "node": 2, "cpus": ""}, {**nodes[0], "node": 3, "memory": 0}]
    for numa in (nodes, more):
        facts = machine(cpu={**MILAN, "numa": numa}, memory={"channels": 16, "speed_mts": 3200})
        whole, half = dram(facts), dram(facts, placed=ONE)
        both = dram(facts, placed={**ONE, "sockets": 2, "numa_nodes": [0, 1]})
        assert whole.value == both.value == pytest.approx(16 * 3200e6 * 8)
        assert half.value == pytest.approx(8 * 3200e6 * 8)
        assert "1 of 2 NUMA nodes" in half.formula and whole.finding == ""
    # Linux made these nodes up, so that the threads of one reach the channels of both.
    fake = {**facts, "os": {"command_line": "quiet numa=fake=2"}}
    assert dram(fake, placed=ONE).value is None and "numa=fake" in dram(fake, placed=ONE).reason
    row = ("memory", "NUMA-RS", "local", None, 64, "numa_throughput")
    assert limit_of(*row, fake).value is None


def test_a_pair_of_nodes_has_the_channels_of_one():
    nodes = [{"node": number, "cpus": f"{number}", "memory": 1 << 36} for number in range(4)]
    facts = machine(cpu={**MILAN, "numa": nodes}, memory={"channels": 16, "speed_mts": 3200})
    guest = {**facts["cpu"], "virtualised": "kvm"}
    unknown, latency = {**facts, "cpu": guest, "memory": {}}, {"memory": {"latency": 9e-8}}
    beside = {**facts, "cpu": {**facts["cpu"], "numa": [*nodes, {**nodes[0], "cpus": ""}]}}
    for place in ("local", "same-socket", "other-socket"):
        row = ("memory", "NUMA-RS", place, None, 64, "numa_throughput")
        for reached in (None, ONE):
            channels = limits.for_row(limits.Question(*row, facts, placed=reached)).value
            assert channels == pytest.approx(4 * 3200e6 * 8)
        assert limits.for_row(limits.Question(*row, unknown)).bound == pytest.approx(4 * 3200e6 * 8)
        assert limits.for_row(limits.Question(*row, beside)).value is None
        row = ("memory", "NUMA-LAT", place, None, 64, "numa_latency")
        assert limit_of(*row, facts, site=latency).value == (9e-8 if place == "local" else None)


@pytest.mark.parametrize(("sockets", "channels"), [(1, 8), (2, 16)])
def test_a_missing_module_is_a_finding(sockets, channels):
    for populated in (channels - 1, channels):
        memory = {"channels": populated, "speed_mts": 3200}
        limit = dram(machine(cpu={**MILAN, "sockets": sockets}, memory=memory))
        assert limit.value == pytest.approx(populated * 3200e6 * 8)
        found = (
            f"{populated} of {channels} memory channels populated" if populated < channels else ""
        )
        assert limit.finding.startswith(found) and bool(limit.finding) == bool(found)


# -- disk and network


NVME = {"interface": "nvme", "interface_limit": 7.877e9, "interface_limit_formula": "PCIe"}


def test_disk_by_datasheet_else_unknown():
    nvme = machine(storage=NVME)
    assert reason(disk("iops", nvme))
    stated = {"throughput": 3e9, "iops": 5e5, "latency": 8e-5}
    site = {"disk": {metric: {"RR": value} for metric, value in stated.items()}}
    assert {metric: disk(metric, nvme, site=site).value for metric in stated} == stated
    assert "virtual disk" in reason(disk("throughput", VM))
    ram = machine(storage={"interface": "ram", "filesystem": "tmpfs"})
    assert all("in memory" in reason(disk(metric, ram)) for metric in ("throughput", "iops"))


def test_a_hard_disk_seeks_and_waits_half_a_turn_for_each_random_operation():
    site = {"disk": {"seek_ms": {"RR": 8.5}, "rpm": 7200, "source": "the datasheet"}}
    each = disk("latency", machine(), site=site)
    assert each.value == pytest.approx(0.0085 + 60 / 7200 / 2)
    assert disk("iops", machine(), site=site).value == pytest.approx(1 / each.value)
    assert disk("throughput", machine(), site=site).value is None
    del site["disk"]["rpm"]
    assert disk("iops", machine(), site=site).value is None


WIRE = {"speed_bps": 10e9, "mtu": 1500}


@pytest.mark.parametrize(("workload", "size", "mtu", "share"), [
    ("TCP", 1024, 1500, 1448 / 1538), ("TCP", 32768, 1500, 1448 / 1538), ("TCP", 1024, 9000, 8948 / 9038),
    ("UDP", 1, 1500, 1 / 84), ("UDP", 1024, 1500, 1024 / 1090), ("UDP", 1472, 1500, 1472 / 1538),
    # 22 fragments of 1480 B and one of the rest, each with its own headers.
    ("UDP", 32768, 1500, 32768 / (32768 + 8 + 23 * (20 + 38))),
])  # fmt: skip
def test_network_less_protocol_overhead(workload, size, mtu, share):
    limit = network(workload, size, machine(network={**WIRE, "mtu": mtu}))
    assert limit.value == pytest.approx(10e9 * share)
    assert ("23 fragments" in limit.formula) == (size == 32768 and workload == "UDP")


def test_network_without_a_rate_or_a_wire_and_over_a_bond():
    wire = machine(network=WIRE)
    assert "network.speed_bps" in reason(network("TCP", 1024, VM))
    assert "loopback" in reason(network("TCP", 1024, wire, loopback=True))
    assert "loopback" in reason(network("TCP", 1024, machine(network={"loopback": True})))
    site = {"network": {"latency": {"TCP": 1e-5}}}
    assert network("LAT-TCP", 1, wire, site=site).value == 1e-5
    assert reason(network("LAT-TCP", 1, wire, site=site, loopback=True))
    assert reason(network("LAT-ICMP", 1, wire, site=site))
    # One stream over a bond has one member.
    bond = {"interface": "bond0", "kind": "bond", "speed_bps": 50e9, "stream_bps": 25e9}
    facts = machine(network={**bond, "mtu": 9000})
    one, two, four = (network("TCP", MIB, facts, n).value for n in (1, 2, 4))
    assert one is not None and two == pytest.approx(2 * one) and four == two


# -- bounds


def design(name, **changes):
    """The facts of a guest with cores of another design."""
    return machine(cpu={"microarchitecture": name, "model_name": "guest"}, **changes)


@cases("limits")
def test_a_guests_memory_has_a_bound(name, row, threads, factors):
    bound = factors and math.prod(factors)
    cores = {"limits": {"physical_cores_allowed": 64}}
    limit = memory(row, MIB, threads, design(name, **cores), clock_hz=3e9)
    assert (limit.kind, limit.bound) == ("at_most" if bound else "none", pytest.approx(bound))
    assert reason(limit)  # what would give a limit is still said
    assert limit.share(1e9) == (pytest.approx(1e9 / bound) if bound else None)


def test_a_bound_of_a_latency_is_the_last_cache_on_the_way():
    limit = memory("LAT", 256 * MIB, 1, VM, clock_hz=4e9)
    assert 4e9 * (limit.bound or 0) == pytest.approx(12)
    assert limit.share(100e-9) == pytest.approx((limit.bound or 0) / 100e-9)
    assert memory("LAT", 256 * MIB, 1, design("New Chip"), clock_hz=4e9).kind == "none"


def test_a_disk_is_bound_by_its_link():
    link = disk("throughput", machine(storage=NVME, cpu={"virtualised": None}))
    assert (link.kind, link.bound) == ("at_most", 7.877e9)
    # A virtual machine may show the link of a disk that its host emulates.
    assert "host" in disk("throughput", machine(storage=NVME)).detail
    assert [*link.remarks] == ["the limit of the interface, not of the medium"]
    assert disk("iops", machine(storage=NVME)).kind == "none"


@pytest.mark.parametrize(
    ("streams", "loopback", "cores"), [(1, True, 2), (8, True, 4), (2, False, 2)]
)
def test_without_a_wire_the_copies_of_the_cores_bound(streams, loopback, cores):
    facts = machine(limits={"physical_cores_allowed": 4})
    limit = network("TCP", 1024, facts, streams, clock_hz=3e9, loopback=loopback)
    moves = 4 if loopback else 2
    assert limit.bound == pytest.approx(cores * 3e9 * 64 * 8 / moves)
    assert network("LAT-TCP", 1, facts, loopback=loopback).kind == "none"
    assert network("TCP", 1024, machine(network=WIRE)).kind == "limit"


def test_limits_of_ladders_are_those_of_the_plain_workloads():
    facts = ZEN3 | {
        "cpu": ZEN3["cpu"] | {"caches": [
            {"level": level, "type": "unified", "size": held, "count": 2} for level, held in ((1, 1 << 15), (2, 1 << 19))
        ]},
    }  # fmt: skip
    for level, block in (("l1-huge", 1 << 14), ("l2-small", 1 << 17)):
        for ladder, workload, variant, metric in (
            ("LADDER-RS", "RS", "block", "throughput"), ("LADDER-LAT", "LAT", "", "latency"),
        ):  # fmt: skip
            found = limit_of("memory", ladder, level, block, 1, f"ladder_{metric}", facts)
            plain = limit_of("memory", workload, variant, block, 1, metric, facts)
            assert found.value and found == plain
    stated = {"memory": {"bandwidth": 4e10, "latency": 1e-7}}
    for workload, metric, value in (("RS", "throughput", 4e10), ("LAT", "latency", 1e-7)):
        row = (f"LADDER-{workload}", "dram-huge", 1 << 27, 1, f"ladder_{metric}")
        assert limit_of("memory", *row, facts, site=stated).value == value


@pytest.mark.parametrize(
    ("workload", "transport", "most"),
    [
        ("RATE", "tcp/ib0", 12.5e9 * 1448 / 1538),
        ("BIRATE", "tcp/ib0", 25e9 * 1448 / 1538),
        ("RATE", "rc_mlx5/mlx5_0:1", 12.5e9),
        ("PINGPONG", "tcp/ib0", None),
        ("MSGRATE", "tcp/ib0", None),
    ],
)
def test_mpi_has_the_line_rate_of_its_link(workload, transport, most):
    link = {"interface": "ib0", "speed_bps": 100e9, "mtu": 1500, "transport": transport}
    (metric,) = metrics("mpi", workload)
    row = ("mpi", workload, "2-nodes", MIB, 1, metric, {"network": link})
    assert limit_of(*row).value == (most and pytest.approx(most))
    alone = limit_of("mpi", workload, "same-socket", *row[3:])
    assert alone.value is None and alone.reason
