"""A table's rows as cells of text, with the notes on them: what PDF, HTML report and LaTeX show."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from peakmark.analysis.row import Row
from peakmark.formatting import typeset
from peakmark.messages import Message, message
from peakmark.storage.results import Results
from peakmark.tables import captions
from peakmark.tables.columns import NOT_MEASURED, Column, columns, common_kinds, printed
from peakmark.tables.footnotes import BESIDE, Footnote, Notes, closed
from peakmark.tools.tables import Table

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
    numbered whether a number stands beside a letter of ``notes``
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    body: tuple[tuple[str, ...], ...]
    notes: tuple[Footnote, ...] = ()
    remarks: tuple[str, ...] = ()
    reading: str = ""
    shared: tuple[str, ...] = ()
    numbered: bool = False
    general: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, title: str, columns: Sequence[Column], lines: Sequence[Any], notes: Notes, remarks: Sequence[str],
        reading: str, general: Sequence[str] = (),
    ) -> PrintedTable:  # fmt: skip
        """The ``columns`` of each line, without the columns that say nothing: those empty in all
        lines, and such as are the same in all, which a remark then says. Remarks and notes get
        their full stop.
        """

        def typeset_all(sentences: Iterable[str]) -> tuple[str, ...]:
            return tuple(typeset(closed(sentence)) for sentence in sentences)

        texts = [[column.text(line) for line in lines] for column in columns]
        kept, once = [], []
        for place, column in enumerate(columns):
            if column.once and len(lines) > 1 and len(set(texts[place])) == 1:
                once += (
                    [column.once.format(texts[place][0])] if texts[place][0] not in USUAL else []
                )
            elif not lines or any(texts[place]):
                kept.append(place)
        return cls(
            name=name,
            title=title,
            columns=tuple(columns[place] for place in kept),
            body=tuple(zip(*(texts[place] for place in kept), strict=True)),
            notes=notes.footnotes(),
            remarks=(*once, *typeset_all(remarks)),
            reading=reading and typeset(closed(reading)),
            shared=typeset_all(notes.common),
            numbered=notes.numbered,
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
        numbered = (BESIDE,) if self.numbered else ()
        return (*self.remarks, *self.general, *self.shared, *numbered)


def without_notes(grid: PrintedTable, told_at: str) -> PrintedTable:
    """The grid of rows whose notes stand below another table, that of the title ``told_at``."""
    elsewhere = f"Notes on these rows stand below the table “{told_at}”."
    bare = without(grid, "notes")
    return replace(bare, notes=(), shared=(), numbered=False, remarks=(*grid.remarks, elsewhere))


def without(grid: PrintedTable, kind: str) -> PrintedTable:
    """The grid without the columns of this kind."""
    kept = [number for number, column in enumerate(grid.columns) if column.kind != kind]
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
    shown = printed(columns(table, rows, notes))
    remarks = remarks_on_gaps(results, table, rows, {name for row in rows for name in row.series})
    kinds = ", ".join(sorted(common_kinds(rows)))
    if kinds:
        remarks.append(f"Warning of all rows: {kinds}")
    general = without_columns(results, table, rows, {each.instrument for each in table.series})
    time = " of a time" if table.unit == "s" else ""
    for kind in dict.fromkeys(row.limit.kind for row in rows if row.limit.bound is not None):
        general.append(message("bounds", case=f"{kind}{time}").text)
    return PrintedTable.of(
        table.name, table.title, shown, rows, notes, remarks, table.remark, general
    )


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
    stored = [record.data for record in (*results.records, *results.attempts) if not record.ok]
    refused = dict.fromkeys(
        str(data["reason"]) for data in stored if data["cell"]["instrument"] == instrument
    )
    if refused:
        return "; ".join(refused)
    if any(cell.instrument == instrument for cell in results.cells):
        return "none of its cells has been measured for these rows yet"
    return "the plan holds no cell of it"


_BREAK = re.compile(
    r"(Theoretical|Standard|Average|Benchmark(?= Run)) | (?=\(|Measured |[Ee]fficiency|bench)"
)
LONG = 8  # rows from which on the eye needs rules between them


def as_data(grid: PrintedTable, rows: Sequence[Row]) -> dict[str, Any]:
    """A grid with what only the page needs: headings over several columns, thin rules, numbers
    padded to their decimal mark.
    """
    measured = [
        [text for text in texts if text != NOT_MEASURED] for texts in zip(*grid.body, strict=True)
    ]
    decimals = [
        max((len(text.partition(".")[2]) for text in texts), default=0) for texts in measured
    ]

    def cell(place: int, text: str) -> str | dict[str, str]:
        if grid.columns[place].kind != "number" or text == NOT_MEASURED:
            return text
        fraction = text.partition(".")[2]
        lacking = decimals[place] - len(fraction)
        pad = "" if not text or lacking <= 0 else ("" if fraction else ".") + "0" * lacking
        return {"text": text, "pad": pad}

    head, subhead = _headings(grid)
    return {
        "name": grid.name,
        "title": f"{captions.of_table(grid.title, rows[0].table.subsystem)}.",
        "reading": grid.reading,
        "columns": [{"kind": column.kind} for column in grid.columns],
        "head": head,
        "subhead": subhead,
        "breaks": _breaks(rows),
        "body": [[cell(place, text) for place, text in enumerate(line)] for line in grid.body],
        "notes": [[note.letter, note.text] for note in grid.notes],
        "remarks": [*grid.remarks, *grid.shared],
        "general": list(grid.general),
    }


def _headings(grid: PrintedTable) -> tuple[list[dict[str, Any]], list[str]]:
    """Two lines of headings: groups, and columns that stand alone over both lines; then the columns
    in groups.
    """
    head: list[dict[str, Any]] = []
    subhead: list[str] = []
    lines = 2 if any(column.group for column in grid.columns) else 1
    for title, members in groupby(grid.columns, key=lambda column: column.group):
        columns = list(members)
        if title:
            head.append({"title": title, "span": len(columns), "rows": 1, "kind": "number"})
            subhead += [column.label for column in columns]
        else:
            head += [
                {"title": _wrapped(column.label), "span": 1, "rows": lines, "kind": column.kind}
                for column in columns
            ]
    return head, subhead


def _wrapped(heading: str) -> str:
    """A heading with its unit, and what is narrower in two lines, on lines of their own."""
    return _BREAK.sub(lambda place: f"{place[1] or ''}\n", heading)


def _breaks(rows: Sequence[Row]) -> list[int]:
    """Rows above which a thin rule stands: where the workload changes; in a long table of one,
    where the concurrency does.
    """

    def changes(of: Callable[[Row], object]) -> list[int]:
        return [
            number for number in range(1, len(rows)) if of(rows[number]) != of(rows[number - 1])
        ]

    starts = changes(lambda row: (row.key.node, row.key.workload, row.key.variant))
    steps = changes(lambda row: row.key.concurrency)
    return starts if starts or len(rows) < LONG or 2 * len(steps) >= len(rows) else steps
