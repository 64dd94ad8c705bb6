"""Notes that differ in their numbers alone are one sentence with ranges; each row keeps its own numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST = 1  # own numbers that stand beside a row's letter; a sentence says first what matters

_PLURAL = re.compile(
    r"(# (?:busy )?(?:process|repetition|thread|core|run|CPU))(e?s)?\b"
)  # one and several are one note
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w|\.\d)")
_UNIT = re.compile(r" ?%| (?:[GM]?Hz|[kMGT]i?B/s|[kMG]?b/s|[kKMGT]i?B|IOPS|GigaOPS|[mnµu]?s|°C|CPUs?)(?!\w)")


@dataclass(frozen=True)
class Merged:
    """The sentence that stands for a note, and the note's own numbers where the sentence has ranges, with their units."""

    sentence: str
    own: tuple[str, ...] = ()


def merge(notes: Sequence[str]) -> dict[str, Merged]:
    """Each note and what stands for it: notes that differ in their numbers alone share a sentence, with ranges.

    ``spread by 7%`` and ``spread by 31%`` become ``spread by 7 – 31%``; the first's own is ``7%``. Numbers inside words are
    not numbers here.
    """
    families: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        families.setdefault(_PLURAL.sub(r"\1", _NUMBER.sub("#", note)), []).append(note)
    merged: dict[str, Merged] = {}
    for family in families.values():
        pieces = _NUMBER.split(max(family, key=_plurals))
        places = list(zip(*(_NUMBER.findall(note) for note in family), strict=True))
        ranges = [between(numbers) for numbers in places]
        sentence = "".join(part for pair in zip(pieces, [*ranges, ""], strict=True) for part in pair)
        varying = [number for number, numbers in enumerate(places) if len(set(map(float, numbers))) > 1][:MOST]
        for note in family:
            merged[note] = Merged(sentence, tuple(_quantities(note)[number] for number in varying))
    return merged


def _quantities(note: str) -> list[str]:
    """The numbers of a note with the units that follow them."""
    quantities = []
    for number in _NUMBER.finditer(note):
        unit = _UNIT.match(note, number.end())
        quantities.append(number[0] + (unit[0] if unit else ""))
    return quantities


def joined(owns: Sequence[tuple[str, ...]]) -> str:
    """The own numbers of one or several rows: ``7%``, of several rows ``7 – 12%``; may be empty."""
    shown = []
    for quantities in zip(*owns, strict=True):
        numbers = [match[0] for text in quantities if (match := _NUMBER.match(text))]
        unit = quantities[0].removeprefix(numbers[0])
        shown.append(between(numbers) + unit)
    return " / ".join(shown)


def _plurals(note: str) -> int:
    return sum(bool(match[2]) for match in _PLURAL.finditer(_NUMBER.sub("#", note)))


def between(numbers: Sequence[str]) -> str:
    """``7 – 31``, or the number that all have in common."""
    low, high = min(numbers, key=float), max(numbers, key=float)
    return low if float(low) == float(high) else f"{low} – {high}"
