"""Compute the physical limit of table rows from facts, the site file and tables of processors.

No limit is guessed. An unknown limit has a reason, which says how to supply the limit, and may have a
bound. A row with an unknown limit has no efficiency.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from peakmark.limits import cpu, disk, gpu, memory, mpi, network
from peakmark.limits.base import Limit, Question

__all__ = ["Limit", "Question", "for_row"]

# Subsystem -> function that computes the limit of its rows.
_LIMITS = {
    "cpu": cpu.limit,
    "memory": memory.limit,
    "disk": disk.limit,
    "network": network.limit,
    "mpi": mpi.limit,
    "gpu": gpu.limit,
}
# Subsystem -> function that returns a list of bounds. The other subsystems have none.
_BOUNDS = {"memory": memory.bounds, "disk": disk.bounds, "network": network.bounds}


def for_row(question: Question) -> Limit:
    """Return the limit of one row. If the limit is unknown, return the tightest bound of the row.

    The value of a row cannot exceed a bound (a latency cannot fall below it), and most machines stay far from it.
    Line fill buffers x line size / latency is not used as a bound, because prefetchers keep more lines in
    flight than a core has buffers.
    """
    limit = _LIMITS[question.subsystem](question)
    if limit.value is not None or question.subsystem not in _BOUNDS:
        return limit
    bounds = _BOUNDS[question.subsystem](question)
    # A bound whose numbers are unknown is None, or a ``Limit`` without a bound (``memory.of_one_node``).
    known = [each for each in bounds if each and each.bound is not None]
    if not known:
        return limit
    # Only rates have several bounds, so the tightest one is the lowest.
    tightest = min(known, key=attrgetter("bound"))
    return replace(tightest, reason=limit.reason, remarks=(*limit.remarks, *tightest.remarks))
