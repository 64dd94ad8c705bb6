"""Messages that most rows of a campaign have in common: printed once for the campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from peakmark.messages import Message, Scope

MOSTLY = 0.5
"""What this share of the rows show that can show it is a property of the machine or the time: said
once.
"""
AT_LEAST = 4
"""So many rows at least; of fewer, each is marked by itself."""
SHARED = (
    "steal",
    "other-load",
    "waited",
    "crowded-core",
    "clock-moved",
    "clock-differs",
    "few",
    "short-runs",
)
"""Codes of what can hold for a whole campaign."""
_FAMILY = {"clock-differs": "clock-moved"}
"""Codes that are counted with another one: a clock moves during a run, or between two."""


def widespread(rows: Sequence[tuple[Sequence[Message], frozenset[str]]]) -> frozenset[str]:
    """The codes that most rows of a campaign have in common. ``rows``: of each measured row its
    notes, and the codes that its records can show at all: half of the rows with a clock are
    many, however many rows have none.
    """
    seen = Counter(
        code
        for notes, _ in rows
        for code in {kind(note.code) for note in notes if note.code in SHARED}
    )
    able = Counter(code for _, codes in rows for code in codes)
    return frozenset(
        code for code in SHARED if seen[kind(code)] >= max(AT_LEAST, MOSTLY * able[code])
    )


def kind(code: str) -> str:
    """What a code is counted as, where it may be the whole campaign's."""
    return _FAMILY.get(code, code)


def shared(notes: Sequence[Message], codes: frozenset[str]) -> tuple[Message, ...]:
    """The notes of a row, of which those with one of the codes are the whole campaign's."""
    return tuple(
        replace(note, scope=Scope.CAMPAIGN) if note.code in codes else note for note in notes
    )
