"""What the report says, as one JSON value for the templates: words and texts, no markup. ``peakmark
tables`` computes it once and stores it in ``analysis.json``; PDF and HTML report are set from it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from peakmark import files
from peakmark.analysis import Analysis, history, verdict
from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config import inputs
from peakmark.config.inputs import check_logo
from peakmark.errors import PeakmarkError
from peakmark.figures import figures
from peakmark.formatting import date, decimal_mark, listed, mapped, plural, typeset
from peakmark.report import (
    appendix,
    chapters,
    fleet_text,
    machine_text,
    makers,
    method_text,
    sections,
)
from peakmark.report.sections import Sections
from peakmark.storage import facts
from peakmark.storage.results import Results
from peakmark.tables import tables

Rows = Mapping[str, Sequence[Row]]
NUMBERS = ("verdicts", "slow", "fleet", "caveats", "overview", "sections", "runs", "artifact")
"""Parts whose numbers get the decimal mark; the others hold versions, commands and names."""


def build(analysis: Analysis, widths: sections.Widths) -> dict[str, Any]:
    """The whole report but for the chapters of the author.

    Args:
        analysis: the campaign.
        widths: name of each figure that was drawn -> its width in percent of the page.
    """
    results, rows, mark = analysis.results, analysis.rows, analysis.results.mark
    verdicts, several = verdict.verdicts(rows), analysis.has_several_nodes
    data = {
        "meta": _meta(results, rows),
        "incomplete": incomplete(results),
        "figures": dict(widths),
        "kernels": sorted(chapters.measured(results)),
        "verdicts": list(map(_verdict, verdicts)),
        "slow": fleet_text.sentences(analysis),
        "fleet": fleet_text.build(analysis) if several else {},
        "caveats": [
            *(typeset(each.full_sentence) for each in verdict.build_caveats(rows, results.config)),
            *_other_layout(analysis),
        ],
        "overview": sections.picture_of_page_one(widths, several, verdicts),
        "machine": machine_text.alike(machine_text.nodes(results, mark)),
        "method": _method(analysis),
        "sections": Sections(analysis, widths).build(),
        "runs": appendix.elsewhere() if analysis.is_fleet else appendix.runs(rows),
        "problems": appendix.problems(results),
        "artifact": appendix.artifact(results),
        "provenance": appendix.provenance(results),
    }
    if mark == ".":
        return data
    return data | {key: mapped(data[key], partial(decimal_mark, mark=mark)) for key in NUMBERS}


def _method(analysis: Analysis) -> dict[str, Any]:
    """How it was measured, and the conditions that most rows share."""
    method = method_text.build(analysis)
    shared = [typeset(each.full_sentence) for each in verdict.conditions(analysis.rows)]
    if shared:
        method["parts"].append({"title": "Conditions of this campaign", "paragraphs": shared})
    return method


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
        "date": date(newest(results), str(config.get("date_language") or "en"))
        if begun
        else "nothing measured yet",
        "campaign": results.name,
        "lead": f"This report tells how close {machine_text.short(results)} {'come' if many else 'comes'} to the limits of {'their' if many else 'its'} {named}. "
        "peakmark's kernels measure beside the field's reference tools.",
        "partial": missing > 0,
        "newest": newest(results).isoformat(),
        "partial_text": f"{missing} of {plural(len(results.cells), 'planned cell')} {'has' if missing == 1 else 'have'} no record yet; "
        f"{'its row says' if missing == 1 else 'their rows say'} “not measured”.",
    }


def _verdict(entry: verdict.Verdict) -> dict[str, str]:
    """A sentence of page one with the warning below it."""
    return {
        "title": entry.title,
        "text": typeset(entry.text.full_sentence),
        "warning": typeset(entry.caution),
    }


SOURCES = ("cells", "attempts", "machine", "inputs", "repetitions", "plan.json", "config.json")
"""What everything else in a campaign's folder is made of."""


def write(campaign: Path | Analysis) -> dict[str, Any]:
    """Write tables, figures and ``analysis.json`` of a campaign.

    Returns:
        What the report says, see ``build``.

    Raises:
        PeakmarkError: the folder holds no campaign, or cannot be written.
        RecordError: a record is damaged.
    """
    analysis = Analysis.of(campaign)
    results = analysis.results
    state = _state(results)
    tables.build(analysis)
    figures.build(analysis)
    data = build(analysis, sections.figure_widths(analysis))
    kept = msgspec.to_builtins(history.summarise(analysis))
    text = json.dumps({"state": state, "checksum": _checksum(data), "history": kept, "data": data})
    files.write_text(results.directory / makers.ANALYSIS, text)
    return data


@dataclass(frozen=True)
class ReportContent:
    """What PDF and HTML report are set from.

    Attributes:
        folder: of the campaign.
        results: the campaign.
        data: see ``build``; the author's chapters are in it.
        logo: for the first page.
    """

    folder: Path
    results: Results
    data: Mapping[str, Any]
    logo: Path | None

    @classmethod
    def read(
        cls,
        campaign: Path,
        partial: bool = False,
        command: str = "report",
    ) -> ReportContent:
        """What the report of a campaign says: as it is stored, or computed where that is out of date.

        Args:
            campaign: its folder.
            partial: allow planned cells without a record, which are shown as not measured.
            command: what the user called, for the error.

        Raises:
            PeakmarkError: cells are missing and ``partial`` is not set.
            ConfigError: the logo or a text of the author's cannot be used.
        """
        results = Results.read(campaign)
        data = _stored(results)
        gaps = data["incomplete"] if data else incomplete(results)
        must_be_complete(gaps, partial, command, campaign)
        data = data or write(Analysis(results))
        section = results.report_config
        logo = check_logo(section.get("logo"))
        written = chapters.build(section, data["kernels"], data["sections"])
        return cls(campaign, results, data | {"chapters": written}, logo)


def _stored(results: Results) -> dict[str, Any] | None:
    """The stored data, None where they are of another state of the campaign, or damaged."""
    try:
        stored = files.read_json(results.directory / makers.ANALYSIS)
        data: dict[str, Any] = stored["data"]
        if stored["state"] != _state(results) or stored["checksum"] != _checksum(data):
            return None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    drawn = (results.directory / "figures" / f"{name}.svg" for name in data["figures"])
    return data if all(path.is_file() for path in drawn) else None


def _checksum(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def _state(results: Results) -> str:
    """Changes with the files of the campaign, and with the code that reads them."""
    total = hashlib.sha256(makers.digest(results.config.get("report") or {}).encode())
    for name, size, modified in sorted(_sources(results.directory)):
        total.update(f"{name}\0{size}\0{modified}\n".encode())
    return total.hexdigest()


def _sources(campaign: Path) -> Iterator[tuple[str, int, int]]:
    """(path, bytes, time of the last change in ns) of each file that the campaign is made of."""
    for name in SOURCES:
        path = campaign / name
        if path.is_file():
            yield name, path.stat().st_size, path.stat().st_mtime_ns
        for place, folders, names in os.walk(path):
            # The tables write the clocks, after the state was taken.
            folders[:] = [each for each in folders if each != Path(facts.CLOCKS).name]
            for each in names:
                known = Path(place, each).lstat()
                yield f"{place[len(str(campaign)) :]}/{each}", known.st_size, known.st_mtime_ns
