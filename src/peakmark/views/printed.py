"""Tables as cells of text with the notes below them: what PDF, HTML report and LaTeX show.

``table`` prints rows, ``nodes_table`` the points of many nodes with the median over them,
``as_data`` turns either into data of the report's templates. Letters stand at the rows for the
notes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from string import ascii_lowercase
from typing import Any, NamedTuple

import pandas as pd

from peakmark import statistics
from peakmark.errors import Sentence
from peakmark.formatting import (
    counted,
    natural,
    percent,
    round_bound,
    significant,
    size,
    typeset,
)
from peakmark.messages import Merged, Message, Number, WarningKind, between, merge, message
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import Program, Table, count
from peakmark.views import node_groups
from peakmark.views.node_groups import NodeGroup
from peakmark.views.points import Line, Point, points_of

NOT_MEASURED = "not measured"
"""What stands in the column of peakmark's kernel where it measured nothing."""
EFFICIENCY = "Efficiency (%)"
PERCENTILES: Mapping[str, str] = {"p50": "p50", "p99": "p99", "p999": "p99.9"}
"""Percentiles that tables show -> their headings."""
USUAL = ("psync", "plain", "")
"""Variants that need no words, as they are the default."""
NAMED = 3
"""Largest number of nodes that a line or a note names; the others are counted."""
LIMIT_SIGNS = {"limit": "", "at_most": "≤\u00a0", "none": ""}
"""Kind of limit -> what stands before a bound: the limit is at most as high."""
SHARE_SIGNS = {"limit": "", "at_most": "≥\u00a0", "none": ""}
"""Kind of limit -> what stands before the share of a bound, and before the bound of a time."""
TELLING_BOUND = 0.5
"""Least share of a bound that is reached: one that is further away says nothing."""
LEVEL = 95
"""Level of an interval that six repetitions reach, in percent; fewer have a lower one."""
SHORT_KINDS: Mapping[str, str] = {str(kind): kind.short for kind in WarningKind}
"""Kind of warning -> what a narrow column calls it."""

TextOf = Callable[[Any], str]
"""Returns the text of a line of a table: of a point, or of a group of nodes."""


# -- columns


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a printed table.

    Attributes:
        label: heading.
        text: returns what stands in it in a line.
        group: heading over all neighbouring columns of the same group.
        kind: text, number, warning or notes.
        once: sentence that stands for the column where all lines have the same text in it.
    """

    label: str
    text: TextOf
    group: str = ""
    kind: str = "text"
    once: str = ""


def of_quantity(table: Table, kind: str) -> str:
    """Return the heading of a kind of values of a table: ``Measured Throughput (GB/sec)``."""
    return f"{kind} {table.quantity}{unit_of(table)}"


def unit_of(table: Table) -> str:
    """Return the unit of a table as it stands behind a heading, empty where there is none."""
    return f" ({table.shown})" if table.shown else ""


def has_percentiles(table: Table) -> bool:
    """Return whether the rows are times of single operations: accesses or round trips."""
    return table.metric == "latency" and table.subsystem != "memory"


def columns_of(table: Table, points: Sequence[Point], notes: Notes) -> list[Column]:
    """Return all columns of a table, the warnings and notes last."""
    columns = [*place_columns(points), *key_columns(table)]
    columns += [measured_column(table, program) for program in table.series]
    columns.append(theoretical_column(table))
    columns += [efficiency_column(program) for program in table.series]
    if table.name == "cpu":
        columns += clock_columns()
    if any(point.own.joules is not None for point in points):
        columns += energy_columns(table)
    columns += spread_columns(table, points)
    if has_percentiles(table):
        columns += percentile_columns(table, points)
    columns.append(warning_column(lambda point: [point], common_kinds(points)))
    columns.append(notes_column(notes, lambda point: [point]))
    return columns


def place_columns(points: Sequence[Point]) -> list[Column]:
    """Return the column that says where points were measured, where they differ in it."""
    label = place_label(points)
    return [Column(label=label, text=lambda point: place([point]))] if label else []


def place_label(points: Sequence[Point]) -> str:
    """Return the label of the column that says where points were measured.

    It is empty where all were on one node.
    """
    if any(point.endpoints for point in points):
        return "Client → server"
    nodes = {point.own.node for point in points}
    return "Node" if len(nodes) > 1 else ""


def place(points: Sequence[Point]) -> str:
    """Return where the points of one line were measured.

    That is ``node1``, ``node1 → node2`` from client to server, or ``3 pairs``.
    """
    pairs = set[tuple[str, str]]()
    for point in points:
        pairs.update(point.endpoints)
    if len(pairs) > 1:
        return f"{len(pairs)} pairs"
    return " → ".join(pairs.pop()) if pairs else str(points[0].own.node)


def key_columns(table: Table) -> list[Column]:
    """Return the columns of workload, concurrency, block and variant, as far as a table has them."""

    def block(point: Point) -> str:
        return size(point.own.block_bytes) if point.own.block_bytes else table.unsized

    columns = [
        Column(label=table.first, text=lambda point: table.workload_label(point.own.workload)),
        Column(label="Concurrency", text=concurrency, kind="number"),
    ]
    if table.block:
        once = f"{table.block}: {{}}."
        columns.append(Column(label=table.block, text=block, kind="number", once=once))
    if table.variant:
        once = f"{table.variant.capitalize()}: {{}}."
        columns.append(
            Column(
                label=table.variant,
                text=lambda point: table.variant_label(point.own.variant),
                once=once,
            )
        )
    return columns


def concurrency(point: Point) -> str:
    """Return the number of threads, with the word that was asked for."""
    return str(count(point.own.concurrency, point.own.concurrency_word))


def measured_column(table: Table, program: Program) -> Column:
    """Return the column of what a program measured; a hole of peakmark's kernel is named."""
    hole = NOT_MEASURED if program is table.own else ""

    def text(point: Point) -> str:
        line = point.measured.get(program.instrument)
        return hole if line is None else number_of(line, table.factor)

    group = of_quantity(table, "Measured")
    return Column(label=program.heading, text=text, group=group, kind="number")


def number_of(line: Line, factor: float) -> str:
    """Return the value of a line of ``rows``, with no digit finer than the program tells."""
    return significant(line.value * factor, step=(line.resolution or 0.0) * factor)


def theoretical_column(table: Table) -> Column:
    """Return the column of the limit; a bound stands in its place with a sign before it."""

    def text(point: Point) -> str:
        own = point.own
        if own.limit is not None:
            return significant(own.limit * table.factor)
        if not has_bound(own):
            return ""
        is_time = own.unit == "s"
        signs = SHARE_SIGNS if is_time else LIMIT_SIGNS
        rounded = round_bound(own.bound * table.factor, 3, is_upper=not is_time)
        return f"{signs[own.limit_kind]}{significant(rounded, 3)}"

    return Column(label=of_quantity(table, "Theoretical"), text=text, kind="number")


def efficiency_column(program: Program) -> Column:
    """Return the column of the share of the limit, or of a bound with a sign before it."""

    def text(point: Point) -> str:
        line = point.measured.get(program.instrument)
        if line is None:
            return ""
        if line.limit_kind == "limit":
            return "" if line.efficiency is None else percent(line.efficiency)
        if line.share is None or not has_bound(point.own):
            return ""
        least = round_bound(100 * line.share, 2, is_upper=False)
        return f"{SHARE_SIGNS[line.limit_kind]}{significant(least, 2)}"

    return Column(label=program.heading, text=text, group=EFFICIENCY, kind="number")


def has_bound(own: Line) -> bool:
    """Return whether a row has a bound that is printed: one of which at least half is reached."""
    return own.bound is not None and own.share is not None and own.share >= TELLING_BOUND


def clock_columns() -> list[Column]:
    """Return the columns of the clock under the work, and of its share of the best that was seen."""

    def gigahertz(point: Point) -> str:
        hertz = point.own.clock_hz
        return "" if hertz is None else significant(hertz / 1e9, 3)

    def share(point: Point) -> str:
        known = point.own.clock_share
        return "" if known is None else percent(known)

    return [
        Column(label="GHz", text=gigahertz, group="Clock", kind="number"),
        Column(label="% of best", text=share, group="Clock", kind="number"),
    ]


def energy_columns(table: Table) -> list[Column]:
    """Return the columns of the node's energy, and of what it did for each joule; a time is no rate."""

    def joules(point: Point) -> str:
        known = point.own.joules
        return "" if known is None else significant(known)

    def rate(point: Point) -> str:
        own = point.own
        return significant(own.value / own.watts * table.factor) if own.watts else ""

    columns = [Column(label="J", text=joules, group="Energy", kind="number")]
    if not table.lower_is_better:
        columns.append(Column(label=per_joule(table), text=rate, group="Energy", kind="number"))
    return columns


def per_joule(table: Table) -> str:
    """Return the unit of what a node does for a joule: ``GB/J``."""
    return f"{table.shown.partition('/')[0].removesuffix('S') or '1'}/J"


def spread_columns(table: Table, points: Sequence[Point]) -> list[Column]:
    """Return the columns of deviation, repetitions and interval of peakmark's kernel."""

    def number(name: str, digits: int) -> TextOf:
        def text(point: Point) -> str:
            value = getattr(point.own, name)
            return "" if value is None else significant(value * table.factor, digits)

        return text

    columns = []
    # Percentiles say more of times, and print has no room for both.
    if not has_percentiles(table):
        columns.append(Column(label="Standard Deviation", text=number("sd", 3), kind="number"))
    columns.append(
        Column(
            label="n",
            text=lambda point: str(point.own.n or ""),
            kind="number",
            once="n = {} in all rows.",
        )
    )
    group = interval_label(points)
    columns += [
        Column(label=name, text=number(name, 4), group=group, kind="number")
        for name in ("low", "high")
    ]
    return columns


def interval_label(points: Sequence[Point]) -> str:
    """Return ``95 % interval``, or what the repetitions allow: ``75 to 95 % interval``."""
    levels = set()
    for point in points:
        if point.own.n > 1:
            levels.add(min(LEVEL, int(100 * point.own.level)))
    levels = levels or {LEVEL}
    least = f"{min(levels)} to " if len(levels) > 1 else ""
    return f"{least}{max(levels)} % interval"


def percentile_columns(table: Table, points: Sequence[Point]) -> list[Column]:
    """Return the columns of percentiles, with their intervals where repetitions have histograms."""
    is_counted = any(point.own.p50_low is not None for point in points)
    interval, kind = "", "number"
    if is_counted:
        interval, kind = f" with {interval_label(points)}", "text"
    group = f"Percentiles{interval} ({table.shown})"
    return [
        Column(label=label, text=partial(percentile, name, table.factor), group=group, kind=kind)
        for name, label in PERCENTILES.items()
    ]


def percentile(name: str, factor: float, point: Point) -> str:
    """Return ``43.2 (31–54)``; without an interval the value alone."""
    value = getattr(point.own, name)
    low, high = getattr(point.own, f"{name}_low"), getattr(point.own, f"{name}_high")
    if value is None:
        return ""
    if low is None or high is None:
        return significant(value * factor)
    ends = f"{significant(low * factor, 2)}–{significant(high * factor, 2)}"
    return f"{significant(value * factor, 3)} ({ends})"


def warning_column(
    points_of_line: Callable[[Any], Sequence[Point]], everywhere: Collection[str] = ()
) -> Column:
    """Return the column of the kinds of warnings about the points of a line.

    Args:
        points_of_line: returns the points of a line.
        everywhere: kinds that all lines have, which are said below the table.
    """

    def text(line: Any) -> str:
        named = [kind for kind in kinds_of(points_of_line(line)) if kind not in everywhere]
        return ", ".join(SHORT_KINDS.get(kind, kind) for kind in named)

    return Column(label="Warning", text=text, kind="warning")


def kinds_of(points: Sequence[Point]) -> list[str]:
    """Return ``wrong``, then the kinds of warnings about the values of peakmark's kernel."""
    found = set[str]()
    for point in points:
        found.update(filter(None, point.own.warning_kinds.split(", ")))
    return [kind for kind in ("wrong", *SHORT_KINDS) if kind in found]


def common_kinds(points: Sequence[Point]) -> frozenset[str]:
    """Return the kinds of warnings that all of several measured points have."""
    kinds = [frozenset(kinds_of([point])) for point in points if point.is_measured]
    return frozenset.intersection(*kinds) if len(kinds) > 1 else frozenset()


# -- notes


class Footnote(NamedTuple):
    """A letter and the sentence that it stands for."""

    letter: str
    text: str


@dataclass(frozen=True)
class Notes:
    """The notes on some points.

    Attributes:
        letters: note -> its letter; notes that differ in numbers alone share one.
        sentences: letter -> its words.
        common: sentences that hold for all measured points, and have no letter.
        merged: note -> what stands for it, with the number that it has of its own.
    """

    letters: Mapping[Message, str]
    sentences: Mapping[str, Sentence]
    common: tuple[str, ...]
    merged: Mapping[Message, Merged]

    def footnotes(self, more: Callable[[str], str] = lambda _: "") -> tuple[Footnote, ...]:
        """Return what the letters stand for, each remedy once.

        Args:
            more: returns what stands behind the words of a letter.
        """
        footnotes = []
        remedies = set[str]()
        for at, sentence in self.sentences.items():
            text = sentence.fact if sentence.remedy in remedies else str(sentence)
            remedies.add(sentence.remedy)
            footnotes.append(Footnote(at, typeset(closed(f"{text.rstrip('.')}{more(at)}"))))
        return tuple(footnotes)

    def letters_of(self, points: Sequence[Point]) -> str:
        """Return the letters of a line, each once with the line's own number: ``a 11 %, b``."""
        numbers: dict[str, list[Number]] = {}
        for point in points:
            for note in point.remarks:
                if note in self.letters:
                    own = self.merged[note].own
                    numbers.setdefault(self.letters[note], []).extend([own] if own else [])
        texts = []
        for at in sorted(numbers, key=lambda at: (len(at), at)):
            own_range = f" {typeset(between(numbers[at]).text)}" if numbers[at] else ""
            # A letter and its number stay on one line.
            texts.append(f"{at}{own_range}".replace(" ", "\u00a0"))
        return ", ".join(texts)


NO_NOTES = Notes({}, {}, (), {})


def notes_on(table: Table, points: Sequence[Point]) -> Notes:
    """Return the notes on points, with the names that the table has for programs."""
    sentences: dict[Message, str] = {}
    for point in points:
        for note in point.remarks:
            if note not in sentences:
                sentences[note] = str(of_program(table, note, note.sentence))
    common = common_sentences(points, sentences)
    lettered = [note for note, text in sentences.items() if text not in common]
    merged = merge(lettered)
    words = {note: of_program(table, note, form.message.sentence) for note, form in merged.items()}
    letters = {text: letter(place) for place, text in enumerate(dict.fromkeys(words.values()))}
    return Notes(
        letters={note: letters[text] for note, text in words.items()},
        sentences={at: text for text, at in letters.items()},
        common=tuple(f"All rows: {text}" for text in common),
        merged=merged,
    )


def of_program(table: Table, note: Message, sentence: Sentence) -> Sentence:
    """Return the words of a note behind the name of the program that it is about."""
    for program in table.series:
        if program.instrument == note.about:
            return sentence._replace(fact=f"{program.heading}: {sentence.fact}")
    return sentence


def common_sentences(points: Sequence[Point], sentences: Mapping[Message, str]) -> Sequence[str]:
    """Return the sentences that all of several measured points have."""
    said = []
    for point in points:
        if point.is_measured:
            said.append(dict.fromkeys(sentences[note] for note in point.remarks))
    if len(said) < 2:
        return []
    return [text for text in said[0] if all(text in others for others in said[1:])]


def notes_column(notes: Notes, points_of_line: Callable[[Any], Sequence[Point]]) -> Column:
    """Return the column of the letters of notes."""
    return Column(
        label="Notes", text=lambda line: notes.letters_of(points_of_line(line)), kind="notes"
    )


def closed(sentence: str) -> str:
    """Return the sentence with its full stop."""
    return f"{sentence.rstrip('.')}."


def letter(number: int) -> str:
    """Return a, b, ... z, aa, ab, ... for 0, 1, ..."""
    first, last = divmod(number, len(ascii_lowercase))
    return f"{letter(first - 1) if first else ''}{ascii_lowercase[last]}"


# -- tables


@dataclass(frozen=True)
class PrintedTable:
    """A table as cells of text.

    Attributes:
        table: whose rows it shows.
        name: of its file.
        title: of the table.
        columns: one for each text of a line.
        body: texts, line by line.
        breaks: numbers of the lines above which a thin rule stands: the workload changes.
        notes: what the letters stand for.
        remarks: sentences about the whole table, such as why a column is empty.
        reading: how to read it; may be empty.
        shared: notes that hold for all measured rows.
        general: sentences that hold for other tables as well; a report prints them once.
    """

    table: Table
    name: str
    title: str
    columns: tuple[Column, ...]
    body: tuple[tuple[str, ...], ...]
    breaks: tuple[int, ...] = ()
    notes: tuple[Footnote, ...] = ()
    remarks: tuple[str, ...] = ()
    reading: str = ""
    shared: tuple[str, ...] = ()
    general: tuple[str, ...] = ()

    @property
    def full_title(self) -> str:
        """The title behind the resource: ``Disk: throughput``."""
        return replace(self.table, title=self.title).full_title

    def texts(self, kind: str) -> list[str]:
        """Return the texts of the only column of a kind; nothing where there is none."""
        for place, column in enumerate(self.columns):
            if column.kind == kind:
                return [line[place] for line in self.body]
        return []

    @property
    def below(self) -> tuple[str, ...]:
        """What stands below the table about all its rows."""
        return (*self.remarks, *self.general, *self.shared)

    def without(self, is_dropped: Callable[[Column], bool]) -> PrintedTable:
        """Return the table without some columns."""
        kept = [place for place, column in enumerate(self.columns) if not is_dropped(column)]
        columns = tuple(self.columns[place] for place in kept)
        body = []
        for line in self.body:
            body.append(tuple(line[place] for place in kept))
        return replace(self, columns=columns, body=tuple(body))

    def without_notes(self, told_at: str) -> PrintedTable:
        """Return the table of rows whose notes stand below another one.

        Args:
            told_at: title of that table.
        """
        elsewhere = f"Notes on these rows stand below the table “{told_at}”."
        bare = self.without(lambda column: column.kind == "notes")
        return replace(bare, notes=(), shared=(), remarks=(*self.remarks, elsewhere))


def fill(
    columns: Sequence[Column],
    lines: Sequence[Any],
    first_points: Sequence[Point],
    *,
    notes: Notes = NO_NOTES,
    remarks: Sequence[str] = (),
    reading: str = "",
    general: Sequence[str] = (),
    **names: Any,
) -> PrintedTable:
    """Return the table of columns and lines, warnings and notes last.

    A column that is empty in all lines is left out. One that has the same text in all lines is a
    remark.

    Args:
        columns: see ``Column``.
        lines: what the columns take.
        first_points: of each line.
        notes: on the points of all lines.
        remarks, reading, general: see ``PrintedTable``; full stops are added.
        names: ``table``, ``name`` and ``title``.
    """
    kept, texts, once = [], [], []
    for column in sorted(columns, key=lambda column: column.kind in ("warning", "notes")):
        shown = [column.text(line) for line in lines]
        if column.once and len(lines) > 1 and len(set(shown)) == 1:
            if shown[0] not in USUAL:
                once.append(column.once.format(shown[0]))
        elif any(shown) or not lines:
            kept.append(column)
            texts.append(shown)
    return PrintedTable(
        columns=tuple(kept),
        body=tuple(zip(*texts, strict=True)),
        breaks=tuple(breaks_of(first_points)),
        notes=notes.footnotes(),
        remarks=(*once, *typeset_all(remarks)),
        reading=reading and typeset(closed(reading)),
        shared=typeset_all(notes.common),
        general=typeset_all(general),
        **names,
    )


def typeset_all(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return sentences as they are printed, each with its full stop."""
    return tuple(typeset(closed(sentence)) for sentence in sentences)


def breaks_of(points: Sequence[Point]) -> list[int]:
    """Return the numbers of the points at which node, workload or variant change."""
    return changes([(each.own.node, each.own.workload, each.own.variant) for each in points])


def changes(keys: Sequence[object]) -> list[int]:
    """Return the places at which a key differs from the one before."""
    return [place for place in range(1, len(keys)) if keys[place] != keys[place - 1]]


def table(frames: CampaignFrames, table: Table, rows: pd.DataFrame) -> PrintedTable:
    """Return rows of a table as text, numbers with four significant digits.

    Args:
        frames: the campaign, see ``layouts.arrange``.
        table: gives unit, names of programs and title, see ``layouts.table_of``.
        rows: lines of ``frames.rows``, of each point all.
    """
    points = points_of(frames, rows)
    notes = notes_on(table, points)
    instruments = {program.instrument for program in table.series}
    measured = {program for point in points for program in point.measured}
    remarks = remarks_on_gaps(frames, table, points, measured)
    kinds = ", ".join(sorted(common_kinds(points)))
    if kinds:
        remarks.append(f"Warning of all rows: {kinds}")
    general = without_columns(frames, table, points, instruments)
    time = " of a time" if table.unit == "s" else ""
    bounds = [point.own.limit_kind for point in points if has_bound(point.own)]
    general += [message("bounds", case=f"{kind}{time}").text for kind in dict.fromkeys(bounds)]
    return fill(
        columns_of(table, points, notes),
        points,
        points,
        notes=notes,
        remarks=remarks,
        reading=table.remark,
        general=general,
        table=table,
        name=table.name,
        title=table.title,
    )


def nodes_table(frames: CampaignFrames, table: Table, rows: pd.DataFrame) -> PrintedTable:
    """Return the points of many nodes: median, lowest and highest node, and those that are slow.

    Arguments are those of ``table``.
    """
    points = points_of(frames, rows)
    groups = node_groups.group_points(points)
    nodes, noun = {point.own.node for point in points}, node_groups.noun(points)
    notes = notes_on(table, points)

    def where(at: str) -> str:
        """Return the nodes that a note is about in brackets; nothing where it is about all."""
        names = {point.own.node for point in points if has_letter(notes, at, point)}
        if not 0 < len(names) < len(nodes):
            return ""
        return f" (on {counted(sorted(names, key=natural), NAMED)})"

    instruments = {program.instrument for program in table.series}
    remarks = remarks_on_gaps(frames, table, points, instruments)
    places = {(point.own.node_class, node_groups.place_of(point)) for point in points}
    if len(places) > len(groups):
        holes = len(places) - len(groups)
        remarks.append(
            f"{holes} of {len(places)} points were measured on no node, or are wrong on all"
        )
    whole = fill(
        node_columns(table, noun, notes),
        groups,
        [group.middle for group in groups],
        notes=notes,
        remarks=remarks,
        reading=f"A line for each point: {len(nodes)} {noun}. {table.remark}",
        table=table,
        name=f"{table.name}_nodes",
        title=table.title,
    )
    return replace(whole, notes=notes.footnotes(where))


def has_letter(notes: Notes, at: str, point: Point) -> bool:
    """Return whether a note with this letter is about the point."""
    return at in [notes.letters.get(note) for note in point.remarks]


def node_columns(table: Table, noun: str, notes: Notes) -> list[Column]:
    """Return the columns of a table with a line for each point of many nodes."""

    def slow(group: NodeGroup) -> str:
        names = [point.own.node for point in group.slow]
        return counted(names, NAMED) if names else ""

    columns = [replace(column, text=of_middle(column.text)) for column in key_columns(table)]
    columns.append(Column(label="Class", text=attrgetter("node_class")))
    own = f"{table.own.heading}: {of_quantity(table, 'Measured')}"
    for name in ("median", "low", "high"):
        columns.append(Column(label=name, text=group_number(table, name), group=own, kind="number"))
    columns += [
        Column(label="Spread (%)", text=lambda group: percent(group.range), kind="number"),
        Column(label="Slowest", text=lambda group: group.worst.own.node),
    ]
    for program in table.references:
        text = median_text(program.instrument, "value", partial(in_unit, table))
        columns.append(
            Column(label=program.heading, text=text, group="Medians of references", kind="number")
        )
    kernel = table.own.instrument
    columns += [
        Column(
            label=of_quantity(table, "Theoretical"),
            text=median_text(kernel, "limit", partial(in_unit, table)),
            kind="number",
        ),
        Column(label=EFFICIENCY, text=median_text(kernel, "efficiency", percent), kind="number"),
        Column(label=noun.title(), text=lambda group: str(len(group.points)), kind="number"),
        Column(label="Slow", text=slow),
        notes_column(notes, lambda group: group.every),
    ]
    return columns


def of_middle(text: TextOf) -> TextOf:
    """Return the text of points as a text of groups: that of the node in the middle."""
    return lambda group: text(group.middle)


def in_unit(table: Table, value: float) -> str:
    """Return a value in SI units with four digits in the unit of a table."""
    return significant(value * table.factor)


def group_number(table: Table, name: str) -> TextOf:
    """Return the text of a number of groups of nodes in the unit of a table."""
    return lambda group: in_unit(table, getattr(group, name))


def median_text(instrument: str, name: str, form: Callable[[float], str]) -> TextOf:
    """Return the text of the median over nodes of a number that a program has there."""

    def text(group: NodeGroup) -> str:
        lines = [point.measured.get(instrument) for point in group.points]
        values = [getattr(line, name) for line in lines if line is not None]
        known = [value for value in values if value is not None]
        return form(statistics.median(known)) if known else ""

    return text


# -- remarks


def without_columns(
    frames: CampaignFrames, table: Table, points: Sequence[Point], instruments: Collection[str]
) -> list[str]:
    """Return why columns of instruments are empty, as far as they are."""
    measured = {program for point in points for program in point.measured}
    reasons = frames.campaign["empty"]
    sentences = []
    for program in table.series:
        if points and program.instrument in instruments and program.instrument not in measured:
            why = reasons[program.instrument]
            sentences.append(f"No columns of {program.heading}: {why}")
    return sentences


def remarks_on_gaps(
    frames: CampaignFrames,
    table: Table,
    points: Sequence[Point],
    instruments: Collection[str],
    with_limit: bool = True,
) -> list[str]:
    """Return why columns of instruments are empty and limits missing, as far as they are.

    The number of repetitions that were measured again comes first.
    """
    again = 0
    for point in points:
        again += sum(
            line.measured_again for name, line in point.measured.items() if name in instruments
        )
    remarks = [message("measured-again", count=again).text] if again else []
    remarks += without_columns(frames, table, points, instruments)
    reasons = unknown_reasons(points) if with_limit else []
    if reasons:
        case = "partly" if any(point.own.limit is not None for point in points) else ""
        reason = reasons[0] if len(reasons) == 1 else message("formulas-say")
        unknown = message("unknown-limits", case=case, quantity=table.quantity, reason=reason)
        remarks.append(unknown.text)
    return remarks


def unknown_reasons(points: Sequence[Point]) -> list[Message]:
    """Return why points have no limit, each reason once.

    Reasons that differ in the key of the site file alone are one: ``write disk.throughput.RS, .RR
    and .WS in the site file``.
    """
    texts = dict.fromkeys(point.own.limit_reason for point in points if point.own.limit_reason)
    families: dict[Message, list[Any]] = {}
    for text in texts:
        reason = schema.message_of(json.loads(text))
        values = dict(reason.values)
        names: Any = values.pop("names", ())
        family = replace(reason, values=tuple(values.items()))
        families.setdefault(family, []).extend(names)
    reasons = []
    for family, names in families.items():
        reasons.append(replace(family, values=(*family.values, ("names", tuple(names)))))
    return reasons


# -- data of the report's templates

_BREAK = re.compile(
    r"(Theoretical|Standard|Average|Benchmark(?= Run)) | (?=\(|Measured |[Ee]fficiency|bench)"
)


def as_data(grid: PrintedTable) -> dict[str, Any]:
    """Return a table as the report's templates take it.

    It has headings over several columns, thin rules, and numbers padded to their decimal mark.
    """
    head, subhead = headings(grid.columns)
    cells: list[Sequence[Any]] = []
    for place, column in enumerate(grid.columns):
        texts = [line[place] for line in grid.body]
        cells.append(padded(texts) if column.kind == "number" else texts)
    return {
        "name": grid.name,
        "title": f"{grid.full_title}.",
        "reading": grid.reading,
        "columns": [{"kind": column.kind} for column in grid.columns],
        "head": head,
        "subhead": subhead,
        "breaks": list(grid.breaks),
        "body": list(zip(*cells, strict=True)),
        "notes": [[note.letter, note.text] for note in grid.notes],
        "remarks": [*grid.remarks, *grid.shared],
        "general": list(grid.general),
    }


def padded(texts: Sequence[str]) -> list[str | dict[str, str]]:
    """Return numbers with what is missing behind their decimal mark, which is set but not seen."""
    numbers = [text for text in texts if text not in ("", NOT_MEASURED)]
    decimals = {text: len(text.partition(".")[2]) for text in numbers}
    most = max(decimals.values(), default=0)
    cells: list[str | dict[str, str]] = []
    for text in texts:
        missing = most - decimals.get(text, most)
        mark = "." if missing and missing == most else ""
        cell = {"text": text, "pad": f"{mark}{'0' * missing}"}
        cells.append(text if text == NOT_MEASURED else cell)
    return cells


def headings(columns: Sequence[Column]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return two lines of headings.

    The first has groups, and columns that stand alone over both lines; the second has the columns
    in groups.
    """
    grouped = [column.label for column in columns if column.group]
    rows = 2 if grouped else 1
    head: list[dict[str, Any]] = []
    for title, members in groupby(columns, key=attrgetter("group")):
        if title:
            head.append({"title": title, "span": len(list(members)), "rows": 1, "kind": "number"})
            continue
        for column in members:
            label = _BREAK.sub(broken, column.label)
            head.append({"title": label, "span": 1, "rows": rows, "kind": column.kind})
    return head, grouped


def broken(place: re.Match[str]) -> str:
    """Return where a heading goes on in a second line, which makes its column narrower."""
    return f"{place[1] or ''}\n"
