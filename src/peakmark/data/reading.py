"""Read the package's data files: texts, tables with the lines of a processor, templates of texts."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterable
from functools import cache, partial
from importlib import resources
from typing import Any

from peakmark.formatting import counted, duration, format_size, gigabytes, natural, plural


def text(name: str) -> str:
    """Return the text of a data file."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """Return the lines of ``<name>.csv`` as dictionaries. Comments begin with # and are skipped."""
    lines = []
    for line in text(f"{name}.csv").splitlines():
        if line.strip() and not line.startswith("#"):
            lines.append(line)
    return tuple(csv.DictReader(lines))


def of_design(name: str, design: str | None) -> list[dict[str, str]]:
    """Return the lines of a table for the microarchitecture ``design``; none if it is None (unknown)."""
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
) -> dict[str, str | None]:
    """Return ``microarchitecture``, as in operations.csv, and ``product``; both None for an unknown processor.

    The first matching line decides. If CPUID is not enough, as for Skylake-SP with one or two FMA
    units, the table has a line with a pattern for the model name before the general line.
    """
    lines = []
    for line in table("microarchitecture"):
        if (
            line["vendor"] == vendor
            and _within(family, line["family"])
            and _within(model, line["model"])
            and _within(stepping, line["stepping"])
        ):
            lines.append(line)
    found = of_model(lines, model_name) or {}
    return {name: found.get(name) for name in ("microarchitecture", "product")}


def _within(number: int | None, bounds: str) -> bool:
    """Return whether a number is within bounds such as ``3`` or ``0-47``. Empty bounds allow all."""
    if not bounds:
        return True
    if number is None:
        return False
    first, _, last = bounds.partition("-")
    # With the base 0, int() also reads hexadecimal numbers.
    return int(first, 0) <= number <= int(last or first, 0)


def rendered(name: str, **values: Any) -> str:
    """Return a template filled with values, without its last line end.

    Templates can use functions of ``formatting`` as filters, ``sort_natural``, and ``quote`` for shells.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: jobs print no templates

    environment = Environment(
        loader=PackageLoader("peakmark", "data"),
        autoescape=False,  # noqa: S701 - printed on a terminal
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "plural": plural,
        "quote": shlex.quote,
        "sort_natural": partial(sorted, key=natural),
        "duration": duration,
        "gigabytes": gigabytes,
        "counted": counted,
        "size": format_size,
    }
    return environment.get_template(name).render(values).rstrip("\n")
