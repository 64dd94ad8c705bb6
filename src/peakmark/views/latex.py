"""Tables as LaTeX (booktabs, siunitx), brief enough for one column of a paper."""

from __future__ import annotations

from dataclasses import replace
from textwrap import wrap

import pandas as pd

from peakmark.messages import Severity, WarningKind
from peakmark.views.table import NOT_MEASURED, Column, ShownTable

LONG = 55
"""Largest number of rows that a page holds."""
WORD = 10
"""Width of a line in a heading, in characters; a longer word has its own line."""
MARKS = {Severity.WRONG: "**", WarningKind.NOT_DEVICE: "†", WarningKind.VARIES: "*"}
"""Warning -> the mark at the first cell of the line, the gravest warning first."""
LEGEND = {
    "**": "** wrong: the figure is not what the row says.",
    "†": "† not the device: a cache, a host's memory or loopback was measured.",
    "*": "* varies: another run may well differ.",
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
        "−": r"\textminus{}",
        "†": r"\textdagger{}",
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
    """Return a table for one column of a paper: a mark at the first cell of a line replaces its remark."""
    marks = [mark_of(kinds) for kinds in shown.marks]
    first, *others = [column for column in shown.columns if column.kind != "remark"]
    cells = pd.Series(first.texts, dtype=object) + pd.Series(marks, dtype=object)
    legend = [LEGEND[mark] for mark in MARKS.values() if mark in marks]
    return replace(
        shown,
        columns=(first._replace(cells=cells, kind="text"), *others),
        below=(*shown.below, *legend),
    )


def mark_of(warning: str) -> str:
    """Return the mark for the text of a cell in the column of warnings; empty without a warning."""
    for kind, mark in MARKS.items():
        if kind in warning:
            return mark
    return ""


def escape(text: str) -> str:
    """Return text that LaTeX prints unchanged, except that a space replaces each control character."""
    escaped = text.translate(_TEX)
    return "".join(character if character.isprintable() else " " for character in escaped)


def render(shown: ShownTable, *, across: bool = False) -> str:
    """Return a ``tabular`` to be read with ``\\input``, with the sentences below it.

    The first line names the packages that the ``tabular`` needs, and where it fits.

    Args:
        shown: the table.
        across: whether the table is as wide as a page instead of one column of the page.
    """
    place, size, gap = "table, a column of 8.4 cm", r"\footnotesize", 2.5
    if across:
        place, size, gap = "table*", r"\scriptsize", 2
    body = [" & ".join(line) for line in zip(*map(cells, shown.columns), strict=True)]
    packages, kind, head, foot = "booktabs,siunitx", "tabular", [], [r"\bottomrule"]
    if len(body) > LONG:
        place = "a page of one column, outside of any float"
        packages, kind = "booktabs,longtable,siunitx", "longtable"
        head, foot = [r"\endhead", r"\bottomrule", r"\endlastfoot"], []
    lines = [
        rf"% {shown.name}: needs \usepackage{{{packages}}}; fits into {place}",
        rf"{{{size}\setlength{{\tabcolsep}}{{{gap}pt}}%",
        rf"\begin{{{kind}}}{{@{{}}{''.join(map(specification, shown.columns))}@{{}}}}",
        r"\toprule",
        rf"{' & '.join(map(stacked, shown.columns))} \\",
        r"\midrule",
        *head,
    ]
    lines += [rf"{line} \\" for line in body]
    lines += [*foot, rf"\end{{{kind}}}\par", r"\smallskip\sloppy\emergencystretch=3em"]
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
    digits, decimals = 1, 0
    for text in numbers:
        whole, _, fraction = text.partition(".")
        digits, decimals = max(digits, len(whole)), max(decimals, len(fraction))
    return f"S[table-format={digits}.{decimals}]"


def is_number(text: str) -> bool:
    """Return whether siunitx aligns a cell."""
    return text.replace(".", "", 1).isdigit()


def cells(column: Column) -> list[str]:
    """Return the cells of a column, in braces if it is no number in a column that siunitx aligns."""
    found = []
    for text in column.texts:
        cell = escape(text)
        if column.kind == "number" and text and not is_number(text):
            cell = f"{{{cell}}}"
        found.append(cell)
    return found
