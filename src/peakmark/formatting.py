"""Parse and format sizes, times, numbers with units, percentages and lists of names.

Sizes are IEC (1KiB = 1024 B). Records hold SI base units, which are converted only for printing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from peakmark.errors import ConfigError

_BYTES = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
"""Unit of a size -> its bytes."""
_SCALED = {
    "op/s": ((1e9, "GOP/s"), (1e6, "MOP/s"), (1.0, "op/s")),
    "FLOP/s": ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"), (1.0, "FLOP/s")),
    "OP/s": ((1e12, "TOP/s"), (1e9, "GOP/s"), (1e6, "MOP/s"), (1.0, "OP/s")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "bit/s": ((1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "bit/s")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "1/s": ((1.0, "IOPS"),),
    "message/s": ((1e6, "M messages/s"), (1e3, "k messages/s"), (1.0, "messages/s")),
    "IOPS": ((1e6, "MIOPS"), (1e3, "kIOPS"), (1.0, "IOPS")),
}
"""Unit of a value -> (factor, printed unit), the largest first.

Records have op/s for CPU and GPU, and 1/s for a disk. The score card prints FLOP/s, OP/s and IOPS instead.
"""
_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
"""Unit of a time -> its seconds."""
_SIZE = r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$"
"""Pattern of a size: number and unit."""


def parse_size(text: str | int) -> int:
    """Parse a size such as ``1KiB``, ``16 MiB`` or ``4096``, and return its bytes.

    KB and M are refused, because tools disagree about their meaning. Errors: ConfigError.
    """
    if isinstance(text, int):
        value: float = text
    else:
        match = re.match(_SIZE, text, re.ASCII)
        if match is None or match.group(2) not in _BYTES:
            raise ConfigError(
                f"size {text!r} is not understood: allowed are B, KiB, MiB, GiB and TiB, e.g. 16MiB"
            )
        value = float(match.group(1)) * _BYTES[match.group(2)]
    if value < 1 or value != int(value):
        raise ConfigError(f"size {text!r} is not a whole positive number of bytes")
    return int(value)


def format_size(count: int) -> str:
    """Return bytes as an exact IEC size: 1024 -> ``1KiB``, 1500 -> ``1500B``."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        factor = _BYTES[unit]
        if count >= factor and count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count}B"


def gigabytes(count: float) -> str:
    """Return bytes in decimal gigabytes, such as ``1.5 GB``."""
    return f"{count / 1e9:.1f} GB"


def quantity(value: float, unit: str, digits: int = 0) -> str:
    """Return a value in an SI base unit with a readable prefix.

    It has ``digits`` significant digits. Without ``digits`` it has up to four, without zeros at the
    end.
    """
    scales = _SCALED.get(unit, ((1.0, unit),))
    fitting = (scale for scale in scales if abs(value) >= scale[0])
    factor, name = next(fitting, scales[-1])
    number = significant(value / factor, digits or 4)
    if not digits and "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number} {name}"


def parse_duration(value: str | float) -> float:
    """Parse ``give_up_after``, such as ``90 s``, ``30 min`` or ``2 h``, and return its seconds.

    Errors: ConfigError.
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(s|min|h|)\s*", str(value))
    seconds = 0.0
    if match:
        seconds = float(match.group(1)) * _SECONDS[match.group(2)]
    if seconds <= 0:
        raise ConfigError(
            f"give_up_after is {json.dumps(value, ensure_ascii=False)}: allowed is a time above 0, such as 90 s, 30 min or 2 h"
        )
    return seconds


LOWERCASE = {
    "peakmark", "cpubench", "rambench", "diskbench", "netbench", "mpibench", "gpubench", "likwid-bench", "pmbw",
    "hpcc", "fio", "iperf", "iperf3", "qperf", "ping", "perftest", "n",
}  # fmt: skip
"""Names and symbols that have no capital letter at the beginning of a sentence."""
MOST_LISTED = 8
"""Most names that ``counted`` lists, unless the caller sets another number."""
MAX_DECIMALS = 8
"""Most decimals of a printed number."""
NO_BREAK = "\u00a0"
"""Space at which no line ends."""

# What ``typeset`` replaces.
_TIMES = re.compile(r"(?<=[\w).]) x (?=[\w(])")  # the x between two factors
_PERCENT = re.compile(r"(?<=\d)%")
_IEC = re.compile(r"(?<=\d)(?=[KMGT]iB\b)")  # the place between a number and its unit
_MICRO = re.compile(r"(?<=\d) us\b")


def significant(value: float, digits: int = 4, step: float = 0.0) -> str:
    """Return ``value`` with ``digits`` significant digits, without an exponent.

    Digits before the decimal point are not rounded. The text has at most ``MAX_DECIMALS`` decimals,
    so that 1e-12 becomes ``0``.

    Args:
        value: the value.
        digits: number of significant digits.
        step: resolution of the instrument in the same unit. Finer decimals are not shown.
    """
    if not math.isfinite(value):
        return str(value)
    if round(value, MAX_DECIMALS) == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    decimals = min(MAX_DECIMALS, max(0, digits - 1 - exponent))
    if step > 0:
        # A step of 0.01 has two decimals. The subtracted number absorbs the rounding error of log10.
        of_step = math.ceil(-math.log10(step) - 1e-9)
        decimals = min(decimals, max(0, of_step))
    text = f"{value:.{decimals}f}"
    # Rounding may add a digit: 9.9996 becomes 10.000.
    if decimals and len(text.lstrip("-0.").replace(".", "")) > digits:
        text = f"{value:.{decimals - 1}f}"
    return text


def round_bound(value: float, digits: int, *, is_upper: bool) -> float:
    """Round a bound to ``digits`` significant digits, an upper bound up and a lower bound down."""
    rounded = float(f"{value:.{digits}g}")
    # Keep it if it is on the right side of the value, or equal but for the last bits of a float.
    if math.isclose(rounded, value, rel_tol=1e-12) or (rounded > value) == is_upper:
        return rounded
    # Rounding went the wrong way: move the last digit by one.
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    if not is_upper:
        step = -step
    return float(f"{rounded + step:.{digits}g}")


def value_range(low: str, high: str) -> str:
    """Return ``12 to 31``, or one number if both are equal."""
    return low if low == high else f"{low} to {high}"


def typeset(text: str) -> str:
    """Return a sentence or formula for print, with ``×``, ``µs``, and a space before ``%`` and ``KiB``.

    A line may end at the space before ``KiB``, but not at the one before ``%``.
    """
    text = _PERCENT.sub(f"{NO_BREAK}%", text)
    text = _TIMES.sub(" × ", text)
    text = _MICRO.sub(" µs", text)
    return _IEC.sub(" ", text)


def percent(fraction: float) -> str:
    """Return a fraction in percent without the percent sign, with at most two decimals."""
    value = 100 * fraction
    decimals = 2
    # What is rounded to 100.0 or 10.00 has fewer decimals too.
    if abs(value) >= 99.95:
        decimals = 0
    elif abs(value) >= 9.995:
        decimals = 1
    return f"{value:.{decimals}f}"


def capitalised(text: str) -> str:
    """Return the text with a capital first letter: ``GPUs`` stays, and ``threads`` becomes ``Threads``.

    Names in ``LOWERCASE`` stay as they are.
    """
    first = text.partition(" ")[0]
    if first.removesuffix("'s") in LOWERCASE:
        return text
    return text[:1].upper() + text[1:]


def node_or_link(name: str) -> str:
    """Return the name of a node, or of a link as ``client → server``."""
    return name.replace("+", " → ")


def plural(count: float, word: str, several: str = "") -> str:
    """Return a count with its noun, such as ``1 core`` or ``2 cores``.

    Args:
        count: the count.
        word: the noun in the singular.
        several: the plural, if it is irregular.
    """
    number = f"{count:g}"
    if isinstance(count, int):
        number = str(count)  # all digits of a large count
    if count == 1:
        return f"{number} {word}"
    return f"{number} {several or word + 's'}"


def listed(names: Sequence[str]) -> str:
    """Join names with commas and "and": ``a``, ``a and b``, ``a, b and c``. There must be a name."""
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def counted(names: Iterable[str], most: int = MOST_LISTED) -> str:
    """Join the first ``most`` names, followed by the number of the others: ``a, b and 3 more``."""
    names = list(names)
    shown = names[:most]
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return listed(shown)


def short_name(host: str) -> str:
    """Return a host's name in lower case without the domain: equal for all names of one host."""
    return host.partition(".")[0].lower()


def printable(text: str) -> str:
    """Return a text with a space for each character that no font has, such as a tabulator."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def natural(name: str) -> str:
    """Return a sort key with which node2 comes before node10: the name with zeros before its numbers."""
    return re.sub("[0-9]+", lambda number: number[0].zfill(20), name)


def size(block: int | None) -> str:
    """Return a block size with its unit: ``1 MiB`` for 1048576, ``1 MB`` for 1000000, empty for None."""
    if block is None:
        return ""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        # A multiple of 1024 has an IEC unit, even if it is a multiple of 1000 too.
        if block >= factor and block % factor == 0 and block % 1024:
            return f"{block // factor} {unit}"
    text = format_size(block)
    unit = text.lstrip("0123456789")
    return f"{text.removesuffix(unit)} {unit}"


def binary(count: float | None) -> str | None:
    """Return bytes in the largest fitting IEC unit, such as ``23.5 GiB``; None for None and 0."""
    if not count:
        return None
    unit, larger = "B", ["TiB", "GiB", "MiB", "KiB"]
    while count >= 1024 and larger:
        count, unit = count / 1024, larger.pop()
    return f"{count:.4g} {unit}"


def duration(seconds: float) -> str:
    """Return a time as text: ``48 s``, ``12 min`` from 100 s on, ``3 h 20 min`` from two hours on."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def date(when: datetime) -> str:
    """Return a date as text, such as ``21 November 2026``."""
    return f"{when.day} {when:%B %Y}"


def moment(text: str) -> str:
    """Return a time in ISO 8601 as it is printed, such as ``21 November 2026, 09:05:30 UTC``."""
    when = datetime.fromisoformat(text).astimezone(UTC)
    return f"{date(when)}, {when:%H:%M:%S} UTC"
