"""Where CPUs sit: core, socket, NUMA node, last-level cache. From sysfs, for the whole node,
whatever a job may use.

``order`` says which CPUs a number of threads takes, ``resolve`` how many threads a word for the
node's own parts means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from peakmark.machine.host import Host, parse_cpu_list

WORDS = ("numa", "socket", "cores", "cpus")
"""Instead of a number of threads: the cores of one NUMA node, of one socket, of the node; all
hardware threads.
"""

_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"


@dataclass(frozen=True)
class CpuLocation:
    """Where one CPU sits. ``core`` is the first hardware thread of its core, ``cache`` the CPUs
    that share its last-level cache of ``cache_bytes`` (0 where none is told).
    """

    cpu: int
    core: int
    socket: int
    node: int
    cache: tuple[int, ...]
    cache_bytes: int


Topology = dict[int, CpuLocation]


def read(host: Host, cpus: Iterable[int] = ()) -> Topology:
    """The seats of all CPUs that are online, and of ``cpus``; one that sysfs does not describe is a
    core of its own.
    """
    online = parse_cpu_list(host.read(f"{_CPU}/online"))
    numbers = sorted({*online, *cpus})
    nodes = {cpu: node for node, members in node_cpus(host).items() for cpu in members}
    cores: dict[int, int] = {}
    caches: dict[int, tuple[tuple[int, ...], int]] = {}
    cpu_locations: Topology = {}
    for cpu in numbers:
        place = f"{_CPU}/cpu{cpu}/topology"
        socket = max(
            0, host.read_int(f"{place}/physical_package_id") or 0
        )  # Arm: -1 where the firmware does not say
        if cpu not in cores:
            siblings = parse_cpu_list(host.read(f"{place}/thread_siblings_list")) or _siblings(
                host, cpu, numbers
            )
            cores.update(dict.fromkeys(siblings, min(siblings)))
        if cpu not in caches:
            shared, size = _last_level(host, cpu)
            caches.update(dict.fromkeys(shared, (shared, size)))
        cpu_locations[cpu] = CpuLocation(
            cpu, cores[cpu], socket, nodes.get(cpu, 0), *caches.get(cpu, ((cpu,), 0))
        )
    return cpu_locations


def _siblings(host: Host, cpu: int, numbers: Sequence[int]) -> list[int]:
    """CPUs of the same socket and core number; for kernels that list no siblings."""

    def core(other: int) -> tuple[str | None, str | None]:
        place = f"{_CPU}/cpu{other}/topology"
        return host.read(f"{place}/physical_package_id"), host.read(f"{place}/core_id")

    mine = core(cpu)
    return [cpu] if mine[1] is None else [other for other in numbers if core(other) == mine]


def _last_level(host: Host, cpu: int) -> tuple[tuple[int, ...], int]:
    """(CPUs that share it, bytes) of the highest cache that holds data."""
    best: tuple[int, tuple[int, ...], int] = (0, (cpu,), 0)
    folder = f"{_CPU}/cpu{cpu}/cache"
    for place in (f"{folder}/{name}" for name in host.names(folder) if name.startswith("index")):
        level, size = host.read_int(f"{place}/level"), cache_bytes(host.read(f"{place}/size"))
        if (
            level is None
            or not size
            or level <= best[0]
            or host.read(f"{place}/type") == "Instruction"
        ):
            continue
        shared = parse_cpu_list(host.read(f"{place}/shared_cpu_list")) or [cpu]
        best = (level, tuple(shared), size)
    return best[1:]


def cache_bytes(text: str | None) -> int | None:
    """``32768K`` or ``32M`` as bytes."""
    number = (text or "").rstrip("KMG")
    shift = {"": 0, "K": 10, "M": 20, "G": 30}.get((text or "")[len(number) :])
    return (
        int(number) << shift
        if number.isascii() and number.isdigit() and shift is not None
        else None
    )


def node_cpus(host: Host) -> dict[int, list[int]]:
    """NUMA node -> its CPUs, none for a node that is memory only."""
    names = [name for name in host.names(_NODE) if name.startswith("node") and name[4:].isdigit()]
    return {int(name[4:]): parse_cpu_list(host.read(f"{_NODE}/{name}/cpulist")) for name in names}


def numa(host: Host) -> list[dict[str, Any]]:
    """Every NUMA node: number, CPUs in the kernel's list format, bytes of memory, distances to all
    nodes in order.
    """
    nodes = []
    for number in sorted(node_cpus(host)):
        place = f"{_NODE}/node{number}"
        memory = re.search(r"MemTotal:\s+(\d+) kB", host.read(f"{place}/meminfo") or "")
        distances = (host.read(f"{place}/distance") or "").split()
        nodes.append(
            {
                "node": number,
                "cpus": host.read(f"{place}/cpulist") or "",
                "memory": int(memory[1]) * 1024 if memory else None,
                "distances": [int(word) for word in distances if word.isdigit()],
            }
        )
    return nodes


def order(topology: Topology, cpus: Iterable[int], placement: str = "compact") -> list[int]:
    """``cpus`` as threads take them: one CPU of each core first, then the second of each, and so
    on.

    Within such a round ``compact`` fills one last-level cache, one NUMA node, one socket after the
    other, those of which most may be used first; ``spread`` takes sockets, their NUMA nodes and
    caches in turn.
    """
    cpu_locations = [topology[cpu] for cpu in sorted(set(cpus))]
    rounds: dict[int, list[CpuLocation]] = {}
    taken: dict[int, int] = {}
    for seat in cpu_locations:
        number = taken[seat.core] = taken.get(seat.core, -1) + 1
        rounds.setdefault(number, []).append(seat)
    levels: list[Callable[[CpuLocation], Any]] = [
        lambda seat: seat.socket,
        lambda seat: seat.node,
        lambda seat: seat.cache,
    ]
    arrange = _in_turn if placement == "spread" else _one_after_other
    return [seat.cpu for number in sorted(rounds) for seat in arrange(rounds[number], levels)]


def _groups(
    cpu_locations: Sequence[CpuLocation], level: Callable[[CpuLocation], Any]
) -> list[list[CpuLocation]]:
    """The seats by one level, the largest group first."""
    groups: dict[Any, list[CpuLocation]] = {}
    for seat in cpu_locations:
        groups.setdefault(level(seat), []).append(seat)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].cpu))


def _one_after_other(
    cpu_locations: Sequence[CpuLocation], levels: Sequence[Callable[[CpuLocation], Any]]
) -> list[CpuLocation]:
    if not levels:
        return list(cpu_locations)
    return [
        seat
        for group in _groups(cpu_locations, levels[0])
        for seat in _one_after_other(group, levels[1:])
    ]


def _in_turn(
    cpu_locations: Sequence[CpuLocation], levels: Sequence[Callable[[CpuLocation], Any]]
) -> list[CpuLocation]:
    if not levels:
        return list(cpu_locations)
    queues = [_in_turn(group, levels[1:]) for group in _groups(cpu_locations, levels[0])]
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def resolve(topology: Topology, cpus: Iterable[int], word: str) -> int:
    """Number of threads that a word of ``WORDS`` means where only ``cpus`` may be used; the fullest
    node or socket counts.
    """
    cpu_locations = [topology[cpu] for cpu in set(cpus)]
    if word == "cpus":
        return len(cpu_locations)
    cores = {seat.core: seat for seat in cpu_locations}.values()
    if word == "cores":
        return len(cores)
    groups = _groups(
        list(cores), (lambda seat: seat.node) if word == "numa" else (lambda seat: seat.socket)
    )
    return len(groups[0])


def reach(topology: Topology, cpus: Iterable[int]) -> dict[str, Any]:
    """What threads on these CPUs can reach: cores, sockets and last-level caches (bytes of all)
    counted, NUMA nodes named.
    """
    cpu_locations = [topology[cpu] for cpu in cpus]
    return {
        "cores": len({seat.core for seat in cpu_locations}),
        "sockets": len({seat.socket for seat in cpu_locations}),
        "numa_nodes": sorted({seat.node for seat in cpu_locations}),
        "last_level_bytes": sum({seat.cache: seat.cache_bytes for seat in cpu_locations}.values()),
    }
