"""The tables of a campaign as files: CSV with full precision, LaTeX with four significant digits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from peakmark import files, output
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Layout
from peakmark.formatting import format_size
from peakmark.rows.schema import CampaignFrames, is_usable
from peakmark.tools.tables import TABLES, Program, Table, count
from peakmark.views import latex, layouts
from peakmark.views.points import rows_of
from peakmark.views.printed import (
    EFFICIENCY,
    PERCENTILES,
    has_percentiles,
    of_quantity,
    per_joule,
    unit_of,
)

FOLDER = "tables"
"""Folder of the tables, below the campaign's folder."""
FORMER = (
    "measurements.csv",
    "measurements.parquet",
    "summary.csv",
    "findings.csv",
    "suspects.csv",
    "checksums.txt",
)
"""Files of earlier versions. They are deleted, because they show an earlier state of the campaign."""
CLOCKS = ("nominal", "maximum")
"""Clocks for which the files also have the share of the limit at this clock."""
RUNS = {
    "subsystem": "subsystem",
    "instrument": "instrument",
    "measured_workload": "workload",
    "variant": "variant",
    "measured_block_bytes": "block",
    "measured_concurrency": "concurrency",
    "node": "node",
    "host": "host",
    "server_host": "server_host",
    "repetition": "repetition",
    "metric": "metric",
    "value": "value",
    "unit": "unit",
    "started": "started",
    "job_id": "job_id",
    "tool_version": "tool_version",
    "program_warnings": "warnings",
    "left_out": "left_out",
    "record": "record",
}
"""Column of ``runs`` -> its heading in ``runs.csv``."""
NODES = {
    "table": "table",
    "workload": "workload",
    "variant": "variant",
    "block_bytes": "block",
    "concurrency": "concurrency",
    "concurrency_word": "asked",
    "node": "node",
    "node_class": "class",
    "unit": "unit",
    "value": "value",
    "low": "median_low",
    "high": "median_high",
    "median_of_nodes": "median_of_nodes",
    "behind": "behind",
    "slow": "slow",
    "behind_low": "behind_low",
    "behind_high": "behind_high",
    "behind_p": "p",
}
"""Column of ``rows`` -> its heading in ``nodes.csv``."""


def write_tables(frames: CampaignFrames, folder: Path) -> None:
    """Write the tables of a campaign into a folder, and print which records do not count.

    Each table has a ``NAME.csv`` and, if it has rows, a brief ``NAME.tex``. ``runs.csv`` has all runs.
    For several nodes, ``nodes.csv`` has the values of each node. The tables of a layout are in a folder
    with the layout's name.

    Raises:
        PeakmarkError: a file cannot be written.
    """
    for reason in frames.campaign["left_out"]:
        output.tell(f"left out: {reason}")
    layout = layouts.layout_of(frames)
    arranged = layouts.arrange(frames, layout)
    # Delete files that may show rows which are gone, or an earlier choice of nodes.
    former = [folder / name for name in FORMER]
    for stale in (*folder.glob("*.tex"), folder / "nodes.csv", *former):
        stale.unlink(missing_ok=True)
    # A campaign without GPUs has no tables of GPUs, and one without META has no table of metadata.
    has_gpus = bool(frames.rows["subsystem"].eq("gpu").any())
    has_metadata = bool(frames.rows["table"].eq("disk_metadata").any())
    for table in TABLES:
        has_rows = has_gpus if table.subsystem == "gpu" else has_metadata
        if table.is_optional and not has_rows:
            (folder / f"{table.name}.csv").unlink(missing_ok=True)
            continue
        rows = rows_of(arranged, table)
        write_csv(folder / f"{table.name}.csv", frame(table, arranged, rows))
        if len(rows):
            printed_as = layouts.table_of(layout, table, rows)
            text = latex.render(latex.brief(arranged, printed_as, rows))
            files.write_text(folder / f"{table.name}.tex", text)
    write_csv(folder / "runs.csv", runs_frame(frames))
    if len(frames.nodes) > 1:
        write_csv(folder / "nodes.csv", nodes_frame(arranged))
    if layout is not None:
        write_layout(arranged, layout, folder / layout.name)


def write_layout(frames: CampaignFrames, layout: Layout, folder: Path) -> None:
    """Write the tables of a layout into a folder."""
    for layout_table in layout.layout_tables:
        rows = rows_of(frames, layout_table.table)
        write_csv(folder / f"{layout_table.name}.csv", layouts.frame(frames, layout_table, rows))
        grid = layouts.table(frames, layout_table, rows, layout.called(layout_table.table))
        # In one column of a paper, marks replace the remarks.
        if layout.narrow:
            grid = latex.starred(grid)
        text = latex.render(grid, across=not layout.narrow)
        files.write_text(folder / f"{layout_table.name}.tex", text)


def write_csv(path: Path, content: pd.DataFrame) -> None:
    """Write a frame as a CSV file.

    Raises:
        PeakmarkError: the file cannot be written.
    """
    files.write_text(path, content.to_csv(index=False, lineterminator="\n"))


# -- one table


class CsvColumn(NamedTuple):
    """A column of a table's CSV file.

    Attributes:
        heading: heading in the first line of the file.
        values: values; the point is the index.
        meaning: explanation for the documentation.
    """

    heading: str
    values: pd.Series
    meaning: str = ""


def frame(table: Table, frames: CampaignFrames, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the content of a table's CSV file: values in the table's unit with full precision.

    The columns of a program that measured nothing are empty.

    Args:
        table: one of ``TABLES``.
        frames: the campaign, see ``layouts.arrange``.
        rows: the lines of ``frames.rows`` of the table.
    """
    columns = columns_of(table, rows, frames.warnings)
    return pd.DataFrame({column.heading: column.values for column in columns})


def columns_of(table: Table, rows: pd.DataFrame, warnings: pd.DataFrame) -> list[CsvColumn]:
    """Return the columns of a table's CSV file; ``frame`` explains the arguments."""
    own = rows[rows["is_own"]].set_index("point")
    columns = [*key_columns(table, own)]
    programs = table.series
    columns += [measured_column(table, program, rows, own) for program in programs]
    theoretical = of_quantity(table, "Theoretical")
    meaning = "Theoretical limit; empty where it is unknown."
    columns.append(CsvColumn(theoretical, own["limit"] * table.factor, meaning))
    columns += [efficiency_column(program, rows, own) for program in programs]
    if table.name == "cpu":
        columns += clock_columns(own)
    if own["joules"].notna().any():
        columns += energy_columns(table, own)
    columns += spread_columns(table, own)
    columns += limit_columns(table, own)
    if SUBSYSTEMS[table.subsystem].pinned:
        columns += [at_clock(name, own) for name in CLOCKS]
    if table.subsystem == "network":
        columns += end_columns(own)
    notes = notes_of(rows, own, warnings)
    columns.append(CsvColumn("Notes", notes, "All warnings of the row, with their remedies."))
    if has_percentiles(table):
        columns += percentile_columns(table, own)
    return columns


def key_columns(table: Table, own: pd.DataFrame) -> Iterator[CsvColumn]:
    """Yield the columns that identify a row: node, workload, concurrency, block and variant."""
    if own["node"].nunique() > 1:
        meaning = "Node that was measured; only where there are several."
        yield CsvColumn("Node", own["node"], meaning)
    workloads = own["workload"].map(table.workload_label)
    yield CsvColumn(table.first, workloads, "What was measured.")
    counts = map(count, own["concurrency"], own["concurrency_word"])
    threads = pd.Series([*counts], index=own.index, dtype=object)
    yield CsvColumn("Concurrency", threads, "Threads, processes or streams.")
    if table.block:
        sizes = own["block_bytes"].map(format_size, na_action="ignore").astype(object)
        is_sized = own["block_bytes"].fillna(0).gt(0)
        blocks = sizes.where(is_sized, table.unsized)
        yield CsvColumn(table.block, blocks, "Bytes of one block, record or message.")
    if table.variant:
        meaning = "Which way of doing it: the working set, the engine or the mode."
        yield CsvColumn(table.variant, own["variant"].map(table.variant_label), meaning)


def measured_column(
    table: Table, program: Program, rows: pd.DataFrame, own: pd.DataFrame
) -> CsvColumn:
    """Return the column of the values of a program."""
    heading = f"{program.heading} {of_quantity(table, 'Measured')}"
    values = of_program(program, "value", rows, own) * table.factor
    return CsvColumn(heading, values, f"Median of what {program.heading} measured.")


def efficiency_column(program: Program, rows: pd.DataFrame, own: pd.DataFrame) -> CsvColumn:
    """Return the column of the share of the limit that a program reaches."""
    shares = of_program(program, "efficiency", rows, own) * 100
    meaning = f"Share of the limit that {program.heading} reaches."
    return CsvColumn(f"{program.heading} {EFFICIENCY}", shares, meaning)


def of_program(program: Program, name: str, rows: pd.DataFrame, own: pd.DataFrame) -> pd.Series:
    """Return the column ``name`` of a program's rows, indexed by the points of ``own``.

    The value is NaN at points that the program did not measure.
    """
    is_of_program = rows["instrument"].eq(program.instrument)
    of_rows = rows.loc[is_of_program, ["point", name]].set_index("point")[name]
    return of_rows.reindex(own.index)


def clock_columns(own: pd.DataFrame) -> Iterator[CsvColumn]:
    """Yield the columns of the clock during the work, and of this clock's share of the best clock seen."""
    meaning = "Clock under the work, of repetitions that nothing disturbed."
    yield CsvColumn("Clock (GHz)", own["clock_hz"] / 1e9, meaning)
    meaning = "Share of the best clock seen with the same work."
    yield CsvColumn("Clock (% of the best seen)", own["clock_share"] * 100, meaning)


def energy_columns(table: Table, own: pd.DataFrame) -> Iterator[CsvColumn]:
    """Yield the column of the node's energy and, for rates, the column of the work per joule."""
    meaning = "Energy of processors and memory of the node in the measured time."
    yield CsvColumn("Energy (J)", own["joules"], meaning)
    if not table.lower_is_better:
        rate = own["value"] / own["watts"] * table.factor
        meaning = "Rate by mean power, in the unit of the table for each joule."
        yield CsvColumn(f"Operations per joule ({per_joule(table)})", rate, meaning)


def spread_columns(table: Table, own: pd.DataFrame) -> Iterator[CsvColumn]:
    """Yield the columns of peakmark's kernel on its repetitions, their deviation and interval."""
    meaning = "Of the repetitions of peakmark's kernel, with n - 1."
    yield CsvColumn("Standard Deviation", own["sd"] * table.factor, meaning)
    yield CsvColumn("n", own["n"], "Repetitions of peakmark's kernel.")
    for name, end in (("low", "lower"), ("high", "upper")):
        heading = f"Interval of the median, {name}"
        yield CsvColumn(heading, own[name] * table.factor, f"Its {end} end.")
    meaning = "Below 95 with fewer than six repetitions."
    yield CsvColumn("Level of the interval (%)", own["level"] * 100, meaning)


def limit_columns(table: Table, own: pd.DataFrame) -> Iterator[CsvColumn]:
    """Yield three columns: the kind of limit, the bound if there is no limit, and the kinds of warnings."""
    yield CsvColumn("Limit Kind", own["limit_kind"])
    yield CsvColumn(f"Bound{unit_of(table)}", own["bound"] * table.factor)
    meaning = "Kinds of the warnings: wrong, varies, programs disagree, not the device."
    yield CsvColumn("Warning", own["warning_kinds"], meaning)


def at_clock(name: str, own: pd.DataFrame) -> CsvColumn:
    """Return the column of the share of the limit at the nominal or maximum clock."""
    meaning = f"Share of the limit that holds at the {name} clock."
    shares = own[f"efficiency_at_{name}"] * 100
    return CsvColumn(f"Efficiency at {name} clock (%)", shares, meaning)


def end_columns(own: pd.DataFrame) -> Iterator[CsvColumn]:
    """Yield two columns, with the hosts of clients and of servers, pair by pair."""
    for name in ("client", "server"):
        meaning = f"Host of the {name}, of each pair."
        yield CsvColumn(name.title(), own[f"{name}s"], meaning)


def notes_of(rows: pd.DataFrame, own: pd.DataFrame, warnings: pd.DataFrame) -> pd.Series:
    """Return the different sentences of each point, each after the name of the program it is about."""
    keys = ["point", "instrument"]
    programs = rows[[*keys, "program"]].set_index(keys)["program"]
    notes = warnings[warnings["point"].isin(own.index)].join(programs, on=["point", "about"])
    about = notes["program"].add(": ").fillna("")
    remedies = notes["remedy"].radd(": ").mask(notes["remedy"].eq(""), "")
    sentences = notes.assign(sentence=about + notes["text"] + remedies)
    each_once = sentences.drop_duplicates(["point", "sentence"])
    joined = each_once.groupby("point", sort=False)["sentence"].agg("; ".join)
    return joined.reindex(own.index).fillna("")


def percentile_columns(table: Table, own: pd.DataFrame) -> Iterator[CsvColumn]:
    """Yield the columns of percentiles, with intervals if the repetitions have histograms."""
    has_interval = own["p50_low"].notna().any()
    meaning = "Percentile of the operations of all repetitions of peakmark's kernel."
    end = "End of the interval of the percentile, over repetitions."
    for name, label in PERCENTILES.items():
        heading = f"{table.own.heading} {label}"
        yield CsvColumn(f"{heading} ({table.shown})", own[name] * table.factor, meaning)
        if has_interval:
            for part in ("low", "high"):
                values = own[f"{name}_{part}"] * table.factor
                yield CsvColumn(f"{heading}, {part} ({table.shown})", values, end)


# -- runs and nodes


def runs_frame(frames: CampaignFrames) -> pd.DataFrame:
    """Return every measured value in the order of time, as ``runs.csv`` has it.

    The column ``left_out`` has a code for the reason why a value does not count.
    """
    runs = frames.runs[frames.runs["value"].notna()]
    # A run of ping is in ``runs`` once for each point that shows it: keep it once.
    runs = runs.drop_duplicates(["record", "attempt", "measurement"])
    in_time = runs.sort_values(["time", "record", "attempt", "measurement"])
    left_out = in_time["disturbed"].mask(in_time["above_limit"], "above-limit")
    warnings = in_time["program_warnings"].map(joined)
    shown = in_time.assign(left_out=left_out, program_warnings=warnings)
    return shown[list(RUNS)].rename(columns=RUNS)


def joined(warnings: str) -> str:
    """Return the warnings of a program, joined by semicolons."""
    return "; ".join(json.loads(warnings or "[]"))


def nodes_frame(frames: CampaignFrames) -> pd.DataFrame:
    """Return the value of every node at every point, and the median of its class, in SI units."""
    own = frames.rows[frames.rows["is_own"]]
    order = own.groupby(["node_class", "place"], sort=False).ngroup()
    usable = own.assign(order=order)[is_usable(own)]
    median = usable.groupby("order")["value"].transform("median")
    share = usable["value"] / median - 1
    worse = share.where(usable["unit"].eq("s"), -share)
    shown = usable.assign(
        median_of_nodes=median,
        behind=usable["behind"].where(usable["is_slow"], worse),
        slow=usable["is_slow"].map({True: "slow", False: ""}),
        table_order=pd.factorize(usable["table"])[0],
    )
    in_order = shown.sort_values(["table_order", "node_class", "order"], kind="stable")
    return in_order[list(NODES)].rename(columns=NODES)
