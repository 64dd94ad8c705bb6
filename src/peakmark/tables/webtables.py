"""Tables of the HTML page: those with headings over several columns, which a reader can sort and
filter, and plain ones.

All texts are escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from peakmark.tables.footnotes import BETWEEN, BOUND
from peakmark.tables.presentation import NOT_MEASURED

_SIZES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}

Data = Mapping[str, Any]


def rich(text: str) -> str:
    """A text in which code stands between backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one backtick is no code
        return escape(text)
    return "".join(
        f"<code>{escape(part)}</code>" if odd % 2 else escape(part)
        for odd, part in enumerate(parts)
    )


def grid(table: Data, mark: str) -> str:
    """A table with headings over several columns, that a reader can sort and filter; ``notes`` go
    below it.
    """
    columns = table["columns"]
    place = 0
    head, sub = "", []
    leaves = iter(table["subhead"])
    for entry in table["head"]:
        heading = "<br>".join(escape(line) for line in entry["title"].split("\n"))
        if entry["rows"] == 1 and table["subhead"]:
            head += f'<th class="group" scope="colgroup" colspan="{entry["span"]}">{heading}</th>'
            for _ in range(entry["span"]):
                sub.append(
                    f'<th class="number" scope="col" data-column="{place}">{escape(next(leaves))}</th>'
                )
                place += 1
        else:
            kind = ' class="number"' if entry["kind"] == "number" else ""
            head += f'<th{kind} scope="col" rowspan="{entry["rows"]}" data-column="{place}">{heading}</th>'
            place += 1
    rows = ""
    for number, line in enumerate(table["body"]):
        cells = "".join(
            _cell(x, cell, columns[x]["kind"], table["name"], mark) for x, cell in enumerate(line)
        )
        rows += ('<tr class="rule">' if number in table["breaks"] else "<tr>") + f"{cells}</tr>"
    second = f"<tr>{''.join(sub)}</tr>" if sub else ""
    caption = escape(table["title"])
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table class="sortable">'
        f'<caption>{caption} {escape(table["reading"])}<span class="count"></span></caption><thead><tr>{head}</tr>{second}</thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(place: int, cell: str | Mapping[str, str], kind: str, table: str, mark: str) -> str:
    text, pad = (cell, "") if isinstance(cell, str) else (cell["text"], cell["pad"])
    if kind == "notes":
        marks = (mark.partition(BOUND) for mark in text.split(BETWEEN) if mark)
        links = (
            f'<a href="#{table}-{letter}">{escape(letter)}</a>{escape(gap + own)}'
            for letter, gap, own in marks
        )
        return f"<td>{BETWEEN.join(links)}</td>"
    value = sort_value(text, mark)
    attributes = f' data-v="{value!r}"' if value is not None else ""
    names = [
        name
        for name, wanted in (("number", kind == "number"), ("hole", text == NOT_MEASURED))
        if wanted
    ]
    attributes += f' class="{" ".join(names)}"' if names else ""
    hidden = f'<span class="pad" aria-hidden="true">{escape(pad)}</span>' if pad else ""
    if place == 0:
        return f'<th scope="row"{attributes}>{escape(text)}{hidden}</th>'
    return f"<td{attributes}>{escape(text)}{hidden}</td>"


def sort_value(text: str, mark: str) -> float | None:
    """The number that a cell is sorted by: a number with this decimal mark, or bytes of a size;
    None for other texts.
    """
    try:
        return float(text.replace(mark, "."))
    except ValueError:
        pass
    number, _, unit = text.partition(" ")
    if number.isdigit() and unit in _SIZES:
        return float(number) * _SIZES[unit]
    first = text.lstrip("×").split("  ")[0]
    return None if first == text else sort_value(first, mark)


def notes(table: Data) -> str:
    """What stands below a table: its remarks, and the notes that its rows refer to."""
    remarks = "".join(f'<p class="remarks">{rich(remark)}</p>' for remark in table["remarks"])
    items = "".join(
        f'<li id="{table["name"]}-{escape(letter)}"><b>{escape(letter)}</b><span>{rich(text)}</span></li>'
        for letter, text in table["notes"]
    )
    return remarks + (f'<ol class="notes">{items}</ol>' if items else "")


def plain(headings: Sequence[str], lines: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table of texts that stays as it is."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{escape(cell)}</th>'
            if place == 0
            else f'<td class="break">{escape(cell)}</td>'
            for place, cell in enumerate(line)
        )
        + "</tr>"
        for line in lines
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    table = f'<table class="plain wide">{above}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption or headings[0])}">{table}</div>'


def facts(items: Iterable[Sequence[str]]) -> str:
    """Lines of what and value."""
    lines = "".join(
        f'<tr><th scope="row">{escape(a)}</th><td class="break">{rich(b)}</td></tr>'
        for a, b in items
    )
    return f'<table class="plain facts wide"><tbody>{lines}</tbody></table>'
