"""Reading JSON that a tool printed: strict about what must be there, silent about what else there is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from peakmark.errors import ParseError
from peakmark.lean import Any


def read(text: str, tool: str) -> dict[str, Any]:
    """The JSON object in ``text``. Errors: ParseError when it is not exactly one whole object, or holds NaN."""

    def refuse(constant: str) -> Any:
        raise ParseError(f"{tool} printed {constant}, which is no number")

    if not text.strip():
        raise ParseError(f"{tool} printed nothing on standard output")
    try:
        document = json.loads(text, parse_constant=refuse)
    except ValueError as error:
        raise ParseError(f"{tool} did not print whole JSON: {error}") from error
    if not isinstance(document, dict):
        raise ParseError(f"{tool} printed JSON that is not an object")
    return document


def at(document: Mapping[str, Any], path: str, tool: str) -> Any:
    """The value at a dotted path such as ``end.sum_received``. Errors: ParseError when it is missing."""
    value: Any = document
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise ParseError(f"{tool}: {path} is missing in its JSON")
        value = value[key]
    return value


def number_at(document: Mapping[str, Any], path: str, tool: str, *, zero: bool = False) -> float:
    """A positive, finite number at a dotted path; 0 too with ``zero``. Errors: ParseError."""
    value = at(document, path, tool)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParseError(f"{tool}: {path} is {value!r}, not a number")
    if value < 0 or (value == 0 and not zero):
        raise ParseError(f"{tool}: {path} is {value!r}, not above 0")
    return float(value)


def number_or_none(document: Mapping[str, Any], path: str) -> float | None:
    """A finite number at a dotted path, None when there is none: for values that are only worth keeping."""
    value: Any = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
