"""Other load while a cell was measured: the node before and after, what other programs used in
between, and what disturbed the measurement: one rule for measuring it again and for marking it.

Read from /proc and /sys as any user can; what cannot be read is None. Nobody is named: others are
counted. psutil reads ten times as much of each process as is needed, and a node has thousands.
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple

from peakmark.catalogue import SUBSYSTEMS
from peakmark.machine import job_limits
from peakmark.machine.host import Facts, Host

OTHERS = 0.2
"""CPUs' worth of time from which on other programs are named."""
MATTERS = 0.05
"""Share of the CPUs' time or of their clock that, taken from the measurement, changes a figure by
more than a quiet machine's spread.
"""
MEMORY = 0.3
"""Share of a rate by which reading DRAM beside a measurement may be slower: chosen on 53 runs without
a neighbour, which stayed below it (docs/method.md).
"""
PROBES = ("probe_before", "probe_after")
"""Details of a memory kernel: rates in B/s at which its threads read DRAM."""
HEAT_MS = "cpu core_throttle_total_time_ms"
"""Milliseconds for which heat slowed the core down that it slowed most, among the counters of a
record that moved.
"""


def spare_cpus(subsystem: str, threads: int, cpus: int | None) -> float:
    """CPUs of a node that a measurement leaves to others: what runs there takes nothing from pinned
    threads. 0 where threads are not pinned.
    """
    pinned = SUBSYSTEMS[subsystem].pinned
    return float(max(0, cpus - threads)) if pinned and cpus else 0.0


def others(during: Mapping[str, Any] | None, spare: float = 0.0) -> float:
    """CPUs' worth of time that other programs took from a measurement; 0 where it changes nothing."""
    used = float((during or {}).get("others") or 0.0)
    return used - spare if used > OTHERS and used - spare > MATTERS else 0.0


def find(
    subsystem: str, context: Mapping[str, Any], details: Mapping[str, Any], spare: float = 0.0
) -> dict[str, float]:
    """What disturbed a measurement enough to change its figure.

    Args:
        subsystem: of the cell.
        context: of the record. Its ``dram_compared`` is the median of such rates on the host: what
            others disturb all the time is slower than the best one, and no repetition mends it.
        details: of a measurement of the record.
        spare: CPUs that the measurement leaves to others; none where its threads waited.

    Returns:
        Code of the row's warning -> CPUs' worth of time, share of that time, of the clock or of the
        rate of DRAM.
    """
    ends = [context.get(name) or {} for name in ("noise", "server_noise")]
    sides = [end.get("during") or {} for end in ends]
    during, far = sides
    before, after = context.get("clock_hz_before"), context.get("clock_hz_after")
    waited = _waited(context, details) if SUBSYSTEMS[subsystem].pinned else 0.0
    if waited > MATTERS:
        spare = 0.0
    amounts = {
        "other-load": max(others(during, spare), others(far)),
        "steal": max(side.get("steal") or 0.0 for side in sides),
        "waited": waited,
        "clock-moved": abs(after / before - 1) if before and after else 0.0,
        "memory-load": memory_load(context, details),
        "hot": max(map(_heat, sides)),
    }
    return {code: round(amount, 4) for code, amount in amounts.items() if amount > MATTERS}


def probes(details: Mapping[str, Any]) -> list[float]:
    """Rates in B/s at which DRAM was read before and after a measurement, where it was."""
    return [float(details[name]) for name in PROBES if details.get(name)]


def memory_load(context: Mapping[str, Any], details: Mapping[str, Any]) -> float:
    """By what share DRAM was read more slowly before or after a measurement than ``dram_compared`` of
    its context; 0 where that is usual.
    """
    rates, compared = probes(details), context.get("dram_compared")
    share = 1 - min(rates) / compared if rates and compared else 0.0
    return share if share > MEMORY else 0.0


def _heat(during: Mapping[str, Any]) -> float:
    """Share of the time for which heat slowed a core down; 0 where the kernel does not tell."""
    slowed = (during.get("moved") or {}).get(HEAT_MS)
    return float(slowed) / 1e3 / during["seconds"] if slowed else 0.0


def _waited(context: Mapping[str, Any], details: Mapping[str, Any]) -> float:
    """Share of their time in which threads had no CPU; 0 where they are too many for the job."""
    placed, allowed = context.get("placed") or {}, context.get("allowed") or {}
    threads = placed.get("threads", 0)
    cpus = min(len(placed.get("cpus", ())), allowed.get("cpu_quota") or threads)
    share = details.get("cpu_share")
    return 1 - float(share) if share is not None and threads <= cpus else 0.0


BUSY = 0.1
"""CPUs' worth of time from which on a process counts as busy."""
SHORTEST_S = 0.1
"""Time between two readings below which shares mean nothing: the kernel counts in steps of 10 ms.
"""

STEP_S, PAUSE_S = 0.5, 120.0
"""How often others are looked at while they are waited for, and how long nobody waits after that
was in vain.
"""

_HERTZ = os.sysconf("SC_CLK_TCK")
# Columns of /proc/stat (proc(5)). Interrupts count for nobody: our own traffic causes them in
# whatever runs just then.
_USER, _NICE, _SYSTEM, _STEAL = 0, 1, 2, 7
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc_thermal")
_CPUS = "/sys/devices/system/cpu"
_KERNEL_THREADS = 2  # process id of the parent of all of them


Counters = dict[str, int]
"""``eth0 rx_dropped``: device and name of the kernel -> count since boot; an alarm is 0 or 1."""

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


class Process(NamedTuple):
    """One process: whether it runs or is ready to, CPU seconds so far, clock tick of its start."""

    parent: int
    user: int
    running: bool
    seconds: float
    started: int


@dataclass(frozen=True)
class Reading:
    """The node at one moment.

    Attributes:
        at: seconds of a clock that only runs forwards.
        state: ``load`` of the last minute; ``clock_hz`` of the slowest CPU, as cpufreq has it just
            now (idle CPUs are slow); ``clock_limit_hz``, what governor and firmware allow it at
            most; ``celsius`` of the processor's hottest sensor.
        used: CPU seconds of all programs on the node.
        stolen: CPU seconds that the hypervisor took from this job's CPUs.
        ours: CPU seconds of this process and of its children that have ended.
        throttled: seconds for which the cgroup's CPU quota held this job back.
        counters: of errors, drops and throttling.
        cpus: how many CPUs this job may use.
        processes: all that can be seen, by process id.
    """

    at: float
    state: Facts
    used: float
    stolen: float
    ours: float
    throttled: float | None
    counters: Counters
    cpus: int
    processes: Mapping[int, Process] = field(repr=False)

    def to_json(self) -> Facts:
        """What a record keeps; ``running`` and ``users`` count others that run or are ready to."""
        running = [process for process in self.others.values() if process.running]
        return {**self.state, "running": len(running), "users": _count_users(running)}

    @cached_property
    def others(self) -> dict[int, Process]:
        """Programs that are neither this one, nor started it, nor were started by it; no kernel
        threads.
        """
        family = _family(self.processes)
        return {
            number: process
            for number, process in self.processes.items()
            if number not in family and _KERNEL_THREADS not in (number, process.parent)
        }


@contextmanager
def monitor_load() -> Iterator[Facts]:
    """What a record keeps of the node while the block runs; empty until it is left."""
    load: Facts = {}
    cpus = sorted(os.sched_getaffinity(0))
    before = read(cpus)
    try:
        yield load
    finally:
        after = read(cpus)
        load |= {
            "before": before.to_json(),
            "during": between(before, after),
            "after": after.to_json(),
        }


def wait_for_others(campaign: Path, spare: float, most_s: float) -> float | None:
    """Wait until other programs leave the CPUs to a measurement.

    Args:
        campaign: its folder.
        spare: CPUs of the node that the measurement leaves to others.
        most_s: how long to wait.

    Returns:
        Seconds waited; None where others do not stop in time. Cells of the next ``PAUSE_S`` then do
        not wait: on a machine that is always busy waiting would take longer than measuring.
    """
    busy, cpus = campaign / "machine" / f"{gethostname()}.busy", sorted(os.sched_getaffinity(0))
    paused = busy.exists() and time.time() - busy.stat().st_mtime < PAUSE_S
    began = time.monotonic()
    after = read(cpus)
    while True:
        time.sleep(STEP_S)
        before, after = after, read(cpus)
        if not others(between(before, after), spare):
            return time.monotonic() - began
        if paused or time.monotonic() - began >= most_s:
            break
    if not paused:
        with suppress(OSError):  # no room, or no right to write: then the next cell waits too
            busy.touch()
    return None


def read(cpus: Sequence[int], host: Host | None = None) -> Reading:
    """The node now. ``cpus``: those that the measurement may use."""
    host = host or Host()
    usages = map(resource.getrusage, (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    used, stolen = _cpu_seconds(host, cpus)
    load = (host.read("/proc/loadavg") or "").split()
    return Reading(
        at=time.monotonic(),
        state={
            "load": float(load[0]) if load else None,
            "clock_hz": _slowest(host, cpus, "scaling_cur_freq"),
            "clock_limit_hz": _slowest(host, cpus, "scaling_max_freq"),
            "celsius": _celsius(host),
        },
        used=used,
        stolen=stolen,
        ours=sum(usage.ru_utime + usage.ru_stime for usage in usages),
        throttled=_throttled(host),
        counters=read_counters(host, cpus),
        cpus=len(cpus),
        processes=_processes(host),
    )


def between(before: Reading, after: Reading) -> Facts | None:
    """What others used between two readings; None when they lie too close together.

    Returns:
        ``seconds`` between them; ``steal``, the share of the job's CPU time that the hypervisor
        took; ``others``, CPUs' worth of time of other programs; ``busy``, how many of these used
        more than a tenth of a CPU, and ``users``, of how many other users; ``throttled_s`` as in
        ``Reading``; ``hot``, how often CPUs slowed down because of heat; ``moved``, what counters
        went on by.
    """
    seconds = after.at - before.at
    if seconds < SHORTEST_S:
        return None
    growth = {
        number: process.seconds - _seconds_before(before.processes.get(number), process)
        for number, process in after.processes.items()
    }
    # Besides this process and its ended children: those that started it, kernel threads, and
    # children that live on.
    known = set(growth) - set(after.others) - {os.getpid()}
    ours = after.ours - before.ours + sum(growth[number] for number in known)
    rest = after.used - before.used - ours
    busy = [process for number, process in after.others.items() if growth[number] > BUSY * seconds]
    steal = max(0.0, after.stolen - before.stolen)
    moved = moved_counters(before.counters, after.counters)
    hot = sum(moved.pop(name, 0) for name in TIMES_HOT)
    return {
        "seconds": round(seconds, 3),
        "steal": round(steal / (seconds * after.cpus), 4) if after.cpus else None,
        "others": round(max(0.0, rest) / seconds, 3),
        "busy": len(busy),
        "users": _count_users(busy),
        "throttled_s": _difference(before.throttled, after.throttled),
        "hot": hot,
        "moved": moved,
    }


def _seconds_before(earlier: Process | None, process: Process) -> float:
    """CPU seconds at the first reading; 0 for a process that was started since."""
    return earlier.seconds if earlier and earlier.started == process.started else 0.0


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else round(after - before, 3)


def _count_users(processes: Iterable[Process]) -> int:
    return len({process.user for process in processes} - {os.getuid()})


def _family(processes: Mapping[int, Process]) -> set[int]:
    """This process, those that started it, and all that it and its children started."""
    number, ancestors = os.getpid(), set()
    while number in processes and number not in ancestors:
        ancestors.add(number)
        number = processes[number].parent
    descendants = {os.getpid()}
    while new := {
        number
        for number, process in processes.items()
        if process.parent in descendants and number not in descendants
    }:
        descendants |= new
    return ancestors | descendants


def _cpu_seconds(host: Host, cpus: Sequence[int]) -> tuple[float, float]:
    """CPU seconds used by programs on all CPUs, and seconds stolen from ``cpus``."""
    lines = re.findall(r"(?m)^(cpu\d*) (.*)$", host.read("/proc/stat") or "")
    ticks = {name: [int(number) for number in numbers.split()] for name, numbers in lines}
    total = ticks.get("cpu", [0] * 8)
    stolen = sum(ticks[f"cpu{cpu}"][_STEAL] for cpu in cpus if f"cpu{cpu}" in ticks)
    return (total[_USER] + total[_NICE] + total[_SYSTEM]) / _HERTZ, stolen / _HERTZ


def _read_ints(host: Host, paths: Iterable[str]) -> list[int]:
    return [value for path in paths if (value := host.read_int(path)) is not None]


def _slowest(host: Host, cpus: Sequence[int], name: str) -> float | None:
    clocks = _read_ints(host, [f"{_CPUS}/cpu{cpu}/cpufreq/{name}" for cpu in cpus])
    return min(clocks) * 1e3 if clocks else None  # the kernel writes kHz


def _celsius(host: Host) -> float | None:
    """The hottest of the processor's sensors."""
    paths = []
    for chip in host.glob("/sys/class/hwmon/hwmon*"):
        if host.read(chip, "name") in _SENSORS:
            paths += host.glob(chip, "temp*_input")
    for zone in host.glob("/sys/class/thermal/thermal_zone*"):
        if (host.read(zone, "type") or "").startswith(_ZONES):
            paths.append(f"{zone}/temp")
    readings = _read_ints(host, paths)
    return max(readings) / 1e3 if readings else None


def _throttled(host: Host) -> float | None:
    """Seconds, the longest of all cgroups on the way to the root."""
    units = {1: ("throttled_time", 1e9), 2: ("throttled_usec", 1e6)}
    times = []
    for version, folder in job_limits.folders(host, "cpu"):
        name, per_second = units[version]
        value = host.pairs(f"{folder}/cpu.stat", " ").get(name, "")
        if value.isdigit():
            times.append(int(value) / per_second)
    return max(times, default=None)


def _processes(host: Host) -> dict[int, Process]:
    """Every process that may be seen. One that ends while being looked at is left out."""
    processes = {}
    with os.scandir(host.path("/proc")) as entries:
        for entry in entries:
            if entry.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    processes[int(entry.name)] = _process(entry.path)
    return processes


def _process(folder: str) -> Process:
    text = Path(folder, "stat").read_bytes()
    # The name in brackets may hold anything, brackets and blanks too.
    fields = text[text.rindex(b")") + 1 :].split(None, 20)
    parent = int(fields[1])
    # Threads of the kernel are root's, and on an idle node nearly all processes.
    user = 0 if parent == _KERNEL_THREADS else Path(folder).stat().st_uid
    seconds = (int(fields[11]) + int(fields[12])) / _HERTZ
    return Process(parent, user, fields[0] == b"R", seconds, int(fields[19]))


# -- counters


def read_counters(host: Host, cpus: Sequence[int]) -> Counters:
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


def moved_counters(before: Counters, after: Counters) -> Counters:
    """What each counter went on by, of those that did; those of CPUs are added up, of times the
    longest counts. An alarm counts while it is raised.
    """
    growth: Counter[str] = Counter()
    for name, count in after.items():
        by = max(0, count if name.endswith("_alarm") else count - before.get(name, count))
        common = re.sub(r"^cpu\d+", "cpu", name)
        longest = common == HEAT_MS
        growth[common] = max(growth[common], by) if longest else growth[common] + by
    return dict(+growth)
