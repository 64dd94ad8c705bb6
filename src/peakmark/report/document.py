"""What the report says, as one JSON value for the Typst template: words and texts, no markup,
nothing computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from peakmark.analysis import fleet, verdict
from peakmark.analysis.analysis import Analysis
from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config import inputs
from peakmark.errors import PeakmarkError
from peakmark.formatting import date, decimal_mark, listed, mapped, plural, typeset
from peakmark.report import appendix, chapters, machine_text, method_text, pictures
from peakmark.report.sections import Sections
from peakmark.storage.results import Results

Rows = Mapping[str, Sequence[Row]]
NUMBERS = ("verdicts", "slow", "caveats", "overview", "sections", "runs", "artifact")
"""Parts whose numbers get the decimal mark; the others hold versions, commands and names."""


def build(analysis: Analysis, widths: pictures.Widths) -> dict[str, Any]:
    """The whole report but for the chapters of the author.

    Args:
        analysis: the campaign.
        widths: name of each figure that was drawn -> its width in percent of the page.
    """
    results, rows, mark = analysis.results, analysis.rows, analysis.mark
    judged = verdict.verdicts(rows)
    lines = [_verdict(entry, analysis.has_several_nodes) for entry in judged]
    data = {
        "meta": _meta(results, rows),
        "incomplete": incomplete(results),
        "figures": dict(widths),
        "kernels": sorted(chapters.measured(results)),
        "verdicts": [list(line.values()) for line in lines],
        "slow": fleet.slow_node_sentences(rows),
        "caveats": [
            *map(typeset, verdict.build_caveats(rows, judged, results.config)),
            *_other_layout(analysis),
        ],
        "verdict_head": list(lines[0]),
        "overview": pictures.of_page_one(widths, analysis.has_several_nodes, judged),
        "machine": machine_text.alike(machine_text.nodes(results, mark)),
        "method": method_text.build(analysis),
        "sections": Sections(analysis, widths).build(),
        "runs": appendix.elsewhere() if analysis.is_fleet else appendix.runs(rows),
        "problems": appendix.problems(results),
        "artifact": appendix.artifact(results),
        "provenance": appendix.provenance(results),
    }
    if mark == ".":
        return data
    return data | {key: mapped(data[key], partial(decimal_mark, mark=mark)) for key in NUMBERS}


def _other_layout(analysis: Analysis) -> list[str]:
    """That many nodes have tables of their own, where a layout is configured."""
    if analysis.layout is None or not analysis.is_fleet:
        return []
    name = analysis.layout.name
    return [
        f"Of so many nodes the tables here have a line for each point; those of the layout {name}, with a line for "
        f"each node, are in tables/{name}."
    ]


def incomplete(results: Results) -> dict[str, Any]:
    """How many planned cells have no record that counts, and why records do not count."""
    reasons = [results.findings[cell.id].reason for cell in results.missing]
    return {
        "missing": len(results.missing),
        "cells": len(results.cells),
        "damaged": [reason for reason in reasons if reason],
    }


def must_be_complete(
    incomplete: Mapping[str, Any], partial: bool, command: str, shown: Path
) -> None:
    """Errors: PeakmarkError when cells are missing and ``partial`` does not allow it; ``shown``:
    the campaign as the user named it.
    """
    if partial or not incomplete["missing"]:
        return
    damaged = incomplete["damaged"]
    which = (
        f"; records of {len(damaged)} are there and do not count, the first because {damaged[0]}"
        if damaged
        else ""
    )
    raise PeakmarkError(
        f"{incomplete['missing']} of {incomplete['cells']} planned cells of {shown} have no record that counts{which}: "
        f"run the campaign again to measure them, or {command} what there is with `peakmark {command} --partial "
        f"{shown}`"
    )


def newest(results: Results) -> datetime:
    """When the newest record was begun, to the second: the report's date. The epoch where there is
    no record.
    """
    stored = (*results.records, *results.attempts)
    times = [
        datetime.fromisoformat(str(record.data["context"]["started"])).astimezone(UTC)
        for record in stored
    ]
    return max(times, default=datetime.fromtimestamp(0, UTC)).replace(microsecond=0)


def _meta(results: Results, rows: Rows) -> dict[str, Any]:
    config = results.report_config
    resources = [SUBSYSTEMS[subsystem].resource for subsystem in verdict.planned(rows)]
    named = listed(resources)
    missing = len(results.missing)
    begun = bool(results.records or results.attempts)
    many = len(results.facts) > 1
    return {
        "title": str(config.get("title") or "Performance report"),
        "author": inputs.author_line(config),
        "authors": [author.name for author in inputs.authors(config)],
        "course": str(config.get("course") or ""),
        "date": date(
            newest(results), str(config.get("date_language") or config.get("language") or "en")
        )
        if begun
        else "nothing measured yet",
        "campaign": results.name,
        "lead": f"This report tells how close {machine_text.short(results)} {'come' if many else 'comes'} to the limits of {'their' if many else 'its'} {named}. "
        f"{'Each resource' if len(resources) > 1 else f'The {named}'} is measured by an own kernel and, beside it, by the "
        "tools that the field uses.",
        "partial": missing > 0,
        "newest": newest(results).isoformat(),
        "partial_text": f"{missing} of {plural(len(results.cells), 'planned cell')} {'has' if missing == 1 else 'have'} no record yet; "
        f"{'its row says' if missing == 1 else 'their rows say'} “not measured”.",
    }


def _verdict(entry: verdict.Verdict, several: bool) -> dict[str, list[str]]:
    """A line of page one: heading -> what stands there, and small below it; of ``several`` nodes
    their median and the slowest.
    """
    measured = [entry.measured, f"({entry.spread})" if entry.spread else ""]
    if several:
        shares = {
            "Median of the nodes\n(lowest to highest)": measured,
            "Share of the\nlimit": [
                entry.share or entry.limit,
                f"of {entry.limit}" if entry.share else "",
            ],
            "Slowest node": [entry.slowest, entry.behind],
            "Beside a reference": [entry.reference, ""],
        }
    else:
        shares = {
            "Measured\n(lowest to highest)": measured,
            "Limit": [entry.limit, ""],
            "Share": [entry.share, entry.clocks],
            "Beside a reference": [entry.reference.replace("n = ", "n\u00a0=\u00a0"), ""],
        }
    confidence = [entry.confidence, typeset(entry.why)]
    return {"Resource": [entry.title, entry.what], **shares, "Confidence, and why": confidence}
