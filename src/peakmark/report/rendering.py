"""The report set as PDF by Typst and as one HTML file by Jinja2, from the same data, which are handed
over as values, never as markup. What paper has no room for, the Typst template leaves out.

The HTML file needs nothing else: its template escapes every text, and a content security policy
forbids the page to load or to run anything that is not in it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import mimetypes
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup, escape

from peakmark import files, output
from peakmark.errors import PeakmarkError
from peakmark.formatting import listed
from peakmark.report import ReportContent, chapters
from peakmark.resources import ROOT

TEMPLATE = ROOT / "reports" / "template"
TEMPLATES = ROOT / "reports" / "html"
_CONTROL = re.compile(r"(\\\\)|\\(?:u00[01][0-9a-f]|[bfrt])")
"""In JSON: an escaped backslash (group 1), or a control character, which no font has."""
STANDARDS: tuple[Literal["a-2a", "ua-1"], ...] = ("a-2a", "ua-1")
LINKS = ("https://", "http://", "mailto:", "#")
"""What an author's link may lead to; another one is shown as text."""
_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9,
          "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}  # fmt: skip


def write_pdf(report: ReportContent, target: Path | None = None) -> Path:
    """Write the report as PDF.

    It follows PDF/A-2a and PDF/UA-1 and is the same to the byte when made again from the same
    records.

    Args:
        report: what it says.
        target: where to write; by default the campaign's ``report.pdf``.

    Returns:
        The path written.
    """
    campaign = report.results.directory
    target = target or campaign / "report.pdf"
    included = chapters.sources(report.results.report_config)
    logo = None
    if report.logo:
        logo = f"logo{report.logo.suffix.lower()}"
        included[logo] = report.logo
    drawn = [f"figures/{name}.svg" for name in report.data["figures"]]
    with tempfile.TemporaryDirectory(prefix="peakmark-report-") as name:
        folder = Path(name)
        shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True)
        copies = {name: campaign / name for name in drawn} | included
        for place, source in copies.items():
            (folder / place).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, folder / place)
        compiled = _typeset(folder, {**report.data, "logo": logo}, [*included.values()])
    files.write_document(target, compiled, campaign)
    return target


def _typeset(folder: Path, data: Mapping[str, Any], included: Sequence[Path]) -> bytes:
    """The PDF of a document's data. Fonts of this machine are used only for characters that the
    shipped ones lack, as others would give other bytes; what no font has is printed as U+FFFD.
    """
    from matplotlib import get_data_path
    from matplotlib.ft2font import FT2Font

    (folder / "fonts").mkdir()
    shipped = Path(get_data_path()) / "fonts" / "ttf"
    shutil.copy(shipped / "DejaVuSans.ttf", folder / "fonts")
    characters = set[int]()
    for name in ("DejaVuSans", "DejaVuSansMono"):
        characters.update(FT2Font(str(shipped / f"{name}.ttf")).get_charmap())
    when = datetime.fromisoformat(data["meta"]["newest"])
    text = _CONTROL.sub(lambda found: found[1] or "\ufffd", json.dumps(data, ensure_ascii=False))
    shown = "".join(it if ord(it) in characters else "\ufffd" for it in text)
    if text == shown:
        return _compile(folder, text, when, included)
    try:
        return _compile(folder, text, when, included, system_fonts=True)
    except PeakmarkError:  # PDF/A forbids missing glyphs
        compiled = _compile(folder, shown, when, included)
    lost = " ".join(sorted(set(text) - set(shown)))
    output.tell(f"no font here has all of {lost}: the report shows \ufffd, install a font for them")
    return compiled


def _compile(
    folder: Path, text: str, when: datetime, included: Sequence[Path], system_fonts: bool = False
) -> bytes:
    """The PDF of a document's data as JSON. ``included``: the author's files, in which a mistake
    may be.
    """
    import typst

    (folder / "data.json").write_text(text, encoding="utf-8", errors="replace")
    try:
        compiler = typst.Compiler(
            str(folder / "main.typ"),
            root=str(folder),
            font_paths=[str(folder / "fonts")],
            ignore_system_fonts=not system_fonts,
        )
        compiled = compiler.compile(format="pdf", pdf_standards=list(STANDARDS), timestamp=when)
    except typst.TypstError as error:
        why = " ".join([error.message, *error.hints])
        names = listed([str(path) for path in included]) if included else ""
        hint = f", mend {names}, which it includes" if names else ""
        raise PeakmarkError(f"the report cannot be set{hint}: {why}") from error
    if not isinstance(compiled, bytes):
        raise PeakmarkError("Typst returned no PDF")
    return compiled


def write_html(report: ReportContent, target: Path | None = None) -> Path:
    """Write the HTML report.

    Args:
        report: what it says.
        target: where to write; by default the campaign's ``report.html``.

    Returns:
        The path written.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    campaign = report.results.directory
    target = target or campaign / "report.html"
    mark = report.results.mark
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["web_link"] = lambda address: address.startswith(LINKS)
    environment.filters |= {
        "anchor": lambda title: re.sub(r"\W|_", "-", title.lower()),
        "code": code,
        "digest": lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode(),
        "embedded": lambda name: _embedded(campaign / name),
        "sort_value": lambda text: sort_value(text, mark),
    }
    html = environment.get_template("report.html.j2").render(
        report.data,
        logo=report.logo and report.logo.absolute(),
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "report.js").read_text(encoding="utf-8"),
    )
    files.write_document(target, html.encode(), campaign)
    return target


def code(text: str) -> Markup:
    """A text in which code stands between backticks; a single backtick is none."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _embedded(path: Path) -> str:
    """A picture as the data of a link."""
    kind, _ = mimetypes.guess_type(path.name)
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def sort_value(text: str, mark: str) -> float | None:
    """The number by which a cell is sorted: a number, bytes of a size, or None for other texts.

    Args:
        text: of the cell; of several numbers the first counts.
        mark: the decimal mark.
    """
    first = text.lstrip("×").partition("  ")[0]
    number, _, unit = first.partition(" ")
    try:
        return float(number.replace(mark, ".")) * _SIZES[unit or "B"]
    except (KeyError, ValueError):
        return None
