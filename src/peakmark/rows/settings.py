"""Settings of rows, as title -> text: what was asked, and what records say that matters to compare rows.

``data/comparability.csv`` says which fact matters to which rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peakmark.cell import Cell
from peakmark.comparability import fact, flat, is_listed, matters

WRITTEN = ("instruction set", "stores", "sync", "fill")
"""Titles in which a program may compute or write otherwise than peakmark's kernel was asked to."""
ALWAYS: Mapping[str, Mapping[str, str]] = {"hpl": {"instruction set": "the widest"}}
"""Program -> what it does whatever is asked."""


def settings_of(cell: Cell, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """Return what was asked of a value, and how it is written, by title."""
    known = {}
    for name, text in flat({"options": cell.options}):
        if fact(name)["subsystems"]:
            known[fact(name)["title"]] = text
    return known | ways_of(cell.subsystem, workload, {**cell.options, **details})


def ways_of(subsystem: str, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """Return how a value is read and written, by title.

    That is what was asked for and what the program told of it, else what programs here do.
    """
    is_writing = "W" in workload
    if subsystem == "memory" and is_writing and details.get("store"):
        return {"stores": str(details["store"])}
    if subsystem != "disk":
        return {}
    ways = {"O_DIRECT": "yes"}
    if details.get("direct") is False:
        ways["O_DIRECT"] = "no"
    if is_writing:
        ways["sync"] = str(details.get("sync", "end"))
        ways["fill"] = str(details.get("fill", "overwrite"))
    return ways


def recorded_of(
    cell: Cell, context: Mapping[str, Any], details: Mapping[str, Any]
) -> dict[str, str]:
    """Return what a record tells of a value that matters to a comparison, by title."""
    known = {}
    for part, values in (("context", context), ("details", details)):
        for key, value in values.items():
            name = f"{part}.{key}"
            if not is_listed(name):
                continue
            for place, text in flat(value, name):
                if matters(place, cell.subsystem, cell.instrument):
                    known[fact(place)["title"]] = text
    return known


def deviations(own: Mapping[str, str], program: str, other: Mapping[str, str]) -> list[str]:
    """Return the settings in which a program had to differ from what was asked of peakmark's kernel.

    Each reads ``fill overwrite, not new``.
    """
    there = {**other, **ALWAYS.get(program, {})}
    found = []
    for name in WRITTEN:
        wanted = own.get(name, "auto")
        if name in there and wanted not in ("auto", there[name]):
            found.append(f"{name} {there[name]}, not {wanted}")
    return found
