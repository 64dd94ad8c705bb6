"""The appendix that says what it takes to reproduce the report: hardware, software, steps, expected results, time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from peakmark.catalogue.workloads import POOLS
from peakmark.formatting import binary, duration, plural, typeset
from peakmark.judging import fleet
from peakmark.reporting import many
from peakmark.storage.results import Results

Lines = list[list[str]]
PROGRAMS = ["Programs", "in the chapter Method; Python packages pinned in envs/requirements.txt"]


def build(results: Results, mark: str = ".", page: bool = False) -> dict[str, Any]:
    """Lines of what and value for hardware, software and time; steps as sentence and command; the expected results. On paper
    the chapter on the machine has hardware and system already; of the ``page`` they stand here too, where links lead.
    """
    return {
        "hardware": [[name, typeset(text, mark)] for name, text in _hardware(results)] if page else [],
        "software": _software(results) if page else [PROGRAMS],
        "steps": _steps(results),
        "expected": "Page one has the rows that speak for each resource, with the range of what was measured. Another run on "
        "this machine should come close to it; another machine has limits of its own. `peakmark compare` tells for every row "
        "whether two campaigns are shown to differ.",
        "time": [[what, typeset(text, mark)] for what, text in _time(results)],
    }


def _hardware(results: Results) -> Lines:
    lines = []
    for name, facts in results.facts.items():
        cpu, memory, disk, network = (facts.get(part) or {} for part in ("cpu", "memory", "storage", "network"))
        parts = [
            f"{cpu.get('model_name') or 'unknown processor'}, {_count(cpu, 'socket')}, {_count(cpu, 'core')}",
            f"{binary(memory.get('total')) or 'unknown size of'} memory",
            f"{disk.get('model') or disk.get('device') or 'unknown disk'} with {disk.get('filesystem') or 'unknown file system'}",
            f"{network.get('kind') or 'unknown network'} {network.get('interface') or ''}".strip(),
        ]
        virtual = f", virtual machine ({cpu['virtualised']})" if cpu.get("virtualised") else ""
        lines.append((str(facts.get("host", name)), ["; ".join(parts) + virtual]))
    return (many.joined(lines) if len(lines) > fleet.MANY else [[name, *texts] for name, texts in lines]) or [
        ["Machine", "no facts were recorded"]
    ]


def _count(cpu: Mapping[str, Any], noun: str) -> str:
    number = cpu.get(f"{noun}s")
    return f"? {noun}s" if number is None else plural(number, noun)


def _software(results: Results) -> Lines:
    systems = dict.fromkeys(
        f"{(facts.get('os') or {}).get('distribution') or 'unknown distribution'}, "
        f"Linux {(facts.get('os') or {}).get('kernel') or 'unknown'}, glibc {(facts.get('os') or {}).get('glibc') or 'unknown'}"
        for facts in results.facts.values()
    )
    lines = [["Operating system", system] for system in systems]
    return [*lines, PROGRAMS]


def _steps(results: Results) -> Lines:
    return [
        ["Get peakmark in the version named above, and install what it needs.", "make setup"],
        ["Write the configuration at the end of this report to a file, and look at what would be measured.",
         f"peakmark plan --configfile {results.name}.yaml"],
        ["Measure, and build tables, figures and reports; on a Slurm cluster with --profile slurm.",
         f"snakemake --profile local --configfile {results.name}.yaml"],
        ["Or build this report again from the records, without measuring, from the bundle of the campaign.",
         f"peakmark report {results.name}.zip"],
    ]  # fmt: skip


def _time(results: Results) -> Lines:
    begun = [datetime.fromisoformat(str(entry.data["context"]["started"])) for entry in results.records]
    seconds = [float(entry.data["context"]["seconds"] or 0) for entry in results.records]
    if not begun:
        return [["Measuring", "no record yet"]]
    ended = [start + timedelta(seconds=length) for start, length in zip(begun, seconds, strict=True)]
    sizes = [int(cell.options.get("size") or 0) for cell in results.cells]
    pools = [_pool(record.data) for record in results.records]
    lines = [
        ["Measuring", f"{duration(sum(seconds))} for {plural(len(seconds), 'cell')}, one after the other"],
        ["From first start to last end", duration((max(ended) - min(begun)).total_seconds())],
        ["Longest cell", duration(max(seconds))],
    ]
    if max(sizes, default=0):
        lines.append(["Disk space while measuring", binary(max(sizes)) or ""])
    if max(pools, default=0):
        lines.append(["Memory while measuring", f"{binary(max(pools))} for the pool of the memory cells"])
    return lines


def _pool(record: Mapping[str, Any]) -> int:
    """Bytes of the pool that a record's program walked, 0 where it had none."""
    pools = [entry["details"].get("pool") for entry in record["measurements"] if entry["variant"] in POOLS]
    asked = record["cell"]["options"].get("pool") if pools else None
    return max([int(size) for size in (*pools, asked) if isinstance(size, int)], default=0)
