"""Notes that differ in their numbers alone are one sentence with ranges; each row keeps its own numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from peakmark.judging.notes import Note
from peakmark.judging.phrases import Number, between
from peakmark.judging.wording import Words


@dataclass(frozen=True)
class Merged:
    """The words that stand for a note, and the first of its own numbers where they have ranges."""

    words: Words
    own: Number | None = None


def merge(notes: Iterable[Note]) -> dict[Note, Merged]:
    """Each note and what stands for it: ``spread by 7%`` and ``spread by 31%`` become ``spread by 7 – 31%``, and the first's own
    number is ``7%``.
    """
    families: dict[tuple[str, Words], list[Note]] = {}
    for note in dict.fromkeys(notes):
        families.setdefault((note.about, note.words(lambda number: number.place)), []).append(note)
    merged: dict[Note, Merged] = {}
    for family in families.values():
        numbers = [note.numbers for note in family]
        places = list(zip(*numbers, strict=True))
        ranges = map(between, places)
        words = family[0].words(functools.partial(_next, ranges))
        varying = next(
            (place for place, each in enumerate(places) if len({float(one.digits) for one in each}) > 1), None
        )
        for note, own in zip(family, numbers, strict=True):
            merged[note] = Merged(words, None if varying is None else own[varying])
    return merged


def _next(ranges: Iterator[Number], _: Number) -> str:
    return str(next(ranges))
