"""What paper says once that the page says at every place, where a reader may have come by a link
and filters rows.
"""

from __future__ import annotations

from dataclasses import replace

from peakmark.tables.presentation import PrintedTable, without


def grid(whole: PrintedTable, named: set[str]) -> PrintedTable:
    """The table on paper: a remedy stands at the first note that names it, later notes state what
    was seen; a word of doubt that all rows share is a sentence below. ``told``: the remedies
    that stand before this table, to which its own are added.
    """
    notes = []
    for note in whole.notes:
        notes.append(note._replace(text=note.fact) if note.remedy in named else note)
        named.update([note.remedy] if note.remedy else [])
    shown = replace(whole, notes=tuple(notes))
    levels = set(whole.texts("doubt"))
    if len(whole.body) > 1 and len(levels) == 1:
        shown = replace(
            without(shown, "doubt"), remarks=(f"All rows are {levels.pop()}.", *whole.remarks)
        )
    return shown
