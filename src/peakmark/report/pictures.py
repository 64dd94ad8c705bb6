"""The figures of a report, each with its caption."""

from __future__ import annotations

import xml.etree.ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark.analysis import fleet, verdict
from peakmark.analysis.analysis import Analysis
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.config.layouts import Drawing
from peakmark.figures import layout_figures
from peakmark.figures.selection import Drawn, figures_of
from peakmark.messages import message
from peakmark.tables import captions
from peakmark.tools.tables import TABLES

FLEET, OVERVIEW = "fleet", "overview"
WIDTH_POINTS = 6.85 * 72  # of the text, and of a figure that fills it
HEIGHT_POINTS = 7.2 * 72  # a taller figure is made smaller, so that its caption stays on the page
Picture = dict[str, Any]
Widths = Mapping[str, int]
"""Name of each figure that was drawn -> its width in percent of the page."""


def names(analysis: Analysis) -> list[str]:
    """The figures that the report shows, that of page one first."""
    rows, many = analysis.rows, analysis.is_fleet
    entries = [
        entry
        for table in TABLES
        for entry in figures_of(table, rows, None if many else analysis.layout)
    ]
    # Of many nodes, points without a number to go by are not drawn.
    drawn = [
        entry.name for entry in entries if (fleet.group_rows(entry.rows) if many else entry.rows)
    ]
    if analysis.has_several_nodes:
        return (
            [FLEET, *drawn]
            if any(verdict.headline(rows, entry) for entry in verdict.planned(rows))
            else drawn
        )
    # A bar alone would be the table's line again.
    return [OVERVIEW, *drawn] if len(verdict.with_limit(rows)) > 1 else drawn


def widths(analysis: Analysis) -> dict[str, int]:
    """The width of each figure that the report shows, in percent of the page."""
    folder = analysis.results.directory / "figures"
    shares = {}
    for name in names(analysis):
        width, height = extent(folder / f"{name}.svg")
        share = width / WIDTH_POINTS
        shares[name] = int(100 * min(1, share, share * HEIGHT_POINTS / height))
    return shares


def of_page_one(widths: Widths, several: bool) -> Picture | None:
    """What is drawn for all resources: shares of the limit, of ``several`` nodes how far they lie
    apart.
    """
    name = FLEET if several else OVERVIEW
    return _picture(name, widths, captions.text(name)) if name in widths else None


def of_nodes(drawn: Drawn, widths: Widths) -> Picture | None:
    """A figure of many nodes, None where it was not drawn; all have the same caption."""
    if drawn.name not in widths:
        return None
    name = drawn.name if drawn.name in captions.LINKS else captions.NODES
    return _picture(drawn.name, widths, captions.text(name))


def of_rows(drawn: Drawn, widths: Widths) -> Picture | None:
    """A figure of a table's rows, None where it was not drawn."""
    if drawn.name not in widths:
        return None
    rows, drawing = drawn.rows, drawn.drawing
    value = drawing.value if drawing else "measured"
    if drawing:
        caption = captions.of_drawing(drawing, _parts(drawing, rows))
    elif drawn.name in captions.FIGURES:
        caption = captions.text(drawn.name)
    else:
        workload = LabelFormatter.of(rows[0]).workload(rows[0])
        caption = f"{workload}: {captions.inside(captions.text(drawn.name))}"
    everything = [series for row in rows for series in row.series.values()]
    if value == "measured" and any(series.disturbed for series in everything):
        caption = f"{caption} {message('caption-part', case='disturbed').fact}."
    return _picture(drawn.name, widths, caption)


def _parts(drawing: Drawing, rows: Sequence[Row]) -> list[str]:
    """What a figure of a layout shows beside the values of the own kernel, see ``captions.PARTS``."""
    if drawing.kind not in captions.KINDS:
        return []
    is_bars, measured = drawing.kind == "bars", drawing.value == "measured"
    references = {name for row in rows for name in row.series} - {rows[0].table.own.instrument}
    lines = drawing.value == "efficiency" or (measured and not is_bars)
    shown = {
        "repetitions": measured and not is_bars,
        "references": is_bars and drawing.value != "deviation" and bool(references),
        "beyond": layout_figures.goes_beyond(drawing, rows),
        "limits": lines and any(row.limit.value is not None for row in rows),
    }
    return [part for part, is_shown in shown.items() if is_shown]


def extent(svg: Path) -> tuple[float, float]:
    """Width and height of a figure in points."""
    root = xml.etree.ElementTree.parse(svg).getroot()  # noqa: S314 (written by figures.py)
    width, height = (float(root.attrib[side].removesuffix("pt")) for side in ("width", "height"))
    return width, height


def _picture(name: str, widths: Widths, caption: str) -> Picture:
    return {"file": f"figures/{name}.svg", "width": widths[name], "caption": caption}
