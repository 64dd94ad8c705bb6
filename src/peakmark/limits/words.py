"""Quantities for people: ``204.8 GigaOPS``, ``51.2 GB/s``. Prefixes are decimal; only cache and block sizes are IEC."""

from __future__ import annotations

_SCALED = {
    "op/s": ((1e9, "GigaOPS"), (1e6, "MegaOPS"), (1.0, "op/s")),
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "bit/s": ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "bit/s")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "1/s": ((1.0, "IOPS"),),
}


def quantity(value: float, unit: str, digits: int = 4) -> str:
    """A value in an SI base unit with the prefix that keeps it readable, rounded to ``digits`` significant digits."""
    scales = _SCALED.get(unit, ((1.0, unit),))
    factor, name = next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])
    number = f"{value / factor:.{digits}g}"
    if "e" in number:
        number = f"{value / factor:.0f}"
    return f"{number} {name}"
