"""Notes on rows: what was seen as a code and its values, how much it weighs, and whether it is one row's or the whole campaign's."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from peakmark.judging.phrases import NOTES, Number, Show, Value, Wording, between, shown


class Level(StrEnum):
    """How much a note weighs; the word is the same in tables, files and sentences."""

    WRONG = "wrong"
    """The figure is not what the row says: used for no verdict."""
    UNSURE = "unsure"
    """Another run may well differ."""
    NOTE = "note"
    """The figure is right; how to read it."""


ORDER = tuple(Level)
MOSTLY = 0.5
"""What this share of the rows show that can show it is a property of the machine or the time: said once."""
AT_LEAST = 4
"""So many rows at least; of fewer, each is marked by itself."""
SHARED = ("steal", "other-load", "waited", "crowded-core", "clock-moved", "clock-differs", "few", "short-runs")
"""Codes of what can hold for a whole campaign."""
_FAMILY = {"clock-differs": "clock-moved"}
"""Codes that are counted with another one: a clock moves during a run, or between two."""


@dataclass(frozen=True)
class Note:
    """What is to be known about a figure.

    code    names its kind, and ``case`` which of its wordings in ``data/notes.csv``; ``values`` are those in it
    about   the instrument whose figure it is about, "" for the row as such; its heading is put before the text where it is shown
    whole   said once for the campaign, as most of its rows show it
    """

    code: str
    level: Level
    case: str = ""
    values: tuple[tuple[str, Value], ...] = ()
    about: str = ""
    whole: bool = False

    def wording(self, show: Show = str) -> Wording:
        """Fact and remedy, in which ``show`` prints the numbers."""
        values = dict(self.values)
        fact, remedy = NOTES[f"{self.code} {self.case}".rstrip()]
        return Wording(shown(fact, values, show), shown(remedy, values, show))

    @property
    def fact(self) -> str:
        """What was seen, without what to do about it."""
        return self.wording().fact

    @property
    def text(self) -> str:
        """The whole sentence."""
        return str(self.wording())

    @property
    def numbers(self) -> list[Number]:
        """Its numbers, in the order of the sentence."""
        numbers: list[Number] = []

        def show(number: Number) -> str:
            numbers.append(number)
            return ""

        self.wording(show)
        return numbers

    @property
    def doubt(self) -> bool:
        """Whether it casts doubt on the figure."""
        return self.level is not Level.NOTE


def note(code: str, level: Level = Level.NOTE, /, *, case: str = "", about: str = "", **values: Value) -> Note:
    """A note with its values by the names that its wording gives them."""
    return Note(code, level, case, tuple(values.items()), about)


def worst(notes: Sequence[Note]) -> Level | None:
    """The heaviest level among the notes of the row itself, None without any doubt."""
    levels = {note.level for note in notes if note.doubt and not note.whole}
    return next((level for level in ORDER if level in levels), None)


def widespread(rows: Sequence[tuple[Sequence[Note], frozenset[str]]]) -> frozenset[str]:
    """The codes that most rows of a campaign have in common. ``rows``: of each measured row its notes, and the codes that its
    records can show at all: half of the rows with a clock are many, however many rows have none.
    """
    seen = Counter(code for notes, _ in rows for code in {kind(note.code) for note in notes if note.code in SHARED})
    able = Counter(code for _, codes in rows for code in codes)
    return frozenset(code for code in SHARED if seen[kind(code)] >= max(AT_LEAST, MOSTLY * able[code]))


def kind(code: str) -> str:
    """What a code is counted as, where it may be the whole campaign's."""
    return _FAMILY.get(code, code)


def shared(notes: Sequence[Note], codes: frozenset[str]) -> tuple[Note, ...]:
    """The notes of a row, of which those with one of the codes are the whole campaign's."""
    return tuple(replace(note, whole=True) if note.code in codes else note for note in notes)


@dataclass(frozen=True)
class Merged:
    """The words that stand for a note, and the first of its own numbers where they have ranges."""

    wording: Wording
    own: Number | None = None


def merge(notes: Iterable[Note]) -> dict[Note, Merged]:
    """Each note and what stands for it: ``spread by 7%`` and ``spread by 31%`` become ``spread by 7 – 31%``, and the first's own
    number is ``7%``.
    """
    families: dict[tuple[str, Wording], list[Note]] = {}
    for note in dict.fromkeys(notes):
        families.setdefault((note.about, note.wording(lambda number: number.place)), []).append(note)
    merged: dict[Note, Merged] = {}
    for family in families.values():
        numbers = [note.numbers for note in family]
        places = list(zip(*numbers, strict=True))
        ranges = map(between, places)
        wording = family[0].wording(functools.partial(_next, ranges))
        varying = next(
            (place for place, each in enumerate(places) if len({float(number.digits) for number in each}) > 1), None
        )
        for note, own in zip(family, numbers, strict=True):
            merged[note] = Merged(wording, None if varying is None else own[varying])
    return merged


def _next(ranges: Iterator[Number], _: Number) -> str:
    return str(next(ranges))
