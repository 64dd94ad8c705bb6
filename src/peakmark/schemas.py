"""JSON schemas of ``config/schema``, and one-sentence messages for what does not fit them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError, best_match

from peakmark.errors import PeakmarkError, RecordError
from peakmark.resources import schema


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """The validator of ``config/schema/<name>.schema.json``."""
    return jsonschema.Draft202012Validator(schema(name))


def validate(instance: Any, name: str, what: str, error: type[PeakmarkError] = RecordError) -> None:
    """Check ``instance`` against the schema ``name``. Errors: ``error`` with one sentence that begins with ``what``."""
    problem = best_match(validator(name).iter_errors(instance))
    if problem is not None:
        raise error(f"{what}: {sentence(problem)}")


def sentence(problem: ValidationError) -> str:
    """What is wrong, where, and what is allowed: ``memory.channels is 'six' but must be an integer``."""
    where = ".".join(str(step) for step in problem.absolute_path) or "the top level"
    wanted: Any = problem.validator_value
    found: Any = problem.instance
    allowed: Any = problem.schema
    match problem.validator:
        case "type":
            kinds = wanted if isinstance(wanted, list) else [wanted]
            hint = " (YAML takes 2.3e9 for a text: write 2.3e+9)" if "number" in kinds and _is_exponent(found) else ""
            return f"{where} is {_short(found)} but must be {' or '.join(_article(kind) for kind in kinds)}{hint}"
        case "enum":
            return f"{where} is {_short(found)} but must be one of {', '.join(str(value) for value in wanted)}"
        case "const":
            return f"{where} is {_short(found)} but must be {wanted}"
        case "required":
            missing = [key for key in wanted if isinstance(found, dict) and key not in found]
            return f"{where} lacks {', '.join(missing)}"
        case "additionalProperties" if isinstance(found, dict):
            known = list(allowed.get("properties", {}))
            extra = [key for key in found if key not in known]
            return f"{where} has the unknown key {', '.join(map(str, extra))}; allowed are {', '.join(known)}"
        case "exclusiveMinimum":
            return f"{where} is {_short(found)} but must be more than {wanted}"
        case "minimum":
            return f"{where} is {_short(found)} but must be at least {wanted}"
        case _:
            return f"{where} is not allowed: {problem.message}"


def _is_exponent(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[\d.]+[eE]\d+", value) is not None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _article(kind: str) -> str:
    names = {"object": "a group of keys", "array": "a list", "null": "null", "integer": "a whole number"}
    return names.get(kind, "true or false" if kind == "boolean" else f"a {kind}")
