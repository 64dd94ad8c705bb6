"""How sentences call what a table is about: as its headings do, those of a layout where it is
printed in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import LayoutTable, name_in, written
from peakmark.formatting import listed, plural, significant, size
from peakmark.tools.tables import UNITS, Program, Table


class Topic(Enum):
    """What a sentence about a table is about, by its heading."""

    EXTREMES = "Best and worst"
    THREADS = "Threads"
    BLOCKS = "Block size"
    WORKLOADS = "Workloads"
    REFERENCE = "Reference"
    LIMIT = "Limit"
    MACHINE = "Machine"
    NODES = "Nodes"
    APART = "Apart"
    LINKS = "Links"

    def heading(self, table: Table) -> str:
        """Threads are streams in some tables."""
        return f"{noun(table).title()}s" if self is Topic.THREADS else self.value


WORKING_SETS = {"block": "in caches", "pool": "in DRAM"}
"""Variants of memory rows as sentences call them."""
USUAL = ("", "psync")
"""Variants that need no words."""


@dataclass(frozen=True)
class LabelFormatter:
    """Names for the rows of ``table``; those of ``layout_table`` where a layout prints it."""

    table: Table
    layout_table: LayoutTable | None = None

    @classmethod
    def of(cls, row: Row) -> LabelFormatter:
        """Names for one row, as the layout that prints it has them."""
        return cls(row.table, row.layout_table)

    def workload(self, row: Row) -> str:
        """``RWS``, or what the layout writes instead: a word of its own, or the heading of the
        workload's columns.
        """
        if self.layout_table is None:
            return self.table.workload_label(row.key.workload)
        own = [
            column
            for column in self.layout_table.columns
            if column.workload == row.key.workload
            and column.instrument == self.table.own.instrument
            and column.value
        ]
        if own:
            return min(own, key=lambda column: column.concurrency or 0).heading
        return self.layout_table.names(row.key.workload, row.key.concurrency, row.key.block)[
            "workload"
        ]

    def block(self, row: Row) -> str:
        """``16 MiB``, or ``16MB`` where the layout has it so; empty without a block."""
        if row.key.block is None:
            return ""
        if self.layout_table is None:
            return size(row.key.block)
        if self.layout_table.sizes.startswith("in "):
            # A column of plain numbers has its unit in the heading; sentences and axes need it, and
            # fewer digits.
            called = self.layout_table.labels.get((row.key.workload, row.key.block), (None, None))[
                1
            ]
            if called is None and self.layout_table.sizes == "in B":
                return size(row.key.block)
            return f"{called or written(row.key.block, self.layout_table.sizes)} {self.layout_table.sizes.removeprefix('in ')}"
        return self.layout_table.names(row.key.workload, row.key.concurrency, row.key.block)[
            "block"
        ]

    def many(self, count: int) -> str:
        """``1 thread``, ``8 streams``."""
        return plural(count, noun(self.table))

    def threads(self, row: Row) -> str:
        """``8 threads``, or ``8 threads (socket)`` where that was asked for."""
        if row.key.word and not row.key.concurrency:
            return row.key.word
        return self.many(row.key.concurrency) + (f" ({row.key.word})" if row.key.word else "")

    def program(self, series: Program) -> str:
        """The program as the headings call it: ``FileIO`` of ``FileIO Measured Throughput
        (MB/sec)``.
        """
        return (
            name_in(self.layout_table, series.instrument) if self.layout_table else ""
        ) or series.heading

    @property
    def _scale(self) -> tuple[float, str]:
        """Factor from SI, and the unit as sentences write it."""
        factor = self.table.factor if self.layout_table is None else self.layout_table.factor
        unit = UNITS.get((self.table.unit, factor))
        return (factor, unit) if unit else (self.table.factor, self.table.shown)

    @property
    def unit(self) -> str:
        """``GB/s``."""
        return self._scale[1]

    def number(self, value: float, step: float = 0.0) -> str:
        """A value in SI units in ``unit``, without it; ``step`` is the smallest difference that the
        instrument tells.
        """
        factor, _ = self._scale
        return significant(value * factor, step=step * factor)

    def quantity(self, value: float) -> str:
        """A value in SI units with the unit of the table: ``38.4 GigaOPS``."""
        return f"{self.number(value)} {self.unit}"

    def row(self, row: Row, on_all: bool = False) -> str:
        """``RWS pool of 4 KiB, 8 threads``: the point, with the variant where it says something;
        ``on_all``: of all nodes.
        """
        variant = (
            f" {row.key.variant}"
            if self.table.variant and row.key.variant not in ("", "psync")
            else ""
        )
        return self.point_on_all(row, variant) if on_all else self.point(row, variant)

    def point(self, row: Row, variant: str = "") -> str:
        """``RR of 4 KiB, 8 threads``, with the node where there are several."""
        node = f" on {row.key.node}" if row.key.node != "any" else ""
        return f"{self.point_on_all(row, variant)}{node}"

    def point_on_all(self, row: Row, variant: str = "") -> str:
        """The same without the node."""
        block = f" of {self.block(row)}" if row.key.block else ""
        return f"{self.workload(row)}{variant}{block}, {self.threads(row)}"

    def working_set(self, row: Row) -> str:
        """``in caches`` or ``in DRAM`` of a memory row, else the disk engine that is not the usual one."""
        if self.table.name == "memory_throughput":
            return WORKING_SETS.get(row.key.variant, "")
        return f"with {row.key.variant}" if row.key.variant not in USUAL else ""

    def workload_in_set(self, row: Row, rows: Sequence[Row]) -> str:
        """``RWS in DRAM on node1``: what tells groups of rows apart, as far as ``rows`` differ."""
        return self.workload(row) + self._in_set(row, rows)

    def _in_set(self, row: Row, rows: Sequence[Row]) -> str:
        words = [""]
        if len({each.key.variant for each in rows}) > 1:
            words += filter(None, [self.working_set(row)])
        if len({each.key.node for each in rows}) > 1:
            words.append(f"on {row.key.node}")
        return " ".join(words)

    def line(self, row: Row, rows: Sequence[Row]) -> str:
        """``RWS of 1 MiB in DRAM``: what rows that differ in their number of threads share."""
        block = f" of {self.block(row)}" if row.key.block else ""
        return f"{self.workload(row)}{block}{self._in_set(row, rows)}"

    def values(self, field: str, values: Sequence[object], rows: Sequence[Row]) -> str:
        """`` at 64KB and 1MB``, `` with 2 and 4 threads``: values of one field of the rows' keys."""
        rows = sorted({getattr(row.key, field): row for row in rows if field}.values(), key=_order)
        rows = [row for row in rows if getattr(row.key, field) in values]
        if field == "concurrency":
            counts = listed(
                [str(row.key.concurrency) for row in rows[:-1]] + [self.threads(rows[-1])]
            )
            return f" with {counts}"
        if field == "block":
            return f" at {listed([self.block(row) for row in rows])}"
        if field == "workload":
            return f" for {listed([self.workload(row) for row in rows])}"
        return f" on {listed([str(value) for value in values])}" if field else ""

    def place(self, row: Row, group: Sequence[Row]) -> str:
        """What makes this row in its group: ``16 MiB, 8 threads``; what is the same in all is not
        said.
        """
        parts = []
        if len({member.key.block for member in group}) > 1:
            parts.append(self.block(row))
        if len({(member.key.concurrency, member.key.word) for member in group}) > 1 or not parts:
            parts.append(self.threads(row))
        return ", ".join(parts)


def _order(row: Row) -> tuple[int, int]:
    return row.key.block or 0, row.key.concurrency


def repeated(counts: Iterable[int]) -> str:
    """``n = 3``, ``n = 3 to 6``; of at least one number of repetitions."""
    least, *_, most = sorted([*counts] * 2)
    return f"n = {least}" if least == most else f"n = {least} to {most}"


def noun(table: Table) -> str:
    """What the concurrency of a table counts: ``thread`` or ``stream``."""
    return SUBSYSTEMS[table.subsystem].counted


def quantity(table: Table, value: float) -> str:
    """A value in SI units as text in the table's unit: ``38.4 GigaOPS``."""
    return LabelFormatter(table).quantity(value)
