"""The report of a campaign. ``analysis.json`` holds all that it says: ``write_analysis`` computes it
once, with tables and figures; PDF and HTML report are set from it without computing again.

Read ``document.py`` first: it lists the chapters with what makes them. This module is light, as rules
and the command line import it: what computes is imported where it is needed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peakmark import files
from peakmark.config import inputs
from peakmark.errors import PeakmarkError
from peakmark.resources import IS_CHECKOUT, PACKAGE, ROOT
from peakmark.storage.results import Results

if TYPE_CHECKING:
    from peakmark.analysis import Analysis

ANALYSIS = "analysis.json"
"""In the folder of a campaign: all that its report says."""
SOURCES = ("cells", "attempts", "machine", "inputs", "plan.json", "config.json")
"""What everything else in a campaign's folder is made of."""


def digest(section: Mapping[str, Any], root: Path = ROOT) -> str:
    """What tables and report are made by: code, templates, layouts, and the files
    that ``report:`` names. Where it has changed they are made anew from the records.
    """
    package = root / "src" / "peakmark" if IS_CHECKOUT else PACKAGE
    code = [path for path in package.rglob("*") if path.suffix in (".py", ".csv", ".yaml")]
    named = [place for _, name in inputs.names(section) for place in (Path(name), root / name)]
    makers = {*code, *(root / "reports").rglob("*"), *named}
    contents = (path.read_bytes() for path in makers if path.is_file())
    digests = sorted(hashlib.sha256(content).hexdigest() for content in contents)
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def incomplete(results: Results) -> dict[str, Any]:
    """How many planned cells have no record that counts, and why records do not count."""
    reasons = [results.findings[cell.id].reason for cell in results.missing]
    return {
        "missing": len(results.missing),
        "cells": len(results.cells),
        "damaged": [reason for reason in reasons if reason],
    }


def must_be_complete(gaps: Mapping[str, Any], partial: bool, command: str, shown: Path) -> None:
    """Errors: PeakmarkError when cells are missing and ``partial`` does not allow it.

    Args:
        gaps: see ``incomplete``.
        partial: allow them.
        command: what the user called.
        shown: the campaign as the user named it.
    """
    if partial or not gaps["missing"]:
        return
    damaged = gaps["damaged"]
    which = (
        f"; records of {len(damaged)} are there and do not count, the first because {damaged[0]}"
        if damaged
        else ""
    )
    raise PeakmarkError(
        f"{gaps['missing']} of {gaps['cells']} planned cells of {shown} have no record that counts{which}: "
        f"run the campaign again to measure them, or {command} what there is with `peakmark {command} --partial "
        f"{shown}`"
    )


def write_analysis(campaign: Path | Analysis) -> dict[str, Any]:
    """Write tables, figures and ``analysis.json`` of a campaign.

    Returns:
        What the report says, see ``document.build``.

    Raises:
        PeakmarkError: the folder holds no campaign, or cannot be written.
        RecordError: a record is damaged.
    """
    from peakmark import figures
    from peakmark.analysis import Analysis
    from peakmark.report import document, sections
    from peakmark.rows import build
    from peakmark.views import tables

    analysis = Analysis.of(campaign)
    results = analysis.results
    state = _state(results)
    folder = files.made_folder(results.directory, tables.FOLDER)
    tables.write_tables(build.load(results.directory), folder)
    figures.build(analysis)
    data = {
        **document.build(analysis),
        "figures": sections.figure_extents(analysis),
        "incomplete": incomplete(results),
    }
    content = {"state": state, "checksum": _checksum(data), "data": data}
    files.write_text(results.directory / ANALYSIS, json.dumps(content))
    return data


@dataclass(frozen=True)
class ReportContent:
    """What PDF and HTML report are set from.

    Attributes:
        results: the campaign.
        data: see ``document.build``; the author's chapters are in it.
        logo: for the first page.
    """

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
        from peakmark.report import chapters

        results = Results.read(campaign)
        data = _stored(results)
        gaps = data["incomplete"] if data else incomplete(results)
        must_be_complete(gaps, partial, command, campaign)
        if data is None:
            from peakmark.analysis import Analysis

            data = write_analysis(Analysis(results))
        section = results.report_config
        logo = inputs.check_logo(section.get("logo"))
        written = chapters.build(section, data["kernels"], data["sections"])
        return cls(results, data | {"chapters": written}, logo)


def _stored(results: Results) -> dict[str, Any] | None:
    """The stored data, None where they are of another state of the campaign, or damaged."""
    try:
        stored = files.read_json(results.directory / ANALYSIS)
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
    total = hashlib.sha256(digest(results.config.get("report") or {}).encode())
    for path in sorted(_sources(results.directory)):
        known = path.lstat()
        name = path.relative_to(results.directory)
        total.update(f"{name}\0{known.st_size}\0{known.st_mtime_ns}\n".encode())
    return total.hexdigest()


def _sources(campaign: Path) -> Iterator[Path]:
    """Yield the files that the campaign is made of."""
    for source in (campaign / name for name in SOURCES):
        for path in (source, *source.rglob("*")):
            if path.is_file():
                yield path
