"""The eight tables and the run table, as CSV with full precision and as LaTeX with four significant
digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from peakmark import documents
from peakmark.analysis import findings, fleet
from peakmark.analysis.analysis import Analysis, layout_of, published_names
from peakmark.analysis.row import Row
from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.messages import worst
from peakmark.statistics import Summary
from peakmark.storage import measurements
from peakmark.tables import latex, layout_tables, nodes, presentation
from peakmark.tables.presentation import of_series
from peakmark.tools.tables import TABLES, Table, count
from peakmark.units import format_size

RUN_COLUMNS = (
    "subsystem", "instrument", "workload", "variant", "block", "concurrency", "node", "host", "server_host",
    "repetition", "metric", "value", "unit", "started", "job_id", "tool_version", "warnings", "record",
)  # fmt: skip

CLOCKS = ("nominal", "maximum")
ENDS = ("Client", "Server")

Of = Callable[[Row], Any]
"""What a column has of a row."""


def build(campaign: Path | Analysis) -> None:
    """Write below ``tables/`` the long table, ``<name>.csv`` for all eight tables and a brief
    ``.tex`` of those with rows, ``summary.csv``, ``findings.csv``, ``runs.csv``, of several
    nodes ``nodes.csv``, ``checksums.txt``, and in a folder of its name the tables of the
    configured layout.

    Errors: PeakmarkError when the folder holds no campaign; RecordError for a damaged record.
    """
    judged = Analysis.of(campaign)
    results, rows = judged.results, judged.rows
    folder = documents.own_folder(results.directory, "tables")
    in_brief = latex.brief_of_nodes if fleet.is_many(rows) else latex.brief
    several = len(fleet.node_names(rows)) > 1
    frames = {table.name: frame(table, rows[table.name]) for table in TABLES}
    texts = {
        table.name: latex.render(in_brief(rows[table.name])) for table in TABLES if rows[table.name]
    }
    # Of rows that are gone, or of an earlier choice of nodes.
    for stale in (
        *(f"{name}.tex" for name in frames.keys() - texts.keys()),
        *(() if several else ("nodes.csv",)),
    ):
        (folder / stale).unlink(missing_ok=True)
    frames |= {
        "summary": summary([row for table in TABLES for row in rows[table.name]]),
        "findings": sentences(rows),
    }
    frames |= {"nodes": nodes.frame(rows)} if several else {}
    frames["runs"] = runs(measurements.build(results))
    layout = layout_of(results)
    if layout:
        (folder / layout.name).mkdir(exist_ok=True)
        for layout_table in layout.layout_tables:
            frames[f"{layout.name}/{layout_table.name}"] = layout_tables.frame(
                layout_table, rows[layout_table.table.name]
            )
            grid = layout_tables.grid(results, layout_table, rows[layout_table.table.name])
            # A page of a paper has no room for a word of doubt in each row: its notes say it, in a
            # column stars.
            printed = latex.starred(grid) if layout.narrow else presentation.without(grid, "doubt")
            texts[f"{layout.name}/{layout_table.name}"] = latex.render(
                printed, across=not layout.narrow
            )
    for name, content in frames.items():
        content.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    for name, text in texts.items():
        (folder / f"{name}.tex").write_text(text, encoding="utf-8")
    (folder / "checksums.txt").write_text(results.checksum_list, encoding="utf-8")


def frame(table: Table, rows: Sequence[Row]) -> pd.DataFrame:
    """One table with its headings; values in the table's unit with full precision, efficiency in
    percent.

    A column of an instrument that measured nothing is there and empty. ``Notes`` are joined by ";
    ".
    """
    chosen = columns(table, len({row.key.node for row in rows}) > 1, published_names(rows))
    return pd.DataFrame(
        [[of(row) for _, of in chosen] for row in rows], columns=[heading for heading, _ in chosen]
    )


def columns(
    table: Table, with_node: bool = False, published: Sequence[str] = ()
) -> list[tuple[str, Of]]:
    """Each column of a table's CSV: its heading, and what it has of a row; ``published`` sets stand
    beside it.
    """

    def shown(value: float | None) -> float | None:
        return None if value is None else value * table.factor

    def own(value: Callable[[Summary], float | None]) -> Of:
        return of_series(table.own, lambda it: value(it.summary), None)

    def in_percent(share: float | None) -> float | None:
        return None if share is None else 100 * share

    def at_clock(name: str) -> Of:
        return lambda row: in_percent(row.shares.get(name))

    def beside(name: str) -> Of:
        return lambda row: shown(row.published.get(name))

    def if_named(heading: str | None, column: Of) -> list[tuple[str, Of]]:
        return [(heading, column)] if heading else []

    series = table.series
    return [
        *if_named("Node" if with_node else None, lambda row: row.key.node),
        (table.first, lambda row: table.workload_label(row.key.workload)),
        ("Concurrency", lambda row: count(row.key.concurrency, row.key.word)),
        *if_named(
            table.block,
            lambda row: table.unsized if row.key.block is None else format_size(row.key.block),
        ),
        *if_named(table.variant, lambda row: table.variant_label(row.key.variant)),
        *(
            (table.measured_heading(it), of_series(it, lambda m: shown(m.centre), None))
            for it in series
        ),
        (table.theoretical_heading, lambda row: shown(row.limit.value)),
        *(
            (table.efficiency_heading(it), of_series(it, lambda m: in_percent(m.efficiency), None))
            for it in series
        ),
        ("Standard Deviation", own(lambda summary: shown(summary.stdev))),
        ("n", lambda row: row.own.summary.n if row.own else 0),
        ("Interval of the median, low", own(lambda summary: shown(summary.low))),
        ("Interval of the median, high", own(lambda summary: shown(summary.high))),
        ("Level of the interval (%)", own(lambda summary: 100 * summary.level)),
        ("Doubt", lambda row: str(row.level or "")),
        *((f"{name}: {table.published_group}", beside(name)) for name in published),
        *(
            (f"Efficiency at {name} clock (%)", at_clock(name))
            for name in CLOCKS
            if SUBSYSTEMS[table.subsystem].pinned
        ),
        *((name, _ends(place)) for place, name in enumerate(ENDS) if table.subsystem == "network"),
        ("Notes", lambda row: "; ".join(row.said(row.warnings))),
    ]


def _ends(place: int) -> Of:
    """Hosts of the clients, or of the servers, pair by pair; over loopback both are the one
    machine.
    """

    def hosts(row: Row) -> str:
        points = (point for series in row.series.values() for point in series.points)
        alone = dict.fromkeys((host, host) for host in (point.context["host"] for point in points))
        return "; ".join(pair[place] for pair in row.endpoints or alone)

    return hosts


def summary(rows: Sequence[Row]) -> pd.DataFrame:
    """A line per row and instrument: n, mean, standard deviation (n - 1), median, extremes,
    interval; SI units.
    """
    lines = [
        {
            "table": row.table.name,
            "node": row.key.node,
            "instrument": instrument,
            "workload": row.key.workload,
            "variant": row.key.variant,
            "block": row.key.block,
            "concurrency": row.key.concurrency,
            "asked": row.key.word,
            "unit": row.table.unit,
            "n": series.summary.n,
            "mean": series.summary.mean,
            "standard_deviation": series.summary.stdev,
            "median": series.summary.median,
            "min": series.summary.minimum,
            "max": series.summary.maximum,
            "median_low": series.summary.low,
            "median_high": series.summary.high,
            "level": series.summary.level if series.summary.n > 1 else None,
            "doubt": str(worst(row.warnings_of(instrument)) or ""),
            "theoretical": row.limit.value,
            "theoretical_formula": row.limit.explained,
            "theoretical_source": "; ".join(row.limit.sources),
            "efficiency": series.efficiency,
        }
        for row in rows
        for instrument, series in row.series.items()
    ]
    return (
        pd.DataFrame(lines).astype({"block": "Int64"}) if lines else pd.DataFrame(columns=["table"])
    )


def sentences(rows: Mapping[str, Sequence[Row]]) -> pd.DataFrame:
    """What the rows of each table say: table, topic, sentence."""
    find = fleet.fleet_conclusions if fleet.is_many(rows) else findings.conclusions
    lines = [
        (name, finding.heading, finding.text)
        for name, table_rows in rows.items()
        for finding in find(table_rows)
    ]
    return pd.DataFrame(lines, columns=["table", "topic", "sentence"])


def runs(long: pd.DataFrame) -> pd.DataFrame:
    """The run table: every repetition of the long table that holds a value, in the order in which
    they were made.
    """
    measured = long[long["value"].notna()]
    ordered = measured.sort_values(["started", "record"], kind="stable")
    return ordered[list(RUN_COLUMNS)].reset_index(drop=True)
