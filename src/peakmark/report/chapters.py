"""Chapters that the author writes (``report.text``), the bibliography, and the one on how the
kernels measure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from peakmark.catalogue.workloads import KERNELS
from peakmark.config.inputs import TEXTS, check_text
from peakmark.report import markdown
from peakmark.resources import ROOT
from peakmark.storage.results import Results

KERNELS_TEXT = ROOT / "docs" / "kernels.md"
BEFORE = ("introduction", "design")  # chapters before the results; the others stand behind them
TYPST = ".typ"


def build(report: Mapping[str, Any], measured: Collection[str]) -> dict[str, Any]:
    """``before`` and ``behind`` the results: chapters with title and either blocks (see
    ``markdown``) or the file of a Typst text below the template; ``kernels``: blocks;
    ``bibliography``: file name, None without one.

    ``report`` is the section of the configuration, ``measured`` the kernels that ran.
    Errors: ConfigError for a file that is not there or holds what no report can show.
    """
    given = report.get("text") or {}
    cites = bool(report.get("bibliography"))
    written = {
        key: _chapter(key, check_text(f"text.{key}", given[key]), cites)
        for key in TEXTS
        if given.get(key)
    }
    wanted = report.get("kernels")
    return {
        "before": [written[key] for key in written if key in BEFORE],
        "behind": [written[key] for key in written if key not in BEFORE],
        "kernels": kernels(measured) if (any(given.values()) if wanted is None else wanted) else [],
        "bibliography": f"author{Path(str(report['bibliography'])).suffix.lower()}"
        if cites
        else None,
    }


def sources(report: Mapping[str, Any]) -> dict[str, Path]:
    """Path below the template -> file of the author's that must lie there: Typst texts and
    bibliography.
    """
    given = report.get("text") or {}
    texts = {key: Path(given[key]) for key in TEXTS if given.get(key)}
    files = {f"text/{key}.typ": path for key, path in texts.items() if path.suffix.lower() == TYPST}
    if report.get("bibliography"):
        path = check_text("bibliography", report["bibliography"])
        files[f"author{path.suffix.lower()}"] = path
    return files


def kernels(names: Collection[str]) -> list[markdown.Node]:
    """The sections of docs/kernels.md on these kernels, and the one on all."""
    blocks = markdown.parse(KERNELS_TEXT.read_text(encoding="utf-8"), str(KERNELS_TEXT))
    kept, takes = [], False
    for block in blocks:
        if block["kind"] == "heading":
            title = markdown.plain(block["words"])
            takes = title == "All four" or title in names
            if title == "All four" and len(names) < len(KERNELS):
                block["words"] = [{"kind": "text", "text": "What they share"}]
        if takes:
            kept.append(block)
    return kept


def measured(results: Results) -> set[str]:
    """The kernels that measured."""
    return {
        record.cell.instrument
        for record in results.records
        if record.cell.instrument in KERNELS.values()
    }


def _chapter(key: str, path: Path, cites: bool) -> dict[str, Any]:
    """A first heading of level 1 is the chapter's title; the others go one level down."""
    title = key.capitalize()
    if path.suffix.lower() == TYPST:
        return {"title": title, "blocks": [], "file": f"text/{key}.typ"}
    blocks = markdown.parse(path.read_text(encoding="utf-8"), f"report.text.{key} ({path})", cites)
    if blocks and blocks[0]["kind"] == "heading" and blocks[0]["level"] == 1:
        title = markdown.plain(blocks.pop(0)["words"]) or title
    return {"title": title, "blocks": blocks, "file": None}
