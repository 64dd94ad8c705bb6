"""The physical limit of every table row: from measured, read, stated or tabled numbers, or
``unknown`` with the reason and, where there is one, a bound.

No limit is invented: an unknown one leaves the efficiency empty and says how to supply it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from peakmark.config.site import formula_names
from peakmark.errors import ConfigError
from peakmark.formatting import evaluate, names_in, quantity
from peakmark.limits import cpu, disk, memory, network
from peakmark.limits.base import Limit, Question
from peakmark.messages import message

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
    limit = _by_formula(question) or _PARTS[question.subsystem](question)
    if limit.value is not None or question.subsystem not in _BOUNDS:
        return limit
    bounds = _BOUNDS[question.subsystem](question)
    known = [each for each in bounds if each and each.bound is not None]
    if not known:
        return limit
    tightest = min(known, key=attrgetter("bound"))
    return replace(tightest, reason=limit.reason, remarks=(*limit.remarks, *tightest.remarks))


def _by_formula(question: Question) -> Limit | None:
    """The value of the site file's chosen formula set, as a published report computed it; None when
    the set has no formula for the row.
    """
    chosen = question.site_of_host.get("formula_set")
    for entry in (question.site_of_host.get("formulas") or {}).get(chosen, ()):
        place = (entry["subsystem"], entry["metric"])
        if (
            place == (question.subsystem, question.metric)
            and question.workload in entry["workloads"]
        ):
            return _evaluated(question, entry, f"formula set {chosen}")
    return None


def _evaluated(question: Question, entry: Mapping[str, Any], formula_set: str) -> Limit:
    """The limit that one formula gives."""
    text = entry["formula"]
    names = formula_names(entry, question.concurrency, question.block)
    try:
        value = evaluate(text, names)
    except ConfigError as error:  # one that holds for other rows
        return question.unknown("formula", formula_set=formula_set, error=str(error))
    if not 0 < value < math.inf:
        return question.unknown("formula-value", formula_set=formula_set, formula=text, value=value)
    formula = f"{text} = {quantity(value, entry['unit'], 8)}"
    used = [f"{name} = {names[name]:.10g}" for name in sorted(names_in(text))]
    if used:
        formula += f" with {', '.join(used)}"
    note = entry.get("note")
    remarks = (message("remark", remark=note),) if note else ()
    source = f"{formula_set} of site file {question.site.get('name', '')}".strip()
    return Limit(value, entry["unit"], formula, source, "site", remarks=remarks)
