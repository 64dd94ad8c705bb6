"""Messages about measured values. A message is text as soon as it is made; ``messages.yaml`` has its words.

Errors, and texts that only one renderer prints, are written where they are raised or printed. A field in a
text is ``{name}`` or ``{name:FORMAT}``, where FORMAT is

    .1%  .2f  g      a format of Python
    3 digits         three significant digits
    3 Hz             three significant digits with the unit and a readable prefix
    size             bytes as in the names of cells (1MiB)
    and  ;           a list with "and" before the last member, a list with semicolons

FORMAT may end with ``|UNIT``, which is printed after the number, or with ``~word~ending`` for a noun
and its plural ending: ``{busy:d~ process~es}`` is ``1 process`` or ``2 processes``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from peakmark.errors import Sentence
from peakmark.formatting import capitalised, format_size, listed, quantity, significant

SITE_KEY = re.compile(r"(.* write [\w.]+)(\.\w+)( in the site file.*)")
"""Pattern of a reason for an unknown limit that asks for a key of the site file.

Groups: text with the first parts of the key, its last part, rest of the text.
"""
CATALOGUE = Path(__file__).with_name("messages.yaml")


class Trust(StrEnum):
    """Verdict on whether a reader may use a value, the worst first."""

    NO = "no"
    """The value is wrong, or of another thing than its row states."""
    CARE = "care"
    """Another run may give another value."""
    OK = "ok"
    """The value is right; a message explains how to read it."""


ORDER = tuple(Trust)
"""Verdicts, the worst first."""
OF_ANOTHER = ("loopback", "cpu-quota", "flush", "small-solve")
"""Codes of warnings on values that are right, yet not those of the device, such as loopback's."""


@dataclass(frozen=True)
class Message:
    """One message about a measurement, in words.

    Attributes:
        code: code of the message in ``messages.yaml``.
        case: name of the text, if the code has several.
        fact: what happened.
        remedy: what to do; may be empty.
        short: the fact in at most six words, for a row of a table; may be empty.
        amount: number by which messages of one kind are compared; a larger amount is worse. It is
            negative if a smaller number in the text is worse.
        subject: program, or other thing that the message is about. A report explains the message once for each.
        trust: whether a reader may use the value.
        about: instrument whose value the message is about; empty for the whole row.
        values: fields of the texts.
    """

    code: str
    case: str
    fact: str
    remedy: str
    short: str
    amount: float
    subject: str
    trust: Trust = Trust.OK
    about: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def text(self) -> str:
        """Return the text of the message with its remedy, on one line."""
        return str(Sentence(self.fact, self.remedy))

    @property
    def full_sentence(self) -> str:
        """Return the text with a capital letter and a full stop."""
        return f"{capitalised(self.text)}."

    @property
    def is_warning(self) -> bool:
        """Return whether the message says that a value is wrong, or that it needs care."""
        return self.trust is not Trust.OK


def message(
    code: str,
    trust: Trust = Trust.OK,
    /,
    *,
    case: str = "",
    about: str = "",
    **values: Any,
) -> Message:
    """Return a message.

    Args:
        code: code of its entry in ``messages.yaml``.
        trust: whether a reader may use the value that the message is about.
        case: name of the text, if the code has several.
        about: instrument whose value the message is about; empty for the whole row.
        values: fields of its texts, numbers in SI units.
    """
    entry = catalogue()[f"{code} {case}".rstrip()]
    fields = tuple(values.items())  # hashable, because ``_filled`` is cached
    return Message(
        code=code,
        case=case,
        fact=_filled(entry["text"], fields),
        remedy=_filled(entry.get("remedy", ""), fields),
        short=_filled(entry.get("short", ""), fields),
        amount=_amount(entry.get("amount", ""), values),
        subject=str(values.get(entry.get("per", ""), "")),
        trust=trust,
        about=about,
        values=values,
    )


def _amount(name: str, values: Mapping[str, Any]) -> float:
    """Return how bad the case of a message is: the value of the field ``name``, 0 without a name.

    The result is the field's absolute value, because some fields are changes in either direction.
    With a ``-`` before the name, a smaller value is worse, so the result is minus the absolute
    value.
    """
    if name.startswith("-"):
        return -abs(float(values[name[1:]]))
    return abs(float(values.get(name, 0.0)))


def words(code: str, **values: Any) -> str:
    """Return the text of an entry, as a part of another text."""
    return _filled(catalogue()[code]["text"], tuple(values.items()))


@cache
def catalogue() -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of ``messages.yaml``, by code, or by code and case separated by a space.

    - ``text``: text of the message.
    - ``example``: example of its fields.
    - ``short``, ``remedy``: as in ``Message``; optional.
    - ``amount``: name of the field that says how bad a case is; with a ``-`` before the name if a
      smaller value is worse; optional.
    - ``per``: name of the field that becomes the message's ``subject``; optional.
    """
    import yaml  # late: most cells have no messages

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries: dict[str, dict[str, Any]] = yaml.load(CATALOGUE.read_text(encoding="utf-8"), loader)  # noqa: S506 - safe
    return entries


@cache
def captions() -> Mapping[str, str]:
    """Return name of a figure, or of a kind of figures -> its caption on one line."""
    names = [code.removeprefix("caption ") for code in catalogue() if code.startswith("caption ")]
    # One caption has a field: ``middle``, the median or the mean.
    return {name: f"{words(f'caption {name}', middle='median')}." for name in names}


@cache
def _filled(text: str, fields: tuple[tuple[str, Any], ...]) -> str:
    """Return a text with its fields. Cached, because the rows of many nodes share messages."""
    return _Fields().vformat(text, (), dict(fields))


class _Fields(Formatter):
    """Formatter that fills the fields of a text."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return one value as text, in a FORMAT of the module's docstring."""
        # A tuple is a list of texts, joined by commas unless the format is another sign.
        if isinstance(value, tuple):
            if format_spec == "and":
                return listed(value)
            return f"{format_spec or ','} ".join(value)
        # Insert texts and truth values without a format.
        if isinstance(value, bool) or not isinstance(value, int | float):
            return str(value)
        # Format a number, with its noun in singular or plural.
        form, *noun = format_spec.split("~")
        text = _number(value, form)
        if noun:
            text += noun[0]
            if value != 1:
                text += noun[1]
        return text


def _number(value: float, form: str) -> str:
    """Return a number with its unit.

    Args:
        value: the number.
        form: a FORMAT of the module's docstring, such as ``3 Hz`` or ``2 digits| s``.
    """
    form, _, unit = form.partition("|")
    if form == "size":
        return format_size(int(value)) + unit
    digits, _, scale = form.partition(" ")
    if scale == "digits":
        return significant(value, int(digits)) + unit
    if scale:
        return quantity(value, scale, int(digits)) + unit
    return format(value, form) + unit


def worst(messages: Iterable[Message]) -> Trust:
    """Return the least trust of messages."""
    return min((each.trust for each in messages), key=ORDER.index, default=Trust.OK)


def merge_keys(reasons: Iterable[str]) -> list[str]:
    """Return the different reasons for unknown limits, with all keys of a section in one reason.

    ``write disk.throughput.RS in the site file`` of some rows and ``.RR`` of others become ``write
    disk.throughput.RS and .RR in the site file``.
    """
    names_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    found = []
    for reason in filter(None, dict.fromkeys(reasons)):
        key = SITE_KEY.fullmatch(reason)
        if key is None:
            found.append(reason)
        else:
            # The groups of ``SITE_KEY``: text before the name, name, text after it.
            before, name, after = key.groups()
            names_of[before, after].append(name)
    for (before, after), names in names_of.items():
        found.append(f"{before}{listed(names)}{after}")
    return found
