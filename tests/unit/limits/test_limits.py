"""Limits: known machines give known numbers, unknown ones give a reason and nothing else."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit import campaign_data

from peakmark import data, limits
from peakmark.limits import words
from peakmark.limits.network import tcp_share, udp_share

DATA = campaign_data.DATA
VM: dict[str, Any] = json.loads((DATA / "machine" / "zen3-vm.json").read_text())


def machine(**changes: dict[str, Any]) -> dict[str, Any]:
    """The facts of a real VM with some of them changed, by part."""
    facts = copy.deepcopy(VM)
    for part, values in changes.items():
        facts[part] |= values
    return facts


def cpu(workload: str, concurrency: int, facts: dict[str, Any], **more: Any) -> limits.Limit:
    return limits.for_row("cpu", workload, "", None, concurrency, "rate", facts, **more)


@pytest.mark.parametrize(
    ("workload", "per_cycle"), [("DP", 16), ("FP32", 32), ("SP", 32), ("HP", 64), ("QP", 128), ("QPDOT", 64)]
)
def test_zen_3_at_the_clock_measured_beside_the_row(workload: str, per_cycle: int) -> None:
    limit = cpu(workload, 2, VM, clock_hz=3.2e9)
    assert limit.value == pytest.approx(2 * 3.2e9 * per_cycle)
    assert limit.kind == "measured"
    assert "2 cores x 3.2 GHz (observed clock)" in limit.formula
    assert "Zen 3" in limit.formula


def test_threads_beyond_the_cores_do_not_raise_the_limit() -> None:
    assert cpu("DP", 4, VM, clock_hz=3e9).value == cpu("DP", 2, VM, clock_hz=3e9).value
    assert "4 threads on 2 cores" in (cpu("DP", 4, VM, clock_hz=3e9).note or "")
    one = machine(limits={"physical_cores_allowed": 1})
    assert cpu("DP", 2, one, clock_hz=3e9).value == pytest.approx(48e9)


def test_three_clocks_and_which_one_is_used() -> None:
    facts = machine(cpu={"clock_hz": {"nominal": 2.4e9, "maximum": 3.6e9, "observed": 3.1e9}})
    assert limits.clocks(facts, clock_hz=3.0e9) == {"observed": 3.0e9, "nominal": 2.4e9, "maximum": 3.6e9}
    assert "3.1 GHz (observed clock)" in cpu("DP", 1, facts).formula
    nominal = cpu("DP", 1, facts, clock_hz=3.0e9, site={"cpu": {"clock": "nominal"}})
    assert nominal.value == pytest.approx(2.4e9 * 16)
    assert "nominal clock" in nominal.formula
    assert nominal.kind == "read"
    fallback = machine(cpu={"clock_hz": {"nominal": 2.4e9, "maximum": None, "observed": None}})
    assert "nominal clock" in cpu("DP", 1, fallback).formula
    clockless = machine(cpu={"clock_hz": {"nominal": None, "maximum": None, "observed": None}})
    assert cpu("DP", 1, clockless).value is None


def test_an_unknown_cpu_has_an_estimate_that_is_no_limit() -> None:
    facts = machine(cpu={"microarchitecture": None, "model_name": "New Chip 9000"})
    limit = cpu("DP", 2, facts, clock_hz=3e9)
    assert limit.value is None
    assert limit.estimate == pytest.approx(2 * 3e9 * 16)
    assert "New Chip 9000" in (limit.reason or "") and "cpu.operations_per_cycle.DP" in (limit.reason or "")
    assert "not used for any efficiency" in (limit.note or "")
    assert limits.efficiency(1e9, limit) is None
    assert cpu("QP", 2, facts, clock_hz=3e9).estimate is None
    stated = cpu("DP", 2, facts, clock_hz=3e9, site={"name": "x", "cpu": {"operations_per_cycle": {"DP": 8}}})
    assert stated.value == pytest.approx(48e9)


def test_the_instruction_set_decides_not_the_design_alone() -> None:
    server = {"microarchitecture": "Ice Lake-SP", "isa": ["sse2", "avx2", "fma", "avx512f", "avx512_vnni"]}
    wide = machine(cpu={**server, "isa_best": "avx512"})
    assert cpu("DP", 1, wide, clock_hz=1e9).value == pytest.approx(32e9)
    assert cpu("QPDOT", 1, wide, clock_hz=1e9).value == pytest.approx(256e9)
    masked = machine(cpu={**server, "isa_best": "avx2", "isa": ["sse2", "avx2", "fma"]})
    assert cpu("DP", 1, masked, clock_hz=1e9).value == pytest.approx(16e9)
    assert cpu("QPDOT", 1, masked, clock_hz=1e9).value == pytest.approx(64e9)
    bare = machine(cpu={**server, "isa_best": "sse2", "isa": ["sse2"]})
    assert cpu("DP", 1, bare, clock_hz=1e9).value is None


@pytest.mark.parametrize(
    ("design", "double"),
    [
        ("Haswell", 16), ("Broadwell", 16), ("Skylake-SP", 32), ("Skylake-SP (1 FMA)", 16), ("Cascade Lake", 32),
        ("Ice Lake-SP", 32), ("Sapphire Rapids", 32), ("Emerald Rapids", 32), ("Granite Rapids", 32),
        ("Sierra Forest", 8), ("Zen", 8), ("Zen+", 8), ("Zen 2", 16), ("Zen 3", 16), ("Zen 4", 16), ("Zen 5", 32),
        ("K10", 4), ("Neoverse N1", 8), ("Neoverse N2", 8), ("Neoverse V1", 16), ("Neoverse V2", 16), ("A64FX", 32),
    ],
)  # fmt: skip
def test_double_precision_of_every_design(design: str, double: float) -> None:
    site = {"cpu": {"microarchitecture": design, "cores": 1, "nominal_hz": 1e9}}
    limit = cpu("DP", 1, {}, site=site)
    assert limit.value == pytest.approx(double * 1e9)


def test_single_precision_is_twice_double_everywhere() -> None:
    per_cycle = {
        (name, line["isa"], line["workload"]): float(line["operations_per_cycle"])
        for line in data.table("operations")
        for name in line["microarchitecture"].split("|")
    }
    for (name, isa, workload), value in per_cycle.items():
        if workload == "DP":
            assert per_cycle[name, isa, "FP32"] == 2 * value
        if workload == "SP":
            assert value <= per_cycle[name, isa, "HP"] <= per_cycle[name, isa, "QP"]


def test_no_facts_at_all() -> None:
    for subsystem, workload, metric in (("cpu", "DP", "rate"), ("memory", "RWS", "throughput"), ("disk", "RS", "iops")):
        limit = limits.for_row(subsystem, workload, "block", 1024, 1, metric, {})
        assert (limit.value, limit.kind) == (None, "unknown")
        assert limit.reason


def memory(
    workload: str, variant: str, block: int, concurrency: int, facts: dict[str, Any], **more: Any
) -> limits.Limit:
    metric = "latency" if workload == "LAT" else "throughput"
    return limits.for_row("memory", workload, variant, block, concurrency, metric, facts, **more)


def test_memory_channels_read_stated_or_tabled() -> None:
    read = machine(memory={"channels": 8, "speed_mts": 3200})
    assert memory("RWS", "pool", 1024, 1, read).value == pytest.approx(204.8e9)
    assert memory("RWS", "pool", 1024, 1, read).kind == "read"
    stated = memory("RWR", "pool", 1024, 1, read, site={"name": "x", "memory": {"channels": 4, "source": "label"}})
    assert stated.value == pytest.approx(102.4e9)
    assert (stated.kind, stated.source) == ("site", "site file x (label)")
    metal = machine(cpu={"virtualised": None, "model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 2})
    tabled = memory("RS", "pool", 1024, 1, metal)
    assert tabled.value == pytest.approx(2 * 204.8e9)
    assert tabled.kind == "datasheet"
    assert "max for the CPU" in tabled.formula
    virtual = machine(cpu={"model_name": "AMD EPYC 7763 64-Core Processor"})
    assert memory("RS", "pool", 1024, 1, virtual).value is None
    assert "virtual machine" in (memory("RS", "pool", 1024, 1, virtual).reason or "")
    strange = machine(cpu={"virtualised": None, "model_name": "New Chip 9000"})
    assert "site file" in (memory("RS", "pool", 1024, 1, strange).reason or "")


@pytest.mark.parametrize(
    ("name", "channels", "speed"),
    [
        ("AMD EPYC 7601 32-Core Processor", 8, 2666),
        ("AMD EPYC 7742 64-Core Processor", 8, 3200),
        ("AMD EPYC 7R13 Processor", 8, 3200),
        ("AMD EPYC 8324P 32-Core Processor", 6, 4800),
        ("AMD EPYC 9654 96-Core Processor", 12, 4800),
        ("Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz", 4, 2133),
        ("Intel(R) Xeon(R) Gold 6126 CPU @ 2.60GHz", 6, 2666),
        ("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", 8, 3200),
        ("INTEL(R) XEON(R) PLATINUM 8592+", 8, 5600),
        ("Intel(R) Xeon(R) 6980P", 12, 6400),
    ],
)
def test_memory_by_cpu_model(name: str, channels: int, speed: float) -> None:
    facts = machine(cpu={"virtualised": None, "model_name": name})
    assert memory("RS", "pool", 1024, 1, facts).value == pytest.approx(channels * speed * 8e6)


@pytest.mark.parametrize(
    ("workload", "block", "per_cycle", "level"),
    [
        ("RS", 1 << 10, 64, "L1"),
        ("WS", 1 << 10, 32, "L1"),
        ("RWS", 1 << 10, 64, "L1"),
        ("RWR", 12 << 10, 64, "L1"),
        # Source, target and the odd lines between them: 2112 B more than a first level of 32 KiB.
        ("RWR", 16 << 10, 64, "L2"),
        ("RS", 256 << 10, 32 * 256 / (256 - 32), "L2"),
        ("RWS", 128 << 10, 32 * 256 / (256 - 32), "L2"),
        # All that L1 cannot keep passes between L2 and L1, wherever it comes from.
        ("RS", 8 << 20, 32 * 8192 / (8192 - 32), "L3"),
    ],
)
def test_a_block_that_is_used_again_meets_its_cache(workload: str, block: int, per_cycle: float, level: str) -> None:
    limit = memory(workload, "block", block, 2, VM, clock_hz=3e9)
    assert limit.value == pytest.approx(2 * 3e9 * per_cycle)
    assert f"fits {level}" in limit.formula


def test_threads_share_the_last_cache() -> None:
    alone = memory("RS", "block", 24 << 20, 1, VM, clock_hz=3e9)
    assert "fits L3" in alone.formula
    both = memory("RS", "block", 24 << 20, 2, VM, clock_hz=3e9)
    assert both.value is None
    assert "between the L3 cache and memory" in (both.reason or "")
    far = memory("RS", "block", 256 << 20, 2, machine(memory={"channels": 2, "speed_mts": 3200}), clock_hz=3e9)
    assert far.value == pytest.approx(51.2e9)


@pytest.mark.parametrize(
    ("name", "channels"),
    [
        ("AMD EPYC 7251 8-Core Processor", 8),
        ("AMD EPYC 9755 128-Core Processor", 12),
        ("Intel(R) Xeon(R) 6710E", 8),
        ("AMD EPYC 4564P 16-Core Processor", None),
        ("Intel(R) Xeon(R) CPU Max 9480", None),
    ],
)
def test_a_cpu_whose_memory_speed_no_source_states_has_no_limit_and_says_how_to_give_it_one(
    name: str, channels: int | None
) -> None:
    facts = machine(cpu={"virtualised": None, "model_name": name, "sockets": 2})
    limit = memory("RS", "pool", 1 << 20, 1, facts)
    assert limit.value is None and "write memory.channels and memory.speed_mts in the site file" in (limit.reason or "")
    assert (f"{channels} channels a socket" in (limit.reason or "")) is (channels is not None)
    # What to do then helps, and so do modules that can be read; one channel without a module is still found.
    stated = memory("RS", "pool", 1 << 20, 1, facts, site={"name": "x", "memory": {"channels": 24, "speed_mts": 6000}})
    assert stated.value == pytest.approx(24 * 6000 * 8e6)
    read = memory("RS", "pool", 1 << 20, 1, {**facts, "memory": {"channels": 7, "speed_mts": 2400}})
    assert read.value == pytest.approx(7 * 2400 * 8e6) and (read.finding is not None) is (channels is not None)


def test_latency_of_caches_and_of_memory() -> None:
    assert memory("LAT", "", 16 << 10, 1, VM, clock_hz=4e9).value == pytest.approx(1e-9)
    second = memory("LAT", "", 512 << 10, 1, VM, clock_hz=4e9)
    assert second.value == pytest.approx((4 * 32 + 12 * 480) / 512 / 4e9)
    assert memory("LAT", "", 256 << 20, 1, VM, clock_hz=4e9).value is None
    stated = memory("LAT", "", 256 << 20, 1, VM, site={"memory": {"latency": 80e-9}})
    assert stated.value == 80e-9
    near = memory("LAT", "", 48 << 20, 1, VM, site={"memory": {"latency": 80e-9}})  # VM's L3 has 32 MiB
    assert near.value is None and "L3 cache or between it and memory" in (near.reason or "")


def disk(metric: str, facts: dict[str, Any], **more: Any) -> limits.Limit:
    return limits.for_row("disk", "RR", "psync", 4096, 1, metric, facts, **more)


def test_disk_by_datasheet_else_by_interface_else_unknown() -> None:
    nvme = machine(storage={"interface": "nvme", "interface_limit": 7.877e9, "interface_limit_formula": "PCIe"})
    assert disk("throughput", nvme).value == 7.877e9
    assert "not of the medium" in (disk("throughput", nvme).note or "")
    assert disk("iops", nvme).value is None
    site = {"disk": {"throughput": {"RR": 3e9}, "iops": {"RR": 5e5}, "latency": {"RR": 8e-5}}}
    assert [disk(metric, nvme, site=site).value for metric in ("throughput", "iops", "latency")] == [3e9, 5e5, 8e-5]
    assert "virtual disk" in (disk("throughput", VM).reason or "")
    ram = machine(storage={"interface": "ram", "filesystem": "tmpfs"})
    assert "in memory" in (disk("throughput", ram).reason or "")
    assert "in memory" in (disk("iops", ram).reason or "")


def network(workload: str, message: int, facts: dict[str, Any], **more: Any) -> limits.Limit:
    metric = "latency" if workload.startswith("LAT") else "throughput"
    return limits.for_row("network", workload, "", message, 1, metric, facts, **more)


def test_network_less_protocol_overhead() -> None:
    wire = machine(network={"speed_bps": 10e9, "mtu": 1500})
    assert network("TCP", 1024, wire).value == pytest.approx(10e9 * 1448 / 1538)
    assert network("TCP", 32768, wire).value == network("TCP", 1024, wire).value
    assert network("UDP", 1024, wire).value == pytest.approx(10e9 * 1024 / 1090)
    jumbo = machine(network={"speed_bps": 10e9, "mtu": 9000})
    assert network("TCP", 1024, jumbo).value == pytest.approx(10e9 * 8948 / 9038)
    assert network("TCP", 1024, VM).value is None
    assert "network.speed_bps" in (network("TCP", 1024, VM).reason or "")


def test_loopback_has_no_line_rate() -> None:
    wire = machine(network={"speed_bps": 10e9, "mtu": 1500})
    for limit in (network("TCP", 1024, wire, loopback=True), network("TCP", 1024, machine(network={"loopback": True}))):
        assert (limit.value, limit.reason) == (None, "loopback has no line rate")
    site = {"network": {"latency": {"TCP": 1e-5}}}
    assert network("LAT-TCP", 1, wire, site=site).value == 1e-5
    assert network("LAT-TCP", 1, wire, site=site, loopback=True).value is None
    assert network("LAT-ICMP", 1, wire, site=site).value is None


def test_udp_fragments_as_ip_does() -> None:
    # 32 KiB at MTU 1500: 22 fragments of 1480 B and one of the rest, each with its own headers.
    share, text = udp_share(32768, 1500)
    assert share == pytest.approx(32768 / (32768 + 8 + 23 * (20 + 38)))
    assert "23 fragments" in text
    assert udp_share(1, 1500)[0] == pytest.approx(1 / 84)
    assert udp_share(1472, 1500)[0] == pytest.approx(1472 / 1538)


@given(st.integers(1, 65507), st.integers(576, 9000))
def test_no_overhead_is_negative(message: int, mtu: int) -> None:
    assert 0 < udp_share(message, mtu)[0] < 1
    assert 0 < tcp_share(mtu)[0] < 1


def test_efficiency_is_one_at_the_limit() -> None:
    rate = cpu("DP", 1, VM, clock_hz=3e9)
    assert rate.value is not None
    assert limits.efficiency(rate.value, rate) == 1
    assert limits.efficiency(rate.value / 4, rate) == 0.25
    time = memory("LAT", "", 1024, 1, VM, clock_hz=4e9)
    assert limits.efficiency(4e-9, time) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (588.8e9, "op/s", "588.8 GigaOPS"),
        (51.2e9, "B/s", "51.2 GB/s"),
        (941e6, "bit/s", "941 Mb/s"),
        (14.06e-9, "s", "14.06 ns"),
        (5782.4991, "1/s", "5782 IOPS"),
        (123456.0, "1/s", "123456 IOPS"),
        (0.0, "B/s", "0 B/s"),
    ],
)
def test_quantities_in_words(value: float, unit: str, text: str) -> None:
    assert words.quantity(value, unit) == text


def test_the_formula_says_that_the_clock_was_observed_under_the_work() -> None:
    limit = cpu("DP", 2, VM, clock_hz=2.72e9, clock_loaded=True)
    assert limit.value == pytest.approx(2 * 2.72e9 * 16)
    assert "2.72 GHz (clock observed under the work)" in limit.formula
    assert "(observed clock)" in cpu("DP", 2, VM, clock_hz=2.72e9).formula
    nominal = cpu(
        "DP", 1, VM, clock_hz=2.72e9, clock_loaded=True, site={"cpu": {"clock": "nominal", "nominal_hz": 2e9}}
    )
    assert "2 GHz (nominal clock)" in nominal.formula


def test_the_cores_of_a_row_are_those_its_records_tell() -> None:
    first_job = machine(limits={"physical_cores_allowed": 1}, cpu={"virtualised": None})
    placed = {"cores": 2, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
    limit = cpu("DP", 2, first_job, clock_hz=3e9, placed=placed)
    assert limit.value == pytest.approx(2 * 3e9 * 16)
    assert "cores its threads were placed on" in limit.source
    assert cpu("DP", 2, first_job, clock_hz=3e9).value == pytest.approx(3e9 * 16)  # a record of an earlier version
    assert cpu("DP", 2, VM, clock_hz=3e9, placed={**placed, "cores": 1}).value == pytest.approx(3e9 * 16)


def test_cores_of_a_guest_are_not_called_physical() -> None:
    placed = {"cores": 2, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
    for limit in (cpu("DP", 2, VM, clock_hz=3e9), cpu("DP", 2, VM, clock_hz=3e9, placed=placed)):
        assert "physical" not in limit.source and "virtual machine" in limit.source


def test_a_last_level_cache_without_threads_holds_nothing() -> None:
    caches = [
        {"level": 1, "type": "data", "size": 32 << 10, "shared_by": 2, "count": 32},
        {"level": 3, "type": "unified", "size": 32 << 20, "shared_by": 32, "count": 2},
    ]
    facts = machine(cpu={"caches": caches})
    block = 3 << 20  # of each of 16 threads: 48 MiB
    one = {"cores": 16, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
    assert "fits L3" not in memory("RS", "block", block, 16, facts, clock_hz=3e9, placed=one).formula
    both = {**one, "sockets": 2, "numa_nodes": [0, 1], "last_level_bytes": 64 << 20}
    assert "fits L3" in memory("RS", "block", block, 16, facts, clock_hz=3e9, placed=both).formula


@pytest.mark.parametrize(
    ("workload", "share"), [("WS", 1 / 2), ("WR", 1 / 2), ("RWS", 2 / 3), ("RWR", 2 / 3), ("RS", 1)]
)
def test_an_ordinary_store_reads_its_line_first(workload: str, share: float) -> None:
    site = {"memory": {"channels": 8, "speed_mts": 3200}}
    best = memory(workload, "pool", 1 << 20, 2, VM, site=site, store="streaming")
    assert best.value == pytest.approx(204.8e9)
    ordinary = memory(workload, "pool", 1 << 20, 2, VM, site=site, store="temporal")
    assert ordinary.value == pytest.approx(204.8e9 * share)
    assert ("first reads the line" in ordinary.formula) == (share < 1)
    assert memory(workload, "pool", 1 << 20, 2, VM, site=site).value == best.value  # a record that does not tell


def test_designs_that_write_without_that_read_keep_the_whole_limit() -> None:
    site = {"memory": {"channels": 8, "speed_mts": 3200}}
    facts = machine(cpu={"microarchitecture": "Emerald Rapids"})
    limit = memory("WS", "pool", 1 << 20, 2, facts, site=site, store="temporal")
    assert limit.value == pytest.approx(204.8e9) and "without reading them first" in (limit.note or "")


@pytest.mark.parametrize(
    ("name", "channels", "speed"),
    [
        ("INTEL(R) XEON(R) GOLD 6530", 8, 4800),
        ("INTEL(R) XEON(R) GOLD 6548Y+", 8, 5200),
        ("INTEL(R) XEON(R) PLATINUM 8558", 8, 5200),
        ("INTEL(R) XEON(R) PLATINUM 8558P", 8, 5200),
        ("INTEL(R) XEON(R) PLATINUM 8562Y+", 8, 5200),
        ("INTEL(R) XEON(R) PLATINUM 8568Y+", 8, 5600),
        ("INTEL(R) XEON(R) PLATINUM 8592+", 8, 5600),
        ("INTEL(R) XEON(R) PLATINUM 8592V", 8, 4800),
        ("Intel(R) Xeon(R) Gold 6430", 8, 4400),
        ("Intel(R) Xeon(R) Platinum 8480+", 8, 4800),
        ("Intel(R) Xeon(R) Gold 6428N", 8, 4400),
        ("Intel(R) Xeon(R) Gold 6438N", 8, 4800),
        ("Intel(R) Xeon(R) Gold 6403N", 8, 4000),
        ("Intel(R) Xeon(R) Gold 5418N", 8, 4400),
        ("Intel(R) Xeon(R) Platinum 8352V CPU @ 2.10GHz", 8, 2933),
        ("Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz", 6, 3200),
        ("Intel(R) Xeon(R) Gold 6348H CPU @ 2.30GHz", 6, 2933),
        ("Intel(R) Xeon(R) Gold 6348 CPU @ 2.60GHz", 8, 3200),
        ("Intel(R) Xeon(R) Gold 6262V CPU @ 1.90GHz", 6, 2400),
        ("Intel(R) Xeon(R) CPU E5-2650L v2 @ 1.70GHz", 4, 1600),
        ("Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz", 8, 2933),
        ("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", 8, 3200),
        ("Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz", 8, 2666),
        ("Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz", 6, 2933),
        ("Intel(R) Xeon(R) Gold 5218 CPU @ 2.30GHz", 6, 2666),
        ("Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz", 6, 2666),
        ("Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz", 4, 1866),
        ("Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz", 4, 2133),
        ("Intel(R) Xeon(R) CPU E5-2640 v4 @ 2.40GHz", 4, 2133),
        ("Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz", 4, 2400),
        ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", 4, 1600),
        ("AMD EPYC 7282 16-Core Processor", 4, 2667),
        ("AMD EPYC 7742 64-Core Processor", 8, 3200),
        ("AMD EPYC 7763 64-Core Processor", 8, 3200),
        ("AMD EPYC 9654 96-Core Processor", 12, 4800),
    ],
)
def test_memory_is_that_of_the_model_not_of_its_familys_best(name: str, channels: int, speed: int) -> None:
    facts = machine(
        cpu={"model_name": name, "sockets": 2, "virtualised": None}, memory={"channels": None, "speed_mts": None}
    )
    limit = memory("RS", "pool", 1 << 20, 2, facts)
    assert limit.value == pytest.approx(2 * channels * speed * 1e6 * 8)


TWO_NODES = [{"node": number, "cpus": f"{number}", "memory": 1 << 36, "distances": [10, 21]} for number in (0, 1)]


def test_memorys_limit_is_that_of_the_channels_the_threads_reach() -> None:
    facts = machine(
        cpu={"model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 2, "virtualised": None, "numa": TWO_NODES},
        memory={"channels": 16, "speed_mts": 3200},
    )
    placed = {"cores": 1, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
    whole = memory("RS", "pool", 1 << 20, 2, facts)
    half = memory("RS", "pool", 1 << 20, 2, facts, placed=placed)
    assert whole.value == pytest.approx(16 * 3200e6 * 8) and half.value == pytest.approx(8 * 3200e6 * 8)
    assert "1 of 2 NUMA nodes" in half.formula
    both = memory("RS", "pool", 1 << 20, 2, facts, placed={**placed, "sockets": 2, "numa_nodes": [0, 1]})
    assert both.value == whole.value and whole.finding is None


def test_a_missing_module_is_a_finding() -> None:
    facts = machine(
        cpu={"model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 1, "virtualised": None},
        memory={"channels": 7, "speed_mts": 3200},
    )
    limit = memory("RS", "pool", 1 << 20, 2, facts)
    assert limit.value == pytest.approx(7 * 3200e6 * 8)
    assert "7 of 8 memory channels populated" in str(limit.finding)


def test_one_stream_over_a_bond_has_one_member() -> None:
    facts = machine(network={"interface": "bond0", "kind": "bond", "speed_bps": 50e9, "stream_bps": 25e9, "mtu": 9000})
    rates = [limits.for_row("network", "TCP", "", 1 << 20, streams, "throughput", facts).value for streams in (1, 2, 4)]
    assert rates[0] is not None and rates[1] == pytest.approx(2 * rates[0]) and rates[2] == rates[1]
