"""The physical limit of every table row: from measured, read, stated or tabled numbers, or
``unknown`` with the reason.

No limit is invented: an unknown one leaves the efficiency empty and says how to supply it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peakmark.config.site import for_host
from peakmark.limits import cpu, disk, formulas, memory, network
from peakmark.limits.base import Limit, Question

__all__ = ["Limit", "clocks", "efficiency", "for_row"]

_PARTS = {"cpu": cpu.limit, "memory": memory.limit, "disk": disk.limit, "network": network.limit}


def for_row(
    subsystem: str,
    workload: str,
    variant: str,
    block: int | None,
    concurrency: int,
    metric: str,
    facts: Mapping[str, Any],
    site: Mapping[str, Any] | None = None,
    clock_hz: float | None = None,
    loopback: bool = False,
    clock_loaded: bool = False,
    placed: Mapping[str, Any] | None = None,
    store: str | None = None,
) -> Limit:
    """The limit of one row.

    subsystem to metric  as in the record; block in bytes
    facts                what ``machine.collect`` returned on the node, {} when there is none
    site                 what ``site.load`` returned; its entries for this host lie over the rest
    clock_hz             median of the clocks measured beside the row, if there are any
    clock_loaded         these were observed under the row's own work, not before and after it
    loopback             the row's client and server were one machine, whatever interface the facts
                         name
    placed               cores, sockets, NUMA nodes and caches that the row's threads could reach,
                         by its records; without it the facts say what the first job on the host was
                         given
    store                how a memory row writes (temporal, streaming, libc), by its records; None
                         where nothing tells
    """
    merged = for_host(site or {}, facts.get("host"))
    about = (subsystem, workload, variant, block, concurrency, metric, facts, merged)
    question = Question(*about, clock_hz, loopback, clock_loaded, placed or {}, store)
    published = formulas.limit(question)
    if published is not None:
        return published
    part = _PARTS.get(subsystem)
    return (
        question.unknown(f"no limit is defined for {subsystem}") if part is None else part(question)
    )


def efficiency(value: float, limit: Limit) -> float | None:
    """Share of the limit that was reached (1.0 is all of it), from the summarised value; for a time
    limit / measured.

    Never a mean of ratios (Hoefler and Belli 2015, rule 4). None when the limit is unknown.
    """
    if limit.value is None or value <= 0:
        return None
    return limit.value / value if limit.unit == "s" else value / limit.value


def clocks(
    facts: Mapping[str, Any], site: Mapping[str, Any] | None = None, clock_hz: float | None = None
) -> dict[str, float | None]:
    """The three clocks that a limit may be stated at, in Hz, by name: observed, nominal, maximum."""
    merged = for_host(site or {}, facts.get("host"))
    question = Question("cpu", "", "", None, 1, "rate", facts, merged, clock_hz, False)
    return {name: value for name, (value, _) in cpu.clocks_of(question).items()}
