"""Make remarks from warnings: a few words in the row of a table, the full text once in the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

from peakmark.formatting import plural, typeset
from peakmark.messages import Message, Scope, Severity, merge
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import Table
from peakmark.views.points import Point, points_of

MOST = 2
"""Largest number of remarks in a row: a longer list would hide the most severe one."""
WEIGHTS = (Severity.WRONG, Severity.UNSURE, Severity.NOTE)
"""Severities, the most severe first."""


class Explanation(NamedTuple):
    """A warning as the report explains it once.

    Attributes:
        short: text of the remark in rows; empty if no row shows the warning.
        rows: number of rows with the warning, in words.
        text: what happened and what to do.
    """

    short: str
    rows: str
    text: str


def texts_of(points: Sequence[Point], table: Table, instruments: Collection[str]) -> list[str]:
    """Return the remarks on the points of one line, the most severe first.

    Args:
        points: the points.
        table: the table, which gives the programs' names.
        instruments: programs that have a column; remarks on other programs are left out.
    """
    notes: list[Message] = []
    for point in points:
        notes += [note for note in point.notes if is_shown(note, instruments)]
    merged = merge(notes)
    found = []
    for note in sorted(notes, key=lambda note: WEIGHTS.index(note.severity)):
        found.append(text_of(merged[note], table))
    return list(dict.fromkeys(found))


def is_shown(note: Message, instruments: Collection[str]) -> bool:
    """Return whether a row shows a note: the note has a short text, and its program has a column.

    A note that is printed once for the campaign is shown only if it is a warning.
    """
    is_on_value = note.is_warning or not note.is_shared
    return bool(note.short) and is_on_value and note.about in ("", *instruments)


def text_of(note: Message, table: Table) -> str:
    """Return a remark in a few words, with the program if it is a reference."""
    text = note.short
    for program in table.references:
        if program.instrument == note.about:
            text = f"{program.heading} {text}"
    if note.severity is Severity.WRONG:
        text = f"wrong: {text}"
    return typeset(text)


def cell_of(texts: Sequence[str], everywhere: Iterable[str] = ()) -> str:
    """Return the remarks of a row as one text: ``spread 17 %; host memory``.

    Args:
        texts: see ``texts_of``.
        everywhere: remarks that a sentence below the table states for all rows.
    """
    own = [text for text in texts if text not in everywhere]
    shown = own[:MOST]
    if len(own) > MOST:
        shown.append(f"{len(own) - MOST} more")
    return "; ".join(shown)


def common(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the remarks that all lines have; empty for a single line."""
    if len(lines) < 2:
        return []
    everywhere = set(lines[0]).intersection(*lines)
    return [text for text in lines[0] if text in everywhere]


def explain(frames: CampaignFrames, shown: Mapping[str, Collection[str]]) -> list[Explanation]:
    """Return the remarks of a campaign in full: the most severe first, then the most frequent.

    Args:
        frames: the campaign.
        shown: table -> programs that have a column in the table.
    """
    rows_of: dict[Message, set[str]] = defaultdict(set)
    for table, instruments in shown.items():
        for point in points_of(frames, frames.rows[frames.rows["table"].eq(table)]):
            for note in point.notes:
                if note.about in ("", *instruments) and point.measured:
                    rows_of[replace(note, about="", scope=Scope.POINT)].add(point.own.point)
    families: dict[tuple[str, Any], dict[Message, set[str]]] = defaultdict(dict)
    for note, names in rows_of.items():
        families[note.entry, note.subject][note] = names
    found = []
    for of_entry in families.values():
        # Variants of a message give the same advice: explain only the most severe, most frequent one.
        note = max(of_entry, key=lambda note: (-WEIGHTS.index(note.severity), len(of_entry[note])))
        rows = len(set().union(*of_entry.values()))
        found.append((WEIGHTS.index(note.severity), -rows, merge(of_entry)[note]))
    remarks = []
    for _, rows, note in sorted(found, key=itemgetter(0, 1)):
        words = plural(-rows, "row")
        remarks.append(Explanation(typeset(note.short), words, typeset(note.full_sentence)))
    return remarks
