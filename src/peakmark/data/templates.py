"""Fill the templates of texts that commands print."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Any

from peakmark.formatting import counted, duration, format_size, gigabytes, natural, plural


def rendered(name: str, **values: Any) -> str:
    """Return a template filled with values, without its last line end.

    Templates can use functions of ``formatting`` as filters, ``sort_natural``, and ``quote`` for shells.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: jobs print no templates

    environment = Environment(
        loader=PackageLoader("peakmark", "data"),
        autoescape=False,  # noqa: S701 - printed on a terminal
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "plural": plural,
        "quote": shlex.quote,
        "sort_natural": partial(sorted, key=natural),
        "duration": duration,
        "gigabytes": gigabytes,
        "counted": counted,
        "size": format_size,
    }
    return environment.get_template(name).render(values).rstrip("\n")
