"""Compare measured values with promised ones, such as those of a tender.

The site file states a promise as ``memory/TRIAD/pool: 380 GB/s``. A rate must reach at least the promised value,
a time at most. ``peakmark check`` uses this module too, with Python's standard library alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from peakmark.formatting import significant

UNITS: Mapping[str, Mapping[str, float]] = {
    "op/s": {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "GOP/s": 1e9, "TOP/s": 1e12},
    "B/s": {"MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12},
    "bit/s": {"Mb/s": 1e6, "Gb/s": 1e9},
    "1/s": {"IOPS": 1.0, "kIOPS": 1e3, "MIOPS": 1e6},
    "message/s": {"messages/s": 1.0, "k messages/s": 1e3, "M messages/s": 1e6},
    "s": {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3},
}
"""SI unit of rows -> {unit in which a value may be promised: its factor}."""
# SI unit -> the names of its units, as alternatives of a pattern.
_NAMES = {unit: "|".join(names) for unit, names in UNITS.items()}
_RATES = "|".join(_NAMES[unit] for unit in UNITS if unit != "s")
AMOUNT = rf"^(?=\D*[\d.]*[1-9])((at least )?\d+(\.\d+)? ?({_RATES})|(at most )?\d+(\.\d+)? ?({_NAMES['s']}))\Z"
"""Pattern of a promised value, which is not zero."""


class Promise(NamedTuple):
    """A promised value.

    Attributes:
        words: subsystem, workload, and words that the row must have, such as ``pool``, ``1MiB`` or ``xcores``.
        amount: value in the SI unit.
        unit: SI unit.
        text: the promise as the site file states it, with *at least* or *at most*.
    """

    words: tuple[str, ...]
    amount: float
    unit: str
    text: str

    @classmethod
    def parse(cls, key: str, text: str) -> Promise:
        """Return a promise of the site file. Its text matches ``AMOUNT``."""
        bare = re.sub("^at (least|most) ", "", text)
        number, name = re.fullmatch(r"([\d.]+) ?(.+)", bare).groups()  # type: ignore[union-attr]
        unit = next(unit for unit, names in UNITS.items() if name in names)
        bound = "at most" if unit == "s" else "at least"
        words = tuple(key.split("/"))
        return cls(words, float(number) * UNITS[unit][name], unit, f"{key}, {bound} {bare}")


def shortfall(value: float, promised: float, unit: str) -> float:
    """Return the share by which a value misses the promised one; 0 or less if it keeps the promise."""
    if unit == "s":
        return value / promised - 1
    return 1 - value / promised


def verdict(value: float, low: float, high: float, promised: float, unit: str) -> str:
    """Return ``kept``, ``missed by 3.1 % (2.2 to 4.0)`` with the shortfall's interval, or ``undecided, 1.2 % short (…)``.

    A promise is kept if the value reaches it, and missed if the whole interval falls short.

    Args:
        value: measured value in the SI unit ``unit``.
        low: lower end of its interval.
        high: higher end of its interval.
        promised: promised value.
        unit: SI unit; a value in s must be at most the promised one, any other at least.
    """
    missed = shortfall(value, promised, unit)
    if missed <= 0:
        return "kept"
    smallest, largest = sorted([shortfall(low, promised, unit), shortfall(high, promised, unit)])
    least, by, most = (significant(100 * share, 2) for share in (smallest, missed, largest))
    if smallest <= 0:
        return f"undecided, {by} % short ({least} to {most})"
    return f"missed by {by} % ({least} to {most})"
