"""The chapters of the resources.

They have the tables of each with their figures, what the numbers say, and where the limits come from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Drawing, Layout
from peakmark.formatting import typeset
from peakmark.messages import message
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME, TABLES, Table, subsystem_tables
from peakmark.views import headlines, layouts, node_groups, printed
from peakmark.views.points import Point, points_of, rows_of
from peakmark.views.printed import PrintedTable
from peakmark.views.report import pictures
from peakmark.views.report.pictures import FLEET, OVERVIEW, Picture, caption

Part = dict[str, Any]
Formulas = dict[str, list[Any]]

DRAM = "Bytes read plus bytes written; the threads walk an area larger than the last-level cache."
CACHES = "Bytes read plus bytes written; each thread uses one block again and again."
KINDS = {"at_most": "bound", "none": "unknown"}
"""What the list of formulas calls what is no limit; a limit by where it is from."""


@dataclass(frozen=True, eq=False)
class PrintedRows:
    """A table as it is printed, and the points in it.

    Attributes:
        grid: the table.
        rows: lines of ``rows`` of the points in it.
        is_of_layout: a layout asks for it.
    """

    grid: PrintedTable
    rows: pd.DataFrame
    is_of_layout: bool = False

    @property
    def points(self) -> frozenset[str]:
        """The names of the points."""
        return frozenset(self.rows["point"])


def build(frames: CampaignFrames, layout: Layout | None) -> list[dict[str, Any]]:
    """Return title and parts of each chapter, in the order of the layout where there is one.

    Args:
        frames: the campaign, see ``layouts.arrange``.
        layout: of the campaign; of many nodes none is printed.
    """
    is_many = node_groups.is_many(frames)
    printed_layout = None if is_many else layout
    first = (
        [each.table.subsystem for each in printed_layout.layout_tables] if printed_layout else []
    )
    chapters = []
    said = set[str]()
    for subsystem in dict.fromkeys([*first, *SUBSYSTEMS]):
        parts: list[Part] = []
        for table in subsystem_tables(subsystem):
            if is_many:
                parts += parts_of_nodes(frames, table, layout)
            else:
                parts += parts_of_table(frames, table, layout)
        for part in parts:
            general = part["table"].pop("general")
            part["table"]["remarks"] += [text for text in general if text not in said]
            said.update(general)
        if parts:
            chapters.append({"title": SUBSYSTEMS[subsystem].title, "parts": parts})
    return chapters


def parts_of_nodes(frames: CampaignFrames, table: Table, layout: Layout | None) -> list[Part]:
    """Return the table of many nodes: a line for each point, then one for each row.

    Paper has no room for the second.
    """
    rows = rows_of(frames, table)
    points = points_of(frames, rows)
    if not node_groups.group_points(points):
        return []
    called = layouts.table_of(layout, table, rows)
    typical = node_groups.typical_points(points)
    part = part_of(printed.nodes_table(frames, called, rows))
    part["findings"] = findings_of(frames, table, layout)
    for picture in drawn_pictures(frames, table, layout):
        part["figures"].append(picture_of_nodes(frames, picture))
    part["formulas"] = build_formulas(typical, layout)
    if part["formulas"]["lines"]:
        whose = f"Of {typical[0].own.node}, the node nearest to the median of all."
        part["formulas"]["sources"].insert(0, whose)
    grid = printed.table(frames, called, rows)
    every_node = part_of(replace(grid, title=f"{grid.title}: every node"))
    return [part, every_node | {"on_paper": False}]


def parts_of_table(frames: CampaignFrames, table: Table, layout: Layout | None) -> list[Part]:
    """Return a part for each table of the layout, one for the rows that none of them shows, else one.

    Two tables of the same rows have their notes once, below the last.
    """
    if layout and is_another_side(frames, table, layout):
        return []
    tables = list(printed_rows(frames, table, layout))
    if not tables:
        return []
    parts: list[Part] = []
    last_title: dict[frozenset[str], str] = {}
    for each in reversed(tables):
        grid = each.grid
        if each.points in last_title and (grid.notes or grid.shared):
            grid = grid.without_notes(last_title[each.points])
        last_title.setdefault(each.points, grid.title)
        parts.insert(0, part_of(grid))
    add_findings(parts, tables, frames, table, layout)
    add_pictures(parts, tables, frames, table, layout)
    if any(each.is_of_layout for each in tables):
        points = points_of(frames, rows_of(frames, table))
        parts[-1]["formulas"] = build_formulas(points, layout)
    else:
        for part, each in zip(parts, tables, strict=True):
            part["formulas"] = build_formulas(points_of(frames, each.rows), layout)
    return parts


def printed_rows(
    frames: CampaignFrames, table: Table, layout: Layout | None
) -> Iterator[PrintedRows]:
    """Yield the tables in which the rows of a table are printed."""
    rows = rows_of(frames, table)
    called = layouts.table_of(layout, table, rows)
    rest = rows
    wanted = [each for each in layout.layout_tables if each.table is table] if layout else []
    for layout_table in wanted:
        shown = rows[layouts.is_shown(layout_table, rows)]
        if len(shown):
            grid = layouts.table(frames, layout_table, rows, called)
            yield PrintedRows(grid, shown, is_of_layout=True)
    if layout and wanted:
        rest = layouts.left_over(layout, rows)
    for usual, members in usual_tables(called, rest):
        yield PrintedRows(printed.table(frames, usual, members), members)


def usual_tables(table: Table, rows: pd.DataFrame) -> Iterator[tuple[Table, pd.DataFrame]]:
    """Yield the tables of rows that no layout shows: DRAM and caches stand apart, as figures do."""
    is_cache = rows["variant"].eq("block")
    caches, others = rows[is_cache], rows[~is_cache]
    if len(others):
        dram = replace(table, title="Throughput of DRAM", remark=DRAM)
        yield dram if len(caches) else table, others
    if len(caches):
        name = f"{table.name}_block"
        yield replace(table, name=name, title="Throughput of caches", remark=CACHES), caches


def is_another_side(frames: CampaignFrames, table: Table, layout: Layout) -> bool:
    """Return whether the layout leaves a table out that is another side of rows it shows.

    Latencies are another side of IOPS.
    """
    tables = [each.table for each in layout.layout_tables]
    if table in tables:
        return False
    shown = set[tuple[Any, ...]]()
    for name in {each.name for each in tables if each.subsystem == table.subsystem}:
        rows = rows_of(frames, BY_NAME[name])
        shown |= places_of(rows) - places_of(layouts.left_over(layout, rows))
    return places_of(rows_of(frames, table)) <= shown


def places_of(rows: pd.DataFrame) -> set[tuple[Any, ...]]:
    """Return what rows have in common with the other side of them."""
    columns = [name for name in schema.POINT if name != "table"]
    return set(rows[columns].astype(str).itertuples(index=False, name=None))


def part_of(grid: PrintedTable) -> Part:
    """Return a table with nothing said of it yet."""
    return {
        "title": grid.title,
        "on_paper": True,
        "name": grid.full_title,
        "table": printed.as_data(grid),
        "findings": [],
        "figures": [],
        "formulas": {"lines": [], "sources": []},
    }


# -- findings


def add_findings(
    parts: Sequence[Part],
    tables: Sequence[PrintedRows],
    frames: CampaignFrames,
    table: Table,
    layout: Layout | None,
) -> None:
    """Put each finding of a table into the last part that shows all its points, else into the last."""
    for finding, points in findings_with_points(frames, table, layout):
        fitting = [place for place, each in enumerate(tables) if points <= each.points]
        place = fitting[-1] if fitting and points else len(parts) - 1
        parts[place]["findings"].append(finding)


def findings_of(
    frames: CampaignFrames, table: Table, layout: Layout | None
) -> list[dict[str, str]]:
    """Return the findings of a table as the templates take them."""
    return [finding for finding, _ in findings_with_points(frames, table, layout)]


def findings_with_points(
    frames: CampaignFrames, table: Table, layout: Layout | None
) -> Iterator[tuple[dict[str, str], set[str]]]:
    """Yield each finding of a table, with programs called as the layout does, and its points."""
    called = layout.called(table) if layout else table
    of_table = frames.findings[frames.findings["table"].eq(table.name)]
    for line in schema.lines(of_table):
        text = line.text
        for program, other in zip(table.series, called.series, strict=True):
            text = text.replace(program.heading, other.heading)
        finding = {"topic": line.topic, "text": typeset(text)}
        yield finding, set(json.loads(line.points or "[]"))


# -- formulas


def build_formulas(points: Sequence[Point], layout: Layout | None = None) -> Formulas:
    """Return where the limits of the points of a table come from.

    Returns:
        ``lines``: each formula once, as its rows, itself, its kind and the numbers of its sources;
        ``sources``: numbered sentences.
    """
    sources: dict[str, int] = {}
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[Point]] = {}
    is_said_below = len(printed.unknown_reasons(points)) == 1
    for point in points:
        own = point.own
        why = ""
        if own.limit_reason and not is_said_below:
            why = schema.message_of(json.loads(own.limit_reason)).text
        formula = "; ".join(filter(None, (own.limit_formula, why)))
        if formula:
            cited = () if own.limit_kind == "none" else tuple(json.loads(own.limit_sources))
            kind = KINDS.get(own.limit_kind, own.limit_origin)
            groups.setdefault((formula, own.limit_detail, kind, cited), []).append(point)
    lines = []
    often = Counter(detail for _, detail, _, _ in groups)
    for (formula, detail, kind, cited), members in groups.items():
        shown, numbered = formula, list(cited)
        if often[detail] > 1:
            numbered.insert(0, detail)
        elif detail:
            shown = f"{formula} ({detail})"
        numbers = [str(sources.setdefault(each, len(sources) + 1)) for each in numbered if each]
        which = "all rows"
        if len(members) < len(points):
            which = name_points(members, layout)
        lines.append([which, typeset(shown), kind, ", ".join(numbers)])
    texts = [f"{number}. {typeset(source)}." for source, number in sources.items()]
    return {"lines": lines, "sources": texts}


def name_points(points: Sequence[Point], layout: Layout | None) -> str:
    """Return what the points of a formula have in common: workloads, blocks, concurrency."""
    workloads, blocks, threads = dict[str, None](), dict[str, None](), dict[str, None]()
    for point in points:
        own = point.own
        labels = layouts.labels_of(layout, BY_NAME[own.table], own)
        variant = own.variant if labels.table.variant else ""
        workloads[f"{labels.workload(own)} {variant}".rstrip()] = None
        if own.block_bytes is not None:
            blocks[labels.block(own)] = None
        threads[f"×{own.concurrency}" if own.concurrency else own.concurrency_word] = None
    return "; ".join(", ".join(names) for names in (workloads, blocks, threads) if names)


# -- figures


def add_pictures(
    parts: Sequence[Part],
    tables: Sequence[PrintedRows],
    frames: CampaignFrames,
    table: Table,
    layout: Layout | None,
) -> None:
    """Put each figure of a table into the first part that shows all its rows, else into the last.

    A figure of the layout without rows is a remark.
    """
    for picture in pictures.pictures_of(frames, table, layout):
        if len(picture.rows):
            points = set(picture.rows["point"])
            fitting = [place for place, each in enumerate(tables) if points <= each.points]
            place = fitting[0] if fitting else len(parts) - 1
            text = caption_of(picture)
            parts[place]["figures"].append({"name": picture.name, "caption": text})
        elif picture.drawing:
            remark = printed.closed(pictures.without_rows(picture.drawing))
            parts[-1]["table"]["remarks"].append(remark)


def drawn_pictures(
    frames: CampaignFrames, table: Table, layout: Layout | None
) -> Iterator[Picture]:
    """Yield the figures of a table that show anything.

    Of many nodes these are the usual ones; points without a number to go by are not drawn.
    """
    is_many = node_groups.is_many(frames)
    for picture in pictures.pictures_of(frames, table, None if is_many else layout):
        if not len(picture.rows):
            continue
        if not is_many or node_groups.group_points(points_of_rows(frames, picture.rows)):
            yield picture


def points_of_rows(frames: CampaignFrames, rows: pd.DataFrame) -> list[Point]:
    """Return the points of some rows, with all programs that measured them."""
    return points_of(frames, frames.rows[frames.rows["point"].isin(rows["point"])])


def figure_names(frames: CampaignFrames) -> list[str]:
    """Return the figures that the report shows, that of page one first."""
    layout = layouts.layout_of(frames)
    first = overview(frames)
    names = [first["name"]] if first else []
    for table in TABLES:
        if len(rows_of(frames, table)):
            names += [picture.name for picture in drawn_pictures(frames, table, layout)]
    return names


def overview(frames: CampaignFrames) -> dict[str, str] | None:
    """Return the figure of page one: the share of its limit that each resource reaches.

    Of several nodes it is how far they lie apart. One bar alone would be the table's line again.
    """
    if len(frames.nodes) > 1:
        name, fewest = FLEET, 1
        points = [each.point for each in headlines.headlines(frames) if each.point]
    else:
        name, fewest = OVERVIEW, 2
        points = [point for _, point in headlines.with_limit(frames)]
    if len(points) < fewest:
        return None
    return {"name": name, "caption": caption(name, node_groups.noun(points))}


def picture_of_nodes(frames: CampaignFrames, picture: Picture) -> dict[str, str]:
    """Return a figure of many nodes with its caption, which all of them have."""
    case = picture.name if picture.name.endswith("_links") else "nodes"
    noun = node_groups.noun(points_of_rows(frames, picture.rows))
    return {"name": picture.name, "caption": caption(case, noun)}


def caption_of(picture: Picture) -> str:
    """Return the caption of a figure of a table's rows."""
    drawing, rows = picture.drawing, picture.rows
    sentences, parts = [caption(picture.name if drawing is None else drawing.kind)], []
    if drawing:
        sentences.insert(0, f"{drawing.title}.")
        parts = parts_of_drawing(drawing, rows)
    shows_runs = drawing is None or drawing.value == "measured"
    if shows_runs and rows["measured_again"].gt(0).any():
        parts.append("disturbed")
    sentences += [f"{message('caption-part', case=part).fact}." for part in parts]
    return " ".join(sentences)


def parts_of_drawing(drawing: Drawing, rows: pd.DataFrame) -> list[str]:
    """Return what a figure of a layout shows beside the values of the own kernel.

    These are cases of ``caption-part``.
    """
    if drawing.kind == "panels":
        return []
    is_bars, is_measured = drawing.kind == "bars", drawing.value == "measured"
    has_lines = drawing.value == "efficiency" or (is_measured and not is_bars)
    has_references = bool((~rows["is_own"]).any())
    shown = {
        "repetitions": is_measured and not is_bars,
        "references": is_bars and drawing.value != "deviation" and has_references,
        "limits": has_lines and bool(rows["limit"].notna().any()),
    }
    return [part for part, is_shown in shown.items() if is_shown]
