"""The disk behind the scratch directory, from the filesystem down to the device and the link it
hangs on.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from peakmark import files
from peakmark.machine.host import Host, chosen, first_int

RAM_FILESYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
# Nothing of the server's disk can be seen from here.
NETWORK_FILESYSTEMS = (
    *(
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
    ),
    *("fuse.sshfs", "9p", "virtiofs", "orangefs", "panfs", "wekafs"),
)
_FACTS = (
    *(
        "filesystem",
        "mount_point",
        "mount_options",
        "device",
        "members",
        "model",
        "rotational",
        "interface",
    ),
    *(
        "interface_limit",
        "interface_limit_formula",
        "logical_block_size",
        "physical_block_size",
        "scheduler",
    ),
    *("write_cache", "size", "free"),
)
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
_PLACES = {
    r"/virtio\d+/": "virtio",
    r"/nvme": "nvme",
    r"/ata\d+/": "sata",
    r"/usb\d+/": "usb",
    r"/end_device-": "sas",
    r"/vbd-": "xen",
}


def collect(host: Host, scratch: Path | None) -> dict[str, Any]:
    """The ``storage`` part of the facts for ``scratch`` (default: $TMPDIR, else /tmp); sizes in
    bytes, limit in B/s.
    """
    directory = files.scratch(scratch)
    facts: dict[str, Any] = dict.fromkeys(_FACTS)
    facts["scratch"] = str(directory)
    facts["free"] = _free(directory)
    mount = _mount(host, directory)
    if not mount:
        host.missing(
            "storage.filesystem",
            "name an existing directory as scratch, and have findmnt (util-linux)",
        )
        return facts
    facts["filesystem"], facts["mount_point"] = mount.get("fstype"), mount.get("target")
    facts["mount_options"] = mount.get("options")
    if facts["filesystem"] in RAM_FILESYSTEMS:
        facts["interface"] = "ram"
        return facts
    # btrfs subvolumes and bind mounts are shown as /dev/sda1[/path].
    source = re.sub(r"\[.*\]$", "", mount.get("source") or "")
    if not source.startswith("/dev/"):
        facts["interface"] = "network" if facts["filesystem"] in NETWORK_FILESYSTEMS else None
        host.missing("storage.device", "write disk.model and its datasheet values in the site file")
        return facts
    disks = _disks(host, source)
    if not disks:
        host.missing("storage.device", "write disk.model and its datasheet values in the site file")
        return facts
    facts["device"] = source.removeprefix("/dev/") if len(disks) > 1 else disks[0]["kname"]
    facts["members"] = [disk["kname"] for disk in disks]
    facts.update(_device(host, disks))
    return facts


def _mount(host: Host, directory: Path) -> dict[str, Any]:
    mounts = host.run_json(
        ["findmnt", "-J", "-T", str(directory), "-o", "TARGET,SOURCE,FSTYPE,OPTIONS"]
    )
    filesystems = mounts.get("filesystems") if isinstance(mounts, dict) else None
    # Of several mounts on one directory the last is the one that is seen.
    return dict(filesystems[-1]) if filesystems else {}


def _free(directory: Path) -> int | None:
    try:
        return files.free(directory)
    except OSError:
        return None


def _disks(host: Host, source: str) -> list[dict[str, Any]]:
    """The whole disks below a block device: through partitions, LVM, encryption and software RAID."""
    columns = "NAME,KNAME,TYPE,MODEL,ROTA,TRAN,LOG-SEC,PHY-SEC,SCHED,SIZE"
    tree = host.run_json(["lsblk", "-J", "-b", "-s", "-o", columns, source])
    disks: dict[str, dict[str, Any]] = {}

    def walk(nodes: Any) -> None:
        for node in nodes if isinstance(nodes, list) else []:
            if node.get("children"):
                walk(node["children"])
            elif node.get("kname"):
                disks.setdefault(str(node["kname"]), node)

    walk(tree.get("blockdevices") if isinstance(tree, dict) else None)
    return list(disks.values())


def _device(host: Host, disks: list[dict[str, Any]]) -> dict[str, Any]:
    """Facts of the disk; with several behind one filesystem only what all of them share, and no
    limit.
    """
    facts = [_disk(host, disk) for disk in disks]
    merged = {
        key: facts[0][key] if all(fact[key] == facts[0][key] for fact in facts) else None
        for key in facts[0]
    }
    merged["size"] = sum(fact["size"] or 0 for fact in facts) or None
    if len(facts) > 1:
        merged["interface_limit"] = merged["interface_limit_formula"] = None
        host.missing("storage.interface_limit", f"several disks are behind it: {_DATASHEET}")
    elif merged["interface_limit"] is None:
        host.missing("storage.interface_limit", _DATASHEET)
    if merged["model"] is None:
        host.missing(
            "storage.model", "write disk.model in the site file: as root, `smartctl -i` shows it"
        )
    return merged


def _disk(host: Host, disk: dict[str, Any]) -> dict[str, Any]:
    name = str(disk["kname"])
    queue = f"/sys/block/{name}/queue"
    path = str(host.resolve(f"/sys/block/{name}") or "")
    interface = _interface(path, name, disk.get("tran"))
    limit, formula = _limit(host, interface, name, path)
    # A virtual disk claims to rotate by default: that says nothing about what is behind it.
    rotational = None
    if interface != "virtio":
        rotational, switched = host.switch(f"{queue}/rotational"), disk.get("rota")
        rotational = bool(switched) if rotational is None and switched is not None else rotational
    return {
        "model": (disk.get("model") or host.read(f"/sys/block/{name}/device/model") or "").strip()
        or None,
        "rotational": rotational,
        "interface": interface,
        "interface_limit": limit,
        "interface_limit_formula": formula,
        "logical_block_size": first_int(str(disk.get("log-sec") or ""))
        or host.read_int(f"{queue}/logical_block_size"),
        "physical_block_size": first_int(str(disk.get("phy-sec") or ""))
        or host.read_int(f"{queue}/physical_block_size"),
        "scheduler": disk.get("sched") or chosen(host.read(f"{queue}/scheduler")),
        "write_cache": host.read(f"{queue}/write_cache"),
        "size": first_int(str(disk.get("size") or "")),
    }


def _interface(path: str, name: str, transport: str | None) -> str | None:
    if transport:
        return str(transport)
    for pattern, interface in _PLACES.items():
        if re.search(pattern, path):
            return interface
    return "loop" if name.startswith("loop") else None


def _limit(
    host: Host, interface: str | None, name: str, path: str
) -> tuple[float | None, str | None]:
    """Bytes per second the link can carry at the speed it has negotiated, and how that is computed."""
    if interface == "nvme":
        # nvme0c0n1 (multipath) and nvme0n1 both belong to the controller nvme0.
        controller = re.match(r"nvme\d+", name)
        device = f"/sys/class/nvme/{controller.group(0) if controller else name}/device"
        return pcie_limit(
            host.read(f"{device}/current_link_speed"), host.read(f"{device}/current_link_width")
        )
    if interface == "sata" and (port := re.search(r"/ata(\d+)/", path)):
        link = host.read(f"/sys/class/ata_link/link{port.group(1)}/sata_spd")
        return _coded(link, "SATA")
    if interface == "sas":
        ports = re.findall(r".*/port-[\d:]+", path)
        phys = sorted(Path(ports[-1]).glob("phy-*")) if ports else []
        rates = [host.read(f"/sys/class/sas_phy/{phy.name}/negotiated_linkrate") for phy in phys]
        return _coded(rates[0], "SAS") if rates else (None, None)
    return None, None


def pcie_limit(speed: str | None, width: str | None) -> tuple[float | None, str | None]:
    """Limit of a PCI Express link, from sysfs texts such as ``16.0 GT/s PCIe`` and ``4``, less its
    line coding.
    """
    match = re.match(r"([\d.]+) GT/s", speed or "")
    lanes = first_int(width)
    if not match or not lanes or float(match.group(1)) not in _PCIE_CODING:
        return None, None
    rate = float(match.group(1))
    coding = _PCIE_CODING[rate]
    value = rate * 1e9 * lanes * coding / 8
    return (
        value,
        f"PCIe {rate:g} GT/s x {lanes} lanes x {coding:.4g} line coding / 8 = {value / 1e9:.3f} GB/s",
    )


def _coded(link: str | None, name: str) -> tuple[float | None, str | None]:
    """SATA and SAS up to 12 Gbit/s: 8 of 10 bits on the wire are data."""
    match = re.match(r"([\d.]+)\s*G", link or "")
    if not match or float(match.group(1)) > 12.0:
        return None, None
    rate = float(match.group(1))
    return rate * 1e8, f"{name} {rate:g} Gbit/s x 8/10 line coding / 8 = {rate * 100:.0f} MB/s"
