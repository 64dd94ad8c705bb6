"""The run table and the list of what went wrong, as text: every repetition is named, nothing is
averaged here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from peakmark.analysis import fleet
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.cell import Cell
from peakmark.formatting import plural
from peakmark.report import many
from peakmark.storage.results import Results

ECHO = "LAT-ICMP"
ROWS = 20  # so many without a record are named

Rows = Mapping[str, Sequence[Row]]


def runs(rows: Rows, mark: str = ".") -> dict[str, Any]:
    """Groups of one program and unit: a line per row with every repetition in its order, called as
    in the tables.
    """
    groups: dict[tuple[str, str], list[list[str]]] = {}
    listed: set[tuple[str, ...]] = set()  # echoes of ping stand beside several rows
    for row in (row for table in rows.values() for row in table):
        labels = LabelFormatter.of(row, mark)
        for entry in row.table.series:
            series = row.series.get(entry.instrument)
            if series is None:
                continue
            runs_of = (row.table.name, *(point.record.path for point in series.points))
            echo = series.points[0].record.cell.workload == ECHO
            if echo and runs_of in listed:
                continue
            listed.add(runs_of)
            point = "ICMP" if echo else _point(labels, row)
            group = groups.setdefault((labels.program(entry), labels.unit), [])
            group.append(
                [point, "  ".join(labels.number(value, series.step) for value in series.values)]
            )
    return {
        "text": "Every repetition, in the order of the repetitions; tables/runs.csv holds them with full precision, "
        "start time, hosts and job.",
        "columns": ["Program", "Row", "Runs", "Unit"],
        "groups": [
            {"program": program, "unit": unit, "lines": lines}
            for (program, unit), lines in groups.items()
        ],
        "longest": max(
            (len(point) + len(values) for lines in groups.values() for point, values in lines),
            default=0,
        ),
    }


def _point(labels: LabelFormatter, row: Row) -> str:
    """``RWS pool, 1 MiB, ×2``."""
    variant = row.key.variant if row.table.variant and row.key.variant != "psync" else ""
    node = row.key.node if row.key.node != "any" else ""
    parts = (
        f"{labels.workload(row)} {variant}".strip(),
        labels.block(row),
        f"×{row.key.concurrency}",
        node,
    )
    return ", ".join(filter(None, parts))


def elsewhere() -> dict[str, Any]:
    """The same where there are too many for a page."""
    text = "tables/runs.csv holds every repetition of every node with full precision, start time, hosts and job."
    return {"text": text, "columns": [], "groups": [], "longest": 0}


def problems(results: Results) -> dict[str, Any]:
    """Cells that could not be measured, attempts that failed, and cells without a record: cell,
    what, reason.
    """
    events = [
        (record.cell, "not possible here", str(record.data["reason"])) for record in results.refused
    ]
    answered = {record.cell.id for record in results.records}
    for record in results.attempts:
        later = "failed, repeated later" if record.cell.id in answered else "failed"
        events.append(
            (record.cell, later, f"{record.data['reason']} ({record.data['context']['host']})")
        )
    failed = {record.cell.id for record in results.attempts}
    waiting = [
        (cell, "not measured", "no record yet") for cell in results.missing if cell.id not in failed
    ]
    if len({cell.node for cell in results.cells}) > fleet.MANY:
        lines = _of_nodes([*events, *waiting])
    else:
        often = Counter((_name(cell), what, reason) for cell, what, reason in events)
        lines = [
            [name, f"{what} ({n} times)" if n > 1 else what, reason]
            for (name, what, reason), n in often.items()
        ]
        numbers: dict[str, list[int]] = defaultdict(list)
        for cell, _, _ in waiting:
            numbers[f"{cell.instrument} {cell.point} {cell.node}"].append(cell.repetition)
        if len(numbers) > ROWS:  # an unfinished campaign: its tables say which
            cells = Counter(cell.instrument for cell, _, _ in waiting)
            numbers = {}
            lines += [
                [f"{name}: {plural(n, 'cell')}", "not measured", "no record yet"]
                for name, n in cells.items()
            ]
        for name, repetitions in numbers.items():
            lines.append(
                [
                    f"{name} {', '.join(map(str, sorted(repetitions)))}",
                    "not measured",
                    "no record yet",
                ]
            )
    none = "Every planned cell was measured at its first attempt."
    kept = "Failed attempts are kept with the last lines of the program below attempts/."
    return {"text": kept if lines else none, "lines": lines}


def _of_nodes(events: Sequence[tuple[Cell, str, str]]) -> list[list[str]]:
    """The same of many nodes: what befell a row on several of them is one line."""
    together: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for cell, what, reason in events:
        together[f"{cell.instrument} {cell.point}", what, reason].append(cell.node)
    return [
        [
            f"{name} on {many.who(list(dict.fromkeys(nodes)))} ({plural(len(nodes), 'cell')})",
            what,
            reason,
        ]
        for (name, what, reason), nodes in together.items()
    ]


def _name(cell: Cell) -> str:
    return f"{cell.instrument} {cell.point} {cell.node} {cell.repetition}"
