"""Settings of rows, as title -> text: what was asked, and what records say that matters to compare rows.

``data/comparability.csv`` says which fact matters to which rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from peakmark import data
from peakmark.catalogue import KERNELS
from peakmark.cell import Cell
from peakmark.formatting import gigabytes, size

WRITTEN = ("instruction set", "stores", "sync", "fill")
"""Titles in which a program may compute or write otherwise than peakmark's kernel was asked to."""
ALWAYS: Mapping[str, Mapping[str, str]] = {"hpl": {"instruction set": "the widest"}}
"""Program -> what it does whatever is asked."""
UNITS: Mapping[str, Callable[[Any], str]] = {"bytes": size, "GB": gigabytes}
"""Unit of a fact in ``comparability.csv`` -> how a number of it is written."""
NO_FACT: Mapping[str, str] = {"title": "", "subsystems": "", "programs": "", "unit": ""}


@cache
def fact(name: str) -> Mapping[str, str]:
    """Return the line of ``comparability.csv`` for the dotted name of a fact.

    The longest name that begins the dotted one counts; what this one has more is in the title.
    """
    known = {line["name"]: line for line in data.table("comparability")}
    prefix = name
    while prefix and prefix not in known:
        prefix = prefix.rpartition(".")[0]
    line = known.get(prefix, NO_FACT)
    rest = name.removeprefix(prefix).replace(".", " ")
    title = line["title"] + rest if line["title"] else name
    return {**line, "title": title}


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted name and text of everything known below a value."""
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        value = dict(enumerate(value, 1))
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from flat(each, f"{name}.{key}" if name else str(key))
    elif value not in (None, "", []):
        members = value if isinstance(value, list) else [value]
        yield name, ", ".join(_word(member, name) for member in members)


def _word(value: Any, name: str) -> str:
    """Return a value as text, in the unit of its fact."""
    form = UNITS.get(fact(name)["unit"], str)
    return form(value) if isinstance(value, int) else str(value)


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
    ways = {"O_DIRECT": "no" if details.get("direct") is False else "yes"}
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


@cache
def is_listed(name: str) -> bool:
    """Return whether ``comparability.csv`` has a fact of this name, or of one below it."""
    if fact(name)["subsystems"]:
        return True
    return any(line["name"].startswith(f"{name}.") for line in data.table("comparability"))


def matters(name: str, subsystem: str, instrument: str) -> bool:
    """Return whether the fact of a dotted name matters to the rows of a program."""
    line = fact(name)
    is_kernel = instrument == KERNELS[subsystem]
    is_of_program = line["programs"] == "" or (line["programs"] == "kernels" and is_kernel)
    return subsystem in line["subsystems"] and is_of_program


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
