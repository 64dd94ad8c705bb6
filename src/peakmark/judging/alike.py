"""Whether two campaigns did the same: what was asked of each row, and on what machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from peakmark.formatting import size
from peakmark.judging.row import Series
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


def terms(series: Series, workload: str) -> dict[str, str]:
    """What was asked of a row, how it is written and over which link, in words; of its first repetition, as all are asked
    the same.
    """
    point = series.points[0]
    options, context = point.record.cell.options, point.record.data["context"]
    asked = {label: (name, options.get(name)) for name, label in _OPTIONS.items()}
    known = {
        label: size(value) if name in _IN_BYTES and isinstance(value, int) else str(value)
        for label, (name, value) in asked.items()
        if value is not None
    }
    known |= how(point.record.cell.subsystem, workload, {**options, **point.details})
    network = context.get("network") or {}
    if "loopback" in network:
        known["link"] = "loopback" if network["loopback"] else f"interface {network.get('interface')}"
    return known


def how(subsystem: str, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """How a row reads and writes: by what was asked for and what the program told of it, else as programs here do."""
    ways: dict[str, str] = {}
    writes = "W" in workload
    if subsystem == "memory" and writes and details.get("store"):
        ways["stores"] = str(details["store"]).replace(
            "non-temporal", "streaming"
        )  # as records of earlier versions say
    if subsystem == "disk":
        ways["O_DIRECT"] = "no" if details.get("direct") is False else "yes"
        if writes:
            ways |= {"sync": str(details.get("sync", "end")), "fill": str(details.get("fill", "overwrite"))}
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
    facts = list(results.facts.values())
    return {name: _listed((node.get(part) or {}).get(key) for node in facts) for name, (part, key) in asked.items()}


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(sorted({str(value) for value in values if value is not None}))


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """``CPU: A has x, B has y`` for each that both know and that differs."""
    return [
        f"{name}: A has {before[name]}, B has {after[name]}"
        for name in before
        if before[name] and after.get(name) and before[name] != after[name]
    ]


def mixing(before: str, after: str) -> list[str]:
    """``A mixes the hosts x and y`` for each side that mixes: what such a row differs by may be its hosts."""
    return [
        f"{side} mixes the hosts {hosts}: name the nodes (nodes:)"
        for side, hosts in (("A", before), ("B", after))
        if hosts
    ]


def summary(of_rows: Sequence[Sequence[str]]) -> list[str]:
    """The differences of many rows, each once, with the number of rows that have it."""
    counts = Counter(text for row in of_rows for text in row)
    return [f"{text} ({count} rows)" if count > 1 else text for text, count in counts.items()]
