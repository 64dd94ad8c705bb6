"""Read facts of network interfaces: driver, speed, MTU, addresses, routes and traffic shaping."""

from __future__ import annotations

import fcntl
import re
import socket
import struct
from contextlib import suppress

from peakmark.errors import MeasurementError
from peakmark.machine.host import Facts, Host, first_int, pcie_link, possible

_INFINIBAND_DATA = {"SDR": 8 / 10, "DDR": 8 / 10, "QDR": 8 / 10, "FDR": 64 / 66}
"""Generation of InfiniBand -> share of its signalling rate that carries data.

Source: IBTA, line coding 8b/10b, then 64b/66b. Rates of later generations, and the rate of FDR10, are
data rates already.
"""
_FDR_GBIT = 14.0625
"""Signalling rate of a lane of FDR in Gbit/s. Linux shows a multiple of 14 instead."""

_STRIPED = "balance-rr"
"""Mode of a bond that sends the packets of one stream over all members."""
_HASHED = ("802.3ad", "balance-xor")
"""Modes of a bond that choose the member by a hash of addresses or, by the policy ``layer3+4``, also of ports."""
_PARAVIRTUAL = ("virtio_net", "vmxnet3", "hv_netvsc")
"""Drivers of the interfaces of virtual machines. The speed that they report is no limit: no wire has it."""
_UNKNOWN_MBIT = 65535
"""Speed that older drivers report without a cable: -1 in 16 bits."""
_Speed = tuple[float | None, str | None]
"""A line rate in bit/s, and a remark about it. Each is None if there is none."""

_SHAPER = re.compile(r"qdisc (?:tbf|netem|htb|hfsc|cbq|cake)\b")
"""Queue disciplines that limit traffic (tc(8)). All others only order packets."""
_SHAPING = re.compile(r"(?<=^qdisc )\w+|(?:rate|bandwidth|delay|loss) \S+")
"""Name and settings of the discipline in a line of ``tc``."""
_SIOCGIFADDR = 0x8915  # linux/sockios.h
_DISCARD_PORT = 9
"""Port to which a UDP socket is connected to find the route. No packet is sent."""


def collect(host: Host, interface: str | None = None) -> Facts:
    """Return the ``network`` part of the facts.

    Args:
        host: the machine.
        interface: name of the interface; by default the interface of the default route.
    """
    name = interface or _default_interface(host)
    place = f"/sys/class/net/{name}"
    facts: Facts = {
        "interface": name,
        "kind": None,
        "driver": None,
        "speed_bps": None,
        "speed_note": None,
        "mtu": host.read_int(place, "mtu"),
        "members": None,
        "loopback": False,
    }
    if name is None or not host.path(place).exists():
        how = "no default route: name the interface to measure"
        if name:
            how = f"no interface {name!r}: see `ip link`"
        host.missing("network.interface", how)
        return facts
    facts |= {"kind": _kind(host, name), "driver": _driver(host, name)}
    if facts["kind"] == "loopback":
        return facts | {"loopback": True, "speed_note": "loopback has no line rate"}
    facts["pcie"] = pcie_link(host, f"{place}/device")
    facts["members"] = _members(host, name)
    facts["speed_bps"], facts["speed_note"] = _speed(host, name)
    if stream := _stream(host, name):
        facts["stream_bps"] = stream
    if facts["speed_bps"] is None:
        how = f"write network.speed_bps in the site file ({facts['speed_note']})"
        host.missing("network.speed_bps", how)
    return facts


def _default_interface(host: Host) -> str | None:
    """Return the interface of the default route with the lowest metric: of IPv4 or, without one, of IPv6."""
    metrics: dict[str, int] = {}
    for line in (host.read("/proc/net/route") or "").splitlines():
        # Interface, destination, gateway, flags, two counters, metric and mask. Short lines are filled with empty texts.
        name, destination, *_, metric, mask = [*line.split(), *[""] * 8][:8]
        # A default route has destination and mask 0. Routes that reject packets have the interface ``*``.
        if name != "*" and destination == mask == "00000000":
            metrics[name] = min(int(metric), metrics.get(name, int(metric)))
    if not metrics:
        # Length of the destination's prefix, metric in hexadecimal, and interface. Linux lists a default
        # route through ``lo`` that rejects packets.
        route = r"(?m)^0{32} 00 \w+ \w+ \w+ (\w+) .* (\S+)$"
        for metric, name in re.findall(route, host.read("/proc/net/ipv6_route") or ""):
            if name != "lo":
                metrics[name] = min(int(metric, 16), metrics.get(name, int(metric, 16)))
    return min(metrics, key=metrics.__getitem__, default=None)


def _kind(host: Host, name: str) -> str:
    """Return the kind of an interface: loopback, bond, infiniband, ethernet or virtual (without a device).

    A team counts as a bond. Linux does not mark teams: an interface counts as one if it is no
    bridge and has several interfaces with devices below it.
    """
    place = f"/sys/class/net/{name}"
    # ARPHRD_* of the kernel: 772 loopback, 32 InfiniBand, 1 Ethernet.
    number = host.read(place, "type")
    if number == "772":
        return "loopback"
    if host.path(f"{place}/bonding").exists():
        return "bond"
    if number == "32":
        return "infiniband"
    if host.path(f"{place}/device").exists():
        return "ethernet"
    is_team = not host.path(f"{place}/bridge").exists() and len(_wired(host, name)) > 1
    return "bond" if is_team else "virtual"


def _driver(host: Host, name: str) -> str | None:
    """Return the name of an interface's driver from ethtool, or from sysfs if ethtool names none."""
    match = re.search(r"(?m)^driver: (.+)$", host.run(["ethtool", "-i", name]) or "")
    if match:
        return match[1].strip()
    link = host.resolve(f"/sys/class/net/{name}/device/driver")
    return link.name if link else None


def _members(host: Host, name: str) -> list[str] | None:
    """Return the names of the interfaces below a bond, bridge or VLAN; None for an interface with none below it."""
    bonded = host.read(f"/sys/class/net/{name}/bonding/slaves")
    if bonded:
        return bonded.split()
    lower = host.glob(f"/sys/class/net/{name}/lower_*")
    return [path.rpartition("/lower_")[2] for path in lower] or None


def _wired(host: Host, name: str) -> list[str]:
    """Return the interfaces below a virtual one that lead to a device and are not down.

    Interfaces of virtual machines and containers lead to none, and are left out.
    """
    wired = []
    for member in _members(host, name) or ():
        is_down = host.read(f"/sys/class/net/{member}/operstate") == "down"
        if not is_down and (_kind(host, member) != "virtual" or _wired(host, member)):
            wired.append(member)
    return wired


def _speed(host: Host, name: str) -> _Speed:
    """Return the line rate and a remark about it.

    The speed that a virtual interface reports is ignored, because it is meaningless. Its rate is that of the
    interfaces below it, if these are equally fast.
    """
    kind, wired = _kind(host, name), _wired(host, name)
    if kind == "infiniband":
        return _infiniband(host, name)
    if _driver(host, name) in _PARAVIRTUAL or (kind == "virtual" and not wired):
        return (
            None,
            f"{name} is a virtual interface, which has no line rate and may end on the same machine",
        )
    if kind == "virtual":
        speeds = {_speed(host, member) for member in wired}
        if len({speed for speed, _ in speeds}) > 1:
            return None, f"{name} sends through {' or '.join(wired)}, which differ in speed"
        speed, note = _speed(host, wired[0])
        return speed, note or f"speed of {wired[0]}, below {name}"
    mbit = host.read_int(f"/sys/class/net/{name}/speed")
    if mbit is None or mbit == _UNKNOWN_MBIT or not possible(mbit * 1e6, "bit/s"):
        return None, f"the driver of {name} reports no speed"
    members = _members(host, name)
    if kind == "bond" and members:
        return _bond_speed(host, name, members, mbit * 1e6)
    return mbit * 1e6, None


def _bond_speed(host: Host, name: str, members: list[str], reported: float) -> _Speed:
    """Return the highest rate between two nodes over a bond, in bit/s, and a remark about it.

    Usually all streams between two nodes use one member, and the rate is that of the fastest
    member. It is the sum of all members for a bond that sends each stream over all members
    (``balance-rr``), for a bond that chooses the member by the ports of a stream, and for a team,
    whose policy is unknown. It is never above ``reported``.

    Args:
        host: the machine.
        name: name of the bond.
        members: names of its members.
        reported: speed of the bond in bit/s; also taken as that of a member without a speed.
    """
    rates = [_speed(host, member)[0] or reported for member in members]
    mode = _mode(host, name)
    # ``layer3+4`` and ``encap3+4`` hash ports too. Without the file, ports are taken to count: the limit is then
    # rather too high than too low.
    policy = host.read(f"/sys/class/net/{name}/bonding/xmit_hash_policy") or "3+4"
    by_port = mode in _HASHED and "3+4" in policy
    kind = f"bond in mode {mode}" if mode else "team"  # only bonds have a mode
    most, streams = sum(rates), "a single stream uses one"
    if mode == _STRIPED:
        streams = "a single stream uses all"
    elif mode and not by_port:
        most, streams = max(rates), "all streams between two nodes use one"
    return min(reported, most), f"{kind} over {' and '.join(members)}: {streams} of them"


def _stream(host: Host, name: str) -> float | None:
    """Return the rate in bit/s of one stream through the bond at or below an interface.

    A stream uses one member of the bond: at most the fastest. Return None without a bond, for a bond whose
    streams use all members, and if no member reports a speed.
    """
    members = _members(host, name) or []
    if _kind(host, name) != "bond":
        rates = [_stream(host, member) for member in members]
    elif _mode(host, name) == _STRIPED:
        return None
    else:
        rates = [_speed(host, member)[0] for member in members]
    return max(filter(None, rates), default=None)


def _mode(host: Host, name: str) -> str | None:
    """Return the name of a bond's mode. The kernel writes name and number, as in ``802.3ad 4``."""
    return (host.read(f"/sys/class/net/{name}/bonding/mode") or "").partition(" ")[0] or None


def _infiniband(host: Host, name: str) -> _Speed:
    """Return the data rate of the InfiniBand port of an interface in bit/s, and a remark about it.

    Without a port that is up, the rate is the speed that the interface reports, without a remark.
    """
    place = f"/sys/class/net/{name}"
    ports = host.glob(f"{place}/device/infiniband/*/ports/*")
    # The interface numbers the ports of a device from 0 (``dev_id``, ``dev_port``), the folder ``ports`` from 1. Before
    # Linux 4.19, ``dev_port`` is 0 for each port, so take the larger number.
    numbers = [text for text in host.read_files(place, "dev_id", "dev_port") if text]
    if len(ports) > 1 and numbers:
        index = max(int(text, 0) for text in numbers)
        ports = [port for port in ports if port.endswith(f"/{index + 1}")]
    # The rate of a port is a text such as ``56 Gb/sec (4X FDR)``: lanes and generation in brackets.
    for port in ports:
        text = host.read(port, "rate")
        is_down = (host.read(port, "state") or "").endswith("DOWN")
        match = re.match(r"(\d+(?:\.\d+)?) Gb/sec \((\d+)X (\w+)\)", text or "")
        if match and float(match[1]) and int(match[2]) and not is_down:
            lanes, generation = int(match[2]), match[3]
            # Linux shows a rounded rate for FDR, so use the exact rate of a lane.
            lane = _FDR_GBIT if generation == "FDR" else float(match[1]) / lanes
            rate = lane * lanes * _INFINIBAND_DATA.get(generation, 1.0) * 1e9
            return rate, f"{text}: {rate / 1e9:.4g} Gbit/s of data after line coding"
    speed = first_int(host.read(f"{place}/speed"))
    if speed:
        return speed * 1e6, None
    return None, f"no InfiniBand port of {name} reports its rate"


def interface_of_transport(host: Host, transport: str) -> str | None:
    """Return the interface of the InfiniBand or RoCE device in a transport such as ``rc_mlx5/mlx5_0:1``.

    Return None if the transport names no device, or if the device has no interface.
    """
    device = re.search(r"/(\w+):\d+", transport)
    if device is None:
        return None
    names = host.glob(f"/sys/class/infiniband/{device[1]}/device/net/*")
    return names[0].rpartition("/")[2] if names else None


def address_of(interface: str) -> str:
    """Return the IPv4 address of an interface.

    Raises:
        MeasurementError: there is no such interface, or it has no IPv4 address.
    """
    addresses = _addresses()
    if interface in addresses:
        return addresses[interface]
    known = ", ".join(addresses) or "none"
    raise MeasurementError(
        f"{socket.gethostname()} has no interface {interface!r} with an IPv4 address;"
        f" interfaces with one: {known}",
        "change interface:",
    )


def local_address(peer: str) -> str:
    """Return this machine's address on the route to a peer (name or IPv4 address).

    Raises:
        MeasurementError: there is no route to the peer.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # This sends no packet: Linux chooses the route, and with it the local address.
            probe.connect((peer, _DISCARD_PORT))
        except OSError as error:
            raise MeasurementError(
                f"{socket.gethostname()} has no IPv4 route to {peer}, which network cells need:"
                f" {error.strerror}"
            ) from error
        return str(probe.getsockname()[0])


def interface_towards(peer: str) -> str:
    """Return the name of the interface on the route to a peer.

    Raises:
        MeasurementError: there is no route to the peer.
    """
    local = local_address(peer)
    for name, address in _addresses().items():
        if address == local:
            return name
    raise MeasurementError(
        f"no interface of {socket.gethostname()} has the address {local}, from which {peer} is reached"
    )


def _addresses() -> dict[str, str]:
    """Return the first IPv4 address of each interface that has an IPv4 address."""
    addresses: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            with suppress(OSError):  # it has none
                # struct ifreq: 16 bytes of name, then family, port (2 bytes each) and address.
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, request)
                addresses[name] = socket.inet_ntoa(answer[20:24])
    return addresses


def shaping(host: Host, interface: str) -> str | None:
    """Return the traffic shaping of an interface, such as ``tbf rate 100Mbit``.

    The result is None without shaping, or if ``tc`` cannot be run.
    """
    queues = host.run(["tc", "qdisc", "show", "dev", interface]) or ""
    shapers = []
    for line in queues.splitlines():
        if _SHAPER.match(line):
            shapers.append(" ".join(_SHAPING.findall(line)))
    return ", ".join(shapers) or None
