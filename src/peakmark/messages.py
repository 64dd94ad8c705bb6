"""Messages about measured values. A message is a code with values; ``messages.yaml`` has its text.

A message becomes text only when it is printed, because several renderers print it, and programs compare
codes and values. Errors, and texts that only one renderer prints, are written where they are raised or
printed. A field in a text is ``{name}`` or ``{name:FORMAT}``, where FORMAT is

    .1%  .2f  g      a format of Python
    3 digits         three significant digits
    3 Hz             three significant digits with the unit and a readable prefix
    size             bytes as in cells (1MiB)
    times            a factor: 12%, 1.7 times, 0.97 to 1.04 times
    up to FORMAT     only the highest number of a range: up to 3%
    and  ;           a list with "and" before the last member, a list with semicolons

FORMAT may end with ``|UNIT``, which is printed after the number, or with ``~word~ending`` for a noun
and its plural ending: ``{busy:d~ process~es}`` is ``1 process`` or ``2 processes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from peakmark.errors import Sentence
from peakmark.formatting import (
    capitalised,
    counted,
    format_size,
    listed,
    natural,
    quantity,
    significant,
)

UP_TO = "up to "
"""Beginning of a format that prints only the highest number of a range."""
SMALL_FACTOR = 1.2
"""Factor below which a range of factors is printed in percent."""
LARGE_FACTOR = 10.0
"""Factors of at least this value are printed without decimals."""
NAMED = 3
"""Largest set whose names are printed; of a larger set, only the number of names is printed."""
CATALOGUE = Path(__file__).with_name("messages.yaml")


class Severity(StrEnum):
    """Severity of a message, the worst first."""

    WRONG = "wrong"
    """The value does not measure what its row states. No verdict uses it."""
    UNSURE = "unsure"
    """Another run may give another value."""
    NOTE = "note"
    """The value is right; the message explains how to read it."""


class WarningKind(StrEnum):
    """Kind of a warning, as printed in the column of warnings."""

    VARIES = "varies"
    """Repetitions differ or were disturbed: another run may give another value."""
    DISAGREE = "programs disagree"
    """Programs measured different values although none of them is at fault: their methods differ."""
    NOT_DEVICE = "not the device"
    """The value measures a cache, a host's memory, loopback or a quota instead of the device."""

    @property
    def short(self) -> str:
        """Return the kind of warning in short for a narrow column: *disagree*, *not device*."""
        return self.removeprefix("programs ").replace(" the ", " ")


class Scope(StrEnum):
    """Scope of a message: one point, or the whole campaign."""

    CAMPAIGN = "campaign"
    POINT = "point"


@dataclass(frozen=True)
class Range:
    """Lowest and highest value of a field in several messages."""

    low: float
    high: float


@dataclass(frozen=True)
class Message:
    """One message about a measurement, as a code with values.

    Attributes:
        code: code of the message in ``messages.yaml``.
        values: (name, value) of each field, numbers in SI units. A value may be another message, whose
            text becomes part of the sentence.
        severity: severity of the message.
        case: name of the text, if the code has several.
        about: instrument whose value the message is about; empty for the whole row.
        scope: one point, or the whole campaign, for which the message is printed once.
    """

    code: str
    values: tuple[tuple[str, Value], ...] = ()
    severity: Severity = Severity.NOTE
    case: str = ""
    about: str = ""
    scope: Scope = Scope.POINT

    @property
    def sentence(self) -> Sentence:
        return texts(self.entry, dict(self.values))

    @property
    def fact(self) -> str:
        """Return the text without the remedy."""
        return self.sentence.fact

    @property
    def text(self) -> str:
        """Return the text of the message with its remedy, on one line."""
        return str(self.sentence)

    @property
    def full_sentence(self) -> str:
        """Return the text with a capital letter and a full stop."""
        return f"{capitalised(self.text)}."

    @property
    def short(self) -> str:
        """Return the short text of at most six words; empty if the entry has none."""
        text = catalogue()[self.entry].get("short", "")
        return _Fields().vformat(text, (), dict(self.values))

    @property
    def is_warning(self) -> bool:
        """Return whether the message says that a value is wrong or unsure."""
        return self.severity is not Severity.NOTE

    @property
    def kind(self) -> WarningKind | None:
        """Return the kind of warning of the entry in ``messages.yaml``, or None."""
        kind = catalogue()[self.entry].get("kind")
        if not kind:
            return None
        return WarningKind(kind)

    @property
    def is_named(self) -> bool:
        """Return whether the column of warnings shows the message's kind.

        The kind ``VARIES`` is shown only if the message is a warning.
        """
        return self.kind is not None and (self.is_warning or self.kind is not WarningKind.VARIES)

    @property
    def entry(self) -> str:
        """Return the name of the message's entry in ``messages.yaml``."""
        return f"{self.code} {self.case}".rstrip()

    @property
    def subject(self) -> Value:
        """Return the value of the field ``per`` of the entry, such as a program; else an empty text."""
        return dict(self.values).get(catalogue()[self.entry].get("per", ""), "")

    @property
    def is_shared(self) -> bool:
        """Return whether the message is printed only once for the whole campaign."""
        return self.scope is Scope.CAMPAIGN


Value = str | int | float | Range | Message | frozenset[str] | tuple["Value", ...]
"""Type of a field's value. Sets hold names. Messages that differ only in a set are merged."""


def message(
    code: str,
    severity: Severity = Severity.NOTE,
    /,
    *,
    case: str = "",
    about: str = "",
    **values: Value,
) -> Message:
    """Return a message. ``values`` are its fields."""
    return Message(code, tuple(values.items()), severity, case, about)


@cache
def catalogue() -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of ``messages.yaml``, by code, or by code and case separated by a space.

    An entry has ``text`` and an ``example`` of its values, and may have ``kind``, ``short``,
    ``remedy``, and ``per``: a field for each of whose values a report explains the message.
    """
    import yaml  # late: most cells have no messages

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries: dict[str, dict[str, Any]] = yaml.load(CATALOGUE.read_text(encoding="utf-8"), loader)  # noqa: S506 - safe
    return entries


@cache
def captions() -> Mapping[str, str]:
    """Return name of a figure, or of a kind of figures -> its caption on one line."""
    names = [code.removeprefix("caption ") for code in catalogue() if code.startswith("caption ")]
    return {name: f"{message('caption', case=name, noun='nodes').fact}." for name in names}


def texts(entry_name: str, values: Mapping[str, Any]) -> Sentence:
    """Return the texts of fact and remedy of an entry with its values."""
    entry = catalogue()[entry_name]
    fact = _Fields().vformat(entry["text"], (), values)
    remedy = _Fields().vformat(entry.get("remedy", ""), (), values)
    return Sentence(fact, remedy)


class _Fields(Formatter):
    """Formatter that fills the fields of a text."""

    def format_field(self, value: Any, format_spec: str) -> str:
        # Insert the text of a message.
        if isinstance(value, Message):
            return value.fact
        if isinstance(value, frozenset):
            return counted(sorted(value, key=natural), NAMED)
        if isinstance(value, tuple | list):
            members = [self.format_field(member, "") for member in value]
            if format_spec == "and":
                return listed(members)
            separator = ", "
            if format_spec:
                separator = f"{format_spec} "
            return separator.join(members)
        # Insert texts and truth values without a format.
        if isinstance(value, bool) or not isinstance(value, int | float | Range):
            return str(value)
        # Format a number, with its noun in singular or plural.
        form, *noun = format_spec.split("~")
        text = _number(value, form)
        if noun:
            text += noun[0]
            if value != 1:
                text += noun[1]
        return text


def _number(value: float | Range, form: str) -> str:
    """Return a number or a range with its unit, such as ``7%`` or ``7 to 31%``."""
    if form.startswith(UP_TO):
        highest = value.high if isinstance(value, Range) else value
        return UP_TO + _number(highest, form.removeprefix(UP_TO))
    if not isinstance(value, Range):
        return "".join(_digits(value, form))
    # Print small factors as percentages, which are easier to read.
    if form == "times" and value.low >= 1 and value.high < SMALL_FACTOR:
        low, _ = _digits(value.low - 1, ".0%")
        high, _ = _digits(value.high - 1, ".0%")
        if low == "0":
            return f"up to {high}%"
        if low == high:
            return f"{low}%"
        return f"{low} to {high}%"
    low, unit = _digits(value.low, form)
    high, higher_unit = _digits(value.high, form)
    if form == "times" and value.low < SMALL_FACTOR <= value.high < LARGE_FACTOR:
        high = f"{value.high:.2f}"  # the same number of decimals as the low end
    if unit != higher_unit:
        return f"{low}{unit} to {high}{higher_unit}"
    if low == high:
        return f"{low}{unit}"
    return f"{low} to {high}{unit}"


def _digits(value: float, form: str) -> tuple[str, str]:
    """Return the digits of a number and the unit that follows.

    Args:
        value: the number.
        form: a FORMAT of the module's docstring, such as ``3 Hz``, ``2 digits| s`` or ``times``.
    """
    form, _, unit = form.partition("|")
    if form == "times":
        decimals = 0
        if value < SMALL_FACTOR:
            decimals = 2
        elif value < LARGE_FACTOR:
            decimals = 1
        return f"{value:.{decimals}f}", " times"
    if form == "size":
        return format_size(int(value)), unit
    digits, _, scale = form.partition(" ")
    if scale == "digits":
        return significant(value, int(digits)), unit
    if scale:
        text, _, prefixed = quantity(value, scale, int(digits)).partition(" ")
        return text, f" {prefixed}{unit}"
    if form.endswith("%"):
        return format(value, form).removesuffix("%"), f"%{unit}"
    return format(value, form), unit


def merge(messages: Iterable[Message]) -> dict[Message, Message]:
    """Merge messages that differ only in numbers, and return each message -> its merged message.

    ``values spread by 7%`` and ``values spread by 31%`` become ``values spread by 7 to 31%``.
    """
    # Group the messages that differ only in numbers.
    families: dict[Any, list[Message]] = {}
    for each in dict.fromkeys(messages):
        families.setdefault(_without_numbers(each), []).append(each)
    merged: dict[Message, Message] = {}
    for family in families.values():
        merged |= dict.fromkeys(family, _spanning_messages(family))
    return merged


def _without_numbers(value: Value) -> Any:
    """Return a key that is equal for values that differ only in numbers of the same sign."""
    if isinstance(value, Message):
        values = tuple((name, _without_numbers(each)) for name, each in value.values)
        return replace(value, values=values)
    if isinstance(value, tuple):
        return tuple(map(_without_numbers, value))
    if isinstance(value, frozenset):
        return frozenset()
    if isinstance(value, str | Range):
        return value
    if value < 0:
        return Range(-1, 0)
    return Range(0, 1)


def _spanning_messages(messages: Sequence[Message]) -> Message:
    """Merge messages that differ only in numbers. Different numbers become ranges."""
    values: list[tuple[str, Value]] = []
    # All messages have the same fields in the same order. A column holds one field of all messages.
    for column in zip(*(each.values for each in messages), strict=True):
        name, _ = column[0]
        values.append((name, _spanning([value for _, value in column])))
    return replace(messages[0], values=tuple(values))


def _spanning(values: Sequence[Value]) -> Value:
    """Merge several values of one field, which differ only in numbers and sets, into one value.

    Numbers become a range, and sets their union. Messages and tuples are merged field by field. Texts
    and ranges are equal in all values.
    """
    first = values[0]
    if isinstance(first, Message):
        return _spanning_messages([value for value in values if isinstance(value, Message)])
    if isinstance(first, tuple):
        return tuple(_spanning(column) for column in zip(*values, strict=True))
    if isinstance(first, frozenset):
        return first.union(*(value for value in values if isinstance(value, frozenset)))
    if isinstance(first, str | Range):
        return first
    numbers = [value for value in values if isinstance(value, int | float)]
    low, high = min(numbers), max(numbers)
    if low == high:
        return first
    return Range(low, high)


ORDER = tuple(Severity)


def worst(messages: Iterable[Message]) -> Severity | None:
    """Return the worst severity of the warnings; None if there is no warning.

    Warnings that are printed once for the campaign are ignored.
    """
    found = {each.severity for each in messages if each.is_warning and not each.is_shared}
    for severity in ORDER:
        if severity in found:
            return severity
    return None
