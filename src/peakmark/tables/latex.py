"""Tables as LaTeX (booktabs, siunitx), brief enough for one column of a paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from textwrap import wrap

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from peakmark.analysis import fleet
from peakmark.analysis.label_formatter import noun, repeated
from peakmark.analysis.row import Row
from peakmark.messages import Severity, WarningKind
from peakmark.resources import ROOT
from peakmark.tables import presentation
from peakmark.tables.columns import (
    NOT_MEASURED,
    Column,
    efficiency_column,
    key_columns,
    measured_column,
    place_columns,
    theoretical_column,
    warning_column,
)
from peakmark.tables.presentation import Notes, PrintedTable

MOST = 7
MARKS = {Severity.WRONG: "**", WarningKind.NOT_DEVICE: "†", WarningKind.VARIES: "*"}
LEGEND = {
    Severity.WRONG: "** wrong: the figure is not what the row says",
    WarningKind.NOT_DEVICE: "† not the device: a cache, a host's memory or loopback was measured",
    WarningKind.VARIES: "* varies: another run may well differ",
}


def brief(every: Sequence[Row], of_many: bool = False) -> PrintedTable:
    """Workload, size, concurrency, own kernel, references, limit, share of the limit: of these what
    the rows have, a reference less where that is more than ``MOST``.

    Args:
        every: rows of one table, at least one.
        of_many: they are of many nodes: those of the typical node stand for all.
    """
    rows, table, what = every, every[0].table, ""
    if of_many:
        rows = fleet.typical_rows(every)
        nodes = len({row.key.node for row in every})
        what = f" on {rows[0].key.node}, the typical one of {nodes} {fleet.noun(rows)}"
    threads = Column(
        label="N", kind="number", of=lambda row: str(row.key.concurrency or row.key.word)
    )
    keys = [column for column in key_columns(table) if column.heading != "Concurrency"]
    with_limit = any(row.limit.value is not None for row in rows)
    limit = [
        replace(theoretical_column(table), label="Limit"),
        replace(efficiency_column(table.own), label="%"),
    ]
    columns = [
        *place_columns(rows),
        *keys,
        threads,
        *(replace(measured_column(table, each), label=each.instrument) for each in table.series),
        *(limit if with_limit else []),
        warning_column(lambda row: [row]),
    ]
    unit = f" in {table.shown}" if table.shown else ""
    counted = [row.own.summary.n for row in rows if row.own]
    parts = (
        f"{table.title}{unit}{what}",
        f"N {noun(table)}s",
        repeated(counted) if counted else "",
        "% share of the limit" if with_limit else "",
    )
    remarks = ["; ".join(filter(None, parts))]
    grid = starred(PrintedTable.of(table.name, table.title, columns, rows, Notes.of(()), remarks))
    references = [each.instrument for each in table.references]
    shown = [column.label for column in grid.columns if column.label in references]
    surplus = shown[max(0, len(shown) - max(0, len(grid.columns) - MOST)) :]
    return presentation.without(grid, lambda column: column.label in surplus)


def starred(grid: PrintedTable) -> PrintedTable:
    """A grid for one column: marks at the first cell instead of the columns of warnings and notes,
    and no notes below.
    """
    warnings = grid.texts("warning") or [""] * len(grid.body)
    plain = presentation.without(grid, lambda column: column.kind in ("warning", "notes"))
    marks = [
        next((mark for kind, mark in MARKS.items() if kind in warning), "") for warning in warnings
    ]
    return replace(
        plain,
        columns=(replace(plain.columns[0], kind="text"), *plain.columns[1:]),
        body=tuple(
            (line[0] + mark, *line[1:]) for line, mark in zip(plain.body, marks, strict=True)
        ),
        notes=(),
        remarks=(
            *plain.remarks,
            *(f"{text}." for kind, text in LEGEND.items() if MARKS[kind] in marks),
        ),
    )


LONG = 55  # rows that a page holds
WORD = 10  # characters of a line of a heading; a longer word has a line of its own

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
    """``text`` so that LaTeX prints it as it is; control characters become spaces."""
    return "".join(
        character if character.isprintable() else " " for character in text.translate(_SPECIAL)
    )


def render(grid: PrintedTable, across: bool = False) -> str:
    """The grid as a ``tabular`` to be read with ``\\input``, and what is said of it below; its
    first line names the packages that it needs and where it fits: into a column, or ``across``
    both.

    Numbers keep a decimal point whatever the report uses: siunitx's ``output-decimal-marker``
    decides in the document.
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
    """A template of ``reports/latex``: in ``((`` and ``))`` values, in ``<%`` and ``%>`` statements."""
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
    """A heading with its words one below the other, short ones together: it is hardly wider than
    the numbers below it.
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
