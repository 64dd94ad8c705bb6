"""A table as LaTeX: booktabs rules, numbers aligned by siunitx, notes below, ready to be read with ``\\\\input``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from peakmark.tables.presentation import NOT_MEASURED, Column, Grid

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "µ": r"\textmu{}",
    "→": r"$\rightarrow$",
    "“": "``",
    "”": "''",
}


def escape(text: str) -> str:
    """``text`` so that LaTeX prints it as it is; control characters become spaces."""
    return "".join(_SPECIAL.get(character, character if character.isprintable() else " ") for character in text)


def table(grid: Grid) -> str:
    """A ``longtable`` of the grid; needs the packages booktabs, longtable and siunitx.

    Numbers keep a decimal point whatever the report uses: siunitx's ``output-decimal-marker`` decides in the document.
    """
    specification = "".join(_specification(grid, number, column) for number, column in enumerate(grid.columns))
    header = [_groups(grid.columns), _rules(grid.columns), _labels(grid.columns)]
    body = [
        " & ".join(_cell(column, text) for column, text in zip(grid.columns, line, strict=True)) for line in grid.body
    ]
    lines = [
        f"% {grid.name}: needs \\usepackage{{booktabs,longtable,siunitx}}",
        f"\\begin{{longtable}}{{@{{}}{specification}@{{}}}}",
        "\\toprule",
        *(line for line in header if line),
        "\\midrule",
        "\\endhead",
        "\\bottomrule",
        "\\endlastfoot",
        *(f"{line} \\\\" for line in body),
        "\\end{longtable}",
        *(f"\\noindent\\textsuperscript{{{mark}}}\\,{escape(sentence)}\\par" for mark, sentence in grid.notes),
        *(f"\\noindent {escape(remark)}\\par" for remark in ((grid.reading,) if grid.reading else ()) + grid.remarks),
    ]
    return "\n".join(lines) + "\n"


def _specification(grid: Grid, number: int, column: Column) -> str:
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


def _cell(column: Column, text: str) -> str:
    if column.kind == "number":
        return text if _is_number(text) or not text else f"{{{escape(text)}}}"
    if column.kind == "notes" and text:
        return f"\\textsuperscript{{{escape(text)}}}"
    return escape(text)


def _runs(columns: Sequence[Column]) -> list[tuple[str, int, int]]:
    """Neighbouring columns of one group: heading, first column (from 1), number of columns."""
    found = []
    position = 1
    for group, members in groupby(columns, key=lambda column: column.group):
        count = len(list(members))
        found.append((group, position, count))
        position += count
    return found


def _groups(columns: Sequence[Column]) -> str:
    cells = []
    for group, _, count in _runs(columns):
        cells += [f"\\multicolumn{{{count}}}{{c}}{{{escape(group)}}}"] if group else [""] * count
    return " & ".join(cells) + " \\\\"


def _rules(columns: Sequence[Column]) -> str:
    return " ".join(f"\\cmidrule(lr){{{first}-{first + count - 1}}}" for group, first, count in _runs(columns) if group)


def _labels(columns: Sequence[Column]) -> str:
    return " & ".join(f"{{{escape(column.label)}}}" for column in columns) + " \\\\"
