"""Tables as cells of text with the notes below them: what PDF, HTML report and LaTeX show.

``table`` prints rows, and ``nodes_table`` the points of many nodes with the median over the nodes.
``as_data`` turns a printed table into data for the report's templates. The last column has the remarks on
a row in a few words.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import pandas as pd

from peakmark import statistics
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import (
    capitalised,
    counted,
    percent,
    round_bound,
    significant,
    size,
    typeset,
)
from peakmark.messages import Message, WarningKind, message
from peakmark.rows import schema
from peakmark.rows.names import NOT_PLANNED
from peakmark.rows.schema import CampaignFrames
from peakmark.statistics import ENOUGH
from peakmark.tools.tables import Program, Table, count
from peakmark.views import node_groups
from peakmark.views import remarks as row_remarks
from peakmark.views.node_groups import NodeGroup
from peakmark.views.points import Line, Point, points_of

NOT_MEASURED = "not measured"
"""Text in the column of peakmark's kernel if the kernel measured nothing."""
EFFICIENCY = "Efficiency (%)"
PERCENTILES: Mapping[str, str] = {"p50": "p50", "p99": "p99", "p999": "p99.9"}
"""Percentiles that tables show -> their headings."""
USUAL = ("psync", "plain", "pool", "block", "")
"""Variants that are not printed, because they are the default or in the table's title."""
NAMED = 3
"""Largest number of nodes that a line or a note names; further nodes are counted."""
LIMIT_SIGNS = {"limit": "", "at_most": "≤\u00a0", "none": ""}
"""Kind of limit -> sign before the bound of a rate."""
SHARE_SIGNS = {"limit": "", "at_most": "≥\u00a0", "none": ""}
"""Kind of limit -> sign before the share of a bound, and before a bound of a time."""
BOUNDS_OF_RATES = (
    "A value behind ≤ is a bound and no limit: nothing can exceed it, and the limit may be far below"
    " it. What was reached is at least the share behind ≥"
)
BOUNDS_OF_TIMES = (
    "A value behind ≥ is a bound and no limit: no access can be shorter, and the limit may be far above"
    " it. What was reached is at least the share behind ≥"
)
"""Remark on a table of times with bounds. It explains the signs in ``LIMIT_SIGNS`` and ``SHARE_SIGNS``."""
TELLING_BOUND = 0.5
"""A bound is printed if the row reaches at least this share of it: a higher bound shows nothing."""
SAME_CLOCK = 1.03
"""Clocks that differ by at most this factor count as the same clock."""
INTERVAL = "95 % interval"
"""Heading of the confidence interval, which needs at least ``ENOUGH`` repetitions."""

TextOf = Callable[[Any], str]
"""Function that returns the text of a cell from a line of the table: a point or a group of nodes."""


# -- columns


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a printed table.

    Attributes:
        label: heading.
        text: function that returns the text of a line's cell.
        group: heading over all neighbouring columns of the same group.
        kind: text, number or remark.
        once: sentence that replaces the column if all lines have the same text.
        on_paper: whether the PDF has room for the column; HTML has all columns.
    """

    label: str
    text: TextOf
    group: str = ""
    kind: str = "text"
    once: str = ""
    on_paper: bool = True


def of_quantity(table: Table, kind: str) -> str:
    """Return the heading of a kind of values of a table: ``Measured Throughput (GB/sec)``."""
    return f"{kind} {table.quantity}{unit_of(table)}"


def unit_of(table: Table) -> str:
    """Return the unit of a table in brackets, to follow a heading; empty without a unit."""
    return f" ({table.shown})" if table.shown else ""


def if_known(value: float | None, form: Callable[[float], str]) -> str:
    """Return a number as text; empty if the number is unknown."""
    return "" if value is None else form(value)


def in_unit(table: Table, value: float, digits: int = 4) -> str:
    """Return a value in SI units as a number in the unit of a table."""
    return significant(value * table.factor, digits)


def own_column(label: str, name: str, form: Callable[[float], str], group: str = "") -> Column:
    """Return a column that prints one number from the row of peakmark's kernel.

    Args:
        label: heading.
        name: column of ``rows``.
        form: function that formats the number.
        group: see ``Column``.
    """

    def text(point: Point) -> str:
        return if_known(getattr(point.own, name), form)

    return Column(label=label, text=text, group=group, kind="number")


def has_percentiles(table: Table) -> bool:
    """Return whether the rows are times of single operations: accesses or round trips."""
    return table.metric == "latency" and table.subsystem != "memory"


def columns_of(table: Table, points: Sequence[Point]) -> list[Column]:
    """Return all columns of a table except the remarks."""
    columns = [*place_columns(points), *key_columns(table, with_meaning=True)]
    columns += [measured_column(table, program) for program in table.series]
    columns.append(theoretical_column(table))
    columns.append(efficiency_column(table.own))
    for program in table.references:
        columns.append(replace(efficiency_column(program), on_paper=False))
    if table.name == "cpu":
        columns += clock_columns(points)
    if any(point.own.joules is not None for point in points):
        columns += energy_columns(table)
    columns += spread_columns(table, points)
    if has_percentiles(table):
        columns += percentile_columns(table, points)
    return columns


def place_columns(points: Sequence[Point]) -> list[Column]:
    """Return the column of nodes or pairs of nodes; an empty list if one node measured all points."""
    label = place_label(points)
    if not label:
        return []
    return [Column(label=label, text=lambda point: place([point]))]


def place_label(points: Sequence[Point]) -> str:
    """Return the heading of the column of nodes; empty if one node measured all points."""
    if any(point.endpoints for point in points):
        return "Client → server"
    nodes = {point.own.node for point in points}
    return "Node" if len(nodes) > 1 else ""


def place(points: Sequence[Point]) -> str:
    """Return where a line's points were measured: ``node1``, ``client → server`` or ``3 pairs``."""
    pairs = set[tuple[str, str]]()
    for point in points:
        pairs.update(point.endpoints)
    if len(pairs) > 1:
        return f"{len(pairs)} pairs"
    if pairs:
        return " → ".join(pairs.pop())
    return str(points[0].own.node)


def key_columns(table: Table, *, with_meaning: bool = False) -> list[Column]:
    """Return the columns of workload and concurrency, and of the block and variant if there are any.

    Args:
        table: the table.
        with_meaning: whether to explain each workload: ``RWS, sequential copies``.
    """

    def workload(point: Point) -> str:
        label = table.workload_label(point.own.workload)
        meaning = message("workload", case=point.own.workload).fact
        return f"{label}, {meaning}" if with_meaning else label

    def block(point: Point) -> str:
        return size(point.own.block_bytes or None) or table.unsized

    columns = [
        Column(label=table.first, text=workload),
        Column(label=counted_heading(table), text=concurrency, kind="number"),
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


def counted_heading(table: Table) -> str:
    """Return the heading of the column of concurrencies, such as ``Threads`` or ``Streams``."""
    return f"{capitalised(SUBSYSTEMS[table.subsystem].counted)}s"


def concurrency(point: Point) -> str:
    """Return the number of threads, with the word that the configuration asks for."""
    return str(count(point.own.concurrency, point.own.concurrency_word))


def measured_column(table: Table, program: Program) -> Column:
    """Return the column of a program's values, with ``not measured`` for a gap of peakmark's kernel."""

    def text(point: Point) -> str:
        line = point.measured.get(program.instrument)
        if line is not None:
            # Print no digit below the program's resolution.
            step = (line.resolution or 0.0) * table.factor
            return significant(line.value * table.factor, step=step)
        return NOT_MEASURED if program is table.own else ""

    group = of_quantity(table, "Measured")
    return Column(label=program.heading, text=text, group=group, kind="number")


def theoretical_column(table: Table) -> Column:
    """Return the column of limits. A bound is printed with a sign before it.

    A rate is at most its bound, a time at least.
    """

    def text(point: Point) -> str:
        own = point.own
        if own.limit is not None:
            return in_unit(table, own.limit)
        if not has_bound(own):
            return ""
        is_rate = own.unit != "s"
        rounded = round_bound(own.bound * table.factor, 3, is_upper=is_rate)
        signs = LIMIT_SIGNS if is_rate else SHARE_SIGNS
        return f"{signs[own.limit_kind]}{significant(rounded, 3)}"

    return Column(label=of_quantity(table, "Theoretical"), text=text, kind="number")


def efficiency_column(program: Program) -> Column:
    """Return the column of shares of the limit. A share of a bound is printed with a sign before it."""

    def text(point: Point) -> str:
        line = point.measured.get(program.instrument)
        if line is None:
            return ""
        if line.limit_kind == "limit":
            return if_known(line.efficiency, percent)
        if line.share is None or not has_bound(point.own):
            return ""
        least = round_bound(100 * line.share, 2, is_upper=False)
        return f"{SHARE_SIGNS[line.limit_kind]}{significant(least, 2)}"

    return Column(label=program.heading, text=text, group=EFFICIENCY, kind="number")


def has_bound(own: Line) -> bool:
    """Return whether the bound of a row is printed: the row reaches at least half of it."""
    return own.bound is not None and own.share is not None and own.share >= TELLING_BOUND


def clock_columns(points: Sequence[Point]) -> list[Column]:
    """Return the column of the clock during the work; an empty list if all clocks are equal.

    An equal clock needs no column, because page one states it.
    """
    clocks = [point.own.clock_hz for point in points if point.own.clock_hz]
    if not clocks or max(clocks) <= SAME_CLOCK * min(clocks):
        return []
    return [own_column("Clock (GHz)", "clock_hz", gigahertz)]


def gigahertz(hertz: float) -> str:
    """Return a clock in GHz with three significant digits."""
    return significant(hertz / 1e9, 3)


def energy_columns(table: Table) -> list[Column]:
    """Return the column of the node's energy and, for rates, the column of the work per joule."""

    def rate(point: Point) -> str:
        own = point.own
        return in_unit(table, own.value / own.watts) if own.watts else ""

    columns = [own_column("J", "joules", significant, "Energy")]
    if not table.lower_is_better:
        columns.append(Column(label=per_joule(table), text=rate, group="Energy", kind="number"))
    return columns


def per_joule(table: Table) -> str:
    """Return the unit of work per joule, such as ``GB/J``."""
    work, _, _ = table.shown.partition("/")
    return f"{work.removesuffix('S') or '1'}/J"


def spread_columns(table: Table, points: Sequence[Point]) -> list[Column]:
    """Return the columns of peakmark's kernel on its repetitions and their spread.

    With at least ``ENOUGH`` repetitions, the spread is the standard deviation and the 95 % interval. With
    fewer, it is the lowest and the highest run, because an interval would have no useful level.
    """
    columns = []
    runs = {point.own.n for point in points if point.own.n}
    # If all rows have as many repetitions, page one states the number.
    if len(runs) > 1:
        columns.append(Column(label="n", text=lambda point: str(point.own.n or ""), kind="number"))
    form = partial(in_unit, table)
    if min(runs, default=0) < ENOUGH:
        columns += [own_column("lowest", "min", form), own_column("highest", "max", form)]
        return columns
    # For times, the percentiles replace the standard deviation: paper has no room for both.
    if not has_percentiles(table):
        columns.append(own_column("Standard Deviation", "sd", partial(in_unit, table, digits=3)))
    columns += [
        own_column("low", "low", form, INTERVAL),
        own_column("high", "high", form, INTERVAL),
    ]
    return columns


def percentile_columns(table: Table, points: Sequence[Point]) -> list[Column]:
    """Return the columns of percentiles, with intervals if the repetitions have histograms."""
    interval, kind = "", "number"
    if any(point.own.p50_low is not None for point in points):
        interval, kind = " (lowest–highest run)", "text"
        if min(point.own.n for point in points) >= ENOUGH:
            interval = f" with {INTERVAL}"
    group = f"Percentiles{interval} ({table.shown})"
    columns = []
    for name, label in PERCENTILES.items():
        text = partial(percentile, table, name)
        columns.append(Column(label=label, text=text, group=group, kind=kind))
    return columns


def percentile(table: Table, name: str, point: Point) -> str:
    """Return a percentile with its interval, such as ``43.2 (31–54)``, or without one."""
    value = getattr(point.own, name)
    low, high = getattr(point.own, f"{name}_low"), getattr(point.own, f"{name}_high")
    if value is None:
        return ""
    if low is None or high is None:
        return in_unit(table, value)
    return f"{in_unit(table, value, 3)} ({in_unit(table, low, 2)}–{in_unit(table, high, 2)})"


def marks_of(points: Sequence[Point]) -> str:
    """Return the kinds of warnings about the values of peakmark's kernel, with ``wrong`` first."""
    found = set[str]()
    for point in points:
        found.update(point.own.warning_kinds.split(", "))
    return ", ".join(kind for kind in ("wrong", *WarningKind) if kind in found)


def closed(sentence: str) -> str:
    """Return the sentence with its full stop."""
    return f"{sentence.rstrip('.')}."


# -- tables


@dataclass(frozen=True)
class PrintedTable:
    """A table as cells of text.

    Attributes:
        table: table whose rows are printed.
        name: name of the printed table's file.
        title: title of the printed table.
        columns: columns in their order.
        body: texts of the cells, line by line.
        breaks: numbers of the lines with a thin rule above them, where the workload changes.
        marks: kinds of warnings of each line, in words.
        whole_remarks: all remarks of each line whose cell counts some; empty for other lines.
        remarks: sentences about the whole table, such as why a column is empty.
        reading: how to read the table; may be empty.
        general: sentences that hold for other tables too; a report prints them once.
    """

    table: Table
    name: str
    title: str
    columns: tuple[Column, ...]
    body: tuple[tuple[str, ...], ...]
    breaks: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    whole_remarks: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    reading: str = ""
    general: tuple[str, ...] = ()

    @property
    def full_title(self) -> str:
        """Return the title with the resource before it: ``Disk: throughput``."""
        return replace(self.table, title=self.title).full_title

    @property
    def below(self) -> tuple[str, ...]:
        """Return the sentences below the table that are about the whole table."""
        return (*self.remarks, *self.general)

    def without(self, is_dropped: Callable[[Column], bool]) -> PrintedTable:
        """Return the table without some columns."""
        kept = [place for place, column in enumerate(self.columns) if not is_dropped(column)]
        columns = tuple(self.columns[place] for place in kept)
        body = []
        for line in self.body:
            body.append(tuple(line[place] for place in kept))
        return replace(self, columns=columns, body=tuple(body))


def fill(
    table: Table,
    columns: Sequence[Column],
    lines: Sequence[Any],
    points_of_lines: Sequence[Sequence[Point]],
    *,
    instruments: Collection[str] = (),
    remarks: Sequence[str] = (),
    reading: str = "",
    general: Sequence[str] = (),
    name: str = "",
    title: str = "",
) -> PrintedTable:
    """Return the printed table of columns and lines, with the remarks on the lines in the last column.

    A column that is empty in all lines is left out. A column with ``once`` and the same text in all
    lines becomes a sentence below the table; a text in ``USUAL`` is left out without a sentence. A
    remark that all lines have becomes a sentence too.

    Args:
        table: table whose rows are printed.
        columns: columns of the printed table.
        lines: lines from which ``Column.text`` makes the cells.
        points_of_lines: the points of each line.
        instruments: programs whose remarks are printed; by default all of the table.
        remarks, reading, general: see ``PrintedTable``; full stops are added.
        name, title: see ``PrintedTable``; by default those of ``table``.
    """
    kept, texts, once = fill_columns(columns, lines)
    # Add the column of remarks. A remark that all lines have becomes a sentence.
    shown_programs = instruments or [program.instrument for program in table.series]
    on_lines = [row_remarks.texts_of(points, table, shown_programs) for points in points_of_lines]
    everywhere = row_remarks.common(on_lines)
    if everywhere:
        once.append(f"All rows: {'; '.join(everywhere)}.")
    cells, whole_remarks = [], []
    for each in on_lines:
        cell = row_remarks.cell_of(each, everywhere)
        whole = row_remarks.cell_of(each, everywhere, most=len(each))
        cells.append(cell)
        whole_remarks.append(whole if whole != cell else "")
    if any(cells):
        kept.append(Column(label="Remark", text=str, kind="remark"))
        texts.append(cells)
    # Begin a group of lines where the node, the workload or the variant changes.
    first_points = [points[0] for points in points_of_lines]
    places = [(each.own.node, each.own.workload, each.own.variant) for each in first_points]
    return PrintedTable(
        table=table,
        name=name or table.name,
        title=title or table.title,
        columns=tuple(kept),
        body=tuple(zip(*texts, strict=True)),
        breaks=tuple(changes(places)),
        marks=tuple(marks_of(points) for points in points_of_lines),
        whole_remarks=tuple(whole_remarks),
        remarks=(*once, *typeset_all(remarks)),
        reading=reading and typeset(closed(reading)),
        general=typeset_all(general),
    )


def fill_columns(
    columns: Sequence[Column], lines: Sequence[Any]
) -> tuple[list[Column], list[list[str]], list[str]]:
    """Return the columns to print, their texts line by line, and the sentences that replace columns.

    ``fill`` explains which columns are left out.
    """
    kept, texts, once = [], [], []
    for column in columns:
        shown = [column.text(line) for line in lines]
        if column.once and len(lines) > 1 and len(set(shown)) == 1:
            if shown[0] not in USUAL:
                once.append(column.once.format(shown[0]))
        elif any(shown) or not lines:
            kept.append(column)
            texts.append(shown)
    return kept, texts, once


def typeset_all(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return sentences as they are printed, each with its full stop."""
    return tuple(typeset(closed(sentence)) for sentence in sentences)


def changes(keys: Sequence[object]) -> list[int]:
    """Return the positions of the keys that differ from the previous key."""
    return [place for place in range(1, len(keys)) if keys[place] != keys[place - 1]]


def table(frames: CampaignFrames, table: Table, rows: pd.DataFrame) -> PrintedTable:
    """Return rows of a table as text, numbers with four significant digits.

    Args:
        frames: the campaign, see ``layouts.for_print``.
        table: table with the printed unit, names of programs and title, see ``layouts.table_of``.
        rows: rows of the table, with the rows of all programs.
    """
    points = points_of(frames, rows)
    instruments = {program.instrument for program in table.series}
    remarks = remarks_on_gaps(frames, table, points, measured_instruments(points))
    general = without_columns(frames, table, points, instruments)
    if any(has_bound(point.own) for point in points):
        general.append(BOUNDS_OF_TIMES if table.unit == "s" else BOUNDS_OF_RATES)
    return fill(
        table,
        columns_of(table, points),
        points,
        [[point] for point in points],
        remarks=remarks,
        reading=table.remark,
        general=general,
    )


def nodes_table(frames: CampaignFrames, table: Table, rows: pd.DataFrame) -> PrintedTable:
    """Return the points of many nodes: median, lowest and highest node, and the slow nodes.

    Arguments are those of ``table``.
    """
    points = points_of(frames, rows)
    groups = node_groups.group_points(points)
    nodes, noun = {point.own.node for point in points}, node_groups.noun(points)
    instruments = {program.instrument for program in table.series}
    remarks = remarks_on_gaps(frames, table, points, instruments)
    places = {(point.own.node_class, node_groups.place_of(point)) for point in points}
    if len(places) > len(groups):
        holes = len(places) - len(groups)
        remarks.append(
            f"{holes} of {len(places)} points were measured on no node, or are wrong on all"
        )
    return fill(
        table,
        node_columns(table, noun),
        groups,
        [group.every for group in groups],
        remarks=remarks,
        reading=f"One line for each point, over {len(nodes)} {noun}. {table.remark}",
        name=f"{table.name}_nodes",
    )


def node_columns(table: Table, noun: str) -> list[Column]:
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
    ]
    return columns


def of_middle(text: TextOf) -> TextOf:
    """Return a function that returns the text of the middle node of a group."""
    return lambda group: text(group.middle)


def group_number(table: Table, name: str) -> TextOf:
    """Return a function that returns the attribute ``name`` of a group in the unit of a table."""
    return lambda group: in_unit(table, getattr(group, name))


def median_text(instrument: str, name: str, form: Callable[[float], str]) -> TextOf:
    """Return a function that returns the median of a column over the nodes of a group, as text.

    Args:
        instrument: program whose rows are used.
        name: column of ``rows``.
        form: function that formats the median.
    """

    def text(group: NodeGroup) -> str:
        values = []
        for point in group.points:
            if instrument in point.measured:
                values.append(getattr(point.measured[instrument], name))
        known = [value for value in values if value is not None]
        return form(statistics.median(known)) if known else ""

    return text


# -- remarks


def measured_instruments(points: Sequence[Point]) -> set[str]:
    """Return the instruments that measured at least one of the points."""
    return set().union(*[point.measured for point in points])


def without_columns(
    frames: CampaignFrames, table: Table, points: Sequence[Point], instruments: Collection[str]
) -> list[str]:
    """Return the reasons why columns of ``instruments`` are empty, except those that were not planned."""
    if not points:
        return []
    empty = set(instruments) - measured_instruments(points)
    sentences = []
    for program in table.series:
        if program.instrument in empty:
            why = frames.campaign["empty"][program.instrument]
            if why != NOT_PLANNED:
                sentences.append(f"No columns of {program.heading}: {why}")
    return sentences


def remarks_on_gaps(
    frames: CampaignFrames,
    table: Table,
    points: Sequence[Point],
    instruments: Collection[str],
    with_limit: bool = True,
) -> list[str]:
    """Return the number of repetitions measured again, and why columns are empty and limits missing.

    Args:
        frames: the campaign.
        table: table with the printed names of programs.
        points: points of the table.
        instruments: programs that have a column in the table.
        with_limit: whether the table has columns of limits.
    """
    again = 0
    for point in points:
        for name, line in point.measured.items():
            if name in instruments:
                again += line.measured_again
    remarks = []
    if again:
        remarks.append(message("measured-again", count=again).text)
    remarks += without_columns(frames, table, points, instruments)
    reasons = unknown_reasons(points)
    if with_limit and reasons:
        where = ""
        if any(point.own.limit is not None for point in points):
            where = " in the empty cells"
        reason = "the HTML report lists the reasons with the formulas"
        if len(reasons) == 1:
            reason = reasons[0].fact
        remarks.append(f"Theoretical {table.quantity} is unknown{where}: {reason}")
    return remarks


def unknown_reasons(points: Sequence[Point]) -> list[Message]:
    """Return the different reasons why points have no limit.

    Reasons that differ only in the key of the site file are merged: ``write disk.throughput.RS, .RR
    and .WS in the site file``.
    """
    texts = dict.fromkeys(point.own.limit_reason for point in points)
    families: dict[Message, list[Any]] = defaultdict(list)
    for text in filter(None, texts):
        reason = schema.message_of(json.loads(text))
        values = dict(reason.values)
        names: Any = values.pop("names", ())
        families[replace(reason, values=tuple(values.items()))] += names
    reasons = []
    for family, names in families.items():
        reasons.append(replace(family, values=(*family.values, ("names", tuple(names)))))
    return reasons


# -- data of the report's templates

_BREAK = re.compile(
    r"(Theoretical|Standard|Average|Benchmark(?= Run)) | (?=\(|Measured |[Ee]fficiency|bench)"
)


def as_data(grid: PrintedTable) -> dict[str, Any]:
    """Return a table for the report's templates.

    The data have headings over several columns, thin rules, and numbers aligned at their decimal marks.
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
        "columns": [{"kind": each.kind, "label": whole_label(each)} for each in grid.columns],
        "head": head,
        "subhead": subhead,
        "breaks": list(grid.breaks),
        "body": list(zip(*cells, strict=True)),
        "marks": list(grid.marks),
        "whole_remarks": list(grid.whole_remarks),
        "remarks": list(grid.remarks),
        "general": list(grid.general),
    }


def whole_label(column: Column) -> str:
    """Return the heading of a column with that of its group."""
    if column.group:
        return f"{column.group}, {column.label}"
    return column.label


def padded(texts: Sequence[str]) -> list[str | dict[str, str]]:
    """Return numbers with an invisible padding that aligns their decimal marks.

    The padding fills a number up to the largest number of decimals: ``.00`` after 12, ``0`` after 1.2.
    """
    lengths = []
    for text in texts:
        whole, _, _ = text.partition(".")
        lengths.append(len(text) - len(whole))
    most = max(lengths, default=0)
    padding = ".".ljust(most, "0")[:most]
    cells: list[str | dict[str, str]] = []
    for text, length in zip(texts, lengths, strict=True):
        if text == NOT_MEASURED:
            cells.append(text)
        else:
            cells.append({"text": text, "pad": padding[length:] if text else ""})
    return cells


def headings(columns: Sequence[Column]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return two lines of headings.

    The first line has the headings of groups, and those of columns without a group, which span both
    lines. The second line has the headings of the columns in groups.
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
    """Return a match of ``_BREAK`` with a line break, which makes the heading's column narrower."""
    return f"{place[1] or ''}\n"
