"""Which CPUs threads take, and how many a word means, on machines that are not here."""

import pytest
from tests.unit.machine.hosts import host

from peakmark.machine import topology


def read(root, cpus, core, socket, node, cache, size):
    """The topology of a /sys of ``cpus`` CPUs; ``core``: the first CPU of a CPU's core."""

    def like(place, cpu):
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


def xeon(root):
    """Two sockets of 4 cores with 2 threads; even CPUs on socket 0, as many vendors count."""
    side = lambda cpu: cpu % 2  # noqa: E731
    return read(root, 16, lambda cpu: cpu % 8, side, side, side, "24576K")


def epyc(root):
    """Two sockets of 8 cores, each of two NUMA nodes with a last-level cache; 2 threads a core."""
    quarter = lambda cpu: cpu % 16 // 4  # noqa: E731
    return read(root, 32, lambda c: c % 16, lambda c: c % 16 // 8, quarter, quarter, "32768K")


def arm(root):
    """Two sockets of 4 cores with one thread each, the firmware tells no socket: -1."""
    return read(root, 8, lambda c: c, lambda _: -1, lambda c: c // 4, lambda c: c // 4, "32768K")


@pytest.mark.parametrize(("machine", "cpus", "counts"), [
    (xeon, range(16), (4, 4, 8, 16)), (epyc, range(32), (4, 8, 16, 32)), (arm, range(8), (4, 8, 8, 8)),
    (xeon, [1, 9, 3, 11, 0], (2, 2, 3, 5)),  # two cores of socket 1, one CPU of socket 0
])  # fmt: skip
def test_words(machine, cpus, counts, tmp_path):
    locations = machine(tmp_path)
    assert tuple(topology.resolve(locations, cpus, word) for word in topology.WORDS) == counts


@pytest.mark.parametrize(("machine", "cpus", "first"), [
    (xeon, range(16), [0, 2, 4, 6, 1, 3, 5, 7, 8]),
    (xeon, [1, 9, 3, 11, 0], [1, 3, 0, 9, 11]),
    (xeon, [8, 0], [0, 8]),
    (epyc, range(32), list(range(16))),
])  # fmt: skip
def test_order(machine, cpus, first, tmp_path):
    assert topology.order(machine(tmp_path), cpus)[: len(first)] == first


def test_what_threads_reach(tmp_path):
    xeons, epycs = xeon(tmp_path / "xeon"), epyc(tmp_path / "epyc")
    assert tuple(topology.reach(xeons, [0, 2, 4, 6]).values()) == (4, 1, (0,), 24 << 20)
    assert tuple(topology.reach(epycs, [0, 8]).values()) == (2, 2, (0, 2), 64 << 20)
    first, second = topology.numa(host(tmp_path / "xeon"))
    assert (first["node"], first["cpus"]) == (0, "0,2,4,6,8,10,12,14")
    assert (first["memory"], first["distances"]) == (64 << 20, [10, 20])
    assert second["distances"] == [10, 21]


def test_a_cpu_without_facts_is_a_core_of_its_own(tmp_path):
    locations = topology.read(host(tmp_path), [3, 5])
    assert topology.order(locations, [5, 3]) == [3, 5]
    assert topology.reach(locations, [3, 5])["cores"] == 2
