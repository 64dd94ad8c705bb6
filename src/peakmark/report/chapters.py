"""The chapters that an author writes in Markdown or Typst, and the one on the kernels.

Markdown becomes a tree of plain values, so that PDF and HTML report take it as data, never as markup
of the author's. A node has ``kind``, the type of markdown-it, ``level`` of a heading, ``text``, ``to``
of a link, and the ``parts`` in it; a citation has ``keys``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from peakmark.catalogue import KERNELS, SUBSYSTEMS
from peakmark.config.inputs import TEXTS, check_text, locate
from peakmark.errors import ConfigError
from peakmark.resources import ROOT

if TYPE_CHECKING:
    from peakmark.analysis import Analysis

Node = dict[str, Any]

CITED = re.compile(r"\[@([A-Za-z0-9_:.-]+(?:; ?@[A-Za-z0-9_:.-]+)*)\]")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")


def parse_markdown(text: str, name: str, cites: bool = False) -> list[Node]:
    """The blocks of a Markdown text without its comments, and without headings of empty sections.
    ``name`` stands in errors; with ``cites`` ``[@key]`` is a citation.

    Errors: ConfigError for what has no place in a report: images.
    """
    tree = SyntaxTreeNode(_PARSER.parse(_COMMENT.sub("", text)))
    return _without_empty_sections(_nodes(tree, name, cites))


def _without_empty_sections(blocks: Sequence[Node]) -> list[Node]:
    """The blocks without headings that nothing follows before the next of their level or above."""
    kept: list[Node] = []
    level = 0  # of the heading behind, 9 where it is none
    for block in reversed(blocks):
        if block["kind"] != "heading":
            level = 9
        elif block["level"] < level:
            level = block["level"]
        else:
            continue
        kept.append(block)
    return kept[::-1]


def _nodes(node: SyntaxTreeNode, name: str, cites: bool) -> list[Node]:
    """A node as plain values; of those that only group others, the others."""
    if node.type == "image":
        raise ConfigError(
            f"{name} shows an image, {node.attrs['src']!r}: a Markdown text of a report is words and tables; write it as a "
            "Typst file (.typ) with the image drawn in it, or leave it out"
        )
    if node.type == "text" and cites:
        return list(_cited(node.content))
    parts = [part for child in node.children for part in _nodes(child, name, cites)]
    if node.type in ("root", "inline", "thead", "tbody"):
        return parts
    return [
        {
            "kind": node.type,
            "level": int(node.tag[1:]) if node.type == "heading" else 0,
            "text": node.content,
            "to": str(node.attrs.get("href", "")) if node.type == "link" else "",
            "parts": parts,
        }
    ]


def _cited(text: str) -> Iterator[Node]:
    """A text with its citations: ``[@key]``, ``[@one; @two]``."""
    for number, piece in enumerate(CITED.split(text)):
        if number % 2:
            keys = [key.strip().removeprefix("@") for key in piece.split(";")]
            yield {"kind": "cite", "keys": keys}
        elif piece:
            yield {"kind": "text", "text": piece, "parts": []}


def plain_text(nodes: Sequence[Node]) -> str:
    """Words without their marks."""
    return "".join(word.get("text", "") + plain_text(word.get("parts", ())) for word in nodes)


KERNELS_TEXT = ROOT / "docs" / "kernels.md"
SHARED = "What they share"
"""The heading in that text of what holds for all kernels."""
BEFORE = ("introduction", "design")  # chapters before the results; the others stand behind them
TYPST = ".typ"


def build(
    report: Mapping[str, Any], measured: Collection[str], sections: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The author's chapters, and the one on the kernels.

    Args:
        report: the section of the configuration.
        measured: the kernels that ran.
        sections: the chapters of the resources.

    Returns:
        ``before`` and ``behind`` the results: chapters with ``title`` and either ``blocks`` or the
        ``file`` of a Typst text below the template; ``subsystems``: title of a resource's chapter
        -> its ``file`` and its blocks ``below`` the table of a title, or below all with the title
        ""; ``kernels``: blocks; ``bibliography``: file name, None without one.

    Raises:
        ConfigError: a file is not there or holds what no report can show.
    """
    cites = bool(report.get("bibliography"))
    written = {}
    for key, name in _texts(report).items():
        chapter = _chapter(key, check_text(f"text.{key}", name), cites)
        if chapter["file"] or chapter["blocks"]:  # more than headings and comments
            written[key] = chapter
    with_kernels = report.get("kernels")
    if with_kernels is None:
        with_kernels = bool(written)
    behind = [key for key in written if key not in (*BEFORE, *SUBSYSTEMS)]
    return {
        "before": [written[key] for key in BEFORE if key in written],
        "subsystems": _in_sections(written, sections),
        "behind": [written[key] for key in behind],
        "kernels": kernels(measured) if with_kernels else [],
        "bibliography": _bibliography(report) if cites else None,
    }


def _texts(report: Mapping[str, Any]) -> dict[str, str]:
    """Chapter -> the file that ``report.text`` names for it, in the order of the report."""
    named = report.get("text") or {}
    return {key: str(named[key]) for key in TEXTS if named.get(key)}


def _bibliography(report: Mapping[str, Any]) -> str:
    """What the bibliography is called below the template."""
    return f"author{Path(str(report['bibliography'])).suffix.lower()}"


def _in_sections(
    written: Mapping[str, Mapping[str, Any]], sections: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What the author writes of each resource, by the table it stands below; see ``build``."""
    keys = {resource.title: key for key, resource in SUBSYSTEMS.items()}
    placed = {}
    for section in sections:
        chapter = written.get(keys[section["title"]])
        if chapter is None:
            continue
        tables = {part["title"] for part in section["parts"]}
        below: dict[str, list[Node]] = {"": []}
        table = ""
        for block in chapter["blocks"]:
            if block["kind"] == "heading" and block["level"] <= 2:
                title = plain_text(block["parts"])
                table = title if title in tables else ""
                if table:
                    continue
            below.setdefault(table, []).append(block)
        placed[section["title"]] = {"below": below, "file": chapter["file"]}
    return placed


def sources(report: Mapping[str, Any]) -> dict[str, Path]:
    """Path below the template -> file of the author's that must lie there: Typst texts and
    bibliography.
    """
    texts = {f"text/{key}.typ": locate(name) for key, name in _texts(report).items()}
    files = {place: path for place, path in texts.items() if path.suffix.lower() == TYPST}
    if report.get("bibliography"):
        files[_bibliography(report)] = check_text("bibliography", report["bibliography"])
    return files


def kernels(names: Collection[str]) -> list[Node]:
    """The sections of docs/kernels.md on these kernels, and the one on all."""
    blocks = parse_markdown(KERNELS_TEXT.read_text(encoding="utf-8"), str(KERNELS_TEXT))
    kept, takes = [], False
    for block in blocks:
        if block["kind"] == "heading":
            takes = plain_text(block["parts"]) in (SHARED, *names)
        if takes:
            kept.append(block)
    return kept


def measured(analysis: Analysis) -> list[str]:
    """The kernels that measured."""
    instruments = {record.cell.instrument for record in analysis.results.records}
    return sorted(instruments & set(KERNELS.values()))


def _chapter(key: str, path: Path, cites: bool) -> dict[str, Any]:
    """A first heading of level 1 is the chapter's title; the others go one level down."""
    title = key.capitalize()
    if path.suffix.lower() == TYPST:
        return {"title": title, "blocks": [], "file": f"text/{key}.typ"}
    blocks = parse_markdown(path.read_text(encoding="utf-8"), f"report.text.{key} ({path})", cites)
    is_titled = blocks and blocks[0]["kind"] == "heading" and blocks[0]["level"] == 1
    if is_titled and key not in SUBSYSTEMS:
        title = plain_text(blocks.pop(0)["parts"]) or title
    return {"title": title, "blocks": blocks, "file": None}
