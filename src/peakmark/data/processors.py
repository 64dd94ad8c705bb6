"""Identify a processor, and find its lines in the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from peakmark.data.reading import table


def of_design(name: str, design: str | None) -> list[dict[str, str]]:
    """Return the lines of a table for a microarchitecture."""
    return [line for line in table(name) if design in line["microarchitecture"].split("|")]


def of_model(lines: Iterable[dict[str, str]], model_name: str | None) -> dict[str, str] | None:
    """Return the first line whose pattern matches the CPU's model name, or None."""
    for line in lines:
        if re.search(line["model_name"], model_name or "", re.IGNORECASE):
            return line
    return None


def microarchitecture(
    vendor: str | None,
    family: int | None,
    model: int | None,
    stepping: int | None,
    model_name: str | None,
) -> str | None:
    """Return the name of the microarchitecture, as in operations.csv; None for an unknown processor.

    The first matching line decides. If CPUID is not enough, as for Skylake-SP with one or two FMA
    units, the table has a line with a pattern for the model name before the general line.
    """
    if family is None:
        return None
    lines = []
    for line in table("microarchitecture"):
        if (
            line["vendor"] == vendor
            and _within(family, line["family"])
            and _within(model, line["model"])
            and _within(stepping, line["stepping"])
        ):
            lines.append(line)
    found = of_model(lines, model_name)
    return found["microarchitecture"] if found else None


def _within(number: int | None, bounds: str) -> bool:
    """Return whether a number is within bounds such as ``3`` or ``0-47``. Empty bounds allow all."""
    if not bounds:
        return True
    if number is None:
        return False
    first, _, last = bounds.partition("-")
    return int(first, 0) <= number <= int(last or first, 0)
