"""The chapters of the resources: the tables of each with their figures, what the numbers say, and
where the limits come from.
"""

from __future__ import annotations

import xml.etree.ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from peakmark.analysis import Analysis, findings, fleet, verdict
from peakmark.analysis.findings import Conclusion
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Key, Row, Rows
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Drawing, Layout, LayoutTable
from peakmark.figures import FLEET, OVERVIEW, Drawn, caption, figures_of, without_rows
from peakmark.formatting import typeset
from peakmark.messages import message
from peakmark.tables import as_data, layout_tables, presentation
from peakmark.tables.presentation import PrintedTable, closed
from peakmark.tools.tables import TABLES, Table, subsystem_tables

Part = dict[str, Any]
Formulas = dict[str, list[Any]]

DRAM = "Bytes read plus bytes written; the threads walk an area larger than the last-level cache."
CACHES = "Bytes read plus bytes written; each thread uses one block again and again."
KINDS = {"at_most": "bound", "none": "unknown"}
"""What the list of formulas calls what is no limit; a limit by where it is from."""
WIDTH_POINTS = 6.85 * 72  # of the text, and of a figure that fills it
HEIGHT_POINTS = 7.2 * 72  # a taller figure is made smaller, so that its caption stays on the page


class _Printed(NamedTuple):
    """A table as it is printed.

    Attributes:
        members: the row that each line begins with.
        keys: of all rows in it.
        layout_table: what asks for it, None for a usual table.
    """

    grid: PrintedTable
    members: Sequence[Row]
    keys: frozenset[Key]
    layout_table: LayoutTable | None = None


def build(analysis: Analysis) -> list[dict[str, Any]]:
    """Title and parts of each chapter, in the order of the configured layout where there is one."""
    layout = None if analysis.is_fleet else analysis.layout
    first = [each.table.subsystem for each in layout.layout_tables] if layout else []
    chapters = []
    general_texts = set[str]()
    for subsystem in dict.fromkeys([*first, *SUBSYSTEMS]):
        parts: list[Part] = []
        for table in subsystem_tables(subsystem):
            parts += (
                _of_nodes(analysis, table)
                if analysis.is_fleet
                else _of_table(analysis, table, layout)
            )
        for part in parts:
            general = part["table"].pop("general")
            part["table"]["remarks"] += [text for text in general if text not in general_texts]
            general_texts.update(general)
        if parts:
            chapters.append({"title": SUBSYSTEMS[subsystem].title, "parts": parts})
    return chapters


def _of_nodes(analysis: Analysis, table: Table) -> list[Part]:
    """The table of many nodes: a line for each point, then one for each row, for which paper has no
    room.
    """
    rows, results = analysis.rows[table.name], analysis.results
    if not fleet.group_rows(rows):
        return []
    typical = fleet.typical_rows(rows)
    part = _part(*presentation.grid_of_nodes(results, rows[0].table, rows))
    part["findings"] = _as_data(analysis.conclusions(rows))
    part["figures"] = [_picture(analysis, drawn) for drawn in _drawn(analysis, table)]
    part["formulas"] = build_formulas(typical)
    if part["formulas"]["lines"]:
        whose = f"Of {typical[0].key.node}, the node nearest to the median of all."
        part["formulas"]["sources"].insert(0, whose)
    grid = presentation.grid(results, rows[0].table, rows)
    every_node = _part(replace(grid, title=f"{grid.title}: every node"), rows)
    return [part, every_node | {"on_paper": False}]


def _of_table(analysis: Analysis, table: Table, layout: Layout | None) -> list[Part]:
    """A part for each table of the layout, one for the rows that none of them shows, else one for
    the table. Two tables of the same rows have notes and findings once, below the last.
    """
    rows = analysis.rows[table.name]
    if layout and _is_another_side(table, analysis.rows, layout):
        return []
    tables = list(_printed(analysis, table, layout))
    if not tables:
        return []
    parts: list[Part] = []
    last_title: dict[frozenset[Key], str] = {}
    for printed in reversed(tables):
        grid, members = printed.grid, [row for row in rows if row.key in printed.keys]
        if printed.keys in last_title:
            if grid.notes or grid.shared:
                grid = presentation.without_notes(grid, last_title[printed.keys])
            conclusions: Sequence[Conclusion] = ()
        elif layout:
            conclusions = findings.conclusions(members, printed.layout_table)
        else:
            conclusions = analysis.conclusions(members)
        last_title.setdefault(printed.keys, grid.title)
        parts.insert(0, _part(grid, printed.members) | {"findings": _as_data(conclusions)})
    _add_figures(analysis, table, parts, [printed.keys for printed in tables])
    of_layout = [printed for printed in tables if printed.layout_table]
    distinct = len({printed.keys for printed in of_layout})
    if distinct > 1:
        for finding in findings.conclusions(rows, tables[-1].layout_table):
            if finding.topic is Topic.WORKLOADS:
                joint = replace(finding, heading=f"{distinct} tables together")
                parts[-1]["findings"] += _as_data([joint])
    if of_layout:
        parts[-1]["formulas"] = build_formulas(rows)
    else:
        for part, printed in zip(parts, tables, strict=True):
            part["formulas"] = build_formulas(printed.members)
    return parts


def _add_figures(
    analysis: Analysis, table: Table, parts: Sequence[Part], shown: Sequence[frozenset[Key]]
) -> None:
    """Put each figure of a table into the first part that shows all its rows, else into the last;
    a figure of the layout without rows is a remark.
    """
    for drawn in figures_of(table, analysis.rows, analysis.layout):
        if drawn.rows:
            keys = {row.key for row in drawn.rows}
            place = next((number for number, each in enumerate(shown) if keys <= each), -1)
            parts[place]["figures"].append(_picture(analysis, drawn))
        elif drawn.drawing:
            parts[-1]["table"]["remarks"].append(closed(without_rows(drawn.drawing)))


def _printed(analysis: Analysis, table: Table, layout: Layout | None) -> Iterator[_Printed]:
    """The tables in which the rows of ``table`` are printed."""
    rows, results = analysis.rows[table.name], analysis.results
    wanted = [each for each in layout.layout_tables if each.table is table] if layout else []
    for layout_table in wanted:
        lines = layout_tables.lines(layout_table, rows)
        if lines:
            grid = layout_tables.grid(results, layout_table, rows)
            keys = frozenset(row.key for line in lines for row in line.rows)
            yield _Printed(grid, [line.rows[0] for line in lines], keys, layout_table)
    rest = layout_tables.left_over(layout, table.name, rows) if layout and wanted else rows
    for usual, members in _usual_tables(rest):
        grid = presentation.grid(results, usual, members)
        yield _Printed(grid, members, frozenset(row.key for row in members))


def _usual_tables(rows: Sequence[Row]) -> Iterator[tuple[Table, Sequence[Row]]]:
    """The tables of rows that no layout shows: DRAM and caches stand apart, as their figures do."""
    caches = [row for row in rows if row.key.variant == "block"]
    others = [row for row in rows if row.key.variant != "block"]
    if others:
        table = others[0].table
        dram = replace(table, title="Throughput of DRAM", remark=DRAM)
        yield dram if caches else table, others
    if caches:
        table = caches[0].table
        name = f"{table.name}_block"
        yield replace(table, name=name, title="Throughput of caches", remark=CACHES), caches


def _is_another_side(table: Table, rows: Rows, layout: Layout) -> bool:
    """Whether a table that the layout leaves out is another side of rows it shows, as latencies are
    of IOPS.
    """
    printed = [each.table for each in layout.layout_tables]
    shown = set[Key]()
    for name in {each.name for each in printed if each.subsystem == table.subsystem}:
        left = {row.key for row in layout_tables.left_over(layout, name, rows[name])}
        shown |= {row.key for row in rows[name]} - left
    return table not in printed and {row.key for row in rows[table.name]} <= shown


def _part(grid: PrintedTable, members: Sequence[Row]) -> Part:
    """A table with nothing said of it yet."""
    return {
        "title": grid.title,
        "on_paper": True,
        "name": replace(members[0].table, title=grid.title).full_title,
        "table": as_data(grid, members),
        "findings": [],
        "figures": [],
        "formulas": {"lines": [], "sources": []},
    }


def _as_data(conclusions: Iterable[Conclusion]) -> list[dict[str, str]]:
    """Findings as the templates take them."""
    return [{"topic": each.heading, "text": typeset(each.text)} for each in conclusions]


def build_formulas(rows: Sequence[Row]) -> Formulas:
    """Where the limits of the rows of a table come from.

    Returns:
        ``lines``: each formula once, as its rows, itself, its kind and the numbers of its sources;
        ``sources``: numbered sentences.
    """
    sources: dict[str, int] = {}
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[Row]] = {}
    said_below_table = len(presentation.unknown_reasons(rows)) == 1
    for row in rows:
        limit = row.limit
        why = "" if limit.reason is None or said_below_table else limit.reason.text
        formula = "; ".join(filter(None, (limit.formula, why)))
        if formula:
            cited = () if limit.kind == "none" else limit.sources
            kind = KINDS.get(limit.kind, limit.origin)
            groups.setdefault((formula, limit.detail, kind, cited), []).append(row)
    lines = []
    often = Counter(detail for _, detail, _, _ in groups)
    for (formula, detail, kind, cited), members in groups.items():
        is_shared = often[detail] > 1
        shown = f"{formula} ({detail})" if detail and not is_shared else formula
        numbered = [detail, *cited] if is_shared else cited
        numbers = [str(sources.setdefault(each, len(sources) + 1)) for each in numbered if each]
        which = "all rows" if len(members) == len(rows) else _which(members)
        lines.append([which, typeset(shown), kind, ", ".join(numbers)])
    texts = [f"{number}. {typeset(source)}." for source, number in sources.items()]
    return {"lines": lines, "sources": texts}


def _which(rows: Sequence[Row]) -> str:
    """The rows of a formula by what they have in common: workloads, blocks, concurrency."""
    workloads, blocks, threads = dict[str, None](), dict[str, None](), dict[str, None]()
    for row in rows:
        key = row.key
        labels = LabelFormatter.of(row)
        variant = key.variant if row.table.variant else ""
        workloads[f"{labels.workload(row)} {variant}".rstrip()] = None
        if key.block is not None:
            blocks[labels.block(row)] = None
        threads[f"×{key.concurrency}" if key.concurrency else key.word] = None
    return "; ".join(", ".join(names) for names in (workloads, blocks, threads) if names)


def _drawn(analysis: Analysis, table: Table) -> list[Drawn]:
    """The figures of a table that show anything; of many nodes, points without a number to go by are
    not drawn.
    """
    if not analysis.is_fleet:
        return [each for each in figures_of(table, analysis.rows, analysis.layout) if each.rows]
    return [each for each in figures_of(table, analysis.rows) if fleet.group_rows(each.rows)]


def figure_names(analysis: Analysis) -> list[str]:
    """The figures that the report shows, that of page one first."""
    first = overview(analysis)
    measured = [table for table in TABLES if analysis.rows[table.name]]
    names = [drawn.name for table in measured for drawn in _drawn(analysis, table)]
    return [first["name"], *names] if first else names


def overview(analysis: Analysis) -> dict[str, str] | None:
    """The figure of page one: the share of the limit that each resource reaches, of several nodes
    how far they lie apart.
    """
    name, fewest = OVERVIEW, 2  # a bar alone would be the table's line again
    rows = [row for _, row in verdict.with_limit(analysis.rows)]
    if analysis.has_several_nodes:
        name, fewest = FLEET, 1
        rows = [each.row for each in verdict.verdicts(analysis.rows) if each.row]
    if len(rows) < fewest:
        return None
    return {"name": name, "caption": caption(name, fleet.noun(rows))}


def figure_extents(analysis: Analysis) -> dict[str, dict[str, Any]]:
    """Name of each figure that the report shows -> its ``width`` in percent of the page, and its
    ``pixels``, of which 96 are an inch.
    """
    extents = {}
    for name in figure_names(analysis):
        svg = analysis.results.directory / "figures" / f"{name}.svg"
        root = xml.etree.ElementTree.parse(svg).getroot()  # noqa: S314 (written by figures.py)
        width, height = (
            float(root.attrib[side].removesuffix("pt")) for side in ("width", "height")
        )
        share = min(1, width / WIDTH_POINTS, width / WIDTH_POINTS * HEIGHT_POINTS / height)
        pixels = [round(width * 4 / 3), round(height * 4 / 3)]
        extents[name] = {"width": int(100 * share), "pixels": pixels}
    return extents


def _picture(analysis: Analysis, drawn: Drawn) -> dict[str, str]:
    """A figure with its caption; those of many nodes have the same one."""
    text = caption_of(drawn)
    if analysis.is_fleet:
        case = drawn.name if drawn.name.endswith("_links") else "nodes"
        text = caption(case, fleet.noun(drawn.rows))
    return {"name": drawn.name, "caption": text}


def caption_of(drawn: Drawn) -> str:
    """The caption of a figure of a table's rows."""
    rows, drawing = drawn.rows, drawn.drawing
    sentences = [f"{drawing.title}.", caption(drawing.kind)] if drawing else [caption(drawn.name)]
    parts = _parts(drawing, rows) if drawing else []
    everything = [series for row in rows for series in row.series.values()]
    shows_runs = drawing is None or drawing.value == "measured"
    if shows_runs and any(series.disturbed for series in everything):
        parts.append("disturbed")
    sentences += [f"{message('caption-part', case=part).fact}." for part in parts]
    return " ".join(sentences)


def _parts(drawing: Drawing, rows: Sequence[Row]) -> list[str]:
    """What a figure of a layout shows beside the values of the own kernel: cases of
    ``caption-part``.
    """
    if drawing.kind == "panels":
        return []
    is_bars, is_measured = drawing.kind == "bars", drawing.value == "measured"
    references = {name for row in rows for name in row.series} - {rows[0].table.own.instrument}
    has_lines = drawing.value == "efficiency" or (is_measured and not is_bars)
    shown = {
        "repetitions": is_measured and not is_bars,
        "references": is_bars and drawing.value != "deviation" and bool(references),
        "limits": has_lines and any(row.limit.value is not None for row in rows),
    }
    return [part for part, is_shown in shown.items() if is_shown]
