"""How sentences call what a table is about: as its headings do, those of a layout where it is
printed in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import LayoutTable, name_in
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
        key, layout_table = row.key, self.layout_table
        if layout_table is None:
            return self.table.workload_label(key.workload)
        columns = [
            column
            for column in layout_table.columns
            if column.workload == key.workload
            and column.instrument == self.table.own.instrument
            and column.value
        ]
        if columns:
            return min(columns, key=lambda column: column.concurrency or 0).heading
        return layout_table.names(key.workload, key.concurrency, key.block)["workload"]

    def block(self, row: Row) -> str:
        """``16 MiB``, or ``16MB`` where the layout has it so; empty without a block."""
        key, layout_table = row.key, self.layout_table
        if key.block is None or layout_table is None:
            return size(key.block)
        text = layout_table.names(key.workload, key.concurrency, key.block)["block"]
        # A column of plain numbers has its unit in the heading; sentences and axes need it.
        if layout_table.sizes == "in B" and text == str(key.block):
            return size(key.block)
        unit = layout_table.sizes.removeprefix("in ")
        return text if unit == layout_table.sizes else f"{text} {unit}"

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
        name = name_in(self.layout_table, series.instrument) if self.layout_table else ""
        return name or series.heading

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

    def point(self, row: Row, *, variant: bool = False, node: bool = True) -> str:
        """``RR of 4 KiB, 8 threads on node1``.

        Args:
            row: of the table.
            variant: whether the variant is said, where it says something.
            node: whether the node is said, where there are several.
        """
        text = self.workload(row)
        if variant and self.table.variant and row.key.variant not in USUAL:
            text += f" {row.key.variant}"
        if row.key.block:
            text += f" of {self.block(row)}"
        place = f" on {row.key.node}" if node and row.key.node != "any" else ""
        return f"{text}, {self.threads(row)}{place}"

    def working_set(self, row: Row) -> str:
        """``in caches`` or ``in DRAM`` of a memory row, else the disk engine that is not the usual one."""
        if self.table.name == "memory_throughput":
            return WORKING_SETS.get(row.key.variant, "")
        return f"with {row.key.variant}" if row.key.variant not in USUAL else ""

    def line(self, row: Row, rows: Sequence[Row], *, block: bool = True) -> str:
        """``RWS of 1 MiB in DRAM on node1``: what rows that differ in their number of threads
        share, and in their block without ``block``. Working set and node are said where ``rows``
        differ in them.
        """
        words = [self.workload(row)]
        if block and row.key.block:
            words.append(f"of {self.block(row)}")
        if len({each.key.variant for each in rows}) > 1:
            words.append(self.working_set(row))
        if len({each.key.node for each in rows}) > 1:
            words.append(f"on {row.key.node}")
        return " ".join(filter(None, words))

    def values(self, field: str, values: Sequence[object], rows: Sequence[Row]) -> str:
        """`` at 64KB and 1MB``, `` with 2 and 4 threads``: values of one field of the rows' keys."""
        rows = [*{getattr(row.key, field): row for row in rows if field}.values()]
        rows = [row for row in rows if getattr(row.key, field) in values]
        rows.sort(key=lambda row: (row.key.block or 0, row.key.concurrency))
        if field == "concurrency":
            counts = [str(row.key.concurrency) for row in rows]
            return f" with {listed([*counts[:-1], self.threads(rows[-1])])}"
        if field == "block":
            return f" at {listed([*map(self.block, rows)])}"
        if field == "workload":
            return f" for {listed([*map(self.workload, rows)])}"
        return f" on {listed([*map(str, values)])}" if field else ""

    def place(self, row: Row, group: Sequence[Row]) -> str:
        """What makes this row in its group: ``16 MiB, 8 threads``; what is the same in all is not
        said.
        """
        parts = [self.block(row)] if len({each.key.block for each in group}) > 1 else []
        counts = {(each.key.concurrency, each.key.word) for each in group}
        return ", ".join([*parts, self.threads(row)] if len(counts) > 1 or not parts else parts)


def repeated(counts: Iterable[int]) -> str:
    """``n = 3``, ``n = 3 to 6``; of at least one number of repetitions."""
    least, *_, most = sorted([*counts] * 2)
    return f"n = {least}" if least == most else f"n = {least} to {most}"


def noun(table: Table) -> str:
    """What the concurrency of a table counts: ``thread`` or ``stream``."""
    return SUBSYSTEMS[table.subsystem].counted
