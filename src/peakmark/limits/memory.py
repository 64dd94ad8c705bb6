"""Limits of memory: the DRAM channels for workloads that walk a pool, a cache level for those that
stay in the cache.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from peakmark import data
from peakmark.catalogue import LADDERS, NUMA, PAGES, POOLS, SHAPES
from peakmark.formatting import format_size, plural, quantity
from peakmark.limits.base import Clock, Limit, Question
from peakmark.messages import Message, message

LINE, PAGE = 64, 4096
"""Bytes of a cache line and of a page."""
COPY_OFFSET = 33 * LINE
"""Bytes from the begin of the page after a copy's source to the copy's target, in rambench
(src/kernels/memory/bench.c).
"""
DRAM_FACTOR = 4
"""Multiple of the last cache from which on a working set is in DRAM. Between the cache and that
neither limit holds.
"""
_COUNTED = {"WS": (1, 2), "WR": (1, 2), "RWS": (2, 3), "RWR": (2, 3)}
"""Workload -> (bytes that are counted, bytes that the channels move), where a store reads its line
before it writes it.
"""
_NARROW_OR_WIDE = r"LPDDR|low-power-ddr|HBM|high-bandwidth|GDDR|wide-io"
"""Memory types, as SMBIOS and EDAC name them, whose channels are not 8 bytes wide like a DIMM's. What the
firmware lists as a channel has 2 or 4 bytes with LPDDR5 (JESD209-5: 16 bits), and 8 or 16 with HBM.
"""
_WRITE_WITHOUT_READ = ("Ice Lake-SP", "Sapphire Rapids", "Emerald Rapids", "Granite Rapids")
"""Designs that write whole lines without reading them before, always or when the memory is busy."""


class Level(NamedTuple):
    """A level of the data caches.

    Attributes:
        number: 1 for L1.
        share: bytes that one thread can keep there.
        line: the row of ``caches.csv`` with the widths of this level's paths; empty if the file has
            none.
    """

    number: int
    share: float
    line: dict[str, str]


def limit(question: Question) -> Limit:
    """Return the limit of memory: bytes per second (read and written added), or seconds per
    dependent load.
    """
    return of_one_node(question, _limit(plain(question)))


def _limit(question: Question) -> Limit:
    """Return the limit of a row as if the whole node's memory served it."""
    block = question.block
    if question.workload == "NUMA-LAT" and question.variant == "local":
        stated = question.stated("memory", "latency")
        if stated is not None:
            return question.by_site(stated, "memory")
    if question.workload in SHAPES:
        bandwidth = None
        if question.workload == "LOADED":
            bandwidth = dram(question).value
        return replace(question.unknown("shape"), bandwidth=bandwidth)
    if question.metric == "latency":
        return _latency(question)
    if question.variant != "block" or block is None:
        return _moved(question, dram(question))
    working_set = block
    if question.workload.startswith("RW"):
        working_set = 2 * block
    return _cache(question, working_set, _taken(question.workload, block))


def _taken(workload: str, block: int) -> int:
    """Return the bytes that the buffers of a thread take: a copy has two."""
    if not workload.startswith("RW"):
        return block
    return -(-block // PAGE) * PAGE + COPY_OFFSET + block


def level_of(question: Question) -> str:
    """Return the level that a memory row measures: ``L1`` to ``DRAM``.

    Empty where its working set lies between two levels, or the caches are not known.
    """
    level, _, pages = question.variant.partition("-")
    if pages in PAGES:
        return level.upper()
    if question.variant in POOLS:
        return "DRAM"
    block = question.block
    is_walk = question.workload == "LAT"
    if block is None or not (is_walk or question.variant == "block"):
        return ""
    caches = levels(question)
    taken = _taken(question.workload, block)
    for cache in caches:
        if taken <= cache.share:
            return f"L{cache.number}"
    if caches and taken >= DRAM_FACTOR * caches[-1].share:
        return "DRAM"
    return ""


def plain(question: Question) -> Question:
    """Return the question about the plain workload that a row of a ladder or of NUMA repeats.

    A ladder's level is asked as LAT or RS in its working set; NUMA-RS and NUMA-WS are asked as RS
    and WS in a pool of the whole node.
    """
    if question.workload in ("NUMA-RS", "NUMA-WS"):
        workload = question.workload.removeprefix("NUMA-")
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


def of_one_node(question: Question, limit: Limit) -> Limit:
    """Return the part of a throughput's limit or bound that one NUMA node has, for rows from node
    to node.

    The limit is unknown where a node has memory but no cores: its memory may be slower or faster
    than the channels of the CPU.
    """
    if question.workload not in NUMA or question.unit == "s" or limit.most is None:
        return limit
    every = [node for node in question.fact("cpu", "numa") or () if node["memory"]]
    if len(every) < 2 or not all(node["cpus"] for node in every):
        return question.unknown("shape")
    return limit.part(1 / len(every), f"one of {len(every)} NUMA nodes has")


def _moved(question: Question, limit: Limit) -> Limit:
    """Return the limit less the reads that stores through the caches cause: each line is read
    before it is written.
    """
    if question.store != "temporal" or limit.value is None or question.workload not in _COUNTED:
        return limit
    if question.design in _WRITE_WITHOUT_READ or question.fact("cpu", "isa_best") == "neon":
        remark = (
            "ordinary stores: this design may write whole lines without reading them first, so no such"
            " read is counted"
        )
        return replace(limit, remarks=(*limit.remarks, message("remark", remark=remark)))
    counted, moved = _COUNTED[question.workload]
    why = ": an ordinary store first reads the line, which is not counted"
    return limit.part(counted / moved, f"{counted}/{moved} =", why)


def dram(question: Question) -> Limit:
    """Return the bandwidth of the memory channels of the NUMA nodes that the row's threads run on.

    Each thread touches its own memory first, so the memory lies in the thread's node.
    """
    whole = _node(question)
    every = question.fact("cpu", "numa") or ()
    nodes = {node["node"] for node in every if node["cpus"] and node["memory"]}
    used = set(question.reached("numa_nodes") or ()) & nodes
    if not used or used == nodes:
        return whole
    share = len(used) / len(nodes)
    return whole.part(share, f"threads on {len(used)} of {len(nodes)} NUMA nodes reach")


def datasheet(question: Question) -> dict[str, str] | None:
    """Return the line of memory.csv for this CPU, None without one."""
    return data.of_model(data.table("memory"), question.fact("cpu", "model_name"))


def _node(question: Question) -> Limit:
    """Return the bandwidth of all memory channels of the node: by the site file, by the modules, or
    else by the datasheet of the CPU.
    """
    whole = question.stated("memory", "bandwidth")
    if whole is not None:
        return question.by_site(whole, "memory")
    channels = question.known("memory", "channels")
    speed = question.known("memory", "speed_mts")
    line, sockets = datasheet(question), int(question.fact("cpu", "sockets") or 1)
    width = _channel_width(question)
    if channels is not None and speed is not None and width is not None:
        product = _bandwidth(int(channels), "", float(speed), float(width))
        if any(question.stated("memory", name) is not None for name in ("channels", "speed_mts")):
            return question.limit(*product, question.site_source("memory"), "site")
        source = "memory modules as the firmware describes them"
        finding = _empty_channels(line, sockets, int(channels), width)
        return question.limit(*product, source, "read", finding=finding)
    keys = "memory.channels and memory.speed_mts"
    if question.fact("cpu", "virtualised"):
        return question.unknown("guest", key=keys)
    if line and line["speed_mts"]:
        each = f" ({plural(sockets, 'socket')} x {line['channels']} channels, max for the CPU)"
        product = of_line(line, sockets, each)
        remark = message(
            "remark",
            remark="the most such a CPU can have; fewer or slower modules lower it: state memory in the"
            " site file",
        )
        return question.limit(*product, line["source"], "datasheet", remarks=(remark,))
    if line:
        return question.unknown("memory-speed", key=keys, channels=int(line["channels"]))
    if channels is not None and speed is not None:
        kind = str(question.known("memory", "type"))
        return question.unknown("channel-width", key="memory.bytes_per_transfer", memory=kind)
    return question.unknown("channels", key=keys)


def _channel_width(question: Question) -> float | None:
    """Return the bytes that a channel moves at once: as stated or read, else the 8 of a DIMM.

    None for kinds of memory whose channels have several widths.
    """
    width = question.known("memory", "bytes_per_transfer")
    if width is not None:
        return float(width)
    kind = str(question.known("memory", "type") or "")
    return None if re.search(_NARROW_OR_WIDE, kind, re.IGNORECASE) else 8.0


def _empty_channels(
    line: dict[str, str] | None, sockets: int, channels: int, width: float
) -> Message | None:
    """Return the finding that some channels of the CPU hold no module; None where all do."""
    if line is None or float(line["bytes_per_transfer"]) != width:
        return None
    if channels >= sockets * int(line["channels"]):
        return None
    each = int(line["channels"])
    return message(
        "empty-channels",
        populated=channels,
        channels=sockets * each,
        sockets=sockets,
        each=each,
        source=line["source"],
    )


def _bandwidth(channels: int, each: str, speed: float, width: float) -> tuple[float, str]:
    """Return the B/s of memory channels, and its formula.

    Args:
        each: words of the formula behind the number of channels.
        speed: million transfers per second of a channel.
        width: bytes of a transfer.
    """
    value = channels * speed * 1e6 * width
    words = f"{plural(channels, 'channel')}{each} x {speed:g} MT/s x {width:g} B"
    return value, f"{words} = {quantity(value, 'B/s')}"


def of_line(line: dict[str, str], sockets: int, each: str) -> tuple[float, str]:
    """Return the B/s of the channels that a line of a table gives to each socket, and its formula.

    Args:
        each: words of the formula behind the number of channels.
    """
    speed, width = float(line["speed_mts"]), float(line["bytes_per_transfer"])
    return _bandwidth(sockets * int(line["channels"]), each, speed, width)


def cache_lines(question: Question) -> dict[int, dict[str, str]]:
    """Return the line of caches.csv for each level of the core's design."""
    lines = data.of_design("caches", question.design)
    return {int(line["level"]): line for line in lines}


def column(workload: str) -> str:
    """Return the column of caches.csv that a workload needs: load, store or copy."""
    if workload.startswith("RW"):
        return "copy"
    return {"R": "load", "W": "store"}[workload[0]]


def levels(question: Question) -> list[Level]:
    """Return this machine's data caches, L1 first."""
    lines = cache_lines(question)
    threads = max(1, question.cores[0] or 1)
    caches = [one for one in question.fact("cpu", "caches") or () if one["type"] != "instruction"]
    every = []
    for cache in sorted(caches, key=lambda cache: int(cache["level"])):
        # Threads share all caches of a level; one thread reaches one of them.
        share = min(float(cache["size"]), cache["size"] * cache["count"] / threads)
        number = int(cache["level"])
        every.append(Level(number, share, lines.get(number, {})))
    reached = question.reached("last_level_bytes")
    if every and reached:  # the last caches of a socket without threads hold none of their data
        last = every[-1]
        every[-1] = last._replace(share=min(last.share, reached / threads))
    return every


def _cache(question: Question, moved_bytes: int, buffer_bytes: int) -> Limit:
    """Return the limit of the cache level that a thread's working set fits in.

    A sweep returns to a line after all others. A level that is smaller than the working set has
    replaced the line by then. So every byte comes from the level that holds all of the working set.
    The narrowest path from there to the core limits the rate.

    Args:
        moved_bytes: bytes that a sweep of one thread moves, its working set.
        buffer_bytes: bytes of the thread's buffers. For a copy they are more: one of 1 MiB does not fit
            a cache of 2 MiB.
    """
    (cores, _), clock, caches = question.cores, question.clock, levels(question)
    if cores is None or clock is None or not caches:
        return question.unknown("facts")
    holding = [number for number, level in enumerate(caches) if buffer_bytes <= level.share]
    if not holding:
        return _larger_than(caches[-1], question, moved_bytes)
    return _narrowest(question, caches[: holding[0] + 1], moved_bytes, cores, clock)


def _larger_than(last: Level, question: Question, moved_bytes: int) -> Limit:
    """Return the limit of a working set that does not fit the last cache: DRAM's if far larger."""
    if moved_bytes >= DRAM_FACTOR * last.share:
        return _moved(question, dram(question))
    return question.unknown("between", size=moved_bytes, level=last.number)


def _narrowest(
    question: Question, way: Sequence[Level], moved_bytes: int, cores: int, clock: Clock
) -> Limit:
    """Return the limit of the narrowest path on a way from a cache level to the core.

    Args:
        question: of the row.
        way: the caches that the bytes pass, L1 first. The last one holds the working set.
        moved_bytes: size of the working set.
        cores: cores that the row keeps busy.
        clock: their clock.
    """
    needed = column(question.workload)
    for level in way:
        if not level.line.get(needed):
            model = question.fact("cpu", "model_name")
            design = question.design or model or "this CPU"
            return question.unknown("width", level=level.number, processor=str(design))
    # Of paths of equal width, the one from the level that holds the working set.
    narrowest = min(reversed(way), key=lambda level: float(level.line[needed]))
    width = float(narrowest.line[needed])
    value = cores * clock.hz * width
    formula = (
        f"{format_size(moved_bytes)} per thread fits L{way[-1].number}; {plural(cores, 'core')}"
        f" x {clock.text()} x {width:.4g} B per cycle = {quantity(value, 'B/s')}"
    )
    detail = f"L{narrowest.number}: {width:g} B per cycle and core ({needed})"
    texts = {"clock": clock.name, "detail": detail, "cores": question.cores[1]}
    return question.limit(value, formula, narrowest.line["source"], clock.origin, **texts)


def _latency(question: Question) -> Limit:
    """Return the seconds per dependent load: the cycles of the level that holds the chased area.

    The chase goes through all lines of the area in turn before it returns to one. A smaller level
    has replaced the line by then, so none of the loads hits it.
    """
    area, caches, clock = question.block or 0, levels(question), question.clock
    level = next((level for level in caches if 0 < area <= level.share), None)
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
    if caches and 0 < area < DRAM_FACTOR * caches[-1].share:
        return question.unknown("area-between", size=area, level=caches[-1].number)
    stated = question.stated("memory", "latency")
    if stated is not None:
        return question.by_site(stated, "memory")
    return question.unknown("area", key="memory.latency", size=area)


def bounds(question: Question) -> list[Limit | None]:
    """Return what nothing in the row's memory can exceed, by its cores and by its sockets."""
    bounds = _bounds(plain(question), question.workload in NUMA)
    return [bound and of_one_node(question, bound) for bound in bounds]


def _bounds(question: Question, of_node: bool) -> list[Limit | None]:
    """Return the bounds of a row.

    Rows ``of_node`` are bound by memory alone: their threads may run on a part of the cores.
    """
    if question.workload in SHAPES:
        return []
    if question.metric == "latency":
        return [_beyond_cache(question)]
    needed, cached = column(question.workload), question.variant == "block"
    cores, _ = question.cores
    bounds = []
    if not of_node:
        bounds.append(by_cores(question, cores, needed, cached))
    if not cached:
        bounds.append(by_sockets(question))
    return bounds


def by_cores(
    question: Question, cores: int | None, column: str, cached: bool, moves: int = 1
) -> Limit | None:
    """Return what cores move by the width of their first cache and of its path to the second.

    Args:
        column: of caches.csv.
        cached: whether the data may stay in the first cache, so that the path does not count.
        moves: how often a byte that is counted once is moved.
    """
    lines, clock = cache_lines(question), question.clock
    if not (cores and clock and 1 in lines):
        return None
    width = float(lines[1][column])
    if not cached and 2 in lines:
        path = float(lines[2]["load"])
        if column == "copy":
            path *= 2
        width = min(width, path)
    value = cores * clock.hz * width / moves
    if question.unit == "bit/s":
        value *= 8
    formula = f"{plural(cores, 'core')} x {clock.text(2)} x {width:g} B per cycle ({column})"
    if moves > 1:
        formula += f" / {moves} (a byte is read and written on each end)"
    return question.bound(value, formula, lines[1]["source"], "datasheet")


def by_sockets(question: Question, detail: str = "") -> Limit | None:
    """Return the bandwidth of the best memory that machines with these cores were sold with."""
    lines = data.of_design("sockets", question.design)
    line = data.of_model(lines, question.fact("cpu", "model_name"))
    if line is None or not line["speed_mts"]:
        return None
    sockets = int(line["sockets"])
    each = f" ({plural(sockets, 'socket')} x {line['channels']}, the most sold with such cores)"
    product = of_line(line, sockets, each)
    return question.bound(*product, line["source"], "datasheet", detail=detail)


def _beyond_cache(question: Question) -> Limit | None:
    """Return the latency of the last cache that is smaller than the chased area: a load from beyond
    takes no less.
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
