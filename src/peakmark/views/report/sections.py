"""Build the report's chapter on each resource: tables with findings, figures, and the formulas of the limits."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd

from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Drawing, Layout
from peakmark.formatting import significant, typeset
from peakmark.messages import message
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME, TABLES, Table, subsystem_tables
from peakmark.views import layouts, node_groups, printed, score_card, timeline
from peakmark.views.points import Line, Point, points_of, rows_of
from peakmark.views.printed import PrintedTable
from peakmark.views.report import pictures
from peakmark.views.report.pictures import FLEET, TIMELINE, Picture, caption

Part = dict[str, Any]
Formulas = dict[str, list[Any]]

DRAM = "Bytes read plus bytes written; the threads walk an area larger than the last-level cache."
ORDINARY = "Stores bypass the caches, but those of “pool-temporal” are ordinary stores."
CACHES = "Bytes read plus bytes written; each thread uses one block again and again."
KINDS = {"at_most": "bound", "none": "unknown"}
"""Kind of limit -> its name in the list of formulas. A limit of another kind is listed under its origin."""
UNTITLED = ("shares", "rounds", "ratios")
"""Kinds of figures whose captions explain only the marks; the title of the table comes before them."""
WITH_RUNS = ("panels", "together", "several")
"""Kinds of figures with a dot for each run of each program, also for runs that do not count."""
WITH_OWN_RUNS = ("shares", "rounds")
"""Kinds of figures with such dots for the runs of peakmark's kernel."""
ORIGINS = {"measured": "measured clock", "read": "computed", "site": "site file"}
"""Origin of a limit -> its name in the list of formulas; other origins have their own name there."""


@dataclass(frozen=True, eq=False)
class PrintedRows:
    """A printed table with its rows.

    Attributes:
        grid: the printed table.
        rows: lines of ``frames.rows`` at the points that the table shows.
        is_of_layout: whether the table is a table of the layout.
    """

    grid: PrintedTable
    rows: pd.DataFrame
    is_of_layout: bool = False

    @property
    def points(self) -> frozenset[str]:
        """Return the names of the points."""
        return frozenset(self.rows["point"])


def build(frames: CampaignFrames, layout: Layout | None) -> list[dict[str, Any]]:
    """Return title and parts of each chapter, in the order of the layout if there is one.

    Args:
        frames: the campaign, see ``layouts.for_print``.
        layout: layout of the campaign; its tables are not printed for many nodes.
    """
    is_many = node_groups.is_many(frames)
    first = []
    if layout and not is_many:
        first = [each.table.subsystem for each in layout.layout_tables]
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
    """Return two tables of many nodes: one with a line for each point, one for each point and node.

    The second table is for HTML only, because paper has no room for it.
    """
    rows = rows_of(frames, table)
    points = points_of(frames, rows)
    if not node_groups.group_points(points):
        return []
    called = layouts.table_of(layout, table, rows)
    typical = node_groups.typical_points(points)
    part = part_of(printed.nodes_table(frames, called, rows))
    part["findings"] = [finding for finding, _ in findings_with_points(frames, table, layout)]
    part["figures"] = [
        picture_of_nodes(frames, picture) for picture in drawn_pictures(frames, table, layout)
    ]
    part["formulas"] = build_formulas(typical, layout)
    if part["formulas"]["lines"]:
        node = typical[0].own.node
        whose = f"These are the values of {node}, the node nearest to the median of all nodes."
        part["formulas"]["sources"].insert(0, whose)
    grid = printed.table(frames, called, rows)
    every_node = part_of(replace(grid, title=f"{grid.title}: every node"))
    every_node["table"]["runs"] = runs_of_lines(frames, called, rows)
    return [part, every_node | {"on_paper": False}]


def parts_of_table(frames: CampaignFrames, table: Table, layout: Layout | None) -> list[Part]:
    """Return the parts of a table: first one for each table of the layout, then those of other rows."""
    if layout and is_another_side(frames, table, layout):
        return []
    tables = list(printed_rows(frames, table, layout))
    if not tables:
        return []
    parts = []
    for each in tables:
        part = part_of(each.grid)
        if not each.is_of_layout:
            part["table"]["runs"] = runs_of_lines(frames, table, each.rows)
        parts.append(part)
    for finding, names in findings_with_points(frames, table, layout):
        fitting = parts_with(names, parts, tables)
        (fitting or parts)[-1]["findings"].append(finding)
    add_pictures(parts, tables, pictures.pictures_of(frames, table, layout))
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
    """Yield the printed tables of a table's rows: first the layout's, then those of all other rows."""
    rows = rest = rows_of(frames, table)
    called = layouts.table_of(layout, table, rows)
    titles = set[str]()
    if layout is not None:
        for layout_table in layout.layout_tables:
            shown = rows[layouts.is_shown(layout_table, rows)]
            if len(shown):
                grid = layouts.table(frames, layout_table, rows, called)
                titles.add(grid.title)
                yield PrintedRows(grid, shown, is_of_layout=True)
        rest = layouts.left_over(layout, rows)
    for usual, members in usual_tables(called, rest):
        title = usual.title
        if title in titles:
            title += ", other rows"
        grid = printed.table(frames, replace(usual, title=title), members)
        yield PrintedRows(grid, members)


def parts_with(
    points: Collection[str], parts: Sequence[Part], tables: Sequence[PrintedRows]
) -> list[Part]:
    """Return the parts whose printed table has all of the given points."""
    pairs = zip(parts, tables, strict=True)
    return [part for part, each in pairs if each.points.issuperset(points)]


def usual_tables(table: Table, rows: pd.DataFrame) -> Iterator[tuple[Table, pd.DataFrame]]:
    """Yield the tables of rows that no layout shows: memory has one table for DRAM, one for caches."""
    is_cache = rows["variant"].eq("block")
    caches, others = rows[is_cache], rows[~is_cache]
    if len(others):
        remark = DRAM
        if others["variant"].eq("pool-temporal").any():
            remark += f" {ORDINARY}"
        dram = replace(table, title="Throughput of DRAM", remark=remark)
        yield dram if len(caches) else table, others
    if len(caches):
        name = f"{table.name}_block"
        yield replace(table, name=name, title="Throughput of caches", remark=CACHES), caches


def is_another_side(frames: CampaignFrames, table: Table, layout: Layout) -> bool:
    """Return whether the layout lacks a table but shows all its points in another table.

    For example, a layout may show latencies in a table of IOPS.
    """
    if table in [each.table for each in layout.layout_tables]:
        return False
    shown = frames.rows.drop(layouts.left_over(layout, frames.rows).index)
    of_subsystem = shown[shown["subsystem"].eq(table.subsystem)]
    return places_of(rows_of(frames, table)) <= places_of(of_subsystem)


def places_of(rows: pd.DataFrame) -> set[tuple[Any, ...]]:
    """Return the points of rows without the table, so that points of two tables can be compared."""
    columns = [name for name in schema.POINT if name != "table"]
    return set(rows[columns].astype(str).itertuples(index=False, name=None))


def part_of(grid: PrintedTable) -> Part:
    """Return a part with a printed table, and without findings, figures and formulas yet."""
    return {
        "title": grid.title,
        "on_paper": True,
        "name": grid.full_title,
        "table": printed.as_data(grid) | {"runs": []},
        "paper": printed.as_data(grid.without(lambda column: not column.on_paper)),
        "findings": [],
        "figures": [],
        "formulas": {"lines": [], "sources": []},
    }


def runs_of_lines(frames: CampaignFrames, table: Table, rows: pd.DataFrame) -> list[Part]:
    """Return for each line of a printed table the runs of peakmark's kernel that count.

    ``shares`` has them as shares of the highest run, ``text`` in the unit of the table.
    """
    kept = frames.runs[frames.runs["kept"]].sort_values("repetition", kind="stable")
    values = kept.groupby(["point", "instrument"])["value"].agg(list)
    lines = []
    for row in schema.lines(rows[rows["is_own"]]):
        runs = values.get((row.point, row.instrument), [])
        highest = max(runs, default=0.0)
        texts = [significant(value * table.factor) for value in runs]
        shares = [round(value / highest, 3) for value in runs]
        lines.append({"shares": shares, "text": ", ".join(texts)})
    return lines


# -- findings


def findings_with_points(
    frames: CampaignFrames, table: Table, layout: Layout | None
) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yield each finding of a table with its points; programs have their names in the layout.

    Findings on a program that the layout does not show are left out.
    """
    hidden = set[str]()
    if layout is not None and layout.programs_of(table):
        shown = layout.programs_of(table)
        hidden = {each.heading for each in table.series if each.instrument not in shown}
    called = layouts.printed_table(layout, table)
    of_table = frames.findings[frames.findings["table"].eq(table.name)]
    for line in schema.lines(of_table):
        if {line.better, line.worse} & hidden:
            continue
        text = line.text
        for program, other in zip(table.series, called.series, strict=True):
            text = text.replace(program.heading, other.heading)
        finding = {"topic": line.topic, "text": typeset(text)}
        yield finding, json.loads(line.points or "[]")


# -- formulas


class Formula(NamedTuple):
    """The formula of a limit.

    Attributes:
        text: the formula, with the reason if the limit is unknown.
        detail: where its numbers come from.
        kind: bound, unknown, or the origin of the limit.
        sources: cited literature.
    """

    text: str
    detail: str
    kind: str
    sources: tuple[str, ...]


def formula_of(own: Line, with_reason: bool) -> Formula:
    """Return the formula of the limit of a row; its text may be empty."""
    texts = [own.limit_formula]
    if own.limit_reason and with_reason:
        texts.append(schema.message_of(json.loads(own.limit_reason)).text)
    sources = []
    if own.limit_kind != "none":
        sources = json.loads(own.limit_sources or "[]")
    origin = ORIGINS.get(own.limit_origin, own.limit_origin)
    kind = KINDS.get(own.limit_kind, origin)
    return Formula("; ".join(filter(None, texts)), own.limit_detail, kind, tuple(sources))


def build_formulas(points: Sequence[Point], layout: Layout | None = None) -> Formulas:
    """Return the different formulas of the limits of points, with their sources.

    Returns:
        A mapping with these keys:

        - ``lines``: for each formula its points, text, kind, and the numbers of its sources.
        - ``sources``: numbered sentences.
    """
    # If there is only one reason for unknown limits, a remark below the table states it.
    with_reasons = len(printed.unknown_reasons(points)) != 1
    groups: dict[Formula, list[Point]] = defaultdict(list)
    for point in points:
        groups[formula_of(point.own, with_reasons)].append(point)
    shown = {formula: members for formula, members in groups.items() if formula.text}
    lines = []
    numbers: dict[str, int] = {}
    often = Counter(formula.detail for formula in shown)
    for formula, members in shown.items():
        # List a detail of several formulas as a source, and append a detail of one formula to its text.
        text, sources = formula.text, list(formula.sources)
        if often[formula.detail] > 1:
            sources.insert(0, formula.detail)
        elif formula.detail:
            text = f"{text} ({formula.detail})"
        cited = [numbers.setdefault(each, len(numbers) + 1) for each in sources if each]
        which = "all rows"
        if len(members) < len(points):
            which = name_points(members, layout)
        lines.append([which, typeset(text), formula.kind, ", ".join(map(str, cited))])
    texts = [f"{number}. {typeset(source)}." for source, number in numbers.items()]
    return {"lines": lines, "sources": texts}


def name_points(points: Sequence[Point], layout: Layout | None) -> str:
    """Return the workloads, blocks and concurrencies of the points of a formula as text."""
    workloads, blocks, threads = dict[str, None](), dict[str, None](), dict[str, None]()
    for point in points:
        own = point.own
        labels = layouts.labels_of(layout, BY_NAME[own.table], own)
        variant = own.variant if labels.table.variant else ""
        workloads[f"{labels.workload(own)} {variant}".rstrip()] = None
        if own.block_bytes is not None:
            blocks[labels.block(own)] = None
        count = f"×{own.concurrency}" if own.concurrency else own.concurrency_word
        threads[count] = None
    return "; ".join(", ".join(names) for names in (workloads, blocks, threads) if names)


# -- figures


def add_pictures(
    parts: Sequence[Part], tables: Sequence[PrintedRows], found: Sequence[Picture]
) -> None:
    """Add each figure to the first part whose table has all its points, or to the last one with any.

    A figure of the layout without rows becomes a remark in the last part.
    """
    for picture in found:
        if len(picture.rows):
            points = picture.rows["point"]
            fitting = parts_with(points, parts, tables)
            if not fitting:
                pairs = zip(parts, tables, strict=True)
                fitting = [part for part, each in pairs if each.points.intersection(points)][-1:]
            part = (fitting or parts[-1:])[0]
            text = caption_of(picture)
            if picture.kind in UNTITLED and picture.drawing is None:
                text = f"{part['table']['title']} {text}"
            figure = {"name": picture.name, "caption": text, "on_paper": picture.on_paper}
            part["figures"].append(figure)
        elif picture.drawing:
            remark = printed.closed(pictures.without_rows(picture.drawing))
            parts[-1]["table"]["remarks"].append(remark)


def drawn_pictures(
    frames: CampaignFrames, table: Table, layout: Layout | None
) -> Iterator[Picture]:
    """Yield the figures of a table that have something to show.

    For many nodes, the usual figures replace those of the layout.
    """
    is_many = node_groups.is_many(frames)
    if is_many:
        layout = None
    for picture in pictures.pictures_of(frames, table, layout):
        if picture.rows.empty:
            continue
        if not is_many or node_groups.group_points(points_of_rows(frames, picture.rows)):
            yield picture


def points_of_rows(frames: CampaignFrames, rows: pd.DataFrame) -> list[Point]:
    """Return the points of some rows, with all programs that measured them."""
    return points_of(frames, frames.rows[frames.rows["point"].isin(rows["point"])])


def figure_names(frames: CampaignFrames) -> list[str]:
    """Return the names of the figures in the report, with the figure of page one first."""
    layout = layouts.layout_of(frames)
    first = overview(frames)
    names = [first["name"]] if first else []
    for table in TABLES:
        if len(rows_of(frames, table)):
            names += [picture.name for picture in drawn_pictures(frames, table, layout)]
    if timeline.has_timeline(frames):
        names.append(TIMELINE)
    return names


def describe_timeline(frames: CampaignFrames) -> dict[str, str] | None:
    """Return the figure of the machine's states over time; None without probes."""
    if not timeline.has_timeline(frames):
        return None
    return {"name": TIMELINE, "caption": caption(TIMELINE)}


def overview(frames: CampaignFrames) -> dict[str, str] | None:
    """Return the figure of page one: how far several nodes lie apart. One node has none."""
    if len(frames.nodes) < 2:
        return None
    points: list[Point] = []
    for _, rows in score_card.rows_of_headlines(frames):
        for group in node_groups.group_points(points_of(frames, rows)):
            points += group.points
    if not points:
        return None
    return {"name": FLEET, "caption": caption(FLEET, node_groups.noun(points))}


def picture_of_nodes(frames: CampaignFrames, picture: Picture) -> dict[str, Any]:
    """Return a figure of many nodes with its caption."""
    noun = node_groups.noun(points_of_rows(frames, picture.rows))
    return {
        "name": picture.name,
        "caption": caption(pictures.case_of(picture), noun),
        "on_paper": picture.on_paper,
    }


def caption_of(picture: Picture) -> str:
    """Return the caption of a figure of a table's rows."""
    drawing, rows = picture.drawing, picture.rows
    if drawing is None:
        sentences, parts = [caption(pictures.case_of(picture))], []
        if picture.kind in ("panels", "several"):
            parts.append("lines")
        if picture.kind == "rounds" and rows["limit"].notna().any():
            parts.append("limit-ticks")
    else:
        sentences = [f"{drawing.title}.", caption(drawing.kind)]
        parts = parts_of_drawing(drawing, rows)
    if shows_disturbed(picture):
        parts.append("disturbed")
    sentences += [f"{message('caption-part', case=part).fact}." for part in parts]
    return " ".join(sentences)


def shows_disturbed(picture: Picture) -> bool:
    """Return whether a figure shows runs that were disturbed and measured again."""
    kind, rows = picture.kind, picture.rows
    if picture.drawing is not None:
        kind = picture.drawing.kind
        if picture.drawing.value != "measured":
            return False
    if kind in WITH_OWN_RUNS:
        rows = rows[rows["is_own"]]
    elif kind not in WITH_RUNS:
        return False
    return bool(rows["measured_again"].gt(0).any())


def parts_of_drawing(drawing: Drawing, rows: pd.DataFrame) -> list[str]:
    """Return the cases of ``caption-part``, the sentences that follow the caption of a layout's figure.

    Each explains something that the figure shows besides the values of peakmark's kernel.
    """
    if drawing.kind == "panels":
        return []
    is_bars, has_limits = drawing.kind == "bars", bool(rows["limit"].notna().any())
    has_dots = drawing.value == "measured" and not is_bars
    has_references = bool((~rows["is_own"]).any())
    if has_dots:
        has_limits = bool(pictures.has_limit_line(rows[rows["is_own"]]).any())
    shown = {
        "repetitions": has_dots,
        "references": is_bars and drawing.value != "deviation" and has_references,
        "limits": has_limits and (has_dots or drawing.value == "efficiency"),
    }
    return [part for part, is_shown in shown.items() if is_shown]
