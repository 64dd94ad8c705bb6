"""Remarks on rows: what was seen, how much it weighs, and whether it is one row's or the whole campaign's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Level(StrEnum):
    """How much a remark weighs; the word is the same in tables, files and sentences."""

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
    """One remark: ``code`` names its kind, ``text`` is the fact and, after a colon, the remedy.

    about  the instrument whose figure it is about, "" for the row as such; its heading is put before the text where it is shown
    whole  said once for the campaign, as most of its rows show it
    """

    code: str
    text: str
    level: Level
    about: str = ""
    whole: bool = False

    @property
    def fact(self) -> str:
        """What was seen, without what to do about it."""
        return self.text.partition(": ")[0]

    @property
    def doubt(self) -> bool:
        """Whether it casts doubt on the figure."""
        return self.level is not Level.NOTE


def worst(notes: Sequence[Note]) -> Level | None:
    """The heaviest level among the notes of the row itself, None without any doubt."""
    levels = {note.level for note in notes if note.doubt and not note.whole}
    return next((level for level in ORDER if level in levels), None)


def widespread(rows: Sequence[tuple[Sequence[Note], frozenset[str]]]) -> frozenset[str]:
    """The codes that most rows of a campaign have in common. ``rows``: of each measured row its notes, and the codes that its
    records can show at all: half of the rows with a clock are many, however many rows have none.
    """
    found = Counter(one for notes, _ in rows for one in {kind(note.code) for note in notes if note.code in SHARED})
    able = Counter(code for _, codes in rows for code in codes)
    return frozenset(code for code in SHARED if found[kind(code)] >= max(AT_LEAST, MOSTLY * able[code]))


def kind(code: str) -> str:
    """What a code is counted as, where it may be the whole campaign's."""
    return _FAMILY.get(code, code)


def shared(notes: Sequence[Note], codes: frozenset[str]) -> tuple[Note, ...]:
    """The notes of a row, of which those with one of the codes are the whole campaign's."""
    return tuple(replace(note, whole=True) if note.code in codes else note for note in notes)
