"""The usual tables of a campaign: a line for each point; of many nodes, one line for all nodes of a point."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from peakmark.formatting import (
    capitalised,
    counted,
    format_size,
    percent,
    round_bound,
    significant,
    size,
)
from peakmark.rows.labels import parallel_efficiency, with_medians
from peakmark.rows.schema import CampaignFrames
from peakmark.statistics import ENOUGH
from peakmark.tools.tables import Program, Table, count
from peakmark.views.table import (
    NOT_MEASURED,
    Column,
    Points,
    ShownTable,
    empty_columns,
    noun_of,
    place_label,
    places_of,
    points_of,
    sentences_on_gaps,
    show,
    stepped,
    texts,
)

EFFICIENCY = "Efficiency (%)"
PERCENTILES = {"p50": "p50", "p99": "p99", "p999": "p99.9"}
"""Percentiles that tables show -> their headings."""
MOST_NAMED = 3
"""Largest number of slow nodes that a line names; further nodes are counted."""
AT_MOST, AT_LEAST = "≤\u00a0", "≥\u00a0"
"""Sign (≤) before a bound of a rate; sign (≥) before a bound of a time, or a share of a bound."""
TELLING_BOUND = 0.5
"""A bound is printed if the row reaches at least this share: a distant bound tells nothing."""
SAME_CLOCK = 1.03
"""Clocks that differ by at most this factor count as the same clock."""
INTERVAL = "95 % interval"
"""Heading of the confidence interval, which needs at least ``ENOUGH`` repetitions."""
two_digits = partial(significant, digits=2)
three_digits = partial(significant, digits=3)


# -- columns


def columns_of(table: Table, points: Points) -> list[Column]:
    """Return all columns of a table, for files, pages and papers, except notes and remarks.

    Args:
        table: the table, with the unit and the names of programs in the headings.
        points: its points.
    """
    own = points.own
    columns = [*place_columns(own), *key_columns(table, own)]
    columns += [measured_column(table, program, points) for program in table.series]
    columns.append(theoretical_column(table, own))
    columns += [efficiency_column(table, program, points) for program in table.series]
    if table.name == "cpu":  # rates of the CPU follow its clock
        columns += clock_columns(own)
    efficiency = parallel_efficiency(own)
    if efficiency.notna().any():
        heading = "Parallel Efficiency (%)"
        columns.append(Column(efficiency * 100, heading, heading, form=three_digits))
    if own["joules"].notna().any():
        columns += energy_columns(table, own)
    columns += spread_columns(table, own)
    columns += file_columns(table, own)
    if has_percentiles(table):
        columns += percentile_columns(table, own)
    return columns


def of_quantity(table: Table, kind: str) -> str:
    """Return the heading of a kind of values of a table: ``Measured Throughput (GB/sec)``."""
    return f"{kind} {table.quantity}{unit_of(table)}"


def unit_of(table: Table) -> str:
    """Return the unit of a table in brackets, to follow a heading; empty without a unit."""
    return f" ({table.shown})" if table.shown else ""


def has_percentiles(table: Table) -> bool:
    """Return whether the rows are times of single operations, such as disk accesses or round trips.

    Memory latency is excluded, because it is the mean over a chain of loads.
    """
    return table.metric == "latency" and table.subsystem != "memory"


def has_bound(own: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows whose bound is printed: the row reaches at least ``TELLING_BOUND`` of it."""
    return own["bound"].notna() & own["share"].ge(TELLING_BOUND)


def place_columns(own: pd.DataFrame) -> Iterator[Column]:
    """Yield the columns of nodes or pairs of nodes: one for the CSV file, one for a page.

    For a single node, the column of the CSV file is left out, and the other column has no label, so that no page
    shows it.
    """
    if own["node"].nunique() > 1:
        yield Column(own["node"], "Node")
    label = place_label(own)
    yield Column(places_of(own), label=label, form=str, kind="text")


def key_columns(table: Table, own: pd.DataFrame) -> Iterator[Column]:
    """Yield the columns of workload and concurrency, and of the block and variant if there are any.

    Args:
        table: the table.
        own: a row of peakmark's kernel for each line.
    """
    first, block, variant = table.first, table.block, table.variant
    workloads = own["workload"].map(table.workload_label)
    yield Column(workloads, first, first, cells=workloads.map(capitalised), kind="text")
    threads, words = own["concurrency"], own["concurrency_word"]
    counts = pd.Series([*map(count, threads, words)], own.index, dtype=object)
    label = f"{capitalised(table.counted)}s"
    yield Column(counts, "Concurrency", label, form=str)
    if block:
        # A row whose block is 0 or missing gets the text ``unsized``. The CSV file has ``1MiB``, a
        # page ``1 MiB``.
        sizes = own["block_bytes"].mask(own["block_bytes"].eq(0))
        values = texts(sizes, format_size).replace("", table.unsized)
        cells = texts(sizes, size).replace("", table.unsized)
        yield Column(values, block, block, cells=cells, once=f"{block}: {{}}.")
    if variant:
        values = own["variant"].map(table.variant_label)
        once = f"{variant.capitalize()}: {{}}."
        yield Column(values, variant, variant, form=level_name, kind="text", once=once)


def level_name(variant: str) -> str:
    """Return a ladder's level and kind of pages as a page prints them: ``L2, huge``; other variants are unchanged."""
    level, _, pages = variant.rpartition("-")
    return f"{level.upper()}, {pages}" if pages in ("small", "huge") else variant


def measured_column(table: Table, program: Program, points: Points) -> Column:
    """Return the column of a program's values, without digits below their resolution.

    A gap of peakmark's kernel is ``not measured``; reference tools need not measure each row.
    """
    values = points.of(program.instrument, "value") * table.factor
    steps = points.of(program.instrument, "resolution") * table.factor
    cells = stepped(values, steps, gap=NOT_MEASURED if program is table.own else "")
    name, group = program.heading, of_quantity(table, "Measured")
    return Column(values, f"{name} {group}", label=name, group=group, cells=cells)


def theoretical_column(table: Table, own: pd.DataFrame) -> Column:
    """Return the column of limits. Where only a bound is known, a page prints it with a sign before it.

    An upper bound of a rate is rounded up, a lower bound of a time down.
    """
    is_rate = table.unit != "s"
    limits = own["limit"] * table.factor
    bounds = own["bound"].where(has_bound(own)) * table.factor
    rounded = bounds.map(partial(round_bound, digits=3, is_upper=is_rate), na_action="ignore")
    signed = texts(rounded, three_digits).radd(AT_MOST if is_rate else AT_LEAST)
    cells = texts(limits).mask(limits.isna() & bounds.notna(), signed)
    heading = of_quantity(table, "Theoretical")
    return Column(limits, heading, heading, cells=cells)


def efficiency_column(table: Table, program: Program, points: Points) -> Column:
    """Return the column of shares of the limit in percent.

    Where only a bound is known, a page prints the share of the bound with a sign before it, rounded down: the
    share of the limit is at least as large.
    """
    name, is_own = program.heading, program is table.own
    shares = points.of(program.instrument, "efficiency")
    of_bounds = points.of(program.instrument, "share").where(has_bound(points.own)) * 100
    rounded = of_bounds.map(partial(round_bound, digits=2, is_upper=False), na_action="ignore")
    signed = texts(rounded, two_digits).radd(AT_LEAST)
    cells = texts(shares, percent).mask(shares.isna() & of_bounds.notna(), signed)
    heading = f"{name} {EFFICIENCY}"
    return Column(shares * 100, heading, name, EFFICIENCY, cells=cells, on_paper=is_own)


def clock_columns(own: pd.DataFrame) -> Iterator[Column]:
    """Yield the clock during the work, and its share of the best clock seen.

    A page prints no clock that is equal in all lines, because page one states it.
    """
    clocks, heading = own["clock_hz"] / 1e9, "Clock (GHz)"
    label = heading if clocks.max() > SAME_CLOCK * clocks.min() else ""
    yield Column(clocks, heading, label, form=three_digits)
    yield Column(own["clock_share"] * 100, "Clock (% of the best seen)")


def energy_columns(table: Table, own: pd.DataFrame) -> Iterator[Column]:
    """Yield the column of the node's energy and, for rates, the column of the work per joule."""
    yield Column(own["joules"], "Energy (J)", "J", "Energy")
    if not table.lower_is_better:
        # A rate divided by the power is the work per joule: GOP/J for GOP/s, IOP/J for IOPS, 1/J without a unit.
        work = table.shown.partition("/")[0].removesuffix("S") or "1"
        rates = own["value"] / own["watts"] * table.factor
        yield Column(rates, f"Operations per joule ({work}/J)", f"{work}/J", "Energy")


def spread_columns(table: Table, own: pd.DataFrame) -> Iterator[Column]:
    """Yield the columns of peakmark's kernel on its repetitions and their spread.

    With at least ``ENOUGH`` repetitions, a page prints the standard deviation and the 95 % interval. With
    fewer, it prints the lowest and the highest run, because an interval would have no useful level.
    """
    runs = own.loc[own["n"].gt(0), "n"]
    is_enough = len(runs) > 0 and runs.min() >= ENOUGH
    # If all rows have as many runs as planned, page one states the number.
    if runs.lt(own["planned"].max()).any():
        yield Column(texts(own["n"], str).replace("0", ""), label="n", form=str)
    # For times, the percentiles replace the standard deviation: paper has no room for both.
    heading = "Standard Deviation"
    label = heading if is_enough and not has_percentiles(table) else ""
    yield Column(own["sd"] * table.factor, heading, label, form=three_digits)
    yield Column(own["n"], "n")
    # The interval of few repetitions goes from the lowest to the highest. The labels are then lowest and highest,
    # otherwise low and high.
    group, ending = (INTERVAL, "") if is_enough else ("", "est")
    for name in ("low", "high"):
        heading = f"Interval of the median, {name}"
        yield Column(own[name] * table.factor, heading, f"{name}{ending}", group)


def file_columns(table: Table, own: pd.DataFrame) -> Iterator[Column]:
    """Yield the columns that only the CSV file has."""
    yield Column(own["level"] * 100, "Level of the interval (%)")
    yield Column(own["limit_kind"], "Limit Kind")
    yield Column(own["bound"] * table.factor, f"Bound{unit_of(table)}")
    yield Column(own["trust"], "Trust")
    if table.subsystem == "network":
        yield Column(own["clients"], "Client")
        yield Column(own["servers"], "Server")
    if "notes" in own:  # ``table_files.table_frame`` adds the notes for the CSV file only
        yield Column(own["notes"], "Notes")


def percentile_columns(table: Table, own: pd.DataFrame) -> Iterator[Column]:
    """Yield the columns of percentiles."""
    group = f"Percentiles ({table.shown})"
    for name, label in PERCENTILES.items():
        heading = f"{table.own.heading} {label}"
        values = own[name] * table.factor
        yield Column(values, f"{heading} ({table.shown})", label, group)


# -- tables


def usual_table(frames: CampaignFrames, table: Table, rows: pd.DataFrame) -> ShownTable:
    """Return rows of a table as a page shows them, with a line for each point.

    Args:
        frames: the campaign, see ``layout_tables.for_print``.
        table: table with the printed unit, names of programs and title.
        rows: rows of the table, with the rows of all programs.
    """
    points = points_of(rows)
    programs = [program.instrument for program in table.series]
    general = empty_columns(frames, table, rows, programs)
    below = sentences_on_gaps(frames, table, rows, set(rows.loc[rows["n"].gt(0), "instrument"]))
    columns = columns_of(table, points)
    return show(
        frames, table, columns, points.own, below=below, reading=table.remark, general=general
    )


def nodes_table(frames: CampaignFrames, table: Table, rows: pd.DataFrame) -> ShownTable:
    """Return the points of many nodes: median, lowest and highest node, and the slow nodes.

    Arguments are those of ``usual_table``.
    """
    points = points_of(rows)
    own, usable = points.own, with_medians(points.own)
    noun = noun_of(own)
    below = sentences_on_gaps(frames, table, rows, [program.instrument for program in table.series])
    places = ["node_class", "place"]
    planned = own.groupby(places).ngroups
    holes = planned - usable["group"].nunique()
    if holes:
        below.append(
            f"Points that no node measured, or that are wrong on all nodes: {holes} of {planned};"
            " the table of every node in the HTML report has them"
        )
    # A line shows all nodes of its place, also those without a usable value.
    line = usable.drop_duplicates("group").set_index(places)["group"].rename("line")
    shown = own.drop(columns="line").join(line, on=places, how="inner")
    return show(
        frames,
        table,
        node_columns(table, points, usable, noun),
        shown.sort_values("line", kind="stable"),
        below=below,
        reading=(
            "One line for each point. Low and high: of the nodes' medians; of one node, or of “any”"
            f" (whichever node was free), the interval of the median. {table.remark}"
        ),
        name=f"{table.name}_nodes",
    )


def node_columns(table: Table, points: Points, usable: pd.DataFrame, noun: str) -> Iterator[Column]:
    """Yield the columns of a table with a line for each point of many nodes.

    Args:
        table: the table.
        points: points of all nodes.
        usable: see ``labels.with_medians``.
        noun: heading of the number of nodes, see ``noun_of``.
    """
    group = usable["group"]
    values = usable.groupby(group)["value"]
    sizes = values.size()
    is_several = sizes.gt(1)
    # For each line, find the node nearest to the median, and the slow nodes.
    off = (usable["value"] - usable["median_of_nodes"]).abs()
    middle = usable.loc[off.groupby(group).idxmin()]
    slow = usable[usable["is_slow"]].groupby("group")["node"].agg(list)

    def median(instrument: str, name: str) -> pd.Series:
        """Return the median of a column of a program over the nodes of each line."""
        return points.of(instrument, name).reindex(usable.index).groupby(group).median()

    own = table.own.instrument
    yield from key_columns(table, middle)
    yield Column(middle["node_class"], label="Class", form=str, kind="text")
    heading = f"{table.own.heading}: {of_quantity(table, 'Measured')}"
    for label, numbers in (
        ("median", values.median()),
        ("low", values.min().where(is_several, median(own, "low"))),
        ("high", values.max().where(is_several, median(own, "high"))),
    ):
        yield Column(numbers * table.factor, label=label, group=heading)
    for program in table.references:
        numbers = median(program.instrument, "value") * table.factor
        yield Column(numbers, label=program.heading, group="Medians of references")
    limits = median(own, "limit") * table.factor
    yield Column(limits, label=of_quantity(table, "Theoretical"))
    yield Column(median(own, "efficiency"), label=EFFICIENCY, form=percent)
    counts = sizes.astype(object).mask(middle["node"].eq("any").to_numpy(), "any")
    yield Column(counts, label=noun.title(), form=str)
    names = slow.reindex(sizes.index)
    yield Column(names, label="Slow", form=partial(counted, most=MOST_NAMED), kind="text")
