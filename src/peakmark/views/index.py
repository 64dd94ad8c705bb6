"""The page ``results/index.html``: a line for each campaign in a folder, with links to its reports.

The page is made from the ``summary.json`` and ``rows/campaign.json`` of each campaign, so that a folder
with many campaigns takes well below a second.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from peakmark import files
from peakmark.catalogue import SUBSYSTEMS
from peakmark.errors import PeakmarkError, sentence
from peakmark.formatting import date, plural
from peakmark.output import plain
from peakmark.rows.names import CAMPAIGN, FOLDER
from peakmark.views import html_page, page_one
from peakmark.views.score_card import CardLine, Trust

NAME = "index.html"
RESULTS = "results"
"""Name of the folder in which reports refresh the page without being asked."""
MARK = "peakmark index"
"""Generator that the page names: a file of another generator is never replaced."""
BEGINNING = 4096
"""Number of bytes at the beginning of a file that are searched for the name of its generator."""
SUMMARY = "summary.json"
MOST = 16 << 20
"""Largest summary in bytes that is read; one of 10,000 nodes has 2 MB."""
TRIES = 3
"""Most times that the page is written at once, see ``write``."""
PREFERRED = "DRAM copy"
"""Headline that stands for its subsystem, though another one comes first on the score card."""


@dataclass(frozen=True)
class SummaryFile:
    """Values of ``summary.json`` that the page shows, see ``page_one.build``."""

    box: list[tuple[str, str]]
    card: list[CardLine]
    since: str


@dataclass(frozen=True)
class CampaignTimes:
    """Times of a campaign that the page shows."""

    newest: Annotated[datetime, msgspec.Meta(tz=True)]


@dataclass(frozen=True)
class CampaignFile:
    """Values of ``rows/campaign.json`` that the page shows."""

    times: CampaignTimes
    missing: int


@dataclass(frozen=True)
class IndexEntry:
    """A campaign with its report.

    Attributes:
        folder: name of the campaign's folder.
        documents: title of each document that exists -> its address, relative to the page.
        newest: time of the campaign's newest record.
        missing: number of planned cells without a record.
        summary: page one of its report.
    """

    folder: str
    documents: dict[str, str]
    newest: datetime
    missing: int
    summary: SummaryFile


def write(results: Path) -> Path:
    """Write the page of a folder of campaigns, and return its path.

    Two runs may end at the same time. Each reads the folder again after it wrote the page, and writes
    again if the other run added a report meanwhile. So the page that is written last has both.

    Raises:
        PeakmarkError: the folder cannot be read, or has a file of this name that is not peakmark's.
        OSError: the page cannot be written.
    """
    target = results / NAME
    for _ in range(TRIES):
        page = build(results)
        if present_page(target) == page:
            break
        files.write_bytes(target, page)
    return target


def present_page(target: Path) -> bytes | None:
    """Return the page that exists, or None if there is none.

    Raises:
        PeakmarkError: the file is not peakmark's.
    """
    if not os.path.lexists(target):
        return None
    content = b""
    if not target.is_symlink():
        content = files.read_bytes(target)
    if MARK.encode() not in content[:BEGINNING]:
        raise PeakmarkError(
            f"{target} is not a page that peakmark wrote: it stays as it is; move it away to get the list"
            " of campaigns"
        )
    return content


def is_wanted(results: Path) -> bool:
    """Return whether a report refreshes the page of its folder.

    It does so in a folder that is called ``results``, and in a folder that has the page already. Any
    other folder is the user's own.
    """
    if results.absolute().name == RESULTS:
        return True
    try:
        return present_page(results / NAME) is not None
    except (PeakmarkError, OSError):
        return False


def build(results: Path) -> bytes:
    """Return the page of a folder of campaigns.

    Raises:
        PeakmarkError: the folder cannot be read.
    """
    entries, others = [], []
    for folder in campaigns_in(results):
        try:
            entries.append(read(folder))
        except (OSError, ValueError, OverflowError) as error:
            others.append((shown(folder.name), why_not(folder, error)))
    entries.sort(key=lambda entry: entry.newest, reverse=True)
    subsystems = []
    for name, subsystem in SUBSYSTEMS.items():
        if any(headline(entry, name) for entry in entries):
            subsystems.append((name, subsystem.title))
    names = [name for name, _ in subsystems]
    lines = [line_of(entry, names) for entry in entries]
    data = {
        "mark": MARK,
        "count": plural(len(entries) + len(others), "campaign"),
        "subsystems": [title for _, title in subsystems],
        "lines": lines,
        "with_changes": any(line["since"] for line in lines),
        "others": others,
    }
    return html_page.render("index.html.j2", data)


def campaigns_in(results: Path) -> Iterator[Path]:
    """Yield the folders of campaigns in a folder, in the order of their names."""
    try:
        folders = sorted(results.iterdir())
    except OSError as error:
        raise PeakmarkError(f"cannot list the campaigns of {results}: {sentence(error)}") from error
    for folder in folders:
        for name in ("plan.json", f"{FOLDER}/{CAMPAIGN}", SUMMARY):
            if os.path.lexists(folder / name):
                yield folder
                break


def read(folder: Path) -> IndexEntry:
    """Return a campaign with its report.

    Raises:
        OSError: a file cannot be read.
        ValueError, OverflowError: a file is damaged.
    """
    campaign: CampaignFile = parsed(folder / FOLDER / CAMPAIGN, CampaignFile)
    summary: SummaryFile = parsed(folder / SUMMARY, SummaryFile)
    documents = {}
    for title, name in (("HTML", "report.html"), ("PDF", "report.pdf")):
        if (folder / name).is_file():
            documents[title] = f"{quote(os.fsencode(folder.name))}/{name}"
    newest = campaign.times.newest.astimezone(UTC)
    return IndexEntry(folder.name, documents, newest, campaign.missing, summary)


def parsed(path: Path, kind: Any) -> Any:
    """Return the content of a JSON file. Errors: OSError; ValueError that names the file."""
    try:
        return files.parse_json(files.read_bytes(path, MOST), kind)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error


def why_not(folder: Path, error: Exception) -> str:
    """Return why a campaign has no line, with the command that gives it one."""
    command = f"`peakmark report {shlex.quote(str(folder))} --html`"
    if isinstance(error, FileNotFoundError):
        return shown(f"It has no report yet: {command} writes it.")
    reason = sentence(error) if isinstance(error, OSError) else str(error)
    return shown(f"Its summary cannot be read ({reason}): {command} writes it again.")


def shown(text: str) -> str:
    """Return a name or a message without control characters."""
    return plain(text).replace("\n", " ")


# -- a line


def line_of(entry: IndexEntry, subsystems: Sequence[str]) -> dict[str, Any]:
    """Return what the page shows of a campaign.

    Args:
        entry: the campaign.
        subsystems: subsystems with a column.
    """
    time = entry.newest.timestamp()
    measured = date(entry.newest) if time else "nothing measured yet"
    partial = ""
    if entry.missing:
        partial = f"{plural(entry.missing, 'cell')} missing"
    since = entry.summary.since
    if since == page_one.FIRST_RUN:
        since = ""
    box = dict(entry.summary.box)
    return {
        "name": shown(entry.folder),
        "documents": entry.documents,
        "measured": measured,
        "time": time,
        "partial": partial,
        "machine": box.get("Processor", ""),
        "headlines": [headline(entry, name) for name in subsystems],
        "trust": trust_of(entry.summary.card),
        "since": since,
    }


def headline(entry: IndexEntry, subsystem: str) -> CardLine | None:
    """Return the line of the score card that stands for a subsystem; None if it has none."""
    lines = [line for line in entry.summary.card if line.subsystem == subsystem]
    for line in lines:
        if line.title == PREFERRED:
            return line
    return lines[0] if lines else None


def trust_of(card: Sequence[CardLine]) -> list[tuple[str, int]]:
    """Return each word for trust that the card has, with the number of its lines."""
    counts = []
    for trust in Trust:
        count = sum(line.trust is trust for line in card)
        if count:
            counts.append((str(trust), count))
    return counts
