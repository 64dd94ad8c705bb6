"""The content of the report as one JSON value for the templates, without markup.

``build`` lists the parts of the report in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from peakmark.config.layouts import Layout
from peakmark.formatting import date, plural, typeset
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME, TABLES
from peakmark.views import fleet_report, layout_tables, page_one, remarks
from peakmark.views.points import Line, is_many
from peakmark.views.report import appendix, chapters, sections

HEADINGS = {
    "caveats": "Before you use these numbers",
    "fleet": "Slow nodes",
    "remarks": "Remarks",
    "method": "Method",
    "machine": "Machine",
    "kernels": "How each kernel measures",
    "problems": "Failures",
    "artifact": "Reproduction",
}
"""Key of a part -> heading of its chapter. Headings that only PDF or HTML has are in its template."""
NAMED = 3
"""Largest number of rows that a note names; of more rows, it names the tables."""


def build(frames: CampaignFrames) -> dict[str, Any]:
    """Return key -> content of each part of the report, without the extents of its figures."""
    layout = layout_tables.layout_of(frames)
    arranged = layout_tables.for_print(frames, layout)
    of_resources = sections.build(arranged, layout)
    return {
        "headings": HEADINGS,
        "meta": describe(frames),
        "page_one": page_one.build(frames),
        "slow": fleet_report.slow_paragraphs(frames),
        "overview": sections.overview(arranged),
        "caveats": build_caveats(arranged),
        "fleet": fleet_report.slow_table(frames),
        "sections": of_resources,
        **list_remarks(arranged, layout),
        "method": appendix.describe_method(arranged, layout),
        "machine": appendix.machines(frames),
        "problems": appendix.list_problems(frames),
        "artifact": appendix.describe_reproduction(frames),
        "provenance": appendix.describe_provenance(frames),
        "chapters": chapters.build(frames, of_resources),
    }


def describe(frames: CampaignFrames) -> dict[str, Any]:
    """Return the top of page one, and facts of the campaign that the templates need."""
    campaign = frames.campaign
    report = campaign["config"].get("report") or {}
    newest, day = datetime.fromisoformat(campaign["times"]["newest"]), "nothing measured yet"
    if newest.timestamp():
        day = date(newest)
    authors = authors_of(report)
    return {
        "title": str(report.get("title") or "Performance report"),
        "author": author_line(authors),
        "authors": [author["name"] for author in authors],
        "course": str(report.get("course") or ""),
        "date": day,
        "campaign": campaign["name"],
        "partial": bool(campaign["missing"]),
        "newest": newest.isoformat(),
        "partial_text": appendix.TEXT["partial"].format(
            missing=campaign["missing"], cells=plural(campaign["cells"], "planned cell")
        ),
        "has_layout": layout_tables.layout_of(frames) is not None,
    }


def authors_of(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return name and affiliation of each author in ``authors``, or of the single ``author``."""
    named = report.get("authors") or []
    if not named and report.get("author"):
        named = [{"name": report["author"]}]
    authors = []
    for author in named:
        authors.append({"name": author["name"], "affiliation": author.get("affiliation") or ""})
    return authors


def author_line(authors: list[dict[str, str]]) -> str:
    """Return the authors as text: ``Jane Doe, John Roe (IIT), Max Muster (TU Wien)``.

    The affiliation of neighbouring authors is printed once, after the last of them.
    """
    parts = []
    for affiliation, members in groupby(authors, key=itemgetter("affiliation")):
        names = ", ".join(author["name"] for author in members)
        if affiliation:
            names += f" ({affiliation})"
        parts.append(names)
    return ", ".join(parts)


def list_remarks(frames: CampaignFrames, layout: Layout | None) -> dict[str, list[list[str]]]:
    """Return the remarks of rows, and ``row_notes``, which no table shows.

    A remark is its short words, the number of its rows, and its full sentence. A note is the names of its
    rows, and its full sentence.
    """
    shown = {}
    for table in TABLES:
        instruments = {program.instrument for program in table.series}
        if layout is not None and layout.programs_of(table):
            instruments = layout.programs_of(table)
        shown[table.name] = instruments
    found: dict[str, list[list[str]]] = {"remarks": [], "row_notes": []}
    own = frames.rows[frames.rows["is_own"]].set_index("point", drop=False)
    for short, points, text in remarks.explain(frames, shown):
        if short:
            found["remarks"].append([short, plural(len(points), "row"), text])
        else:
            is_every = len(points) == own["n"].gt(0).sum()
            names = "All rows" if is_every else name_rows(list(schema.lines(own.loc[list(points)])))
            found["row_notes"].append([names, text])
    return found


def name_rows(rows: Sequence[Line]) -> str:
    """Return the names of a few rows, or the number of rows and the titles of their tables."""
    if len(rows) <= NAMED:
        return "; ".join(Labels.of(row).point(row, variant=True) for row in rows)
    titles = dict.fromkeys(BY_NAME[row.table].full_title for row in rows)
    return f"{len(rows)} rows of {'; '.join(titles)}"


def build_caveats(frames: CampaignFrames) -> list[str]:
    """Return the caveats of page one."""
    texts = [typeset(caveat.full_sentence) for caveat in page_one.build_caveats(frames)]
    layout = layout_tables.layout_of(frames)
    if layout and is_many(frames):
        texts.append(appendix.TEXT["layout_of_nodes"].format(name=layout.name))
    return texts
