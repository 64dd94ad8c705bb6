"""Identify a processor, and find the lines of the tables that concern it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from peakmark.data.reading import table


def of_design(name: str, design: str | None) -> list[dict[str, str]]:
    """Return the lines of a table that concern a microarchitecture."""
    return [line for line in table(name) if design in line["microarchitecture"].split("|")]


def of_model(lines: Iterable[dict[str, str]], model_name: str | None) -> dict[str, str] | None:
    """Return the first line whose pattern is found in the CPU's name; None without one."""
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
    """Return the name of the core's design, as in operations.csv; None for an unknown processor.

    The first matching line decides. Where CPUID is not enough (Skylake-SP with one or two FMA
    units), a line with a pattern for the model name precedes the general one.
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
    """Return whether a number lies in ``3``, ``0-47`` or the empty text, which allows all."""
    if not bounds:
        return True
    if number is None:
        return False
    first, _, last = bounds.partition("-")
    return int(first, 0) <= number <= int(last or first, 0)
