"""Find the JSON object in the output of a program that also prints notes before, after or inside it.

Some versions of iperf3, fio and others print notes on standard output, and C's ``nan`` and ``inf`` for
values that they could not compute. Such values are accepted here, because most of them are never used.
``Output.number`` refuses them when they are used.
"""

from __future__ import annotations

import json
import re
from typing import Any

from peakmark.errors import ParseError

MOST_NOTES = 20
"""Largest number of lines in an object that are skipped as notes. With more, the text is not JSON."""

_BEGIN = re.compile(r"""^\{(?:\s*["}]|[ \t]*$)""", re.MULTILINE)
"""Start of an object, at the start of a line."""
_BEGIN_ANYWHERE = re.compile(r"""\{\s*["}]""")
"""Start of a JSON object that follows other text.

A brace in that text is rarely followed by a quotation mark or a closing brace.
"""
_NOTE = re.compile(
    r"\s*(?:\[?(?!(?:true|false|null|nan|infinity)\b)[A-Z]|[(<#*>=!]|\[?\d[-\d:./T]*\]?[ \t]+\S*[A-Z]{3})",
    re.IGNORECASE,
)
"""Start of a line that is a note, in JSON with one key or value per line.

A note consists of words, possibly after a time or a host in brackets.
"""
_STRUCTURE = frozenset("}],:")
"""Characters that follow the object only if a line inside the object is missing."""
_NO_NUMBER = re.compile(
    r"(?<=[:\[,\s])([+-]?)(nan|inf(?:inity)?)\b(?:\([^)\s]*\))?(?=\s*[,}\]])", re.IGNORECASE
)
"""Value ``nan`` or ``inf`` as C prints it."""


def find_object(program: str, text: str) -> dict[str, Any]:
    """Return the JSON object in ``text``, in which ``nan`` and ``inf`` become floats.

    Raises:
        ParseError: there is no object, it is incomplete, or there are two different objects.
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
    """Return the object at the start of ``text``, and the text after the object."""
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
    """Return C's ``nan`` or ``inf`` in the spelling of Python's json module."""
    sign, name = match.groups()
    if name.lower() == "nan":
        return "NaN"
    return f"{sign}Infinity".removeprefix("+")


def _not_whole(program: str, error: json.JSONDecodeError, line: str) -> str:
    """Return the message for JSON that cannot be parsed, with the line that is the cause."""
    sentence = f"{program} did not print whole JSON: {error.msg} in line {error.lineno}"
    return f"{sentence}, {line[:80]!r}" if line else f"{sentence}: its end is missing"
