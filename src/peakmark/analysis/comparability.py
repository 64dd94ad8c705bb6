"""Whether two campaigns did the same: what was asked of each row, and on what machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peakmark.analysis.row import Series
from peakmark.formatting import size
from peakmark.storage.results import Results

# Options that say what is measured, not for how long or where a file lies: words for people.
_OPTIONS = {
    "isa": "instruction set",
    "pool": "pool",
    "size": "file size",
    "engine": "engine",
    "depth": "queue depth",
    "interface": "interface",
    "huge_pages": "huge pages",
    "placement": "placement",
}
_DEFINED = {**_OPTIONS, "store": "stores", "direct": "O_DIRECT", "sync": "sync", "fill": "fill"}
_KINDS = ("instruction set", "stores", "sync", "fill")
_ALWAYS = {"hpl": {"instruction set": "the widest"}}
"""What programs do whatever is asked."""
_IN_BYTES = ("pool", "size")


def settings(series: Series, workload: str) -> dict[str, str]:
    """What was asked of a row, how it is written and over which link, in words; of its first
    repetition, as all are asked the same.
    """
    point = series.points[0]
    asked = {name: point.options.get(name) for name in _OPTIONS}
    known = {
        _OPTIONS[name]: size(value) if name in _IN_BYTES and isinstance(value, int) else str(value)
        for name, value in asked.items()
        if value is not None
    }
    known |= how(point.record.cell.subsystem, workload, {**point.options, **point.details})
    network = point.context.get("network") or {}
    if "loopback" in network:
        known["link"] = (
            "loopback" if network["loopback"] else f"interface {network.get('interface')}"
        )
    return known


def how(subsystem: str, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """How a row reads and writes: by what was asked for and what the program told of it, else as
    programs here do.
    """
    ways: dict[str, str] = {}
    writes = "W" in workload
    if subsystem == "memory" and writes and details.get("store"):
        ways["stores"] = str(details["store"])
    if subsystem == "disk":
        ways["O_DIRECT"] = "no" if details.get("direct") is False else "yes"
        if writes:
            ways |= {
                "sync": str(details.get("sync", "end")),
                "fill": str(details.get("fill", "overwrite")),
            }
    return ways


def defined(definition: Mapping[str, str]) -> dict[str, str]:
    """The same words for what published results define."""
    return {_DEFINED[name]: word for name, word in definition.items() if name in _DEFINED}


def otherwise(own: Mapping[str, str], program: str, other: Mapping[str, str]) -> list[str]:
    """``fill overwrite, not new``: in what a program beside ours cannot do as ours was asked to."""
    there = {**other, **_ALWAYS.get(program, {})}
    return [
        f"{name} {there[name]}, not {own[name]}"
        for name in _KINDS
        if own.get(name, "auto") not in ("auto", there.get(name)) and name in there
    ]


def machine(results: Results) -> dict[str, str]:
    """What the machines of a campaign are, in words; what several nodes have is listed."""
    asked: dict[str, tuple[str, str]] = {
        "CPU": ("cpu", "model_name"),
        "CPU cores": ("cpu", "cores"),
        "kernel": ("os", "kernel"),
        "file system": ("storage", "filesystem"),
    }

    def values_of(part: str, key: str) -> str:
        values = ((node.get(part) or {}).get(key) for node in results.facts.values())
        return ", ".join(sorted({str(value) for value in values if value is not None}))

    return {name: values_of(part, key) for name, (part, key) in asked.items()}


@dataclass(frozen=True)
class Difference:
    """What two sides have not alike: ``CPU``, and what is there on side A and on side B."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name}: A has {self.before}, B has {self.after}"


@dataclass(frozen=True)
class Mixed:
    """A side that mixes nodes that are not equal: what such a row differs by may be its nodes."""

    side: str
    differ: str

    def __str__(self) -> str:
        return (
            f"{self.side} mixes nodes that are not equal ({self.differ}): name equal ones (nodes:)"
        )


Mismatch = Difference | Mixed


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[Mismatch]:
    """Of what both know, that which differs."""
    both = [Difference(name, before[name], after.get(name, "")) for name in before]
    return [
        difference
        for difference in both
        if difference.before and difference.after and difference.before != difference.after
    ]


def mixing(before: str, after: str) -> list[Mismatch]:
    """The sides that mix nodes that are not equal, with what differs."""
    return [Mixed(side, differ) for side, differ in (("A", before), ("B", after)) if differ]


def summary(of_rows: Sequence[Sequence[Mismatch]]) -> list[str]:
    """The differences of many rows, each once, with the number of rows that have it."""
    counts = Counter(unequal_nodes for row in of_rows for unequal_nodes in row)
    return [
        f"{unequal_nodes} ({count} rows)" if count > 1 else str(unequal_nodes)
        for unequal_nodes, count in counts.items()
    ]
