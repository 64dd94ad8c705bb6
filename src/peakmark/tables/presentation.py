"""A table's rows as cells of text, with the notes below them, for which letters stand at the rows:
what PDF, HTML report and LaTeX show.

Of many nodes, paper has a line for each point with the median of all, the lowest, the highest and
those that are slow; a line for each node stands in the CSV files and in the HTML report.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from string import ascii_lowercase
from typing import Any, NamedTuple

from peakmark import statistics
from peakmark.analysis import fleet
from peakmark.analysis.fleet import NodeGroup
from peakmark.analysis.row import Row
from peakmark.errors import Sentence
from peakmark.formatting import counted, natural, percent, typeset
from peakmark.messages import Merged, Message, Number, between, merge, message
from peakmark.storage.results import Results
from peakmark.tables.columns import (
    EFFICIENCY,
    Column,
    columns,
    common_kinds,
    key_columns,
    of_quantity,
    of_series,
    quantity_column,
    texts,
    through,
)
from peakmark.tools.tables import Table

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


def closed(sentence: str) -> str:
    """The sentence with its full stop."""
    return f"{sentence.rstrip('.')}."


def _common(rows: Sequence[Row]) -> list[str]:
    """What is said of all measured rows alike: once below the table instead of in every row."""
    first, *others = [row.said(row.remarks) for row in rows if row.own is not None] or [()]
    return [text for text in first if all(text in said for said in others)] if others else []


def letter(number: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    first, last = divmod(number, len(ascii_lowercase))
    return f"{letter(first - 1) if first else ''}{ascii_lowercase[last]}"


USUAL = ("psync", "plain", "")
"""Variants that nobody asked for: they need no word."""


@dataclass(frozen=True)
class PrintedTable:
    """A table as shown.

    body     texts, one list per row, as many as columns
    notes    what the rows refer to, in their order
    remarks  sentences about the whole table: why a column is empty, what is not known
    general  sentences that hold for other tables as well: a report says them once
    reading  how to read it: what its rows are and what is counted; may be empty
    shared   notes that all measured rows have in common: said once, after the remarks
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    body: tuple[tuple[str, ...], ...]
    notes: tuple[Footnote, ...] = ()
    remarks: tuple[str, ...] = ()
    reading: str = ""
    shared: tuple[str, ...] = ()
    general: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, title: str, columns: Sequence[Column], lines: Sequence[Any], notes: Notes, remarks: Sequence[str],
        reading: str = "", general: Sequence[str] = (),
    ) -> PrintedTable:  # fmt: skip
        """The ``columns`` of each line, warning and notes last, without the columns that say
        nothing: those empty in all lines, and such as are the same in all, which a remark then
        says. Remarks and notes get their full stop.
        """

        def typeset_all(sentences: Iterable[str]) -> tuple[str, ...]:
            return tuple(typeset(closed(sentence)) for sentence in sentences)

        labelled = [column for column in columns if column.label]
        ordered = sorted(labelled, key=lambda column: column.kind in ("warning", "notes"))
        kept, body, once = [], [], []
        for column, shown in zip(ordered, texts(ordered, lines), strict=True):
            if column.once and len(lines) > 1 and len(set(shown)) == 1:
                once += [] if shown[0] in USUAL else [column.once.format(shown[0])]
            elif any(shown) or not lines:
                kept.append(column)
                body.append(shown)
        return cls(
            name=name,
            title=title,
            columns=tuple(kept),
            body=tuple(zip(*body, strict=True)),
            notes=notes.footnotes(),
            remarks=(*once, *typeset_all(remarks)),
            reading=reading and typeset(closed(reading)),
            shared=typeset_all(notes.common),
            general=typeset_all(general),
        )

    def texts(self, kind: str) -> list[str]:
        """What stands in the column of a kind that there is at most once; nothing without it."""
        return [
            line[place]
            for place, column in enumerate(self.columns)
            if column.kind == kind
            for line in self.body
        ]

    @property
    def below(self) -> tuple[str, ...]:
        """What stands below the table of all its rows."""
        return (*self.remarks, *self.general, *self.shared)


def without_notes(grid: PrintedTable, told_at: str) -> PrintedTable:
    """The grid of rows whose notes stand below another table, that of the title ``told_at``."""
    elsewhere = f"Notes on these rows stand below the table “{told_at}”."
    bare = without(grid, lambda column: column.kind == "notes")
    return replace(bare, notes=(), shared=(), remarks=(*grid.remarks, elsewhere))


def without(grid: PrintedTable, is_dropped: Callable[[Column], bool]) -> PrintedTable:
    """The grid without some columns."""
    kept = [number for number, column in enumerate(grid.columns) if not is_dropped(column)]
    return replace(
        grid,
        columns=tuple(grid.columns[number] for number in kept),
        body=tuple(tuple(line[number] for number in kept) for line in grid.body),
    )


def grid(results: Results, table: Table, rows: Sequence[Row]) -> PrintedTable:
    """The rows of one table as text; numbers with four significant digits. Columns that are empty
    throughout are left out, and a remark says why.
    """
    notes = Notes.of(rows)
    remarks = remarks_on_gaps(results, table, rows, {name for row in rows for name in row.series})
    kinds = ", ".join(sorted(common_kinds(rows)))
    if kinds:
        remarks.append(f"Warning of all rows: {kinds}")
    general = without_columns(results, table, rows, {each.instrument for each in table.series})
    time = " of a time" if table.unit == "s" else ""
    for kind in dict.fromkeys(row.limit.kind for row in rows if row.limit.bound is not None):
        general.append(message("bounds", case=f"{kind}{time}").text)
    every = columns(table, rows, notes.warnings)
    return PrintedTable.of(
        table.name, table.title, every, rows, notes, remarks, table.remark, general
    )


NAMED = 3
"""So many nodes are named in a line or a note."""


def grid_of_nodes(
    results: Results, table: Table, rows: Sequence[Row]
) -> tuple[PrintedTable, list[Row]]:
    """The points of one table as text, and for each the row of the node that is nearest to the
    median.
    """
    groups = fleet.group_rows(rows)
    every, noun = len({row.key.node for row in rows}), fleet.noun(rows)
    notes = Notes.of(rows)

    def median(label: str, of: Callable[[Row], float | None], group: str = "") -> Column:
        """The median over the nodes of a point that have such a number."""

        def value(group: NodeGroup) -> float | None:
            known = [number for row in group.rows if (number := of(row)) is not None]
            return statistics.median(known) if known else None

        return quantity_column(table, label, value, group=group)

    references = [
        median(each.heading, of_series(each, attrgetter("centre")), "Medians of references")
        for each in table.references
    ]
    own = f"{table.own.heading}: {of_quantity(table, 'Measured')}"
    share = median(EFFICIENCY, lambda row: row.measured.efficiency)
    shown = [
        *through(key_columns(table), attrgetter("middle")),
        Column(label="Class", of=attrgetter("node_class")),
        *(
            quantity_column(table, name, attrgetter(name), own)
            for name in ("median", "low", "high")
        ),
        Column(label="Spread (%)", kind="number", of=attrgetter("range"), form=percent),
        Column(label="Slowest", of=lambda group: group.worst.key.node),
        *references,
        median(of_quantity(table, "Theoretical"), lambda row: row.limit.value),
        replace(share, factor=None, form=percent),
        Column(label=noun.title(), kind="number", of=lambda group: len(group.rows)),
        Column(
            label="Slow",
            of=lambda group: (
                counted([row.key.node for row in group.slow], NAMED) if group.slow else ""
            ),
        ),
        Column(label="Notes", kind="notes", of=lambda group: notes.warnings(group.every)),
    ]

    def where(letter: str) -> str:
        """The nodes that a note is about, in brackets; nothing where it is about all."""
        about = {
            row.key.node
            for row in rows
            if letter in (notes.letters.get(note) for note in row.remarks)
        }
        names = sorted(about, key=natural)
        return f" (on {counted(names, NAMED)})" if 0 < len(names) < every else ""

    instruments = {series.instrument for series in table.series}
    remarks = remarks_on_gaps(results, table, rows, instruments)
    points = len({(row.node_class, fleet.place(row)) for row in rows})
    if points > len(groups):
        remarks.append(
            f"{points - len(groups)} of {points} points were measured on no node, or are wrong on all"
        )
    reading = f"A line for each point: {every} {noun}. {table.remark}"
    whole = PrintedTable.of(
        f"{table.name}_nodes", table.title, shown, groups, notes, remarks, reading
    )
    return replace(whole, notes=notes.footnotes(where)), [group.middle for group in groups]


def without_columns(
    results: Results, table: Table, rows: Sequence[Row], instruments: Collection[str]
) -> list[str]:
    """Why the columns of ``instruments`` are empty, as far as they are."""
    measured = {name for row in rows for name in row.series}
    return [
        f"No columns of {series.heading}: {empty_reason(results, series.instrument)}"
        for series in table.series
        if rows and series.instrument in set(instruments) - measured
    ]


def remarks_on_gaps(
    results: Results,
    table: Table,
    rows: Sequence[Row],
    instruments: Collection[str],
    with_limit: bool = True,
) -> list[str]:
    """Why the columns of ``instruments`` are empty and why a theoretical value is missing, as far
    as they are; how many repetitions were measured again.
    """
    measured = [row.series[name] for row in rows for name in row.series.keys() & set(instruments)]
    again = sum(series.measured_again for series in measured)
    remarks = [message("measured-again", count=again).text] if again else []
    remarks += without_columns(results, table, rows, instruments)
    reasons = unknown_reasons(rows) if with_limit else []
    if reasons:
        case = "partly" if any(row.limit.value is not None for row in rows) else ""
        reason = reasons[0] if len(reasons) == 1 else message("formulas-say")
        unknown = message("unknown-limits", case=case, quantity=table.quantity, reason=reason)
        remarks.append(unknown.text)
    return remarks


def unknown_reasons(rows: Sequence[Row]) -> list[Message]:
    """Why rows have no theoretical value, each reason once; those that differ in the key of the
    site file alone are one: ``write disk.throughput.RS, .RR and .WS in the site file``.
    """
    families: dict[Message, list[Any]] = {}
    for reason in dict.fromkeys(row.limit.reason for row in rows if row.limit.reason):
        values = dict(reason.values)
        names: Any = values.pop("names", ())
        family = replace(reason, values=tuple(values.items()))
        families.setdefault(family, []).extend(names)
    return [
        replace(family, values=(*family.values, ("names", tuple(names))))
        for family, names in families.items()
    ]


def empty_reason(results: Results, instrument: str) -> str:
    """Why an instrument has no figures, with what would fill its columns where that is known."""
    for reference in results.plan.get("references", []):
        if reference["instrument"] == instrument and reference["path"] is None:
            package = reference.get("package")
            hint = f"; `apt install {package}` fills them" if package else ""
            return f"{reference['reason'] or 'the program is not on this machine'}{hint}"
    refused = {
        str(record.data["reason"]): record
        for record in (*results.records, *results.attempts)
        if not record.ok and record.cell.instrument == instrument
    }
    if refused:
        return "; ".join(refused)
    if any(cell.instrument == instrument for cell in results.cells):
        return "none of its cells has been measured for these rows yet"
    return "the plan holds no cell of it"
