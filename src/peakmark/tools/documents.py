"""Reading JSON that a tool printed: strict about what must be there, silent about what else there
is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from peakmark.errors import ParseError


def is_number(value: Any) -> bool:
    """Whether it is a finite number, and no truth value."""
    return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)


class Document:
    """A JSON object that ``tool`` printed. Its values are named by dotted paths such as
    ``end.sum_received``.
    """

    def __init__(self, values: Mapping[str, Any], tool: str) -> None:
        self.values, self.tool = values, tool

    @classmethod
    def read(cls, text: str, tool: str) -> Document:
        """The JSON object in ``text``. Errors: ParseError when it is not exactly one whole object,
        or holds NaN.
        """

        def refuse(constant: str) -> Any:
            raise ParseError(f"{tool} printed {constant}, which is no number")

        if not text.strip():
            raise ParseError(f"{tool} printed nothing on standard output")
        try:
            values = json.loads(text, parse_constant=refuse)
        except ValueError as error:
            raise ParseError(f"{tool} did not print whole JSON: {error}") from error
        if not isinstance(values, dict):
            raise ParseError(f"{tool} printed JSON that is not an object")
        return cls(values, tool)

    def get(self, path: str) -> Any:
        """The value at a path, None when there is none: for what is only worth keeping."""
        value: Any = self.values
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def at(self, path: str) -> Any:
        """The value at a path. Errors: ParseError when it is missing."""
        place, _, key = path.rpartition(".")
        values = self.get(place) if place else self.values
        if not isinstance(values, Mapping) or key not in values:
            raise ParseError(f"{self.tool}: {path} is missing in its JSON")
        return values[key]

    def part(self, path: str) -> Document:
        """The object at a path. Errors: ParseError."""
        values = self.at(path)
        if not isinstance(values, Mapping):
            raise ParseError(f"{self.tool}: {path} is no object")
        return Document(values, self.tool)

    def number(self, path: str, *, zero: bool = False) -> float:
        """A positive, finite number at a path; 0 too with ``zero``. Errors: ParseError."""
        value = self.at(path)
        if not is_number(value):
            raise ParseError(f"{self.tool}: {path} is {value!r}, not a number")
        if value < 0 or (value == 0 and not zero):
            raise ParseError(f"{self.tool}: {path} is {value!r}, not above 0")
        return float(value)

    def number_or_none(self, path: str) -> float | None:
        """A finite number at a path, None when there is none."""
        value = self.get(path)
        return float(value) if is_number(value) else None
