"""Markdown as a tree of plain values: what an author writes reaches page and PDF as data, never as
markup of theirs.

A block has ``kind``: paragraph and heading (``words``; ``level``), list (``ordered``, ``items`` of
blocks), code (``text``), quote (``blocks``), table (``head``, ``rows`` of cells of words), rule.
Words are a list of texts with ``kind``: text, code, em, strong, link (``to``), cite (``keys``),
break.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from peakmark.errors import ConfigError

Node = dict[str, Any]

CITED = re.compile(r"\[@([A-Za-z0-9_:.-]+(?:; ?@[A-Za-z0-9_:.-]+)*)\]")
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")


def parse(text: str, name: str, cites: bool = False) -> list[Node]:
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


def plain(nodes: Sequence[Node]) -> str:
    """Words without their marks."""
    return "".join(
        plain(word["words"]) if "words" in word else word.get("text", "") for word in nodes
    )
