"""HTML pages of one file each: a template of ``reports/html`` with the style and the scripts in it.

The templates escape every text. A content security policy forbids a page to load or run anything from
outside its file.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup, escape

from peakmark.resources import ROOT

TEMPLATES = ROOT / "reports" / "html"
SCRIPT = "page.js"
"""Script of all pages: sort, filter, light or dark."""
LINKS = ("https://", "http://", "mailto:", "#")
"""Allowed beginnings of the targets of an author's links; any other link is shown as text."""
_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9,
          "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}  # fmt: skip


def render(
    template: str,
    data: Mapping[str, Any],
    scripts: tuple[str, ...] = (SCRIPT,),
    filters: Mapping[str, Callable[..., Any]] | None = None,
) -> bytes:
    """Return a page.

    Args:
        template: name of the template.
        data: values of the template.
        scripts: names of the files that are the page's script, in their order.
        filters: further filters of the template.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

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
        "sort_value": sort_value,
        **(filters or {}),
    }
    sources = [(TEMPLATES / name).read_text(encoding="utf-8") for name in scripts]
    html = environment.get_template(template).render(
        data,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script="\n".join(sources),
    )
    # The name of a file may hold bytes that are no UTF-8.
    return html.encode(errors="replace")


def code(text: str) -> Markup:
    """Return a text as HTML with ``<code>`` for the words between two backticks."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def sort_value(text: str) -> float | None:
    """Return the number by which a cell is sorted: its first number, or the bytes of a size.

    Return None for a text without a number at its beginning.
    """
    first = text.lstrip("×").partition("  ")[0]
    number, _, unit = first.partition(" ")
    try:
        return float(number) * _SIZES[unit or "B"]
    except (KeyError, ValueError):
        return None
