"""The report as PDF, set by Typst, and as one HTML file, written by Jinja2, from the same data.

The templates take all texts as values, never as markup. The Typst template leaves out parts for which
paper has no room. The HTML file needs no other file: a content security policy forbids it to load or run
anything from outside.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import tempfile
import xml.etree.ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup, escape

from peakmark.errors import PeakmarkError, tell
from peakmark.resources import ROOT
from peakmark.rows.schema import CampaignFrames
from peakmark.views import document, score_card

TEMPLATE = ROOT / "reports" / "template"
"""Folder of the template of the PDF."""
PAGE = ROOT / "reports" / "html"
"""Folder of the template of the HTML report, its style and its scripts."""
SCRIPTS = ("page.js", "figures.js", "copy.js")
"""Scripts of the HTML report: sorting, filters and colours; large figures; buttons that copy."""
LINKS = ("https://", "http://", "mailto:", "#")
"""Allowed beginnings of the targets of an author's links; any other link is shown as text."""
_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9,
          "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}  # fmt: skip
"""Unit of a size in a cell -> bytes."""
WIDTH_POINTS = 6.85 * 72
"""Width of the text on a page, in points."""
HEIGHT_POINTS = 7.2 * 72
"""Largest height of a figure, in points, so that its caption stays on the same page."""
PIXELS = 1.6 * 4 / 3
"""Pixels on the screen per point of a figure: the figure's letters are as large as the page's text."""
_CONTROL = re.compile(r"(\\\\)|\\(?:u00[01][0-9a-f]|[bfrt])")
"""Pattern of an escaped control character in JSON. No font has a glyph for control characters.

The pattern also matches an escaped backslash, as group 1, which is kept: in the text ``\\\\b``, the
``b`` is a letter and not a part of a backspace.
"""
Standard = Literal["a-2a", "ua-1"]
STANDARDS: tuple[Standard, ...] = ("a-2a", "ua-1")  # Typst's names of PDF/A-2a and PDF/UA-1


@dataclass(frozen=True)
class ReportContent:
    """The content of the PDF report and of the HTML report.

    Attributes:
        campaign: folder of the campaign, in which the report is written.
        data: content as ``document.build`` returns it, with the extents of the figures as ``figures``.
        pictures: name of each figure -> its SVG.
    """

    campaign: Path
    data: Mapping[str, Any]
    pictures: Mapping[str, bytes]


def collect(frames: CampaignFrames, campaign: Path, figures: Path) -> ReportContent:
    """Return the content of the report of a campaign.

    Args:
        frames: the campaign.
        campaign: folder of the campaign.
        figures: folder of the campaign's figures.

    Raises:
        ConfigError: see ``document.build_chapters``.
    """
    data = document.build(frames, campaign / document.PACKED)
    pictures = {}
    for name in figure_names(data):
        pictures[name] = (figures / f"{name}.svg").read_bytes()
    extents = {name: extent(picture) for name, picture in pictures.items()}
    return ReportContent(campaign, data | {"figures": extents}, pictures)


def figure_names(data: Mapping[str, Any]) -> list[str]:
    """Return the names of the figures of a report, with the figure of page one first."""
    names = [data["overview"]["name"]] if data["overview"] else []
    for section in data["sections"]:
        for part in section["parts"]:
            names += [figure["name"] for figure in part["figures"]]
    return names


def extent(picture: bytes) -> dict[str, Any]:
    """Return the ``width`` of a figure in percent of the text, and its ``pixels`` (width, height) on the screen.

    The figure is as wide as it was drawn, unless it would be wider or higher than a page allows.
    """
    root = xml.etree.ElementTree.fromstring(picture)  # noqa: S314 - written by peakmark
    width, height = (float(root.attrib[side].removesuffix("pt")) for side in ("width", "height"))
    of_text = width / WIDTH_POINTS
    # At the last share, the figure is as high as a page allows.
    share = min(1, of_text, of_text * HEIGHT_POINTS / height)
    return {"width": int(100 * share), "pixels": [round(width * PIXELS), round(height * PIXELS)]}


def write(report: ReportContent, target: Path) -> Path:
    """Write the report into ``target``, and return this path.

    The report is HTML if the name of the file ends in ``.html``, otherwise PDF.
    """
    content = html_page(report) if target.suffix == ".html" else pdf(report)
    target.write_bytes(content)
    return target


def write_all(report: ReportContent) -> None:
    """Write the report as PDF and HTML, page one as ``summary.md`` to paste, and its card as ``summary.json``."""
    for name in ("report.pdf", "report.html"):
        write(report, report.campaign / name)
    page = report.data["page_one"]
    text = json.dumps(page, indent=1, ensure_ascii=False)
    paragraphs = [score_card.markdown(page), *report.data["slow"], ""]
    (report.campaign / "summary.md").write_text("\n\n".join(paragraphs), encoding="utf-8")
    (report.campaign / "summary.json").write_text(f"{text}\n", encoding="utf-8")


def pdf(report: ReportContent) -> bytes:
    """Return the report as PDF, following PDF/A-2a and PDF/UA-1 if the shipped fonts have all characters.

    The same records give the same bytes.
    """
    with tempfile.TemporaryDirectory(prefix="peakmark-report-") as name:
        folder = Path(name)
        shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True)
        (folder / "figures").mkdir()
        for figure, picture in report.pictures.items():
            (folder / "figures" / f"{figure}.svg").write_bytes(picture)
        return _typeset(folder, report.data)


def _typeset(folder: Path, data: Mapping[str, Any]) -> bytes:
    """Return the PDF of a document's data.

    The fonts of this machine are used only if the shipped fonts lack a character, because they give
    different bytes on each machine. The document follows no standard then, as a glyph may be missing.
    """
    from matplotlib import get_data_path

    shipped = Path(get_data_path()) / "fonts" / "ttf"
    # Copy the font of the figures. Typst has fonts for text and code built in.
    (folder / "fonts").mkdir()
    shutil.copy(shipped / "DejaVuSans.ttf", folder / "fonts")
    when = datetime.fromisoformat(data["meta"]["newest"])
    # An escape of a control character in JSON becomes the replacement character. Group 1 of the
    # match is an escaped backslash instead, which stays.
    text = _CONTROL.sub(lambda match: match[1] or "\ufffd", json.dumps(data, ensure_ascii=False))
    (folder / "data.json").write_text(text, encoding="utf-8", errors="replace")
    try:
        return _compile(folder, when, STANDARDS)
    except PeakmarkError:  # PDF/A forbids missing glyphs
        compiled = _compile(folder, when, ())
    tell(
        "peakmark's fonts lack a character: the PDF is set with this machine's fonts and is no PDF/A"
    )
    return compiled


def _compile(folder: Path, when: datetime, standards: Sequence[Standard]) -> bytes:
    """Return the PDF of the document in a folder. Without ``standards`` it may use this machine's fonts."""
    import typst

    try:
        compiler = typst.Compiler(
            str(folder / "main.typ"),
            root=str(folder),
            font_paths=[str(folder / "fonts")],
            ignore_system_fonts=bool(standards),
        )
        compiled = compiler.compile(format="pdf", pdf_standards=list(standards), timestamp=when)
    except typst.TypstError as error:
        why = " ".join([error.message, *error.hints])
        raise PeakmarkError(f"the report cannot be set: {why}") from error
    if not isinstance(compiled, bytes):
        raise PeakmarkError("Typst returned no PDF")
    return compiled


def embedded(picture: bytes) -> str:
    """Return an SVG picture as a data URL."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"


def html_page(report: ReportContent) -> bytes:
    """Return the HTML report. The template escapes every text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The template prints a link of the author as text unless it is a ``web_link``. ``digest`` is
    # for the page's content security policy, which allows only a style and scripts with these
    # checksums.
    environment.tests["web_link"] = lambda address: address.startswith(LINKS)
    environment.filters |= {
        "anchor": lambda title: re.sub(r"\W|_", "-", title.lower()),
        "code": code,
        "digest": lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode(),
        "embedded": lambda name: embedded(report.pictures[name]),
        "sort_value": sort_value,
    }
    # The page contains its style and its scripts.
    sources = [(PAGE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    html = environment.get_template("report.html.j2").render(
        report.data,
        style=(PAGE / "report.css").read_text(encoding="utf-8"),
        script="\n".join(sources),
    )
    # The name of a file may hold bytes that are no UTF-8.
    return html.encode(errors="replace")


def code(text: str) -> Markup:
    """Return a text as HTML with ``<code>`` for the words between two backticks."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def sort_value(text: str) -> float | None:
    """Return the number by which a cell is sorted: its number, or the bytes of a size.

    Return None for a text without a number at its beginning, or with a unit other than those in ``_SIZES``. A
    number of threads begins with ``×``.
    """
    number, _, unit = text.lstrip("×").partition(" ")
    try:
        return float(number) * _SIZES[unit or "B"]
    except (KeyError, ValueError):
        return None
