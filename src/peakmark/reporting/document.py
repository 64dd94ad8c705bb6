"""What the report says, as one JSON value for the Typst template: words and texts, no markup, nothing computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial as partly
from typing import Any

from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.catalogue.tables import TABLES, Table, subsystem_tables
from peakmark.config import people
from peakmark.config.layouts import Layout, Sheet
from peakmark.figures import bars
from peakmark.formatting import date, listed, plural, typeset
from peakmark.judging import caveats, fleet, fleet_text, verdict
from peakmark.judging.drawn import Drawn, figures_of, without_rows
from peakmark.judging.row import Key, Row
from peakmark.judging.rows import layout_of
from peakmark.judging.words import Words
from peakmark.reporting import (
    alternative,
    artifact,
    chapters,
    formulas,
    machine_text,
    many,
    method_text,
    provenance,
    runs_text,
    said,
    shorter,
)
from peakmark.storage.results import Results
from peakmark.tables import captions, footnotes, page_tables, presentation, sheets
from peakmark.tables.presentation import Grid

FLEET = "fleet"
Rows = Mapping[str, Sequence[Row]]


def build(
    results: Results,
    rows: Rows,
    figures: Mapping[str, int],
    logo: str | None,
    partial: bool,
    page: bool = False,
) -> dict[str, Any]:
    """The whole report. ``figures`` maps the name of each figure to its width in percent of the page; ``logo`` is a
    file name. page: for the page, which is no longer for it: of many nodes each row has a line, beside the lines of points, and
    each note says what to do about it, even where one above said so.
    """
    mark = results.mark
    judged = verdict.verdicts(rows, mark)
    several = len(fleet.nodes(rows)) > 1
    sections = [section for section in _sections(results, rows, figures, mark, page) if section["parts"]]
    return {
        "meta": _meta(results, rows, logo, partial),
        "chapters": chapters.build(results),
        "verdicts": [_verdict_of_nodes(entry, mark) if several else _verdict(entry, mark) for entry in judged],
        "slow": fleet_text.slow(rows, mark),
        "caveats": [
            *(typeset(sentence, mark) for sentence in caveats.build(rows, judged, results.config)),
            *_other_layout(results, rows),
        ],
        "verdict_head": [*HEAD_OF_NODES] if several else [*VERDICT_HEAD],
        "overview": _overview(figures, several, judged),
        "machine": many.alike(machine_text.nodes(results, mark)),
        "method": method_text.build(results, rows, mark),
        "sections": sections if page else shorter.sections(sections),
        "runs": runs_text.elsewhere() if fleet.is_many(rows) else runs_text.runs(rows, mark),
        "problems": runs_text.problems(results),
        "artifact": artifact.build(results, mark, page),
        "provenance": provenance.build(results),
    }


def _other_layout(results: Results, rows: Rows) -> list[str]:
    """That many nodes have tables of their own, where a layout is configured."""
    layout = layout_of(results)
    if layout is None or not fleet.is_many(rows):
        return []
    return [
        f"Of so many nodes the tables here have a line for each point; those of the layout {layout.name}, with a line for "
        f"each node, are in tables/{layout.name}."
    ]


def figure_names(rows: Rows, layout: Layout | None = None) -> list[str]:
    """The figures that the report shows, the overview first."""
    asked = None if fleet.is_many(rows) else layout
    drawn = [entry.name for table in TABLES for entry in figures_of(table, rows[table.name], asked) if entry.rows]
    if len(fleet.nodes(rows)) > 1:
        return [FLEET, *drawn] if any(verdict.headline(rows, entry) for entry in verdict.planned(rows)) else drawn
    # A bar alone would be the table's line again.
    return ["overview", *drawn] if len(verdict.with_limit(rows)) > 1 else drawn


def newest(results: Results) -> datetime:
    """When the newest record was begun, to the second: the report's date. The epoch where there is no record."""
    stored = (*results.records, *results.attempts)
    times = [datetime.fromisoformat(str(record.data["context"]["started"])).astimezone(UTC) for record in stored]
    return max(times, default=datetime.fromtimestamp(0, UTC)).replace(microsecond=0)


def _meta(results: Results, rows: Rows, logo: str | None, partial: bool) -> dict[str, Any]:
    config = results.report_config
    resources = [SUBSYSTEMS[subsystem].resource for subsystem in verdict.planned(rows)]
    named = listed(resources)
    missing = len(results.missing)
    begun = bool(results.records or results.attempts)
    many = len(results.facts) > 1
    return {
        "title": str(config.get("title") or "Performance report"),
        "author": people.line(config),
        "authors": [author.name for author in people.authors(config)],
        "course": str(config.get("course") or ""),
        "logo": logo,
        "date": date(newest(results), str(config.get("date_language") or config.get("language") or "en"))
        if begun
        else "nothing measured yet",
        "campaign": results.name,
        "lead": f"This report tells how close {machine_text.short(results)} {'come' if many else 'comes'} to the limits of {'their' if many else 'its'} {named}. "
        f"{'Each resource' if len(resources) > 1 else f'The {named}'} is measured by an own kernel and, beside it, by the "
        "tools that the field uses.",
        "partial": partial and missing > 0,
        "partial_text": f"{missing} of {plural(len(results.cells), 'planned cell')} {'has' if missing == 1 else 'have'} no record yet; "
        f"{'its row says' if missing == 1 else 'their rows say'} “not measured”.",
    }


VERDICT_HEAD = (
    "Resource",
    "Measured (lowest to highest)",
    "Limit",
    "Share",
    "Beside a reference",
    "Confidence, and why",
)


HEAD_OF_NODES = (
    "Resource",
    "Median of the nodes\n(lowest to highest)",
    "Share of the\nlimit",
    "Slowest node",
    "Beside a reference",
    "Confidence, and why",
)


def _verdict_of_nodes(entry: verdict.Verdict, mark: str) -> list[list[str]]:
    """The same where several nodes were measured, under ``HEAD_OF_NODES``."""
    spread = f"({entry.spread})" if entry.spread else ""
    return [
        [entry.title, entry.what],
        [entry.measured, spread],
        [entry.share or entry.limit, f"of {entry.limit}" if entry.share else ""],
        [entry.slowest, entry.behind],
        [entry.reference, ""],
        [entry.confidence, typeset(entry.why, mark)],
    ]


def _verdict(entry: verdict.Verdict, mark: str) -> list[list[str]]:
    """A line of page one: its cells under ``VERDICT_HEAD``, each with what stands small below it."""
    spread = f"({entry.spread})" if entry.spread else ""
    return [
        [entry.title, entry.what],
        [entry.measured, spread],
        [entry.limit, ""],
        [entry.share, entry.clocks],
        [entry.reference.replace("n = ", "n\u00a0=\u00a0"), ""],
        [entry.confidence, typeset(entry.why, mark)],
    ]


def _figure(figure: Drawn, figures: Mapping[str, int], mark: str = ".") -> dict[str, Any] | None:
    """A figure with its caption, and with what it says to those who listen."""
    if figure.name not in figures:
        return None
    limit = any(row.limit.value is not None for row in figure.rows)
    doubts = captions.doubts(figure.rows)
    used = {name for row in figure.rows for name in row.series}
    if figure.drawing is not None:
        value, bar = figure.drawing.value, figure.drawing.kind == "bars"
        drawn = value == "efficiency" or (value == "measured" and limit and not bar)
        beyond = bars.goes_beyond(figure.drawing, figure.rows)
        caption = captions.of_drawing(figure.drawing, drawn, value != "deviation" and len(used) > 1, beyond) + doubts
        alt = alternative.text(caption, figure.rows, mark, value)
    elif figure.rows:
        absent = {series.instrument for series in figure.rows[0].table.references} - used
        caption = captions.text(figure.name, limit, absent)
        if figure.name not in captions.FIGURES:
            caption = f"{Words.of(figure.rows[0]).workload(figure.rows[0])}: {captions.inside(caption)}"
        caption += doubts
        alt = alternative.text(caption, figure.rows, mark)
    else:
        caption = alt = captions.text(figure.name)
    return {"file": f"figures/{figure.name}.svg", "width": figures[figure.name], "caption": caption, "alt": alt}


def _overview(figures: Mapping[str, int], several: bool, judged: Sequence[verdict.Verdict]) -> dict[str, Any] | None:
    """The figure of page one; what it draws is told to those who listen: shares of the limit, of several nodes the slowest."""
    figure = _figure(Drawn(FLEET if several else "overview", ()), figures)
    if several:
        values = [f"{entry.title}: slowest {entry.slowest}: {entry.behind}" for entry in judged if entry.slowest]
    else:
        values = [f"{entry.title} {entry.share} of {entry.limit}" for entry in judged if entry.share]
    return {**figure, "alt": f"{figure['caption']} {'; '.join(values)}."} if figure and values else figure


def _dots(figures: Mapping[str, int], mark: str, figure: Drawn) -> dict[str, Any] | None:
    """A figure of many nodes; all have the same caption."""
    if figure.name not in figures:
        return None
    caption = captions.text(captions.NODES)
    alt = " ".join([caption, *(finding.text for finding in fleet_text.of_nodes(figure.rows, mark)[:2])])
    return {"file": f"figures/{figure.name}.svg", "width": figures[figure.name], "caption": caption, "alt": alt}


def _sections(
    results: Results, rows: Rows, figures: Mapping[str, int], mark: str, every_node: bool
) -> list[dict[str, Any]]:
    """A chapter for each subsystem, in the order of the configured layout where there is one."""
    if fleet.is_many(rows):
        return [
            {
                "title": about.title,
                "parts": [
                    part
                    for table in subsystem_tables(subsystem)
                    for part in many.parts(
                        results, table, rows[table.name], partly(_dots, figures, mark), mark, every_node
                    )
                ],
            }
            for subsystem, about in SUBSYSTEMS.items()
        ]
    layout = layout_of(results)
    first = [sheet.table.subsystem for sheet in layout.sheets] if layout else []
    return [
        {
            "title": SUBSYSTEMS[subsystem].title,
            "parts": [
                part
                for table in subsystem_tables(subsystem)
                for part in _parts(results, table, rows[table.name], figures, mark, layout)
                if layout is None or not _said_elsewhere(table, rows, layout)
            ],
        }
        for subsystem in dict.fromkeys([*first, *SUBSYSTEMS])
    ]


def _said_elsewhere(table: Table, rows: Rows, layout: Layout) -> bool:
    """Whether a table that the layout leaves out is another side of rows it shows, as latencies are of IOPS."""
    if any(sheet.table is table for sheet in layout.sheets):
        return False
    shown = set()
    for name in {sheet.table.name for sheet in layout.sheets if sheet.table.subsystem == table.subsystem}:
        left = {row.key for row in sheets.left_over(layout, name, rows[name])}
        shown |= {row.key for row in rows[name]} - left
    return bool(shown) and all(row.key in shown for row in rows[table.name])


def _parts(
    results: Results, table: Table, rows: Sequence[Row], figures: Mapping[str, int], mark: str, layout: Layout | None
) -> list[dict[str, Any]]:
    """The parts of one table: one for each sheet of the layout, one for the rows that no sheet shows, else the table.

    Figures and formulas stand with the last of them, as they are those of all.
    """
    shown = [sheet for sheet in layout.sheets if sheet.table is table] if layout else []
    grids: list[tuple[Grid, list[Row]]] = []
    shown_rows: list[tuple[set[Key], Sheet | None]] = []  # the rows that each grid shows
    for sheet in shown:
        lines = sheets.lines(sheet, rows)
        if lines:
            grids.append((sheets.grid(results, sheet, rows, mark), [line.rows[0] for line in lines]))
            shown_rows.append(({row.key for line in lines for row in line.rows}, sheet))
    rest = sheets.left_over(layout, table.name, rows) if layout and shown else rows
    if rest:
        grids.append((presentation.grid(results, rest[0].table, rest, mark), list(rest)))
        shown_rows.append(({row.key for row in rest}, None))
    for number, (keys, _) in enumerate(shown_rows):  # two sheets of the same rows have their notes once, below the last
        again = [later for later in range(number + 1, len(shown_rows)) if shown_rows[later][0] == keys]
        if again and (grids[number][0].notes or grids[number][0].shared):
            grid, members = grids[number]
            grids[number] = (presentation.without_notes(grid, grids[again[-1]][0].title), members)
    if not grids:
        if layout is not None:
            return []
        return [
            {
                "first": table is subsystem_tables(table.subsystem)[0],
                "title": table.title,
                "name": table.title,
                "table": None,
                "empty": "The plan holds no cell for this table.",
                "findings": [],
                "figures": [],
                "formulas": {"lines": [], "sources": []},
            }
        ]
    parts: list[dict[str, Any]] = [
        {
            "first": number == 0 and table is subsystem_tables(table.subsystem)[0],
            "title": grid.title,
            "name": captions.of_table(grid.title, table.subsystem).rstrip("."),
            "table": page_tables.table(grid, members, mark),
            "findings": [],
            "figures": [],
            "formulas": {"lines": [], "sources": []},
        }
        for number, (grid, members) in enumerate(grids)
    ]
    for number, (keys, of_sheet) in enumerate(shown_rows):
        if keys not in [later for later, _ in shown_rows[number + 1 :]]:  # two sheets of the same rows say it once
            chosen = [row for row in rows if row.key in keys]
            parts[number]["findings"] = said.of_table(chosen, mark, of_sheet)
    of_tables = {frozenset(keys) for keys, _ in shown_rows}
    if len(of_tables) > 1:
        parts[-1]["findings"] += said.of_tables(rows, len(of_tables), mark, shown_rows[-1][1])
    printed = {key: of_sheet for keys, of_sheet in shown_rows if of_sheet is not None for key in keys}
    for drawn in figures_of(table, rows, layout):
        figure = _figure(drawn, figures, mark)
        if figure is not None:
            shown_by = [
                number for number, (keys, _) in enumerate(shown_rows) if {row.key for row in drawn.rows} <= keys
            ]
            parts[shown_by[0] if shown_by else -1]["figures"].append(figure)
        elif drawn.drawing is not None:
            parts[-1]["table"]["remarks"].append(footnotes.closed(without_rows(drawn.drawing)))
    parts[-1]["formulas"] = formulas.build(rows, printed, mark)
    return parts
