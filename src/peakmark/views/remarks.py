"""Make remarks from warnings: a few words in the row of a table, the full text once in the report."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

from peakmark.formatting import typeset
from peakmark.messages import ORDER, Message, Scope, Severity, merge
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import Table
from peakmark.views.points import Line, Point, points_of

NUMBER = re.compile(r"\d+(\.\d+)?")
MOST = 3
"""Usual largest number of remarks in a row. A longer list would hide the most severe one: it is cut, and its
last part counts the others.
"""


class Explanation(NamedTuple):
    """A warning as the report explains it once.

    Attributes:
        short: text of the remark in rows; empty if no row shows the warning.
        rows: rows of peakmark's kernel at the points with the warning.
        text: what happened and what to do.
    """

    short: str
    rows: Sequence[Line]
    text: str


def texts_of(points: Sequence[Point], table: Table, instruments: Collection[str]) -> list[str]:
    """Return the remarks on the points of one line, the most severe first.

    A remark on a reference that peakmark's kernel has too is returned once, without a program.

    Args:
        points: the points.
        table: the table, which gives the programs' names.
        instruments: programs that have a column; remarks on other programs are left out.
    """
    families: dict[Any, list[Message]] = defaultdict(list)
    for point in points:
        for note in point.notes:
            if is_shown(note, instruments):
                words = NUMBER.sub("", note.short)
                families[note.entry, words, note.about, note.severity].append(note)
    # Notes whose short texts differ only in numbers are one remark, although their full texts may differ.
    merged: dict[Message, Message] = {}
    for family in families.values():
        merged[family[0]] = with_ranges(family[0], family)
    references = {program.instrument: f"{program.heading} " for program in table.references}
    of_kernel = {text_of(merged[note]) for note in merged if note.about not in references}
    found = []
    for note in sorted(merged, key=lambda note: ORDER.index(note.severity)):
        text = text_of(merged[note])
        if text not in of_kernel:
            text = text_of(merged[note], references[note.about])
        found.append(text)
    return list(dict.fromkeys(found))


def is_shown(note: Message, instruments: Collection[str]) -> bool:
    """Return whether a row shows a note: the note has a short text, and its program has a column.

    A note that is printed once for the campaign is shown only if it is a warning.
    """
    is_on_value = note.is_warning or not note.is_shared
    return bool(note.short) and is_on_value and note.about in ("", *instruments)


def text_of(note: Message, program: str = "") -> str:
    """Return a remark in a few words, with the name of a program before it."""
    text = f"{program}{note.short}"
    if note.severity is Severity.WRONG:
        text = f"wrong: {text}"
    return typeset(text)


def cell_of(texts: Sequence[str], everywhere: Iterable[str] = (), most: int = MOST) -> str:
    """Return the remarks of a row as one text: ``spread 17 %; host memory``.

    Args:
        texts: see ``texts_of``.
        everywhere: remarks that a sentence below the table states for all rows.
        most: largest number of remarks; the last part counts further ones.
    """
    own = [text for text in texts if text not in everywhere]
    if len(own) > most:
        rest = len(own) - most + 1
        own[most - 1 :] = [f"{rest} more remarks"]
    return "; ".join(own)


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
    # Equal notes of different programs and rows are one note here.
    rows_of: dict[Message, dict[str, Line]] = defaultdict(dict)
    for table, instruments in shown.items():
        for point in points_of(frames, frames.rows[frames.rows["table"].eq(table)]):
            for note in point.notes:
                if note.about in ("", *instruments) and point.measured:
                    merged = replace(note, about="", scope=Scope.POINT)
                    rows_of[merged][point.own.point] = point.own
    # Notes of one message that differ only in their numbers are variants of each other.
    families: dict[tuple[str, Any], dict[Message, dict[str, Line]]] = defaultdict(dict)
    for note, lines in rows_of.items():
        families[note.entry, note.subject][note] = lines
    found = []
    for of_entry in families.values():
        # Variants give the same advice: explain only the most severe, most frequent one, with the
        # ranges of the numbers of all.
        note = max(of_entry, key=lambda note: (-ORDER.index(note.severity), len(of_entry[note])))
        rows: dict[str, Line] = {}
        for lines in of_entry.values():
            rows |= lines
        merged = with_ranges(note, of_entry)
        texts = typeset(merged.short), typeset(merged.full_sentence)
        found.append((ORDER.index(note.severity), -len(rows), [*rows.values()], *texts))
    ordered = sorted(found, key=itemgetter(0, 1))
    return [Explanation(short, rows, text) for _, _, rows, short, text in ordered]


def with_ranges(note: Message, variants: Collection[Message]) -> Message:
    """Return a message with the ranges of the numbers of all its variants, of which it is one."""
    same_words = [with_numbers(note, variant) for variant in variants]
    return merge([*variants, *same_words])[note]


def with_numbers(note: Message, variant: Message) -> Message:
    """Return a message with the numbers of a variant, whose texts may differ."""
    numbers = dict(variant.values)
    values = []
    for name, value in note.values:
        is_number = isinstance(value, int | float)
        values.append((name, numbers.get(name, value) if is_number else value))
    return replace(note, values=tuple(values))
