"""Tables as LaTeX (booktabs, siunitx), brief enough for one column of a paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from textwrap import wrap

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from peakmark.catalogue import SUBSYSTEMS
from peakmark.messages import Severity, WarningKind
from peakmark.resources import ROOT
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import Table
from peakmark.views import node_groups, printed
from peakmark.views.points import Point, points_of
from peakmark.views.printed import NOT_MEASURED, Column, PrintedTable

MOST = 7
"""Largest number of columns that fit a column of a paper."""
MARKS = {Severity.WRONG: "**", WarningKind.NOT_DEVICE: "†", WarningKind.VARIES: "*"}
"""Warning -> the mark at the first cell of the line, the gravest warning first."""
LONG = 55
"""Largest number of rows that a page holds."""
WORD = 10
"""Width of a line in a heading, in characters; a longer word has its own line."""
LEGEND = {
    Severity.WRONG: "** wrong: the figure is not what the row says",
    WarningKind.NOT_DEVICE: "† not the device: a cache, a host's memory or loopback was measured",
    WarningKind.VARIES: "* varies: another run may well differ",
}


def brief(frames: CampaignFrames, table: Table, rows: pd.DataFrame) -> PrintedTable:
    """Return a table with workload, size, concurrency, programs, limit and share of the limit.

    If the table has more than ``MOST`` columns, the last references are left out. A table of many nodes
    shows the typical node.

    Args:
        frames: the campaign, see ``layouts.for_print``.
        table: table with the printed unit and names of programs, see ``layouts.table_of``.
        rows: rows of the table, at least one, with the rows of all programs.
    """
    points = every = points_of(frames, rows)
    where = ""
    if node_groups.is_many(frames):
        points = node_groups.typical_points(every)
        nodes = {point.own.node for point in every}
        noun = node_groups.noun(points)
        where = f" on {points[0].own.node}, the typical one of {len(nodes)} {noun}"
    with_limit = any(point.own.limit is not None for point in points)
    columns = brief_columns(table, points, with_limit)
    remark = remark_of(table, points, where, with_limit)
    grid = starred(
        printed.fill(table, columns, points, [[point] for point in points], remarks=[remark])
    )
    references = [program.instrument for program in table.references]
    shown = [column.label for column in grid.columns if column.label in references]
    excess = max(0, len(grid.columns) - MOST)
    surplus = shown[max(0, len(shown) - excess) :]
    return grid.without(lambda column: column.label in surplus)


def brief_columns(table: Table, points: Sequence[Point], with_limit: bool) -> list[Column]:
    """Return the columns of a brief table."""
    columns = printed.place_columns(points)
    columns += [
        each for each in printed.key_columns(table) if each.label != printed.counted_heading(table)
    ]
    columns.append(Column(label="N", text=threads, kind="number"))
    for program in table.series:
        measured = printed.measured_column(table, program)
        columns.append(replace(measured, label=program.instrument))
    if with_limit:
        columns.append(replace(printed.theoretical_column(table), label="Limit"))
        columns.append(replace(printed.efficiency_column(table.own), label="%"))
    return columns


def threads(point: Point) -> str:
    """Return the number of threads; if it is unknown, the word in the configuration."""
    return str(point.own.concurrency or point.own.concurrency_word)


def remark_of(table: Table, points: Sequence[Point], where: str, with_limit: bool) -> str:
    """Return the remark of a brief table: title, unit, number of repetitions."""
    title = table.title
    if table.shown:
        title += f" in {table.shown}"
    parts = [title + where, f"N {SUBSYSTEMS[table.subsystem].counted}s"]
    counts = sorted({point.own.n for point in points if point.is_measured})
    if len(counts) == 1:
        parts.append(f"n = {counts[0]}")
    elif counts:
        parts.append(f"n = {counts[0]} to {counts[-1]}")
    if with_limit:
        parts.append("% share of the limit")
    return "; ".join(parts)


def starred(grid: PrintedTable) -> PrintedTable:
    """Return a table for one column of a paper: a mark at the first cell of a line replaces its remark."""
    marks = [mark_of(kinds) for kinds in grid.marks]
    plain = grid.without(lambda column: column.kind == "remark")
    first, *others = plain.columns
    body = []
    for line, mark in zip(plain.body, marks, strict=True):
        body.append((line[0] + mark, *line[1:]))
    legend = [f"{text}." for kind, text in LEGEND.items() if MARKS[kind] in marks]
    return replace(
        plain,
        columns=(replace(first, kind="text"), *others),
        body=tuple(body),
        remarks=(*plain.remarks, *legend),
    )


def mark_of(warning: str) -> str:
    """Return the mark for the text of a cell in the column of warnings; empty without a warning."""
    for kind, mark in MARKS.items():
        if kind in warning:
            return mark
    return ""


_NAMES = "backslash asciicircum asciitilde less greater bar mu times minus dagger"
_SPECIAL = str.maketrans(
    {
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
for _character in "{}$&#%_":
    _SPECIAL[ord(_character)] = f"\\{_character}"
for _character, _name in zip("\\^~<>|µ×−†", _NAMES.split(), strict=True):
    _SPECIAL[ord(_character)] = f"\\text{_name}{{}}"


def escape(text: str) -> str:
    """Return text that LaTeX prints unchanged, except that a space replaces each control character."""
    escaped = text.translate(_SPECIAL)
    return "".join(character if character.isprintable() else " " for character in escaped)


def render(grid: PrintedTable, across: bool = False) -> str:
    """Return a ``tabular`` to be read with ``\\input``, with notes and remarks below it.

    The first line names the packages that the ``tabular`` needs, and where it fits. siunitx's
    ``output-decimal-marker`` sets the decimal mark in the document.

    Args:
        grid: the table.
        across: whether the table is as wide as a page instead of one column of the page.
    """
    place, size, gap = "table, a column of 8.4 cm", "\\footnotesize", 2.5
    if across:
        place, size, gap = "table*", "\\scriptsize", 2
    packages, kind = "booktabs,siunitx", "tabular"
    is_long = len(grid.body) > LONG
    if is_long:
        place = "a page of one column, outside of any float"
        packages, kind = "booktabs,longtable,siunitx", "longtable"
    body = []
    for line in grid.body:
        body.append(list(map(_cell, grid.columns, line)))
    return template("table.tex.j2").render(
        name=grid.name,
        long=is_long,
        packages=packages,
        place=place,
        kind=kind,
        size=size,
        gap=gap,
        specification="".join(map(_specification, grid.columns, zip(*grid.body, strict=True))),
        headings=[f"{{{_stacked(column)}}}" for column in grid.columns],
        body=body,
        remarks=list(filter(None, (grid.reading, *grid.below))),
    )


@cache
def template(name: str) -> Template:
    """Return a template of ``reports/latex``.

    Values stand between ``((`` and ``))``, statements between ``<%`` and ``%>``.
    """
    environment = Environment(
        loader=FileSystemLoader(ROOT / "reports" / "latex"),
        autoescape=False,  # noqa: S701 - HTML's escapes; texts pass through the filter ``escape``
        undefined=StrictUndefined,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="((",
        variable_end_string="))",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["escape"] = escape
    return environment.get_template(name)


def _stacked(column: Column) -> str:
    """Return a heading broken into short lines, so that it is hardly wider than the numbers below."""
    lines = wrap(column.label, WORD, break_long_words=False)
    text = "\\\\".join(map(escape, lines))
    if len(lines) == 1:
        return text
    side = "r" if column.kind == "number" else "l"
    return f"\\shortstack[{side}]{{{text}}}"


def _specification(column: Column, texts: Sequence[str]) -> str:
    """Return the specification of a column for ``tabular``; numbers align at their decimal marks."""
    if column.kind != "number":
        return "l"
    numbers = [text for text in texts if text and text != NOT_MEASURED]
    if not all(map(_is_number, numbers)):
        return "r"
    most_digits, most_decimals = 0, 0
    for text in numbers or ["0"]:
        whole, _, decimals = text.partition(".")
        most_digits = max(most_digits, len(whole))
        most_decimals = max(most_decimals, len(decimals))
    return f"S[table-format={most_digits}.{most_decimals}]"


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _cell(column: Column, text: str) -> str:
    """Return the text of a cell, in braces if it is no number in a column that siunitx aligns."""
    if column.kind == "number" and text and not _is_number(text):
        return f"{{{escape(text)}}}"
    return escape(text)
