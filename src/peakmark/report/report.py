"""The report as PDF: the document's data are handed to the Typst template as a file, never as
markup.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from peakmark import documents, output
from peakmark.analysis.analysis import Analysis
from peakmark.analysis.rows import layout_of
from peakmark.config.inputs import check_logo
from peakmark.errors import PeakmarkError
from peakmark.formatting import listed
from peakmark.report import chapters, document, pictures
from peakmark.resources import ROOT
from peakmark.storage.results import Results

TEMPLATE = ROOT / "reports" / "template"
STANDARDS: tuple[Literal["a-2a", "ua-1"], ...] = ("a-2a", "ua-1")
WIDTH_POINTS = 6.85 * 72  # of the text, and of a figure that fills it
HEIGHT_POINTS = 7.2 * 72  # a taller figure is made smaller, so that its caption stays on the page


def build(
    campaign: Path | Analysis,
    partial: bool = False,
    target: Path | None = None,
    owner: Path | None = None,
) -> Path:
    """Write the report from a campaign's records and figures, by default as its ``report.pdf``; the
    path is returned. ``owner``: folder of the campaign whose it is, where the one given only
    stands for it.

    The PDF follows PDF/A-2a and PDF/UA-1 and is the same to the byte when made again from the same
    records. ``partial`` allows planned cells without a record, which are shown as not measured.
    Errors: PeakmarkError when cells are missing and ``partial`` is not set, or a figure is missing;
    ConfigError for the logo.
    """
    judged = Analysis.of(campaign)
    results = judged.results
    must_be_complete(results, partial)
    rows = judged.rows
    target = target or results.directory / "report.pdf"
    with tempfile.TemporaryDirectory(prefix="peakmark-report-") as name:
        folder = Path(name)
        shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True)
        figures = _figures(
            results.directory / "figures",
            folder / "figures",
            pictures.names(rows, layout_of(results)),
        )
        data = document.build(results, rows, figures, _logo(results, folder), partial)
        for place, source in chapters.sources(results).items():
            (folder / place).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, folder / place)
        compiled = _typeset(
            folder,
            data,
            document.newest(results),
            [*chapters.sources(results).values(), *_logo_of(results)],
        )
    documents.write(target, compiled, owner or results.directory)
    return target


def must_be_complete(
    results: Results, partial: bool, command: str = "report", shown: Path | None = None
) -> None:
    """Errors: PeakmarkError when cells are missing and ``partial`` does not allow it; ``shown``:
    what the user gave.
    """
    place = shown or results.directory
    if results.missing and not partial:
        reasons = [results.findings[cell.id].reason for cell in results.missing]
        damaged = [reason for reason in reasons if reason]
        which = (
            f"; records of {len(damaged)} are there and do not count, the first because {damaged[0]}"
            if damaged
            else ""
        )
        raise PeakmarkError(
            f"{len(results.missing)} of {len(results.cells)} planned cells of {place} have no record that counts{which}: "
            f"run the campaign again to measure them, or {command} what there is with `peakmark {command} --partial "
            f"{place}`"
        )


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
    text = json.dumps(data, ensure_ascii=False)
    shown = json.dumps(printable(data, characters), ensure_ascii=False)
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


def _figures(source: Path, target: Path, names: list[str]) -> dict[str, int]:
    """Copy the figures to where Typst may read them. Returns the width of each in percent of the
    page it stands on.
    """
    target.mkdir()
    widths = {}
    for name in names:
        svg = source / f"{name}.svg"
        width, height = pictures.extent(svg)
        shutil.copyfile(svg, target / svg.name)
        share = width / WIDTH_POINTS
        widths[name] = int(100 * min(1, share, share * HEIGHT_POINTS / height))
    return widths


def _logo(results: Results, folder: Path) -> str | None:
    """Copy the configured logo into the Typst root; its new name, None without one."""
    for path in _logo_of(results):
        name = f"logo{path.suffix.lower()}"
        shutil.copyfile(path, folder / name)
        return name
    return None


def _logo_of(results: Results) -> list[Path]:
    path = check_logo(results.report_config.get("logo"))
    return [] if path is None else [path]


def printable(value: Any, known: Container[int]) -> Any:
    """A JSON value whose texts hold only ``known`` characters; others become U+FFFD."""
    return mapped(
        value,
        lambda text: "".join(it if ord(it) in known or it == "\n" else "\ufffd" for it in text),
    )


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every text in it passed through ``change``; keys too, as a node's name may
    be one.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): mapped(entry, change) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(entry, change) for entry in value]
    return value
