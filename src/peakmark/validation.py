"""Check values against types. An error is one sentence: place, value, and what is allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from peakmark.errors import ConfigError

T = TypeVar("T")


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping with known keys. ``Attributes`` in the docstring of a subclass describes them."""


def allowed(words: str, **rules: Any) -> msgspec.Meta:
    """Return the rules of a value (arguments of ``msgspec.Meta``), with a text on what is allowed."""
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
    # Messages of msgspec lack the value and the keys of mappings, and msgspec does not check UNIQUE.
    sentence = _problem(value, kind)
    if sentence:
        raise ConfigError(f"{what}{sentence}")
    return msgspec.convert(value, kind)


def _problem(value: Any, kind: Any, place: str = "") -> str:
    """Return a sentence about the first error in a value; empty if there is none.

    Args:
        value: the value.
        kind: its type.
        place: place of the value, such as ``cpu[0].blocks``.
    """
    rules: list[msgspec.Meta] = []  # ``_members`` fills it
    members = list(_members(kind, rules))
    where = place or "the top level"
    # Collect the parts of a list or a mapping: place, value and type of each.
    children: list[tuple[str, Any, Any]] = []
    for member in members:
        if isinstance(value, list) and get_origin(member) in (list, tuple):
            for index, part in enumerate(value):
                children.append((f"{place}[{index}]", part, member.__args__[0]))
        elif isinstance(value, dict) and (keys := _keys(member, value)) is not None:
            unknown = [key for key in value if key not in keys]
            if unknown:
                names = ", ".join(map(str, unknown))
                known = f"allowed are {', '.join(sorted(keys))}{did_you_mean(unknown[0], keys)}"
                return f"{where} has the unknown key {names}: {known}"
            for key, part in value.items():
                children.append((f"{place}.{key}".lstrip("."), part, keys[key]))
    # An error in a part is more precise than one in the whole.
    for name, part, part_kind in children:
        sentence = _problem(part, part_kind, name)
        if sentence:
            return sentence
    error = _error(value, kind, members)
    if error:
        # Say what is allowed instead of what msgspec expects, if a rule has a text for it.
        for rule in rules:
            if rule.extra:
                error = f"allowed is {rule.extra['allowed']}"
                break
        return f"{where} is {_short(value)}: {error}{_hint(value, members)}"
    is_list = isinstance(value, list)
    if is_list and UNIQUE in rules and len(set(map(_short, value))) < len(value):
        return f"{where} is {_short(value)}: allowed is each value once"
    return ""


def _members(kind: Any, rules: list[msgspec.Meta]) -> Iterator[Any]:
    """Yield the types of which a value may be one, and append their rules to ``rules``."""
    rules += getattr(kind, "__metadata__", ())
    if get_origin(kind) in (Union, UnionType):
        for member in kind.__args__:
            yield from _members(member, rules)
    elif get_origin(kind) is Annotated:
        yield from _members(kind.__args__[0], rules)
    else:
        yield kind


def _keys(kind: Any, value: Mapping[Any, Any]) -> dict[Any, Any] | None:
    """Return each key that a mapping may have -> the type of its value; None for other types."""
    if get_origin(kind) is dict:
        names, part = kind.__args__
        # A Literal has its words as arguments. Another type, such as str, allows every key.
        return dict.fromkeys(get_args(names) or value, part)
    if not hasattr(kind, "__struct_fields__"):
        return None
    # A key of a file may have another name in Python, see ``msgspec.field``.
    hints = get_type_hints(kind, include_extras=True)
    fields = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return {key: hints[name] for key, name in fields}


def _error(value: Any, kind: Any, members: Sequence[Any]) -> str:
    """Return what msgspec says about a value of type ``kind``; empty if it fits.

    Args:
        value: the value.
        kind: its type.
        members: the types of which a value may be one, see ``_members``.
    """
    try:
        msgspec.convert({"value": value}, _holder(kind))
    except msgspec.ValidationError as error:
        message = str(error).partition(" - at ")[0]  # without msgspec's words for the place
        words = _words(members)
        if words:
            message += f"; allowed words are {', '.join(words)}"
        return message
    return ""


_HOLDERS: dict[int, type[msgspec.Struct]] = {}
"""id of a type -> the Struct of ``_holder`` for it."""


def _holder(kind: Any) -> type[msgspec.Struct]:
    """Return a Struct with a field ``value`` of this type. It is made once and kept.

    Without a Struct, msgspec frees the type's pattern after a conversion, although the type still has it.
    The default of the field ``kind`` keeps the type, so that no other type gets its id.
    """
    if id(kind) not in _HOLDERS:
        _HOLDERS[id(kind)] = msgspec.defstruct("Holder", [("value", kind), ("kind", Any, kind)])
    return _HOLDERS[id(kind)]


def _hint(value: Any, members: Sequence[Any]) -> str:
    """Return a hint on a text that was meant as a number, such as ``2.3e9``, or as an allowed word.

    The hint is empty if there is none.
    """
    is_power = isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]*)?[eE][0-9]+", value)
    if is_power and float in members:
        return " (YAML reads 2.3e9 as text: write 2.3e+9)"
    return did_you_mean(value, _words(members))


def _words(members: Iterable[Any]) -> list[str]:
    """Return the words that the Literals among these types allow, as JSON."""
    words: list[str] = []
    for member in members:
        if get_origin(member) is Literal:
            words += map(_short, get_args(member))
    return words


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """Return the end of a message that asks for the most similar known name; empty if none is similar."""
    import difflib

    near = difflib.get_close_matches(str(word), known, 1)
    if near:
        return f"; did you mean {near[0]}?"
    return ""


def _short(value: Any) -> str:
    """Return a value as JSON of at most 60 characters on one line."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    if len(text) > 60:
        text = f"{text[:57]}..."
    return text
