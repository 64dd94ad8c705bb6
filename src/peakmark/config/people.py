"""Who wrote a report and who publishes it, as ``report:`` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
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
        Author(
            str(entry["name"]), str(entry.get("affiliation") or ""), str(entry.get("orcid") or "")
        )
        for entry in report.get("authors") or ()
    ]
    alone = str(report.get("author") or "")
    return listed or ([Author(alone)] if alone else [])


def line(report: Mapping[str, Any]) -> str:
    """``Jane Doe, John Roe (IIT), Max Muster (TU Wien)``: an affiliation stands behind the last of
    those who share it.
    """
    groups = groupby(authors(report), key=lambda person: person.affiliation)
    parts = [
        (", ".join(person.name for person in persons), affiliation)
        for affiliation, persons in groups
    ]
    return ", ".join(
        names + (f" ({affiliation})" if affiliation else "") for names, affiliation in parts
    )
