"""A table as LaTeX: booktabs rules, numbers aligned by siunitx, notes below, ready to be read with
``\\input``.
"""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from peakmark.resources import ROOT
from peakmark.tables.presentation import NOT_MEASURED, PrintedColumn, PrintedTable

LONG = 55  # rows that a page holds
WORD = 10  # characters of a heading's line, up to which words stand beside each other

_NAMES = "backslash asciicircum asciitilde less greater bar mu times minus"
_NAMED = dict(zip("\\^~<>|µ×−", _NAMES.split(), strict=True))
_OTHERS = {
    "→": r"$\rightarrow$",
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


def table(grid: PrintedTable, across: bool = False) -> str:
    """The grid as a ``tabular`` to be read with ``\\input``, and what is said of it below; its
    first line names the packages that it needs and where it fits: into a column, or ``across``
    both.

    Numbers keep a decimal point whatever the report uses: siunitx's ``output-decimal-marker``
    decides in the document.
    """
    long = len(grid.body) > LONG
    place = "table*" if across else "table, a column of 8.4 cm"
    return _template().render(
        name=grid.name,
        long=long,
        packages="booktabs,longtable,siunitx" if long else "booktabs,siunitx",
        place="a page of one column, outside of any float" if long else place,
        kind="longtable" if long else "tabular",
        size="\\scriptsize" if across else "\\footnotesize",
        gap=2 if across else 2.5,
        specification="".join(
            _specification(grid, number, column) for number, column in enumerate(grid.columns)
        ),
        headings=[f"{{{_stacked(column)}}}" for column in grid.columns],
        body=[
            [_cell(column, text) for column, text in zip(grid.columns, line, strict=True)]
            for line in grid.body
        ],
        notes=grid.notes,
        remarks=[remark for remark in (grid.reading, *grid.below) if remark],
    )


@cache
def _template() -> Template:
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
    return environment.get_template("table.tex.j2")


def _stacked(column: PrintedColumn) -> str:
    """A heading with its words one below the other, short ones together: it is hardly wider than
    the numbers below it.
    """
    lines: list[str] = []
    for word in column.label.replace("-", "- ").split():
        if lines and len(lines[-1]) + len(word) < WORD:
            lines[-1] += word if lines[-1].endswith("-") else f" {word}"
        else:
            lines.append(word)
    side = "r" if column.kind == "number" else "l"
    text = "\\\\".join(map(escape, lines))
    return text if len(lines) == 1 else f"\\shortstack[{side}]{{{text}}}"


def _specification(grid: PrintedTable, number: int, column: PrintedColumn) -> str:
    if column.kind != "number":
        return "l"
    texts = [line[number] for line in grid.body]
    if not all(_is_number(text) for text in texts if text and text != NOT_MEASURED):
        return "r"
    parts = [text.partition(".") for text in texts if _is_number(text)]
    whole = max((len(part[0]) for part in parts), default=1)
    decimals = max((len(part[2]) for part in parts), default=0)
    return f"S[table-format={whole}.{decimals}]"


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(".", "", 1).isdigit()


def _cell(column: PrintedColumn, text: str) -> str:
    if column.kind == "number":
        return text if _is_number(text) or not text else f"{{{escape(text)}}}"
    if column.kind == "notes" and text:
        return f"\\textsuperscript{{{escape(text)}}}"
    return escape(text)
