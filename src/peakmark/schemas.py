"""JSON schemas of ``config/schema``, and one-sentence messages for what does not fit them."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from peakmark.checkers import Unfit, checker
from peakmark.errors import PeakmarkError, RecordError
from peakmark.resources import schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


def problem(instance: Any, name: str, partial: bool = False) -> ValidationError | None:
    """What is to be mended first to make ``instance`` fit ``config/schema/<name>.schema.json``;
    None if it fits.
    """
    # Imported late: it takes 0.1 s, which every measuring job would pay.
    from jsonschema.exceptions import best_match

    error: ValidationError | None = best_match(
        _validator()(schema(name, partial)).iter_errors(instance)
    )
    return error


@cache
def _validator() -> Any:
    """JSON Schema takes 3.0 for an integer, which Python's range does not; and ``$`` matches before
    a last newline.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    def pattern(_: Any, rule: str, instance: Any, __: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", rule), instance):
            yield ValidationError(f"{instance!r} does not match {rule!r}")

    checker = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return extend(Draft202012Validator, {"pattern": pattern}, type_checker=checker)  # type: ignore[no-untyped-call]


def validate(
    instance: Any,
    name: str,
    what: str,
    error: type[PeakmarkError] = RecordError,
    partial: bool = False,
) -> None:
    """Check what a person wrote. Errors: ``error``, one sentence that begins with ``what``."""
    wrong = problem(instance, name, partial)
    if wrong is not None:
        raise error(f"{what}: {sentence(wrong)}")


def validate_fast(instance: Any, name: str, what: str, partial: bool = False) -> None:
    """Check what a program wrote: 20 us, so that 100,000 records are read in seconds. Errors:
    RecordError.
    """
    try:
        checker(name, partial=partial)(instance)
    except Unfit as error:
        validate(
            instance, name, what, partial=partial
        )  # says it in the same words as for a person's file
        raise RecordError(f"{what}: {error}") from error


def sentence(error: ValidationError) -> str:
    """Where, what, and what is allowed: ``memory.channels is "six": allowed is a whole number``."""
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{_shown(step)}" for step in error.absolute_path
    )
    where = "".join(steps).lstrip(".") or "the top level"
    value = _short(error.instance)
    rule: Any = error.validator_value
    part: Any = error.schema
    keys: Any = error.instance
    if error.validator in ("type", "anyOf", "oneOf", "pattern") and "allowed" in part:
        return f"{where} is {value}: allowed is {part['allowed']}"
    if error.validator in ("minimum", "maximum") and "plausible" in part:
        return f"{where} is {value}, which is not plausible: allowed is {part['plausible']}"
    match error.validator:
        case "type":
            kinds = rule if isinstance(rule, list) else [rule]
            text_number = isinstance(error.instance, str) and re.fullmatch(
                r"[0-9]+(\.[0-9]*)?[eE][0-9]+", error.instance
            )
            hint = " (YAML takes 2.3e9 for text: write 2.3e+9)" if text_number else ""
            return f"{where} is {value}: allowed is {' or '.join(_KINDS[kind] for kind in kinds)}{hint}"
        case "enum":
            return f"{where} is {value}: allowed are {', '.join(map(_short, rule))}{_meant(error.instance, rule)}"
        case "const":
            return f"{where} is {value}: allowed is {_short(rule)}"
        case "anyOf":
            return f"{where} is {value}: allowed is {' or '.join(_kind(choice) for choice in rule)}"
        case "required":
            return f"{where} lacks {', '.join(key for key in rule if key not in keys)}"
        case "additionalProperties":
            known = sorted(part.get("properties", {}))
            extra = [key for key in keys if key not in known]
            names = ", ".join(map(_shown, extra))
            return f"{where} has the unknown key {names}: allowed are {', '.join(known)}{_meant(extra[0], known)}"
        case "propertyNames":
            names = ", ".join(map(_short, rule["enum"]))
            return f"{where} has the unknown key {value}: allowed are {names}{_meant(error.instance, rule['enum'])}"
        case "minItems" | "maxItems":
            from peakmark.formatting import plural

            least = "at least" if error.validator == "minItems" else "at most"
            return f"{where} is {value}: allowed is {least} {plural(rule, 'entry', 'entries')}"
        case _:
            text = _RULES.get(str(error.validator))
            return (
                f"{where} is {value}: allowed is {text.format(rule)}"
                if text
                else f"{where}: {error.message}"
            )


_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "a mapping of keys to values",
}
_RULES = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minProperties": "at least one key",
    "minLength": "a text that is not empty",
    "uniqueItems": "each value once",
}


def _meant(word: Any, known: Iterable[Any]) -> str:
    """The known name that a wrong one comes near to, as a question."""
    import difflib

    near = difflib.get_close_matches(str(word), [str(name) for name in known], 1)
    return f"; did you mean {near[0]}?" if near else ""


def _shown(key: object) -> str:
    """A key as it stands in a sentence: what would break the line is escaped."""
    text = str(key)
    return text if text.isprintable() else json.dumps(text)[1:-1]


def _kind(part: dict[str, Any]) -> str:
    return (
        _short(part["const"])
        if "const" in part
        else _KINDS.get(str(part.get("type")), "another value")
    )


def _short(value: Any) -> str:
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # YAML can hold a date as a key, or itself
        text = reprlib.repr(value)
    text = text if text.isprintable() else json.dumps(text)[1:-1]
    return text if len(text) <= 60 else f"{text[:57]}..."
