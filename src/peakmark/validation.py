"""Check values against types. An error is one sentence: place, value, and what is allowed."""

from __future__ import annotations

import json
import math
import operator
import re
import reprlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec

from peakmark.errors import ConfigError, RecordError

T = TypeVar("T")


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping with known keys. ``Attributes`` in the docstring of a subclass describes them."""


def allowed(words: str, **rules: Any) -> msgspec.Meta:
    """Return the rules of a value, with a text that describes the allowed values."""
    return msgspec.Meta(extra={"allowed": words}, **rules)


UNIQUE = msgspec.Meta(min_length=1, extra_json_schema={"uniqueItems": True})
"""Rules of a list with at least one value and without duplicates."""


def read(value: Any, kind: type[T], what: str = "") -> T:
    """Convert a value that a user wrote to the type ``kind``.

    Args:
        value: value from YAML or JSON.
        kind: type that msgspec can convert.
        what: start of the message, such as ``site file PATH: ``; empty for the configuration.

    Raises:
        ConfigError: the value does not fit. The message has its key, its value and what is allowed.
    """
    # Messages of msgspec lack the value and what is allowed, and msgspec does not check UNIQUE.
    sentence = _problem(value, kind, strict=True)
    if sentence:
        raise ConfigError(f"{what}{sentence}")
    return msgspec.convert(value, kind)


def convert(value: Any, kind: type[T], what: str, remedy: str = "") -> T:
    """Convert a value that a program wrote to the type ``kind``, in microseconds for a record.

    Args:
        value: value from JSON.
        kind: type that msgspec can convert.
        what: start of the message.
        remedy: what to do if the value does not fit.

    Raises:
        RecordError: the value does not fit.
    """
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise RecordError(
            f"{what}: {_problem(value, kind, strict=False) or error}", remedy
        ) from error


def _problem(value: Any, kind: Any, strict: bool) -> str:
    return next(_problems(value, _described(kind), "", strict), "")


@cache
def _described(kind: Any) -> Any:
    from msgspec.inspect import type_info  # late: needed only for messages

    return type_info(kind)


_KINDS: dict[str, tuple[set[type], str]] = {
    "IntType": ({int}, "a whole number"),
    "FloatType": ({int, float}, "a number"),
    "StrType": ({str}, "a text"),
    "BoolType": ({bool}, "true or false"),
    "NoneType": ({type(None)}, "null"),
    "ListType": ({list}, "a list"),
    "VarTupleType": ({list}, "a list"),
    "DictType": ({dict}, "a mapping of keys to values"),
    "StructType": ({dict}, "a mapping of keys to values"),
    "TypedDictType": ({dict}, "a mapping of keys to values"),
}
"""Type of msgspec -> Python types of YAML and JSON values that fit it, and its name in messages."""
_RULES = (
    ("gt", operator.gt, "more than {:g}"),
    ("ge", operator.ge, "at least {:.16g}"),
    ("lt", operator.lt, "less than {:g}"),
    ("le", operator.le, "at most {:.16g}"),
    ("min_length", operator.ge, "at least {}"),
    ("max_length", operator.le, "at most {}"),
)


def _problems(value: Any, node: Any, place: str, strict: bool, words: str = "") -> Iterator[str]:
    """Yield a sentence for each error in a value; errors of outer values come first.

    Args:
        value: the value.
        node: msgspec's description of the type.
        place: place of the value, such as ``cpu[0].blocks``.
        strict: whether unknown keys are errors.
        words: text that describes the allowed values, if the type has one.
    """
    found = f"{place or 'the top level'} is {_short(value)}: allowed is"
    # The type of msgspec may be wrapped in rules, and may be a union of types.
    words = (getattr(node, "extra", None) or {}).get("allowed", words)
    unique = getattr(node, "extra_json_schema", None)
    node = getattr(node, "type", node)
    members = getattr(node, "types", (node,))
    fitting = (part for part in members if _is_of(value, part))
    member = next(fitting, None)
    if member is None:
        yield f"{found} {_alternatives(value, members, words)}"
    elif member is not node:
        yield from _problems(value, member, place, strict, words)
    elif broken := _broken_rule(value, node):
        yield f"{found} {words or broken}"
    elif isinstance(value, dict):
        yield from _problems_of_keys(value, node, place, strict)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _problems(part, node.item_type, f"{place}[{index}]", strict)
        if unique and len(set(map(_short, value))) < len(value):
            yield f"{found} each value once"


def _alternatives(value: Any, members: Iterable[Any], words: str) -> str:
    """Return the allowed types for a value of a wrong type, with a similar known name if any."""
    kinds = " or ".join(dict.fromkeys(map(_name, members)))
    literals: list[Any] = []
    for part in members:
        literals += getattr(part, "values", ())
    hint = did_you_mean(value, literals)
    if "number" in kinds:
        hint += _number_hint(value)
    return f"{words or kinds}{hint}"


def _problems_of_keys(value: dict[Any, Any], node: Any, place: str, strict: bool) -> Iterator[str]:
    """Yield a sentence for unknown keys, one for missing keys, and one for each wrong value."""
    where = place or "the top level"
    kinds: dict[str, Any] = {}
    missing = []
    if hasattr(node, "fields"):
        for field in node.fields:
            kinds[field.encode_name] = field.type
            if field.required and field.encode_name not in value:
                missing.append(field.encode_name)
    else:
        texts = [key for key in value if isinstance(key, str)]
        kinds = dict.fromkeys(getattr(node.key_type, "values", texts), node.value_type)
    unknown = [key for key in value if key not in kinds]
    if unknown and (strict or type(node).__name__ != "TypedDictType"):
        names = ", ".join(map(_shown, unknown))
        near = did_you_mean(unknown[0], kinds)
        yield f"{where} has the unknown key {names}: allowed are {', '.join(sorted(kinds))}{near}"
    if missing:
        yield f"{where} lacks {', '.join(missing)}"
    for key, kind in kinds.items():
        if key in value:
            yield from _problems(value[key], kind, f"{place}.{_shown(key)}".lstrip("."), strict)


def _broken_rule(value: Any, node: Any) -> str:
    """Return the rule that a value of the right type violates, as text; empty if there is none."""
    from peakmark.formatting import plural

    if isinstance(value, float) and not math.isfinite(value):
        return "a finite number"
    if isinstance(value, str) and not value.isascii() and re.search("[\ud800-\udfff]", value):
        return "text in UTF-8, without half characters"
    # Bounds apply to the value of a number, and to the length of a text, list or mapping.
    size = value
    if isinstance(value, str | list | dict):
        size = len(value)
    units = ("entry", "entries")
    if isinstance(value, str):
        units = ("letter", "letters")
    for name, holds, sentence in _RULES:
        rule = getattr(node, name, None)
        if rule is not None and not holds(size, rule):
            bound = rule
            if "length" in name:
                bound = plural(rule, *units)
            return sentence.format(bound)
    pattern: str = getattr(node, "pattern", None) or ""
    if pattern and not re.search(pattern, value):
        return pattern
    return ""


def _is_of(value: Any, node: Any) -> bool:
    """Return whether a value has the Python type of ``node``. It may still break rules such as a range."""
    node = getattr(node, "type", node)
    if hasattr(node, "values"):  # a literal
        return any(value == one and type(value) is type(one) for one in node.values)
    kind = _KINDS.get(type(node).__name__)
    return kind is None or type(value) in kind[0]


def _name(node: Any) -> str:
    """Return the name that messages use for a type."""
    node = getattr(node, "type", node)
    if hasattr(node, "values"):
        return ", ".join(map(_short, node.values))
    return _KINDS[type(node).__name__][1]


def _number_hint(value: Any) -> str:
    """Return a hint if a text such as ``2.3e9`` was meant as a number; otherwise an empty text."""
    exponent = isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]*)?[eE][0-9]+", value)
    if exponent:
        return " (YAML reads 2.3e9 as text: write 2.3e+9)"
    return ""


def did_you_mean(word: Any, known: Iterable[Any]) -> str:
    """Return a question with the most similar known name, or an empty text."""
    import difflib

    near = difflib.get_close_matches(str(word), [str(name) for name in known], 1)
    if near:
        return f"; did you mean {near[0]}?"
    return ""


def _shown(key: object) -> str:
    """Return a key as messages show it, with escapes for characters that cannot be printed."""
    text = str(key)
    if text.isprintable():
        return text
    return json.dumps(text)[1:-1]


def _short(value: Any) -> str:
    """Return a value as JSON of at most 60 characters on one line."""
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # YAML can hold a date as a key, or itself
        text = reprlib.repr(value)
    text = _shown(text)
    if len(text) > 60:
        text = f"{text[:57]}..."
    return text
