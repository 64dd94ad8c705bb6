"""The columns of a table, each once: its heading and values in the CSV file, its label and texts in
print.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from peakmark import histograms, limits
from peakmark.analysis.analysis import CLOCKS, published_names
from peakmark.analysis.row import Percentile, Row, Series
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import percent, significant, size
from peakmark.messages import Severity, WarningKind, worst
from peakmark.tables.footnotes import Notes
from peakmark.tools.tables import Program, Table, count
from peakmark.units import format_size

NOT_MEASURED = "not measured"
ENDS = ("Client", "Server")
EFFICIENCY = "Efficiency (%)"

Value = str | int | float | None
ValueOf = Callable[[Any], Value]
TextOf = Callable[[Any], str]
"""Of a row, or of what else stands in a line."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        heading: in the CSV file; empty where the file does not have the column.
        value: of a row, in the unit of the table with full precision; None where it has none.
        label: in print; empty where print does not have the column.
        group: columns of the same group stand beside each other under one heading.
        kind: text, number, warning or notes.
        form: of a value, in print.
        in_print: of a line, where print has another text than the value in its form.
        once: the sentence that stands for the column in print where all rows have the same in it.
        meaning: what stands in it, for the documentation of the CSV file.
    """

    heading: str = ""
    value: ValueOf = lambda _: None
    label: str = ""
    group: str = ""
    kind: str = "text"
    form: TextOf = str
    in_print: TextOf | None = None
    once: str = ""
    meaning: str = ""

    def text(self, line: Any) -> str:
        """What stands in it in print."""
        if self.in_print:
            return self.in_print(line)
        value = self.value(line)
        return "" if value is None else self.form(value)


def numbers(label: str, text: TextOf, group: str = "") -> Column:
    """A column of numbers that only print has."""
    return Column(label=label, group=group, kind="number", in_print=text)


def words(label: str, text: TextOf) -> Column:
    """A column of words that only print has."""
    return Column(label=label, in_print=text)


def of_quantity(table: Table, kind: str) -> str:
    """``Measured Throughput (GB/sec)``: the heading of a kind of values of a table."""
    return f"{kind} {table.quantity}{_unit(table)}"


def _unit(table: Table) -> str:
    return f" ({table.shown})" if table.shown else ""


def columns(table: Table, rows: Sequence[Row], notes: Notes) -> list[Column]:
    """All columns of a table in the order of the CSV file."""
    return [
        *place_columns(rows),
        *key_columns(table),
        *(measured_column(table, program) for program in table.series),
        theoretical_column(table),
        *(efficiency_column(program) for program in table.series),
        *(_clock() if table.name == "cpu" else ()),
        *(_energy(table) if any(map(_joules(table), rows)) else ()),
        *_spread(table, rows),
        Column("Limit Kind", lambda row: row.limit.kind),
        Column(f"Bound{_unit(table)}", partial(_times, table.factor, lambda row: row.limit.bound)),
        warning_column(lambda row: [row], common_kinds(rows)),
        *(published(name, table, table.factor) for name in published_names(rows)),
        *(_at_clock(name) for name in CLOCKS if SUBSYSTEMS[table.subsystem].pinned),
        *(_end(place) for place in range(len(ENDS)) if table.subsystem == "network"),
        Column(
            "Notes",
            lambda row: "; ".join(row.said(row.warnings)),
            "Notes",
            kind="notes",
            in_print=lambda row: notes.warnings([row]),
            meaning="All warnings of the row, with their remedies.",
        ),
        *(_percentiles(table, rows) if has_percentiles(table) else ()),
    ]


def through(every: Sequence[Column], row: Callable[[Any], Row]) -> list[Column]:
    """Columns of rows as columns of lines of another kind.

    Args:
        every: columns of rows.
        row: of a line, the row that speaks for it.
    """

    def of(text: TextOf) -> TextOf:
        return lambda line: text(row(line))

    return [replace(column, in_print=of(column.text)) for column in every]


def printed(every: Sequence[Column]) -> list[Column]:
    """The columns that print has; warning and notes stand last."""
    shown = [column for column in every if column.label]
    return sorted(shown, key=lambda column: column.kind in ("warning", "notes"))


def place_columns(rows: Sequence[Row]) -> list[Column]:
    """Where a row was measured, as far as rows differ in it."""
    several = len({row.key.node for row in rows}) > 1
    label = place_label(rows)
    column = Column(
        "Node" if several else "",
        _node,
        label,
        in_print=lambda row: place([row]),
        meaning="Node that was measured; only where there are several.",
    )
    return [column] if several or label else []


def place_label(rows: Sequence[Row]) -> str:
    """Label of the column that says where rows were measured; empty where all were on one node."""
    if any(row.endpoints for row in rows):
        return "Client → server"
    return "Node" if len({row.key.node for row in rows}) > 1 else ""


def place(rows: Sequence[Row]) -> str:
    """Where the rows of one line were measured: ``node1``, ``node1 → node2`` from client to server,
    or how many pairs.
    """
    pairs = sorted({pair for row in rows for pair in row.endpoints})
    if len(pairs) > 1:
        return f"{len(pairs)} pairs"
    return " → ".join(pairs[0]) if pairs else rows[0].key.node


def _node(row: Row) -> str:
    return row.key.node


def warning_column(
    rows_of: Callable[[Any], Sequence[Row]], everywhere: Collection[str] = ()
) -> Column:
    """What kinds of warnings there are about the rows of a line.

    Args:
        rows_of: the rows of a line.
        everywhere: kinds that all lines have, which print says below the table.
    """

    def kinds(line: Any) -> str:
        return warning_kinds(rows_of(line))

    def shown(line: Any) -> str:
        named = (kind for kind in _kinds(rows_of(line)) if kind not in everywhere)
        return ", ".join(getattr(kind, "short", kind) for kind in named)

    meaning = "Kinds of the warnings: wrong, varies, programs disagree, not the device."
    return Column("Warning", kinds, "Warning", kind="warning", in_print=shown, meaning=meaning)


def warning_kinds(rows: Sequence[Row]) -> str:
    """``varies, not the device``: the kinds of warnings about rows."""
    return ", ".join(_kinds(rows))


def common_kinds(rows: Sequence[Row]) -> frozenset[str]:
    """Kinds of warnings that all of several measured rows have."""
    kinds = [frozenset(_kinds([row])) for row in rows if row.own is not None]
    return frozenset.intersection(*kinds) if len(kinds) > 1 else frozenset()


def _kinds(rows: Sequence[Row]) -> list[str]:
    """``wrong``, then the kinds of warnings about the own kernel's figures. What the whole campaign
    shares is left out.
    """
    every = [note for row in rows for note in row.warnings_of(row.table.own.instrument)]
    named = {note.kind for note in every if note.is_named and not note.is_shared}
    wrong = [Severity.WRONG] if worst(every) is Severity.WRONG else []
    return [*wrong, *(kind for kind in WarningKind if kind in named)]


def key_columns(table: Table) -> list[Column]:
    """What makes a row: workload, concurrency, block and variant."""

    def workload(row: Row) -> str:
        return table.workload_label(row.key.workload)

    def concurrency(row: Row) -> int | str:
        return count(row.key.concurrency, row.key.word)

    def block(row: Row) -> str:
        return table.unsized if row.key.block is None else format_size(row.key.block)

    def variant(row: Row) -> str:
        return table.variant_label(row.key.variant)

    every = [
        Column(table.first, workload, table.first, meaning="What was measured."),
        Column(
            "Concurrency",
            concurrency,
            "Concurrency",
            kind="number",
            meaning="Threads, processes or streams.",
        ),
    ]
    if table.block:
        meaning = "Bytes of one block, record or message."
        once = f"{table.block}: {{}}."
        every.append(
            Column(
                table.block,
                block,
                table.block,
                kind="number",
                in_print=lambda row: size(row.key.block) or table.unsized,
                once=once,
                meaning=meaning,
            )
        )
    if table.variant:
        once = f"{table.variant.capitalize()}: {{}}."
        meaning = "Which way of doing it: the working set, the engine or the mode."
        every.append(Column(table.variant, variant, table.variant, once=once, meaning=meaning))
    return every


def of_series(
    program: Program, value: Callable[[Series], float | None]
) -> Callable[[Row], float | None]:
    """What a program has in a row, None where it did not measure it."""

    def of(row: Row) -> float | None:
        series = row.series.get(program.instrument)
        return value(series) if series else None

    return of


def quantity_column(
    table: Table,
    label: str,
    of: Callable[[Any], float | None],
    group: str = "",
    heading: str = "",
    meaning: str = "",
) -> Column:
    """A column of values in SI units, shown in the unit of the table with four digits."""

    value = partial(_times, table.factor, of)
    return Column(heading or label, value, label, group, "number", significant, meaning=meaning)


def measured_column(table: Table, program: Program) -> Column:
    """What a program measured; a hole of the own kernel is named."""
    hole = NOT_MEASURED if program is table.own else ""

    def text(row: Row) -> str:
        series = row.series.get(program.instrument)
        if series is None:
            return hole
        return significant(series.centre * table.factor, step=series.step * table.factor)

    value = partial(_times, table.factor, of_series(program, lambda series: series.centre))
    group = of_quantity(table, "Measured")
    heading = f"{program.heading} {group}"
    meaning = f"Median of what {program.heading} measured; the mean with report.summary: mean."
    return Column(heading, value, program.heading, group, "number", in_print=text, meaning=meaning)


def theoretical_column(table: Table) -> Column:
    """The limit; print has a bound in its place, with a sign before it."""
    meaning = "Theoretical limit; empty where it is unknown."
    heading = of_quantity(table, "Theoretical")
    limit = quantity_column(table, heading, lambda row: row.limit.value, meaning=meaning)

    def text(row: Row) -> str:
        bound = row.limit.bound
        if bound is None:
            return limit.text(row)
        signs = SIGNS if row.limit.unit != "s" else SHARE_SIGNS
        rounded = float(f"{bound * table.factor:.3g}")
        return f"{signs[row.limit.kind]}{significant(rounded, 3)}"

    return replace(limit, in_print=text)


SIGNS = {"limit": "", "at_most": "≤\u00a0", "best_seen": "≥\u00a0", "none": ""}
"""What stands before a bound: the limit is at most, or at least as high as it; of times the other
way round.
"""
SHARE_SIGNS = {"limit": "", "at_most": "≥\u00a0", "best_seen": "≤\u00a0", "none": ""}
"""What stands before the share of a bound: the efficiency is at least, or at most this share."""


def efficiency_column(program: Program) -> Column:
    """What share of the limit a program reaches; print has that of a bound, with a sign before
    it.
    """
    centre = of_series(program, lambda series: series.centre)

    def text(row: Row) -> str:
        share = limits.share(centre(row) or 0.0, row.limit)
        if share is None:
            return ""
        sign = SHARE_SIGNS[row.limit.kind]
        return f"{sign}{significant(100 * share, 2)}" if sign else percent(share)

    return Column(
        f"{program.heading} {EFFICIENCY}",
        partial(_times, 100, of_series(program, lambda series: series.efficiency)),
        program.heading,
        EFFICIENCY,
        "number",
        in_print=text,
        meaning=f"Share of the limit that {program.heading} reaches.",
    )


def _times(factor: float, of: Callable[[Any], float | None], row: Any) -> float | None:
    """A number of a row in the unit that is shown, None where the row has none."""
    number = of(row)
    return None if number is None else number * factor


def _spread(table: Table, rows: Sequence[Row]) -> list[Column]:
    """Standard deviation, number of repetitions, and interval of the median of the own kernel."""
    deviation = partial(
        _times, table.factor, of_series(table.own, lambda series: series.summary.stdev)
    )
    group = interval_label(rows)

    def repetitions(row: Row) -> int:
        return row.own.summary.n if row.own else 0

    low = of_series(table.own, lambda series: series.summary.low)
    high = of_series(table.own, lambda series: series.summary.high)
    level = of_series(table.own, lambda series: series.summary.level)
    label = "Standard Deviation"
    return [
        # Percentiles say more of times, and print has no room for both.
        Column(
            label,
            deviation,
            "" if has_percentiles(table) else label,
            "",
            "number",
            partial(significant, digits=3),
            meaning="Of the own kernel's repetitions, with n - 1.",
        ),
        Column(
            "n",
            repetitions,
            "n",
            kind="number",
            form=lambda count: str(count or ""),
            once="n = {} in all rows.",
            meaning="Repetitions of the own kernel.",
        ),
        quantity_column(table, "low", low, group, "Interval of the median, low", "Its lower end."),
        quantity_column(
            table, "high", high, group, "Interval of the median, high", "Its upper end."
        ),
        Column(
            "Level of the interval (%)",
            partial(_times, 100, level),
            meaning="Below 95 with fewer than six repetitions.",
        ),
    ]


def interval_label(rows: Sequence[Row]) -> str:
    """``95 % interval``, or what the number of repetitions allows: ``75 to 95 % interval``."""
    levels = sorted(
        {int(100 * row.own.summary.level) for row in rows if row.own and row.own.summary.n > 1}
    )
    capped = list(dict.fromkeys(min(level, 95) for level in levels)) or [95]
    if len(capped) == 1:
        return f"{capped[0]} % interval"
    return f"{capped[0]} to {capped[-1]} % interval"


def published(name: str, table: Table, factor: float) -> Column:
    """What a published set has in a row; ``factor`` leads to the unit that is shown."""

    value = partial(_times, factor, lambda row: row.published.get(name))

    def form(known: float) -> str:
        shown = significant(known)
        # 7 was printed as 7: zeros behind the point would claim a precision that nobody had.
        return shown.rstrip("0").rstrip(".") if "." in shown else shown

    group = of_quantity(table, "Published")
    meaning = "Value of the published set of this name."
    return Column(f"{name}: {group}", value, name, group, "number", form, meaning=meaning)


def has_percentiles(table: Table) -> bool:
    """Whether the rows are times of single operations: accesses or round trips."""
    return table.metric == "latency" and table.subsystem != "memory"


def _percentiles(table: Table, rows: Sequence[Row]) -> Iterator[Column]:
    """Percentiles of the own kernel, with their intervals where repetitions have histograms; print
    has both in one column.
    """
    counted = any(row.own and row.own.histogram for row in rows)
    interval = f" with {interval_label(rows)}" if counted else ""
    group = f"Percentiles{interval} ({table.shown})"
    for name, label in histograms.SHOWN.items():
        value, low, high = (
            partial(_times, table.factor, of_series(table.own, partial(_percentile, name, part)))
            for part in Percentile._fields
        )
        heading = f"{table.own.heading} {label}"
        meaning = "Percentile of the operations of all repetitions of the own kernel."
        parts = (value, low, high)
        column = Column(f"{heading} ({table.shown})", value, label, group, meaning=meaning)
        kind = "text" if counted else "number"
        yield replace(column, kind=kind, in_print=partial(_with_interval, parts))
        if counted:
            meaning = "End of the interval of the percentile, over repetitions."
            yield Column(f"{heading}, low ({table.shown})", low, meaning=meaning)
            yield Column(f"{heading}, high ({table.shown})", high, meaning=meaning)


def _percentile(name: str, part: str, series: Series) -> float | None:
    found = series.percentile(name)
    return getattr(found, part) if found else None


def _with_interval(parts: Sequence[Callable[[Row], float | None]], row: Row) -> str:
    """``43.2 (31–54)``; without an interval the value alone."""
    value, low, high = (of(row) for of in parts)
    if value is None or low is None or high is None:
        return "" if value is None else significant(value)
    return f"{significant(value, 3)} ({significant(low, 2)}–{significant(high, 2)})"


def _at_clock(name: str) -> Column:
    return Column(
        f"Efficiency at {name} clock (%)",
        partial(_times, 100, lambda row: row.shares.get(name)),
        meaning=f"Share of the limit that holds at the {name} clock.",
    )


def _clock() -> list[Column]:
    """The clock under the work, and what share it is of the best that was seen."""

    def gigahertz(row: Row) -> float | None:
        return row.clock.hz / 1e9 if row.clock else None

    def share(row: Row) -> float | None:
        return row.clock.share if row.clock else None

    return [
        Column(
            "Clock (GHz)",
            gigahertz,
            "GHz",
            "Clock",
            "number",
            partial(significant, digits=3),
            meaning="Clock under the work, of repetitions that nothing disturbed.",
        ),
        Column(
            "Clock (% of the best seen)",
            partial(_times, 100, share),
            "% of best",
            "Clock",
            "number",
            lambda shown: percent(shown / 100),
            meaning="Share of the best clock seen with the same work.",
        ),
    ]


def _energy(table: Table) -> list[Column]:
    """Joules of the node, and what it did for each; a latency is no rate."""
    meaning = "Energy of processors and memory of the node in the measured time."
    plain = replace(table, factor=1.0)
    joules = quantity_column(plain, "J", _joules(table), "Energy", "Energy (J)", meaning)
    if table.lower_is_better:
        return [joules]

    def per_joule(series: Series) -> float | None:
        watts = series.detail("watts")
        return series.centre / watts if watts else None

    unit = f"{table.shown.partition('/')[0].removesuffix('S') or '1'}/J"
    meaning = "Rate by mean power, in the unit of the table for each joule."
    heading, value = f"Operations per joule ({unit})", of_series(table.own, per_joule)
    return [joules, quantity_column(table, unit, value, "Energy", heading, meaning)]


def _joules(table: Table) -> Callable[[Row], float | None]:
    return of_series(table.own, lambda series: series.detail("joules"))


def _end(at: int) -> Column:
    """Hosts of the clients, or of the servers, pair by pair; over loopback both are the one
    machine.
    """

    def hosts(row: Row) -> str:
        points = (point for series in row.series.values() for point in series.points)
        alone = dict.fromkeys((host, host) for host in (point.context["host"] for point in points))
        return "; ".join(pair[at] for pair in row.endpoints or alone)

    return Column(ENDS[at], hosts, meaning=f"Host of the {ENDS[at].lower()}, of each pair.")
