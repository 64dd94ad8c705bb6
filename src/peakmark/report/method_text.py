"""How it was measured, and where the theoretical values come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from peakmark import yamlfile
from peakmark.analysis import Analysis, centre_of
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Key, Row
from peakmark.analysis.verdict import planned
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Layout, LayoutTable
from peakmark.formatting import decimal_mark, size, typeset
from peakmark.resources import ROOT
from peakmark.statistics import ENOUGH
from peakmark.storage.results import Results
from peakmark.tables import presentation
from peakmark.tables.presentation import empty_reason
from peakmark.tools.tables import SMALL_RECORD, TABLES


def build_formulas(rows: Sequence[Row], printed: Mapping[Key, LayoutTable]) -> dict[str, Any]:
    """Each formula once, with the rows it stands for, called as ``printed`` in a layout; sources
    are told once.
    """
    sources: dict[str, int] = {}
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[Row]] = {}
    said_below_table = len(presentation.unknown_reasons(rows)) == 1
    for row in rows:
        limit = row.limit
        why = "" if limit.reason is None or said_below_table else limit.reason.text
        formula = "; ".join(filter(None, (limit.formula, why)))
        if not formula:
            continue
        sources_of = () if limit.kind == "none" else limit.sources
        kind = KINDS.get(limit.kind, limit.origin)
        groups.setdefault((formula, limit.detail, kind, sources_of), []).append(row)
    lines = []
    often = Counter(detail for _, detail, _, _ in groups)
    for (formula, detail, kind, sources_of), members in groups.items():
        apart = often[detail] > 1
        shown = formula if apart or not detail else f"{formula} ({detail})"
        cited = [*([detail] if detail and apart else []), *filter(None, sources_of)]
        numbers = ", ".join(str(sources.setdefault(entry, len(sources) + 1)) for entry in cited)
        which = "all rows" if len(members) == len(rows) else _which(members, printed)
        lines.append(
            {
                "rows": which,
                "formula": typeset(shown),
                "kind": kind,
                "source": numbers,
            }
        )
    return {
        "lines": lines,
        "sources": [f"{number}. {typeset(source)}." for source, number in sources.items()],
    }


def _which(rows: Sequence[Row], printed: Mapping[Key, LayoutTable]) -> str:
    """The rows of a formula by what they have in common: workloads, blocks where they are few,
    concurrency.
    """
    called = [(row, LabelFormatter(row.table, layout_table=printed.get(row.key))) for row in rows]
    workloads = dict.fromkeys(
        labels.workload(row)
        + (f" {row.key.variant}" if row.table.variant and row.key.variant else "")
        for row, labels in called
    )
    blocks = dict.fromkeys(labels.block(row) for row, labels in called if row.key.block is not None)
    threads = dict.fromkeys(
        f"×{row.key.concurrency}" if row.key.concurrency else row.key.word for row in rows
    )
    return "; ".join(", ".join(part) for part in (workloads, blocks, threads) if part)


KINDS = {"at_most": "bound", "best_seen": "best seen", "none": "unknown"}
"""What the list of formulas calls what is no limit; a limit by where it is from."""
MISSING = "–"
TEXT = yamlfile.read(ROOT / "reports" / "method.yaml")
COUNTED: list[list[str]] = TEXT["counted"]
"""Resource, workloads, and what one operation of theirs is."""


def build(analysis: Analysis) -> dict[str, Any]:
    """Paragraphs by heading, the table of workloads, and the table of programs."""
    results, rows = analysis.results, analysis.rows
    subsystems = planned(rows)
    ran = programs(analysis, subsystems)
    arises = [decimal_mark(typeset(text), analysis.results.mark) for text in _arises(results)]
    return {
        "parts": [
            {"title": "How a number arises", "paragraphs": arises},
            {"title": "How to read a row", "paragraphs": _reading()},
        ],
        "workloads": _counted(rows),
        "programs": ran,
        "programs_text": _in_a_sentence(ran),
    }


def _counted(rows: Mapping[str, Sequence[Row]]) -> list[list[str]]:
    """What is counted, of the workloads that the campaign has."""
    asked = {
        (SUBSYSTEMS[row.table.subsystem].title, name)
        for table_rows in rows.values()
        for row in table_rows
        for name in (row.key.workload, row.key.workload.partition("-")[0])
    }
    return [line for line in COUNTED if any((line[0], name) in asked for name in line[1].split())]


def _in_a_sentence(lines: Sequence[Sequence[str]]) -> str:
    """The same programs where paper is short."""
    present = [f"{name} {version}" for name, version, _ in lines if version != MISSING]
    missing = [f"{name} ({why})" for name, version, why in lines if version == MISSING]
    sentences = [f"{'; '.join(present)}. The HTML report has their commands."] if present else []
    sentences += [f"Missing: {'; '.join(missing)}."] if missing else []
    return " ".join(sentences) or "No program ran."


def _arises(results: Results) -> list[str]:
    centre = TEXT["centres"][centre_of(results)]
    measured, summarised, *judged = (
        text.format(centre=centre, enough=ENOUGH) for text in TEXT["arises"]
    )
    return [measured, summarised, *judged, *_energy(results)]


def _energy(results: Results) -> list[str]:
    """Whose energy the tables have, and why they have none; once for nodes that are alike."""
    texts = []
    for facts in results.facts.values():
        names = (facts.get("cpu") or {}).get("energy")
        why = (facts.get("unknown") or {}).get("cpu.energy")
        if names or why:
            texts.append(TEXT["energy" if names else "no_energy"].format(names=names, reason=why))
    return list(dict.fromkeys(texts))


def _reading() -> list[str]:
    return [text.format(small=size(SMALL_RECORD)) for text in TEXT["reading"]]


def programs(analysis: Analysis, subsystems: Collection[str]) -> list[list[str]]:
    """Name with what the tables call it, version and path of each program that ran, then those of
    the subsystems that are missing, with the reason.
    """
    results, layout = analysis.results, analysis.layout
    versions: dict[tuple[str, str, str], None] = {}
    for record in results.records:
        tool = record.data["context"]["tool"]
        if record.ok and tool is not None:
            library = record.data["context"].get("library") or {}
            extra = "; ".join(
                f"{name} {value}" for name, value in sorted(library.items()) if value is not None
            )
            version = str(tool["version"]) + (f" ({extra})" if extra else "")
            versions[(record.cell.instrument, version, str(tool["path"]))] = None
    # A layout has its own choice of programs: others are not missing.
    chosen = None if layout is None else {cell.instrument for cell in results.cells}
    order = [
        series.instrument
        for table in TABLES
        if table.subsystem in subsystems
        for series in table.series
    ]
    lines = sorted(
        versions, key=lambda line: (order.index(line[0]) if line[0] in order else 99, line)
    )
    absent = [name for name in dict.fromkeys(order) if name not in {ran for ran, _, _ in lines}]
    lines += [
        (name, MISSING, empty_reason(results, name))
        for name in absent
        if chosen is None or name in chosen
    ]
    called = _called(layout)
    return [[called.get(name, name), version, path] for name, version, path in lines]


def _called(layout: Layout | None) -> dict[str, str]:
    """``diskbench (MyDiskBench)``: programs whose name in the tables, or in those of the layout, is
    another one.
    """
    printed = (
        {layout_table.table.name for layout_table in layout.layout_tables} if layout else set()
    )
    tables = (
        [layout.called(table) for table in TABLES if table.name in printed] if layout else TABLES
    )
    names: dict[str, dict[str, None]] = {}
    for series in (series for table in tables for series in table.series):
        if series.heading.lower() != series.instrument:
            names.setdefault(series.instrument, {})[series.heading] = None
    return {
        instrument: f"{instrument} ({', '.join(headings)})"
        for instrument, headings in names.items()
    }
