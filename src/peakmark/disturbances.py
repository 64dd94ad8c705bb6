"""What disturbed a measurement, by its record: one rule for measuring it again and for marking it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peakmark.catalogue import SUBSYSTEMS

OTHERS = 0.2
"""CPUs' worth of time from which on other programs are named."""
MATTERS = 0.05
"""Share of the CPUs' time or of their clock that, taken from the measurement, changes a figure by
more than a quiet machine's spread.
"""
MEMORY = 0.3
"""Share of a rate by which reading DRAM beside a measurement may be slower: chosen on 53 runs without
a neighbour, which stayed below it (docs/method.md).
"""
PROBES = ("probe_before", "probe_after")
"""Details of a memory kernel: rates in B/s at which its threads read DRAM."""
HEAT_MS = "cpu core_throttle_total_time_ms"
"""Milliseconds for which heat slowed the core down that it slowed most, among the counters of a
record that moved.
"""
WAIT_S = 10.0
"""How long one cell waits at most until other programs have stopped."""


def spare_cpus(subsystem: str, threads: int, cpus: int | None) -> float:
    """CPUs of a node that a measurement leaves to others: what runs there takes nothing from pinned
    threads. 0 where threads are not pinned.
    """
    pinned = SUBSYSTEMS[subsystem].pinned and cpus
    return float(max(0, cpus - threads)) if pinned and cpus else 0.0


def others(during: Mapping[str, Any] | None, spare: float = 0.0) -> float:
    """CPUs' worth of time that other programs took from a measurement; 0 where it changes nothing."""
    used = float((during or {}).get("others") or 0.0)
    return used - spare if used > OTHERS and used - spare > MATTERS else 0.0


def find(
    subsystem: str, context: Mapping[str, Any], details: Mapping[str, Any], spare: float = 0.0
) -> dict[str, float]:
    """What disturbed a measurement enough to change its figure.

    Args:
        subsystem: of the cell.
        context: of the record. Its ``dram_compared`` is the median of such rates on the host: what
            others disturb all the time is slower than the best one, and no repetition mends it.
        details: of a measurement of the record.
        spare: CPUs that the measurement leaves to others; none where its threads waited.

    Returns:
        Code of the row's warning -> CPUs' worth of time, share of that time, of the clock or of the
        rate of DRAM.
    """
    noise, server = (context.get(name) or {} for name in ("noise", "server_noise"))
    during, far = noise.get("during") or {}, server.get("during") or {}
    before, after = context.get("clock_hz_before"), context.get("clock_hz_after")
    waited = _waited(context, details) if SUBSYSTEMS[subsystem].pinned else 0.0
    if waited > MATTERS:
        spare = 0.0
    amounts = {
        "other-load": max(others(during, spare), others(far)),
        "steal": max(during.get("steal") or 0.0, far.get("steal") or 0.0),
        "waited": waited,
        "clock-moved": abs(after / before - 1) if before and after else 0.0,
        "memory-load": memory_load(context, details),
        "hot": max(_heat(during), _heat(far)),
    }
    return {code: round(amount, 4) for code, amount in amounts.items() if amount > MATTERS}


def probes(details: Mapping[str, Any]) -> list[float]:
    """Rates in B/s at which DRAM was read before and after a measurement, where it was."""
    return [float(details[name]) for name in PROBES if details.get(name)]


def memory_load(context: Mapping[str, Any], details: Mapping[str, Any]) -> float:
    """By what share DRAM was read more slowly before or after a measurement than ``dram_compared`` of
    its context; 0 where that is usual.
    """
    rates, compared = probes(details), context.get("dram_compared")
    share = 1 - min(rates) / compared if rates and compared else 0.0
    return share if share > MEMORY else 0.0


def _heat(during: Mapping[str, Any]) -> float:
    """Share of the time for which heat slowed a core down; 0 where the kernel does not tell."""
    slowed = (during.get("moved") or {}).get(HEAT_MS)
    return float(slowed) / 1e3 / during["seconds"] if slowed else 0.0


def _waited(context: Mapping[str, Any], details: Mapping[str, Any]) -> float:
    """Share of their time in which threads had no CPU; 0 where they are too many for the job."""
    placed, allowed = context.get("placed") or {}, context.get("allowed") or {}
    threads = placed.get("threads", 0)
    cpus = min(len(placed.get("cpus", ())), allowed.get("cpu_quota") or threads)
    share = details.get("cpu_share")
    return 1 - float(share) if share is not None and threads <= cpus else 0.0
