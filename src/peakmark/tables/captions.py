"""Captions of tables and figures, and the notes below a table: letters at its rows, the sentences
that they stand for, and what is said of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import NamedTuple

from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Drawing
from peakmark.errors import Sentence
from peakmark.formatting import typeset
from peakmark.messages import Merged, Message, Number, between, merge, message
from peakmark.tools.tables import TABLES

PERCENTILES = ("disk_latency_percentiles", "network_latency_percentiles")
LINKS = ("network_throughput_links", "network_latency_links")
FIGURES = (
    "overview", "fleet", "cpu", "memory_throughput_pool", "memory_throughput_block", "memory_latency",
    "memory_core_to_core", "memory_numa_latency", "memory_numa_throughput", "memory_ladder_latency", "memory_ladder_throughput", "memory_loaded_latency", "roofline", "disk_throughput",
    "disk_iops", "disk_latency", "network_throughput", "network_latency", *PERCENTILES, *LINKS,
)  # fmt: skip
NODES = "nodes"  # each figure of many nodes
KINDS = ("together", "bars", "panels")  # figures of a layout, after its title
PARTS = ("repetitions", "references", "limits")  # what a figure of a layout may show


def text(name: str, noun: str = "nodes") -> str:
    """The caption of a figure, on one line; ``noun``: what its dots are."""
    return f"{message('caption', case=name, noun=noun).fact}."


def of_drawing(drawing: Drawing, shown: Collection[str]) -> str:
    """The caption of a figure that a layout asks for: its title, its kind, and what of ``PARTS`` is
    ``shown``.
    """
    parts = [f"{message('caption-part', case=part).fact}." for part in PARTS if part in shown]
    return " ".join([f"{drawing.title}.", text(drawing.kind), *parts])


def texts() -> dict[str, str]:
    """Figure name -> caption: what ``rules/tables.smk`` hands on."""
    return {name: text(name) for name in FIGURES}


def tables() -> dict[str, str]:
    """Table name -> title with its resource: ``Memory: throughput``."""
    return {table.name: of_table(table.title, table.subsystem) for table in TABLES}


def inside(title: str) -> str:
    """A title within a sentence: its first letter small, unless the word is an abbreviation."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def of_table(title: str, subsystem: str) -> str:
    """What a table is called: ``Disk: throughput``, without the resource where the title names it
    already.
    """
    resource = SUBSYSTEMS[subsystem].title
    return title if title.lower().startswith(resource.lower()) else f"{resource}: {inside(title)}"


BESIDE = "A number beside a letter is what the note says of that row."
BETWEEN = ", "  # two letters of notes
BOUND = "\u00a0"  # a letter and its number stay on one line


class Footnote(NamedTuple):
    """A letter and the sentence that it stands for."""

    letter: str
    text: str


@dataclass(frozen=True)
class Notes:
    """The notes of some rows: ``letters`` by note, the words they stand for, and what is said of
    all rows.

    merged  what stands for a note, and the number that it has of its own where that has ranges
    """

    letters: Mapping[Message, str]
    sentences_by_letter: Mapping[str, Sentence]
    common: tuple[str, ...]
    merged: Mapping[Message, Merged]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Notes:
        """Notes that differ in numbers alone share a letter; what holds for all measured rows has
        none.
        """
        common = _common(rows)
        merged = merge(
            note for row in rows for note in row.remarks if row.said([note])[0] not in common
        )
        sentences = {
            note: rows[0].of_program(note, form.message.sentence) for note, form in merged.items()
        }
        letters = {
            wording: letter(number)
            for number, wording in enumerate(dict.fromkeys(sentences.values()))
        }
        return cls(
            letters={note: letters[wording] for note, wording in sentences.items()},
            sentences_by_letter={place: wording for wording, place in letters.items()},
            common=tuple(f"All rows: {text}" for text in common),
            merged=merged,
        )

    def footnotes(self, more: Callable[[str], str] = lambda _: "") -> tuple[Footnote, ...]:
        """What the letters stand for, as it is printed, with each remedy once; ``more``: what is
        said behind the words of a letter.
        """
        footnotes = []
        remedies = set[str]()
        for place, sentence in self.sentences_by_letter.items():
            text = sentence.fact if sentence.remedy in remedies else str(sentence)
            remedies.add(sentence.remedy)
            footnotes.append(Footnote(place, typeset(closed(f"{text.rstrip('.')}{more(place)}"))))
        return tuple(footnotes)

    @property
    def numbered(self) -> bool:
        """Whether a number stands beside a letter."""
        return any(form.own for form in self.merged.values())

    def warnings(self, rows: Sequence[Row]) -> str:
        """The letters of what a line's rows note, each once with the line's own number: ``a 11 %,
        b, c 2.74 GHz``.
        """
        numbers: dict[str, list[Number]] = {}
        for note in (note for row in rows for note in row.remarks if note in self.letters):
            own = self.merged[note].own
            numbers.setdefault(self.letters[note], []).extend([own] if own else [])
        texts = []
        for place in sorted(numbers, key=lambda place: (len(place), place)):
            own_range = f" {typeset(between(numbers[place]).text)}" if numbers[place] else ""
            texts.append(f"{place}{own_range}".replace(" ", BOUND))
        return BETWEEN.join(texts)


NO_NOTES = Notes({}, {}, (), {})


def closed(sentence: str) -> str:
    """The sentence with its full stop."""
    return f"{sentence.rstrip('.')}."


def _common(rows: Sequence[Row]) -> list[str]:
    """What is said of all measured rows alike: once below the table instead of in every row."""
    first, *others = [row.said(row.remarks) for row in rows if row.own is not None] or [()]
    return [text for text in first if all(text in said for said in others)] if others else []


def letter(number: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = ascii_lowercase[rest] + text
    return text
