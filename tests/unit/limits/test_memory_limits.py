"""Limits of memory and of the caches above it."""

from __future__ import annotations

import csv

import pytest
from tests.unit import campaign_data as make
from tests.unit.limits.machines import VM, machine, memory

from peakmark.messages import message


def test_memory_channels_read_stated_or_tabled() -> None:
    read = machine(memory={"channels": 8, "speed_mts": 3200})
    assert memory("RWS", "pool", 1024, 1, read).value == pytest.approx(204.8e9)
    assert memory("RWS", "pool", 1024, 1, read).kind == "read"
    stated = memory(
        "RWR",
        "pool",
        1024,
        1,
        read,
        site={"name": "x", "memory": {"channels": 4, "source": "label"}},
    )
    assert stated.value == pytest.approx(102.4e9)
    assert (stated.kind, stated.source) == ("site", "site file x (label)")
    metal = machine(
        cpu={"virtualised": None, "model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 2}
    )
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
def test_a_block_that_is_used_again_meets_its_cache(
    workload: str, block: int, per_cycle: float, level: str
) -> None:
    limit = memory(workload, "block", block, 2, VM, clock_hz=3e9)
    assert limit.value == pytest.approx(2 * 3e9 * per_cycle)
    assert f"fits {level}" in limit.formula


def test_threads_share_the_last_cache() -> None:
    alone = memory("RS", "block", 24 << 20, 1, VM, clock_hz=3e9)
    assert "fits L3" in alone.formula
    both = memory("RS", "block", 24 << 20, 2, VM, clock_hz=3e9)
    assert both.value is None
    assert "L3 cache and memory" in (both.reason or "")
    far = memory(
        "RS",
        "block",
        256 << 20,
        2,
        machine(memory={"channels": 2, "speed_mts": 3200}),
        clock_hz=3e9,
    )
    assert far.value == pytest.approx(51.2e9)


@pytest.mark.parametrize(
    ("name", "channels"),
    [
        ("AMD EPYC 7251 8-Core Processor", 8),
        ("AMD EPYC 9755 128-Core Processor", 12),
        ("Intel(R) Xeon(R) 6710E", 8),
        ("Intel(R) Xeon(R) 6746E", 8),
        ("Intel(R) Xeon(R) 6716P-B", None),
        ("AMD EPYC 9V64H 88-Core Processor", None),
        ("AMD EPYC 4564P 16-Core Processor", None),
        ("Intel(R) Xeon(R) CPU Max 9480", None),
    ],
)
def test_a_cpu_whose_memory_speed_no_source_states_has_no_limit_and_says_how_to_give_it_one(
    name: str, channels: int | None
) -> None:
    facts = machine(cpu={"virtualised": None, "model_name": name, "sockets": 2})
    limit = memory("RS", "pool", 1 << 20, 1, facts)
    assert limit.value is None
    assert {"memory.channels", "memory.speed_mts"} <= set((limit.reason or "").split())
    assert (f"{channels} channels a socket" in (limit.reason or "")) is (channels is not None)
    # What to do then helps, and so do modules that can be read; one channel without a module is
    # still found.
    stated = memory(
        "RS",
        "pool",
        1 << 20,
        1,
        facts,
        site={"name": "x", "memory": {"channels": 24, "speed_mts": 6000}},
    )
    assert stated.value == pytest.approx(24 * 6000 * 8e6)
    read = memory("RS", "pool", 1 << 20, 1, {**facts, "memory": {"channels": 7, "speed_mts": 2400}})
    assert read.value == pytest.approx(7 * 2400 * 8e6) and (read.finding is not None) is (
        channels is not None
    )


def test_latency_of_caches_and_of_memory() -> None:
    assert memory("LAT", "", 16 << 10, 1, VM, clock_hz=4e9).value == pytest.approx(1e-9)
    second = memory("LAT", "", 512 << 10, 1, VM, clock_hz=4e9)
    assert second.value == pytest.approx((4 * 32 + 12 * 480) / 512 / 4e9)
    assert memory("LAT", "", 256 << 20, 1, VM, clock_hz=4e9).value is None
    stated = memory("LAT", "", 256 << 20, 1, VM, site={"memory": {"latency": 80e-9}})
    assert stated.value == 80e-9
    near = memory(
        "LAT", "", 48 << 20, 1, VM, site={"memory": {"latency": 80e-9}}
    )  # VM's L3 has 32 MiB
    assert near.value is None and "L3 cache or" in (near.reason or "")


def test_a_last_level_cache_without_threads_holds_nothing() -> None:
    caches = [
        {"level": 1, "type": "data", "size": 32 << 10, "shared_by": 2, "count": 32},
        {"level": 3, "type": "unified", "size": 32 << 20, "shared_by": 32, "count": 2},
    ]
    facts = machine(cpu={"caches": caches})
    block = 3 << 20  # of each of 16 threads: 48 MiB
    one = {"cores": 16, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
    assert (
        "fits L3" not in memory("RS", "block", block, 16, facts, clock_hz=3e9, placed=one).formula
    )
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
    assert ("reads the line" in ordinary.formula) == (share < 1)
    assert (
        memory(workload, "pool", 1 << 20, 2, VM, site=site).value == best.value
    )  # a record that does not tell


def test_designs_that_write_without_that_read_keep_the_whole_limit() -> None:
    site = {"memory": {"channels": 8, "speed_mts": 3200}}
    facts = machine(cpu={"microarchitecture": "Emerald Rapids"})
    limit = memory("WS", "pool", 1 << 20, 2, facts, site=site, store="temporal")
    assert limit.value == pytest.approx(204.8e9) and limit.remarks == (message("limit-of-stores"),)


MODELS = list(csv.DictReader((make.DATA / "memory-models.csv").open(encoding="utf-8")))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model["model_name"]))
def test_memory_is_that_of_the_model_not_of_its_familys_best(model: dict[str, str]) -> None:
    facts = machine(
        cpu={"model_name": model["model_name"], "sockets": 2, "virtualised": None},
        memory={"channels": None, "speed_mts": None},
    )
    channels, megatransfers = int(model["channels"]), int(model["speed_mts"])
    limit = memory("RS", "pool", 1 << 20, 2, facts)
    assert limit.value == pytest.approx(2 * channels * megatransfers * 1e6 * 8)


TWO_NODES = [
    {"node": number, "cpus": f"{number}", "memory": 1 << 36, "distances": [10, 21]}
    for number in (0, 1)
]


def test_memorys_limit_is_that_of_the_channels_the_threads_reach() -> None:
    facts = machine(
        cpu={
            "model_name": "AMD EPYC 7763 64-Core Processor",
            "sockets": 2,
            "virtualised": None,
            "numa": TWO_NODES,
        },
        memory={"channels": 16, "speed_mts": 3200},
    )
    placed = {"cores": 1, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
    whole = memory("RS", "pool", 1 << 20, 2, facts)
    half = memory("RS", "pool", 1 << 20, 2, facts, placed=placed)
    assert whole.value == pytest.approx(16 * 3200e6 * 8) and half.value == pytest.approx(
        8 * 3200e6 * 8
    )
    assert "1 of 2 NUMA nodes" in half.formula
    both = memory(
        "RS", "pool", 1 << 20, 2, facts, placed={**placed, "sockets": 2, "numa_nodes": [0, 1]}
    )
    # A node of memory alone, as one behind CXL is, has no channel of a socket; one without memory
    # has none either.
    more = [
        *TWO_NODES,
        {**TWO_NODES[0], "node": 2, "cpus": ""},
        {**TWO_NODES[0], "node": 3, "memory": 0},
    ]
    facts["cpu"]["numa"] = more
    assert memory("RS", "pool", 1 << 20, 2, facts, placed=placed).value == half.value
    assert both.value == whole.value and whole.finding is None


@pytest.mark.parametrize(("sockets", "channels"), [(1, 8), (2, 16)])
def test_a_missing_module_is_a_finding(sockets: int, channels: int) -> None:
    cpu = {"model_name": "AMD EPYC 7763 64-Core Processor", "sockets": sockets, "virtualised": None}
    facts = machine(cpu=cpu, memory={"channels": channels - 1, "speed_mts": 3200})
    limit = memory("RS", "pool", 1 << 20, 2, facts)
    assert limit.value == pytest.approx((channels - 1) * 3200e6 * 8)
    assert limit.finding is not None and limit.finding.code == "empty-channels"
    assert (
        dict(limit.finding.values)["populated"] == channels - 1
        and dict(limit.finding.values)["channels"] == channels
    )
    whole = machine(cpu=cpu, memory={"channels": channels, "speed_mts": 3200})
    assert memory("RS", "pool", 1 << 20, 2, whole).finding is None
