"""Find and check the author's chapters: Markdown files in the folder that ``report.text`` names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from peakmark.catalogue import CHAPTERS
from peakmark.config import layouts
from peakmark.config.types import Report
from peakmark.errors import ConfigError
from peakmark.resources import of_user
from peakmark.validation import did_you_mean

ENDINGS = (".md", ".typ")
"""Extensions of files that are meant as chapters."""


def check(name: str | None) -> None:
    """Check the folder of the author's chapters.

    Raises:
        ConfigError: there is no such folder, or a text in it does not have the name of a chapter.
    """
    if name is None:
        return
    folder = of_user(name)
    if not folder.is_dir():
        raise ConfigError(
            f"report.text: there is no folder {name!r}: give the folder that holds the chapters, "
            f"such as {CHAPTERS[0]}.md"
        )
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in ENDINGS and path.name not in {f"{key}.md" for key in CHAPTERS}:
            raise ConfigError(
                f"report.text: {path} is no chapter{did_you_mean(path.stem, CHAPTERS)}: allowed are "
                f"{', '.join(f'{key}.md' for key in CHAPTERS)}"
            )
        if path.suffix == ".md":
            check_readable(path)


def check_readable(path: Path) -> None:
    """Check that a file is readable UTF-8 text. Errors: ConfigError."""
    try:
        path.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"report.text: {path} is not readable as UTF-8 text ({error})") from error


def digest(report: Report) -> str:
    """Return a digest of the user's files that ``report`` names: layout and chapters."""
    total = hashlib.sha256()
    for path in named_files(report.tables, report.text):
        if path.is_file():
            total.update(f"{path.name}\0".encode())
            total.update(path.read_bytes())
    return total.hexdigest()


def named_files(tables: str | None, text: str | None) -> Iterator[Path]:
    """Yield the paths of the layout, and of the chapters in the folder ``text``."""
    if tables:
        yield layouts.path_of(tables)
    if text:
        yield from sorted(of_user(text).glob("*.md"))
