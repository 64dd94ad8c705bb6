"""Which figures a table has and which rows each shows: the usual ones, or those that the layout
asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peakmark.analysis import fleet, shapes
from peakmark.analysis.row import Row, Series
from peakmark.catalogue import SHAPES
from peakmark.config.layouts import Drawing, Layout
from peakmark.figures import roofline
from peakmark.tables.columns import has_percentiles
from peakmark.tools.tables import Table


@dataclass(frozen=True)
class Drawn:
    """A figure's name and the measured rows it shows; ``drawing`` is what the layout says of it,
    None for a usual one.
    """

    name: str
    rows: tuple[Row, ...]
    drawing: Drawing | None = None


def figures_of(
    table: Table, rows: Mapping[str, Sequence[Row]], layout: Layout | None = None
) -> list[Drawn]:
    """The table's figures. DRAM and caches are figures of their own, and so are workloads that a
    layout prints in tables of their own; a layout that names figures of the table has those and
    no others. One without rows is there and empty.
    """
    measured = [row for row in rows[table.name] if row.series]
    asked = (
        [drawing for drawing in layout.drawings if drawing.table.name == table.name]
        if layout
        else []
    )
    if asked:
        return [
            Drawn(drawing.name, tuple(row for row in measured if _fits(drawing, row)), drawing)
            for drawing in asked
        ]
    if table.metric in SHAPES.values():
        drawn = [Drawn(table.name, tuple(measured) if _is_drawn(table, measured) else ())]
        if table.name == roofline.LADDER:
            drawn.append(Drawn(roofline.NAME, tuple(roofline.roofs(rows))))
        return drawn
    if table.name == "memory_throughput":
        return [
            Drawn(
                f"{table.name}_pool", tuple(row for row in measured if row.key.variant != "block")
            ),
            Drawn(
                f"{table.name}_block", tuple(row for row in measured if row.key.variant == "block")
            ),
        ]
    alone = [row.layout_table.workloads if row.layout_table else () for row in measured]
    if len(set(alone)) > 1 and all(len(workloads) == 1 for workloads in alone):
        names = dict.fromkeys(row.key.workload for row in measured)
        return [
            Drawn(
                f"{table.name}_{name}", tuple(row for row in measured if row.key.workload == name)
            )
            for name in names
        ] + _percentiles(table, measured)
    return [Drawn(table.name, tuple(measured)), *_percentiles(table, measured)]


def _is_drawn(table: Table, rows: Sequence[Row]) -> bool:
    """Whether a matrix has more than one number; of many nodes, dots are drawn in its place."""
    is_many = len({row.key.node for row in rows}) > fleet.MANY
    return table.metric != "core_to_core" or is_many or bool(shapes.matrices(rows))


def _percentiles(table: Table, rows: Sequence[Row]) -> list[Drawn]:
    """The figure of the percentiles of a table of latencies; one of many nodes has no rows."""
    shown = tuple(row for row in rows if row.own and row.own.percentile("p50") is not None)
    if len({row.key.node for row in shown}) > fleet.MANY:
        shown = ()
    return [Drawn(f"{table.name}_percentiles", shown)] if has_percentiles(table) else []


def _fits(drawing: Drawing, row: Row) -> bool:
    """Whether the row belongs into the figure and has what the figure shows."""
    if not drawing.takes(row.key.workload, row.key.variant):
        return False
    if drawing.kind == "panels":
        return True
    return row.own is not None and value_of(drawing, row, row.own) is not None


def value_of(drawing: Drawing, row: Row, series: Series) -> float | None:
    """What the figure shows of one instrument: in the row's unit or in percent, None where it is
    not known.
    """
    if drawing.value == "efficiency":
        return None if series.efficiency is None else 100 * series.efficiency
    if drawing.value == "deviation":
        return None if series.summary.stdev is None else series.summary.stdev * row.table.factor
    return series.centre * row.table.factor


def without_rows(drawing: Drawing) -> str:
    """Why a figure of the layout is not there, in a sentence."""
    reason = {
        "efficiency": "no row has a known limit",
        "deviation": "no row was measured more than once",
        "measured": "nothing was measured for it",
    }[drawing.value]
    return f"No figure “{drawing.title}”: {reason}"
