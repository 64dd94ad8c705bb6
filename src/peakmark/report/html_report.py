"""The report as one HTML file that needs nothing else: the data of the PDF in a Jinja template.

The template escapes every text, and a content security policy forbids the page to load or to run
anything that is not in it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from peakmark import files
from peakmark.config.inputs import check_logo
from peakmark.report import sections
from peakmark.report.document import ReportContent
from peakmark.resources import ROOT
from peakmark.tables.columns import NOT_MEASURED
from peakmark.tables.presentation import BETWEEN, BOUND

TEMPLATES = ROOT / "reports" / "html"
LONG = 24
"""Characters of a word that may break."""
LINKS = ("https://", "http://", "mailto:", "#")
"""What an author's link may lead to; another one is shown as text."""
_KINDS = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
_SIZES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}


def build(report: ReportContent, target: Path | None = None) -> Path:
    """Write the HTML report.

    Args:
        report: what it says.
        target: where to write; by default the campaign's ``report.html``.

    Returns:
        The path written.
    """
    logo = report.logo and str(report.logo.absolute())
    shown = {**report.data, "meta": {**report.data["meta"], "logo": logo}}
    target = target or report.folder / "report.html"
    html = render(shown, report.folder, report.results.mark)
    files.write_document(target, html.encode(), report.folder)
    return target


def render(data: Mapping[str, Any], folder: Path, mark: str = ".") -> str:
    """The whole HTML text.

    Args:
        data: what ``document.build`` returns, with the author's chapters.
        folder: holds the figures that ``data`` names.
        mark: decimal mark of the numbers in ``data``.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["web_link"] = lambda address: address.startswith(LINKS)
    environment.filters |= {
        "anchor": _anchor,
        "code": code,
        "digest": _digest,
        "embedded": lambda file: _embedded(folder / file),
        "formula_cells": itemgetter("rows", "formula", "kind", "source"),
        "lines": lambda text: Markup("<br>").join(text.split("\n")),
        "note_marks": _note_marks,
        "pixels": lambda file: _pixels(folder / file),
        "sort_value": lambda text: sort_value(text, mark),
        "program": _program,
        "words": _words,
    }
    return environment.get_template("report.html.j2").render(
        data,
        hole=NOT_MEASURED,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "report.js").read_text(encoding="utf-8"),
    )


def _anchor(title: str) -> str:
    return "".join(character if character.isalnum() else "-" for character in title.lower())


def code(text: str) -> Markup:
    """A text in which code stands between backticks; a single backtick is none."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(path: Path) -> str:
    """A picture as the data of a link."""
    check_logo(str(path))
    kind = _KINDS[path.suffix.lower()]
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _pixels(path: Path) -> tuple[int, int]:
    """Width and height of a figure in CSS pixels, of which 96 are an inch."""
    width, height = sections.figure_extent(path)
    return round(width * 4 / 3), round(height * 4 / 3)


def _program(name: str) -> Markup:
    """A heading that may break before ``Bench``."""
    return escape(name).replace("Bench", Markup("<wbr>Bench"))


def _words(text: str) -> Markup:
    """A text in which only words that no column holds may break."""
    words = [
        Markup('<span class="long">{}</span>').format(word) if len(word) > LONG else escape(word)
        for word in text.split(" ")
    ]
    return Markup(" ").join(words)


def _note_marks(text: str) -> list[tuple[str, str]]:
    """(letter, number behind it) of each note of a cell."""
    marks = [mark for mark in text.split(BETWEEN) if mark]
    return [(letter, gap + number) for letter, gap, number in (m.partition(BOUND) for m in marks)]


def sort_value(text: str, mark: str) -> float | None:
    """The number by which a cell is sorted: a number, bytes of a size, or None for other texts.

    Args:
        text: of the cell; of several numbers the first counts.
        mark: the decimal mark.
    """
    try:
        return float(text.replace(mark, "."))
    except ValueError:
        pass
    number, _, unit = text.partition(" ")
    if number.isdigit() and unit in _SIZES:
        return float(number) * _SIZES[unit]
    first = text.lstrip("×").split("  ")[0]
    return None if first == text else sort_value(first, mark)
