"""The rows of a campaign as files for papers and other programs: CSV, LaTeX, OpenMetrics, JSON lines."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import pandas as pd

from peakmark import files
from peakmark.config import layouts
from peakmark.config.layouts import Layout
from peakmark.errors import tell
from peakmark.formatting import printable
from peakmark.rows import schema
from peakmark.rows.labels import rows_of_typical_node, with_medians
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME, TABLES, Table
from peakmark.views import layout_tables
from peakmark.views.table import (
    NOT_MEASURED,
    Column,
    ShownTable,
    csv,
    is_many,
    noun_of,
    points_of,
    rows_of,
)
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

    Each table that the campaign's plan fills has a ``NAME.csv``, and ``runs.csv`` has all runs. For several
    nodes, ``nodes.csv`` has the values of each node. The tables of the layout ``paper``, and those of the
    campaign's layout, are in folders with the layouts' names, also as LaTeX.
    """
    for reason in frames.campaign["left_out"]:
        tell(f"left out: {reason}")
    layout = layout_tables.layout_of(frames)
    arranged = layout_tables.arrange(frames, layout)
    # Delete a file that may show an earlier choice of nodes; it is written again for several nodes.
    (folder / "nodes.csv").unlink(missing_ok=True)
    for table in TABLES:
        rows = rows_of(arranged, table)
        if table.name not in frames.campaign["tables"]:
            (folder / f"{table.name}.csv").unlink(missing_ok=True)
            continue
        content = table_frame(table, arranged, rows)
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
        if layout_table.table.name not in frames.campaign["tables"]:
            continue
        rows = rows_of(frames, layout_table.table)
        of_which_node: tuple[str, ...] = ()
        # One column of a paper has no room for a line for each of many nodes.
        if layout.narrow and is_many(frames):
            of_all, rows = rows[rows["is_own"]], rows_of_typical_node(rows)
            node, count = rows["node"].iloc[0], of_all["node"].nunique()
            of_which_node = (f"On {node}, the typical one of {count} {noun_of(of_all)}.",)
        called = layout.called(layout_table.table)
        points = layout_tables.lines_of(layout_table, called, rows)
        columns = layout_tables.columns_of(frames, layout_table, points)
        write_csv(folder / f"{layout_table.name}.csv", csv(columns))
        shown = layout_tables.layout_table_of(frames, layout_table, called, points, columns)
        # In one column of a paper, stars replace the remarks.
        if layout.narrow:
            shown = starred(replace(shown, below=(*shown.below, *of_which_node)))
        text = render(shown, across=not layout.narrow)
        files.write_text(folder / f"{layout_table.name}.tex", text)


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
    """Return point -> its different warnings as one text, each after the name of the program that it is about."""
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
    # The columns ``measured_*`` keep the recorded values; the file has shorter names for them.
    return shown.rename(columns=lambda name: name.removeprefix("measured_").removesuffix("_bytes"))


def joined(warnings: str) -> str:
    """Return the warnings of a program, which are a JSON list, as one text with semicolons."""
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


# -- LaTeX

WORD = 10
"""Width of a line in a heading, in characters; a longer word has its own line."""
STARS = {"no": "**", "care": "*"}
"""Trust in the value of a line -> stars behind the first cell of the line."""
# Stars -> their meaning, which is printed below a table that has them.
LEGEND = {
    "**": "** no: the value is wrong, or not that of the device.",
    "*": "* care: another run may well differ.",
}
_TEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "{}$&#%_"},
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "µ": r"\textmu{}",
        "×": r"\texttimes{}",
        "±": r"\textpm{}",
        "−": r"\textminus{}",
        "→": r"$\rightarrow$",
        "≤": r"$\le$",
        "≥": r"$\ge$",
        "“": "``",
        "”": "''",
        "–": "--",
        "⁹": r"\textsuperscript{9}",
        "\u00a0": "~",
    }
)


def starred(shown: ShownTable) -> ShownTable:
    """Return a table for one column of a paper: stars behind the first cell of a line replace its remark.

    Below the table are the meaning of the stars and the reasons why a value must not be used.
    """
    of_lines = [STARS.get(trust, "") for trust in shown.marks]
    first, *others = [column for column in shown.columns if column.kind != "remark"]
    cells = pd.Series(first.texts, dtype=object) + pd.Series(of_lines, dtype=object)
    legend = [LEGEND[mark] for mark in STARS.values() if mark in of_lines]
    remarks: list[str] = []
    for column in shown.columns:
        if column.kind == "remark":
            remarks += column.texts
    # A remark joins its reasons by semicolons; those for which a value must not be used begin with no.
    reasons = [part for part in "; ".join(remarks).split("; ") if part.startswith("no: ")]
    if reasons:
        legend.append(f"{'; '.join(dict.fromkeys(reasons))}.")
    return replace(
        shown,
        columns=(first._replace(cells=cells, kind="text"), *others),
        below=(*shown.below, *legend),
    )


def escape(text: str) -> str:
    """Return text that LaTeX prints unchanged, except that a space replaces each control character."""
    return printable(text.translate(_TEX))


def render(shown: ShownTable, *, across: bool = False) -> str:
    """Return a ``tabular`` to be read with ``\\input``, with the sentences below it.

    The first line names the packages that the ``tabular`` needs, and where it fits.

    Args:
        shown: the table.
        across: whether the table is as wide as a page instead of one column of the page.
    """
    # Environment in which the table fits, and size of the type.
    place, size = "table, a column of 8.4 cm", r"\footnotesize"
    if across:
        place, size = "table*", r"\scriptsize"
    body = [" & ".join(line) for line in zip(*map(cells, shown.columns), strict=True)]
    lines = [
        rf"% {shown.name}: needs \usepackage{{booktabs,siunitx}}; fits into {place}",
        rf"{{{size}\setlength{{\tabcolsep}}{{2pt}}%",
        rf"\begin{{tabular}}{{@{{}}{''.join(map(specification, shown.columns))}@{{}}}}",
        r"\toprule",
        rf"{' & '.join(map(stacked, shown.columns))} \\",
        r"\midrule",
    ]
    lines += [rf"{line} \\" for line in body]
    lines += [r"\bottomrule", r"\end{tabular}\par", r"\smallskip\sloppy\emergencystretch=3em"]
    for sentence in filter(None, (shown.reading, *shown.below, *shown.general)):
        lines.append(rf"\noindent {escape(sentence)}\par")
    return "\n".join([*lines, "}", ""])


def stacked(column: Column) -> str:
    """Return a heading broken into short lines, so that it is hardly wider than the numbers below."""
    lines = wrap(column.label, WORD, break_long_words=False)
    text = "\\\\".join(map(escape, lines))
    if len(lines) == 1:
        return f"{{{text}}}"
    side = "r" if column.kind == "number" else "l"
    return f"{{\\shortstack[{side}]{{{text}}}}}"


def specification(column: Column) -> str:
    """Return the specification of a column for ``tabular``; numbers align at their decimal marks."""
    if column.kind != "number":
        return "l"
    numbers = [text for text in column.texts if text not in ("", NOT_MEASURED)]
    if not all(map(is_number, numbers)):
        return "r"
    # The most digits before and after the decimal mark.
    digits, decimals = 1, 0
    for text in numbers:
        whole, _, fraction = text.partition(".")
        digits, decimals = max(digits, len(whole)), max(decimals, len(fraction))
    return f"S[table-format={digits}.{decimals}]"


def is_number(text: str) -> bool:
    """Return whether a cell is a number without a sign, which siunitx aligns at the decimal mark."""
    return text.replace(".", "", 1).isdigit()


def cells(column: Column) -> list[str]:
    """Return the cells of a column. siunitx aligns columns of numbers, so texts in them are put in braces."""
    found = []
    for text in column.texts:
        cell = escape(text)
        if column.kind == "number" and text and not is_number(text):
            cell = f"{{{cell}}}"
        found.append(cell)
    return found


# -- OpenMetrics and JSON lines

METRICS = {
    "op/s": "operations_per_second",
    "B/s": "bytes_per_second",
    "bit/s": "bits_per_second",
    "s": "seconds",
    "1/s": "accesses_per_second",
    "message/s": "messages_per_second",
}
"""SI unit -> unit in the name of a metric of OpenMetrics."""
RATIO = "peakmark_efficiency_ratio"  # metric that holds the shares of the limit
LABELS = {
    "table": "table",
    "instrument": "instrument",
    "workload": "workload",
    "variant": "variant",
    "block": "block_bytes",
    "concurrency": "concurrency",
    "word": "concurrency_word",
    "node": "node",
    "trust": "trust",
}
"""Label of a sample of OpenMetrics -> column of ``rows``."""
STATISTICS = {"median": "value", "low": "low", "high": "high"}
"""Statistic of a sample -> column of ``rows``."""


def measured(frames: CampaignFrames) -> Iterator[Any]:
    """Yield the lines of ``rows`` that have a value."""
    yield from schema.lines(frames.rows[frames.rows["n"] > 0])


def json_lines(frames: CampaignFrames) -> str:
    """Return each measured row as an object with the columns of ``rows.csv``."""
    holds_json = {column.name for column in schema.ROWS if column.kind == "json"}
    lines = []
    for row in measured(frames):
        values = row._asdict()
        del values["Index"]
        for name in holds_json:
            values[name] = json.loads(values[name] or "null")
        lines.append(f"{json.dumps(values, ensure_ascii=False)}\n")
    return "".join(lines)


def openmetrics(frames: CampaignFrames) -> str:
    """Return medians, the ends of their intervals, and efficiencies as gauges of OpenMetrics 1.0.

    Source: OpenMetrics 1.0, section Text format.
    """
    families: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in measured(frames):
        labels = {"campaign": frames.campaign["name"]}
        labels |= {label: getattr(row, column) for label, column in LABELS.items()}
        metric, unit = metric_of(row.table), METRICS[row.unit]
        for statistic, column in STATISTICS.items():
            line = sample(metric, labels | {"statistic": statistic}, getattr(row, column))
            families[metric, unit].append(line)
        if row.efficiency is not None:
            families[RATIO, "ratio"].append(sample(RATIO, labels, row.efficiency))
    lines = []
    for (metric, unit), samples in families.items():
        lines += [f"# TYPE {metric} gauge", f"# UNIT {metric} {unit}", *samples]
    return "\n".join([*lines, "# EOF"]) + "\n"


def metric_of(table: str) -> str:
    """Return the name of the metric that has the values of a table. docs/grafana.json uses these names."""
    return f"peakmark_{table}_{METRICS[BY_NAME[table].unit]}"


def sample(metric: str, labels: dict[str, Any], value: float) -> str:
    """Return the line of a sample; OpenMetrics quotes texts as JSON does."""
    pairs = []
    for name, label in labels.items():
        text = "" if label is None else str(label)
        pairs.append(f"{name}={json.dumps(text, ensure_ascii=False)}")
    return f"{metric}{{{','.join(pairs)}}} {value!r}"
