"""Bounds: what a row whose limit is unknown can reach at most, or the best that was published.

Nothing can exceed what is called *at most*, on no machine with such cores: most stay far below it.
Line fill buffers x line / latency is no such bound: prefetchers keep more lines on their way than
a core has buffers.
"""

from __future__ import annotations

from dataclasses import replace

from peakmark import data
from peakmark.catalogue import NUMA, SHAPES
from peakmark.config import published
from peakmark.formatting import plural
from peakmark.limits import cpu, memory, network
from peakmark.limits.base import Limit, Question
from peakmark.messages import message
from peakmark.units import quantity


def of(question: Question, limit: Limit) -> Limit:
    """The limit; one that is unknown gets the tightest bound of the row."""
    parts = {"memory": _memory, "disk": _disk, "network": _network}
    if limit.value is not None or question.subsystem not in parts:
        return limit
    bounds = [bound for bound in parts[question.subsystem](question) if bound]
    if not bounds:
        return limit
    tightest = memory.of_one_node(question, min(bounds, key=lambda bound: bound.bound or 0.0))
    return replace(tightest, reason=limit.reason, remarks=(*limit.remarks, *tightest.remarks))


def _memory(question: Question) -> list[Limit | None]:
    of_node = question.workload in NUMA  # by its memory alone: its cores may be fewer than all
    question = memory.plain(question)
    if question.workload in SHAPES:
        return []
    if question.metric == "latency":
        return [_latency(question)]
    column, cached = memory.column(question.workload), question.variant == "block"
    cores, _ = cpu.core_count(question)
    by_cores = None if of_node else _cores(question, cores, column, cached)
    return [by_cores, None if cached else _sockets(question)]


def _cores(
    question: Question, cores: int | None, column: str, cached: bool, moves: int = 1
) -> Limit | None:
    """What cores move by the width of their first cache and, if nothing is ``cached`` there, by
    that of its path to the second.

    Args:
        column: of caches.csv.
        moves: how often a byte that is counted once is moved.
    """
    lines, clock = memory.cache_lines(question), cpu.clock_of(question)
    if not (cores and clock and 1 in lines):
        return None
    width = float(lines[1][column])
    if not cached and 2 in lines:
        width = min(width, float(lines[2]["load"]) * (2 if column == "copy" else 1))
    value = cores * clock.hz * width / moves * (8 if question.unit == "bit/s" else 1)
    often = f" / {moves} (a byte is read and written on each end)" if moves > 1 else ""
    formula = f"{plural(cores, 'core')} x {clock.text(2)} x {width:g} B per cycle ({column}){often}"
    return question.bound(value, formula, lines[1]["source"], "datasheet")


def _sockets(question: Question, detail: str = "") -> Limit | None:
    """The best memory that a machine with such cores was sold with."""
    lines = data.of_design("sockets", cpu.microarchitecture(question))
    line = data.of_model(lines, question.fact("cpu", "model_name"))
    if line is None or not line["speed_mts"]:
        return None
    sockets = int(line["sockets"])
    each = f" ({plural(sockets, 'socket')} x {line['channels']}, the most sold with such cores)"
    product = memory.of_line(line, sockets, each)
    return question.bound(*product, line["source"], "datasheet", detail=detail)


def _latency(question: Question) -> Limit | None:
    """What lies beyond a cache takes no less than the cache."""
    clock, levels = cpu.clock_of(question), memory.levels(question)
    known = [level for level in levels if level.line.get("latency_cycles")]
    if not (clock and known and question.block):
        return None
    *above, last = known
    beyond = 1 - sum(level.share for level in above) / question.block
    value = float(last.line["latency_cycles"]) * beyond / clock.hz
    formula = (
        f"{beyond:.0%} of the area at more than the {last.line['latency_cycles']} cycles of"
        f" L{last.number}, at {clock.text(2)} = {quantity(value, 's', 2)}"
    )
    return question.bound(value, formula, last.line["source"], "datasheet")


def _disk(question: Question) -> list[Limit | None]:
    """The best published for the disk's model, else what its link can carry."""
    seen, rate = _seen(question), question.fact("storage", "interface_limit")
    if seen or question.metric != "throughput":
        return [seen]
    if rate is None:
        virtual = question.fact("storage", "interface") == "virtio"
        return [_sockets(question, "the memory of a virtual disk's host") if virtual else None]
    formula = str(question.fact("storage", "interface_limit_formula"))
    source, remarks = "link speed read from this machine", (message("limit-of-interface"),)
    return [question.bound(float(rate), formula, source, "read", remarks=remarks)]


def _seen(question: Question) -> Limit | None:
    """The best value that published results have of this disk model."""
    model = str(question.known("disk", "model") or question.fact("storage", "model") or "")
    entries = published.of_disk(model, question.metric, question.workload)
    if not entries:
        return None
    best = (min if question.unit == "s" else max)(entries, key=lambda entry: entry.value)
    value = quantity(best.value, question.unit)
    formula = f"best of {len(entries)} values published for {model}: {value}"
    return question.bound(best.value, formula, best.source, "published")


def _network(question: Question) -> list[Limit | None]:
    """The sender's core copies each byte from the program, the receiver's to it."""
    ends = 2 if network.is_loopback(question) else 1
    cores = question.fact("limits", "physical_cores_allowed")
    if question.metric == "latency" or cores is None:
        return []
    busy = min(question.concurrency * ends, cores)
    return [_cores(question, busy, "copy", cached=True, moves=2 * ends)]
