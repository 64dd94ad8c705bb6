"""Numbers as people write and read them: sizes, units and formulas; significant digits, decimal mark,
percent. IEC inside (1KiB = 1024 B), SI base units in records, conversion only for people.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

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


MAX_DECIMALS = 8

# A decimal number that is no part of a word, a path or a version of three parts; group 1: a name
# with its versions. Names of programs that measure are not among them: a value may follow.
_NAMES = (
    r"[Vv]ersion|glibc|musl|gcc|g\+\+|clang|icx|icc|nvc|binutils|ld|make|Linux|[Kk]ernel|Debian|Ubuntu|Fedora|CentOS|Rocky|"
    r"AlmaLinux|Alpine|Leap|SLES|RHEL|Slurm|Python|Snakemake|Typst|Open ?MPI|MPICH|OpenBLAS|BLIS|MKL"
)
_VERSIONS = rf"\b(?:{_NAMES})(?: Linux| GNU/Linux| Stream)?\s+v?\d+(?:\.\d+)+(?:(?:, | and | or )\d+\.\d+(?! ?[\w%µ×]))*"
_DECIMAL = re.compile(rf"({_VERSIONS})|(?<![\w./])(?<!\w-)(?<!/-)(\d+)\.(\d+)(?!\w|\.\d)")
_TIMES = re.compile(r"(?<=[\w).]) x (?=[\w(])")
_PERCENT = re.compile(r"(?<=\d)%")
_MICRO = re.compile(r"(?<=\d) us\b")

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
_DATES = {
    "en": "{day} {month} {year}",
    "de": "{day}. {month} {year}",
    "fr": "{day} {month} {year}",
    "es": "{day} de {month} de {year}",
}
DATE_LANGUAGES = tuple(_MONTHS)


def significant(value: float, digits: int = 4, step: float = 0.0) -> str:
    """``value`` with ``digits`` significant digits, never in exponent form; digits before the mark
    are never zeroed.

    At most ``MAX_DECIMALS`` decimals are given: 1e-12 becomes ``0.00000000``. ``step`` is the
    smallest difference that the instrument tells, in the value's unit: no decimal finer than that
    is shown.
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    exponent = math.floor(math.log10(abs(value)))
    decimals = max(0, digits - 1 - exponent)
    if step > 0:
        decimals = min(decimals, max(0, math.ceil(-math.log10(step) - 1e-9)))
    text = f"{value:.{min(decimals, MAX_DECIMALS)}f}"
    if (
        decimals and len(text.lstrip("-0.").replace(".", "")) > digits
    ):  # 9.9996 -> 10.000: one digit more than asked for
        text = f"{value:.{min(decimals - 1, MAX_DECIMALS)}f}"
    return text


def round_bound(value: float, digits: int, *, is_upper: bool) -> float:
    """Return a bound with so many significant digits: an upper one rounded up, a lower one down."""
    rounded = float(f"{value:.{digits}g}")
    if math.isclose(rounded, value, rel_tol=1e-12) or (rounded > value) == is_upper:
        return rounded
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return float(f"{rounded + (step if is_upper else -step):.{digits}g}")


def typeset(text: str) -> str:
    """A sentence or a formula as it is printed: ``×`` between factors, a space before ``%``."""
    return _MICRO.sub(" µs", _TIMES.sub(" × ", _PERCENT.sub("\u00a0%", text)))


def decimal_mark(text: str, mark: str) -> str:
    """A text with ``mark`` in its numbers.

    Versions (``glibc 2.36``, ``6.1.0``), paths and names of keys stay as they are.
    """
    if mark == ".":
        return text
    return _DECIMAL.sub(lambda match: match[1] or f"{match[2]}{mark}{match[3]}", text)


def percent(fraction: float) -> str:
    """A fraction in percent with three significant digits and at most two decimals, without the
    sign.
    """
    value = 100 * fraction
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{decimals}f}"


def plural(count: float, word: str, several: str = "") -> str:
    """``1 core``, ``2 cores``; ``words`` where an s does not make it: ``plural(2, "entry",
    "entries")``.
    """
    number = str(count) if isinstance(count, int) else f"{count:g}"
    return f"{number} {word}" if count == 1 else f"{number} {several or word + 's'}"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; of at least one name."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    rest = [f"{len(names) - most} more"] if len(names) > most else []
    return listed([*names[:most], *rest])


def listing(names: Iterable[str], most: int = 8) -> str:
    """The first few of many names."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key in which node2 comes before node10."""
    parts = re.split(r"([0-9]+)", name)
    return tuple(
        (-1, part) if place % 2 == 0 else (int(part), "") for place, part in enumerate(parts)
    )


def size(block: int | None) -> str:
    """``1 MiB`` for 1048576, ``1 MB`` for 1000000, nothing for None."""
    if block is None:
        return ""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if block >= factor and block % factor == 0 and block % 1024:
            return f"{block // factor} {unit}"
    text = format_size(block)
    unit = text.lstrip("0123456789")
    return f"{text.removesuffix(unit)} {unit}"


def binary(size: float | None) -> str | None:
    """Bytes in the largest IEC unit that leaves at least one: ``23.5 GiB``; None stays None,
    nothing for 0.
    """
    if not size:
        return None
    unit, larger = "B", ["TiB", "GiB", "MiB", "KiB"]
    while size >= 1024 and larger:
        size, unit = size / 1024, larger.pop()
    return f"{size:.4g} {unit}"


def duration(seconds: float) -> str:
    """``48 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def date(when: datetime, language: str = "en") -> str:
    """The day in words: ``21 November 2026``.

    Errors: ConfigError for a language that is not in ``DATE_LANGUAGES``.
    """
    if language not in _MONTHS:
        raise ConfigError(
            f"report: date_language: {language!r} is not known: allowed are {', '.join(DATE_LANGUAGES)}"
        )
    return _DATES[language].format(
        day=when.day, month=_MONTHS[language].split()[when.month - 1], year=when.year
    )


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every text in it passed through ``change``; keys too, as a node's name may
    be one.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): mapped(entry, change) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(entry, change) for entry in value]
    return value
