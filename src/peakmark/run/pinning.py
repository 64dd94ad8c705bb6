"""What a cell's job may use, and what of it the cell takes: words become numbers on the node that
measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from peakmark.catalogue import AUTO, NUMA, POOLS
from peakmark.cell import Cell
from peakmark.machine import topology
from peakmark.machine.host import Facts, Host
from peakmark.machine.topology import Topology
from peakmark.tools import REGISTRY
from peakmark.tools.base import Command

LEAST_POOL = 256 << 20
"""A pool chosen here is never smaller: the pages of a smaller one would all be in the translation
buffers.
"""
POOL_FACTOR = 4
POOL_SHARE = 0.5
"""Of the memory that a job may have, for a pool chosen here."""
ROUND = 64 << 20


def allowed(host: Host, limits: Mapping[str, Any], cpu_locations: Topology) -> Facts:
    """What the job may use, for the record's context: CPUs, cores, quota, memory (B), NUMA nodes
    that may give memory (in the kernel's list format); and how many cores the whole node has.
    """
    return {
        "cpus": sorted(limits["cpus_allowed"]),
        "cores": limits["physical_cores_allowed"],
        "cpu_quota": limits["cpu_quota"],
        "memory_bytes": limits["memory_bytes"],
        "memory_limited_by": limits["memory_limited_by"],
        "memory_nodes": host.pairs("/proc/self/status").get("Mems_allowed_list") or None,
        "node_cores": topology.reach(cpu_locations, cpu_locations)["cores"],
    }


def granted(limits: Mapping[str, Any], node_bytes: int | None) -> Mapping[str, Any]:
    """The limits with no more memory than Slurm has granted the job, where no cgroup holds it to
    that: the rest is the system's, or another job's.

    Args:
        node_bytes: memory that Slurm has of this node, for a job that asked for all of it; None
            where unknown.
    """
    slurm, most = limits["slurm"], limits["memory_bytes"]
    if slurm is None or most is None:
        return limits
    by_cpus = (slurm["memory_per_cpu_bytes"] or 0) * (slurm["cpus_on_node"] or 0)
    memory = slurm["memory_per_node_bytes"] or by_cpus or node_bytes or most
    if memory >= most:
        return limits
    return {**limits, "memory_bytes": memory, "memory_limited_by": "slurm"}


def placement_of(cell: Cell) -> str:
    """How its threads are placed; those in one part of the node, by a word, are never spread."""
    if cell.word in ("numa", "socket"):
        return "compact"
    return str(cell.options.get("placement") or "compact")


def resolve_cell(cell: Cell, cpu_locations: Topology, cpus: list[int], memory: int) -> Cell:
    """The cell with numbers where it has words, for this node and these CPUs; its id stays.

    Args:
        cpus: what the job may use, as ``topology.order`` returns it.
        memory: bytes the job may have.
    """
    if cell.word:
        cell = replace(cell, concurrency=topology.resolve(cpu_locations, cpus, cell.word))
    used = cpus[: cell.concurrency]
    loaded = cell.workload == "LOADED"
    walks = loaded or cell.workload in NUMA or cell.variant in POOLS
    if walks and cell.options.get("pool") == AUTO:
        cached = topology.reach(cpu_locations, used)["last_level_bytes"]
        room = memory // 2 if loaded else memory  # LOADED copies, and has an area, beside its pool
        cell = replace(cell, options={**cell.options, "pool": pool(cell, cached, room)})
    if cell.automatic:
        from peakmark.tools.programs.rambench import LINE  # late: most cells do without rambench

        cached = max(cpu_locations[cpu].cache_bytes for cpu in used)
        # One pointer a line: so large an area has no line twice among its neighbours, and is laid
        # out eight times sooner.
        chosen = {"area": area(cell.concurrency, cached, memory), "stride": LINE}
        cell = replace(cell, options={**cell.options, **chosen})
    return cell


def area(threads: int, cached: int, memory: int) -> int:
    """Bytes of LAT's area in each thread, beyond a cache of ``cached`` bytes as a pool is; the same
    for any number of threads that the memory allows, and a power of two, as pmbw measures no
    other.
    """
    wanted = 1 << (max(LEAST_POOL, POOL_FACTOR * cached) - 1).bit_length()
    room = int(memory * POOL_SHARE) // threads
    return min(wanted, 1 << max(room, ROUND).bit_length() - 1)


def pool(cell: Cell, cached: int, memory: int) -> int:
    """Bytes of a pool that lies ``POOL_FACTOR`` times beyond caches of ``cached`` bytes, as far as
    the memory allows; a power of two where a reference tool takes no others.

    A kernel takes whole blocks: what each thread cannot fill is added.
    """
    wanted = max(LEAST_POOL, POOL_FACTOR * cached + 2 * cell.concurrency * (cell.block or 0))
    room = max(int(memory * POOL_SHARE), ROUND)
    if cell.options.get("power_of_two"):
        return min(1 << (wanted - 1).bit_length(), 1 << room.bit_length() - 1)
    return min(-(-wanted // ROUND), room // ROUND) * ROUND


def pinned(cell: Cell, command: Command, cpus: Sequence[int]) -> Command:
    """A network tool on as many CPUs as it has streams, as netbench pins itself: one that moves
    wakes sleeping CPUs.

    Tools of CPU and memory begin with taskset. Those of the disk, and diskbench, may use all CPUs
    of the job: a thread that waits for the disk is woken best where the interrupt arrives.
    """
    if cell.subsystem != "network" or not REGISTRY[cell.instrument].reference:
        return command
    return replace(command, cpus=tuple(cpus[: cell.concurrency]))


def pinned_server(cell: Cell, server: Command, cpus: Sequence[int]) -> Command:
    """A server on the machine of its client, on the last CPUs, as the client has the first."""
    return replace(server, cpus=tuple(cpus[::-1][: cell.concurrency]))


def placed(cell: Cell, cpu_locations: Topology, cpus: list[int]) -> Facts:
    """What the threads of a resolved cell can reach, for the record's context; ``cpus`` in their
    order.
    """
    used = cpus if cell.subsystem == "disk" else cpus[: cell.concurrency]
    return {
        "word": cell.word or None,
        "threads": cell.concurrency,
        "placement": placement_of(cell),
        "cpus": used,
        **topology.reach(cpu_locations, used),
    }
