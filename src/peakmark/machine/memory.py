"""Main memory: size always; kind, speed and channels where udev or EDAC let an ordinary user read
them.
"""

from __future__ import annotations

import re
from typing import Any

from peakmark.machine.host import Host, chosen, first_int

_HOW = "write memory.{} in the site file: as root, `dmidecode -t memory` shows it"
_CHANNEL = re.compile(r"channel[ _]?([a-z0-9]+?)(?=[-_ ]|$)", re.I)


def collect(host: Host) -> dict[str, Any]:
    """The ``memory`` part of the facts: bytes, MT/s, and the channels of the whole node that hold a
    module.
    """
    meminfo = host.meminfo()
    modules = _udev_modules(host)
    kind = _common([module.get("TYPE") for module in modules])
    speed = _slowest(modules)
    channels, channels_source = _channels_udev(modules), "udev (SMBIOS locators)"
    edac_channels, edac_kind = _edac(host)
    if channels is None:
        channels, channels_source = edac_channels, "EDAC"
    for name, value in (("type", kind or edac_kind), ("speed_mts", speed), ("channels", channels)):
        if value is None:
            host.missing(f"memory.{name}", _HOW.format(name))
    return {
        "total": meminfo.get("MemTotal"),
        "available": meminfo.get("MemAvailable"),
        "type": kind or edac_kind,
        "speed_mts": speed,
        "channels": channels,
        "channels_source": channels_source if channels is not None else None,
        "modules": len(modules) or None,
        "huge_pages": {
            "size": meminfo.get("Hugepagesize"),
            "total": meminfo.get("HugePages_Total"),
            "free": meminfo.get("HugePages_Free"),
        },
        "transparent_huge_pages": chosen(host.read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "transparent_huge_pages_defrag": chosen(
            host.read("/sys/kernel/mm/transparent_hugepage/defrag")
        ),
        "swap_total": meminfo.get("SwapTotal"),
    }


def _udev_modules(host: Host) -> list[dict[str, str]]:
    """Populated memory modules as udev stored them from SMBIOS (systemd 248 and later); readable by
    all users.
    """
    text = (
        host.run(["udevadm", "info", "--query=property", "--path=/sys/devices/virtual/dmi/id"])
        or ""
    )
    slots: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        match = re.match(r"(?:E: )?MEMORY_DEVICE_(\d+)_(\w+?)=(.*)$", line)
        if match:
            slots.setdefault(match.group(1), {})[match.group(2)] = match.group(3).strip()
    return [
        slot
        for slot in slots.values()
        if slot.get("PRESENT") != "0" and first_int(slot.get("SIZE"))
    ]


def _slowest(modules: list[dict[str, str]]) -> int | None:
    """The configured transfer rate of the slowest module: all run at it."""
    speeds = [first_int(module.get("CONFIGURED_SPEED_MTS")) for module in modules]
    known = [speed for speed in speeds if speed]
    return min(known) if known and len(known) == len(speeds) else None


def _channels_udev(modules: list[dict[str, str]]) -> int | None:
    """Distinct channels named by the modules' locators; None where the firmware names none ("DIMM
    3" says nothing).
    """
    places = set()
    for module in modules:
        bank, slot = module.get("BANK_LOCATOR", ""), module.get("LOCATOR", "")
        channel = _CHANNEL.search(bank) or _CHANNEL.search(slot)
        if channel is None:
            return None
        owner = re.findall(
            r"(?:\bP|CPU|NODE|PROC|SOCKET|CONTROLLER)[ _]?\d+", f"{bank} {slot}", re.I
        )
        places.add((*sorted({word.upper() for word in owner}), channel.group(1).upper()))
    return len(places) or None


def _edac(host: Host) -> tuple[int | None, str | None]:
    """(channels that hold a module, memory type) from the kernel's error detection drivers, where
    they are loaded.
    """
    places, kinds = set(), []
    for dimm in host.glob("/sys/devices/system/edac/mc/mc[0-9]*/dimm[0-9]*"):
        location = re.search(r"channel (\d+)", host.read(f"{dimm}/dimm_location") or "")
        if location and host.read_int(f"{dimm}/size"):
            places.add((dimm.rpartition("/")[0], location.group(1)))
            kinds.append(host.read(f"{dimm}/dimm_mem_type"))
    return len(places) or None, _common(kinds)


def _common(values: list[str | None]) -> str | None:
    """The value all share, or None when there is none or they differ."""
    known = {value for value in values if value and value != "Unknown"}
    return known.pop() if len(known) == 1 else None
