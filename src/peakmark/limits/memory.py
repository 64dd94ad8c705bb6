"""Limits of memory: of the DRAM channels, or of the cache level that holds the working set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from peakmark import data
from peakmark.catalogue import ARRAYS, LADDERS, NUMA, PAGES, POOLS, SHAPES
from peakmark.formatting import format_size, plural, quantity
from peakmark.limits.base import Clock, Limit, Question
from peakmark.messages import words

LINE, PAGE = 64, 4096
"""Bytes of a cache line, and of the small pages to which rambench rounds up its arrays."""
TARGET_OFFSETS = {2: 33 * LINE, 3: 43 * LINE}
"""Number of arrays of a thread -> bytes of the gap before the last array.

The arrays before the gap are rounded up to whole pages. rambench leaves the gap, so that the arrays
use different sets of a cache (src/kernels/memory/bench.c).
"""
DRAM_FACTOR = 4
"""Working sets of at least this multiple of the last-level cache count as in DRAM.

Between one and this multiple, neither the limit of the cache nor that of DRAM applies.
"""
_HELD, _HELD_BESIDE_GUESTS = 0.75, 0.5
"""Largest share of a cache that a working set takes to count as held, alone and where other guests may use the cache.

Pages lie where they like in a cache, so that a working set as large as the cache is evicted in part. Other guests
of a host use its last-level caches, however large a guest is told that they are.
"""
_WRITE_ALLOCATE = {"WS": (1, 2), "WR": (1, 2), "RWS": (2, 3), "RWR": (2, 3), "TRIAD": (3, 4)}
"""Workload -> (bytes counted, bytes that the channels move) with write-allocate, in units of one array.

Write-allocate: an ordinary store first reads the line that it writes.
"""
_NARROW_OR_WIDE = r"LPDDR|low-power-ddr|HBM|high-bandwidth|GDDR|wide-io"
"""Memory types, as SMBIOS and EDAC name them, whose channels are not 8 bytes wide as those of DIMMs.

Firmware reports channels of 2 or 4 bytes for LPDDR5 (JESD209-5: 16 bits), and of 8 or 16 for HBM.
"""
_WRITE_WITHOUT_READ = ("Ice Lake-SP", "Sapphire Rapids", "Emerald Rapids", "Granite Rapids")
"""Microarchitectures that write whole lines without reading them first, always or when memory is busy."""


class Level(NamedTuple):
    """A level of the data caches.

    Attributes:
        number: number of the level, 1 for L1.
        share: bytes that one thread can use, when all threads of the row run.
        line: line of ``caches.csv``, with the widths of the level's paths; empty without one.
    """

    number: int
    share: float
    line: dict[str, str]


def limit(question: Question) -> Limit:
    """Return the limit of a memory row: bytes read and written per second, or seconds per load."""
    whole = _limit(basic_row(question))
    return of_one_node(question, whole)


def _limit(question: Question) -> Limit:
    """Return the limit of a row as if it used the memory of the whole node."""
    block = question.block
    # The latency in the site file is that of the memory of a thread's own NUMA node.
    if question.workload == "NUMA-LAT" and question.variant == "local":
        stated = question.site_of_host.memory.latency
        if stated is not None:
            return question.by_site(stated, "memory")
    # A curve or matrix has no single limit.
    if question.workload in SHAPES:
        bandwidth = None
        # A reader compares the traffic of a latency under load with the bandwidth of the memory.
        if question.workload == "LOADED":
            bandwidth = dram(question).value
        return replace(question.unknown("shape"), bandwidth=bandwidth)
    if question.metric == "latency":
        return _latency(question)
    # The threads walk a pool in DRAM, or each thread sweeps a block that may fit into a cache.
    if question.variant != "block" or block is None:
        return _moved(question, dram(question))
    working_set = ARRAYS.get(question.workload, 1) * block
    return _cache(question, working_set, _bytes_of_buffers(question.workload, block))


def _bytes_of_buffers(workload: str, block: int) -> int:
    """Return the bytes of a thread's buffers, each of ``block`` bytes, with the gaps between them."""
    arrays = ARRAYS.get(workload, 1)
    if arrays == 1:
        return block
    rounded = -(-block // PAGE) * PAGE  # up to whole pages
    # Each array before the last takes whole pages. One gap (``TARGET_OFFSETS``) follows them, then
    # the last array.
    return (arrays - 1) * rounded + TARGET_OFFSETS[arrays] + block


def level_of(question: Question) -> str:
    """Return the level that a memory row measures: ``L1`` to ``DRAM``.

    The text is empty if the working set lies between two levels, or if the caches are unknown.
    """
    # The variant of a ladder row names its level and pages, such as ``l2-huge``.
    level, _, pages = question.variant.partition("-")
    if pages in PAGES:
        return level.upper()
    # A pool is far larger than the caches; the warning ``cached`` reports one that is not.
    if question.variant in POOLS:
        return "DRAM"
    block = question.block
    # Threads sweep a block (variant ``block``) or walk an area (LAT, without a variant), which may
    # fit into a cache. Other rows, such as curves and matrices, have no level.
    is_walk = question.workload == "LAT"
    if block is None or not (is_walk or question.variant == "block"):
        return ""
    caches = levels(question)
    taken = _bytes_of_buffers(question.workload, block)
    cache = _holding(question, caches, taken)
    if cache:
        return f"L{cache.number}"
    if caches and taken >= DRAM_FACTOR * caches[-1].share:
        return "DRAM"
    return ""


def basic_row(question: Question) -> Question:
    """Return the question about the basic workload of a ladder row or of a NUMA row.

    A level of a ladder becomes LAT or RS with the same working set. NUMA-RS and NUMA-WS become RS and
    WS in a pool of the whole node; ``of_one_node`` then takes the share of one NUMA node. All other questions
    are returned unchanged.
    """
    if question.workload in ("NUMA-RS", "NUMA-WS"):
        workload = question.workload.removeprefix("NUMA-")
        # Without ``placed``, ``dram`` returns the bandwidth of all NUMA nodes.
        return replace(
            question, workload=workload, variant="pool", metric="throughput", placed=None
        )
    if question.workload not in LADDERS:
        return question
    workload = LADDERS[question.workload]
    variant = "block"
    if question.variant.startswith("dram"):
        variant = "pool"
    metric = question.metric.removeprefix("ladder_")
    return replace(question, workload=workload, variant=variant, metric=metric)


def of_one_node(question: Question, whole: Limit) -> Limit:
    """Return the share of one NUMA node in a limit or bound, for throughput between NUMA nodes.

    The limits of other rows are returned unchanged. The limit is unknown if fewer than two NUMA nodes with
    memory are known. It is also unknown if a node has memory but no cores, because its memory may be slower
    or faster than the channels of the CPU.

    Args:
        question: the row.
        whole: limit or bound of the whole node.
    """
    # A latency (unit s) is not divided among the nodes.
    if question.workload not in NUMA or question.unit == "s" or whole.most is None:
        return whole
    with_memory = [node for node in question.fact("cpu", "numa") or () if node["memory"]]
    if len(with_memory) < 2 or not all(node["cpus"] for node in with_memory):
        return question.unknown("shape")
    if _reach_all_channels(question, len(with_memory)):
        return question.unknown("cache-nodes")
    return whole.part(1 / len(with_memory), f"one of {len(with_memory)} NUMA nodes has")


def _moved(question: Question, whole: Limit) -> Limit:
    """Return the limit of a row in DRAM: the bandwidth of the memory, or less with ordinary stores.

    An ordinary store reads each line before it writes it. This read takes bandwidth, but the value
    does not count its bytes.

    Args:
        question: the row.
        whole: bandwidth of the memory.
    """
    # Other kinds of stores may write lines without reading them, so the whole bandwidth is their limit.
    if (
        question.store != "temporal"
        or whole.value is None
        or question.workload not in _WRITE_ALLOCATE
    ):
        return whole
    # Cores of Arm (``neon``) may also write whole lines without reading them.
    if question.design in _WRITE_WITHOUT_READ or question.fact("cpu", "isa_best") == "neon":
        remark = (
            "ordinary stores: this design may write whole lines without reading them first, so no such"
            " read is counted"
        )
        return replace(whole, remarks=(*whole.remarks, remark))
    counted, moved = _WRITE_ALLOCATE[question.workload]
    why = ": an ordinary store first reads the line, which is not counted"
    return whole.part(counted / moved, f"{counted}/{moved} =", why)


def dram(question: Question) -> Limit:
    """Return the bandwidth of the memory channels of the NUMA nodes on which the row's threads run.

    Each thread touches its part of the memory first, so this part is on the thread's node.
    """
    whole = _node(question)
    every = question.fact("cpu", "numa") or ()
    # Numbers of the NUMA nodes that have cores and memory, and of those on which the threads run.
    nodes = {node["node"] for node in every if node["cpus"] and node["memory"]}
    placed = set(question.placed_fact("numa_nodes") or ())
    used = placed & nodes
    # Threads on all nodes reach all channels. Threads on unknown nodes may do so.
    if whole.value is None or used == nodes or not placed:
        return whole
    # Threads of a node without memory use that of other nodes.
    if used != placed:
        return question.unknown("empty-node")
    # These may be separate NUMA nodes, whose threads reach the share below, or parts of a socket,
    # whose threads reach more. The facts do not tell which, so that the limit is unknown.
    if _reach_all_channels(question, len(nodes)):
        return question.unknown("cache-nodes")
    share = len(used) / len(nodes)
    return whole.part(share, f"threads on {len(used)} of {len(nodes)} NUMA nodes reach")


def _reach_all_channels(question: Question, count: int) -> bool:
    """Return whether the NUMA nodes may be parts of a socket whose threads reach all of its memory channels.

    Firmware of AMD can present each last-level cache of a socket as a node. With ``numa=fake`` Linux divides the
    memory of a node, and lists its CPUs in each part.

    Args:
        question: the row.
        count: number of NUMA nodes with cores and memory.
    """
    if "numa=fake" in (question.fact("os", "command_line") or ""):
        return True
    caches = [one for one in question.fact("cpu", "caches") or () if one["type"] != "instruction"]
    # There are as many nodes as last-level caches, and more than sockets.
    last = max(caches, key=lambda one: int(one["level"]), default={"count": 0})
    return bool(last["count"] == count > int(question.fact("cpu", "sockets") or 1))


def datasheet(question: Question) -> dict[str, str] | None:
    """Return the line of memory.csv for this CPU's model name; None if no line matches it."""
    return data.of_model(data.table("memory"), question.fact("cpu", "model_name"))


def _node(question: Question) -> Limit:
    """Return the bandwidth of all memory channels of the node.

    The numbers come from the first of these sources that has them: the site file, the memory modules,
    the CPU's datasheet.
    """
    whole = question.site_of_host.memory.bandwidth
    if whole is not None:
        return question.by_site(whole, "memory")
    channels = question.known("memory", "channels")
    speed = question.known("memory", "speed_mts")
    line, sockets = datasheet(question), int(question.fact("cpu", "sockets") or 1)
    width = _channel_width(question)
    is_stated = any(
        question.stated("memory", name) is not None for name in ("channels", "speed_mts")
    )
    # Memory in the package adds bandwidth that neither modules nor datasheet state.
    if _has_wide_memory(question) and not is_stated:
        return question.unknown("on-package", key="memory.bandwidth")
    keys = "memory.channels and memory.speed_mts"
    # A guest may have a part of the CPU's memory only, so modules and datasheet say nothing about it.
    if question.fact("cpu", "virtualised") and not is_stated:
        return question.unknown("guest", key=keys)
    # The product of channels, speed and width, from the site file or from the memory modules.
    if channels is not None and speed is not None and width is not None:
        value_and_formula = _bandwidth(
            int(channels), each="", speed=float(speed), width=float(width)
        )
        if is_stated:
            return question.limit(*value_and_formula, question.site_source("memory"), "site")
        source = "memory modules as the firmware describes them"
        finding = _empty_channels(line, sockets, int(channels), width)
        return question.limit(*value_and_formula, source, "read", finding=finding)
    if line and line["speed_mts"]:
        each = f" ({plural(sockets, 'socket')} x {line['channels']} channels, max for the CPU)"
        value_and_formula = of_line(line, sockets, each)
        remark = (
            "the most such a CPU can have; fewer or slower modules lower it: state memory in the"
            " site file"
        )
        return question.limit(*value_and_formula, line["source"], "datasheet", remarks=(remark,))
    # Name what is missing: the speed, the width of a channel, or the number of channels.
    if line:
        return question.unknown("memory-speed", key=keys, channels=int(line["channels"]))
    if channels is not None and speed is not None:
        kind = str(question.known("memory", "type"))
        return question.unknown("channel-width", key="memory.bytes_per_transfer", memory=kind)
    if question.fact("memory", "modules") and speed is None:
        return question.unknown("module-rate", key=keys)
    if not question.facts:
        return question.unknown("facts")
    return question.unknown("channels", key=keys)


def _has_wide_memory(question: Question) -> bool:
    """Return whether the CPU has memory in its package, such as HBM, beside its channels or in their place.

    Such CPUs are in sockets.csv without a speed.
    """
    lines = data.of_design("sockets", question.design)
    line = data.of_model(lines, question.fact("cpu", "model_name"))
    return line is not None and not line["speed_mts"]


def _channel_width(question: Question) -> float | None:
    """Return the bytes per transfer of a channel.

    They come from the site file or from the machine; if both lack them, they are 8, as for DIMMs. The
    result is None for types of memory whose channels have different widths.
    """
    width = question.known("memory", "bytes_per_transfer")
    if width is not None:
        return float(width)
    kind = str(question.known("memory", "type") or "")
    return None if re.search(_NARROW_OR_WIDE, kind, re.IGNORECASE) else 8.0


def _empty_channels(line: dict[str, str] | None, sockets: int, channels: int, width: float) -> str:
    """Return the finding that some channels of the CPUs hold no module.

    The result is empty if every channel holds a module, or if this is unknown: numbers of channels can be
    compared only if the firmware and the datasheet mean channels of the same width.

    Args:
        line: line of memory.csv, which has the channels of one socket; None for an unknown CPU.
        sockets: number of sockets.
        channels: populated channels of the whole node, as the firmware describes them.
        width: bytes per transfer of these channels.
    """
    if line is None or float(line["bytes_per_transfer"]) != width:
        return ""
    each = int(line["channels"])
    if channels >= sockets * each:
        return ""
    return words(
        "empty-channels",
        populated=channels,
        channels=sockets * each,
        sockets=sockets,
        each=each,
        source=line["source"],
    )


def _bandwidth(channels: int, each: str, speed: float, width: float) -> tuple[float, str]:
    """Return the B/s of memory channels, and the formula of this value.

    Args:
        channels: number of channels.
        each: text that follows the number of channels in the formula.
        speed: million transfers per second of a channel.
        width: bytes per transfer.
    """
    value = channels * speed * 1e6 * width
    product = f"{plural(channels, 'channel')}{each} x {speed:g} MT/s x {width:g} B"
    return value, f"{product} = {quantity(value, 'B/s')}"


def of_line(line: dict[str, str], sockets: int, each: str) -> tuple[float, str]:
    """Return the B/s of the channels of all sockets, and the formula of this value.

    Args:
        line: line of memory.csv or sockets.csv.
        sockets: number of sockets.
        each: text that follows the number of channels in the formula.
    """
    speed, width = float(line["speed_mts"]), float(line["bytes_per_transfer"])
    return _bandwidth(sockets * int(line["channels"]), each, speed, width)


def cache_lines(question: Question) -> dict[int, dict[str, str]]:
    """Return cache level -> its line of caches.csv, for the machine's microarchitecture."""
    lines = data.of_design("caches", question.design)
    return {int(line["level"]): line for line in lines}


def column(workload: str) -> str:
    """Return the column of caches.csv with the widths of paths for a throughput workload."""
    if workload == "TRIAD":
        return "triad"
    # Tested before a first letter R: copies begin with it too.
    if workload.startswith("RW"):
        return "copy"
    return {"R": "load", "W": "store"}[workload[0]]  # RS and RR read, WS and WR write


def levels(question: Question) -> list[Level]:
    """Return this machine's data caches, L1 first."""
    lines = cache_lines(question)
    cores, _ = question.cores
    threads = max(1, cores or 1)  # one on each core: two on one core share its caches
    caches = [one for one in question.fact("cpu", "caches") or () if one["type"] != "instruction"]
    every = []
    for cache in sorted(caches, key=lambda cache: int(cache["level"])):
        # Threads share all caches of a level, but one thread can use only one of them.
        share = min(float(cache["size"]), cache["size"] * cache["count"] / threads)
        number = int(cache["level"])
        every.append(Level(number, share, lines.get(number, {})))
    # Last-level caches of sockets without threads of the row do not count. The records have the bytes of the others.
    last_level_bytes = question.placed_fact("last_level_bytes")
    if every and last_level_bytes:
        last = every[-1]
        every[-1] = last._replace(share=min(last.share, last_level_bytes / threads))
    return every


def _holding(question: Question, caches: Sequence[Level], size: int) -> Level | None:
    """Return the cache that holds a thread's working set of ``size`` bytes; None if it may be between two levels."""
    for level in caches:
        if size <= level.share:
            is_shared = level is caches[-1] and question.fact("cpu", "virtualised")
            held = _HELD_BESIDE_GUESTS if is_shared else _HELD
            return level if size <= held * level.share else None
    return None


def _cache(question: Question, moved_bytes: int, buffer_bytes: int) -> Limit:
    """Return the limit of the cache level into which a thread's working set fits.

    A sweep accesses all other lines before it returns to a line. By then, a level that is smaller than
    the working set has evicted the line. Every byte therefore comes from the first level that holds
    the whole working set. The narrowest path from that level to the core limits the rate.

    Args:
        question: the row.
        moved_bytes: bytes that a sweep of one thread reads and writes, its working set.
        buffer_bytes: bytes of the thread's buffers with their gaps, so that a copy of 1 MiB does not fit a
            cache of 2 MiB.
    """
    (cores, _), clock, caches = question.cores, question.clock, levels(question)
    if cores is None or clock is None or not caches:
        return question.unknown("facts")
    level = _holding(question, caches, buffer_bytes)
    if level:
        way = caches[: caches.index(level) + 1]
        return _narrowest(question, way, moved_bytes, cores, clock)
    # The gaps between the buffers are small against such a working set.
    if moved_bytes >= DRAM_FACTOR * caches[-1].share:
        return _moved(question, dram(question))
    return question.unknown("between", size=moved_bytes)


def _narrowest(
    question: Question, way: Sequence[Level], moved_bytes: int, cores: int, clock: Clock
) -> Limit:
    """Return the limit of the narrowest path between the cores and the cache with the working set.

    Args:
        question: the row.
        way: the caches that the bytes pass, L1 first. The last one holds the working set.
        moved_bytes: size of the working set.
        cores: number of cores that the row keeps busy.
        clock: clock of the cores.
    """
    needed = column(question.workload)
    _, cores_source = question.cores
    # Without the width of each path, the narrowest one is unknown.
    for level in way:
        if not level.line.get(needed):
            model = question.fact("cpu", "model_name")
            design = question.design or model or "this CPU"
            return question.unknown("width", level=level.number, processor=str(design))
    # If several paths have the same width, take the outermost one.
    narrowest = min(reversed(way), key=lambda level: float(level.line[needed]))
    width = float(narrowest.line[needed])
    value = cores * clock.hz * width
    formula = (
        f"{format_size(moved_bytes)} per thread fits L{way[-1].number}; {plural(cores, 'core')}"
        f" x {clock.text()} x {width:.4g} B per cycle = {quantity(value, 'B/s')}"
    )
    detail = f"L{narrowest.number}: {width:g} B per cycle and core ({needed})"
    return question.limit(
        value,
        formula,
        narrowest.line["source"],
        clock.origin,
        clock=clock.name,
        detail=detail,
        cores=cores_source,
    )


def _latency(question: Question) -> Limit:
    """Return the seconds per dependent load: the latency of the cache level that holds the area.

    For an area in DRAM, it is the latency that the site file states. The loads visit all lines of the area
    before they return to a line. By then, a smaller level has evicted the line, so no load hits that level.
    """
    area, caches, clock = question.block or 0, levels(question), question.clock
    # A row without an area (0) has no such cache, and is answered as one in DRAM.
    level = _holding(question, caches, area) if area else None
    cycles = level.line.get("latency_cycles") if level else None
    if level and cycles:
        if clock is None:
            return question.unknown("clock", key="cpu.nominal_hz")
        value = float(cycles) / clock.hz
        formula = (
            f"{format_size(area)} fits L{level.number}: {cycles} cycles at {clock.text()}"
            f" = {quantity(value, 's')}"
        )
        source = level.line["latency_source"]
        return question.limit(value, formula, source, clock.origin, clock=clock.name)
    # The area is in a cache without a latency in caches.csv, or between two levels.
    if caches and 0 < area < DRAM_FACTOR * caches[-1].share:
        return question.unknown("area-between", size=area)
    # The area is in DRAM, whose latency only the site file can state.
    stated = question.site_of_host.memory.latency
    if stated is not None:
        return question.by_site(stated, "memory")
    # Without known caches, the area may be in one.
    if not caches:
        return question.unknown("shape")
    return question.unknown("area", key="memory.latency", size=area)


def bounds(question: Question) -> list[Limit | None]:
    """Return the bounds of a memory row: by its cores, by the memory of its sockets, or by a cache's latency.

    A bound whose numbers are unknown is None. A row without bounds, such as a curve, has an empty list.
    """
    whole = _bounds(basic_row(question), between_numa_nodes=question.workload in NUMA)
    return [bound and of_one_node(question, bound) for bound in whole]


def _bounds(question: Question, between_numa_nodes: bool) -> list[Limit | None]:
    """Return the bounds of a row as if it used the memory of all NUMA nodes; None in the place of an unknown bound.

    Args:
        question: the row, as ``basic_row`` returns it.
        between_numa_nodes: whether the row measures between NUMA nodes. Such rows have no bound by cores,
            because only the cores of one NUMA node work at a time.
    """
    # The values of a curve or matrix have no common bound.
    if question.workload in SHAPES:
        return []
    if question.metric == "latency":
        return [_beyond_cache(question)]
    needed = column(question.workload)
    # Blocks may fit into a cache, so that neither the path to L2 nor the memory bounds their rate.
    may_be_cached = question.variant == "block"
    cores, _ = question.cores
    found = []
    if not between_numa_nodes:
        found.append(by_cores(question, cores, needed, may_stay_in_l1=may_be_cached))
    if not may_be_cached:
        found.append(by_sockets(question))
    return found


def by_cores(
    question: Question, cores: int | None, needed: str, may_stay_in_l1: bool, moves: int = 1
) -> Limit | None:
    """Return the rate at which cores can move data, by the width of L1 and of the path to L2.

    Return None if the cores, their clock or their L1 cache are unknown.

    Args:
        question: the row.
        cores: number of cores, if known.
        needed: column of caches.csv: load, store, copy or triad.
        may_stay_in_l1: whether the data may stay in L1, so that the path to L2 does not bound the rate.
        moves: how often the cores of this machine move each counted byte.
    """
    lines, clock = cache_lines(question), question.clock
    if not (cores and clock and 1 in lines):
        return None
    width = float(lines[1][needed])
    if not may_stay_in_l1 and 2 in lines:
        path = float(lines[2]["load"])  # B per cycle from L2 into L1
        # Of the counted bytes, half of a copy's and a third of a triad's are written, and need not come through
        # this path. Stores alone are bound by it, because the lines that they change are first read into L1.
        path *= {"copy": 2, "triad": 1.5}.get(needed, 1)
        width = min(width, path)
    value = cores * clock.hz * width / moves
    if question.unit == "bit/s":  # the row is one of the network
        value *= 8
    formula = f"{plural(cores, 'core')} x {clock.text(2)} x {width:g} B per cycle ({needed})"
    if moves > 1:
        formula += f" / {moves} (a byte is read and written on each end)"
    return question.bound(value, formula, lines[1]["source"], "datasheet")


def by_sockets(question: Question, detail: str = "") -> Limit | None:
    """Return the bandwidth of the fastest memory that a processor of this core design can have; None if unknown.

    sockets.csv has a line for each family of processors of a design. The CPU's model name chooses
    the line; without a line there is no bound. ``detail`` is printed in brackets after the formula.
    """
    lines = data.of_design("sockets", question.design)
    line = data.of_model(lines, question.fact("cpu", "model_name"))
    if line is None or not line["speed_mts"]:
        return None
    sockets = int(line["sockets"])
    # A machine with more sockets may have more memory than the table says.
    if int(question.fact("cpu", "sockets") or 1) > sockets:
        return None
    channels = f" ({plural(sockets, 'socket')} x {line['channels']}, the most sold with such cores)"
    value_and_formula = of_line(line, sockets, channels)
    return question.bound(*value_and_formula, line["source"], "datasheet", detail=detail)


def _beyond_cache(question: Question) -> Limit | None:
    """Return the latency of the largest cache that is smaller than the area, as a lower bound.

    Loads from beyond this cache take at least as long. Return None if the clock, or the latency of every such
    cache, is unknown.
    """
    area, clock = question.block or 0, question.clock
    smaller = [
        level
        for level in levels(question)
        if level.line.get("latency_cycles") and level.share < area
    ]
    if not (clock and smaller):
        return None
    last = smaller[-1]
    value = float(last.line["latency_cycles"]) / clock.hz
    formula = (
        f"{last.line['latency_cycles']} cycles of L{last.number}, which the area of {format_size(area)} exceeds,"
        f" at {clock.text(2)} = {quantity(value, 's', 2)}"
    )
    return question.bound(value, formula, last.line["latency_source"], "datasheet")
