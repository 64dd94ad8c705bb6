"""Who wrote a report and who publishes it, as ``report:`` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Author:
    """A person; ``affiliation`` and ``orcid`` (the number alone) may be empty."""

    name: str
    affiliation: str = ""
    orcid: str = ""


def authors(report: Mapping[str, Any]) -> list[Author]:
    """Those of ``report.authors``, else the one that ``report.author`` names."""
    listed = [
        Author(str(one["name"]), str(one.get("affiliation") or ""), str(one.get("orcid") or ""))
        for one in report.get("authors") or ()
    ]
    alone = str(report.get("author") or "")
    return listed or ([Author(alone)] if alone else [])


def line(report: Mapping[str, Any]) -> str:
    """``Jane Doe, John Roe (IIT), Max Muster (TU Wien)``: an affiliation stands behind the last of those who share it."""
    found = authors(report)
    parts = []
    for number, one in enumerate(found):
        following = found[number + 1].affiliation if number + 1 < len(found) else None
        parts.append(one.name + (f" ({one.affiliation})" if one.affiliation and one.affiliation != following else ""))
    return ", ".join(parts)
