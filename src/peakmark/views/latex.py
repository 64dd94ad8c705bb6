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
"""Warning -> the mark at the first cell of its line, the gravest first."""
LEGEND = {
    Severity.WRONG: "** wrong: the figure is not what the row says",
    WarningKind.NOT_DEVICE: "† not the device: a cache, a host's memory or loopback was measured",
    WarningKind.VARIES: "* varies: another run may well differ",
}


def brief(frames: CampaignFrames, table: Table, rows: pd.DataFrame) -> PrintedTable:
    """Return a table with workload, size, concurrency, programs, limit and share of the limit.

    References are left out where that is more than ``MOST`` columns. Of many nodes the typical one
    stands for all.

    Args:
        frames: the campaign, see ``layouts.arrange``.
        table: gives unit and names of programs, see ``layouts.table_of``.
        rows: lines of ``frames.rows``, of each point all, at least one.
    """
    points = every = points_of(frames, rows)
    what = ""
    if node_groups.is_many(frames):
        points = node_groups.typical_points(every)
        nodes = {point.own.node for point in every}
        noun = node_groups.noun(points)
        what = f" on {points[0].own.node}, the typical one of {len(nodes)} {noun}"
    with_limit = any(point.own.limit is not None for point in points)
    remarks = [remark_of(table, points, what, with_limit)]
    whole = printed.fill(
        brief_columns(table, points, with_limit),
        points,
        points,
        remarks=remarks,
        table=table,
        name=table.name,
        title=table.title,
    )
    grid = starred(whole)
    references = [program.instrument for program in table.references]
    shown = [column.label for column in grid.columns if column.label in references]
    room = len(shown) - max(0, len(grid.columns) - MOST)
    surplus = shown[max(0, room) :]
    return grid.without(lambda column: column.label in surplus)


def brief_columns(table: Table, points: Sequence[Point], with_limit: bool) -> list[Column]:
    """Return the columns of a brief table."""
    columns = printed.place_columns(points)
    columns += [each for each in printed.key_columns(table) if each.label != "Concurrency"]
    columns.append(Column(label="N", text=threads, kind="number"))
    for program in table.series:
        measured = printed.measured_column(table, program)
        columns.append(replace(measured, label=program.instrument))
    if with_limit:
        columns.append(replace(printed.theoretical_column(table), label="Limit"))
        columns.append(replace(printed.efficiency_column(table.own), label="%"))
    columns.append(printed.warning_column(lambda point: [point]))
    return columns


def threads(point: Point) -> str:
    """Return the number of threads; the word where that is not known."""
    return str(point.own.concurrency or point.own.concurrency_word)


def remark_of(table: Table, points: Sequence[Point], what: str, with_limit: bool) -> str:
    """Return what a brief table shows: title, unit, number of repetitions."""
    unit = f" in {table.shown}" if table.shown else ""
    parts = [f"{table.title}{unit}{what}", f"N {SUBSYSTEMS[table.subsystem].counted}s"]
    counts = [point.own.n for point in points if point.is_measured]
    if counts:
        parts.append(repeated(counts))
    if with_limit:
        parts.append("% share of the limit")
    return "; ".join(parts)


def repeated(counts: Sequence[int]) -> str:
    """Return ``n = 3``, or ``n = 3 to 6``, of numbers of repetitions."""
    least, most = min(counts), max(counts)
    return f"n = {least}" if least == most else f"n = {least} to {most}"


def starred(grid: PrintedTable) -> PrintedTable:
    """Return a table for one column, without notes.

    Marks at the first cell stand for the columns of warnings and notes.
    """
    warnings = grid.texts("warning") or [""] * len(grid.body)
    marks = [mark_of(warning) for warning in warnings]
    plain = grid.without(lambda column: column.kind in ("warning", "notes"))
    first, *others = plain.columns
    body = []
    for line, mark in zip(plain.body, marks, strict=True):
        body.append((line[0] + mark, *line[1:]))
    legend = [f"{text}." for kind, text in LEGEND.items() if MARKS[kind] in marks]
    return replace(
        plain,
        columns=(replace(first, kind="text"), *others),
        body=tuple(body),
        notes=(),
        remarks=(*plain.remarks, *legend),
    )


def mark_of(warning: str) -> str:
    """Return the mark for the text of a column of warnings, empty for none."""
    for kind, mark in MARKS.items():
        if kind in warning:
            return mark
    return ""


LONG = 55
"""Largest number of rows that a page holds."""
WORD = 10
"""Width of a line of a heading, in characters; a longer word has a line of its own."""

_NAMES = "backslash asciicircum asciitilde less greater bar mu times minus dagger"
_NAMED = dict(zip("\\^~<>|µ×−†", _NAMES.split(), strict=True))
_OTHERS = {
    "→": r"$\rightarrow$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "“": "``",
    "”": "''",
    "–": "--",
    "⁹": r"\textsuperscript{9}",
    "\u00a0": "~",
}
_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "{}$&#%_"}
    | {character: f"\\text{name}{{}}" for character, name in _NAMED.items()}
    | _OTHERS
)


def escape(text: str) -> str:
    """Return ``text`` so that LaTeX prints it as it is; control characters become spaces."""
    return "".join(
        character if character.isprintable() else " " for character in text.translate(_SPECIAL)
    )


def render(grid: PrintedTable, across: bool = False) -> str:
    """Return a ``tabular`` to be read with ``\\input``, and what is said of it below.

    The first line names the packages that it needs and where it fits. siunitx's
    ``output-decimal-marker`` sets the decimal mark in the document.

    Args:
        grid: the table.
        across: it fits a page, not one column of it.
    """
    long = len(grid.body) > LONG
    place = "table*" if across else "table, a column of 8.4 cm"
    return template("table.tex.j2").render(
        name=grid.name,
        long=long,
        packages="booktabs,longtable,siunitx" if long else "booktabs,siunitx",
        place="a page of one column, outside of any float" if long else place,
        kind="longtable" if long else "tabular",
        size="\\scriptsize" if across else "\\footnotesize",
        gap=2 if across else 2.5,
        specification="".join(map(_specification, grid.columns, zip(*grid.body, strict=True))),
        headings=[f"{{{_stacked(column)}}}" for column in grid.columns],
        body=[
            [_cell(column, text) for column, text in zip(grid.columns, line, strict=True)]
            for line in grid.body
        ],
        notes=grid.notes,
        remarks=[remark for remark in (grid.reading, *grid.below) if remark],
    )


@cache
def template(name: str) -> Template:
    """Return a template of ``reports/latex``: in ``((`` and ``))`` values, in ``<%`` and ``%>`` statements."""
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
    """Return a heading with its words one below the other, short ones together.

    It is hardly wider than the numbers below it.
    """
    lines = wrap(column.label, WORD, break_long_words=False)
    side = "r" if column.kind == "number" else "l"
    text = "\\\\".join(map(escape, lines))
    return text if len(lines) == 1 else f"\\shortstack[{side}]{{{text}}}"


def _specification(column: Column, texts: Sequence[str]) -> str:
    if column.kind != "number":
        return "l"
    numbers = [text for text in texts if text and text != NOT_MEASURED]
    if not all(map(_is_number, numbers)):
        return "r"
    whole = max((len(text.partition(".")[0]) for text in numbers), default=1)
    decimals = max((len(text.partition(".")[2]) for text in numbers), default=0)
    return f"S[table-format={whole}.{decimals}]"


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(".", "", 1).isdigit()


def _cell(column: Column, text: str) -> str:
    if column.kind == "number":
        return text if _is_number(text) or not text else f"{{{escape(text)}}}"
    if column.kind == "notes" and text:
        return f"\\textsuperscript{{{escape(text)}}}"
    return escape(text)
