"""Fill the templates of what commands print."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from peakmark.formatting import duration, format_size, gigabytes, listing, natural, plural


def rendered(name: str, **values: Any) -> str:
    """Return the text of a filled template, without its last line end.

    Its filters are functions of ``formatting``, ``sort_natural``, and ``quote`` for a shell.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: for people alone

    environment = Environment(
        loader=PackageLoader("peakmark", "data"),
        autoescape=False,  # noqa: S701 - for a terminal
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "plural": plural,
        "quote": _quote,
        "sort_natural": _sort_natural,
        "duration": duration,
        "gigabytes": gigabytes,
        "listing": listing,
        "size": format_size,
    }
    return environment.get_template(name).render(values).rstrip("\n")


def _quote(value: object) -> str:
    return shlex.quote(str(value))


def _sort_natural(names: Iterable[str]) -> list[str]:
    return sorted(names, key=natural)
