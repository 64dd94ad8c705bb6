"""This machine for real, and other machines from copied or written-down /sys trees."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data

from peakmark import data, machine
from peakmark.errors import RecordError
from peakmark.machine import allowed, cpu, memory, network, software, storage, topology
from peakmark.machine.host import Host, parse_cpu_list
from peakmark.schemas import validate

DATA = campaign_data.DATA


def host(root: Path, files: Mapping[str, str], tools: Mapping[str, str] | None = None) -> Host:
    """A machine made of files below ``root`` and of what its tools print, by the tool's name and arguments."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text[2:])
        else:
            path.write_text(text)
    outputs = dict(tools or {})

    def run(argv: Sequence[str]) -> str | None:
        line = " ".join(argv)
        return next((text for start, text in outputs.items() if line.startswith(start)), None)

    return Host(root, run)


def test_this_machine_gives_valid_facts(tmp_path: Path) -> None:
    facts = machine.collect(tmp_path)
    assert facts["host"] == platform.node()
    assert sorted(facts["limits"]["cpus_allowed"]) == sorted(os.sched_getaffinity(0))
    assert 1 <= facts["limits"]["physical_cores_allowed"] <= facts["cpu"]["cores"]
    assert facts["limits"]["memory_bytes"] <= facts["memory"]["total"]
    assert facts["storage"]["filesystem"]
    assert "cpu.clock_hz.observed" in facts["unknown"]
    json.dumps(facts, allow_nan=False)


def test_facts_read_back_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    facts = machine.cached(tmp_path / "machine", tmp_path)
    path = tmp_path / "machine" / f"{platform.node()}.json"
    assert machine.read(path)["cpu"] == facts["cpu"]
    assert machine.cached(tmp_path / "machine", Path("/dev/shm"))["storage"]["scratch"] == "/dev/shm"
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(RecordError, match=str(path)):
        machine.read(path)
    path.write_text(text.replace('"sockets": ', '"sockets": -'))
    with pytest.raises(RecordError, match="checksum does not fit"):
        machine.read(path)
    assert machine.cached(tmp_path / "machine", tmp_path)["cpu"] == facts["cpu"], "collected again"
    assert machine.read(path)["cpu"] == facts["cpu"]
    assert "-" in (tmp_path / "set-aside" / "machine" / f"{path.stem}.0.json").read_text()
    old = {**facts, "cpu": {**facts["cpu"], "sockets": -1}}
    path.write_text(json.dumps(old))  # from before facts had a seal
    with pytest.raises(RecordError, match=r"cpu\.sockets is -\d+: allowed is at least 1"):
        machine.read(path)


def test_no_tool_and_an_empty_system_still_give_facts(tmp_path: Path) -> None:
    bare = Host(tmp_path, lambda _: None)
    facts = machine.collect(tmp_path, host=bare)
    assert facts["cpu"]["microarchitecture"] is None
    assert facts["storage"]["device"] is None
    assert facts["network"]["interface"] is None
    assert {"memory.channels", "memory.speed_mts", "storage.filesystem", "network.interface"} <= set(facts["unknown"])


def test_a_stored_collection_of_a_real_vm_is_valid() -> None:
    facts = machine.read(DATA / "machine" / "zen3-vm.json")
    assert facts["cpu"]["microarchitecture"] == "Zen 3"
    validate(facts, "machine", "facts")


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
    files = {"/proc/cpuinfo": (DATA / "proc/cpuinfo-zen3-vm.txt").read_text(), "/sys/devices/system/cpu/online": "0-1"}
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
    sizes = {(one["level"], one["type"]): (one["size"], one["shared_by"], one["count"]) for one in facts["caches"]}
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
        ("GenuineIntel", 6, 85, 4, "Intel(R) Xeon(R) Silver 4114 CPU @ 2.20GHz", "Skylake-SP (1 FMA)"),
        ("GenuineIntel", 6, 85, 4, "Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz", "Skylake-SP"),
        ("GenuineIntel", 6, 85, 7, "Intel(R) Xeon(R) Platinum 8280 CPU @ 2.70GHz", "Cascade Lake"),
        ("GenuineIntel", 6, 85, 7, "Intel(R) Xeon(R) Gold 5218 CPU @ 2.30GHz", "Cascade Lake (1 FMA)"),
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
def test_microarchitecture(
    vendor: str | None,
    family: int | None,
    model: int | None,
    stepping: int | None,
    name: str | None,
    expected: str | None,
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


def test_memory_from_udev(tmp_path: Path) -> None:
    # Written down in the form that udev 252 prints; four channels, two of their eight slots empty.
    slots = [
        f"MEMORY_DEVICE_{number}_{key}={value}"
        for number, channel in enumerate("AABBCCDD")
        for key, value in (
            ("BANK_LOCATOR", f"P0 CHANNEL {channel}"),
            ("LOCATOR", f"DIMM {number % 2}"),
            ("TYPE", "DDR4"),
            ("CONFIGURED_SPEED_MTS", "2933"),
            *((("PRESENT", "0"),) if number in (1, 3) else (("SIZE", "17179869184"),)),
        )
    ]
    facts = memory.collect(host(tmp_path, {}, {"udevadm": "\n".join(slots)}))
    assert (facts["channels"], facts["speed_mts"], facts["type"], facts["modules"]) == (4, 2933, "DDR4", 6)


def test_memory_locators_without_a_channel_stay_unknown(tmp_path: Path) -> None:
    text = "MEMORY_DEVICE_0_LOCATOR=DIMM 0\nMEMORY_DEVICE_0_SIZE=1024\nMEMORY_DEVICE_0_CONFIGURED_SPEED_MTS=3200\n"
    bare = host(tmp_path, {}, {"udevadm": text})
    facts = memory.collect(bare)
    assert facts["channels"] is None
    assert facts["speed_mts"] == 3200
    assert "dmidecode" in bare.unknown["memory.channels"]
    assert "memory.speed_mts" not in bare.unknown


def test_memory_channels_from_edac(tmp_path: Path) -> None:
    files = {}
    for controller in (0, 1):
        for dimm, (channel, size) in enumerate(((0, 16384), (0, 0), (1, 16384), (2, 0))):
            place = f"/sys/devices/system/edac/mc/mc{controller}/dimm{dimm}/"
            files |= {place + "dimm_location": f"channel {channel} slot 0", place + "size": str(size)}
            files[place + "dimm_mem_type"] = "Registered-DDR4"
    facts = memory.collect(host(tmp_path, files))
    assert (facts["channels"], facts["channels_source"], facts["type"]) == (4, "EDAC", "Registered-DDR4")


def test_real_meminfo_in_bytes(tmp_path: Path) -> None:
    facts = memory.collect(host(tmp_path, {"/proc/meminfo": (DATA / "proc/meminfo.txt").read_text()}))
    assert facts["total"] == 24684096 * 1024
    assert facts["huge_pages"]["size"] == 2 << 20


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
    seats = topology.read(host(tmp_path, SMT), allowed)
    assert topology.order(seats, allowed) == ordered
    assert topology.reach(seats, allowed)["cores"] == cores


def test_memory_limit_of_cgroup_2_is_the_smallest_on_the_way_up(tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 16777216 kB\n",
        "/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_7/step_0\n",
        "/proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
        "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.max": "max",
        "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.max": "4294967296",
        "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/cpu.max": "250000 100000",
    }
    facts = allowed.collect(host(tmp_path, files), affinity={0})
    assert facts["memory_bytes"] == 4 << 30
    assert facts["memory_limited_by"] == "cgroup"
    assert facts["cpu_quota"] == 2.5


def test_memory_limit_of_cgroup_1_and_its_word_for_no_limit(tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 16777216 kB\n",
        "/proc/self/cgroup": "4:memory:/slurm/job_7\n1:cpu,cpuacct:/slurm/job_7\n0::/\n",
        "/proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
        "/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes": "2147483648",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "/sys/fs/cgroup/cpu/slurm/job_7/cpu.cfs_quota_us": "-1",
        "/sys/fs/cgroup/cpu/slurm/job_7/cpu.cfs_period_us": "100000",
    }
    machine_host = host(tmp_path, files)
    assert allowed.collect(machine_host, affinity={0})["memory_bytes"] == 2 << 30
    (tmp_path / "sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes").write_text("9223372036854771712")
    facts = allowed.collect(machine_host, affinity={0})
    assert (facts["memory_bytes"], facts["memory_limited_by"], facts["cpu_quota"]) == (16 << 30, None, None)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("memory/job_7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
        ("unified/job_7/memory.events", "low 0\nhigh 0\nmax 91\noom 3\noom_kill 3\noom_group_kill 0\n"),
    ],
)
def test_processes_that_the_kernel_ended_for_memory_are_counted(tmp_path: Path, file: str, text: str) -> None:
    files = {
        "/proc/self/cgroup": "4:memory:/job_7\n0::/job_7/step_0\n",
        "/proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "31 23 0:28 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n",
    }
    assert allowed.oom_kills(host(tmp_path, files)) is None
    assert allowed.oom_kills(host(tmp_path, {**files, f"/sys/fs/cgroup/{file}": text})) == 3


def test_virtio_disk_has_no_limit_and_does_not_claim_to_rotate(tmp_path: Path) -> None:
    files = {
        "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda/queue/rotational": "1",
        "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda/queue/write_cache": "write back",
        "/sys/block/vda": "->../devices/pci0000:00/0000:00:02.0/virtio1/block/vda",
    }
    tools = {
        "findmnt": (DATA / "findmnt/ext4-virtio.json").read_text(),
        "lsblk": (DATA / "lsblk/virtio.json").read_text(),
    }
    machine_host = host(tmp_path, files, tools)
    facts = storage.collect(machine_host, tmp_path)
    assert (facts["filesystem"], facts["device"], facts["interface"]) == ("ext4", "vda", "virtio")
    assert facts["rotational"] is None
    assert facts["interface_limit"] is None
    assert facts["logical_block_size"] == 512
    assert facts["write_cache"] == "write back"
    assert "datasheet" in machine_host.unknown["storage.interface_limit"]


def test_tmpfs_is_ram(tmp_path: Path) -> None:
    facts = storage.collect(host(tmp_path, {}, {"findmnt": (DATA / "findmnt/tmpfs.json").read_text()}), tmp_path)
    assert (facts["filesystem"], facts["interface"], facts["device"]) == ("tmpfs", "ram", None)


def disks(*nodes: Mapping[str, Any]) -> dict[str, str]:
    """What findmnt and lsblk print for /dev/mapper/data on these disks."""
    mount = {"filesystems": [{"target": "/data", "source": "/dev/mapper/data[/sub]", "fstype": "xfs", "options": "rw"}]}
    tree = {"blockdevices": [{"name": "data", "kname": "dm-0", "type": "lvm", "children": list(nodes)}]}
    return {"findmnt": json.dumps(mount), "lsblk": json.dumps(tree)}


def test_nvme_below_lvm_is_limited_by_its_pcie_link(tmp_path: Path) -> None:
    part = {"name": "nvme0n1p2", "kname": "nvme0n1p2", "type": "part"}
    disk = {"name": "nvme0n1", "kname": "nvme0n1", "type": "disk", "tran": "nvme", "model": "Some SSD", "size": 10}
    files = {
        "/sys/class/nvme/nvme0/device/current_link_speed": "16.0 GT/s PCIe",
        "/sys/class/nvme/nvme0/device/current_link_width": "4",
    }
    facts = storage.collect(host(tmp_path, files, disks({**part, "children": [disk]})), tmp_path)
    assert (facts["device"], facts["model"], facts["interface"]) == ("nvme0n1", "Some SSD", "nvme")
    assert facts["interface_limit"] == pytest.approx(7.877e9, rel=1e-3)
    assert "16 GT/s x 4 lanes" in facts["interface_limit_formula"]


def test_sata_and_sas_links(tmp_path: Path) -> None:
    device = "/sys/devices/pci0000:00/0000:00:1f.2/{}/block/{}/size"
    sata = "ata3/host2/target2:0:0/2:0:0:0"
    sas = "host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0"
    files = {
        device.format(sata, "sda"): "1",
        device.format(sas, "sdb"): "1",
        "/sys/devices/pci0000:00/0000:00:1f.2/host0/port-0:0/phy-0:3/uevent": "",
        "/sys/block/sda": f"->../devices/pci0000:00/0000:00:1f.2/{sata}/block/sda",
        "/sys/block/sdb": f"->../devices/pci0000:00/0000:00:1f.2/{sas}/block/sdb",
        "/sys/class/ata_link/link3/sata_spd": "6.0 Gbps",
        "/sys/class/sas_phy/phy-0:3/negotiated_linkrate": "12.0 Gbit",
    }
    one = host(tmp_path, files, disks({"kname": "sda", "tran": "sata", "rota": False}))
    assert storage.collect(one, tmp_path)["interface_limit"] == 600e6
    other = host(tmp_path, {}, disks({"kname": "sdb"}))
    facts = storage.collect(other, tmp_path)
    assert (facts["interface"], facts["interface_limit"]) == ("sas", 1200e6)
    both = host(tmp_path, {}, disks({"kname": "sda", "tran": "sata"}, {"kname": "sdb", "tran": "sas"}))
    facts = storage.collect(both, tmp_path)
    assert facts["members"] == ["sda", "sdb"]
    assert facts["interface"] is None
    assert facts["interface_limit"] is None
    assert "several disks" in both.unknown["storage.interface_limit"]


@pytest.mark.parametrize(
    ("speed", "width"), [(None, "4"), ("Unknown", "4"), ("16.0 GT/s PCIe", None), ("7.7 GT/s", "4")]
)
def test_a_pcie_link_that_is_not_told_has_no_limit(speed: str | None, width: str | None) -> None:
    assert storage.pcie_limit(speed, width) == (None, None)


def test_network_file_system(tmp_path: Path) -> None:
    mount = {
        "filesystems": [{"target": "/scratch", "source": "10.0.0.1@o2ib:/lfs", "fstype": "lustre", "options": "rw"}]
    }
    machine_host = host(tmp_path, {}, {"findmnt": json.dumps(mount)})
    facts = storage.collect(machine_host, tmp_path)
    assert (facts["filesystem"], facts["interface"], facts["device"]) == ("lustre", "network", None)
    assert "storage.device" in machine_host.unknown


def test_virtio_network_tells_no_speed(tmp_path: Path) -> None:
    files = {"/sys/class/net/eth0/type": "1", "/sys/class/net/eth0/mtu": "1400", "/sys/class/net/eth0/speed": "-1"}
    files |= {"/sys/class/net/eth0/device/uevent": ""}
    tools = {
        "ip -j route": (DATA / "ip/default.json").read_text(),
        "ethtool -i": (DATA / "ethtool/virtio-i.txt").read_text(),
        "ethtool eth0": (DATA / "ethtool/virtio.txt").read_text(),
    }
    machine_host = host(tmp_path, files, tools)
    facts = network.collect(machine_host, None)
    assert (facts["interface"], facts["kind"], facts["driver"], facts["mtu"]) == (
        "eth0",
        "ethernet",
        "virtio_net",
        1400,
    )
    assert facts["speed_bps"] is None
    assert "network.speed_bps" in machine_host.unknown


def test_speed_only_of_what_hangs_on_a_wire(tmp_path: Path) -> None:
    net = "/sys/class/net/"
    files = {
        net + "lo/type": "772",
        net + "veth0/type": "1",
        net + "veth0/speed": "10000",
        net + "eno1/type": "1",
        net + "eno1/device/uevent": "",
        net + "eno1/speed": "25000",
        net + "br0/type": "1",
        net + "br0/speed": "10000",
        net + "br0/lower_eno1": "->../eno1",
        net + "ib0/type": "32",
        net + "ib0/mtu": "2044",
        net + "ib0/device/infiniband/mlx5_0/ports/1/rate": "56 Gb/sec (4X FDR)",
        net + "bond0/type": "1",
        net + "bond0/speed": "50000",
        net + "bond0/bonding/slaves": "eno1 eno2",
        "/proc/net/route": "Iface\tDestination\tGateway\neno1\t00000000\t0100A8C0\n",
    }
    wires = host(tmp_path, files)
    assert network.collect(wires, "lo")["loopback"] is True
    assert network.collect(wires, "veth0")["speed_bps"] is None
    assert network.collect(wires, None)["speed_bps"] == 25e9
    assert network.collect(wires, "br0")["speed_bps"] == 25e9
    assert network.collect(wires, "ib0")["speed_bps"] == pytest.approx(54.545e9, rel=1e-4)
    bond = network.collect(wires, "bond0")
    assert bond["speed_bps"] == 50e9
    assert "single stream" in bond["speed_note"]
    assert network.collect(wires, "nic9")["speed_bps"] is None
    assert "nic9" in wires.unknown["network.interface"]


@pytest.mark.parametrize(
    ("text", "numbers"), [("0-3,8", [0, 1, 2, 3, 8]), ("5", [5]), ("", []), (None, []), ("x-3", []), ("0-1,?", [0, 1])]
)
def test_cpu_lists(text: str | None, numbers: list[int]) -> None:
    assert parse_cpu_list(text) == numbers


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_the_disk_are_the_smallest_on_the_way_up(tmp_path: Path, version: int) -> None:
    files = {"/sys/block/vda/dev": "254:0\n"}
    if version == 2:
        files |= {
            "/proc/self/mountinfo": "31 24 0:27 / /cg rw - cgroup2 cgroup2 rw\n",
            "/proc/self/cgroup": "0::/job/step\n",
            "/cg/job/io.max": "254:0 rbps=2000 wbps=max riops=70 wiops=max\n8:0 rbps=1 wbps=1 riops=1 wiops=1\n",
            "/cg/job/step/io.max": "254:0 rbps=3000 wbps=9 riops=max wiops=max\n",
        }
    else:
        files |= {
            "/proc/self/mountinfo": "31 24 0:27 / /cg rw - cgroup cgroup rw,blkio\n",
            "/proc/self/cgroup": "7:blkio:/job/step\n",
            "/cg/job/blkio.throttle.read_bps_device": "254:0 2000\n8:0 1\n",
            "/cg/job/step/blkio.throttle.read_bps_device": "254:0 3000\n",
            "/cg/job/step/blkio.throttle.write_bps_device": "254:0 9\n",
            "/cg/job/blkio.throttle.read_iops_device": "254:0 70\n",
        }
    machine_here = host(tmp_path, files)
    assert allowed.io_limits(machine_here, ["vda"]) == {"read_bps": 2000, "write_bps": 9, "read_iops": 70}
    assert allowed.io_limits(machine_here, ["sdb"]) is None
    assert allowed.io_limits(host(tmp_path / "bare", {}), ["vda"]) is None


@pytest.mark.parametrize(
    ("mode", "speed", "stream"),
    [
        ("balance-rr 0", 35e9, None),
        ("active-backup 1", 10e9, 25e9),
        ("balance-xor 2", 35e9, 25e9),
        ("broadcast 3", 10e9, 25e9),
        ("802.3ad 4", 35e9, 25e9),
        ("balance-tlb 5", 10e9, 25e9),
        ("balance-alb 6", 35e9, 25e9),
    ],
)
def test_the_rate_of_a_bond_is_that_of_its_mode(mode: str, speed: float, stream: float | None, tmp_path: Path) -> None:
    files = {"/sys/class/net/bond0/type": "1", "/sys/class/net/bond0/bonding/slaves": "eno1 eno2"}
    files |= {"/sys/class/net/bond0/bonding/mode": mode, "/sys/class/net/bond0/speed": "35000"}
    files |= {"/sys/class/net/bond0/bonding/active_slave": "eno1"}
    for name, mbit in (("eno1", "10000"), ("eno2", "25000")):
        files |= {f"/sys/class/net/{name}/type": "1", f"/sys/class/net/{name}/speed": mbit}
        files[f"/sys/class/net/{name}/device/vendor"] = "0x8086"
    facts = network.collect(host(tmp_path, files), "bond0")
    assert (facts["speed_bps"], facts["stream_bps"]) == (speed, stream)
    assert mode.split()[0] in facts["speed_note"]


def test_fdr10_carries_what_the_kernel_says(tmp_path: Path) -> None:
    place = "/sys/class/net/ib0/"
    files = {f"{place}type": "32", f"{place}device/infiniband/mlx4_0/ports/1/rate": "40 Gb/sec (4X FDR10)"}
    assert network.collect(host(tmp_path, files), "ib0")["speed_bps"] == 40e9


def test_facts_that_explain_differences(tmp_path: Path) -> None:
    files = {
        "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=1-2 ro isolcpus=2-3 nosmt mitigations=off nfsroot=10.0.0.1:/x",
        "/proc/sys/kernel/numa_balancing": "1",
        "/sys/class/dmi/id/bios_version": "2.14.1",
        "/sys/class/dmi/id/bios_date": "06/12/2025",
        "/sys/devices/system/cpu/smt/active": "0",
    }
    for number, (name, disabled) in enumerate((("POLL", "0"), ("C1", "0"), ("C6", "1"))):
        place = f"/sys/devices/system/cpu/cpu0/cpuidle/state{number}/"
        files |= {f"{place}name": name, f"{place}disable": disabled}
    this = host(tmp_path, files)
    system, processor = software.collect_os(this), cpu.collect(this)
    assert system["command_line"] == "isolcpus=2-3 nosmt mitigations=off"  # no disk, no server
    assert (system["numa_balancing"], system["firmware"]) == (1, "2.14.1 06/12/2025")
    assert (processor["smt"], processor["idle_states"]) == (False, ["POLL", "C1"])


def test_facts_that_are_there_are_asked_of_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first cell on a node asks; for all further ones, a program would be started beside each measurement."""
    asked = tmp_path / "asked"
    program = tmp_path / "bin" / "sinfo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $0 >> {asked}\necho slurm 22.05.8\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert machine.cached(tmp_path / "machine", tmp_path)["slurm"]["version"] == "22.05.8"
    assert asked.read_text().split() == [str(program)]
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    with monkeypatch.context() as nothing:
        nothing.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a program was started"))
        facts = machine.cached(tmp_path / "machine", tmp_path)
    assert (facts["slurm"]["version"], facts["slurm"]["job_id"]) == ("22.05.8", "8")
