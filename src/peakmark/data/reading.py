"""Read the package's data files."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources


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
