"""Decide which of the job's CPUs, and how much of its memory, a cell uses.

The node that measures replaces words such as ``cores`` and ``auto`` by numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from peakmark.catalogue import ARRAYS, AUTO, GPUS, NUMA, ON_ONE_NODE, POOLS
from peakmark.cell import Cell
from peakmark.errors import Unavailable
from peakmark.machine import gpu, topology
from peakmark.machine.topology import Topology
from peakmark.storage.record_types import Allowed, Placed
from peakmark.tools import REGISTRY
from peakmark.tools.base import Command

LEAST_POOL = 256 << 20
"""Smallest automatic pool in bytes. TLBs (address translation caches) could hold all pages of a
smaller pool.
"""
POOL_FACTOR = 4
"""Size of an automatic pool, as a multiple of the size of the caches."""
POOL_SHARE = 0.5
"""Largest share of the job's memory that an automatic pool may take."""
ROUND = 64 << 20
"""Automatic pools are multiples of this number of bytes."""


def allowed(limits: Mapping[str, Any], cpu_locations: Topology) -> Allowed:
    """Return the CPUs and memory that the job may use, and the cores of the whole node.

    The result is the key ``allowed`` of a record's context.
    """
    return Allowed(
        cpus=tuple(sorted(limits["cpus_allowed"])),
        cores=limits["physical_cores_allowed"],
        cpu_quota=limits["cpu_quota"],
        memory_bytes=limits["memory_bytes"],
        memory_limited_by=limits["memory_limited_by"],
        node_cores=topology.reach(cpu_locations, cpu_locations)["cores"],
    )


def granted(limits: Mapping[str, Any], node_bytes: int | None) -> Mapping[str, Any]:
    """Return the limits, with memory reduced to the memory that Slurm granted the job.

    Slurm may grant less than the cgroup allows. The rest belongs to the system or to other jobs.

    Args:
        limits: the ``limits`` part of the facts.
        node_bytes: memory of this node as Slurm reports it, if known. It is the limit of a job that
            asked for all memory.
    """
    slurm, most = limits["slurm"], limits["memory_bytes"]
    if slurm is None or most is None:
        return limits
    # Slurm states the memory of the job on this node, or for each of its CPUs, or neither: then all was asked for.
    by_cpus = (slurm["memory_per_cpu_bytes"] or 0) * (slurm["cpus_on_node"] or 0)
    memory = slurm["memory_per_node_bytes"] or by_cpus or node_bytes or most
    if memory >= most:
        return limits
    return {**limits, "memory_bytes": memory, "memory_limited_by": "slurm"}


def resolve_cell(
    cell: Cell,
    cpu_locations: Topology,
    cpus: list[int],
    memory: int,
    facts: Mapping[str, Any] | None = None,
) -> Cell:
    """Return the cell with its choices made for this node; its id does not change.

    - A word for the concurrency, such as ``cores``, becomes a number.
    - A pool of automatic size, which memory workloads walk, becomes larger than the caches in use.
    - An area of automatic size, which LAT walks, becomes larger than the caches of a thread.

    Args:
        cpu_locations: core, socket and NUMA node of each CPU.
        cpus: CPUs that the job may use, as ``topology.order`` returns them.
        memory: bytes of memory that the job may use.
        facts: facts of the machine, which cells that measure GPUs need.
    """
    if cell.word == GPUS:
        # Without a GPU gpubench tells why there is none.
        gpus = (facts or {}).get("gpu") or {"count": 1}
        return replace(cell, concurrency=gpus["count"])
    if cell.word:
        cell = replace(cell, concurrency=topology.resolve(cpu_locations, cpus, cell.word))
    used = cpus[: cell.concurrency]
    if "ranks" in cell.options:
        cell = _with_options(cell, cpus=_cpus_of_ranks(cell, cpu_locations, used))
    # Choose the CPUs of two ranks on one node.
    if cell.variant in ON_ONE_NODE:
        used = topology.cpus_of_two(cpu_locations, cpus, same_socket=cell.variant == "same-socket")
        if not used:
            raise Unavailable(f"the job has no pair of cores for the variant {cell.variant}")
        cell = _with_options(cell, cpus=",".join(map(str, used)))
    # Choose the size of the pool.
    is_loaded = cell.workload == "LOADED"
    walks_pool = is_loaded or cell.workload in NUMA or cell.variant in POOLS
    if walks_pool and cell.options.get("pool") == AUTO:
        cached = topology.reach(cpu_locations, used)["last_level_bytes"]
        room = memory
        if is_loaded:
            room = memory // 2  # LOADED also has an area to chase through, and a copy of the pool
        cell = _with_options(cell, pool=pool(cell, cached, room))
    # Choose the size of LAT's area.
    if cell.automatic:
        from peakmark.tools.programs.rambench import LINE  # late: most cells do not need rambench

        cached = max(cpu_locations[cpu].cache_bytes for cpu in used)
        # One pointer per cache line fills a large area eight times faster than one per word, and
        # successive loads then never share a line.
        cell = _with_options(cell, area=area(cell.concurrency, cached, memory), stride=LINE)
    return cell


def _with_options(cell: Cell, **options: Any) -> Cell:
    """Return the cell with these options besides its own."""
    return replace(cell, options={**cell.options, **options})


def _cpus_of_ranks(cell: Cell, cpu_locations: Topology, used: Sequence[int]) -> str:
    """Return the CPUs of each of HPL's ranks on a node, which has one rank for each socket or for each core.

    Commas separate the CPUs of a rank, colons the ranks: ``0,1:2,3``.
    """
    groups: dict[int, list[int]] = {}
    for cpu in used:  # one CPU of each core
        place = cpu_locations[cpu].socket if cell.options["ranks"] == "socket" else cpu
        groups.setdefault(place, []).append(cpu)
    ranks = [",".join(map(str, group)) for group in groups.values()]
    return ":".join(ranks)


def area(threads: int, cached: int, memory: int) -> int:
    """Return the bytes of the area that each thread of LAT walks.

    The area is at least ``POOL_FACTOR`` times ``cached``, the size of a thread's caches. It is a power
    of two, because pmbw measures no other sizes. It does not depend on the number of threads unless
    the memory is too small.
    """
    wanted = max(LEAST_POOL, POOL_FACTOR * cached)
    room = max(int(memory * POOL_SHARE) // threads, ROUND)
    return min(_power_of_two_from(wanted), _power_of_two_up_to(room))


def pool(cell: Cell, cached: int, memory: int) -> int:
    """Return the bytes of an automatic pool.

    The pool is at least ``POOL_FACTOR`` times ``cached``, the size of the caches, if the memory
    suffices. Two blocks for each thread, and three for the triad, are added, because a kernel uses
    only whole blocks. The size is a power of two if a reference tool needs that.
    """
    spare = max(2, ARRAYS.get(cell.workload, 1)) * cell.concurrency * (cell.block or 0)
    wanted = max(LEAST_POOL, POOL_FACTOR * cached + spare)
    room = max(int(memory * POOL_SHARE), ROUND)
    if cell.options.get("power_of_two"):
        return min(_power_of_two_from(wanted), _power_of_two_up_to(room))
    units_wanted = -(-wanted // ROUND)  # rounded up
    return min(units_wanted, room // ROUND) * ROUND


def _power_of_two_from(least: int) -> int:
    """Return the smallest power of two that is at least ``least``."""
    return 1 << (least - 1).bit_length()


def _power_of_two_up_to(most: int) -> int:
    """Return the largest power of two that is at most ``most``."""
    return 1 << most.bit_length() - 1


def pinned(cell: Cell, command: Command, cpus: Sequence[int]) -> Command:
    """Return the command, pinned to a CPU for each stream if its tool is a network reference.

    An unpinned network tool migrates and wakes sleeping CPUs. Other tools are not pinned here:

    - netbench pins itself.
    - Commands of CPU and memory tools begin with taskset.
    - Disk tools may use all CPUs of the job, because a thread that waits for the disk wakes fastest on
      the CPU that handles the interrupt.
    """
    if cell.subsystem != "network" or not REGISTRY[cell.instrument].reference:
        return command
    return replace(command, cpus=tuple(cpus[: cell.concurrency]))


def pinned_server(cell: Cell, server: Command, cpus: Sequence[int]) -> Command:
    """Return a server's command, pinned to the last CPUs. Its client uses the first ones."""
    return replace(server, cpus=tuple(cpus[::-1][: cell.concurrency]))


def cpus_near_gpus(
    cell: Cell, facts: Mapping[str, Any], cpu_locations: Topology, cpus: Sequence[int]
) -> tuple[int, ...]:
    """Return the CPUs of the job on the NUMA nodes of the cell's GPUs; all CPUs if these are unknown.

    Pinned memory for copies is then close to the GPUs.
    """
    nodes = gpu.numa_nodes(facts.get("gpu"), cell.concurrency)
    near = [cpu for cpu in cpus if cpu_locations[cpu].node in nodes]
    return tuple(near or cpus)


def placed(cell: Cell, cpu_locations: Topology, cpus: Sequence[int]) -> Placed:
    """Return the CPUs that the threads of a resolved cell use, and the caches that these reach.

    The result is the key ``placed`` of a record's context.

    Args:
        cpus: CPUs of the job, in the order in which threads take them.
    """
    # Disk programs may use all CPUs of the job, see ``pinned``.
    used = cpus
    if cell.subsystem != "disk":
        used = cpus[: cell.concurrency]
    return Placed(
        word=cell.word or None,
        threads=cell.concurrency,
        placement="compact",  # the only one: threads fill one socket after the other
        cpus=tuple(used),
        **topology.reach(cpu_locations, used),
    )
