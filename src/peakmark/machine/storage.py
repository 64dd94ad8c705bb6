"""Read facts of the disk that holds the scratch directory: filesystem, device, and link of the device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from peakmark import files
from peakmark.machine.host import Facts, Host, first_int, pcie_link, possible

RAM_FILESYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
"""Filesystems whose files are in main memory."""
NETWORK_FILESYSTEMS = [
    "nfs",
    "nfs4",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "cifs",
    "smb3",
    "glusterfs",
    "fuse.glusterfs",
    "fuse.sshfs",
    "9p",
    "virtiofs",
    "orangefs",
    "panfs",
    "wekafs",
]
"""Filesystems whose disk is in a server, so that its facts cannot be read."""
_DISK_FACTS = [
    "model",
    "rotational",
    "interface",
    "interface_limit",
    "interface_limit_formula",
    "logical_block_size",
    "physical_block_size",
    "scheduler",
    "write_cache",
    "size",
    "pcie",
    "paths",
]
"""Facts of a disk. They are unknown if the scratch directory is not on a local disk."""
_DATASHEET = "write disk.throughput in the site file, from the disk's datasheet"
"""How the user can supply a limit of the disk if the rate of its link is unknown."""

_PCIE_CODING = {
    2.5: 8 / 10,
    5.0: 8 / 10,
    8.0: 128 / 130,
    16.0: 128 / 130,
    32.0: 128 / 130,
    64.0: 242 / 256,
}
"""GT/s of a PCI Express lane -> share of the bits that carry data (PCI-SIG base specification)."""
_SATA_AND_SAS_GBIT = 12.0
"""Fastest link, in Gbit/s, with 8b/10b line coding: SATA, and SAS up to the third generation."""
_INTERFACES = {
    r"/virtio\d+/": "virtio",
    r"/nvme": "nvme",
    r"/ata\d+/": "sata",
    r"/end_device-": "sas",
}
"""Pattern of a disk's path in /sys/devices -> its interface."""
_Limit = tuple[float | None, str | None]
"""The limit of a link in B/s, and the formula of this value; (None, None) if it is unknown."""


def collect(host: Host, scratch: Path | None) -> Facts:
    """Return the ``storage`` part of the facts for ``scratch`` (by default $TMPDIR, or /tmp)."""
    directory = files.scratch(scratch)
    mount = _mount(host, directory)
    facts: Facts = {
        "scratch": str(directory),
        "filesystem": mount.get("fstype"),
        "mount_options": mount.get("options"),
        "device": None,
        "members": None,
        **dict.fromkeys(_DISK_FACTS),
    }
    # btrfs subvolumes and bind mounts are shown as /dev/sda1[/path].
    source = re.sub(r"\[.*\]$", "", mount.get("source") or "")
    tree = _devices(host, source, mount.get("fstype")) if source.startswith("/dev/") else []
    # Two partitions in one RAID may lead to the same disk: list each disk once.
    disks = list({disk["kname"]: disk for disk in _leaves(tree)}.values())
    if not mount:
        how = "name an existing directory as scratch, and have findmnt (util-linux)"
        host.missing("storage.filesystem", how)
    elif facts["filesystem"] in RAM_FILESYSTEMS:
        facts["interface"] = "ram"
    elif disks:
        names = [disk["kname"] for disk in disks]
        facts["members"] = names
        # With several disks, the device is the RAID or volume above them.
        facts["device"] = source.removeprefix("/dev/") if len(disks) > 1 else names[0]
        facts |= _common_facts(host, [_disk(host, disk) for disk in disks])
        if len(disks) > 1:
            # Take the size of the device above the disks: a RAID 1 is smaller than all its disks together. Several
            # devices of btrfs have no device above them, so their usable size is unknown.
            facts["size"] = tree[0].get("size") if len(tree) == 1 else None
    else:
        if facts["filesystem"] in NETWORK_FILESYSTEMS:
            facts["interface"] = "network"
        host.missing("storage.device", "write disk.model and its datasheet values in the site file")
    return facts


def _mount(host: Host, directory: Path) -> Facts:
    """Return findmnt's entry for the mount that holds ``directory``: lower-case name of the column -> text.

    It is empty without findmnt, or if the directory does not exist.
    """
    columns = "SOURCE,FSTYPE,OPTIONS"
    answer = host.run_json(["findmnt", "-J", "-T", str(directory), "-o", columns]) or {}
    mounts = answer.get("filesystems") or [{}]
    # If several filesystems are mounted on one directory, the last one is visible.
    return dict(mounts[-1])


def _devices(host: Host, source: str, filesystem: str | None) -> list[Facts]:
    """Return lsblk's entries of the block devices of a filesystem: one, or all devices of btrfs."""
    devices = _lsblk(host, source)
    # findmnt shows only one of the devices of btrfs.
    if filesystem == "btrfs" and devices:
        for folder in host.glob("/sys/fs/btrfs/*/devices"):
            names = [path.rpartition("/")[2] for path in host.glob(folder, "*")]
            if devices[0]["kname"] in names:
                devices = _lsblk(host, *(f"/dev/{name}" for name in names))
    return devices


def _lsblk(host: Host, *sources: str) -> list[Facts]:
    """Return lsblk's entries of block devices. ``children`` of an entry are the devices below it, as with lsblk -s."""
    columns = "NAME,KNAME,TYPE,MODEL,TRAN,LOG-SEC,PHY-SEC,SCHED,SIZE"
    answer = host.run_json(["lsblk", "-J", "-b", "-s", "-o", columns, *sources]) or {}
    return list(answer.get("blockdevices") or [])


def _leaves(devices: list[Facts]) -> Iterator[Facts]:
    """Yield lsblk's entries of the disks in a tree: devices without children, and multipath disks.

    The children of a multipath disk (type ``mpath``) are its paths. Its entry is that of the first
    path, which has the disk's model, with the disk's own name and size, and the number of paths as
    ``paths``.
    """
    for device in devices:
        below = list(_leaves(device.get("children") or []))
        if below and device.get("type") == "mpath":
            disk = {"kname": device["kname"], "size": device.get("size"), "paths": len(below)}
            yield {**below[0], **disk}
        elif below:
            yield from below
        elif device.get("kname"):
            yield device


def _common_facts(host: Host, disks: list[Facts]) -> Facts:
    """Return the facts that the disks of one filesystem have in common. A fact in which they differ is None.

    ``interface_limit`` of several disks is None too, because the rate depends on how files are spread over them.
    """
    common = dict(disks[0])
    for disk in disks[1:]:
        for key, value in disk.items():
            if common[key] != value:
                common[key] = None
    if len(disks) > 1:
        common["interface_limit"] = common["interface_limit_formula"] = None
    if common["interface_limit"] is None:
        host.missing("storage.interface_limit", _DATASHEET)
    if common["model"] is None:
        how = "write disk.model in the site file: as root, `smartctl -i` shows it (of a virtual disk: on its host)"
        host.missing("storage.model", how)
    return common


def _disk(host: Host, disk: Facts) -> Facts:
    """Return the facts of one disk from lsblk's entry and sysfs."""
    place = f"/sys/block/{disk['kname']}"
    path = str(host.resolve(place) or place)
    interface = disk.get("tran")
    if not interface:
        by_path = (name for pattern, name in _INTERFACES.items() if re.search(pattern, path))
        interface = next(by_path, None)
    limit, formula = _limit(host, interface, disk["kname"], path)
    rotational, pcie = host.read_switch(place, "queue/rotational"), None
    if interface == "virtio":
        rotational = None  # virtual disks report that they rotate by default
    # Number of paths by lsblk (``_leaves``) or, for NVMe's own multipath, number of controllers.
    paths = disk.get("paths")
    if interface == "nvme":
        device, count = _controller(host, disk["kname"])
        pcie = pcie_link(host, device) if device else None
        paths = paths or count
    return {
        "model": (disk.get("model") or "").strip() or None,
        "rotational": rotational,
        "interface": interface,
        "interface_limit": limit,
        "interface_limit_formula": formula,
        "logical_block_size": first_int(str(disk.get("log-sec"))),
        "physical_block_size": first_int(str(disk.get("phy-sec"))),
        "scheduler": disk.get("sched"),
        "write_cache": host.read(place, "queue/write_cache"),
        "size": first_int(str(disk.get("size"))),
        "pcie": pcie,
        "paths": paths,
    }


def _controller(host: Host, name: str) -> tuple[str | None, int | None]:
    """Return (PCI device of an NVMe disk, how many controllers it has).

    nvme0n1 belongs to the controller nvme0. Under multipath, nvme0n1/device is a subsystem instead,
    which has links to its controllers. The PCI device is None if there are several controllers, or
    if the subsystem has no links. The number is None if it is unknown.
    """
    links = host.glob("/sys/block", name, "device/nvme*")
    controllers = [link for link in links if re.search(r"/nvme\d+$", link)]
    if len(controllers) == 1:
        return f"/sys/class/nvme/{controllers[0].rpartition('/')[2]}/device", 1
    match = re.match(r"nvme\d+", name)
    is_subsystem = "nvme-subsys" in str(host.resolve(f"/sys/block/{name}/device"))
    if controllers or is_subsystem or not match:
        return None, len(controllers) or None
    return f"/sys/class/nvme/{match[0]}/device", 1


def _limit(host: Host, interface: str | None, name: str, path: str) -> _Limit:
    """Return (limit in B/s, its formula) of a disk's link at its negotiated speed; (None, None) if it is unknown.

    Args:
        host: the machine.
        interface: interface of the disk.
        name: name of the disk, such as ``nvme0n1``.
        path: path of the disk in /sys/devices, which names the port of a SATA or SAS disk.
    """
    if interface == "nvme":
        device, _ = _controller(host, name)
        if device is None:
            return None, None
        speed = host.read(device, "current_link_speed")
        return pcie_limit(speed, host.read(device, "current_link_width"))
    if interface == "sata" and (port := re.search(r"/ata(\d+)/", path)):
        return _coded(host.read(f"/sys/class/ata_link/link{port[1]}/sata_spd"), "SATA")
    if interface == "sas" and (ports := re.findall(r".*/port-[\d:]+", path)):
        # The last port in the path is the one next to the disk. The first of its phys, if it has any, stands for the link.
        for phy in sorted(Path(ports[-1]).glob("phy-*")):
            return _coded(host.read(f"/sys/class/sas_phy/{phy.name}/negotiated_linkrate"), "SAS")
    return None, None


def pcie_limit(speed: str | None, width: str | None) -> _Limit:
    """Return (limit in B/s, its formula) of a PCI Express link after line coding; (None, None) if it is unknown.

    Args:
        speed: text from sysfs, such as ``16.0 GT/s PCIe``.
        width: number of lanes as text, such as ``4``.

    Each may be None, if it could not be read.
    """
    match = re.match(r"(\d+(?:\.\d+)?) GT/s", speed or "")
    lanes = possible(first_int(width), "lanes")
    if not match or not lanes or float(match[1]) not in _PCIE_CODING:
        return None, None
    rate, coding = float(match[1]), _PCIE_CODING[float(match[1])]
    value = rate * 1e9 * lanes * coding / 8
    formula = f"PCIe {rate:g} GT/s x {lanes} lanes x {coding:.4g} line coding / 8"
    return value, f"{formula} = {value / 1e9:.3f} GB/s"


def _coded(link: str | None, name: str) -> _Limit:
    """Return (limit in B/s, its formula) of a SATA or SAS link, where 8 of 10 bits are data.

    Both are None if the speed is unknown, or so high that the link has another line coding.

    Args:
        link: text from sysfs, such as ``6.0 Gbps``.
        name: name of the link in the formula.
    """
    match = re.match(r"(\d+(?:\.\d+)?)\s*G", link or "")
    if not match or float(match[1]) > _SATA_AND_SAS_GBIT:
        return None, None
    rate = float(match[1])
    # Gbit/s x 8/10 / 8 is 1e8 B/s for each Gbit/s.
    return rate * 1e8, f"{name} {rate:g} Gbit/s x 8/10 line coding / 8 = {rate * 100:.0f} MB/s"
