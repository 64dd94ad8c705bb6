"""Data about processors, one CSV line for each fact and its source; and other files that peakmark
reads. No command changes them.

microarchitecture.csv   CPUID -> microarchitecture
operations.csv          microarchitecture, workload, ISA -> operations per cycle and core
caches.csv              microarchitecture, cache level -> bytes per cycle and core, load latency in
                        cycles, each with its source
memory.csv              CPU model name -> memory channels and the fastest memory it takes
comparability.csv       which fact that differs between two campaigns stops which verdicts
sockets.csv             microarchitecture -> the best memory that any machine of it was sold with
HPL.dat                 what HPL is to solve, with places for N and the block; the last lines are
                        hpcc's: sizes of its transposition, none
subsystems.toml         the parts of a node that are measured, and their workloads
tables.yaml             the tables of a report; tools.tables reads it
refusals.yaml           Slurm's answers -> what to do; slurm.failures reads it
modules.sh              prints what loading environment modules changes
*.txt.j2                what commands print
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

from peakmark.formatting import duration, format_size, gigabytes, listing, natural, plural


def text(name: str) -> str:
    """Return the text of a data file."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def rendered(name: str, **values: Any) -> str:
    """Return the text of a filled template, without its last line end. Filters are functions of
    ``formatting``, ``sort_natural``, and ``quote`` for a shell.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: for people alone

    environment = Environment(
        loader=PackageLoader("peakmark", "data"),
        autoescape=False,  # noqa: S701 - for a terminal
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "plural": plural,
        "quote": _quote,
        "sort_natural": _sort_natural,
        "duration": duration,
        "gigabytes": gigabytes,
        "listing": listing,
        "size": format_size,
    }
    return environment.get_template(name).render(values).rstrip("\n")


def _quote(value: object) -> str:
    return shlex.quote(str(value))


def _sort_natural(names: Iterable[str]) -> list[str]:
    return sorted(names, key=natural)


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """Return the lines of ``<name>.csv`` as dictionaries. Lines that begin with # are comments."""
    lines = [
        line
        for line in text(f"{name}.csv").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    return tuple(csv.DictReader(lines))


def of_design(name: str, design: str | None) -> list[dict[str, str]]:
    """Return the lines of a table that concern a microarchitecture."""
    return [line for line in table(name) if design in line["microarchitecture"].split("|")]


def of_model(lines: Iterable[dict[str, str]], model_name: str | None) -> dict[str, str] | None:
    """Return the first line whose pattern is found in the CPU's name; None without one."""
    name = model_name or ""
    fitting = (line for line in lines if re.search(line["model_name"], name, re.IGNORECASE))
    return next(fitting, None)


def _within(number: int | None, bounds: str) -> bool:
    """Return whether a number lies in ``3``, ``0-47`` or the empty text, which allows all."""
    if not bounds:
        return True
    if number is None:
        return False
    first, _, last = bounds.partition("-")
    return int(first, 0) <= number <= int(last or first, 0)


def microarchitecture(
    vendor: str | None,
    family: int | None,
    model: int | None,
    stepping: int | None,
    model_name: str | None,
) -> str | None:
    """Return the name of the core's design, as in operations.csv; None for an unknown processor.

    The first matching line decides. Where CPUID is not enough (Skylake-SP with one or two FMA
    units), a line with a pattern for the model name precedes the general one.
    """
    if family is None:
        return None
    for line in table("microarchitecture"):
        is_processor = (
            line["vendor"] == vendor
            and _within(family, line["family"])
            and _within(model, line["model"])
            and _within(stepping, line["stepping"])
        )
        pattern = line["model_name"]
        if is_processor and re.search(pattern, model_name or "", re.IGNORECASE):
            return line["microarchitecture"]
    return None
