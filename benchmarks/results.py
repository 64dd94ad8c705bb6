"""What the benchmarks print and write: aligned tables, CSV, the machine's facts."""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark.files import write_text


def facts_in_short(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The scalars that stand in every line of the CSV."""
    cpu, os_facts = facts["cpu"], facts["os"]
    return {
        "host": facts["host"],
        "cpu": cpu.get("model_name"),
        "microarchitecture": cpu.get("microarchitecture"),
        "cpus": len(facts["limits"]["cpus_allowed"]),
        "clock_hz": (cpu.get("clock_hz") or {}).get("observed"),
        "kernel": os_facts.get("kernel"),
        "date": facts["collected"],
        "load": round(os.getloadavg()[0], 2),
    }


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """An aligned Markdown table."""
    rows = [headings, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        text.append(f"| {' | '.join(cells)} |")
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text) + "\n"


def to_csv(lines: Iterable[Mapping[str, Any]]) -> str:
    """Lines with the columns of all of them, in the order in which they first appear."""
    rows = list(lines)
    out = io.StringIO()
    names = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(out, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write(directory: Path, facts: Mapping[str, Any], files: Mapping[str, str]) -> Path:
    """Write the files and ``machine.json`` into a folder named after the time. Returns it."""
    folder = directory / datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    machine = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    for name, text in {**files, "machine.json": machine}.items():
        write_text(folder / name, text)
    return folder
