"""The disk behind the scratch directory, from the filesystem down to the device and the link it
hangs on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from peakmark import files
from peakmark.machine.host import Facts, Host, first_int, pcie_link

RAM_FILESYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
# Nothing of the server's disk can be seen from here.
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
]
_DATASHEET = "write disk.throughput in the site file, from the disk's datasheet"

# GT/s of a PCI Express lane -> share of them that carries bytes (PCI-SIG base specification).
_PCIE_CODING = {
    2.5: 8 / 10,
    5.0: 8 / 10,
    8.0: 128 / 130,
    16.0: 128 / 130,
    32.0: 128 / 130,
    64.0: 242 / 256,
}
# What a device hangs on, by its path in /sys/devices.
_INTERFACES = {
    r"/virtio\d+/": "virtio",
    r"/nvme": "nvme",
    r"/ata\d+/": "sata",
    r"/usb\d+/": "usb",
    r"/end_device-": "sas",
    r"/vbd-": "xen",
    r"/loop\d+$": "loop",
}
_Limit = tuple[float | None, str | None]


def collect(host: Host, scratch: Path | None) -> Facts:
    """The ``storage`` part of the facts for ``scratch`` (default: $TMPDIR, else /tmp); sizes in
    bytes, limit in B/s.
    """
    directory = files.scratch(scratch)
    mount = _mount(host, directory)
    facts: Facts = {
        "scratch": str(directory),
        "free": None,
        "filesystem": mount.get("fstype"),
        "mount_point": mount.get("target"),
        "mount_options": mount.get("options"),
        "device": None,
        "members": None,
        **dict.fromkeys(_DISK_FACTS),
    }
    with suppress(OSError):
        facts["free"] = files.free(directory)
    # btrfs subvolumes and bind mounts are shown as /dev/sda1[/path].
    source = re.sub(r"\[.*\]$", "", mount.get("source") or "")
    disks = _disks(host, source) if source.startswith("/dev/") else []
    if not mount:
        how = "name an existing directory as scratch, and have findmnt (util-linux)"
        host.missing("storage.filesystem", how)
    elif facts["filesystem"] in RAM_FILESYSTEMS:
        facts["interface"] = "ram"
    elif disks:
        names = [disk["kname"] for disk in disks]
        facts["device"] = source.removeprefix("/dev/") if len(disks) > 1 else names[0]
        facts |= {"members": names, **_common_facts(host, [_disk(host, disk) for disk in disks])}
    else:
        facts["interface"] = "network" if facts["filesystem"] in NETWORK_FILESYSTEMS else None
        host.missing("storage.device", "write disk.model and its datasheet values in the site file")
    return facts


def _mount(host: Host, directory: Path) -> Facts:
    columns = "TARGET,SOURCE,FSTYPE,OPTIONS"
    mounts = host.run_json(["findmnt", "-J", "-T", str(directory), "-o", columns]) or {}
    # Of several mounts on one directory the last is the one that is seen.
    return dict((mounts.get("filesystems") or [{}])[-1])


def _disks(host: Host, source: str) -> list[Facts]:
    """The whole disks below a block device: through partitions, LVM, encryption and software RAID."""
    columns = "NAME,KNAME,TYPE,MODEL,TRAN,LOG-SEC,PHY-SEC,SCHED,SIZE"
    tree = host.run_json(["lsblk", "-J", "-b", "-s", "-o", columns, source]) or {}

    def leaves(nodes: list[Facts]) -> Iterator[Facts]:
        for node in nodes:
            if node.get("children"):
                yield from leaves(node["children"])
            elif node.get("kname"):
                yield node

    disks: dict[str, Facts] = {}
    for disk in leaves(tree.get("blockdevices") or []):
        disks.setdefault(disk["kname"], disk)
    return list(disks.values())


def _common_facts(host: Host, disks: list[Facts]) -> Facts:
    """Facts of the disk; with several behind one filesystem only those that all share, and no
    limit.
    """
    common = {
        key: value if all(disk[key] == value for disk in disks) else None
        for key, value in disks[0].items()
    }
    common["size"] = sum(disk["size"] or 0 for disk in disks) or None
    if len(disks) > 1:
        common["interface_limit"] = common["interface_limit_formula"] = None
        host.missing("storage.interface_limit", f"several disks are behind it: {_DATASHEET}")
    elif common["interface_limit"] is None:
        host.missing("storage.interface_limit", _DATASHEET)
    if common["model"] is None:
        how = "write disk.model in the site file: as root, `smartctl -i` shows it"
        host.missing("storage.model", how)
    return common


def _disk(host: Host, disk: Facts) -> Facts:
    """Facts of one disk, by lsblk and sysfs."""
    place = f"/sys/block/{disk['kname']}"
    path = str(host.resolve(place) or place)
    by_path = (name for pattern, name in _INTERFACES.items() if re.search(pattern, path))
    interface = disk.get("tran") or next(by_path, None)
    limit, formula = _limit(host, interface, disk["kname"], path)
    # A virtual disk claims to rotate by default: that says nothing about what is behind it.
    tells_rotation = interface != "virtio"
    return {
        "model": (disk.get("model") or "").strip() or None,
        "rotational": host.read_switch(place, "queue/rotational") if tells_rotation else None,
        "interface": interface,
        "interface_limit": limit,
        "interface_limit_formula": formula,
        "logical_block_size": first_int(str(disk.get("log-sec"))),
        "physical_block_size": first_int(str(disk.get("phy-sec"))),
        "scheduler": disk.get("sched"),
        "write_cache": host.read(place, "queue/write_cache"),
        "size": first_int(str(disk.get("size"))),
        "pcie": pcie_link(host, _controller(disk["kname"])) if interface == "nvme" else None,
    }


def _controller(name: str) -> str:
    """The PCI device of an NVMe disk: nvme0c0n1 (multipath) and nvme0n1 belong to nvme0."""
    controller = re.match(r"nvme\d+", name)
    return f"/sys/class/nvme/{controller[0] if controller else name}/device"


def _limit(host: Host, interface: str | None, name: str, path: str) -> _Limit:
    """Bytes per second the link can carry at the speed it has negotiated, and how that is computed."""
    if interface == "nvme":
        device = _controller(name)
        speed, width = (host.read(f"{device}/current_link_{part}") for part in ("speed", "width"))
        return pcie_limit(speed, width)
    if interface == "sata" and (port := re.search(r"/ata(\d+)/", path)):
        return _coded(host.read(f"/sys/class/ata_link/link{port[1]}/sata_spd"), "SATA")
    if interface == "sas" and (ports := re.findall(r".*/port-[\d:]+", path)):
        for phy in sorted(Path(ports[-1]).glob("phy-*")):
            return _coded(host.read(f"/sys/class/sas_phy/{phy.name}/negotiated_linkrate"), "SAS")
    return None, None


def pcie_limit(speed: str | None, width: str | None) -> _Limit:
    """Limit of a PCI Express link, from sysfs texts such as ``16.0 GT/s PCIe`` and ``4``, less its
    line coding.
    """
    match, lanes = re.match(r"(\d+(?:\.\d+)?) GT/s", speed or ""), first_int(width)
    if not match or not lanes or float(match[1]) not in _PCIE_CODING:
        return None, None
    rate, coding = float(match[1]), _PCIE_CODING[float(match[1])]
    value = rate * 1e9 * lanes * coding / 8
    formula = f"PCIe {rate:g} GT/s x {lanes} lanes x {coding:.4g} line coding / 8"
    return value, f"{formula} = {value / 1e9:.3f} GB/s"


def _coded(link: str | None, name: str) -> _Limit:
    """SATA and SAS up to 12 Gbit/s: 8 of 10 bits on the wire are data."""
    match = re.match(r"(\d+(?:\.\d+)?)\s*G", link or "")
    if not match or float(match[1]) > 12.0:
        return None, None
    rate = float(match[1])
    return rate * 1e8, f"{name} {rate:g} Gbit/s x 8/10 line coding / 8 = {rate * 100:.0f} MB/s"
