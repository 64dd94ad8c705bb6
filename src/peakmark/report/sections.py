"""The chapters of the resources: the tables of each with their figures, what the numbers say, and
where the limits come from.
"""

from __future__ import annotations

import xml.etree.ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from peakmark.analysis import Analysis, findings, fleet, verdict
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Key, Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Drawing, Layout, LayoutTable
from peakmark.figures import panels
from peakmark.figures.figures import Drawn, figures_of, without_rows
from peakmark.formatting import typeset
from peakmark.messages import message
from peakmark.report import method_text
from peakmark.tables import captions, layout_tables, presentation
from peakmark.tables.presentation import PrintedTable
from peakmark.tools.tables import TABLES, Table, subsystem_tables

Rows = Mapping[str, Sequence[Row]]
Part = dict[str, Any]


DRAM = "Bytes read plus bytes written; the threads walk an area larger than the last-level cache."
CACHES = "Bytes read plus bytes written; each thread uses one block again and again."


class _Printed(NamedTuple):
    """A table as it is printed: the row that each line begins with, all rows in it, and the sheet
    that asks for it.
    """

    grid: PrintedTable
    members: Sequence[Row]
    keys: frozenset[Key]
    layout_table: LayoutTable | None


@dataclass(frozen=True)
class Sections:
    """What the chapters are made of. ``widths``: see ``figure_widths``."""

    analysis: Analysis
    widths: Widths

    def build(self) -> list[dict[str, Any]]:
        """Title and parts of each chapter, in the order of the configured layout where there is
        one.
        """
        many = self.analysis.is_fleet
        layout = None if many else self.analysis.layout
        first = (
            [layout_table.table.subsystem for layout_table in layout.layout_tables]
            if layout
            else []
        )
        chapters: list[dict[str, Any]] = [
            {
                "title": SUBSYSTEMS[subsystem].title,
                "parts": [
                    part
                    for table in subsystem_tables(subsystem)
                    for part in (self._of_nodes(table) if many else self._of_table(table, layout))
                ],
            }
            for subsystem in dict.fromkeys([*first, *SUBSYSTEMS])
        ]
        chapters = [chapter for chapter in chapters if chapter["parts"]]
        said: dict[str, None] = {}
        for part in (part for chapter in chapters for part in chapter["parts"]):
            general = part["table"].pop("general")
            part["table"]["remarks"] += [text for text in general if text not in said]
            said |= dict.fromkeys(general)
        return chapters

    def _of_nodes(self, table: Table) -> list[Part]:
        """The table of many nodes: a line for each point, then one for each row, for which paper has
        no room.
        """
        rows = self.analysis.rows[table.name]
        if not fleet.group_rows(rows):
            return []
        parts = [
            self._part(*presentation.grid_of_nodes(self.analysis.results, rows[0].table, rows))
        ]
        typical = fleet.typical_rows(rows)
        built = method_text.build_formulas(typical, {})
        if built["lines"]:
            built["sources"].insert(
                0, f"Of {typical[0].key.node}, the node nearest to the median of all."
            )
        said = [
            _as_data(finding.heading, finding.text) for finding in self.analysis.conclusions(rows)
        ]
        parts[0] |= {"findings": said, "formulas": built}
        for drawn in figures_of(table, self.analysis.rows):
            parts[0]["figures"] += filter(None, [picture_of_nodes(drawn, self.widths)])
        each = presentation.grid(self.analysis.results, rows[0].table, rows)
        every_node = self._part(replace(each, title=f"{each.title}: every node"), rows)
        return [*parts, every_node | {"on_paper": False}]

    def _of_table(self, table: Table, layout: Layout | None) -> list[Part]:
        """A part for each sheet of the layout, one for the rows that no sheet shows, else one for
        the table. Figures and formulas stand with the last of them, as they are those of all.
        """
        rows = self.analysis.rows[table.name]
        if layout and _is_told_elsewhere(table, self.analysis.rows, layout):
            return []
        every = self._printed(table, layout)
        if not every:
            return []
        parts = [self._part(printed.grid, printed.members) for printed in every]
        for number, (part, printed) in enumerate(zip(parts, every, strict=True)):
            # Two sheets of the same rows say it once, below the last.
            if printed.keys not in [later.keys for later in every[number + 1 :]]:
                members = [row for row in rows if row.key in printed.keys]
                said = (
                    findings.conclusions(members, printed.layout_table)
                    if layout
                    else self.analysis.conclusions(members)
                )
                part["findings"] = [_as_data(each.heading, each.text) for each in said]
        distinct = len({printed.keys for printed in every if printed.layout_table})
        if distinct > 1:
            for finding in findings.conclusions(rows, every[-1].layout_table):
                if finding.topic is Topic.WORKLOADS:
                    heading = f"{distinct} tables together"
                    parts[-1]["findings"].append(_as_data(heading, finding.text))
        for drawn in figures_of(table, self.analysis.rows, layout):
            picture, keys = (
                picture_of_rows(drawn, self.widths),
                {row.key for row in drawn.rows},
            )
            if picture:
                place = next(
                    (number for number, printed in enumerate(every) if keys <= printed.keys), -1
                )
                parts[place]["figures"].append(picture)
            elif drawn.drawing is not None:
                parts[-1]["table"]["remarks"].append(captions.closed(without_rows(drawn.drawing)))
        called = {
            key: printed.layout_table
            for printed in every
            if printed.layout_table
            for key in printed.keys
        }
        if called:
            parts[-1]["formulas"] = method_text.build_formulas(rows, called)
        else:
            for part, printed in zip(parts, every, strict=True):
                part["formulas"] = method_text.build_formulas(printed.members, {})
        return parts

    def _printed(self, table: Table, layout: Layout | None) -> list[_Printed]:
        """The tables in which the rows of ``table`` are printed."""
        rows = self.analysis.rows[table.name]
        shown = (
            [layout_table for layout_table in layout.layout_tables if layout_table.table is table]
            if layout
            else []
        )
        every = []
        for layout_table in shown:
            lines = layout_tables.lines(layout_table, rows)
            if lines:
                keys = frozenset(row.key for line in lines for row in line.rows)
                grid = layout_tables.grid(self.analysis.results, layout_table, rows)
                every.append(_Printed(grid, [line.rows[0] for line in lines], keys, layout_table))
        rest = layout_tables.left_over(layout, table.name, rows) if layout and shown else rows
        for usual, members in _usual_tables(rest) if rest else ():
            grid = presentation.grid(self.analysis.results, usual, members)
            every.append(_Printed(grid, members, frozenset(row.key for row in members), None))
        for number, printed in enumerate(
            every
        ):  # two tables of the same rows have their notes once, below the last
            again = [later for later in every[number + 1 :] if later.keys == printed.keys]
            if again and (printed.grid.notes or printed.grid.shared):
                every[number] = printed._replace(
                    grid=presentation.without_notes(printed.grid, again[-1].grid.title)
                )
        return every

    def _part(self, grid: PrintedTable, members: Sequence[Row]) -> Part:
        """A table with nothing said of it yet."""
        return {
            "title": grid.title,
            "on_paper": True,
            "name": captions.of_table(grid.title, members[0].table.subsystem),
            "table": presentation.as_data(grid, members),
            "findings": [],
            "figures": [],
            "formulas": method_text.build_formulas([], {}),
        }


def _as_data(heading: str, sentence: str) -> dict[str, str]:
    """A finding as the template and the page take it."""
    return {"topic": heading, "text": typeset(sentence)}


def _usual_tables(rows: Sequence[Row]) -> Iterator[tuple[Table, Sequence[Row]]]:
    """The tables of rows that no layout shows: DRAM and caches stand apart, as their figures do."""
    caches = [row for row in rows if row.key.variant == "block"]
    others = [row for row in rows if row.key.variant != "block"]
    if not caches:
        yield rows[0].table, rows
        return
    if others:
        yield replace(rows[0].table, title="Throughput of DRAM", remark=DRAM), others
    name = f"{rows[0].table.name}_block"
    yield replace(rows[0].table, name=name, title="Throughput of caches", remark=CACHES), caches


def _is_told_elsewhere(table: Table, rows: Rows, layout: Layout) -> bool:
    """Whether a table that the layout leaves out is another side of rows it shows, as latencies are
    of IOPS.
    """
    if any(layout_table.table is table for layout_table in layout.layout_tables):
        return False
    shown = set()
    for name in {
        layout_table.table.name
        for layout_table in layout.layout_tables
        if layout_table.table.subsystem == table.subsystem
    }:
        left = {row.key for row in layout_tables.left_over(layout, name, rows[name])}
        shown |= {row.key for row in rows[name]} - left
    return bool(shown) and all(row.key in shown for row in rows[table.name])


FLEET, OVERVIEW = "fleet", "overview"
WIDTH_POINTS = 6.85 * 72  # of the text, and of a figure that fills it
HEIGHT_POINTS = 7.2 * 72  # a taller figure is made smaller, so that its caption stays on the page
Picture = dict[str, Any]
Widths = Mapping[str, int]
"""Name of each figure that was drawn -> its width in percent of the page."""


def figure_names(analysis: Analysis) -> list[str]:
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


def figure_widths(analysis: Analysis) -> dict[str, int]:
    """The width of each figure that the report shows, in percent of the page."""
    folder = analysis.results.directory / "figures"
    shares = {}
    for name in figure_names(analysis):
        width, height = figure_extent(folder / f"{name}.svg")
        share = width / WIDTH_POINTS
        shares[name] = int(100 * min(1, share, share * HEIGHT_POINTS / height))
    return shares


def picture_of_page_one(
    widths: Widths, several: bool, judged: Sequence[verdict.Verdict]
) -> Picture | None:
    """What is drawn for all resources: shares of the limit, of ``several`` nodes how far they lie
    apart.
    """
    name = FLEET if several else OVERVIEW
    if name not in widths:
        return None
    noun = fleet.noun(entry.row for entry in judged if entry.row)
    return _picture(name, widths, captions.text(name, noun))


def picture_of_nodes(drawn: Drawn, widths: Widths) -> Picture | None:
    """A figure of many nodes, None where it was not drawn; all have the same caption."""
    if drawn.name not in widths:
        return None
    name = drawn.name if drawn.name in captions.LINKS else captions.NODES
    return _picture(drawn.name, widths, captions.text(name, fleet.noun(drawn.rows)))


def picture_of_rows(drawn: Drawn, widths: Widths) -> Picture | None:
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
        "beyond": panels.goes_beyond(drawing, rows),
        "limits": lines and any(row.limit.value is not None for row in rows),
    }
    return [part for part, is_shown in shown.items() if is_shown]


def figure_extent(svg: Path) -> tuple[float, float]:
    """Width and height of a figure in points."""
    root = xml.etree.ElementTree.parse(svg).getroot()  # noqa: S314 (written by figures.py)
    width, height = (float(root.attrib[side].removesuffix("pt")) for side in ("width", "height"))
    return width, height


def _picture(name: str, widths: Widths, caption: str) -> Picture:
    return {"file": f"figures/{name}.svg", "width": widths[name], "caption": caption}
