"""``analysis.json``: all that the report says, computed once by ``peakmark tables``.

PDF and HTML report are set from it and compute nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from peakmark import files
from peakmark.analysis import history
from peakmark.analysis.analysis import Analysis
from peakmark.config.inputs import check_logo
from peakmark.figures import figures
from peakmark.report import chapters, document, makers, pictures
from peakmark.storage import facts
from peakmark.storage.results import Results
from peakmark.tables import tables

SOURCES = ("cells", "attempts", "machine", "inputs", "repetitions", "plan.json", "config.json")
"""What everything else in a campaign's folder is made of."""


def build(campaign: Path | Analysis) -> dict[str, Any]:
    """Write tables, figures and ``analysis.json`` of a campaign.

    Returns:
        What the report says, see ``document.build``.

    Raises:
        PeakmarkError: the folder holds no campaign, or cannot be written.
        RecordError: a record is damaged.
    """
    analysis = Analysis.of(campaign)
    results = analysis.results
    state = _state(results)
    tables.build(analysis)
    figures.build(analysis)
    data = document.build(analysis, pictures.widths(analysis))
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
        data: see ``document.build``; the author's chapters are in it.
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
        incomplete = data["incomplete"] if data else document.incomplete(results)
        document.must_be_complete(incomplete, partial, command, campaign)
        data = data or build(Analysis(results))
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
