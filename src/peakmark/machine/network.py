"""The network interface that is measured: driver, speed, MTU. ethtool first, sysfs where it does
not answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from peakmark.machine.host import Host, first_int

# InfiniBand names its speed by signalling rate; what carries data is less up to FDR (IBTA: 8b/10b,
# then 64b/66b). The kernel gives FDR10 as what it carries, 10 Gbit/s a lane.
_INFINIBAND_DATA = {"SDR": 8 / 10, "DDR": 8 / 10, "QDR": 8 / 10, "FDR": 64 / 66}

# Modes of a bond (kernel, Documentation/networking/bonding.rst) in which one member carries all
# that is received.
_ONE_MEMBER = {
    "active-backup": "the active one",
    "broadcast": "each carries the same",
    "balance-tlb": "one receives",
}


def collect(host: Host, interface: str | None = None) -> dict[str, Any]:
    """The ``network`` part of the facts; speed in bit/s. ``interface``: default is the one of the
    default route.
    """
    name = interface or _default_interface(host)
    facts: dict[str, Any] = dict.fromkeys(
        ("interface", "kind", "driver", "speed_bps", "speed_note", "mtu", "members")
    )
    facts["loopback"] = False
    if name is None or not host.path(f"/sys/class/net/{name}").exists():
        how = (
            f"no interface {name!r}: see `ip link`"
            if name
            else "no default route: name the interface to measure"
        )
        host.missing("network.interface", how)
        facts["interface"] = name
        return facts
    place = f"/sys/class/net/{name}"
    kind = _kind(host, name)
    facts.update(
        interface=name, kind=kind, mtu=host.read_int(f"{place}/mtu"), loopback=kind == "loopback"
    )
    facts["driver"] = _driver(host, name)
    if kind == "loopback":
        facts["speed_note"] = "loopback has no line rate"
        return facts
    facts["members"] = _members(host, name)
    speed, note = _speed(host, name, kind, facts["members"])
    facts["speed_bps"], facts["speed_note"] = speed, note
    if kind == "bond":
        facts["mode"] = _mode(host, name)
        facts["stream_bps"] = (
            _of_members(host, facts["members"] or [], max)
            if facts["mode"] != "balance-rr"
            else None
        )
    if speed is None:
        host.missing("network.speed_bps", f"write network.speed_bps in the site file ({note})")
    return facts


def _default_interface(host: Host) -> str | None:
    routes = host.run_json(["ip", "-j", "route", "show", "default"])
    for route in routes if isinstance(routes, list) else []:
        if route.get("dev"):
            return str(route["dev"])
    for line in (host.read("/proc/net/route") or "").splitlines()[1:]:
        fields = line.split()
        if len(fields) > 1 and fields[1] == "00000000":
            return fields[0]
    return None


def _kind(host: Host, name: str) -> str:
    place = f"/sys/class/net/{name}"
    kind = host.read(
        f"{place}/type"
    )  # ARPHRD_* of the kernel: 772 loopback, 32 InfiniBand, 1 Ethernet
    if kind == "772":
        return "loopback"
    if host.path(f"{place}/bonding").exists():
        return "bond"
    if kind == "32":
        return "infiniband"
    return "ethernet" if host.path(f"{place}/device").exists() else "virtual"


def _driver(host: Host, name: str) -> str | None:
    match = re.search(r"^driver: (.+)$", host.run(["ethtool", "-i", name]) or "", re.M)
    if match:
        return match.group(1).strip()
    link = host.resolve(f"/sys/class/net/{name}/device/driver")
    return link.name if link else None


def _members(host: Host, name: str) -> list[str] | None:
    """Interfaces below a bond, bridge or VLAN."""
    bonded = host.read(f"/sys/class/net/{name}/bonding/slaves")
    if bonded:
        return bonded.split()
    lower = [
        path.removeprefix(f"/sys/class/net/{name}/lower_")
        for path in host.glob(f"/sys/class/net/{name}/lower_*")
    ]
    return lower or None


def _speed(
    host: Host, name: str, kind: str, members: list[str] | None
) -> tuple[float | None, str | None]:
    """(bit/s, remark). Virtual interfaces claim speeds that mean nothing, so only what is backed by
    a device counts.
    """
    if kind == "infiniband":
        return _infiniband(host, name)
    if kind == "virtual":
        if not members:
            return None, f"{name} is a virtual interface: its speed is not that of a wire"
        speed, note = _speed(host, members[0], _kind(host, members[0]), _members(host, members[0]))
        return speed, note or f"that of {members[0]} below {name}"
    match = re.search(r"Speed: (\d+)Mb/s", host.run(["ethtool", name]) or "")
    mbit = int(match.group(1)) if match else host.read_int(f"/sys/class/net/{name}/speed")
    if mbit is None or mbit <= 0:
        return None, f"the driver of {name} does not tell a speed"
    if kind == "bond" and members:
        return _bond(host, name, members, mbit * 1e6)
    return mbit * 1e6, None


def _bond(host: Host, name: str, members: list[str], of_bond: float) -> tuple[float, str]:
    """(bit/s, remark) of a bond: what its members together can receive depends on its mode."""
    mode, names = _mode(host, name), " and ".join(members)
    if mode in _ONE_MEMBER:
        active = host.read(f"/sys/class/net/{name}/bonding/active_slave")
        speed = _of_members(host, [active] if active else members, max) or of_bond
        return (
            speed,
            f"bond in mode {mode}: of {names} {_ONE_MEMBER[mode]}{f', now {active}' if active else ''}",
        )
    speed = _of_members(host, members, sum) or of_bond
    single = "" if mode == "balance-rr" else ": a single stream takes one of them"
    return speed, f"bond in mode {mode or 'unknown'}, sum over {names}{single}"


def _mode(host: Host, name: str) -> str | None:
    """``802.3ad`` of the kernel's ``802.3ad 4``."""
    return next(iter((host.read(f"/sys/class/net/{name}/bonding/mode") or "").split()), None)


def _of_members(
    host: Host, members: list[str], how: Callable[[list[float]], float]
) -> float | None:
    """Sum or largest of the members' speeds in bit/s; None where one of them tells none."""
    speeds = [_speed(host, member, _kind(host, member), None)[0] for member in members]
    known = [speed for speed in speeds if speed]
    return how(known) if known and len(known) == len(speeds) else None


def _infiniband(host: Host, name: str) -> tuple[float | None, str | None]:
    for port in host.glob(f"/sys/class/net/{name}/device/infiniband/*/ports/*"):
        text = host.read(f"{port}/rate")
        match = re.match(r"([\d.]+) Gb/sec \((\d+)X (\w+)\)", text or "")
        if match:
            generation = match.group(3)
            coding = _INFINIBAND_DATA.get(generation, 1.0)
            lane = {"FDR": 14.0625}.get(generation, float(match.group(1)) / int(match.group(2)))
            rate = lane * int(match.group(2)) * coding * 1e9
            return rate, f"{text}: {rate / 1e9:.4g} Gbit/s of data after line coding"
    speed = first_int(host.read(f"/sys/class/net/{name}/speed"))
    return (speed * 1e6, None) if speed else (None, f"no InfiniBand port of {name} tells its rate")
