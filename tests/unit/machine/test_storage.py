"""Facts of the disk behind the scratch directory."""

import json

import pytest
from tests.unit.machine.hosts import DATA, files_of, host

from peakmark.machine import storage


def mounted(target, source, kind):
    """What findmnt prints."""
    mount = {"target": target, "source": source, "fstype": kind, "options": "rw"}
    return json.dumps({"filesystems": [mount]})


def disks(*nodes):
    """What findmnt and lsblk print for /dev/mapper/data, a RAID 1 of 1 B on these disks."""
    volume = {"name": "data", "kname": "dm-0", "type": "raid1", "size": 1, "children": list(nodes)}
    tree = json.dumps({"blockdevices": [volume]})
    return {"findmnt": mounted("/data", "/dev/mapper/data[/sub]", "xfs"), "lsblk": tree}


def test_virtio_disk_has_no_limit_and_does_not_claim_to_rotate(tmp_path):
    device = "pci0000:00/0000:00:02.0/virtio1/block/vda"
    files = f"""
        /sys/devices/{device}/queue/rotational 1
        /sys/devices/{device}/queue/write_cache write back
        /sys/block/vda ->../devices/{device}
    """
    tools = {
        "findmnt": (DATA / "findmnt/ext4-virtio.json").read_text(),
        "lsblk": (DATA / "lsblk/virtio.json").read_text(),
    }
    this = host(tmp_path, files, tools)
    facts = storage.collect(this, tmp_path)
    assert (facts["filesystem"], facts["device"], facts["interface"]) == ("ext4", "vda", "virtio")
    assert facts["rotational"] is facts["interface_limit"] is None
    assert (facts["logical_block_size"], facts["write_cache"]) == (512, "write back")
    assert "datasheet" in this.unknown["storage.interface_limit"]


@pytest.mark.parametrize(("printed", "filesystem", "interface"), [
    ((DATA / "findmnt/tmpfs.json").read_text(), "tmpfs", "ram"),
    (mounted("/scratch", "10.0.0.1@o2ib:/lfs", "lustre"), "lustre", "network"),
    (mounted("/", "overlay", "overlay"), "overlay", None),
])  # fmt: skip
def test_no_disk(tmp_path, printed, filesystem, interface):
    this = host(tmp_path, "", {"findmnt": printed})
    facts = storage.collect(this, tmp_path)
    assert (facts["filesystem"], facts["interface"]) == (filesystem, interface)
    assert facts["device"] is None
    assert ("storage.device" in this.unknown) == (interface != "ram")


def test_nvme_below_lvm_is_limited_by_its_pcie_link(tmp_path):
    disk = {"kname": "nvme0n1", "tran": "nvme", "size": 10, "model": "Some SSD"}
    part = {"kname": "nvme0n1p2", "type": "part", "children": [disk]}
    facts = storage.collect(host(tmp_path, files_of("links"), disks(part)), tmp_path)
    assert (facts["device"], facts["model"], facts["interface"]) == ("nvme0n1", "Some SSD", "nvme")
    assert facts["interface_limit"] == pytest.approx(7.877e9, rel=1e-3)
    assert "16 GT/s x 4 lanes" in facts["interface_limit_formula"]
    told = (None, "4"), ("Unknown", "4"), ("16.0 GT/s PCIe", None), ("7.7 GT/s", "4")
    assert {storage.pcie_limit(speed, width) for speed, width in told} == {(None, None)}


def test_sata_and_sas_are_limited_by_the_rate_of_their_link(tmp_path):
    """And of both together, only what they share is told."""
    sata, sas = {"kname": "sda", "tran": "sata", "size": 1}, {"kname": "sdb", "size": 2}
    host(tmp_path, files_of("links"))
    for disk, interface, limit in ((sata, "sata", 600e6), (sas, "sas", 1200e6)):
        facts = storage.collect(host(tmp_path, "", disks(disk)), tmp_path)
        assert (facts["interface"], facts["interface_limit"]) == (interface, limit)
    facts = storage.collect(host(tmp_path, "", disks(sata, sas)), tmp_path)
    assert (facts["members"], facts["size"]) == (["sda", "sdb"], 1)
    assert facts["interface"] is facts["interface_limit"] is None
