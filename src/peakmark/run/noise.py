"""Record the other load on a node while a cell is measured, and decide whether it disturbed the cell.

The same rule decides whether a cell is repeated and whether its row has a warning.

All values come from files below /proc and /sys that any user can read. A value that cannot be read is
None. Other processes are counted, never named. psutil is not used, because a node has thousands of
processes and psutil reads ten times more data of each than needed.
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from socket import gethostname
from typing import NamedTuple

from peakmark.machine import job_limits
from peakmark.machine.host import Host
from peakmark.storage import activity
from peakmark.storage.activity import Activity, Noise

BUSY = 0.1
"""Share of a CPU above which a process counts as busy."""
SHORTEST_S = 0.1
"""Shortest time between two readings, in seconds, because the kernel counts in steps of 10 ms."""

STEP_S, PAUSE_S = 0.5, 120.0
"""Seconds between two readings while a cell waits for other programs, and seconds for which no cell
waits again after a wait without success.
"""

_HERTZ = os.sysconf("SC_CLK_TCK")
# Columns of /proc/stat (proc(5)). Interrupt time is left out: peakmark's own traffic causes
# interrupts that interrupt any program.
_USER, _NICE, _SYSTEM, _STEAL = 0, 1, 2, 7
_CPUS = "/sys/devices/system/cpu"
_KERNEL_THREADS = 2  # process id of the parent of all kernel threads


Counters = dict[str, int]
"""Device and counter, such as ``eth0 rx_dropped`` -> its value since boot. An alarm is 0 or 1."""

_FILES = {
    "/sys/devices/system/edac/mc/mc*/[cu]e_count": -2,
    # Only interfaces of a device, not loopback and interfaces of containers.
    "/sys/class/net/*/device/net/*/statistics/[rt]x_dropped": -3,
    "/sys/class/net/*/device/net/*/statistics/[rt]x_errors": -3,
    "/sys/class/net/*/device/aer_dev_*": 4,
    "/sys/class/nvme/*/device/aer_dev_*": 4,
    "/sys/class/nvme/*/hwmon*/temp1_alarm": 4,
    # Ports of InfiniBand and RoCE.
    "/sys/class/infiniband/*/ports/*/counters/symbol_error": 4,
    "/sys/class/infiniband/*/ports/*/counters/link_downed": 4,
    "/sys/class/infiniband/*/ports/*/counters/link_error_recovery": 4,
    "/sys/class/infiniband/*/ports/*/counters/port_rcv_errors": 4,
    "/sys/class/infiniband/*/ports/*/counters/port_xmit_discards": 4,
    "/sys/class/infiniband/*/ports/*/hw_counters/out_of_sequence": 4,
    "/sys/class/infiniband/*/ports/*/hw_counters/local_ack_timeout_err": 4,
}
"""Pattern of counter files -> index of the path component that names the device."""
_CORE = ("core_throttle_count", "core_throttle_total_time_ms")
_PACKAGE = ("package_throttle_count", "package_power_limit_count")
MANY_CPUS = 64
"""Number of CPUs up to which /proc/interrupts is always read.

Reading it for more CPUs takes some 20 ms. It is then read only on nodes without EDAC, the
driver that counts memory errors in files that are faster to read.
"""
TIMES_HOT = ("cpu core_throttle_count", "cpu package_throttle_count")
"""Counters of how often CPUs slowed down because of heat."""


class Process(NamedTuple):
    """State of one process at one moment.

    Attributes:
        parent: process id of its parent.
        user: id of its user.
        seconds: CPU seconds that it has used.
        started: clock tick at which it started.
    """

    parent: int
    user: int
    seconds: float
    started: int


@dataclass(frozen=True)
class Reading:
    """State of the node at one moment.

    Attributes:
        at: time in seconds of a monotonic clock.
        clock_limit_hz: highest clock that cpufreq allows, of the CPU of this job with the lowest
            limit; None without cpufreq.
        used: CPU seconds of all programs on the node.
        stolen: CPU seconds that the hypervisor took from this job's CPUs.
        ours: CPU seconds of this process and of its ended children.
        throttled: seconds for which the cgroup's CPU quota held this job back.
        counters: counters of errors, drops and throttling.
        cpus: number of CPUs that this job may use.
        processes: all visible processes, by process id.
    """

    at: float
    clock_limit_hz: float | None
    used: float
    stolen: float
    ours: float
    throttled: float | None
    counters: Counters
    cpus: int
    processes: Mapping[int, Process] = field(repr=False)

    @cached_property
    def others(self) -> dict[int, Process]:
        """Return all processes except kernel threads, this process, its ancestors and descendants."""
        family = _family(self.processes)
        found = {}
        for number, process in self.processes.items():
            if number not in family and _KERNEL_THREADS not in (number, process.parent):
                found[number] = process
        return found


def since(before: Reading) -> Noise:
    """Return the activity on this node from a reading to now."""
    after = read_now()
    return Noise(between(before, after), before.clock_limit_hz)


def wait_for_others(campaign: Path, spare: float, most_s: float) -> float | None:
    """Wait until other programs release the CPUs that a measurement needs.

    After a wait without success, no cell waits for ``PAUSE_S``, because on a machine that is always
    busy, waiting would take longer than measuring.

    Args:
        campaign: folder of the campaign.
        spare: number of CPUs that the measurement does not use.
        most_s: longest wait in seconds.

    Returns:
        Seconds waited; None if the other programs did not release the CPUs in time.
    """
    # The file's mtime is the time of the last wait without success. If the file is missing or cannot be read, this
    # cell waits: an error would discard the value that the cell has already.
    busy = campaign / "machine" / f"{gethostname()}.busy"
    paused = False
    with suppress(OSError):
        paused = time.time() - busy.stat().st_mtime < PAUSE_S
    began = time.monotonic()
    after = read_now()
    while True:
        time.sleep(STEP_S)
        before, after = after, read_now()
        if not activity.others(between(before, after), spare):
            return time.monotonic() - began
        if paused or time.monotonic() - began >= most_s:
            break
    if not paused:
        with suppress(OSError):  # if the file cannot be written, the next cell waits too
            busy.touch()
    return None


def read_now() -> Reading:
    """Read the state of the node, with the CPUs that this process may use."""
    return read(sorted(os.sched_getaffinity(0)))


def read(cpus: Sequence[int], host: Host | None = None) -> Reading:
    """Read the state of the node. ``cpus`` are the CPUs that the measurement may use."""
    host = host or Host()
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    used, stolen = _cpu_seconds(host, cpus)
    return Reading(
        at=time.monotonic(),
        clock_limit_hz=_clock_limit(host, cpus),
        used=used,
        stolen=stolen,
        ours=own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        throttled=_throttled(host),
        counters=read_counters(host, cpus),
        cpus=len(cpus),
        processes=_processes(host),
    )


def between(before: Reading, after: Reading) -> Activity | None:
    """Return the activity of others between two readings.

    The result is None if less than ``SHORTEST_S`` lies between the readings.
    """
    seconds = after.at - before.at
    if seconds < SHORTEST_S:
        return None
    # Find the CPU seconds of each process between the readings.
    growth = {}
    for number, process in after.processes.items():
        earlier = before.processes.get(number)
        growth[number] = process.seconds - _seconds_before(earlier, process)
    # Subtract from the node's CPU seconds those of this process, its family, and kernel threads. The rest
    # belongs to others. ``Reading.ours`` has the seconds of this process.
    not_others = set(growth) - set(after.others) - {os.getpid()}
    ours = after.ours - before.ours + sum(growth[number] for number in not_others)
    rest = after.used - before.used - ours
    busy = [process for number, process in after.others.items() if growth[number] > BUSY * seconds]
    steal = None
    if after.cpus:
        stolen = max(0.0, after.stolen - before.stolen)
        steal = round(stolen / (seconds * after.cpus), 4)
    # The counters of how often CPUs were slowed down by heat become one number.
    moved = moved_counters(before.counters, after.counters)
    hot = sum(moved.pop(name, 0) for name in TIMES_HOT)
    throttled = None
    if before.throttled is not None and after.throttled is not None:
        throttled = round(after.throttled - before.throttled, 3)
    return Activity(
        seconds=round(seconds, 3),
        steal=steal,
        others=round(max(0.0, rest) / seconds, 3),
        busy=len(busy),
        users=_count_users(busy),
        throttled_s=throttled,
        hot=hot,
        moved=moved,
    )


def _seconds_before(earlier: Process | None, process: Process) -> float:
    """Return the CPU seconds of a process at the first reading; 0 if it started after that."""
    if earlier and earlier.started == process.started:
        return earlier.seconds
    return 0.0


def _count_users(processes: Iterable[Process]) -> int:
    """Return the number of users, other than this user, who own the processes."""
    return len({process.user for process in processes} - {os.getuid()})


def _family(processes: Mapping[int, Process]) -> set[int]:
    """Return the process ids of this process, its ancestors and its descendants."""
    number, ancestors = os.getpid(), set()
    while number in processes and number not in ancestors:
        ancestors.add(number)
        number = processes[number].parent
    children: dict[int, list[int]] = {}
    for child, process in processes.items():
        children.setdefault(process.parent, []).append(child)
    # ``waiting`` has processes whose children are still to be added.
    descendants: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        number = waiting.pop()
        if number not in descendants:
            descendants.add(number)
            waiting += children.get(number, ())
    return ancestors | descendants


def _cpu_seconds(host: Host, cpus: Sequence[int]) -> tuple[float, float]:
    """Return the CPU seconds of programs on all CPUs, and the seconds stolen from ``cpus``, since boot."""
    lines = re.findall(r"(?m)^(cpu\d*) (.*)$", host.read("/proc/stat") or "")
    ticks = {name: list(map(int, numbers.split())) for name, numbers in lines}
    total = ticks.get("cpu", [0] * 8)  # zeros if /proc/stat cannot be read
    stolen = sum(ticks[f"cpu{cpu}"][_STEAL] for cpu in cpus if f"cpu{cpu}" in ticks)
    return (total[_USER] + total[_NICE] + total[_SYSTEM]) / _HERTZ, stolen / _HERTZ


def _clock_limit(host: Host, cpus: Sequence[int]) -> float | None:
    """Return the lowest clock limit of the CPUs in Hz; None without cpufreq."""
    limits = [host.read_int(f"{_CPUS}/cpu{cpu}/cpufreq/scaling_max_freq") for cpu in cpus]
    lowest_khz = min(filter(None, limits), default=None)
    if lowest_khz is None:
        return None
    return lowest_khz * 1e3


def _throttled(host: Host) -> float | None:
    """Return the seconds for which CPU quotas held this process back, if known.

    Every cgroup between this process and the root may have a quota. The longest time counts.
    """
    # Version of the cgroups -> name of the time, and its units per second.
    units = {1: ("throttled_time", 1e9), 2: ("throttled_usec", 1e6)}
    times = []
    for version, folder in job_limits.folders(host, "cpu"):
        name, per_second = units[version]
        value = host.pairs(f"{folder}/cpu.stat", " ").get(name, "")
        if value.isdigit():
            times.append(int(value) / per_second)
    return max(times, default=None)


def _processes(host: Host) -> dict[int, Process]:
    """Return every visible process by its id, except processes that end meanwhile."""
    processes = {}
    with os.scandir(host.path("/proc")) as entries:
        for entry in entries:
            if entry.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    processes[int(entry.name)] = _process(entry.path)
    return processes


def _process(folder: str) -> Process:
    """Read the state of a process from its folder in /proc."""
    text = Path(folder, "stat").read_bytes()
    # The name in brackets may contain brackets and spaces. The fields after it are 1 parent,
    # 11 user time, 12 system time, 19 start (proc(5), counted from the state on).
    fields = text[text.rindex(b")") + 1 :].split(None, 20)
    parent = int(fields[1])
    # Kernel threads belong to root. Skipping stat() for them saves time, as they are most processes.
    user = 0 if parent == _KERNEL_THREADS else Path(folder).stat().st_uid
    seconds = (int(fields[11]) + int(fields[12])) / _HERTZ
    return Process(parent, user, seconds, int(fields[19]))


# -- counters


def read_counters(host: Host, cpus: Sequence[int]) -> Counters:
    """Read all counters of a node, and the throttling counters of ``cpus``."""
    counters: Counters = {}
    # Read files with one number: memory errors, network drops and errors, PCI Express errors, alarms.
    for pattern, place in _FILES.items():
        for path in host.glob(pattern):
            number = re.search(r"\d+$", host.read(path) or "")  # the last line of AER is the total
            if number:
                # ``place`` is the index of the device's name in the path.
                parts = path.split("/")
                name = f"{parts[place]} {parts[-1]}"
                counters[name] = counters.get(name, 0) + int(number[0])  # of all ports
    # Read machine checks and thermal events. With more than ``MANY_CPUS`` CPUs this takes long, so
    # it is left out where the EDAC files above count memory errors anyway. ``_throttling`` below
    # always counts the slowdowns because of heat.
    if len(cpus) <= MANY_CPUS or not host.path("/sys/devices/system/edac/mc/mc0").exists():
        checks = re.findall(r"(?m)^ *(MCE|THR|DFR):([ \d]+)", host.read("/proc/interrupts") or "")
        for name, counts in checks:
            counters[f"cpu {name}"] = sum(map(int, counts.split()))
    return counters | _throttling(host, cpus)


def _throttling(host: Host, cpus: Sequence[int]) -> Counters:
    """Read the throttling counters of the CPUs.

    Every CPU has the counters of its core and of its package. The package counters are read from the
    first and the last CPU only, which covers two packages.
    """
    ends = {cpus[0], cpus[-1]}
    counters: Counters = {}
    if host.path(f"{_CPUS}/cpu{cpus[0]}/thermal_throttle").exists():
        for cpu in cpus:
            names: tuple[str, ...] = _CORE
            if cpu in ends:
                names = (*_CORE, *_PACKAGE)
            for name in names:
                count = host.read_int(f"{_CPUS}/cpu{cpu}/thermal_throttle/{name}")
                counters[f"cpu{cpu} {name}"] = count or 0
    return counters


def moved_counters(before: Counters, after: Counters) -> Counters:
    """Return the increase of each counter that has increased.

    - Counts of several CPUs are added up.
    - Times of several CPUs are not added up: the longest time counts.
    - An alarm, which is 0 or 1, is no counter: its value after the cell is returned.
    """
    growth: Counter[str] = Counter()
    for name, count in after.items():
        by = count
        if not name.endswith("_alarm"):
            by = max(0, count - before.get(name, count))
        common = re.sub(r"^cpu\d+", "cpu", name)
        if common == activity.HEAT_MS:
            growth[common] = max(growth[common], by)
        else:
            growth[common] += by
    # The plus keeps only positive counts.
    return dict(+growth)
