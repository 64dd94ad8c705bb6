"""The words of notes, of ``data/notes.csv`` and ``data/phrases.csv``, with values in them, whose numbers stay known as numbers.

A field of a template is ``{name:format}``, ``{name:format|unit}`` or ``{name:format~word~ending}``, of which the last counts:
``{busy:d~ process~es}`` is ``1 process`` or ``2 processes``. A format is Python's, or ``3 digits`` or ``3 Hz``: so many significant
ones, with the prefix that keeps a unit readable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from string import Formatter
from typing import NamedTuple

from peakmark import data
from peakmark.errors import whole
from peakmark.formatting import listed, significant
from peakmark.units import quantity


class Wording(NamedTuple):
    """What was seen, and what to do about it or what explains it: this paper says once."""

    fact: str
    remedy: str = ""

    def __str__(self) -> str:
        return whole(self.fact, self.remedy)


NOTES = {line["note"]: Wording(line["fact"], line["remedy"]) for line in data.table("notes")}
PARTS = {line["phrase"]: line["words"] for line in data.table("phrases")}
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w|\.\d)")
_UNIT = re.compile(r" ?%| (?:[GM]?Hz|[kMGT]i?B/s|[kMG]?b/s|[kKMGT]i?B|IOPS|GigaOPS|[mnµu]?s|°C|CPUs?)(?!\w)")
_PRINTED = re.compile(r"([+-]?)([\d.]+(?:e[+-]?\d+)?)(.*)")


@dataclass(frozen=True)
class Number:
    """A number as it is printed: sign, digits or a range of them, unit; ``counted`` is what it counts, of which ``stem`` is one."""

    digits: str
    unit: str = ""
    sign: str = ""
    counted: str = ""
    stem: str = ""

    def __str__(self) -> str:
        return f"{self.sign}{self.digits}{self.unit}{self.counted}"

    @property
    def place(self) -> str:
        """What is left of it where numbers do not matter."""
        return f"{self.sign}#{self.unit}{self.stem}"

    @property
    def alone(self) -> str:
        """As it stands beside a letter: ``7%``."""
        return f"{self.digits}{self.unit}"


Show = Callable[[Number], str]


def between(numbers: Sequence[Number]) -> Number:
    """``7 – 31%``, or the number that all have in common. ``numbers``: of one place, at least one."""
    low, high = (choose(numbers, key=lambda number: float(number.digits)).digits for choose in (min, max))
    digits = low if float(low) == float(high) else f"{low} – {high}"
    return replace(numbers[0], digits=digits, counted=max((number.counted for number in numbers), key=len))


class Quoted(str):
    """What a program or a file said: the numbers in it are read, as nothing else tells which there are."""

    __slots__ = ()

    def shown(self, show: Show) -> str:
        """The text with its numbers as ``show`` prints them."""
        parts, end = [], 0
        for digits in _NUMBER.finditer(self):
            unit = _UNIT.match(self, digits.end())
            number = Number(digits[0], unit[0] if unit else "")
            parts += [self[end : digits.start()], show(number)]
            end = digits.end() + len(number.unit)
        return "".join([*parts, self[end:]])


@dataclass(frozen=True)
class Phrase:
    """A part of a sentence: which of ``PARTS``, and the values in it."""

    part: str
    values: tuple[tuple[str, Value], ...] = ()


Value = str | int | float | Quoted | Phrase | tuple["Value", ...]
"""What a field holds; several are listed, with ``and`` where that is their format, else with commas."""


def phrase(part: str, /, **values: Value) -> Phrase:
    """A part of a sentence."""
    return Phrase(part, tuple(values.items()))


def worded(phrase: Phrase) -> str:
    """A part of a sentence in words."""
    return shown(PARTS[phrase.part], dict(phrase.values))


def shown(template: str, values: Mapping[str, Value], show: Show = str) -> str:
    """The words with their values, of which numbers are printed by ``show``, in the order in which they stand there."""
    parts = []
    for literal, name, form, _ in Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(_value(values[name], form or "", show))
    return "".join(parts)


def _value(value: Value, form: str, show: Show) -> str:
    if isinstance(value, tuple):
        each = [_value(member, "", show) for member in value]
        return listed(each) if form == "and" else ", ".join(each)
    if isinstance(value, Phrase):
        return shown(PARTS[value.part], dict(value.values), show)
    if isinstance(value, Quoted):
        return value.shown(show)
    return value if isinstance(value, str) else _number(value, form, show)


def _number(value: float, form: str, show: Show) -> str:
    form, _, unit = form.partition("|")
    form, *counted = form.split("~")
    digits, _, scale = form.partition(" ")
    if scale:
        text = significant(value, int(digits)) if scale == "digits" else quantity(value, scale, int(digits))
    else:
        text = format(value, form)
    parts = _PRINTED.fullmatch(text)
    if parts is None:
        return text + unit  # infinite
    stem, ending = counted or ("", "")
    return show(Number(parts[2], parts[3] + unit, parts[1], stem + (ending if value != 1 else ""), stem))
