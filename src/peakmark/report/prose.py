"""An author's chapters as HTML; everything is escaped, and links lead to the web or to a mail
address only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_LINKS = ("https://", "http://", "mailto:", "#")

Node = Mapping[str, Any]


def blocks(nodes: Sequence[Node], top: int = 2) -> str:
    """Blocks of ``markdown.parse``; headings are at most of level ``top`` + 1."""
    return "".join(_block(node, top) for node in nodes)


def _block(node: Node, top: int) -> str:
    kind = node["kind"]
    if kind == "heading":
        level = min(6, max(top + 1, top - 1 + node["level"]))
        return f"<h{level}>{_inline(node['words'])}</h{level}>"
    if kind == "paragraph":
        return f"<p>{_inline(node['words'])}</p>"
    if kind == "list":
        tag = "ol" if node["ordered"] else "ul"
        return (
            f"<{tag}>{''.join(f'<li>{blocks(item, top)}</li>' for item in node['items'])}</{tag}>"
        )
    if kind == "code":
        return f"<pre>{escape(node['text'])}</pre>"
    if kind == "quote":
        return f"<blockquote>{blocks(node['blocks'], top)}</blockquote>"
    if kind == "table":
        head = "".join(f'<th scope="col">{_inline(cell)}</th>' for cell in node["head"])
        body = "".join(
            f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>"
            for row in node["rows"]
        )
        return f'<div class="scroll"><table class="plain"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return "<hr>"


def _inline(nodes: Sequence[Node]) -> str:
    return "".join(map(_word, nodes))


def _word(node: Node) -> str:
    kind = node["kind"]
    if kind == "text":
        return escape(node["text"])
    if kind == "code":
        return f"<code>{escape(node['text'])}</code>"
    if kind in ("em", "strong"):
        return f"<{kind}>{_inline(node['words'])}</{kind}>"
    if kind == "cite":
        return f"[{escape(', '.join(node['keys']))}]"
    if kind == "link":
        inside = _inline(node["words"])
        return (
            f'<a href="{escape(node["to"])}">{inside}</a>'
            if node["to"].startswith(_LINKS)
            else inside
        )
    return "<br>"
