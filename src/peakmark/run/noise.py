"""What else went on while a cell was measured: the node before and after, and what others took in
between.

Read from /proc and /sys as any user can; what is not there is None. Nobody is named: others are
counted.
"""

from __future__ import annotations

import os
import resource
import time
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from peakmark.machine import allowed
from peakmark.machine.host import Host

BUSY = 0.1
"""CPUs' worth of time from which on a process counts as busy."""
SHORTEST_S = 0.1
"""Time between two readings below which shares mean nothing: the kernel counts in steps of 10 ms.
"""

_HERTZ = os.sysconf("SC_CLK_TCK")
# Columns of /proc/stat (proc(5)). Interrupts count for nobody: our own traffic causes them in
# whatever runs just then.
_USER, _NICE, _SYSTEM, _STEAL = 0, 1, 2, 7
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc_thermal")
_CPUS = "/sys/devices/system/cpu"
_KERNEL_THREADS = 2  # process id of the parent of all of them


class Process(namedtuple("_Process", "parent user running seconds started")):
    """One process: parent, user, whether it is running or ready to, CPU seconds so far, when it was
    started. A tuple, as a node has thousands.
    """

    __slots__ = ()


@dataclass(frozen=True)
class Reading:
    """The node at one moment.

    at              seconds of a clock that only runs forwards
    load            load average of the last minute
    clock_hz        the slowest of the CPUs, as cpufreq has it just now; idle CPUs are slow
    clock_limit_hz  what the governor and the firmware allow the slowest of them at most
    celsius         the hottest sensor of the processor
    used, stolen    CPU seconds of all programs on the node; CPU seconds the hypervisor took from
                    the CPUs given
    ours            CPU seconds of this process and of its children that have ended
    throttled       seconds for which the cgroup's CPU quota held this job back
    hot             how often CPUs have slowed down because of heat
    """

    at: float
    load: float | None
    clock_hz: float | None
    clock_limit_hz: float | None
    celsius: float | None
    used: float
    stolen: float
    ours: float
    throttled: float | None
    hot: int | None
    cpus: int
    processes: Mapping[int, Process] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """What a record keeps of it; ``running`` and ``users`` count others that run or are ready
        to.
        """
        running = [process for process in self.others().values() if process.running]
        return {
            "load": self.load,
            "clock_hz": self.clock_hz,
            "clock_limit_hz": self.clock_limit_hz,
            "celsius": self.celsius,
            "running": len(running),
            "users": _other_users(running),
        }

    def others(self) -> dict[int, Process]:
        """Programs that are neither this one, nor started it, nor were started by it; no kernel
        threads.
        """
        return self._others

    @cached_property
    def _others(self) -> dict[int, Process]:
        ours = _family(self.processes, os.getpid())
        return {
            number: process
            for number, process in self.processes.items()
            if number not in ours and _KERNEL_THREADS not in (number, process.parent)
        }


@contextmanager
def monitor_load() -> Iterator[dict[str, Any]]:
    """What a record keeps of the node while the block runs; empty until it is left."""
    kept: dict[str, Any] = {}
    cpus = sorted(os.sched_getaffinity(0))
    before = read(cpus)
    try:
        yield kept
    finally:
        after = read(cpus)
        kept |= {
            "before": before.to_json(),
            "during": between(before, after),
            "after": after.to_json(),
        }


def read(cpus: Sequence[int] = (), host: Host | None = None) -> Reading:
    """The node now. ``cpus``: those the measurement may use; default all."""
    host = host or Host()
    children, own = (
        resource.getrusage(resource.RUSAGE_CHILDREN),
        resource.getrusage(resource.RUSAGE_SELF),
    )
    used, stolen, count = _stat(host, cpus)
    load = (host.read("/proc/loadavg") or "").split()
    return Reading(
        at=time.monotonic(),
        load=float(load[0]) if load else None,
        clock_hz=_lowest(host, cpus, "scaling_cur_freq"),
        clock_limit_hz=_lowest(host, cpus, "scaling_max_freq"),
        celsius=_celsius(host),
        used=used,
        stolen=stolen,
        ours=children.ru_utime + children.ru_stime + own.ru_utime + own.ru_stime,
        throttled=_throttled(host),
        hot=_hot(host),
        cpus=count,
        processes=_processes(host),
    )


def between(before: Reading, after: Reading) -> dict[str, Any] | None:
    """What others took between two readings; None when they lie too close together.

    seconds     time between them                       steal   share of the given CPUs' time the
                hypervisor took
    others      CPUs' worth of time other programs used  busy    how many of them used more than a
                tenth of a CPU
    users       how many other users these belong to     throttled_s, hot  as in Reading, between
                the two
    """
    seconds = after.at - before.at
    if seconds < SHORTEST_S:
        return None
    took = _took(before.processes, after.processes)
    others = after.others()
    # Ours: this process and its ended children; then those that started it, kernel threads, and
    # children that live on.
    known = sum(
        amount for number, amount in took.items() if number not in others and number != os.getpid()
    )
    rest = (after.used - before.used) - (after.ours - before.ours) - known
    busy = [
        others[number]
        for number, amount in took.items()
        if number in others and amount / seconds > BUSY
    ]
    return {
        "seconds": round(seconds, 3),
        "steal": round(max(0.0, after.stolen - before.stolen) / (seconds * after.cpus), 4)
        if after.cpus
        else None,
        "others": round(max(0.0, rest) / seconds, 3),
        "busy": len(busy),
        "users": _other_users(busy),
        "throttled_s": _difference(before.throttled, after.throttled),
        "hot": _difference(before.hot, after.hot),
    }


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else round(after - before, 3)


def _other_users(processes: Sequence[Process]) -> int:
    return len({process.user for process in processes} - {os.getuid()})


def _took(before: Mapping[int, Process], after: Mapping[int, Process]) -> dict[int, float]:
    """CPU seconds of each process that is there afterwards; all of it for one that was started
    meanwhile.
    """
    seconds = {}
    for number, process in after.items():
        earlier = before.get(number)
        same = earlier is not None and earlier.started == process.started
        seconds[number] = process.seconds - (earlier.seconds if same and earlier else 0.0)
    return seconds


def _family(processes: Mapping[int, Process], own: int) -> set[int]:
    """This process, those that started it, and all that it and its children started."""
    family = {own}
    parent = processes[own].parent if own in processes else 0
    while parent in processes and parent not in family:
        family.add(parent)
        parent = processes[parent].parent
    children: dict[int, list[int]] = {}
    for number, process in processes.items():
        children.setdefault(process.parent, []).append(number)
    waiting, descendants = [own], set[int]()
    while waiting:
        new = set(children.get(waiting.pop(), ())) - descendants
        descendants |= new
        waiting += new
    return family | descendants


def _stat(host: Host, cpus: Sequence[int]) -> tuple[float, float, int]:
    """CPU seconds used by programs on all CPUs, seconds stolen from those given, and how many these
    are.
    """
    used, stolen, count = 0.0, 0.0, 0
    wanted = {f"cpu{number}" for number in cpus}
    for line in (host.read("/proc/stat") or "").splitlines():
        if not line.startswith("cpu"):
            break  # the lines after those of the CPUs are long
        name, *fields = line.split()
        ticks = [int(text) for text in fields]
        if name == "cpu":
            used = (ticks[_USER] + ticks[_NICE] + ticks[_SYSTEM]) / _HERTZ
        elif (not wanted or name in wanted) and len(ticks) > _STEAL:
            stolen += ticks[_STEAL] / _HERTZ
            count += 1
    return used, stolen, count


def _lowest(host: Host, cpus: Sequence[int], name: str) -> float | None:
    folders = [f"cpu{number}" for number in cpus] if cpus else _folders(host, _CPUS, "cpu")
    known = [
        value for folder in folders if (value := host.read_int(f"{_CPUS}/{folder}/cpufreq/{name}"))
    ]
    return min(known) * 1e3 if known else None  # the kernel writes kHz


def _folders(host: Host, place: str, start: str) -> list[str]:
    """Names such as ``cpu12``: ``start`` and a number."""
    return [
        name
        for name in host.names(place)
        if name.startswith(start) and name[len(start) :].isdigit()
    ]


def _celsius(host: Host) -> float | None:
    """The hottest of the processor's sensors."""
    readings = []
    for chip in _folders(host, "/sys/class/hwmon", "hwmon"):
        place = f"/sys/class/hwmon/{chip}"
        if host.read(f"{place}/name") in _SENSORS:
            inputs = [
                name
                for name in host.names(place)
                if name.startswith("temp") and name.endswith("_input")
            ]
            readings += [host.read_int(f"{place}/{name}") for name in inputs]
    for zone in _folders(host, "/sys/class/thermal", "thermal_zone"):
        place = f"/sys/class/thermal/{zone}"
        if (host.read(f"{place}/type") or "").startswith(_ZONES):
            readings.append(host.read_int(f"{place}/temp"))
    known = [value / 1e3 for value in readings if value is not None]
    return max(known) if known else None


def _throttled(host: Host) -> float | None:
    """Seconds, the longest of all cgroups on the way to the root."""
    units = {1: ("throttled_time", 1e9), 2: ("throttled_usec", 1e6)}
    times = []
    for version, folder in allowed.folders(host, "cpu"):
        name, per_second = units[version]
        value = host.pairs(f"{folder}/cpu.stat", " ").get(name, "")
        if value.isdigit():
            times.append(int(value) / per_second)
    return max(times, default=None)


def _hot(host: Host) -> int | None:
    places = [f"{_CPUS}/{cpu}/thermal_throttle" for cpu in _folders(host, _CPUS, "cpu")]
    counts = [
        f"{place}/{name}"
        for place in places
        for name in host.names(place)
        if name.endswith("_throttle_count")
    ]
    known = [value for path in counts if (value := host.read_int(path)) is not None]
    return sum(known) if known else None


def _processes(host: Host) -> dict[int, Process]:
    """Every process that may be seen. One that ends while being looked at is left out.

    By hand, as this is most of what a reading takes where there are many processes.
    """
    processes = {}
    place = os.open(host.path("/proc"), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry in entries if entry.name.isdigit()]
        for name in names:
            try:
                processes[int(name)] = _process(name, place)
            except (OSError, ValueError, IndexError):
                continue
    finally:
        os.close(place)
    return processes


def _process(name: str, place: int) -> Process:
    """One process below ``place``. Errors: OSError, ValueError, IndexError when it is gone or tells
    nothing.
    """
    descriptor = os.open(f"{name}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=place)
    try:
        line = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    # The name in brackets may hold anything, brackets and blanks too.
    fields = line[line.rindex(b")") + 1 :].split(None, 20)
    parent = int(fields[1])
    # Threads of the kernel are root's, and on an idle node nearly all that there is.
    user = 0 if parent == _KERNEL_THREADS else os.stat(name, dir_fd=place).st_uid
    seconds = (int(fields[11]) + int(fields[12])) / _HERTZ
    return Process(parent, user, fields[0] == b"R", seconds, int(fields[19]))
