"""Which interface leads where, and which address it has: asked of the kernel, without any program."""

from __future__ import annotations

import fcntl
import json
import socket
import struct

from peakmark.machine.host import run_tool
from peakmark.reasons import MeasurementError

SIOCGIFADDR = 0x8915  # <linux/sockios.h>
PORT = 9  # discard; nothing is sent


def address_of(interface: str) -> str:
    """IPv4 address of an interface. Errors: MeasurementError when there is none."""
    addresses = _addresses()
    if interface not in addresses:
        raise MeasurementError(
            "no-interface", host=socket.gethostname(), interface=interface, known=_said(addresses)
        )
    return addresses[interface]


def _said(addresses: dict[str, str]) -> str:
    """What is there instead: ``is lo (127.0.0.1)``."""
    if not addresses:
        return "is none with such an address"
    names = ", ".join(f"{name} ({address})" for name, address in addresses.items())
    return f"{'is' if len(addresses) == 1 else 'are'} {names}"


def local_address(peer: str) -> str:
    """Own address on the route to a peer (name or IPv4 address). Errors: MeasurementError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((peer, PORT))
        except OSError as error:
            raise MeasurementError(
                "no-route", host=socket.gethostname(), peer=peer, why=error.strerror
            ) from error
        address: str = probe.getsockname()[0]
        return address


def towards(peer: str) -> str:
    """Name of the interface on the route to a peer. Errors: MeasurementError."""
    own = local_address(peer)
    for name, address in _addresses().items():
        if address == own:
            return name
    raise MeasurementError("no-address", host=socket.gethostname(), address=own, peer=peer)


# Queue disciplines that hold traffic back on purpose (tc(8)); the others only order it.
SHAPERS = ("tbf", "netem", "htb", "hfsc", "cbq", "cake")


def shaping(interface: str) -> str | None:
    """How an interface is slowed down on purpose, None where it is not or ``tc`` does not answer:
    ``tbf 100 Mbit/s``.
    """
    try:
        queues = json.loads(run_tool(["tc", "-j", "qdisc", "show", "dev", interface]) or "[]")
    except ValueError:
        return None
    shapes = []
    for queue in queues:
        if queue.get("kind") not in SHAPERS:
            continue
        options = queue.get("options") or {}
        rate = options.get("rate") or options.get("bandwidth")
        delay = options.get("delay")
        seconds = delay.get("delay") if isinstance(delay, dict) else delay
        loss = options.get("loss-random")
        share = loss.get("loss") if isinstance(loss, dict) else None
        text = str(queue["kind"])
        text += f" {rate * 8 / 1e6:g} Mbit/s" if isinstance(rate, int | float) else ""
        text += f" delay {seconds * 1e3:g} ms" if isinstance(seconds, int | float) else ""
        text += f" loss {share * 100:.3g} %" if isinstance(share, int | float) else ""
        shapes.append(text)
    return ", ".join(shapes) or None


def _addresses() -> dict[str, str]:
    """Interface -> first IPv4 address, of those that have one."""
    addresses = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue
            addresses[name] = socket.inet_ntoa(answer[20:24])
    return addresses
