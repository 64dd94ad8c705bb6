"""What peakmark tells people: a message is a code with values, and ``messages.yaml`` has its words.

A message becomes text when it is printed, and never earlier: programs compare codes and values. A
field of a text is ``{name}`` or ``{name:FORMAT}``, where FORMAT is

    .1%  .2f  g      as Python formats numbers
    3 digits         so many significant digits
    3 Hz             so many significant digits, with the prefix that keeps the unit readable
    size  GB         bytes as cells give them (1MiB), as memory is sold (1.5 GB)
    times            a factor: 12%, 1.7 times, 0.97 to 1.04 times
    and  ;           a list with "and" before the last member, a list with semicolons
    !r               quoted

and may end in ``|UNIT``, which stands behind the number, or in ``~word~ending``, which counts:
``{busy:d~ process~es}`` is ``1 process`` or ``2 processes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

from peakmark.errors import PeakmarkError, Sentence
from peakmark.formatting import (
    counted,
    format_size,
    gigabytes,
    listed,
    natural,
    quantity,
    significant,
)

SMALL_FACTOR = 1.2
"""Smaller factors are said in percent."""
LARGE_FACTOR = 10.0
"""Larger factors are printed without decimals."""
NAMED = 3
"""So many names of a set are printed; the others are counted."""
CATALOGUE = Path(__file__).with_name("messages.yaml")


class Severity(StrEnum):
    """How much a message weighs."""

    WRONG = "wrong"
    """The value is not what the row claims; no verdict uses it."""
    UNSURE = "unsure"
    """Another run may give another value."""
    NOTE = "note"
    """The value is right; how to read it."""


class WarningKind(StrEnum):
    """What a warning says about a figure, as the column of warnings names it."""

    VARIES = "varies"
    """Repetitions differ or were disturbed: another run may give another value."""
    DISAGREE = "programs disagree"
    """Programs measured different values: a finding, and no doubt about either."""
    NOT_DEVICE = "not the device"
    """A cache, a host's memory, loopback or a quota was measured instead."""

    @property
    def short(self) -> str:
        """For a narrow column: *disagree*, *not device*."""
        return self.removeprefix("programs ").replace(" the ", " ")


class Scope(StrEnum):
    """Of what a message holds."""

    CAMPAIGN = "campaign"
    POINT = "point"


@dataclass(frozen=True)
class Range:
    """The lowest and the highest value that one field has in several messages."""

    low: float
    high: float


@dataclass(frozen=True)
class Message:
    """One thing to be known.

    Attributes:
        code: its entry in ``messages.yaml``.
        values: (name, value) of the fields; numbers in SI units. A message may be a value: a part
            of a sentence.
        severity: how much it weighs.
        case: which text of the entry, where it has several.
        about: the instrument whose value it is about, "" for the row as such.
        scope: of what it holds; a message of the campaign is printed once.
    """

    code: str
    values: tuple[tuple[str, Value], ...] = ()
    severity: Severity = Severity.NOTE
    case: str = ""
    about: str = ""
    scope: Scope = Scope.POINT

    @property
    def sentence(self) -> Sentence:
        """The message in words."""
        return render(self).sentence

    @property
    def fact(self) -> str:
        """What happened, without the remedy."""
        return self.sentence.fact

    @property
    def text(self) -> str:
        """The message in words, on one line."""
        return str(self.sentence)

    @property
    def full_sentence(self) -> str:
        """The message as a sentence of its own: with a capital and a full stop."""
        return f"{self.text[:1].upper()}{self.text[1:]}."

    @property
    def is_warning(self) -> bool:
        """Whether it casts doubt on a value."""
        return self.severity is not Severity.NOTE

    @property
    def kind(self) -> WarningKind | None:
        """What its entry in ``messages.yaml`` says about a figure, None where it says nothing."""
        kind = catalogue()[self.entry].get("kind")
        return WarningKind(kind) if kind else None

    @property
    def is_named(self) -> bool:
        """Whether the column of warnings names its kind; a variation only where it casts doubt."""
        return self.kind is not None and (self.is_warning or self.kind is not WarningKind.VARIES)

    @property
    def entry(self) -> str:
        """The name of its entry in ``messages.yaml``."""
        return f"{self.code} {self.case}".rstrip()

    @property
    def is_shared(self) -> bool:
        """Whether it is printed once for the campaign."""
        return self.scope is Scope.CAMPAIGN


Value = str | int | float | Range | Message | frozenset[str] | tuple["Value", ...]
"""A set has names: messages that differ in them alone are printed as one."""


def message(
    code: str,
    severity: Severity = Severity.NOTE,
    /,
    *,
    case: str = "",
    about: str = "",
    **values: Value,
) -> Message:
    """A message with its values by the names of the fields."""
    return Message(code, tuple(values.items()), severity, case, about)


@cache
def catalogue() -> Mapping[str, Mapping[str, Any]]:
    """Code, with its case behind a blank -> ``kind``, ``text``, ``remedy`` and an ``example`` of its
    values.
    """
    import yaml  # late: most cells have nothing to say

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries: dict[str, dict[str, Any]] = yaml.load(CATALOGUE.read_text(encoding="utf-8"), loader)  # noqa: S506 - safe
    return entries


@cache
def captions() -> Mapping[str, str]:
    """Name of each figure, or of a kind of figures -> its caption, on one line."""
    names = [code.removeprefix("caption ") for code in catalogue() if code.startswith("caption ")]
    return {name: f"{message('caption', case=name, noun='nodes').fact}." for name in names}


def texts(code: str, values: Mapping[str, Any]) -> tuple[str, str]:
    """Fact and remedy of a code with its values."""
    return _filled(code, values).sentence


class Number(NamedTuple):
    """A number of a rendered message: its value, and the format of its field."""

    value: float | Range
    form: str

    @property
    def text(self) -> str:
        """As it stands beside a letter: ``7%``, ``2.74 to 2.79 GHz``."""
        form, *_ = self.form.split("~")
        return _number(self.value, form)


class Rendered(NamedTuple):
    """A message in words, and its numbers in the order of the words."""

    sentence: Sentence
    numbers: tuple[Number, ...]


def render(message: Message) -> Rendered:
    """A message in words."""
    return _filled(message.entry, dict(message.values))


def _filled(entry_name: str, values: Mapping[str, Any]) -> Rendered:
    """The texts of a catalogue entry with their fields filled."""
    formatter = _Fields()
    entry = catalogue()[entry_name]
    fact = formatter.vformat(entry["text"], (), values)
    remedy = formatter.vformat(entry.get("remedy", ""), (), values)
    return Rendered(Sentence(fact, remedy), tuple(formatter.numbers))


class _Fields(Formatter):
    """Fills the fields of a text, and keeps the numbers that it met."""

    def __init__(self) -> None:
        self.numbers: list[Number] = []

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Message):
            part = render(value)
            self.numbers += part.numbers
            return part.sentence.fact
        if isinstance(value, frozenset):
            return counted(sorted(value, key=natural), NAMED)
        if isinstance(value, tuple | list):
            members = [self.format_field(member, "") for member in value]
            if format_spec == "and":
                return listed(members)
            return (f"{format_spec} " if format_spec else ", ").join(members)
        if isinstance(value, bool) or not isinstance(value, int | float | Range):
            return str(value)
        self.numbers.append(Number(value, format_spec))
        form, *noun = format_spec.split("~")
        text = _number(value, form)
        if noun:
            one = value == 1
            text += noun[0] + ("" if one else noun[1])
        return text


def _number(value: float | Range, form: str) -> str:
    """``7%``, ``7 to 31%``."""
    if not isinstance(value, Range):
        return "".join(_digits(value, form))
    if form == "times" and value.low >= 1 and value.high < SMALL_FACTOR:
        low, high = (_digits(factor - 1, ".0%")[0] for factor in (value.low, value.high))
        if low == "0":
            return f"up to {high}%"
        return f"{low}%" if low == high else f"{low} to {high}%"
    low, unit = _digits(value.low, form)
    high, higher_unit = _digits(value.high, form)
    if form == "times" and value.low < SMALL_FACTOR <= value.high < LARGE_FACTOR:
        high = f"{value.high:.2f}"  # as many decimals as the low end
    if unit != higher_unit:
        return f"{low}{unit} to {high}{higher_unit}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def _digits(value: float, form: str) -> tuple[str, str]:
    """The digits of a number, and what stands behind them."""
    form, _, unit = form.partition("|")
    if form == "times":
        decimals = 2 if value < SMALL_FACTOR else 1 if value < LARGE_FACTOR else 0
        return f"{value:.{decimals}f}", " times"
    if form in ("size", "GB"):
        return (format_size(int(value)) if form == "size" else gigabytes(value)), unit
    digits, _, scale = form.partition(" ")
    if scale == "digits":
        return significant(value, int(digits)), unit
    if scale:
        text, _, prefixed = quantity(value, scale, int(digits)).partition(" ")
        return text, f" {prefixed}{unit}"
    if form.endswith("%"):
        return format(value, form).removesuffix("%"), f"%{unit}"
    return format(value, form), unit


class Merged(NamedTuple):
    """The message that stands for several which differ in numbers, and of one of them the first
    number that differs.
    """

    message: Message
    own: Number | None = None


def merge(messages: Iterable[Message]) -> dict[Message, Merged]:
    """What stands for each message: of those that differ in numbers alone, one with ranges.

    ``values spread by 7%`` and ``values spread by 31%`` become ``values spread by 7 to 31%``.
    """
    families: dict[Any, list[Message]] = {}
    for each in dict.fromkeys(messages):
        families.setdefault(_without_numbers(each), []).append(each)
    merged: dict[Message, Merged] = {}
    for family in families.values():
        together = _spanning_messages(family)
        numbers = render(together).numbers
        varying = next(
            (place for place, number in enumerate(numbers) if isinstance(number.value, Range)), None
        )
        for each in family:
            own = None if varying is None else render(each).numbers[varying]
            merged[each] = Merged(together, own)
    return merged


def _without_numbers(value: Value) -> Any:
    """What is equal for messages that differ in numbers alone; the sign of a number counts."""
    if isinstance(value, Message):
        return replace(
            value, values=tuple((name, _without_numbers(each)) for name, each in value.values)
        )
    if isinstance(value, tuple):
        return tuple(map(_without_numbers, value))
    if isinstance(value, frozenset):
        return frozenset()
    return value if isinstance(value, str | Range) else Range(-1, 0) if value < 0 else Range(0, 1)


def _spanning_messages(messages: Sequence[Message]) -> Message:
    names = [name for name, _ in messages[0].values]
    columns = zip(*([value for _, value in each.values] for each in messages), strict=True)
    return replace(messages[0], values=tuple(zip(names, map(_spanning, columns), strict=True)))


def _spanning(values: Sequence[Value]) -> Value:
    """One value for several that differ in numbers alone."""
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
    return first if low == high else Range(low, high)


def between(numbers: Sequence[Number]) -> Number:
    """The range of several numbers of one field, at least one."""
    values = [number.value for number in numbers if not isinstance(number.value, Range)]
    low, high = min(values), max(values)
    return Number(low if low == high else Range(low, high), numbers[0].form)


ORDER = tuple(Severity)


def worst(messages: Iterable[Message]) -> Severity | None:
    """The heaviest severity of messages that are not the campaign's; None where no value is in
    doubt.
    """
    found = {each.severity for each in messages if each.is_warning and not each.is_shared}
    return next((severity for severity in ORDER if severity in found), None)


class Reason(PeakmarkError):
    """Raised with a code of ``messages.yaml`` and its values; with a sentence where that is all
    that is known.

    code  what happened, for programs; None where only the sentence tells
    """

    def __init__(self, reason: str, **values: Any) -> None:
        super().__init__(*(texts(reason, values) if values else (reason,)))
        self.code, self.values = reason if values else None, values


class MeasurementError(Reason):
    """A cell could not be measured: the tool failed, hung, or its result is not valid."""


class Unavailable(Reason):
    """The cell is not possible on this machine (a missing tool, an instruction set, an alignment):
    not a failure.
    """
