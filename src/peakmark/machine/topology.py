"""Read the location of each CPU from sysfs: core, socket, NUMA node and last-level cache.

lscpu and hwloc read the same files, but each cell would have to start a program. Besides, hwloc shows
only the CPUs of the job, while these functions show all CPUs of the node.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from peakmark.machine.host import Facts, Host, first_int, parse_cpu_list

WORDS = ("numa", "socket", "cores", "cpus")
"""Words for numbers of threads: the cores of a NUMA node, of a socket, of the node; all CPUs of the node."""

_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"
_LEVELS = ("socket", "node", "cache")
"""Fields of ``CpuLocation`` by which threads are placed, from the outermost to the innermost."""


@dataclass(frozen=True)
class CpuLocation:
    """Location of one CPU (hardware thread) in the node.

    Attributes:
        cpu: number of the CPU.
        core: number of the first CPU on the same core.
        socket: number of the socket.
        node: number of the NUMA node.
        cache: CPUs that share the last-level cache.
        cache_bytes: size of the last-level cache; 0 if unknown.
    """

    cpu: int
    core: int
    socket: int
    node: int
    cache: tuple[int, ...]
    cache_bytes: int


Topology = dict[int, CpuLocation]
"""CPU -> its location."""


@dataclass(frozen=True, order=True)
class Cache:
    """One cache of the node.

    Attributes:
        level: level, from 1.
        kind: ``data``, ``instruction`` or ``unified``.
        size: size in bytes.
        cpus: CPUs that share the cache.
    """

    level: int
    kind: str
    size: int
    cpus: tuple[int, ...]


def read(host: Host, cpus: Iterable[int] = ()) -> Topology:
    """Read the locations of all online CPUs, and of ``cpus``.

    A CPU that sysfs does not describe counts as a separate core.
    """
    nodes: dict[int, int] = {}
    for node in numa(host):
        for cpu in parse_cpu_list(node["cpus"]):
            nodes[cpu] = node["node"]
    last_level: dict[int, Cache] = {}
    for cache in read_caches(host):  # the last-level cache comes last and replaces the others
        if cache.kind != "instruction":
            for cpu in cache.cpus:
                last_level[cpu] = cache
    locations: Topology = {}
    for cpu in sorted({*parse_cpu_list(host.read(_CPU, "online")), *cpus}):
        threads, package = host.read_files(
            f"{_CPU}/cpu{cpu}/topology", "thread_siblings_list", "physical_package_id"
        )
        siblings = parse_cpu_list(threads) or [cpu]
        # The kernel shows -1 if Arm's firmware states no socket.
        socket = int(package) if package.isdecimal() else 0
        # A CPU without a known cache is treated as if it shared its cache with no other CPU.
        cache = last_level.get(cpu, Cache(0, "unified", 0, (cpu,)))
        locations[cpu] = CpuLocation(
            cpu, min(siblings), socket, nodes.get(cpu, 0), cache.cpus, cache.size
        )
    return locations


def read_caches(host: Host) -> list[Cache]:
    """Return all caches of the node, the lowest level first."""
    caches = set()
    for place in host.glob(_CPU, "cpu[0-9]*/cache/index[0-9]*"):
        level, size, kind, cpus = host.read_files(place, "level", "size", "type", "shared_cpu_list")
        size_bytes, kind = 1024 * (first_int(size) or 0), kind.lower()  # the kernel writes 32768K
        if level.isdecimal() and size_bytes and kind in ("data", "instruction", "unified"):
            caches.add(Cache(int(level), kind, size_bytes, tuple(parse_cpu_list(cpus))))
    return sorted(caches)


def numa(host: Host) -> list[Facts]:
    """Return all NUMA nodes: number, CPUs as the kernel's list, bytes of memory, and distances to all nodes."""
    nodes = []
    for place in host.glob(_NODE, "node[0-9]*"):
        meminfo, cpus, distances = host.read_files(place, "meminfo", "cpulist", "distance")
        memory = None
        total = re.search(r"MemTotal:\s+(\d+) kB", meminfo)
        if total:
            memory = int(total[1]) * 1024
        nodes.append(
            {
                "node": int(place.rpartition("node")[2]),
                "cpus": cpus,
                "memory": memory,
                "distances": [int(word) for word in distances.split() if word.isdecimal()],
            }
        )
    return sorted(nodes, key=lambda node: node["node"])


def order(topology: Topology, cpus: Iterable[int]) -> list[int]:
    """Return ``cpus`` in the order in which threads take them.

    The first CPUs of all cores come first, then the second CPUs of all cores, and so on. In each of these
    rounds they fill one socket after the other, in a socket one NUMA node after the other, and in a node one
    last-level cache after the other. Each time, the part with the most CPUs comes first.
    """
    # ``rounds[0]`` has the first CPU of each core, ``rounds[1]`` the second one, and so on.
    rounds: defaultdict[int, list[CpuLocation]] = defaultdict(list)
    threads: Counter[int] = Counter()  # core -> number of its CPUs so far
    for cpu in sorted(set(cpus)):
        location = topology[cpu]
        rounds[threads[location.core]].append(location)
        threads[location.core] += 1
    ordered: list[CpuLocation] = []
    for number in sorted(rounds):
        ordered += _arrange(rounds[number], _LEVELS)
    return [location.cpu for location in ordered]


def _arrange(locations: Sequence[CpuLocation], levels: Sequence[str]) -> list[CpuLocation]:
    """Group the locations by the first level, arrange each group by the other levels, and join them.

    ``levels`` are fields of ``CpuLocation``. The largest group comes first.
    """
    if not levels:
        return list(locations)
    groups: defaultdict[Any, list[CpuLocation]] = defaultdict(list)
    for location in locations:
        groups[getattr(location, levels[0])].append(location)
    largest_first = sorted(groups.values(), key=lambda group: (-len(group), group[0].cpu))
    return list(chain.from_iterable(_arrange(group, levels[1:]) for group in largest_first))


def resolve(topology: Topology, cpus: Iterable[int], word: str) -> int:
    """Return the number of threads for a word of ``WORDS`` on the CPUs ``cpus``.

    For ``numa`` and ``socket``, the NUMA node or socket with the most cores counts.
    """
    locations = [topology[cpu] for cpu in set(cpus)]
    if word == "cpus":
        return len(locations)
    # One CPU stands for all CPUs of its core.
    cores = {location.core: location for location in locations}.values()
    if word == "cores":
        return len(cores)
    level = "node" if word == "numa" else "socket"
    return max(Counter(getattr(core, level) for core in cores).values())


def reach(topology: Topology, cpus: Iterable[int]) -> Facts:
    """Return facts of the part of the node that contains these CPUs.

    ``cores`` and ``sockets`` are counts, ``numa_nodes`` the numbers that name the NUMA nodes, ascending, and
    ``last_level_bytes`` is the sum of their last-level caches.
    """
    locations = [topology[cpu] for cpu in cpus]
    cores = {location.core for location in locations}
    sockets = {location.socket for location in locations}
    nodes = {location.node for location in locations}
    caches = {location.cache: location.cache_bytes for location in locations}
    return {
        "cores": len(cores),
        "sockets": len(sockets),
        "numa_nodes": tuple(sorted(nodes)),
        "last_level_bytes": sum(caches.values()),
    }


def cpus_of_two(topology: Topology, cpus: Iterable[int], same_socket: bool) -> list[int]:
    """Return two CPUs on two cores: of one socket with ``same_socket``, otherwise of two sockets.

    The first is the one that the first thread takes. The list is empty if there is no second one.
    """
    first, *others = order(topology, cpus)
    here = topology[first]
    for cpu in others:
        other = topology[cpu]
        if other.core != here.core and (other.socket == here.socket) == same_socket:
            return [first, cpu]
    return []
