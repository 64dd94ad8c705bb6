"""The run table and the list of what went wrong, as text: every repetition is named, nothing is averaged here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from peakmark.catalogue.tables import SUBSYSTEM_TITLES, TABLES
from peakmark.cell import Cell
from peakmark.formatting import natural, plural, significant, size
from peakmark.judging import fleet
from peakmark.reporting import many
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
                    natural(cell.node),
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
        _, subsystem, _, node, instrument, metric, workload, variant, block, concurrency = key
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


def elsewhere() -> dict[str, Any]:
    """The same where there are too many for a page."""
    return {
        "text": "tables/runs.csv holds every repetition of every node with full precision, start time, host and job.",
        "columns": [], "lines": [], "breaks": [], "headings": [], "narrow": False,
    }  # fmt: skip


def problems(results: Results) -> dict[str, Any]:
    """Cells that could not be measured, attempts that failed, and planned cells without a record: cell, what,
    reason.
    """
    found = [(record.cell, "not possible here", str(record.data["reason"])) for record in results.refused]
    answered = {record.cell.id for record in results.records}
    for record in results.attempts:
        later = "failed, repeated later" if record.cell.id in answered else "failed"
        found.append((record.cell, later, f"{record.data['reason']} ({record.data['context']['host']})"))
    failed = {record.cell.id for record in results.attempts}
    waiting = [(cell, "not measured", "no record yet") for cell in results.missing if cell.id not in failed]
    if len({cell.node for cell in results.cells}) > fleet.MANY:
        lines = _of_nodes([*found, *waiting])
    else:
        lines = [[_name(cell), what, reason] for cell, what, reason in found]
        numbers: dict[str, list[int]] = defaultdict(list)
        for cell, _, _ in waiting:
            numbers[f"{cell.instrument} {cell.point} {cell.node}"].append(cell.repetition)
        for name, repetitions in numbers.items():
            lines.append([f"{name} {', '.join(map(str, sorted(repetitions)))}", "not measured", "no record yet"])
    text = "Every planned cell was measured at its first attempt."
    if lines:
        text = "Failed attempts are kept with the last lines of the program below attempts/."
    return {"text": text, "lines": lines}


def _of_nodes(found: Sequence[tuple[Cell, str, str]]) -> list[list[str]]:
    """The same of many nodes: what befell a row on several of them is one line."""
    together: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for cell, what, reason in found:
        together[f"{cell.instrument} {cell.point}", what, reason].append(cell.node)
    return [
        [f"{name} on {many.who(list(dict.fromkeys(nodes)))} ({plural(len(nodes), 'cell')})", what, reason]
        for (name, what, reason), nodes in together.items()
    ]


def _name(cell: Cell) -> str:
    return f"{cell.instrument} {cell.point} {cell.node} {cell.repetition}"
