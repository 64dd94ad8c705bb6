"""Facts of the disk behind the scratch directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.machine.hosts import DATA, host

from peakmark.machine import allowed, storage


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
    facts = storage.collect(
        host(tmp_path, {}, {"findmnt": (DATA / "findmnt/tmpfs.json").read_text()}), tmp_path
    )
    assert (facts["filesystem"], facts["interface"], facts["device"]) == ("tmpfs", "ram", None)


def disks(*nodes: Mapping[str, Any]) -> dict[str, str]:
    """What findmnt and lsblk print for /dev/mapper/data on these disks."""
    volume = {"name": "data", "kname": "dm-0", "type": "lvm", "children": list(nodes)}
    tree = json.dumps({"blockdevices": [volume]})
    return {"findmnt": mounted("/data", "/dev/mapper/data[/sub]", "xfs"), "lsblk": tree}


def mounted(target: str, source: str, kind: str) -> str:
    """What findmnt prints."""
    mount = {"target": target, "source": source, "fstype": kind, "options": "rw"}
    return json.dumps({"filesystems": [mount]})


def test_nvme_below_lvm_is_limited_by_its_pcie_link(tmp_path: Path) -> None:
    part = {"name": "nvme0n1p2", "kname": "nvme0n1p2", "type": "part"}
    disk = {"name": "nvme0n1", "kname": "nvme0n1", "type": "disk", "tran": "nvme", "size": 10}
    disk["model"] = "Some SSD"
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
    both = host(
        tmp_path, {}, disks({"kname": "sda", "tran": "sata"}, {"kname": "sdb", "tran": "sas"})
    )
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
    machine_host = host(
        tmp_path, {}, {"findmnt": mounted("/scratch", "10.0.0.1@o2ib:/lfs", "lustre")}
    )
    facts = storage.collect(machine_host, tmp_path)
    assert (facts["filesystem"], facts["interface"], facts["device"]) == ("lustre", "network", None)
    assert "storage.device" in machine_host.unknown


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
    found = allowed.io_limits(machine_here, ["vda"])
    assert found == {"read_bps": 2000, "write_bps": 9, "read_iops": 70}
    assert allowed.io_limits(machine_here, ["sdb"]) is None
    assert allowed.io_limits(host(tmp_path / "bare", {}), ["vda"]) is None
