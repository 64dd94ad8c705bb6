"""Facts of the processor: caches, clocks, designs, cores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.machine.hosts import DATA, host

from peakmark import data, machine
from peakmark.machine import cpu, topology
from peakmark.machine.host import parse_cpu_list


def test_observed_clock_comes_from_the_kernel(tmp_path: Path) -> None:
    program = tmp_path / "cpubench"
    program.write_text('#!/bin/sh\ntest "$2" = SP && echo \'{"clock_hz_before": 3.2e9}\'\n')
    program.chmod(0o755)
    assert machine.collect(tmp_path, cpubench=program)["cpu"]["clock_hz"]["observed"] == 3.2e9
    program.write_text("#!/bin/sh\necho nothing\n")
    facts = machine.collect(tmp_path, cpubench=program)
    assert facts["cpu"]["clock_hz"]["observed"] is None
    assert str(program) in facts["unknown"]["cpu.clock_hz.observed"]


def test_cpu_of_a_vm_from_real_outputs(tmp_path: Path) -> None:
    topology = "/sys/devices/system/cpu/cpu{}/topology/"
    files = {
        "/proc/cpuinfo": (DATA / "proc/cpuinfo-zen3-vm.txt").read_text(),
        "/sys/devices/system/cpu/online": "0-1",
    }
    for number in (0, 1):
        files[topology.format(number) + "physical_package_id"] = "0"
        files[topology.format(number) + "core_id"] = str(number)
    tools = {
        "lscpu": (DATA / "lscpu/zen3-vm.json").read_text(),
        "lstopo": (DATA / "lstopo/zen3-vm.xml").read_text(),
    }
    facts = cpu.collect(host(tmp_path, files, tools))
    assert (facts["vendor"], facts["family"], facts["model"]) == ("AuthenticAMD", 25, 1)
    assert facts["microarchitecture"] == "Zen 3"
    assert (facts["sockets"], facts["cores"], facts["threads"]) == (1, 2, 2)
    assert facts["isa_best"] == "avx2"
    assert "avx512f" not in facts["isa"]
    assert facts["virtualised"] == "KVM"
    assert facts["clock_hz"]["nominal"] == pytest.approx(2.44543e9)
    assert "stamp counter" in facts["clock_source"]["nominal"]
    sizes = {
        (one["level"], one["type"]): (one["size"], one["shared_by"], one["count"])
        for one in facts["caches"]
    }
    assert sizes[1, "data"] == (32 << 10, 1, 2)
    assert sizes[2, "unified"] == (512 << 10, 1, 2)
    assert sizes[3, "unified"] == (32 << 20, 2, 1)


def test_caches_from_sysfs_where_hwloc_is_missing(tmp_path: Path) -> None:
    files = {}
    for number in (0, 1):
        for index, (level, kind, size, shared) in enumerate(
            ((1, "Data", "48K", str(number)), (3, "Unified", "32M", "0-1"))
        ):
            place = f"/sys/devices/system/cpu/cpu{number}/cache/index{index}/"
            files |= {place + "level": str(level), place + "type": kind, place + "size": size}
            files[place + "shared_cpu_list"] = shared
    found = cpu.collect(host(tmp_path, files))["caches"]
    assert [(one["level"], one["size"], one["shared_by"], one["count"]) for one in found] == [
        (1, 48 << 10, 1, 2),
        (3, 32 << 20, 2, 1),
    ]


def test_arm_is_told_by_implementer_and_part(tmp_path: Path) -> None:
    files = {
        "/proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd asimddp sve i8mm\n"
        "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"
    }
    facts = cpu.collect(host(tmp_path, files))
    assert facts["microarchitecture"] == "Neoverse V1"
    assert facts["isa_best"] == "neon"
    assert "dotprod" in facts["isa"]


@pytest.mark.parametrize(
    ("vendor", "family", "model", "stepping", "name", "expected"),
    [
        ("GenuineIntel", 6, 63, 2, "Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz", "Haswell"),
        ("GenuineIntel", 6, 79, 1, "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "Broadwell"),
        ("GenuineIntel", 6, 85, 4, "Intel(R) Xeon(R) Gold 6126 CPU @ 2.60GHz", "Skylake-SP"),
        ("GenuineIntel", 6, 85, 4, "Intel(R) Xeon(R) Silver 4114 CPU", "Skylake-SP (1 FMA)"),
        ("GenuineIntel", 6, 85, 4, "Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz", "Skylake-SP"),
        ("GenuineIntel", 6, 85, 7, "Intel(R) Xeon(R) Platinum 8280 CPU @ 2.70GHz", "Cascade Lake"),
        ("GenuineIntel", 6, 85, 7, "Intel(R) Xeon(R) Gold 5218 CPU", "Cascade Lake (1 FMA)"),
        ("GenuineIntel", 6, 106, 6, "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", "Ice Lake-SP"),
        ("GenuineIntel", 6, 143, 8, "Intel(R) Xeon(R) Platinum 8480+", "Sapphire Rapids"),
        ("GenuineIntel", 6, 207, 2, "INTEL(R) XEON(R) PLATINUM 8592+", "Emerald Rapids"),
        ("GenuineIntel", 6, 173, 1, "Intel(R) Xeon(R) 6980P", "Granite Rapids"),
        ("GenuineIntel", 6, 175, 3, "Intel(R) Xeon(R) 6780E", "Sierra Forest"),
        ("AuthenticAMD", 23, 1, 2, "AMD EPYC 7601 32-Core Processor", "Zen"),
        ("AuthenticAMD", 23, 49, 0, "AMD EPYC 7742 64-Core Processor", "Zen 2"),
        ("AuthenticAMD", 25, 1, 1, "AMD EPYC 7763 64-Core Processor", "Zen 3"),
        ("AuthenticAMD", 25, 17, 1, "AMD EPYC 9654 96-Core Processor", "Zen 4"),
        ("AuthenticAMD", 26, 2, 1, "AMD EPYC", "Zen 5"),
        ("AuthenticAMD", 16, 10, 0, "AMD Phenom(tm) II X6 1100T Processor", "K10"),
        ("ARM", 0x41, 0xD0C, None, "Neoverse-N1", "Neoverse N1"),
        ("ARM", 0x46, 0x001, None, "A64FX", "A64FX"),
        ("GenuineIntel", 6, 255, 0, "Intel(R) Xeon(R) 9999", None),
        ("AuthenticAMD", 25, None, None, None, None),
        (None, None, None, None, None, None),
    ],
)
def test_microarchitecture(  # type: ignore[no-untyped-def]
    vendor, family, model, stepping, name, expected
) -> None:
    assert data.microarchitecture(vendor, family, model, stepping, name) == expected


@pytest.mark.parametrize("name", ["microarchitecture", "operations", "caches", "memory"])
def test_every_line_of_data_has_a_source(name: str) -> None:
    lines = data.table(name)
    assert lines
    for line in lines:
        assert None not in line, f"too many fields: {line}"
        assert line["source"] and "not looked up" not in line["source"], line


def test_designs_in_the_tables_are_ones_that_can_be_found() -> None:
    known = {line["microarchitecture"] for line in data.table("microarchitecture")}
    for table in ("operations", "caches"):
        for line in data.table(table):
            assert set(line["microarchitecture"].split("|")) <= known


SMT = {
    f"/sys/devices/system/cpu/cpu{number}/topology/{name}": value
    for number in range(8)
    for name, value in (
        ("physical_package_id", str(number % 4 // 2)),
        ("core_id", str(number % 2)),
        ("thread_siblings_list", f"{number % 4},{number % 4 + 4}"),
    )
}


@pytest.mark.parametrize(
    ("allowed", "ordered", "cores"),
    [
        (range(8), [0, 1, 2, 3, 4, 5, 6, 7], 4),
        ([0, 4, 1, 5], [0, 1, 4, 5], 2),
        ([4, 0], [0, 4], 1),
        ([7, 6, 2], [2, 7, 6], 2),
        ([1, 2, 3, 5], [2, 3, 1, 5], 3),
    ],
)
def test_one_cpu_of_each_core_comes_first(
    tmp_path: Path, allowed: Sequence[int], ordered: list[int], cores: int
) -> None:
    cpu_locations = topology.read(host(tmp_path, SMT), allowed)
    assert topology.order(cpu_locations, allowed) == ordered
    assert topology.reach(cpu_locations, allowed)["cores"] == cores


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8", [0, 1, 2, 3, 8]), ("5", [5]), ("", []), (None, []), ("x-3", []), ("0-1,?", [0, 1])],
)
def test_cpu_lists(text: str | None, numbers: list[int]) -> None:
    assert parse_cpu_list(text) == numbers
