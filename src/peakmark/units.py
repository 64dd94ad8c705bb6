"""Sizes and units: IEC inside (1KiB = 1024 B), SI base units in records, conversion only for
people; and the formulas that people write.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Mapping

from peakmark.errors import ConfigError

_FACTORS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SCALED = {
    "op/s": ((1e9, "GigaOPS"), (1e6, "MegaOPS"), (1.0, "op/s")),
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "bit/s": ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "bit/s")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "1/s": ((1.0, "IOPS"),),
}
LARGEST = 1 << 60
_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_SIZE = r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$"


def parse_size(text: str | int) -> int:
    """Bytes of a size such as ``1KiB``, ``16 MiB`` or ``4096``.

    Errors: ConfigError for anything else, also for KB or M, which mean different things to
    different tools.
    """
    if isinstance(text, bool):
        raise ConfigError(f"size {text!r} is not a size: write for example 1KiB, 16MiB or 4096")
    if isinstance(text, int):
        value: float = text
    else:
        match = re.match(_SIZE, text, re.ASCII)
        if match is None or match.group(2) not in _FACTORS:
            raise ConfigError(
                f"size {text!r} is not understood: allowed are B, KiB, MiB, GiB and TiB, e.g. 16MiB"
            )
        value = float(match.group(1)) * _FACTORS[match.group(2)]
    if value > LARGEST:
        raise ConfigError(f"size {text!r} is larger than any disk: allowed is at most 1048576TiB")
    if value < 1 or value != int(value):
        raise ConfigError(f"size {text!r} is not a whole positive number of bytes")
    return int(value)


def format_size(size: int) -> str:
    """The shortest exact IEC form of a number of bytes: 1024 -> ``1KiB``, 1500 -> ``1500B``."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        factor = _FACTORS[unit]
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def gigabytes(count: float, decimals: int = 1) -> str:
    """Bytes as disks and memory are sold: ``1.5 GB``, decimal."""
    return f"{count / 1e9:.{decimals}f} GB"


def quantity(value: float, unit: str, digits: int = 4) -> str:
    """A value in an SI base unit with the prefix that keeps it readable, rounded to ``digits``
    significant digits.
    """
    scales = _SCALED.get(unit, ((1.0, unit),))
    factor, name = next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])
    number = f"{value / factor:.{digits}g}"
    if "e" in number:
        number = f"{value / factor:.0f}"
    return f"{number} {name}"


def parse_duration(where: str, value: str | float) -> float:
    """Seconds of a time such as ``90 s``, ``30 min``, ``2 h`` or a number of seconds. Errors:
    ConfigError.
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(s|min|h|)\s*", str(value))
    seconds = float(match.group(1)) * _SECONDS[match.group(2)] if match else 0.0
    if seconds <= 0:
        raise ConfigError(
            f"{where} is {json.dumps(value, ensure_ascii=False)}: allowed is a time above 0, such as 90 s, 30 min or 2 h"
        )
    return seconds


def evaluate(formula: str, names: Mapping[str, float]) -> float:
    """Value of a formula: plain arithmetic over named numbers (+ - * / and parentheses). Errors: ConfigError with one
    sentence.
    """
    try:
        return _value(ast.parse(formula, mode="eval").body, names)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ConfigError(
            f"formula {formula!r} is not arithmetic: allowed are numbers, names, + - * / and ( )"
        ) from error
    except ZeroDivisionError as error:
        raise ConfigError(f"formula {formula!r} divides by zero") from error
    except ConfigError as error:
        raise ConfigError(f"formula {formula!r}: {error}") from error


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name in names:
            return float(names[name])
        case ast.Name(id=name):
            raise ConfigError(
                f"{name} is not defined; known are {', '.join(sorted(names)) or 'no names'}"
            )
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case _:
            raise ConfigError("allowed are numbers, names, + - * / and ( )")


def names_in(formula: str) -> set[str]:
    """The names an arithmetic formula uses."""
    return {
        node.id for node in ast.walk(ast.parse(formula, mode="eval")) if isinstance(node, ast.Name)
    }
