"""The run table and the list of what went wrong, as text: every repetition is named, nothing is averaged here."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from peakmark.catalogue.tables import SUBSYSTEM_TITLES, TABLES
from peakmark.cell import Cell
from peakmark.formatting import significant, size
from peakmark.storage.results import Results

NARROW = 48  # characters of a line's point and runs up to which two lines stand beside each other on a page

Scales = dict[tuple[str, str], tuple[float, str]]


def scales() -> Scales:
    """(subsystem, metric) -> factor from SI and the unit as shown."""
    return {(table.subsystem, table.metric): (table.factor, table.shown or "1/s") for table in TABLES}


def runs(results: Results, mark: str = ".") -> dict[str, Any]:
    """One line per program, point and metric, with every repetition in the order of the repetitions."""
    lines: dict[tuple[Any, ...], list[tuple[int, float, float]]] = defaultdict(list)
    for record in results.records:
        if record.ok:
            cell = record.cell
            for entry in record.data["measurements"]:
                point = (entry["workload"], entry["variant"], entry["block"] or 0, entry["concurrency"])
                key = (
                    list(SUBSYSTEM_TITLES).index(cell.subsystem),
                    cell.subsystem,
                    cell.node,
                    cell.instrument,
                    entry["metric"],
                    *point,
                )
                lines[key].append((cell.repetition, entry["value"], entry["details"].get("resolution", 0.0)))
    scale = scales()
    body: list[list[str]] = []
    breaks = []
    for key in sorted(lines):
        _, subsystem, node, instrument, metric, workload, variant, block, concurrency = key
        factor, unit = scale.get((subsystem, metric), (1.0, ""))
        if body and (body[-1][0], body[-1][3]) != (instrument, unit):
            breaks.append(len(body))
        values = "  ".join(
            significant(value * factor, mark=mark, step=step * factor) for _, value, step in sorted(lines[key])
        )
        where = f"{workload}{' ' + variant if variant else ''}{', ' + size(block) if block else ''}"
        body.append([instrument, where + (f", {node}" if node != "any" else ""), f"×{concurrency}", unit, values])
    return {
        "text": "Every repetition, in the order of the repetitions; tables/runs.csv holds them with full precision, "
        "start time, hosts and job.",
        "columns": ["Program", "Workload, block", "Concurrency", "Unit", "Runs"],
        "lines": body,
        "breaks": breaks,
        "headings": ["Program", "Point", "Unit", "Runs"],
        "narrow": all(len(line[1].replace(" psync", "")) + len(line[2]) + len(line[-1]) <= NARROW for line in body),
    }


def problems(results: Results) -> dict[str, Any]:
    """Cells that could not be measured, attempts that failed, and planned cells without a record: cell, what,
    reason.
    """
    lines = [
        [_name(record.cell), "not possible here", str(record.data["reason"])]
        for record in results.records
        if not record.ok
    ]
    answered = {record.cell.id for record in results.records}
    for record in results.attempts:
        later = "failed, repeated later" if record.cell.id in answered else "failed"
        lines.append([_name(record.cell), later, f"{record.data['reason']} ({record.data['context']['host']})"])
    failed = {record.cell.id for record in results.attempts}
    waiting: dict[str, list[int]] = defaultdict(list)
    for cell in results.missing:
        if cell.id not in failed:
            waiting[f"{cell.instrument} {cell.point} {cell.node}"].append(cell.repetition)
    for name, repetitions in waiting.items():
        numbers = ", ".join(str(repetition) for repetition in sorted(repetitions))
        lines.append([f"{name} {numbers}", "not measured", "no record yet"])
    text = "Every planned cell was measured at its first attempt."
    if lines:
        text = "Failed attempts are kept with the last lines of the program below attempts/."
    return {"text": text, "lines": lines}


def _name(cell: Cell) -> str:
    return f"{cell.instrument} {cell.point} {cell.node} {cell.repetition}"
