"""The appendix that says what it takes to reproduce the report: hardware, software, steps, expected
results, time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from peakmark.analysis import fleet
from peakmark.catalogue.workloads import POOLS
from peakmark.formatting import binary, duration, plural, typeset
from peakmark.report import many
from peakmark.report.method_text import TEXT
from peakmark.storage.results import Results

Lines = list[list[str]]
PROGRAMS = ["Programs", "in the chapter Method; Python packages pinned in envs/requirements.txt"]


def build(results: Results, mark: str = ".") -> dict[str, Any]:
    """Lines of what and value for hardware, software and time; steps as sentence and command; the
    expected results.
    """
    return {
        "hardware": [[name, typeset(text, mark)] for name, text in _hardware(results)],
        "software": _software(results),
        "steps": [[text, command.format(name=results.name)] for text, command in TEXT["steps"]],
        "expected": TEXT["expected"],
        "time": [[what, typeset(text, mark)] for what, text in _time(results)],
    }


def _hardware(results: Results) -> Lines:
    lines = [
        (str(facts.get("host", name)), [_node(facts)]) for name, facts in results.facts.items()
    ]
    together = (
        many.joined(lines) if len(lines) > fleet.MANY else [[name, *texts] for name, texts in lines]
    )
    return together or [["Machine", "no facts were recorded"]]


def _node(facts: Mapping[str, Any]) -> str:
    """Processor, memory, disk and network of a node on one line."""
    cpu, memory, disk, network = (
        facts.get(part) or {} for part in ("cpu", "memory", "storage", "network")
    )
    counts = [
        f"? {noun}s" if cpu.get(f"{noun}s") is None else plural(cpu[f"{noun}s"], noun)
        for noun in ("socket", "core")
    ]
    parts = [
        ", ".join([cpu.get("model_name") or "unknown processor", *counts]),
        f"{binary(memory.get('total')) or 'unknown size of'} memory",
        f"{disk.get('model') or disk.get('device') or 'unknown disk'} with {disk.get('filesystem') or 'unknown file system'}",
        f"{network.get('kind') or 'unknown network'} {network.get('interface') or ''}".strip(),
    ]
    virtual = f", virtual machine ({cpu['virtualised']})" if cpu.get("virtualised") else ""
    return "; ".join(parts) + virtual


def _software(results: Results) -> Lines:
    known = [facts.get("os") or {} for facts in results.facts.values()]
    systems = dict.fromkeys(
        f"{system.get('distribution') or 'unknown distribution'}, Linux {system.get('kernel') or 'unknown'}, "
        f"glibc {system.get('glibc') or 'unknown'}"
        for system in known
    )
    return [*(["Operating system", system] for system in systems), PROGRAMS]


def _time(results: Results) -> Lines:
    begun = [
        datetime.fromisoformat(str(entry.data["context"]["started"])) for entry in results.records
    ]
    seconds = [float(entry.data["context"]["seconds"] or 0) for entry in results.records]
    if not begun:
        return [["Measuring", "no record yet"]]
    ended = [
        start + timedelta(seconds=length) for start, length in zip(begun, seconds, strict=True)
    ]
    sizes = [int(cell.options.get("size") or 0) for cell in results.cells]
    pools = [_pool(record.data) for record in results.records]
    lines = [
        [
            "Measuring",
            f"{duration(sum(seconds))} for {plural(len(seconds), 'cell')}, one after the other",
        ],
        ["From first start to last end", duration((max(ended) - min(begun)).total_seconds())],
        ["Longest cell", duration(max(seconds))],
    ]
    if max(sizes, default=0):
        lines.append(["Disk space while measuring", binary(max(sizes)) or ""])
    if max(pools, default=0):
        lines.append(
            ["Memory while measuring", f"{binary(max(pools))} for the pool of the memory cells"]
        )
    return lines


def _pool(record: Mapping[str, Any]) -> int:
    """Bytes of the pool that a record's program walked, 0 where it had none."""
    pools = [
        entry["details"].get("pool")
        for entry in record["measurements"]
        if entry["variant"] in POOLS
    ]
    asked = record["cell"]["options"].get("pool") if pools else None
    return max([int(size) for size in (*pools, asked) if isinstance(size, int)], default=0)
