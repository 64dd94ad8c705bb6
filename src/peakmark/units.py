"""Sizes and units: IEC inside (1KiB = 1024 B), SI base units in records, conversion only for people."""

from __future__ import annotations

import json
import re

from peakmark.errors import ConfigError

_FACTORS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
LARGEST = 1 << 60
_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
_SIZE = r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$"


def parse_size(text: str | int) -> int:
    """Bytes of a size such as ``1KiB``, ``16 MiB`` or ``4096``.

    Errors: ConfigError for anything else, also for KB or M, which mean different things to different tools.
    """
    if isinstance(text, bool):
        raise ConfigError(f"size {text!r} is not a size: write for example 1KiB, 16MiB or 4096")
    if isinstance(text, int):
        value: float = text
    else:
        match = re.match(_SIZE, text, re.ASCII)
        if match is None or match.group(2) not in _FACTORS:
            raise ConfigError(f"size {text!r} is not understood: allowed are B, KiB, MiB, GiB and TiB, e.g. 16MiB")
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


def parse_duration(where: str, value: str | float) -> float:
    """Seconds of a time such as ``90 s``, ``30 min``, ``2 h`` or a number of seconds. Errors: ConfigError."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(s|min|h|)\s*", str(value))
    seconds = float(match.group(1)) * _SECONDS[match.group(2)] if match else 0.0
    if seconds <= 0:
        raise ConfigError(
            f"{where} is {json.dumps(value, ensure_ascii=False)}: allowed is a time above 0, such as 90 s, 30 min or 2 h"
        )
    return seconds
