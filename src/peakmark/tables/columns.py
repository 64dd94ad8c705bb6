"""The columns of a table, each once: its heading and values in the CSV file, its label and texts in
print.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from peakmark.analysis.row import CLOCKS, Row, Series
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import format_size, percent, significant, size
from peakmark.messages import Severity, WarningKind, worst
from peakmark.tools.common import SHOWN_PERCENTILES
from peakmark.tools.tables import Program, Table, count

NOT_MEASURED = "not measured"
ENDS = ("Client", "Server")
EFFICIENCY = "Efficiency (%)"

Value = str | int | float | None
ValueOf = Callable[[Any], Any]
TextOf = Callable[[Any], str]
"""Of a row, or of what else stands in a line."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        heading: in the CSV file; empty where the file does not have the column.
        of: of a row, its text or its number, None where it has none.
        factor: leads from the number to that in the file, in the unit of the table.
        label: in print; empty where print does not have the column.
        group: columns of the same group stand beside each other under one heading.
        kind: text, number, warning or notes.
        form: of a value, in print.
        in_print: of a line, where print has another text than the value in its form.
        once: the sentence that stands for the column in print where all rows have the same in it.
        meaning: what stands in it, for the documentation of the CSV file.
    """

    heading: str = ""
    of: ValueOf = lambda _: None
    factor: float | None = None
    label: str = ""
    group: str = ""
    kind: str = "text"
    form: TextOf = str
    in_print: TextOf | None = None
    once: str = ""
    meaning: str = ""

    def value(self, line: Any) -> Value:
        """What stands in it in the CSV file, with full precision."""
        value: Value = self.of(line)
        if self.factor is None or value is None:
            return value
        return float(value) * self.factor

    def text(self, line: Any) -> str:
        """What stands in it in print."""
        if self.in_print:
            return self.in_print(line)
        value = self.value(line)
        return "" if value is None else self.form(value)


def texts(columns: Iterable[Column], lines: Sequence[Any]) -> list[list[str]]:
    """What stands in each column in print, line by line."""
    return [[column.text(line) for line in lines] for column in columns]


def of_quantity(table: Table, kind: str) -> str:
    """``Measured Throughput (GB/sec)``: the heading of a kind of values of a table."""
    return f"{kind} {table.quantity}{_unit(table)}"


def _unit(table: Table) -> str:
    return f" ({table.shown})" if table.shown else ""


def columns(
    table: Table, rows: Sequence[Row], letters: Callable[[Sequence[Row]], str] = lambda _: ""
) -> list[Column]:
    """All columns of a table in the order of the CSV file; ``letters``: those of the notes on rows,
    for print.
    """
    bound = Column(
        heading=f"Bound{_unit(table)}", of=lambda row: row.limit.bound, factor=table.factor
    )
    every = Column(
        heading="Notes",
        of=lambda row: "; ".join(row.said(row.warnings)),
        label="Notes",
        kind="notes",
        in_print=lambda row: letters([row]),
        meaning="All warnings of the row, with their remedies.",
    )
    return [
        *place_columns(rows),
        *key_columns(table),
        *(measured_column(table, program) for program in table.series),
        theoretical_column(table),
        *(efficiency_column(program) for program in table.series),
        *(_clock() if table.name == "cpu" else ()),
        *(_energy(table) if any(map(_detail(table, "joules"), rows)) else ()),
        *_spread(table, rows),
        Column(heading="Limit Kind", of=lambda row: row.limit.kind),
        bound,
        warning_column(lambda row: [row], common_kinds(rows)),
        *(_at_clock(name) for name in CLOCKS if SUBSYSTEMS[table.subsystem].pinned),
        *(_end(place) for place in range(len(ENDS)) if table.subsystem == "network"),
        every,
        *(_percentiles(table, rows) if has_percentiles(table) else ()),
    ]


def through(every: Iterable[Column], row: Callable[[Any], Row]) -> list[Column]:
    """Columns of rows as columns of lines of another kind.

    Args:
        every: columns of rows.
        row: of a line, the row that speaks for it.
    """

    def of(text: TextOf) -> TextOf:
        return lambda line: text(row(line))

    return [replace(column, in_print=of(column.text)) for column in every]


def place_columns(rows: Sequence[Row]) -> list[Column]:
    """Where a row was measured, as far as rows differ in it."""
    several = len({row.key.node for row in rows}) > 1
    label = place_label(rows)
    column = Column(
        heading="Node" if several else "",
        of=lambda row: row.key.node,
        label=label,
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


def warning_column(
    rows_of: Callable[[Any], Sequence[Row]], everywhere: Collection[str] = ()
) -> Column:
    """What kinds of warnings there are about the rows of a line.

    Args:
        rows_of: the rows of a line.
        everywhere: kinds that all lines have, which print says below the table.
    """

    def shown(line: Any) -> str:
        named = (kind for kind in _kinds(rows_of(line)) if kind not in everywhere)
        return ", ".join(getattr(kind, "short", kind) for kind in named)

    return Column(
        heading="Warning",
        of=lambda line: warning_kinds(rows_of(line)),
        label="Warning",
        kind="warning",
        in_print=shown,
        meaning="Kinds of the warnings: wrong, varies, programs disagree, not the device.",
    )


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

    workload = Column(
        heading=table.first,
        of=lambda row: table.workload_label(row.key.workload),
        label=table.first,
        meaning="What was measured.",
    )
    concurrency = Column(
        heading="Concurrency",
        of=lambda row: count(row.key.concurrency, row.key.word),
        label="Concurrency",
        kind="number",
        meaning="Threads, processes or streams.",
    )
    sized = Column(
        heading=table.block or "",
        of=lambda row: format_size(row.key.block) if row.key.block else table.unsized,
        label=table.block or "",
        kind="number",
        in_print=lambda row: size(row.key.block) if row.key.block else table.unsized,
        once=f"{table.block}: {{}}.",
        meaning="Bytes of one block, record or message.",
    )
    variant = Column(
        heading=table.variant or "",
        of=lambda row: table.variant_label(row.key.variant),
        label=table.variant or "",
        once=f"{(table.variant or '').capitalize()}: {{}}.",
        meaning="Which way of doing it: the working set, the engine or the mode.",
    )
    return [column for column in (workload, concurrency, sized, variant) if column.heading]


def of_series(program: Program, value: ValueOf) -> ValueOf:
    """What a program has in a row, None where it did not measure it."""

    def of(row: Row) -> Any:
        series = row.series.get(program.instrument)
        return value(series) if series else None

    return of


def _detail(table: Table, name: str) -> ValueOf:
    """A numeric detail of the own kernel's repetitions."""
    return of_series(table.own, lambda series: series.detail(name))


def quantity_column(
    table: Table,
    label: str,
    of: ValueOf,
    group: str = "",
    heading: str = "",
    meaning: str = "",
) -> Column:
    """A column of values in SI units, shown in the unit of the table with four digits."""
    return Column(
        heading=heading or label,
        of=of,
        factor=table.factor,
        label=label,
        group=group,
        kind="number",
        form=significant,
        meaning=meaning,
    )


def measured_column(table: Table, program: Program) -> Column:
    """What a program measured; a hole of the own kernel is named."""
    hole = NOT_MEASURED if program is table.own else ""

    def text(row: Row) -> str:
        series = row.series.get(program.instrument)
        if series is None:
            return hole
        return significant(series.centre * table.factor, step=series.step * table.factor)

    group = of_quantity(table, "Measured")
    meaning = f"Median of what {program.heading} measured; the mean with report.summary: mean."
    return Column(
        heading=f"{program.heading} {group}",
        of=of_series(program, lambda series: series.centre),
        factor=table.factor,
        label=program.heading,
        group=group,
        kind="number",
        in_print=text,
        meaning=meaning,
    )


def theoretical_column(table: Table) -> Column:
    """The limit; print has a bound in its place, with a sign before it."""

    def text(row: Row) -> str:
        limit = row.limit
        if limit.bound is None:
            return "" if limit.value is None else significant(limit.value * table.factor)
        signs = SIGNS if limit.unit != "s" else SHARE_SIGNS
        rounded = float(f"{limit.bound * table.factor:.3g}")
        return f"{signs[limit.kind]}{significant(rounded, 3)}"

    heading = of_quantity(table, "Theoretical")
    meaning = "Theoretical limit; empty where it is unknown."
    limit = quantity_column(table, heading, lambda row: row.limit.value, meaning=meaning)
    return replace(limit, in_print=text)


SIGNS = {"limit": "", "at_most": "≤\u00a0", "none": ""}
"""What stands before a bound: the limit is at most as high as it; of times at least."""
SHARE_SIGNS = {"limit": "", "at_most": "≥\u00a0", "none": ""}
"""What stands before the share of a bound: the efficiency is at least this share."""


def efficiency_column(program: Program) -> Column:
    """What share of the limit a program reaches; print has that of a bound, with a sign before
    it.
    """
    centre = of_series(program, lambda series: series.centre)
    efficiency = of_series(program, lambda series: series.efficiency)

    def text(row: Row) -> str:
        if row.limit.kind == "limit":
            reached = efficiency(row)
            return "" if reached is None else percent(reached)
        share = row.limit.share(centre(row) or 0.0)
        if share is None:
            return ""
        return f"{SHARE_SIGNS[row.limit.kind]}{significant(100 * share, 2)}"

    return Column(
        heading=f"{program.heading} {EFFICIENCY}",
        of=efficiency,
        factor=100,
        label=program.heading,
        group=EFFICIENCY,
        kind="number",
        in_print=text,
        meaning=f"Share of the limit that {program.heading} reaches.",
    )


def _spread(table: Table, rows: Sequence[Row]) -> list[Column]:
    """Standard deviation, number of repetitions, and interval of the median of the own kernel."""

    def of(name: str) -> ValueOf:
        return of_series(table.own, lambda series: getattr(series.summary, name))

    deviation = Column(
        heading="Standard Deviation",
        of=of("stdev"),
        factor=table.factor,
        # Percentiles say more of times, and print has no room for both.
        label="" if has_percentiles(table) else "Standard Deviation",
        kind="number",
        form=partial(significant, digits=3),
        meaning="Of the own kernel's repetitions, with n - 1.",
    )
    repetitions = Column(
        heading="n",
        of=lambda row: of("n")(row) or 0,
        label="n",
        kind="number",
        form=lambda count: str(count or ""),
        once="n = {} in all rows.",
        meaning="Repetitions of the own kernel.",
    )
    level = Column(
        heading="Level of the interval (%)",
        of=of("level"),
        factor=100,
        meaning="Below 95 with fewer than six repetitions.",
    )
    ends = [
        quantity_column(
            table,
            name,
            of(name),
            group=interval_label(rows),
            heading=f"Interval of the median, {name}",
            meaning=f"Its {end} end.",
        )
        for name, end in (("low", "lower"), ("high", "upper"))
    ]
    return [deviation, repetitions, *ends, level]


def interval_label(rows: Sequence[Row]) -> str:
    """``95 % interval``, or what the number of repetitions allows: ``75 to 95 % interval``."""
    summaries = [series.summary for series in (row.own for row in rows) if series]
    levels = {min(95, int(100 * each.level)) for each in summaries if each.n > 1} or {95}
    least = f"{min(levels)} to " if len(levels) > 1 else ""
    return f"{least}{max(levels)} % interval"


def has_percentiles(table: Table) -> bool:
    """Whether the rows are times of single operations: accesses or round trips."""
    return table.metric == "latency" and table.subsystem != "memory"


def _percentiles(table: Table, rows: Sequence[Row]) -> Iterator[Column]:
    """Percentiles of the own kernel, with their intervals where repetitions have histograms; print
    has both in one column.
    """
    counted = any(row.own and row.own.histogram for row in rows)
    interval = f" with {interval_label(rows)}" if counted else ""
    for name, label in SHOWN_PERCENTILES.items():
        every = [
            Column(
                heading=f"{table.own.heading} {label}{part and f', {part}'} ({table.shown})",
                of=of_series(table.own, partial(_percentile, name, part or "value")),
                factor=table.factor,
                meaning=meaning,
            )
            for part, meaning in PERCENTILE_PARTS.items()
        ]
        yield replace(
            every[0],
            label=label,
            group=f"Percentiles{interval} ({table.shown})",
            kind="text" if counted else "number",
            in_print=partial(_with_interval, every),
        )
        yield from every[1:] if counted else ()


PERCENTILE_PARTS = {
    "": "Percentile of the operations of all repetitions of the own kernel.",
    "low": "End of the interval of the percentile, over repetitions.",
    "high": "End of the interval of the percentile, over repetitions.",
}


def _percentile(name: str, part: str, series: Series) -> float | None:
    return getattr(series.percentile(name), part, None)


def _with_interval(parts: Sequence[Column], row: Row) -> str:
    """``43.2 (31–54)``; without an interval the value alone."""
    value, low, high = (part.value(row) for part in parts)
    if value is None or low is None or high is None:
        return "" if value is None else significant(float(value))
    ends = f"{significant(float(low), 2)}–{significant(float(high), 2)}"
    return f"{significant(float(value), 3)} ({ends})"


def _at_clock(name: str) -> Column:
    return Column(
        heading=f"Efficiency at {name} clock (%)",
        of=lambda row: row.shares.get(name),
        factor=100,
        meaning=f"Share of the limit that holds at the {name} clock.",
    )


def _clock() -> list[Column]:
    """The clock under the work, and what share it is of the best that was seen."""
    hertz = Column(
        heading="Clock (GHz)",
        of=lambda row: row.clock.hz / 1e9 if row.clock else None,
        label="GHz",
        group="Clock",
        kind="number",
        form=partial(significant, digits=3),
        meaning="Clock under the work, of repetitions that nothing disturbed.",
    )
    share = Column(
        heading="Clock (% of the best seen)",
        of=lambda row: row.clock.share if row.clock else None,
        factor=100,
        label="% of best",
        group="Clock",
        kind="number",
        form=lambda shown: percent(shown / 100),
        meaning="Share of the best clock seen with the same work.",
    )
    return [hertz, share]


def _energy(table: Table) -> list[Column]:
    """Joules of the node, and what it did for each; a latency is no rate."""

    def per_joule(series: Series) -> float | None:
        watts = series.detail("watts")
        return series.centre / watts if watts else None

    joules = Column(
        heading="Energy (J)",
        of=_detail(table, "joules"),
        label="J",
        group="Energy",
        kind="number",
        form=significant,
        meaning="Energy of processors and memory of the node in the measured time.",
    )
    unit = f"{table.shown.partition('/')[0].removesuffix('S') or '1'}/J"
    rate = quantity_column(
        table,
        unit,
        of_series(table.own, per_joule),
        group="Energy",
        heading=f"Operations per joule ({unit})",
        meaning="Rate by mean power, in the unit of the table for each joule.",
    )
    return [joules] if table.lower_is_better else [joules, rate]


def _end(at: int) -> Column:
    """Hosts of the clients, or of the servers, pair by pair; over loopback both are the one
    machine.
    """

    def hosts(row: Row) -> str:
        points = (point for series in row.series.values() for point in series.points)
        alone = dict.fromkeys((host, host) for host in (point.context["host"] for point in points))
        return "; ".join(pair[at] for pair in row.endpoints or alone)

    return Column(
        heading=ENDS[at], of=hosts, meaning=f"Host of the {ENDS[at].lower()}, of each pair."
    )
