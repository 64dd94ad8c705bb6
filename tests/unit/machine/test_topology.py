"""Which CPUs threads take, and how many a word means, on machines that are not here."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from peakmark.cell import Cell
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.run import pinning
from peakmark.tools import REGISTRY
from peakmark.tools.base import Command


def machine(
    root: Path,
    cpus: int,
    core: Callable[[int], int],
    socket: Callable[[int], int],
    node: Callable[[int], int],
    cache: Callable[[int], int],
    size: str,
) -> Host:
    """A /sys of ``cpus`` CPUs; ``core`` gives the first CPU of a CPU's core, ``cache`` what its
    last-level cache goes by.
    """

    def write(name: str, text: str) -> None:
        path = root / "sys/devices/system" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def alike(what: Callable[[int], int], cpu: int) -> str:
        return ",".join(str(one) for one in range(cpus) if what(one) == what(cpu))

    write("cpu/online", f"0-{cpus - 1}")
    for cpu in range(cpus):
        write(f"cpu/cpu{cpu}/topology/physical_package_id", str(socket(cpu)))
        write(f"cpu/cpu{cpu}/topology/thread_siblings_list", alike(core, cpu))
        for index, (level, kind, bytes_of) in enumerate(
            (("1", "Data", "32K"), ("3", "Unified", size))
        ):
            shared = alike(core if index == 0 else cache, cpu)
            names = (("level", level), ("type", kind), ("size", bytes_of))
            for name, text in (*names, ("shared_cpu_list", shared)):
                write(f"cpu/cpu{cpu}/cache/index{index}/{name}", text)
    for number in sorted({node(cpu) for cpu in range(cpus)}):
        members = ",".join(str(cpu) for cpu in range(cpus) if node(cpu) == number)
        write(f"node/node{number}/cpulist", members)
        write(f"node/node{number}/meminfo", f"Node {number} MemTotal:       65536 kB")
        write(f"node/node{number}/distance", "10 21" if number == 0 else "21 10")
    return Host(root, lambda _: None)


def xeon(root: Path) -> Host:
    """Two sockets of 4 cores with 2 threads; even CPUs on socket 0, odd on socket 1, as many
    vendors' firmware counts.
    """
    side = lambda cpu: cpu % 2  # noqa: E731
    return machine(root, 16, lambda cpu: cpu % 8, side, side, side, "24M")


def epyc(root: Path) -> Host:
    """Two sockets of 8 cores in two last-level caches each, two NUMA nodes a socket (NPS2), 2
    threads a core.
    """
    quarter = lambda cpu: cpu % 16 // 4  # noqa: E731
    return machine(root, 32, lambda c: c % 16, lambda c: c % 16 // 8, quarter, quarter, "32768K")


def arm(root: Path) -> Host:
    """Two sockets of 4 cores with one thread each, the firmware tells no socket: -1."""
    return machine(root, 8, lambda c: c, lambda _: -1, lambda c: c // 4, lambda c: c // 4, "32M")


@pytest.mark.parametrize(
    ("host", "counts"),
    [
        (xeon, {"numa": 4, "socket": 4, "cores": 8, "cpus": 16}),
        (epyc, {"numa": 4, "socket": 8, "cores": 16, "cpus": 32}),
        (arm, {"numa": 4, "socket": 8, "cores": 8, "cpus": 8}),
    ],
)
def test_words_are_numbers_of_the_node(
    host: Callable[[Path], Host], counts: dict[str, int], tmp_path: Path
) -> None:
    cpu_locations = topology.read(host(tmp_path))
    for word in topology.WORDS:
        assert topology.resolve(cpu_locations, cpu_locations, word) == counts[word]


def test_a_word_means_what_the_job_may_use(tmp_path: Path) -> None:
    cpu_locations = topology.read(xeon(tmp_path))
    given = [1, 9, 3, 11, 0]  # two cores of socket 1 with both threads, one CPU of socket 0
    assert {word: topology.resolve(cpu_locations, given, word) for word in topology.WORDS} == {
        "numa": 2, "socket": 2, "cores": 3, "cpus": 5,
    }  # fmt: skip
    assert topology.order(cpu_locations, given) == [1, 3, 0, 9, 11]


def test_compact_fills_one_socket_after_the_other_and_spread_takes_turns(tmp_path: Path) -> None:
    cpu_locations = topology.read(xeon(tmp_path))
    compact = topology.order(cpu_locations, cpu_locations)
    assert compact[:8] == [0, 2, 4, 6, 1, 3, 5, 7]
    assert sorted(compact[8:]) == list(range(8, 16))
    assert topology.order(cpu_locations, cpu_locations, "spread")[:4] == [0, 1, 2, 3]
    assert topology.reach(cpu_locations, compact[:4]) == {
        "cores": 4, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 24 << 20,
    }  # fmt: skip


def test_spread_takes_the_caches_of_a_node_in_turn(tmp_path: Path) -> None:
    cpu_locations = topology.read(epyc(tmp_path))
    assert topology.order(cpu_locations, cpu_locations, "spread")[:6] == [0, 8, 4, 12, 1, 9]
    assert topology.order(cpu_locations, cpu_locations)[:16] == list(range(16))
    first_two = topology.order(cpu_locations, cpu_locations, "spread")[:2]
    reached = topology.reach(cpu_locations, first_two)
    assert (reached["sockets"], reached["numa_nodes"]) == (2, [0, 2])
    assert reached["last_level_bytes"] == 64 << 20


def test_a_cpu_without_facts_is_a_core_of_its_own(tmp_path: Path) -> None:
    cpu_locations = topology.read(Host(tmp_path, lambda _: None), [3, 5])
    assert topology.order(cpu_locations, [5, 3]) == [3, 5]
    assert topology.reach(cpu_locations, [3, 5])["cores"] == 2


def test_numa_nodes_with_sizes_and_distances(tmp_path: Path) -> None:
    first, second = topology.numa(xeon(tmp_path))
    assert (first["node"], first["cpus"]) == (0, "0,2,4,6,8,10,12,14")
    assert (first["memory"], first["distances"]) == (64 << 20, [10, 21])
    assert second["distances"] == [21, 10]


def cell(asked: int | str, block: int = 1 << 20, **options: str | bool) -> Cell:
    return Cell.from_json(
        {
            "subsystem": "memory", "instrument": "rambench", "workload": "RWS", "variant": "pool", "block": block,
            "concurrency": asked, "node": "any", "repetition": 0, "options": {"pool": "auto", **options},
        }
    )  # fmt: skip


def test_a_cell_is_settled_on_the_node_and_keeps_its_name(tmp_path: Path) -> None:
    cpu_locations = topology.read(xeon(tmp_path))
    asked = cell("socket")
    assert asked.id == "memory/rambench/RWS-pool_1MiB_xsocket/any/0"
    cpus = topology.order(cpu_locations, cpu_locations)
    settled = pinning.resolve_cell(asked, cpu_locations, cpus, 64 << 30)
    assert (settled.concurrency, settled.id) == (4, asked.id)
    assert settled.to_json()["concurrency"] == "socket"
    assert settled.options["pool"] == 256 << 20  # four times 24 MiB is less than the least
    placed = pinning.placed(settled, cpu_locations, cpus)
    assert (placed["word"], placed["threads"], placed["sockets"]) == ("socket", 4, 1)
    assert placed["cpus"] == [0, 2, 4, 6]
    assert Cell.from_json(asked.to_json()) == asked


def test_a_pool_is_chosen_by_the_caches_that_its_own_threads_reach(tmp_path: Path) -> None:
    """300 MiB in each of two sockets: the threads of one reach half of it."""
    half = lambda cpu: cpu // 4  # noqa: E731
    cpu_locations = topology.read(machine(tmp_path, 8, lambda cpu: cpu, half, half, half, "300M"))
    cpus = topology.order(cpu_locations, cpu_locations)
    pools = [
        pinning.resolve_cell(cell(asked), cpu_locations, cpus, 64 << 30).options["pool"]
        for asked in (1, "socket", "cores")
    ]
    assert [round(int(str(size)) / (300 << 20)) for size in pools] == [4, 4, 8]


def test_a_word_for_a_place_is_that_place_however_threads_are_placed(tmp_path: Path) -> None:
    assert pinning.placement_of(cell("socket", placement="spread")) == "compact"
    assert pinning.placement_of(cell("cores", placement="spread")) == "spread"
    assert pinning.placement_of(cell(2)) == "compact"


@pytest.mark.parametrize(
    ("held", "memory", "least", "most"),
    [
        (300 << 20, 64 << 30, 1200 << 20, 1300 << 20),  # one large last-level cache
        (8 << 20, 64 << 30, 256 << 20, 256 << 20),
        (1 << 30, 2 << 30, 1 << 30, 1 << 30),  # no more than half of what the job may have
    ],
)
def test_an_automatic_pool_lies_beyond_the_caches(
    held: int, memory: int, least: int, most: int
) -> None:
    for asked, block in ((1, 1 << 10), (2, 10 << 20)):
        assert least <= pinning.pool(cell(asked, block), held, memory) <= most


def test_an_automatic_pool_beside_pmbw_is_a_size_that_it_measures() -> None:
    for held, memory, size in (
        (300 << 20, 64 << 30, 2 << 30),
        (8 << 20, 64 << 30, 256 << 20),
        (1 << 30, 3 << 30, 1 << 30),
    ):
        asked = cell(2, 10 << 20, power_of_two=True)
        assert pinning.pool(asked, held, memory) == size
        options = {**asked.options, "pool": size, "store": "temporal"}
        as_pmbw = {"instrument": "pmbw", "workload": "RS", "options": options}
        REGISTRY["pmbw"].check(dataclasses.replace(asked, **as_pmbw))  # type: ignore[arg-type]


def test_an_automatic_area_lies_beyond_the_caches_and_keeps_its_name(tmp_path: Path) -> None:
    assert pinning.area(1, 300 << 20, 64 << 30) == pinning.area(8, 300 << 20, 64 << 30) == 2 << 30
    # No more than half of what the job may have.
    assert pinning.area(4, 300 << 20, 8 << 30) == 1 << 30
    assert pinning.area(1, 8 << 20, 64 << 30) == 256 << 20
    cpu_locations = topology.read(xeon(tmp_path))
    cpus = topology.order(cpu_locations, cpu_locations)
    latency = {"workload": "LAT", "variant": "", "block": None}
    for instrument in ("rambench", "pmbw"):
        asked = Cell.from_json({**cell(2).to_json(), **latency, "instrument": instrument})
        settled = pinning.resolve_cell(asked, cpu_locations, cpus, 64 << 30)
        assert asked.id == settled.id == f"memory/{instrument}/LAT_auto_x2/any/0"
        assert (asked.area, settled.area) == (None, 256 << 20)
        REGISTRY[instrument].check(asked)
        assert REGISTRY[instrument].estimate(settled).memory_bytes >= 2 * (256 << 20)


def test_network_tools_are_pinned_as_netbench_pins_itself_and_disk_tools_are_free() -> None:
    def of(subsystem: str, instrument: str, streams: int) -> Cell:
        return Cell(subsystem, instrument, "TCP", "", 1024, streams, "any", 0)

    command, cpus = Command(argv=("x",), timeout_s=1), [0, 2, 4, 6]
    assert pinning.pinned(of("network", "iperf3", 2), command, cpus).cpus == (0, 2)
    assert pinning.other_end(of("network", "iperf3", 2), command, cpus).cpus == (6, 4)
    assert pinning.pinned(of("disk", "fio", 2), command, cpus).cpus == ()
    assert pinning.pinned(of("network", "netbench", 2), command, cpus).cpus == ()  # --cpus
