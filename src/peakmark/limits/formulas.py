"""Formulas of a site file: how a published report computed its theoretical values, evaluated and
put into words.
"""

from __future__ import annotations

import math

from peakmark.arithmetic import evaluate, names_in
from peakmark.config.site import formula_names
from peakmark.errors import ConfigError
from peakmark.limits.base import Limit, Question
from peakmark.messages import Message, message
from peakmark.units import quantity


def limit(question: Question) -> Limit | None:
    """The chosen set's value for a row, or None when the set says nothing about it."""
    chosen = question.site.get("formula_set")
    for entry in (question.site.get("formulas") or {}).get(chosen, ()):
        if (
            entry["subsystem"] == question.subsystem
            and question.workload in entry["workloads"]
            and entry["metric"] == question.metric
        ):
            names = formula_names(entry, question.concurrency, question.block)
            try:
                value = evaluate(entry["formula"], names)
            except ConfigError as error:  # one that holds for other rows
                return question.unknown(f"formula set {chosen}: {error}")
            if not 0 < value < math.inf:
                nothing = f"{entry['formula']} is {value:g} here, which is no limit"
                return question.unknown(f"formula set {chosen}: {nothing}")
            where = ", ".join(
                f"{name} = {names[name]:.10g}" for name in sorted(names_in(entry["formula"]))
            )
            formula = f"{entry['formula']} = {quantity(value, entry['unit'], 8)}" + (
                f" with {where}" if where else ""
            )
            source = f"formula set {chosen} of site file {question.site.get('name', '')}".strip()
            return Limit(
                value, entry["unit"], formula, source, "site", remarks=_note(entry.get("note"))
            )
    return None


def _note(text: str | None) -> tuple[Message, ...]:
    """What the author of a formula says of it."""
    return (message("remark", remark=text),) if text else ()
