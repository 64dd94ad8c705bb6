"""Which CPUs threads take, and how many a word means, on machines that are not here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.unit.machine.hosts import host

from peakmark.machine import topology
from peakmark.machine.topology import Topology

Place = Callable[[int], int]


def read(
    root: Path, cpus: int, core: Place, socket: Place, node: Place, cache: Place, size: str
) -> Topology:
    """The topology of a /sys of ``cpus`` CPUs; ``core`` gives the first CPU of a CPU's core,
    ``cache`` a number for its last-level cache.
    """

    def like(place: Place, cpu: int) -> str:
        return ",".join(str(other) for other in range(cpus) if place(other) == place(cpu))

    lines = [f"/sys/devices/system/cpu/online 0-{cpus - 1}"]
    for cpu in range(cpus):
        folder = f"/sys/devices/system/cpu/cpu{cpu}"
        lines += [
            f"{folder}/topology/physical_package_id {socket(cpu)}",
            f"{folder}/topology/thread_siblings_list {like(core, cpu)}",
        ]
        for index, values in enumerate(
            ((1, "Data", "32K", like(core, cpu)), (3, "Unified", size, like(cache, cpu)))
        ):
            names = ("level", "type", "size", "shared_cpu_list")
            pairs = zip(names, values, strict=True)
            lines += [f"{folder}/cache/index{index}/{name} {value}" for name, value in pairs]
        place = f"/sys/devices/system/node/node{node(cpu)}"
        lines += [f"{place}/cpulist {like(node, cpu)}", f"{place}/distance 10 {20 + node(cpu)}"]
        lines.append(f"{place}/meminfo Node {node(cpu)} MemTotal:       65536 kB")
    return topology.read(host(root, "\n".join(lines)))


def xeon(root: Path) -> Topology:
    """Two sockets of 4 cores with 2 threads; even CPUs on socket 0, odd on socket 1, as many
    vendors' firmware counts.
    """
    side: Place = lambda cpu: cpu % 2  # noqa: E731
    return read(root, 16, lambda cpu: cpu % 8, side, side, side, "24M")


def epyc(root: Path) -> Topology:
    """Two sockets of 8 cores in two last-level caches each, two NUMA nodes a socket (NPS2), 2
    threads a core.
    """
    quarter: Place = lambda cpu: cpu % 16 // 4  # noqa: E731
    return read(root, 32, lambda c: c % 16, lambda c: c % 16 // 8, quarter, quarter, "32768K")


def arm(root: Path) -> Topology:
    """Two sockets of 4 cores with one thread each, the firmware tells no socket: -1."""
    return read(root, 8, lambda c: c, lambda _: -1, lambda c: c // 4, lambda c: c // 4, "32M")


@pytest.mark.parametrize(("machine", "cpus", "counts"), [
    (xeon, range(16), (4, 4, 8, 16)),
    (epyc, range(32), (4, 8, 16, 32)),
    (arm, range(8), (4, 8, 8, 8)),
    (xeon, [1, 9, 3, 11, 0], (2, 2, 3, 5)),  # two cores of socket 1, one CPU of socket 0
])  # fmt: skip
def test_words_are_numbers_of_what_the_job_may_use(
    machine: Callable[[Path], Topology],
    cpus: Iterable[int],
    counts: tuple[int, ...],
    tmp_path: Path,
) -> None:
    locations = machine(tmp_path)
    assert tuple(topology.resolve(locations, cpus, word) for word in topology.WORDS) == counts


@pytest.mark.parametrize(("machine", "placement", "cpus", "first"), [
    (xeon, "compact", range(16), [0, 2, 4, 6, 1, 3, 5, 7, 8]),
    (xeon, "compact", [1, 9, 3, 11, 0], [1, 3, 0, 9, 11]),
    (xeon, "compact", [8, 0], [0, 8]),
    (xeon, "spread", range(16), [0, 1, 2, 3]),
    (epyc, "compact", range(32), list(range(16))),
    (epyc, "spread", range(32), [0, 8, 4, 12, 1, 9]),
])  # fmt: skip
def test_one_cpu_of_each_core_comes_first(
    machine: Callable[[Path], Topology],
    placement: str,
    cpus: Iterable[int],
    first: list[int],
    tmp_path: Path,
) -> None:
    assert topology.order(machine(tmp_path), cpus, placement)[: len(first)] == first


@pytest.mark.parametrize(
    ("machine", "cpus", "reached"),
    [(xeon, [0, 2, 4, 6], (4, 1, [0], 24 << 20)), (epyc, [0, 8], (2, 2, [0, 2], 64 << 20))],
)
def test_what_threads_reach(
    machine: Callable[[Path], Topology],
    cpus: list[int],
    reached: tuple[object, ...],
    tmp_path: Path,
) -> None:
    assert tuple(topology.reach(machine(tmp_path), cpus).values()) == reached


def test_a_cpu_without_facts_is_a_core_of_its_own(tmp_path: Path) -> None:
    locations = topology.read(host(tmp_path), [3, 5])
    assert topology.order(locations, [5, 3]) == [3, 5]
    assert topology.reach(locations, [3, 5])["cores"] == 2


def test_numa_nodes_with_sizes_and_distances(tmp_path: Path) -> None:
    xeon(tmp_path)
    first, second = topology.numa(host(tmp_path))
    assert (first["node"], first["cpus"]) == (0, "0,2,4,6,8,10,12,14")
    assert (first["memory"], first["distances"]) == (64 << 20, [10, 20])
    assert second["distances"] == [10, 21]
