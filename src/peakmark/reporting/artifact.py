"""The appendix that says what it takes to reproduce the report: hardware, software, steps, expected results, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.catalogue.workloads import POOLS
from peakmark.formatting import binary, duration, plural, typeset
from peakmark.judging import fleet, verdict
from peakmark.judging.row import Row
from peakmark.judging.rows import centre_of
from peakmark.judging.words import Words
from peakmark.reporting import many
from peakmark.storage.results import Results

Rows = Mapping[str, Sequence[Row]]
Lines = list[list[str]]


def build(results: Results, rows: Rows, mark: str = ".") -> dict[str, Any]:
    """Lines of what and value for hardware, software and time; steps as sentence and command; the expected results."""
    return {
        "hardware": [[name, typeset(text, mark)] for name, text in _hardware(results)],
        "software": _software(results),
        "steps": _steps(results),
        "expected_head": ["Resource", "Row", centre_of(results).capitalize(), "Lowest", "Highest", "Unit", "n"],
        "expected": _expected(rows, mark),
        "expected_text": "What this campaign measured in the rows that speak for each resource. Another run on this machine "
        "should come close to the range of its repetitions; another machine has limits of its own. `peakmark compare` tells "
        "for every row whether two campaigns are shown to differ.",
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
    versions = dict.fromkeys(str(record.data["context"].get("peakmark", "unknown")) for record in results.records)
    lines = [["Operating system", system] for system in systems]
    lines.append(["peakmark", ", ".join(versions) or "no record yet"])
    lines.append(["Programs", "in the chapter Method, with their versions"])
    lines.append(["Python packages", "pinned with hashes in envs/requirements.txt of peakmark"])
    return lines


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


def _expected(rows: Rows, mark: str) -> Lines:
    """Resource, row, value, range of the repetitions, and their number, for each headline row."""
    lines = []
    for subsystem, one in SUBSYSTEMS.items():
        row = verdict.headline(rows, subsystem)
        if row is not None:
            summary = row.measured.summary
            words = Words.of(row, mark)
            low, high = (words.quantity(value).partition(" ")[0] for value in (summary.minimum, summary.maximum))
            number, _, unit = words.quantity(row.measured.centre).partition(" ")
            lines.append([one.title, verdict.point(row), number, low, high, unit, str(summary.n)])
    return lines


def _time(results: Results) -> Lines:
    begun = [datetime.fromisoformat(str(one.data["context"]["started"])) for one in results.records]
    seconds = [float(one.data["context"]["seconds"] or 0) for one in results.records]
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
    return max([int(one) for one in (*pools, asked) if isinstance(one, int)], default=0)
