"""Notes that differ in their numbers alone are one note with ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLURAL = re.compile(
    r"(# (?:busy )?(?:process|repetition|thread|core|run|CPU))(e?s)?\b"
)  # one and several are one note
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w|\.\d)")


def merge(notes: Sequence[str]) -> dict[str, str]:
    """Each note and the sentence that stands for it: notes that differ in their numbers alone share one, with ranges.

    ``spread by 7%`` and ``spread by 31%`` become ``spread by 7 – 31%``. Numbers inside words are not numbers here.
    """
    families: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        families.setdefault(_PLURAL.sub(r"\1", _NUMBER.sub("#", note)), []).append(note)
    merged: dict[str, str] = {}
    for family in families.values():
        words = _NUMBER.split(max(family, key=_plurals))
        places = zip(*(_NUMBER.findall(note) for note in family), strict=True)
        ranges = [_range(numbers) for numbers in places]
        sentence = "".join(part for pair in zip(words, [*ranges, ""], strict=True) for part in pair)
        merged |= dict.fromkeys(family, sentence)
    return merged


def _plurals(note: str) -> int:
    return sum(bool(found[2]) for found in _PLURAL.finditer(_NUMBER.sub("#", note)))


def _range(numbers: Sequence[str]) -> str:
    low, high = min(numbers, key=float), max(numbers, key=float)
    return low if float(low) == float(high) else f"{low} – {high}"
