"""Counters of a node that any user can read: errors of memory, CPUs and links, drops, throttling.

What moved while a cell was measured is kept, and nothing else: counters run since the node booted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from peakmark import disturbances
from peakmark.machine.host import Facts, Host

Counters = dict[str, int]
"""``eth0 rx_dropped``: device and name of the kernel -> count since boot; an alarm is 0 or 1."""

_CPUS = "/sys/devices/system/cpu"
_FILES = {
    "/sys/devices/system/edac/mc/mc*/[cu]e_count": -2,
    # Interfaces with a device behind them: loopback and those of containers have none.
    "/sys/class/net/*/device/net/*/statistics/[rt]x_dropped": -3,
    "/sys/class/net/*/device/net/*/statistics/[rt]x_errors": -3,
    "/sys/class/net/*/device/aer_dev_*": 4,
    "/sys/class/nvme/*/device/aer_dev_*": 4,
    "/sys/class/nvme/*/hwmon*/temp1_alarm": 4,
}
"""Files of counters -> which part of their paths names the device."""
_CORE = ("core_throttle_count", "core_throttle_total_time_ms")
_PACKAGE = ("package_throttle_count", "package_power_limit_count")
_PROTOCOLS = {"RetransSegs", "InErrors", "RcvbufErrors"}
MANY_CPUS = 64
"""On a node with more, /proc/interrupts takes some 20 ms: it is read where no memory controller
tells of errors.
"""
TIMES_HOT = ("cpu core_throttle_count", "cpu package_throttle_count")
"""How often CPUs slowed down because of heat."""


def read(host: Host, cpus: Sequence[int]) -> Counters:
    """All counters of a node; of throttling those of ``cpus``."""
    counters: Counters = {}
    for pattern, place in _FILES.items():
        for path in host.glob(pattern):
            number = re.search(r"\d+$", host.read(path) or "")  # of AER's lines the total is last
            if number:
                parts = path.split("/")
                counters[f"{parts[place]} {parts[-1]}"] = int(number[0])
    if len(cpus) <= MANY_CPUS or not host.path("/sys/devices/system/edac/mc/mc0").exists():
        checks = re.findall(r"(?m)^ *(MCE|THR|DFR):([ \d]+)", host.read("/proc/interrupts") or "")
        counters |= {f"cpu {name}": sum(map(int, counts.split())) for name, counts in checks}
    # A line of names and a line of numbers for each protocol.
    protocols = re.findall(r"(?m)^(Tcp|Udp): (.+)\n\1: (.+)$", host.read("/proc/net/snmp") or "")
    for protocol, names, numbers in protocols:
        for name, number in zip(names.split(), numbers.split(), strict=False):
            if name in _PROTOCOLS:
                counters[f"{protocol.lower()} {name}"] = int(number)
    return counters | _throttling(host, cpus)


def _throttling(host: Host, cpus: Sequence[int]) -> Counters:
    """Every CPU has the counters of its core, and repeats those of its package: the first and the
    last CPU tell of two.
    """
    ends = {cpus[0], cpus[-1]}
    counters: Counters = {}
    if host.path(f"{_CPUS}/cpu{cpus[0]}/thermal_throttle").exists():
        for cpu in cpus:
            for name in (*_CORE, *_PACKAGE) if cpu in ends else _CORE:
                count = host.read_int(f"{_CPUS}/cpu{cpu}/thermal_throttle/{name}")
                counters[f"cpu{cpu} {name}"] = count or 0
    return counters


def moved(before: Counters, after: Counters) -> Counters:
    """What each counter went on by, of those that did; those of CPUs are added up, of times the
    longest counts. An alarm counts while it is raised.
    """
    growth: Counter[str] = Counter()
    for name, count in after.items():
        by = max(0, count if name.endswith("_alarm") else count - before.get(name, count))
        common = re.sub(r"^cpu\d+", "cpu", name)
        longest = common == disturbances.HEAT_MS
        growth[common] = max(growth[common], by) if longest else growth[common] + by
    return dict(+growth)


def pcie_link(host: Host, device: str) -> Facts | None:
    """Lanes and speed of the PCI Express link of a device now, and at most; None without one."""
    link: Facts = {}
    for name in ("current", "max"):
        link[f"{name}_width"] = host.read_int(device, f"{name}_link_width")
        link[f"{name}_speed"] = host.read(device, f"{name}_link_speed")
    return link if all(link.values()) and "Unknown" not in str(link) else None
