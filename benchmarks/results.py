"""What the benchmarks print and write: aligned tables, CSV, the machine's facts."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from peakmark.files import write_text


def facts_in_short(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The scalars that stand in every line of the CSV."""
    cpu = facts["cpu"]
    return {
        "host": facts["host"],
        "cpu": cpu.get("model_name"),
        "microarchitecture": cpu.get("microarchitecture"),
        "cpus": len(facts["limits"]["cpus_allowed"]),
        "clock_hz": (cpu.get("clock_hz") or {}).get("observed"),
        "kernel": facts["os"].get("kernel"),
        "date": facts["collected"],
        "load": round(os.getloadavg()[0], 2),
    }


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """An aligned Markdown table."""
    rows = [headings, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in padded)


def to_csv(lines: Iterable[Mapping[str, Any]]) -> str:
    """Lines with the columns of all of them, in the order in which they first appear."""
    text: str = pd.DataFrame(list(lines), dtype=object).to_csv(index=False)
    return text


def write(directory: Path, facts: Mapping[str, Any], files: Mapping[str, str]) -> Path:
    """Write the files and ``machine.json`` into a folder named after the time. Returns it."""
    folder = directory / datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    machine = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    for name, text in {**files, "machine.json": machine}.items():
        write_text(folder / name, text)
    return folder
