"""The physical limit of every table row: from measured, read, stated or tabled numbers, or
``unknown`` with the reason and, where there is one, a bound.

No limit is invented: an unknown one leaves the efficiency empty and says how to supply it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from peakmark.config.site import for_host, formula_names
from peakmark.errors import ConfigError
from peakmark.limits import cpu, disk, memory, network
from peakmark.limits.base import Limit, Question
from peakmark.messages import Message, message
from peakmark.units import evaluate, names_in, quantity

__all__ = ["Limit", "clocks", "count", "efficiency", "for_row", "share"]

_PARTS = {"cpu": cpu.limit, "memory": memory.limit, "disk": disk.limit, "network": network.limit}
_BOUNDS = {"memory": memory.bounds, "disk": disk.bounds, "network": network.bounds}


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
    **known: Any,
) -> Limit:
    """The limit of one row.

    Args:
        subsystem, workload, variant, block, concurrency, metric: as in the record; block in bytes.
        facts: what ``machine.collect`` returned on the node, {} without any.
        site: what ``site.load`` returned; its entries for this host lie over the rest.
        clock_hz: median of the clocks measured beside the row, if there are any.
        known: ``loopback``, ``clock_loaded``, ``placed`` and ``store`` of ``Question``.
    """
    merged = for_host(site or {}, facts.get("host"))
    row = (subsystem, workload, variant, block, concurrency, metric)
    question = Question(*row, facts, merged, clock_hz, **known)
    return _bounded(question, _by_formula(question) or _PARTS[subsystem](question))


def _bounded(question: Question, limit: Limit) -> Limit:
    """The limit; one that is unknown gets the tightest bound of the row: what it can reach at most,
    or the best that was published.

    Nothing can exceed what is called *at most*, on no machine with such cores: most stay far below
    it. Line fill buffers x line / latency is no such bound: prefetchers keep more lines on their way
    than a core has buffers.
    """
    if limit.value is not None or question.subsystem not in _BOUNDS:
        return limit
    bounds = [bound for bound in _BOUNDS[question.subsystem](question) if bound]
    if not bounds:
        return limit
    tightest = memory.of_one_node(question, min(bounds, key=lambda bound: bound.bound or 0.0))
    return replace(tightest, reason=limit.reason, remarks=(*limit.remarks, *tightest.remarks))


def efficiency(value: float, limit: Limit) -> float | None:
    """Share of the limit that was reached (1.0 is all of it), from the summarised value; for a time
    limit / measured. None when the limit is unknown.

    Never a mean of ratios.

    Source: Hoefler and Belli, SC '15, rule 4.
    """
    return share(value, limit) if limit.kind == "limit" else None


def share(value: float, limit: Limit) -> float | None:
    """Share of the limit or, without one, of the bound. None when neither is known."""
    most = limit.bound if limit.value is None else limit.value
    if most is None or value <= 0:
        return None
    return most / value if limit.unit == "s" else value / most


def count(limits: Iterable[Limit]) -> Message:
    """How many rows have a limit, a bound, or neither."""
    kinds = Counter(limit.kind for limit in limits)
    known, bounded = kinds["limit"], kinds["at_most"] + kinds["best_seen"]
    rows, neither = kinds.total(), kinds["none"]
    return message("limits-counted", rows=rows, limits=known, bounds=bounded, neither=neither)


def clocks(
    facts: Mapping[str, Any], site: Mapping[str, Any] | None = None, clock_hz: float | None = None
) -> dict[str, float | None]:
    """The three clocks that a limit may be stated at, in Hz, by name: observed, nominal, maximum."""
    merged = for_host(site or {}, facts.get("host"))
    question = Question("cpu", "", "", None, 1, "rate", facts, merged, clock_hz)
    return {name: value for name, (value, _) in cpu.clocks_of(question).items()}


def _by_formula(question: Question) -> Limit | None:
    """The value of the site file's chosen formula set, as a published report computed it; None when
    the set has no formula for the row.
    """
    chosen = question.site.get("formula_set")
    for entry in (question.site.get("formulas") or {}).get(chosen, ()):
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
