"""The tables of a campaign as files: CSV with full precision, LaTeX with four significant digits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd

from peakmark import files, output
from peakmark.config import layouts
from peakmark.config.layouts import Layout
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import TABLES, Table
from peakmark.views import latex, layout_tables
from peakmark.views.points import (
    is_many,
    noun_of,
    points_of,
    rows_of,
    typical_node,
    with_medians,
)
from peakmark.views.table import csv
from peakmark.views.usual_tables import columns_of

FOLDER = "tables"
"""Folder of the tables, below the campaign's folder."""
PAPER = "paper"
"""Layout whose tables each campaign has: they fit one column of a paper."""
RUNS = (
    "subsystem", "instrument", "measured_workload", "variant", "measured_block_bytes",
    "measured_concurrency", "node", "host", "server_host", "repetition", "metric", "value", "unit",
    "started", "job_id", "tool_version", "warnings", "left_out", "record",
)  # fmt: skip
"""Columns of ``runs.csv``: those of ``runs``, with shorter names."""
NODES = {
    "node_class": "class", "block_bytes": "block", "concurrency_word": "asked", "low": "median_low",
    "high": "median_high", "behind_p": "p",
}  # fmt: skip
"""Column of ``rows`` -> its heading in ``nodes.csv``, if it has another one."""
NODE_COLUMNS = (
    "table", "workload", "variant", "block", "concurrency", "asked", "node", "class", "unit", "value",
    "median_low", "median_high", "median_of_nodes", "behind", "slow", "behind_low", "behind_high", "p",
)  # fmt: skip


def write_tables(frames: CampaignFrames, folder: Path) -> None:
    """Write the tables of a campaign into a folder, and print which records do not count.

    Each table has a ``NAME.csv``, and ``runs.csv`` has all runs. For several nodes, ``nodes.csv`` has the
    values of each node. The tables of the layout ``paper``, and those of the campaign's layout, are in
    folders with the layouts' names, also as LaTeX.
    """
    for reason in frames.campaign["left_out"]:
        output.tell(f"left out: {reason}")
    layout = layout_tables.layout_of(frames)
    arranged = layout_tables.arrange(frames, layout)
    # Delete a file that may show an earlier choice of nodes.
    (folder / "nodes.csv").unlink(missing_ok=True)
    # A campaign without GPUs has no tables of GPUs, and one without META has no table of metadata.
    has_gpus = bool(frames.rows["subsystem"].eq("gpu").any())
    has_metadata = bool(frames.rows["table"].eq("disk_metadata").any())
    for table in TABLES:
        has_rows = has_gpus if table.subsystem == "gpu" else has_metadata
        if table.is_optional and not has_rows:
            (folder / f"{table.name}.csv").unlink(missing_ok=True)
            continue
        content = table_frame(table, arranged, rows_of(arranged, table))
        write_csv(folder / f"{table.name}.csv", content)
    write_csv(folder / "runs.csv", runs_frame(frames))
    if len(frames.nodes) > 1:
        write_csv(folder / "nodes.csv", nodes_frame(arranged))
    if layout is not None:
        write_layout(arranged, layout, folder / layout.name)
    if layout is None or layout.name != PAPER:
        paper = layouts.load(PAPER)
        of_paper = layout_tables.arrange(frames, paper)
        write_layout(of_paper, paper, folder / PAPER)


def write_layout(frames: CampaignFrames, layout: Layout, folder: Path) -> None:
    """Write the tables of a layout into a folder."""
    for layout_table in layout.layout_tables:
        rows, where = rows_of(frames, layout_table.table), ""
        if layout_table.table.is_optional and rows.empty:
            continue
        if layout.narrow and is_many(frames):
            rows, where = rows_of_typical_node(rows)
        points = layout_tables.lines_of(layout_table, rows)
        columns = layout_tables.columns_of(frames, layout_table, points)
        write_csv(folder / f"{layout_table.name}.csv", csv(columns))
        called = layout.called(layout_table.table)
        shown = layout_tables.layout_table_of(frames, layout_table, called, points, columns)
        # In one column of a paper, marks replace the remarks.
        if layout.narrow:
            shown = latex.starred(replace(shown, below=(*shown.below, *filter(None, [where]))))
        text = latex.render(shown, across=not layout.narrow)
        files.write_text(folder / f"{layout_table.name}.tex", text)


def rows_of_typical_node(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the rows of the node that represents many nodes, and a sentence that names it."""
    own = rows[rows["is_own"]]
    usable = with_medians(own)
    if usable.empty:
        return rows, ""
    node, of_nodes = typical_node(usable), own["node"].nunique()
    return rows[rows["node"].eq(node)], f"On {node}, the typical one of {of_nodes} {noun_of(own)}."


def write_csv(path: Path, content: pd.DataFrame) -> None:
    """Write a frame as a CSV file."""
    files.write_text(path, content.to_csv(index=False, lineterminator="\n"))


def table_frame(table: Table, frames: CampaignFrames, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the content of a table's CSV file: values in the table's unit with full precision.

    The columns of a program that measured nothing are empty.
    """
    points = points_of(rows)
    points.own["notes"] = notes_of(rows, frames.warnings)
    return csv(columns_of(table, points))


def notes_of(rows: pd.DataFrame, warnings: pd.DataFrame) -> pd.Series:
    """Return the different sentences of each point, each after the name of the program it is about."""
    points = rows.loc[rows["is_own"], "point"]
    programs = rows.set_index(["point", "instrument"])["program"]
    notes = warnings[warnings["point"].isin(points)].join(programs, on=["point", "about"])
    about = notes["program"].add(": ").fillna("")
    remedies = notes["remedy"].radd(": ").mask(notes["remedy"].eq(""), "")
    sentences = notes.assign(sentence=about + notes["text"] + remedies)
    each_once = sentences.drop_duplicates(["point", "sentence"])
    joined = each_once.groupby("point", sort=False)["sentence"].agg("; ".join)
    return joined.reindex(points).fillna("")


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
    shown = in_time.assign(left_out=left_out, warnings=warnings)[list(RUNS)]
    return shown.rename(columns=lambda name: name.removeprefix("measured_").removesuffix("_bytes"))


def joined(warnings: str) -> str:
    """Return the warnings of a program, joined by semicolons."""
    return "; ".join(json.loads(warnings or "[]"))


def nodes_frame(frames: CampaignFrames) -> pd.DataFrame:
    """Return the value of every node at every point, and the median of its class, in SI units."""
    usable = with_medians(frames.rows[frames.rows["is_own"]])
    shown = usable.assign(
        slow=usable["is_slow"].map({True: "slow", False: ""}),
        table_order=pd.factorize(usable["table"])[0],
    )
    in_order = shown.sort_values(["table_order", "group"], kind="stable")
    return in_order.rename(columns=NODES)[list(NODE_COLUMNS)]
