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
"""What this share of a campaign's rows show is a property of the machine or the time: said once."""
AT_LEAST = 4
"""So many rows at least; of fewer, each is marked by itself."""
SHARED = ("steal", "other-load", "waited", "clock-moved", "clock-differs", "few", "short-runs")
"""Codes of what can hold for a whole campaign."""


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
    found = {note.level for note in notes if note.doubt and not note.whole}
    return next((level for level in ORDER if level in found), None)


def widespread(rows: Sequence[Sequence[Note]]) -> frozenset[str]:
    """The codes that most of a campaign's rows have in common. ``rows``: the notes of each measured row."""
    counts = Counter(code for notes in rows for code in {note.code for note in notes if note.code in SHARED})
    return frozenset(code for code, count in counts.items() if count >= max(AT_LEAST, MOSTLY * len(rows)))


def shared(notes: Sequence[Note], codes: frozenset[str]) -> tuple[Note, ...]:
    """The notes of a row, of which those with one of the codes are the whole campaign's."""
    return tuple(replace(note, whole=True) if note.code in codes else note for note in notes)
