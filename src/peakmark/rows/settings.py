"""Find the settings and recorded facts of rows, which show readers whether rows are comparable.

*Settings* are what the configuration asks for; *recorded facts* are what the record of a row states.
Both are mappings of title -> text. The file ``data/comparability.csv`` lists the facts that matter, and
the rows for which they matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peakmark.catalogue import SHAPES
from peakmark.cell import Cell
from peakmark.comparability import fact, flat, is_listed, matters

WRITTEN = ("instruction set", "stores", "sync", "fill")
"""Titles of settings in which another program may differ from peakmark's kernel."""
ALWAYS: Mapping[str, Mapping[str, str]] = {"hpl": {"instruction set": "the widest"}}
"""Program -> settings that the configuration does not change."""


def settings_of(cell: Cell, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """Return title -> text of the settings with which a value was measured.

    These are the options, and how memory or disk is accessed.
    """
    known = {}
    for name, text in flat({"options": cell.options}):
        if fact(name)["subsystems"]:
            known[fact(name)["title"]] = text
    return known | access_of(cell.subsystem, workload, {**cell.options, **details})


def access_of(subsystem: str, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """Return title -> text of how a measurement accesses memory or disk.

    Args:
        subsystem: subsystem of the value.
        workload: workload of the value.
        details: options of the cell, overridden by what the program reported. Missing details have
            the default of peakmark's kernels.
    """
    is_writing = "W" in workload or workload == "TRIAD"
    if subsystem == "memory" and is_writing and details.get("store"):
        return {"stores": str(details["store"])}
    if subsystem != "disk" or workload in SHAPES:
        return {}
    access = {"O_DIRECT": "yes"}
    if details.get("direct") is False:
        access["O_DIRECT"] = "no"
    if is_writing:
        access["sync"] = str(details.get("sync", "end"))
        access["fill"] = str(details.get("fill", "overwrite"))
    return access


def recorded_of(
    cell: Cell, context: Mapping[str, Any], details: Mapping[str, Any]
) -> dict[str, str]:
    """Return the recorded facts of a value that matter to a comparison, by title."""
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
    """Return the settings in which a program differs from peakmark's kernel, as texts.

    A text reads ``fill overwrite, not new``.

    Args:
        own: settings of peakmark's kernel.
        program: name of the other program.
        other: settings of the other program.
    """
    used = {**other, **ALWAYS.get(program, {})}
    found = []
    for title in WRITTEN:
        wanted = own.get(title, "auto")
        if title in used and wanted not in ("auto", used[title]):
            found.append(f"{title} {used[title]}, not {wanted}")
    return found
