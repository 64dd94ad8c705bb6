"""The physical limit of every table row: from measured, read, stated or tabled numbers, or
``unknown`` with the reason and, where there is one, a bound.

No limit is invented: an unknown one leaves the efficiency empty and says how to supply it.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from peakmark.limits import cpu, disk, memory, network
from peakmark.limits.base import Limit, Question

__all__ = ["Limit", "Question", "for_row"]

_PARTS = {"cpu": cpu.limit, "memory": memory.limit, "disk": disk.limit, "network": network.limit}
_BOUNDS = {"memory": memory.bounds, "disk": disk.bounds, "network": network.bounds}


def for_row(question: Question) -> Limit:
    """The limit of one row. One that is unknown gets the tightest bound of the row: what it can reach
    at most.

    Nothing can exceed what is called *at most*, on no machine with such cores: most stay far below
    it. Line fill buffers x line / latency is no such bound: prefetchers keep more lines on their way
    than a core has buffers.
    """
    limit = _PARTS[question.subsystem](question)
    if limit.value is not None or question.subsystem not in _BOUNDS:
        return limit
    bounds = _BOUNDS[question.subsystem](question)
    known = [each for each in bounds if each and each.bound is not None]
    if not known:
        return limit
    tightest = min(known, key=attrgetter("bound"))
    return replace(tightest, reason=limit.reason, remarks=(*limit.remarks, *tightest.remarks))
