"""Build the report's chapter on each resource: tables with findings, figures, and the formulas of the limits."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Drawing, Layout
from peakmark.formatting import listed, node_or_link, plural, significant, typeset
from peakmark.messages import merge_keys, message
from peakmark.rows import schema
from peakmark.rows.labels import labels_of, table_of
from peakmark.rows.schema import CampaignFrames, is_usable
from peakmark.tools.tables import BY_NAME, Table, subsystem_tables
from peakmark.views import layout_tables, pictures, score_card
from peakmark.views.pictures import FLEET, ROOFLINE, Picture, caption
from peakmark.views.table import (
    Line,
    ShownTable,
    is_many,
    rows_of,
    sentence,
)
from peakmark.views.usual_tables import nodes_table, usual_table

# A table of a chapter with its findings, figures and formulas, see ``part_of``.
Part = dict[str, Any]
Formulas = dict[str, list[Any]]  # see ``build_formulas``

KINDS = {"at_most": "bound", "none": "unknown"}
"""Kind of limit -> its name in the list of formulas. A limit of another kind is listed under its origin."""
ORIGINS = {"measured": "measured clock", "read": "computed", "site": "site file"}
"""Origin of a limit -> its name in the list of formulas; other origins have their own name there."""


def build(frames: CampaignFrames, layout: Layout | None) -> list[dict[str, Any]]:
    """Return title and parts of each chapter, in the order of the layout if there is one.

    Args:
        frames: the campaign, see ``layout_tables.for_print``.
        layout: layout of the campaign; its tables are not printed for many nodes.
    """
    with_many = is_many(frames)
    # The resources of the layout's tables come first.
    first = []
    if layout and not with_many:
        first = [each.table.subsystem for each in layout.layout_tables]
    chapters = []
    said = set[str]()
    for subsystem in dict.fromkeys([*first, *SUBSYSTEMS]):
        parts: list[Part] = []
        for table in subsystem_tables(subsystem):
            if with_many:
                parts += parts_of_nodes(frames, table, layout)
            else:
                parts += parts_of_table(frames, table, layout)
        # A sentence that holds for several tables is printed below the first of them.
        for part in parts:
            general = part["table"].pop("general")
            part["table"]["remarks"] += [text for text in general if text not in said]
            said.update(general)
        if parts:
            chapters.append({"title": SUBSYSTEMS[subsystem].title, "parts": parts})
    return chapters


def parts_of_nodes(frames: CampaignFrames, table: Table, layout: Layout | None) -> list[Part]:
    """Return two tables of many nodes: one has a line for each point, the other for each point and node.

    The second table is for HTML only, because paper has no room for it.
    """
    rows = rows_of(frames, table)
    own = rows[rows["is_own"]]
    if not is_usable(own).any():
        return []
    called = table_of(layout, table, rows)
    part = part_of(nodes_table(frames, called, rows))
    part["findings"] = [finding for finding, _ in findings_with_points(frames, table)]
    # The usual figures replace those of the layout.
    for picture in pictures.pictures_of(frames, table, None):
        if is_usable(picture.rows).any():
            part["figures"].append(picture_of_nodes(picture))
    # A limit depends on the node's clock: list the first node's formula of each point.
    part["formulas"] = build_formulas(own[is_usable(own)].drop_duplicates("place"), layout)
    if part["formulas"]["lines"]:
        part["formulas"]["sources"].insert(
            0, "These are the limits of the first node of each point."
        )
    shown = usual_table(frames, called, rows)
    every_node = part_of(replace(shown, title=f"{shown.title}: every node"))
    every_node["table"]["runs"] = runs_of_lines(frames, shown)
    return [part, every_node | {"on_paper": False}]


def parts_of_table(frames: CampaignFrames, table: Table, layout: Layout | None) -> list[Part]:
    """Return the parts of a table: first those with the layout's tables, then those with all other rows."""
    tables = list(layout_tables.shown_tables(frames, table, layout))
    if not tables:
        return []
    own = rows_of(frames, table)
    own = own[own["is_own"]]
    parts = []
    for each in tables:
        part = part_of(each)
        part["table"]["remarks"] += list(notes_below(frames, each, layout))
        # A line of a layout's table may show several rows, so that its runs cannot be listed.
        if not each.is_of_layout:
            part["table"]["runs"] = runs_of_lines(frames, each)
        parts.append(part)
    # A finding stands below the last table that has all its points, or below the last table.
    for finding, names in findings_with_points(frames, table):
        fitting = parts_with(names, parts, tables)
        (fitting or parts)[-1]["findings"].append(finding)
    # The CPU's roofline is on page one, see ``overview``.
    found = pictures.pictures_of(frames, table, layout)
    add_pictures(parts, tables, [each for each in found if each.name != ROOFLINE])
    # Without tables of a layout, each table has the formulas of its rows. With them, the last part
    # has the formulas of all rows, but only if a limit is printed: by the layout, or by a usual
    # table of the rows that the layout leaves out, which always has a column of limits.
    has_usual = not all(each.is_of_layout for each in tables)
    if layout is not None and any(each.is_of_layout for each in tables):
        if has_usual or layout.prints_limits(table):
            parts[-1]["formulas"] = build_formulas(own, layout)
    else:
        for part, each in zip(parts, tables, strict=True):
            part["formulas"] = build_formulas(each.lines, layout)
    return parts


def parts_with(
    points: Collection[str], parts: Sequence[Part], tables: Sequence[ShownTable]
) -> list[Part]:
    """Return the parts whose table has all of the given points. ``tables`` has the table of each part."""
    pairs = zip(parts, tables, strict=True)
    return [part for part, each in pairs if set(points).issubset(each.lines.index)]


def part_of(shown: ShownTable) -> Part:
    """Return a part with a table, for HTML (``table``) and for PDF (``paper``).

    It has no findings, figures and formulas yet.
    """
    return {
        "title": shown.title,
        "on_paper": True,
        "name": shown.full_title,
        "table": shown.page() | {"runs": []},
        "paper": shown.page(on_paper=True),
        "findings": [],
        "figures": [],
        "formulas": {"lines": [], "sources": []},
    }


def notes_below(frames: CampaignFrames, shown: ShownTable, layout: Layout | None) -> Iterator[str]:
    """Yield the notes on the printed values of a table, each with its program and rows.

    Of notes that differ only in their numbers, the first is given, and the others are counted.
    """
    notes = frames.warnings[frames.warnings["code"].eq("note")]
    notes = notes[notes["point"].isin(shown.lines.index)]
    programs = {program.instrument: program.heading for program in shown.table.series}
    words = notes["text"].str.replace(r"[\d.]+", "", regex=True)
    for (instrument, _), alike in notes.groupby(["about", words], sort=False):
        text = alike["text"].iloc[0]
        points = alike.loc[alike["text"].eq(text), "point"]
        rows = shown.lines.loc[points]
        which = name_rows(list(schema.lines(rows)), layout)
        if len(rows) == len(shown.lines):
            which = "all rows"
        elif len(rows) < len(alike):
            text += f"; {plural(len(alike) - len(rows), 'other row')} alike, with other numbers"
        yield sentence(f"{programs[str(instrument)]}, {which}: {text}")


def runs_of_lines(frames: CampaignFrames, shown: ShownTable) -> list[Part]:
    """Return for each line of a usual table the runs of peakmark's kernel that count.

    ``point`` is the row's point. ``shares`` has the runs as shares of the highest run, ``text`` has them
    in the unit of the shown table.
    """
    kept = frames.runs[frames.runs["kept"]].sort_values("repetition", kind="stable")
    values = kept.groupby(["point", "instrument"])["value"].agg(list)
    lines = []
    for row in schema.lines(shown.lines):
        runs = values.get((row.point, row.instrument), [])
        highest = max(runs, default=0.0)
        texts = [significant(value * shown.table.factor) for value in runs]
        shares = [round(value / highest, 3) for value in runs]
        lines.append({"point": row.point, "shares": shares, "text": ", ".join(texts)})
    return lines


# -- findings


def findings_with_points(
    frames: CampaignFrames, table: Table
) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yield each finding of a table with its points."""
    of_table = frames.findings[frames.findings["table"].eq(table.name)]
    for line in schema.lines(of_table):
        yield {"topic": line.topic, "text": typeset(line.text)}, json.loads(line.points or "[]")


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
        texts.append(own.limit_reason)
    sources = []
    if own.limit_kind != "none":
        sources = json.loads(own.limit_sources or "[]")
    # The kind is bound or unknown; of a known limit it is its origin, such as measured clock or
    # site file.
    origin = ORIGINS.get(own.limit_origin, own.limit_origin)
    kind = KINDS.get(own.limit_kind, origin)
    return Formula("; ".join(filter(None, texts)), own.limit_detail, kind, tuple(sources))


def build_formulas(own: pd.DataFrame, layout: Layout | None = None) -> Formulas:
    """Return the different formulas of the limits of rows, with their sources.

    Args:
        own: rows of peakmark's kernel.
        layout: layout that names the rows; None for the usual names.

    Returns:
        A mapping with these keys:

        - ``lines``: for each formula its rows, text, kind, and the numbers of its sources.
        - ``sources``: numbered sentences.
    """
    # If there is only one reason for unknown limits, a remark below the table states it.
    with_reasons = len(merge_keys(own["limit_reason"])) != 1
    groups: dict[Formula, list[Line]] = defaultdict(list)
    for row in schema.lines(own):
        groups[formula_of(row, with_reasons)].append(row)
    shown = {formula: members for formula, members in groups.items() if formula.text}
    lines = []
    numbers: dict[str, int] = {}  # source -> its number, in the order of the formulas that cite it
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
        if len(members) < len(own):
            which = name_rows(members, layout)
        nodes = dict.fromkeys(node_or_link(row.node) for row in members)
        if len(nodes) < own["node"].nunique() and "any" not in nodes:
            which += f" on {listed(list(nodes))}"
        lines.append([which, typeset(text), formula.kind, ", ".join(map(str, cited))])
    texts = [f"{number}. {typeset(source)}." for source, number in numbers.items()]
    return {"lines": lines, "sources": texts}


def name_rows(rows: Sequence[Line], layout: Layout | None) -> str:
    """Return the workloads, blocks and concurrencies of the rows of a formula as text.

    Rows are named one by one if they are not all combinations of these workloads, blocks and
    concurrencies.
    """
    named = dict[tuple[str, str, str], None]()
    for row in rows:
        labels = labels_of(layout, BY_NAME[row.table])
        # ``psync`` is the default of a disk.
        variant = row.variant.removeprefix("psync") if labels.table.variant else ""
        workload = f"{labels.workload(row)} {variant}".rstrip()
        count = f"×{row.concurrency}" if row.concurrency else row.concurrency_word
        named[workload, labels.block(row), count] = None
    parts = [dict.fromkeys(each) for each in zip(*named, strict=True)]
    if math.prod(map(len, parts)) > len(named):
        return ", ".join(" ".join(filter(None, name)) for name in named)
    return "; ".join(", ".join(part) for part in parts if any(part))


# -- figures


def add_pictures(
    parts: Sequence[Part], tables: Sequence[ShownTable], found: Sequence[Picture]
) -> None:
    """Add each figure to the first part whose table has all points of the figure.

    If there is none, add it to the last part whose table has some of the points.

    A figure of the layout without rows becomes a remark in the last part.
    """
    for picture in found:
        # A usual figure without rows is left out: only those of a layout were asked for (``drawing``).
        if len(picture.rows):
            points = picture.rows["point"]
            fitting = parts_with(points, parts, tables)
            # No table has all points: take the last one with any.
            if not fitting:
                pairs = zip(parts, tables, strict=True)
                fitting = [part for part, each in pairs if each.lines.index.isin(points).any()][-1:]
            part = (fitting or parts[-1:])[0]
            text = caption_of(picture)
            if picture.kind == "strip":  # its caption explains only the marks
                text = f"{part['table']['title']} {text}"
            figure = {"name": picture.name, "caption": text, "on_paper": picture.on_paper}
            part["figures"].append(figure)
        elif picture.drawing:
            remark = pictures.without_rows(picture.drawing)
            parts[-1]["table"]["remarks"].append(sentence(remark))


def overview(frames: CampaignFrames) -> dict[str, str] | None:
    """Return the figure of page one: the roofline of a single node, or how far nodes lie apart."""
    if len(frames.nodes) < 2:
        if pictures.roofs(frames).empty:
            return None
        return {"name": ROOFLINE, "caption": caption(ROOFLINE)}
    for _, rows in score_card.rows_of_headlines(frames):
        if len(pictures.compared_nodes(rows)):
            return {"name": FLEET, "caption": caption(FLEET)}
    return None


def picture_of_nodes(picture: Picture) -> dict[str, Any]:
    """Return a figure of many nodes with its caption."""
    return {
        "name": picture.name,
        "caption": caption(pictures.case_of(picture)),
        "on_paper": picture.on_paper,
    }


def caption_of(picture: Picture) -> str:
    """Return the caption of a figure of a table's rows."""
    drawing, rows = picture.drawing, picture.rows
    middle = picture.layout.value if picture.layout else "median"
    if drawing is None:
        sentences, parts = [caption(pictures.case_of(picture), middle)], []
        if picture.kind == "panels":
            parts.append("lines")
        if picture.kind == "strip" and pictures.has_limits(rows):
            parts.append("limits")
    else:
        sentences = [f"{drawing.title}.", caption(picture.kind, middle)]
        parts = parts_of_drawing(drawing, rows)
    for part in parts:
        sentences.append(f"{message('caption-part', case=part, middle=middle).fact}.")
    return " ".join(sentences)


def parts_of_drawing(drawing: Drawing, rows: pd.DataFrame) -> list[str]:
    """Return which sentences follow the caption of a layout's figure: cases of the message ``caption-part``.

    Each explains something that the figure shows besides the values of peakmark's kernel.
    """
    if drawing.kind == "panels":
        return []
    is_bars, has_limits = drawing.kind == "bars", bool(rows["limit"].notna().any())
    has_dots = drawing.value == "measured" and not is_bars
    has_references = bool((~rows["is_own"]).any())
    shown = {
        "repetitions": has_dots and rows["n"].max() > 1,
        "references": is_bars and drawing.value != "deviation" and has_references,
        "limits": has_limits and (has_dots or drawing.value == "efficiency"),
    }
    return [part for part, is_shown in shown.items() if is_shown]
