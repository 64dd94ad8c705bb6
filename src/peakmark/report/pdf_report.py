"""The report as PDF: the document's data are handed to the Typst template as a file, never as
markup.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from peakmark import files, output
from peakmark.errors import PeakmarkError
from peakmark.formatting import listed
from peakmark.report import chapters, machine_text
from peakmark.report.document import ReportContent
from peakmark.resources import ROOT

TEMPLATE = ROOT / "reports" / "template"
_NUMBERS = re.compile(r"[\d.,]+|s\b")
"""Numbers and the plural that they bring."""
LATENCY, IOPS = "figures/disk_latency.svg", "figures/disk_iops.svg"
_CONTROL = re.compile(r"(\\\\)|\\(?:u00[01][0-9a-f]|[bfrt])")
"""In JSON: an escaped backslash (group 1), or a control character, which no font has."""
STANDARDS: tuple[Literal["a-2a", "ua-1"], ...] = ("a-2a", "ua-1")


def build(report: ReportContent, target: Path | None = None) -> Path:
    """Write the report as PDF.

    It follows PDF/A-2a and PDF/UA-1 and is the same to the byte when made again from the same
    records.

    Args:
        report: what it says.
        target: where to write; by default the campaign's ``report.pdf``.

    Returns:
        The path written.
    """
    sources = chapters.sources(report.results.report_config)
    logo, data = report.logo, report.data
    has_layout = bool(report.results.report_config.get("tables"))
    target = target or report.folder / "report.pdf"
    with tempfile.TemporaryDirectory(prefix="peakmark-report-") as name:
        folder = Path(name)
        shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True)
        (folder / "figures").mkdir()
        for figure in data["figures"]:
            shutil.copy(report.folder / "figures" / f"{figure}.svg", folder / "figures")
        for place, source in sources.items():
            (folder / place).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, folder / place)
        if logo:
            shutil.copyfile(logo, folder / f"logo{logo.suffix.lower()}")
        shown = {
            **data,
            "meta": {**data["meta"], "logo": logo and f"logo{logo.suffix.lower()}"},
            "sections": [_on_paper(chapter, has_layout) for chapter in data["sections"]],
            "machine": machine_text.on_paper(data["machine"]),
        }
        when = datetime.fromisoformat(data["meta"]["newest"])
        compiled = _typeset(folder, shown, when, [*sources.values(), *([logo] if logo else [])])
    files.write_document(target, compiled, report.folder)
    return target


def _on_paper(chapter: Mapping[str, Any], has_layout: bool) -> dict[str, Any]:
    """A chapter without what paper has no room for: some tables, formulas that differ in numbers
    alone, and the figure of IOPS beside that of latencies, which shows the same points; a layout
    has all figures that it asks for.
    """
    parts = [part for part in chapter["parts"] if part["on_paper"]]
    names = {figure["file"] for part in parts for figure in part["figures"]}
    left_out = {IOPS} if LATENCY in names and not has_layout else set()
    shown = []
    for part in parts:
        figures = [figure for figure in part["figures"] if figure["file"] not in left_out]
        formulas = part["formulas"]
        lines = {(_NUMBERS.sub("", it["formula"]), it["source"]): it for it in formulas["lines"]}
        formulas = {**formulas, "lines": list(lines.values())}
        shown.append({**part, "figures": figures, "formulas": formulas})
    return {**chapter, "parts": shown}


def _typeset(
    folder: Path, data: Mapping[str, Any], when: datetime, included: Sequence[Path]
) -> bytes:
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
    text = _CONTROL.sub(lambda found: found[1] or "\ufffd", json.dumps(data, ensure_ascii=False))
    shown = "".join(it if ord(it) in characters else "\ufffd" for it in text)
    if text != shown:
        try:
            return _compile(folder, text, when, included, system_fonts=True)
        except PeakmarkError:  # PDF/A forbids missing glyphs
            lost = " ".join(sorted(set(text) - set(shown)))
    compiled = _compile(folder, shown, when, included)
    if text != shown:
        output.tell(
            f"no font here has all of {lost}: the report shows \ufffd, install a font for them"
        )
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
        if included:
            names = listed([str(path) for path in included])
            raise PeakmarkError(
                f"the report cannot be set, mend {names}, which it includes: {why}"
            ) from error
        raise PeakmarkError(f"Typst could not set the report: {why}") from error
    if not isinstance(compiled, bytes):
        raise PeakmarkError("Typst returned no PDF")
    return compiled
