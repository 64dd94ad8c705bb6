"""Whether two campaigns did the same: what was asked of each row, and what was recorded of it and
of its machines. ``data/comparability.csv`` says which fact matters to which rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from peakmark import data
from peakmark.analysis.row import Series
from peakmark.catalogue import KERNELS
from peakmark.formatting import gigabytes, size
from peakmark.storage.results import Results

_KINDS = ("instruction set", "stores", "sync", "fill")
_ALWAYS = {"hpl": {"instruction set": "the widest"}}
"""What programs do whatever is asked."""
_UNITS: Mapping[str, Callable[[Any], str]] = {"bytes": size, "GB": gigabytes}
_NO_FACT: Mapping[str, str] = {"title": "", "subsystems": "", "programs": "", "unit": ""}


@cache
def _fact(name: str) -> Mapping[str, str]:
    """The line of the longest name that stands for a fact, and what the name has more as title."""
    lines = {line["name"]: line for line in data.table("comparability")}
    prefix = name
    while prefix and prefix not in lines:
        prefix = prefix.rpartition(".")[0]
    line = lines.get(prefix, _NO_FACT)
    rest = name.removeprefix(prefix).replace(".", " ")
    return {**line, "title": line["title"] + rest if line["title"] else name}


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Dotted name and text of everything known below a value."""
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        value = dict(enumerate(value, 1))
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}" if name else str(key))
    elif value not in (None, "", []):
        members = value if isinstance(value, list) else [value]
        unit = _UNITS.get(_fact(name)["unit"], str)
        yield name, ", ".join(map(unit if isinstance(value, int) else str, members))


def settings(series: Series, workload: str) -> dict[str, str]:
    """What was asked of a row and how it is written, by title; of its first repetition, as all are
    asked the same.
    """
    point = series.points[0]
    options = _flat({"options": point.options})
    known = {_fact(name)["title"]: text for name, text in options if _fact(name)["subsystems"]}
    known |= how(point.record.cell.subsystem, workload, {**point.options, **point.details})
    return known


def recorded(series: Series, facts: Mapping[str, str]) -> dict[str, str]:
    """What matters to a row of the facts of its nodes and of its first record, by title."""
    point = series.points[0]
    cell = point.record.cell
    of_record = dict(_flat({"context": point.context, "details": point.details}))
    programs = ("", "kernels") if cell.instrument == KERNELS[cell.subsystem] else ("",)
    every = [(_fact(name), text) for name, text in {**facts, **of_record}.items()]
    return {
        fact["title"]: text
        for fact, text in every
        if cell.subsystem in fact["subsystems"] and fact["programs"] in programs
    }


def facts(results: Results, hosts: Iterable[str | None]) -> dict[str, str]:
    """The facts of some hosts by dotted name; what differs between them is listed."""
    known: dict[str, dict[str, None]] = {}
    for host in hosts:
        for name, text in _flat(results.facts.get(str(host))):
            if _fact(name)["subsystems"] != "-":
                known.setdefault(name, {})[text] = None
    return {name: " or ".join(sorted(texts)) for name, texts in known.items()}


def how(subsystem: str, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """How a row reads and writes: by what was asked for and what the program told of it, else as
    programs here do.
    """
    writes = "W" in workload
    if subsystem == "memory" and writes and details.get("store"):
        return {"stores": str(details["store"])}
    if subsystem != "disk":
        return {}
    direct = {"O_DIRECT": "no" if details.get("direct") is False else "yes"}
    usual = {"sync": "end", "fill": "overwrite"} if writes else {}
    return direct | {name: str(details.get(name, way)) for name, way in usual.items()}


def otherwise(own: Mapping[str, str], program: str, other: Mapping[str, str]) -> list[str]:
    """``fill overwrite, not new``: in what a program beside ours cannot do as ours was asked to."""
    there = {**other, **_ALWAYS.get(program, {})}
    return [
        f"{name} {there[name]}, not {own[name]}"
        for name in _KINDS
        if own.get(name, "auto") not in ("auto", there.get(name)) and name in there
    ]
