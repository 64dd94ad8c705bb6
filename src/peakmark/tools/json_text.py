"""Reading of the one JSON object that a program prints, with notes before, behind or inside it.

Versions of iperf3, fio and others print notes on standard output, and C's ``nan`` and ``inf`` for
values that they could not compute. A value that nobody reads must not cost a measurement, so these
are accepted here; ``Output.number`` refuses them where they are read.
"""

from __future__ import annotations

import json
import re
from typing import Any

from peakmark.errors import ParseError

MOST_NOTES = 20
"""Most lines inside the object that are left out as notes; a text with more of them is not JSON."""

_BEGIN = re.compile(r"""^\{(?:\s*["}]|[ \t]*$)""", re.MULTILINE)
"""Begin of an object, at the begin of a line."""
_BEGIN_ANYWHERE = re.compile(r"""\{\s*["}]""")
"""Begin of an object behind other text: a brace in a note is seldom followed by a quotation mark."""
_NOTE = re.compile(
    r"\s*(?:\[?(?!(?:true|false|null|nan|infinity)\b)[A-Z]|[(<#*>=!]|\[?\d[-\d:./T]*\]?[ \t]+\S*[A-Z]{3})",
    re.IGNORECASE,
)
"""Begin of a line that is a note, in JSON with one value or key a line. A note is words, perhaps behind a
time or a host in brackets.
"""
_STRUCTURE = frozenset("}],:")
"""Characters that follow the object only where a line inside it was lost."""
_NO_NUMBER = re.compile(
    r"(?<=[:\[,\s])([+-]?)(nan|inf(?:inity)?)\b(?:\([^)\s]*\))?(?=\s*[,}\]])", re.IGNORECASE
)
"""Value ``nan`` or ``inf`` as C prints it."""


def find_object(program: str, text: str) -> dict[str, Any]:
    """Return the one JSON object in ``text``; ``nan`` and ``inf`` become floats.

    Raises:
        ParseError: when there is none, when it is not whole, or when there are two that differ.
    """
    if not text.strip():
        raise ParseError(f"{program} printed nothing on standard output")
    begin = _BEGIN.search(text) or _BEGIN_ANYWHERE.search(text)
    if begin is None:
        first = text.strip().splitlines()[0].strip()
        raise ParseError(f"{program} printed no JSON: {first[:200]}")
    values, behind = _decode(program, text[begin.start() :])
    if behind.lstrip()[:1] in _STRUCTURE:
        raise ParseError(f"{program} did not print whole JSON: a line is missing before its end")
    # Some versions print the whole object twice.
    again = _BEGIN.search(behind)
    if again is not None:
        repeated, _ = _decode(program, behind[again.start() :])
        if repeated != values:
            raise ParseError(f"{program} printed two JSON objects that differ")
    return values


def _decode(program: str, text: str) -> tuple[dict[str, Any], str]:
    """Return the object that ``text`` begins with, and the text behind it."""
    text = _NO_NUMBER.sub(_constant, text)
    for _ in range(MOST_NOTES):
        try:
            values, end = json.JSONDecoder(parse_constant=float).raw_decode(text)
        except RecursionError as error:
            raise ParseError(f"{program} did not print whole JSON: {error}") from error
        except json.JSONDecodeError as error:
            start = text.rfind("\n", 0, error.pos) + 1
            end = text.find("\n", error.pos) + 1 or len(text)
            line = text[start:end].strip()
            if not start or not _NOTE.match(line):
                raise ParseError(_not_whole(program, error, line)) from error
            text = text[:start] + text[end:]
        else:
            return values, text[end:]
    raise ParseError(f"{program} did not print whole JSON: more than {MOST_NOTES} notes are in it")


def _constant(match: re.Match[str]) -> str:
    """Return C's ``nan`` or ``inf`` in the spelling that Python's json reads."""
    sign, name = match.groups()
    if name.lower() == "nan":
        return "NaN"
    return f"{sign}Infinity".removeprefix("+")


def _not_whole(program: str, error: json.JSONDecodeError, line: str) -> str:
    """Return the sentence on JSON that cannot be read, with the line that is the cause."""
    sentence = f"{program} did not print whole JSON: {error.msg} in line {error.lineno}"
    return f"{sentence}, {line[:80]!r}" if line else f"{sentence}: its end is missing"
