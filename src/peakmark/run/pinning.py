"""Decide what a cell takes of the resources that its job may use. Words become numbers on the node that
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
"""Smallest pool in bytes that is chosen here. The translation buffers would hold all pages of a
smaller one.
"""
POOL_FACTOR = 4
"""Size of a pool that is chosen here, as a multiple of the caches."""
POOL_SHARE = 0.5
"""Largest share of the job's memory for a pool that is chosen here."""
ROUND = 64 << 20
"""Bytes to whose multiples pools are rounded."""


def allowed(host: Host, limits: Mapping[str, Any], cpu_locations: Topology) -> Facts:
    """Return what the job may use, for the record's context: CPUs, cores, quota, memory in bytes,
    and the NUMA nodes that may give memory (in the kernel's list format). Add the cores of the
    whole node.
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
    """Return the limits with no more memory than Slurm granted the job. Without a cgroup limit the
    rest belongs to the system or to other jobs.

    Args:
        node_bytes: memory of this node in Slurm, for a job that asked for all of it; None where
            unknown.
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
    """Return how the threads of a cell are placed. Threads in one part of the node, by a word, are
    never spread.
    """
    if cell.word in ("numa", "socket"):
        return "compact"
    return str(cell.options.get("placement") or "compact")


def resolve_cell(cell: Cell, cpu_locations: Topology, cpus: list[int], memory: int) -> Cell:
    """Return the cell with numbers in place of words, for this node and these CPUs. Its id stays.

    Args:
        cpus: CPUs that the job may use, as ``topology.order`` returns them.
        memory: bytes that the job may have.
    """
    if cell.word:
        cell = replace(cell, concurrency=topology.resolve(cpu_locations, cpus, cell.word))
    used = cpus[: cell.concurrency]
    # A pool beyond the last-level caches that the threads use.
    loaded = cell.workload == "LOADED"
    walks = loaded or cell.workload in NUMA or cell.variant in POOLS
    if walks and cell.options.get("pool") == AUTO:
        cached = topology.reach(cpu_locations, used)["last_level_bytes"]
        room = memory
        if loaded:
            room = memory // 2  # the rest is for the copy and the area of LOADED
        cell = replace(cell, options={**cell.options, "pool": pool(cell, cached, room)})
    # An area of LAT beyond the caches of a thread.
    if cell.automatic:
        from peakmark.tools.programs.rambench import LINE  # late: most cells do without rambench

        cached = max(cpu_locations[cpu].cache_bytes for cpu in used)
        # One pointer for each cache line fills so large an area eight times faster, and no line
        # repeats among neighbours.
        chosen = {"area": area(cell.concurrency, cached, memory), "stride": LINE}
        cell = replace(cell, options={**cell.options, **chosen})
    return cell


def area(threads: int, cached: int, memory: int) -> int:
    """Return the bytes of LAT's area in each thread, ``POOL_FACTOR`` times the caches of ``cached``
    bytes.

    The area is a power of two, because pmbw measures no other. It does not depend on the number of
    threads, as long as the memory suffices.
    """
    wanted = 1 << (max(LEAST_POOL, POOL_FACTOR * cached) - 1).bit_length()
    room = int(memory * POOL_SHARE) // threads
    return min(wanted, 1 << max(room, ROUND).bit_length() - 1)


def pool(cell: Cell, cached: int, memory: int) -> int:
    """Return the bytes of a pool ``POOL_FACTOR`` times as large as caches of ``cached`` bytes, as
    far as the memory allows. It is a power of two if a reference tool needs that.

    A kernel takes whole blocks, so two blocks for each thread are added.
    """
    wanted = max(LEAST_POOL, POOL_FACTOR * cached + 2 * cell.concurrency * (cell.block or 0))
    room = max(int(memory * POOL_SHARE), ROUND)
    if cell.options.get("power_of_two"):
        return min(1 << (wanted - 1).bit_length(), 1 << room.bit_length() - 1)
    return min(-(-wanted // ROUND), room // ROUND) * ROUND


def pinned(cell: Cell, command: Command, cpus: Sequence[int]) -> Command:
    """Return the command of a network tool, pinned to as many CPUs as it has streams. netbench pins
    itself so; a tool that moves wakes sleeping CPUs.

    Commands of CPU and memory tools begin with taskset. Disk tools may use all CPUs of the job: a
    thread that waits for the disk wakes best on the CPU of the interrupt.
    """
    if cell.subsystem != "network" or not REGISTRY[cell.instrument].reference:
        return command
    return replace(command, cpus=tuple(cpus[: cell.concurrency]))


def pinned_server(cell: Cell, server: Command, cpus: Sequence[int]) -> Command:
    """Return a server command pinned to the last CPUs. Its client on the same machine has the first
    ones.
    """
    return replace(server, cpus=tuple(cpus[::-1][: cell.concurrency]))


def placed(cell: Cell, cpu_locations: Topology, cpus: list[int]) -> Facts:
    """Return what the threads of a resolved cell can reach, for the record's context. ``cpus`` are
    in their order of use.
    """
    used = cpus
    if cell.subsystem != "disk":
        used = cpus[: cell.concurrency]
    return {
        "word": cell.word or None,
        "threads": cell.concurrency,
        "placement": placement_of(cell),
        "cpus": used,
        **topology.reach(cpu_locations, used),
    }
