"""What the report says, as one JSON value for the Typst template: words and texts, no markup, nothing computed."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import yaml

from peakmark import captions, findings, layouts, machine_text, method_text, presentation, runs_text, sheets, verdict
from peakmark.formatting import date, size
from peakmark.layout import SUBSYSTEM_TITLES, Table, subsystem_tables
from peakmark.layouts import Layout
from peakmark.presentation import Grid
from peakmark.results import Results
from peakmark.rows import Key, Row, figures_of

MAX_CHECKSUMS = 300
MAX_WHOLE = 30  # a table of so many rows is not broken over pages

Rows = Mapping[str, Sequence[Row]]


def build(results: Results, rows: Rows, figures: Mapping[str, int], logo: str | None, partial: bool) -> dict[str, Any]:
    """The whole report. ``figures`` maps the name of each figure to its width in percent of the page; ``logo`` is a
    file name.
    """
    mark = str(results.report_config.get("decimal_mark", "."))
    return {
        "meta": _meta(results, logo, partial),
        "numbers": [_number(entry) for entry in verdict.telling_numbers(rows, mark)],
        "verdicts": [{"title": entry.title, "sentence": entry.sentence} for entry in verdict.verdicts(rows, mark)],
        "overview": _figure("overview", figures),
        "machine": machine_text.nodes(results),
        "method": method_text.build(results, rows),
        "sections": [section for section in _sections(results, rows, figures, mark) if section["parts"]],
        "runs": runs_text.runs(results, mark),
        "problems": runs_text.problems(results),
        "provenance": _provenance(results),
    }


def newest(results: Results) -> datetime:
    """When the newest record was begun, to the second: the report's date. The epoch where there is no record."""
    stored = (*results.records, *results.attempts)
    times = [datetime.fromisoformat(str(record.data["context"]["started"])).astimezone(UTC) for record in stored]
    return max(times, default=datetime.fromtimestamp(0, UTC)).replace(microsecond=0)


def _meta(results: Results, logo: str | None, partial: bool) -> dict[str, Any]:
    config = results.report_config
    missing = len(results.missing)
    return {
        "title": str(config.get("title") or "Performance report"),
        "author": str(config.get("author") or ""),
        "course": str(config.get("course") or ""),
        "logo": logo,
        "date": date(newest(results), str(config.get("language") or "en")),
        "campaign": results.name,
        "lead": f"This report tells how close {machine_text.short(results)} comes to the limits that its hardware sets for "
        "processor, memory, disk and network. Each resource is measured by an own kernel and, beside it, by the tools that "
        "the field uses.",
        "partial": partial and missing > 0,
        "partial_text": f"{missing} of {len(results.cells)} planned cells have no record yet; "
        "their rows say “not measured”.",
    }


def _number(entry: verdict.Number) -> dict[str, str]:
    number, _, unit = entry.value.partition(" ")
    return {"label": entry.label, "number": number, "unit": unit, "comparison": entry.comparison}


def _figure(name: str, figures: Mapping[str, int]) -> dict[str, Any] | None:
    if name not in figures:
        return None
    caption = captions.text(name)
    return {"file": f"figures/{name}.svg", "width": figures[name], "caption": caption, "alt": caption}


def _sections(results: Results, rows: Rows, figures: Mapping[str, int], mark: str) -> list[dict[str, Any]]:
    """A chapter for each subsystem, in the order of the configured layout where there is one."""
    name = results.report_config.get("tables")
    layout = layouts.load(str(name)) if name else None
    first = [sheet.table.subsystem for sheet in layout.sheets] if layout else []
    return [
        {
            "title": SUBSYSTEM_TITLES[subsystem],
            "parts": [
                part
                for table in subsystem_tables(subsystem)
                for part in _parts(results, table, rows[table.name], figures, mark, layout)
                if layout is None or not _said_elsewhere(table, rows, layout)
            ],
        }
        for subsystem in dict.fromkeys([*first, *SUBSYSTEM_TITLES])
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
    said: list[set[Key]] = []  # the rows that each grid shows
    for sheet in shown:
        lines = sheets.lines(sheet, rows)
        if lines:
            grids.append((sheets.grid(results, sheet, rows, mark), [line.rows[0] for line in lines]))
            said.append({row.key for line in lines for row in line.rows})
    rest = sheets.left_over(layout, table.name, rows) if layout and shown else rows
    if rest:
        grids.append((presentation.grid(results, table, rest, mark), list(rest)))
        said.append({row.key for row in rest})
    if not grids:
        if layout is not None:
            return []
        return [
            {
                "first": table is subsystem_tables(table.subsystem)[0],
                "title": table.title,
                "table": None,
                "empty": "The plan holds no cell for this table.",
                "findings": [],
                "figures": [],
                "formulas": {"lines": [], "sources": []},
            }
        ]
    parts = [
        {
            "first": number == 0 and table is subsystem_tables(table.subsystem)[0],
            "title": grid.title,
            "table": _table(grid, members, mark),
            "findings": [],
            "figures": [],
            "formulas": {"lines": [], "sources": []},
        }
        for number, (grid, members) in enumerate(grids)
    ]
    for number, rows_shown in enumerate(said):
        if rows_shown not in said[number + 1 :]:  # two sheets of the same rows say it once
            chosen = [row for row in rows if row.key in rows_shown]
            parts[number]["findings"] = [vars(finding) for finding in findings.of(chosen, mark)]
    parts[-1]["figures"] = [_figure(name, figures) for name, _ in figures_of(table, rows) if name in figures]
    parts[-1]["formulas"] = _formulas(table, rows)
    return parts


def _table(grid: Grid, rows: Sequence[Row], mark: str) -> dict[str, Any]:
    """A grid with what only the page needs: headings over several columns, thin rules, numbers padded to their decimal
    mark.
    """
    decimals = [
        max(
            (len(line[place].partition(mark)[2]) for line in grid.body if line[place] != presentation.NOT_MEASURED),
            default=0,
        )
        for place in range(len(grid.columns))
    ]

    def cell(place: int, text: str) -> str | dict[str, str]:
        column = grid.columns[place]
        if column.kind != "number" or text == presentation.NOT_MEASURED or column.label == "Block Size":
            return text
        fraction = text.partition(mark)[2]
        lacking = decimals[place] - len(fraction)
        pad = "" if not text or lacking <= 0 else ("" if fraction else mark) + "0" * lacking
        return {"text": text, "pad": pad}

    head, subhead = _headings(grid)
    starts = [number for number in range(1, len(rows)) if _family(rows[number]) != _family(rows[number - 1])]
    return {
        "name": grid.name,
        "caption": f"{SUBSYSTEM_TITLES[rows[0].table.subsystem]}: {captions.inside(grid.title)}.",
        "columns": [{"kind": column.kind} for column in grid.columns],
        "head": head,
        "subhead": subhead,
        "breaks": starts,
        "whole": len(rows) <= MAX_WHOLE,
        "body": [[cell(place, text) for place, text in enumerate(line)] for line in grid.body],
        "notes": [list(note) for note in grid.notes],
        "remarks": list(grid.remarks),
    }


def _headings(grid: Grid) -> tuple[list[dict[str, Any]], list[str]]:
    """The two lines of headings: groups and the columns that stand alone, over both lines; then the columns in
    groups.
    """
    head: list[dict[str, Any]] = []
    subhead: list[str] = []
    lines = 2 if any(column.group for column in grid.columns) else 1
    for title, members in groupby(grid.columns, key=lambda column: column.group):
        columns = list(members)
        if title:
            head.append({"title": title, "span": len(columns), "rows": 1, "kind": "number"})
            subhead += [column.label for column in columns]
        else:
            head += [
                {"title": _wrapped(column.label), "span": 1, "rows": lines, "kind": column.kind} for column in columns
            ]
    return head, subhead


def _wrapped(heading: str) -> str:
    """A heading with its unit, and what is narrower in two lines, on lines of their own."""
    for words, lines in (
        (" (", "\n("),
        ("Theoretical ", "Theoretical\n"),
        ("Standard ", "Standard\n"),
        (" Measured ", "\nMeasured "),
        (" Efficiency", "\nEfficiency"),
        (" efficiency", "\nefficiency"),
        (" bench", "\nbench"),
    ):
        heading = heading.replace(words, lines)
    return heading


def _family(row: Row) -> tuple[str, str, str]:
    return row.key.node, row.key.workload, row.key.variant


def _formulas(table: Table, rows: Sequence[Row]) -> dict[str, Any]:
    """Each formula once, with the rows it stands for; sources are numbered and told once."""
    sources: dict[str, int] = {}
    groups: dict[tuple[str, str, str], list[Row]] = {}
    said_below_table = len(presentation.unknown_reasons(rows)) == 1
    for row in rows:
        known = row.peak.value is not None
        if not known and said_below_table:
            continue
        formula = row.peak.formula if known else str(row.peak.reason)
        groups.setdefault((formula, row.peak.kind, row.peak.source if known else ""), []).append(row)
    lines = []
    for (formula, kind, source), members in groups.items():
        number = str(sources.setdefault(source, len(sources) + 1)) if source else ""
        which = "all rows" if len(members) == len(rows) else _which(table, members)
        lines.append({"rows": which, "formula": formula, "kind": kind, "source": number})
    return {"lines": lines, "sources": [f"{number}. {source}." for source, number in sources.items()]}


def _which(table: Table, rows: Sequence[Row]) -> str:
    """The rows of a formula by what they have in common: workloads, blocks where they are few, concurrency."""
    workloads = dict.fromkeys(
        table.workload_label(row.key.workload) + (f" {row.key.variant}" if table.variant and row.key.variant else "")
        for row in rows
    )
    blocks = dict.fromkeys(size(row.key.block) for row in rows if row.key.block is not None)
    threads = dict.fromkeys(f"×{row.key.concurrency}" for row in rows)
    return "; ".join(", ".join(part) for part in (workloads, blocks, threads) if part)


def _provenance(results: Results) -> dict[str, Any]:
    sums = results.checksums
    listing = results.checksum_list
    digest = hashlib.sha256(listing.encode()).hexdigest()
    text = f"{len(sums)} raw outputs. SHA-256 of their list in the form of sha256sum: {digest}."
    if len(sums) > MAX_CHECKSUMS:
        text += " The list is too long for this page; tables/checksums.txt holds it."
    versions = dict.fromkeys(str(record.data["context"].get("peakmark", "unknown")) for record in results.records)
    times = sorted(str(record.data["context"]["started"]) for record in results.records)
    jobs = {record.data["context"].get("job_id") for record in results.records} - {None}
    facts = [
        ["Campaign", results.name],
        ["peakmark", ", ".join(versions) or "no record yet"],
        [
            "Records",
            f"{len(results.records)} of {len(results.cells)} cells, {len(results.attempts)} failed attempts"
            + (f"; {results.spared} planned repetitions spared" if results.spared else ""),
        ],
        ["First and last start", f"{times[0]} to {times[-1]}" if times else "no record yet"],
        ["Slurm jobs", f"{len(jobs)}, {min(jobs)} to {max(jobs)}" if jobs else "none: measured without Slurm"],
    ]
    return {
        "facts": facts,
        "commands": commands(results),
        "config": yaml.safe_dump(
            dict(results.config), sort_keys=False, allow_unicode=True, default_flow_style=None, width=95
        ),
        "checksums_text": text,
        "checksums": [list(pair) for pair in sums] if len(sums) <= MAX_CHECKSUMS else [],
    }


def commands(results: Results) -> list[str]:
    """What was executed for the first record of each program and workload, as a shell would read it."""
    found: dict[tuple[str, str], str] = {}
    for record in results.records:
        key = (record.cell.instrument, record.cell.workload)
        if record.ok and key not in found and record.data["context"]["commands"]:
            found[key] = "; ".join(_shell(command) for command in record.data["context"]["commands"][:1])
    return list(found.values())


def _shell(command: Mapping[str, Any]) -> str:
    environment = [f"{name}={shlex.quote(str(value))}" for name, value in sorted(command.get("env", {}).items())]
    return " ".join([*environment, shlex.join(command["argv"])])
