"""Cells that this machine cannot measure: final, but said at the end of every run, equal reasons together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from peakmark.cell import Cell
from peakmark.formatting import plural

NAMED = 3
"""So many cells of one reason are named."""


def lines(found: Iterable[tuple[Cell, Mapping[str, Any]]]) -> list[str]:
    """``found``: cells with their records. A line that counts those that are not possible, then two for each reason."""
    reasons: dict[str, list[str]] = {}
    for cell, record in found:
        if record["status"] == "unavailable":
            reasons.setdefault(str(record["reason"]), []).append(cell.id)
    total = sum(map(len, reasons.values()))
    if not total:
        return []
    here = plural(total, "cell is not possible here and stays empty", "cells are not possible here and stay empty")
    said = [f"{here}:"]
    for reason, ids in sorted(reasons.items(), key=lambda one: -len(one[1])):
        more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
        said += [f"  {', '.join(ids[:NAMED])}{more}", f"    {reason}"]
    return said
