"""The chapters that an author writes in Markdown or Typst, and the one on the kernels.

Markdown becomes a tree of plain values, so that PDF and HTML report take it as data, never as markup
of the author's. A block has ``kind``: paragraph and heading (``words``; ``level``), list
(``ordered``, ``items`` of blocks), code (``text``), quote (``blocks``), table (``head``, ``rows`` of
cells of words), rule. Words are a list of texts with ``kind``: text, code, em, strong, link (``to``),
cite (``keys``), break.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from peakmark.catalogue import KERNELS
from peakmark.config.inputs import TEXTS, check_text
from peakmark.errors import ConfigError
from peakmark.resources import ROOT
from peakmark.storage.results import Results

Node = dict[str, Any]

CITED = re.compile(r"\[@([A-Za-z0-9_:.-]+(?:; ?@[A-Za-z0-9_:.-]+)*)\]")
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")


def parse_markdown(text: str, name: str, cites: bool = False) -> list[Node]:
    """The blocks of a Markdown text. ``name`` stands in errors; with ``cites`` ``[@key]`` is a
    citation.

    Errors: ConfigError for what has no place in a report: images.
    """
    return _blocks(SyntaxTreeNode(_PARSER.parse(text)).children, name, cites)


def _blocks(nodes: Sequence[SyntaxTreeNode], name: str, cites: bool) -> list[Node]:
    return [block for node in nodes for block in _block(node, name, cites)]


def _block(node: SyntaxTreeNode, name: str, cites: bool) -> Iterator[Node]:
    inside = node.children
    if node.type == "heading":
        yield {
            "kind": "heading",
            "level": int(node.tag[1:]),
            "words": _inline(inside[0].children, name, cites),
        }
    elif node.type == "paragraph":
        yield {"kind": "paragraph", "words": _inline(inside[0].children, name, cites)}
    elif node.type in ("bullet_list", "ordered_list"):
        items = [_blocks(item.children, name, cites) for item in inside]
        yield {"kind": "list", "ordered": node.type == "ordered_list", "items": items}
    elif node.type in ("fence", "code_block"):
        yield {"kind": "code", "text": node.content.rstrip("\n")}
    elif node.type == "blockquote":
        yield {"kind": "quote", "blocks": _blocks(inside, name, cites)}
    elif node.type == "hr":
        yield {"kind": "rule"}
    elif node.type == "table":
        head, *body = [
            [
                _inline(cell.children[0].children if cell.children else [], name, cites)
                for cell in row.children
            ]
            for part in inside
            for row in part.children
        ]
        yield {"kind": "table", "head": head, "rows": body}


def _inline(nodes: Sequence[SyntaxTreeNode], name: str, cites: bool) -> list[Node]:
    return [word for node in nodes for word in _word(node, name, cites)]


def _word(node: SyntaxTreeNode, name: str, cites: bool) -> Iterator[Node]:
    if node.type == "text":
        yield from _cited(node.content) if cites else [{"kind": "text", "text": node.content}]
    elif node.type == "code_inline":
        yield {"kind": "code", "text": node.content}
    elif node.type in ("em", "strong"):
        yield {"kind": node.type, "words": _inline(node.children, name, cites)}
    elif node.type == "link":
        yield {
            "kind": "link",
            "to": str(node.attrs["href"]),
            "words": _inline(node.children, name, cites),
        }
    elif node.type == "softbreak":
        yield {"kind": "text", "text": " "}
    elif node.type == "hardbreak":
        yield {"kind": "break"}
    elif node.type == "image":
        raise ConfigError(
            f"{name} shows an image, {node.attrs['src']!r}: a Markdown text of a report is words and tables; write it as a "
            "Typst file (.typ) with the image drawn in it, or leave it out"
        )


def _cited(text: str) -> Iterator[Node]:
    """A text with its citations: ``[@key]``, ``[@one; @two]``."""
    at = 0
    for citation in CITED.finditer(text):
        if citation.start() > at:
            yield {"kind": "text", "text": text[at : citation.start()]}
        yield {
            "kind": "cite",
            "keys": [key.strip().removeprefix("@") for key in citation[1].split(";")],
        }
        at = citation.end()
    if at < len(text):
        yield {"kind": "text", "text": text[at:]}


def plain_text(nodes: Sequence[Node]) -> str:
    """Words without their marks."""
    return "".join(
        plain_text(word["words"]) if "words" in word else word.get("text", "") for word in nodes
    )


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


def kernels(names: Collection[str]) -> list[Node]:
    """The sections of docs/kernels.md on these kernels, and the one on all."""
    blocks = parse_markdown(KERNELS_TEXT.read_text(encoding="utf-8"), str(KERNELS_TEXT))
    kept, takes = [], False
    for block in blocks:
        if block["kind"] == "heading":
            title = plain_text(block["words"])
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
    blocks = parse_markdown(path.read_text(encoding="utf-8"), f"report.text.{key} ({path})", cites)
    if blocks and blocks[0]["kind"] == "heading" and blocks[0]["level"] == 1:
        title = plain_text(blocks.pop(0)["words"]) or title
    return {"title": title, "blocks": blocks, "file": None}
