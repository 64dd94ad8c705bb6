"""What paper says once that the page says at every place, where a reader may have come by a link and filters rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Data = dict[str, Any]
DOUBT = "Doubt"


def sections(every: Sequence[Data]) -> list[Data]:
    """The chapters of the resources, changed in place: a remedy stands at the first note that names it, later notes state what
    was seen; a word of doubt that all rows of a table share is a sentence below it, and no finding counts the words of its column.
    """
    seen: set[str] = set()
    for part in (part for section in every for part in section["parts"] if part["table"]):
        table = part["table"]
        if any(heading["title"] == DOUBT for heading in table["head"]):
            part["findings"] = [one for one in part["findings"] if one["topic"] != DOUBT]
        for note in table["notes"]:
            _, _, fact, remedy = note
            if remedy in seen:
                note[1] = fact
            seen.update([remedy] if remedy else [])
        _doubt(table)
    return list(every)


def _doubt(table: Data) -> None:
    """Take out the column of doubt where all rows have the same word in it."""
    place = 0
    for number, heading in enumerate(table["head"]):
        levels = {line[place] for line in table["body"]} if heading["title"] == DOUBT else set()
        if len(table["body"]) > 1 and len(levels) == 1:
            del table["head"][number], table["columns"][place]
            table["body"] = [[*line[:place], *line[place + 1 :]] for line in table["body"]]
            table["remarks"] = [f"All rows are {levels.pop()}.", *table["remarks"]]
            return
        place += heading["span"]
