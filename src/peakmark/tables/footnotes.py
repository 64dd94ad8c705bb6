"""The notes below a table: letters at its rows, the sentences that they stand for, and what is said of all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from peakmark.formatting import typeset
from peakmark.judging.merging import joined, merge
from peakmark.judging.row import Row

BESIDE = "A number beside a letter is what the note says of that row"
BETWEEN = ", "  # two letters of notes
BOUND = "\u00a0"  # a letter and its number stay on one line


@dataclass(frozen=True)
class Notes:
    """The notes of some rows: ``letters`` by note, the ``sentences`` they stand for, and what is said of all rows.

    own  the numbers that a note has of its own, where its sentence has ranges
    """

    letters: Mapping[str, str]
    sentences: tuple[tuple[str, str], ...]
    common: tuple[str, ...]
    own: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Notes:
        """Notes that differ in numbers alone share a letter; what holds for all measured rows has none."""
        common = _common(rows)
        merged = merge([note for row in rows for note in row.notes if note not in common])
        sentences = dict.fromkeys(form.sentence for form in merged.values())
        letters = {sentence: letter(number) for number, sentence in enumerate(sentences)}
        return cls(
            letters={note: letters[form.sentence] for note, form in merged.items()},
            sentences=tuple((mark, closed(sentence)) for sentence, mark in letters.items()),
            common=tuple(f"All rows: {note}" for note in common),
            own={note: form.own for note, form in merged.items()},
        )

    @property
    def said_of_all(self) -> tuple[str, ...]:
        """What is said below the table of all rows, and of the numbers beside letters."""
        return (*self.common, *([BESIDE] if any(self.own.values()) else ()))

    def marks(self, rows: Sequence[Row], mark: str = ".") -> str:
        """The letters of what a line's rows note, each once with the line's own numbers: ``a 11 %, b, c 2.74 GHz``."""
        numbers: dict[str, list[tuple[str, ...]]] = {}
        for note in (note for row in rows for note in row.notes if note in self.letters):
            numbers.setdefault(self.letters[note], []).append(self.own[note])
        ordered = sorted(numbers, key=lambda place: (len(place), place))
        texts = (f"{place} {typeset(joined(numbers[place]), mark)}".strip().replace(" ", BOUND) for place in ordered)
        return BETWEEN.join(texts)


def closed(sentence: str) -> str:
    """The sentence with its full stop."""
    return f"{sentence.rstrip('.')}."


def _common(rows: Sequence[Row]) -> list[str]:
    """Notes of all measured rows alike: said once below the table instead of in every row."""
    measured = [row for row in rows if row.own is not None]
    if len(measured) < 2:
        return []
    return [note for note in measured[0].notes if all(note in row.notes for row in measured)]


def letter(number: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = ascii_lowercase[rest] + text
    return text
