"""Limits of memory: the DRAM channels for what walks a pool, a cache level for what stays in it."""

from __future__ import annotations

import re
from dataclasses import replace

from peakmark import data
from peakmark.formatting import plural
from peakmark.limits import cpu
from peakmark.limits.base import Kind, Limit, Question
from peakmark.messages import Message, message
from peakmark.units import format_size, quantity

LINE, PAGE = 64, 4096
COPY_OFFSET = 33 * LINE
"""rambench begins the target of a copy that far into the page after its source
(src/kernels/memory/bench.c).
"""

# A working set this many times the last cache is DRAM's; between that and the cache neither limit
# holds.
DRAM_FACTOR = 4


def limit(question: Question) -> Limit:
    """Bytes per second (read and written added) or seconds per dependent load that memory allows."""
    if question.metric == "latency":
        return _latency(question)
    if question.variant == "block" and question.block is not None:
        if not question.workload.startswith("RW"):
            return _cache(question, question.block, question.block)
        return _cache(
            question,
            2 * question.block,
            -(-question.block // PAGE) * PAGE + COPY_OFFSET + question.block,
        )
    return _moved(question, dram(question))


# What is counted of what the channels move where each line that is written is read before: 1 of 2,
# 2 of 3.
_COUNTED = {"WS": (1, 2), "WR": (1, 2), "RWS": (2, 3), "RWR": (2, 3)}
# Designs that turn stores of whole lines into writes without that read, when the memory is busy or
# always.
_WRITE_WITHOUT_READ = ("Ice Lake-SP", "Sapphire Rapids", "Emerald Rapids", "Granite Rapids")


def _moved(question: Question, limit: Limit) -> Limit:
    """The limit of a row that writes through the caches: the read of each line takes its part of
    the channels.
    """
    if question.store != "temporal" or limit.value is None or question.workload not in _COUNTED:
        return limit
    design = cpu.microarchitecture(question) or ""
    if design in _WRITE_WITHOUT_READ or question.fact("cpu", "isa_best") == "neon":
        return replace(limit, remarks=(*limit.remarks, message("limit-of-stores")))
    counted, moved = _COUNTED[question.workload]
    value = limit.value * counted / moved
    formula = (
        f"{limit.formula}, of which {counted}/{moved} = {quantity(value, 'B/s')}: an ordinary store first reads the line,"
        " which is not counted"
    )
    return replace(limit, value=value, formula=formula)


def dram(question: Question) -> Limit:
    """Bandwidth of the memory channels that the row's threads reach: those of their NUMA nodes."""
    whole = _node(question)
    part = _reached(question)
    if part is None or whole.value is None:
        return whole
    used, count = part
    value = whole.value * used / count
    formula = f"{whole.formula}, of which threads on {used} of {count} NUMA nodes reach {quantity(value, 'B/s')}"
    return replace(whole, value=value, formula=formula)


def _reached(question: Question) -> tuple[int, int] | None:
    """(NUMA nodes with the row's threads, all that have CPUs and memory), None where they reach all
    memory or nothing is known. Each thread touches its own memory first, which lies in its own
    node.
    """
    nodes = [node for node in question.fact("cpu", "numa") or () if node["cpus"] and node["memory"]]
    used = set(question.placed.get("numa_nodes") or ()) & {node["node"] for node in nodes}
    return (len(used), len(nodes)) if used and len(used) < len(nodes) else None


def datasheet(question: Question) -> dict[str, str] | None:
    """The line of memory.csv for this CPU, None for one that is not there."""
    name = str(question.fact("cpu", "model_name") or "")
    return next(
        (
            line
            for line in data.table("memory")
            if re.search(line["model_name"], name, re.IGNORECASE)
        ),
        None,
    )


def _node(question: Question) -> Limit:
    """Bandwidth of all memory channels of the node."""
    whole = question.given("memory", "bandwidth")
    if whole is not None:
        return question.stated(whole, "memory")
    channels, speed = question.given("memory", "channels"), question.given("memory", "speed_mts")
    kind: Kind = "site" if channels is not None or speed is not None else "read"
    channels = channels if channels is not None else question.fact("memory", "channels")
    speed = speed if speed is not None else question.fact("memory", "speed_mts")
    width = question.given("memory", "bytes_per_transfer") or 8
    if channels is not None and speed is not None:
        source = (
            question.site_source("memory")
            if kind == "site"
            else "memory modules as the firmware describes them"
        )
        limit = _channels(question, int(channels), "", float(speed), float(width), source, kind)
        return (
            replace(limit, finding=_empty_channels(question, int(channels)))
            if kind == "read"
            else limit
        )
    keys = "memory.channels and memory.speed_mts"
    if question.fact("cpu", "virtualised"):
        return question.unknown(
            "a virtual machine does not tell memory channels and speed, and need not get all of the host's",
            keys,
        )
    line, sockets = datasheet(question), int(question.fact("cpu", "sockets") or 1)
    if line and line["speed_mts"]:
        each = f" ({plural(sockets, 'socket')} x {line['channels']} channels, max for the CPU)"
        moved = float(line["speed_mts"]), float(line["bytes_per_transfer"])
        limit = _channels(
            question, sockets * int(line["channels"]), each, *moved, line["source"], "datasheet"
        )
        return replace(limit, remarks=(message("limit-of-datasheet"),))
    fact = "memory channels and speed cannot be read without root"
    if line:
        fact = f"no source is known for the memory speed of this CPU ({line['channels']} channels a socket), and {fact}"
    return question.unknown(fact, keys)


def _empty_channels(question: Question, channels: int) -> Message | None:
    """A finding where fewer channels hold modules than the CPU has: a lower limit must not stand
    there in silence.
    """
    line, sockets = datasheet(question), int(question.fact("cpu", "sockets") or 1)
    if line is None or channels >= sockets * int(line["channels"]):
        return None
    each, source = int(line["channels"]), line["source"]
    most = sockets * each
    return message(
        "empty-channels",
        populated=channels,
        channels=most,
        sockets=sockets,
        each=each,
        source=source,
    )


def _channels(
    question: Question,
    channels: int,
    each: str,
    speed: float,
    width: float,
    source: str,
    kind: Kind,
) -> Limit:
    value = channels * speed * 1e6 * width
    formula = f"{plural(channels, 'channel')}{each} x {speed:g} MT/s x {width:g} B = {quantity(value, 'B/s')}"
    return question.limit(value, formula, source, kind)


def _levels(question: Question) -> list[tuple[int, float, dict[str, str]]]:
    """(level, bytes one thread can keep there, line of caches.csv) of this machine's data caches,
    L1 first.
    """
    design = cpu.microarchitecture(question)
    lines = {
        int(line["level"]): line
        for line in data.table("caches")
        if design in line["microarchitecture"].split("|")
    }
    cores, _ = cpu.core_count(question)
    threads = max(1, cores or 1)
    levels = []
    for cache in sorted(
        question.fact("cpu", "caches") or (), key=lambda cache: int(cache["level"])
    ):
        if cache["type"] != "instruction":
            # Threads share what there is of a level; one thread reaches one cache of it.
            share = min(float(cache["size"]), cache["size"] * cache["count"] / threads)
            levels.append((int(cache["level"]), share, lines.get(int(cache["level"]), {})))
    reached = question.placed.get("last_level_bytes")
    if levels and reached:  # those of a socket without threads hold nothing of theirs
        level, share, line = levels[-1]
        levels[-1] = (level, min(share, reached / threads), line)
    return levels


def _cache(question: Question, working_set: int, taken: int) -> Limit:
    """Limit of the cache level that a thread's working set fits in: it is the path that the rest
    must take.

    ``working_set`` bytes are moved, the buffers take ``taken`` bytes: a copy of 1 MiB does not fit
    2 MiB. What the levels above can keep need not come from this one, so only the remainder is
    charged to it: a true bound.
    """
    size = format_size(working_set)
    levels = _levels(question)
    if not levels:
        return question.unknown(
            f"no caches are known: the limit of a {size} working set cannot be told"
        )
    cores, cores_source = cpu.core_count(question)
    clock, clock_name, kind = cpu.clock_of(question)
    if cores is None or clock is None:
        return question.unknown(
            "no clock or no cores are known: collect the machine facts on the node"
        )
    fitting = next((number for number, (_, share, _) in enumerate(levels) if taken <= share), None)
    if fitting is None:
        last = levels[-1]
        if working_set >= DRAM_FACTOR * last[1]:
            return _moved(question, dram(question))
        return question.unknown(
            f"a {size} working set per thread lies between the L{last[0]} cache and memory: no single limit holds"
        )
    column = (
        "copy"
        if question.workload.startswith("RW")
        else {"R": "load", "W": "store"}[question.workload[0]]
    )
    cycles, above, level, parts = 0.0, 0.0, 0, []
    for level, share, line in levels[: fitting + 1]:
        if not line.get(column):
            design = (
                cpu.microarchitecture(question) or question.fact("cpu", "model_name") or "this CPU"
            )
            return question.unknown(
                f"no bytes per cycle of the L{level} cache of {design} are in data/caches.csv"
            )
        need = (working_set - above) / float(line[column])
        if need >= cycles:
            cycles, parts = (
                need,
                [f"L{level}: {line[column]} B per cycle and core ({column})", line["source"]],
            )
        above += share
    value = cores * clock * working_set / cycles
    rest = (
        "" if parts[0].startswith(f"L{levels[0][0]}:") else " for what the levels above cannot hold"
    )
    formula = (
        f"{size} per thread fits L{level}; {plural(cores, 'core')} x {quantity(clock, 'Hz')} ({clock_name} clock) x"
        f" {working_set / cycles:.4g} B per cycle = {quantity(value, 'B/s')}"
    )
    said = {"clock": clock_name, "detail": f"{parts[0]}{rest}", "cores": cores_source}
    return question.limit(value, formula, parts[1], kind, **said)


def _latency(question: Question) -> Limit:
    """Seconds per dependent load: cycles of the level that the chased area fits in, less what hits
    above it.
    """
    area = question.block or 0
    levels = _levels(question)
    clock, clock_name, kind = cpu.clock_of(question)
    expected, left, parts = 0.0, float(area), []
    for level, share, line in levels:
        cycles = line.get("latency_cycles")
        if not cycles or clock is None or left <= 0:
            break
        inside = min(left, share)
        expected += inside / area * float(cycles)
        parts.append(f"{inside / area:.0%} of the area in L{level} at {cycles} cycles")
        left -= inside
    if area > 0 and left <= 0 and clock is not None:
        value = expected / clock
        formula = f"{' + '.join(parts)}, at {quantity(clock, 'Hz')} ({clock_name} clock) = {quantity(value, 's')}"
        source = f"load-to-use latency: {levels[0][2]['source']}"
        return question.limit(value, formula, source, kind, clock=clock_name)
    if levels and left > 0 and 0 < area < DRAM_FACTOR * levels[-1][1]:
        return question.unknown(
            f"an area of {format_size(area)} lies in the L{levels[-1][0]} cache or between it and memory: no datasheet states"
            " such a latency; blocks: [auto] lies beyond the caches"
        )
    given = question.given("memory", "latency")
    if given is not None:
        return question.stated(given, "memory")
    where = f"an area of {format_size(area)}" if area else "memory"
    fact = f"no datasheet states the latency of {where}, beyond the core's own caches"
    return question.unknown(fact, "memory.latency")
