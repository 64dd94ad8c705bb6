"""What texts call the rows of a table: as its headings do, those of a layout where one prints it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import LayoutTable, name_in
from peakmark.formatting import plural, significant, size
from peakmark.tools.tables import BY_NAME, UNITS, Program, Table

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""
WORKING_SETS = {"block": "in caches", "pool": "in DRAM"}
"""Variant of a memory row -> what sentences call it."""
USUAL = ("", "psync")
"""Variants that need no words, as they are the default."""


@dataclass(frozen=True)
class Labels:
    """Names for the rows of a table; if a layout prints it, those of its ``layout_table``."""

    table: Table
    layout_table: LayoutTable | None = None

    @classmethod
    def of(cls, row: Line) -> Labels:
        """Return the names for the table of a row, without a layout."""
        return cls(BY_NAME[row.table])

    def workload(self, row: Line) -> str:
        """Return ``RWS``, or what the layout writes instead.

        A layout may have a column for each workload: then it is the heading of the column, of
        several the one of the fewest threads. Else it is the layout's word for the workload.
        """
        layout_table = self.layout_table
        if layout_table is None:
            return self.table.workload_label(row.workload)
        headings: dict[int, str] = {}
        for column in layout_table.columns:
            is_own = column.instrument == self.table.own.instrument
            if column.workload == row.workload and is_own and column.value:
                headings.setdefault(column.concurrency or 0, column.heading)
        if headings:
            return headings[min(headings)]
        return layout_table.names(row.workload, row.concurrency, row.block_bytes)["workload"]

    def block(self, row: Line) -> str:
        """Return ``16 MiB``, or ``16MB`` where the layout has it so; empty without a block."""
        layout_table = self.layout_table
        if row.block_bytes is None or layout_table is None:
            return size(row.block_bytes)
        text = layout_table.names(row.workload, row.concurrency, row.block_bytes)["block"]
        # A column of plain numbers has its unit in the heading; sentences and axes need it.
        if layout_table.sizes == "in B" and text == str(row.block_bytes):
            return size(row.block_bytes)
        unit = layout_table.sizes.removeprefix("in ")
        return text if unit == layout_table.sizes else f"{text} {unit}"

    def many(self, count: int) -> str:
        """Return ``1 thread``, ``8 streams``."""
        return plural(count, self.noun)

    @property
    def noun(self) -> str:
        """Return what the concurrency counts: ``thread`` or ``stream``."""
        return SUBSYSTEMS[self.table.subsystem].counted

    def threads(self, row: Line) -> str:
        """Return ``8 threads``, or ``8 threads (socket)`` where that was asked for."""
        if row.concurrency_word and not row.concurrency:
            return str(row.concurrency_word)
        counted = self.many(row.concurrency)
        return f"{counted} ({row.concurrency_word})" if row.concurrency_word else counted

    def program(self, program: Program) -> str:
        """Return the program as the headings call it.

        That is ``FileIO`` of ``FileIO Measured Throughput (MB/sec)``.
        """
        name = name_in(self.layout_table, program.instrument) if self.layout_table else ""
        return name or program.heading

    @property
    def factor(self) -> float:
        """Return the number of SI units in one ``unit``."""
        return self._scale[0]

    @property
    def unit(self) -> str:
        """Return the unit as sentences write it: ``GB/s``."""
        return self._scale[1]

    @property
    def _scale(self) -> tuple[float, str]:
        table = self.layout_table or self.table
        unit = UNITS.get((self.table.unit, table.factor))
        if unit is None:
            return self.table.factor, self.table.shown
        return table.factor, unit

    def number(self, value: float, step: float = 0.0) -> str:
        """Return a value in SI units in ``unit``, without it.

        Args:
            value: in SI units.
            step: smallest difference that the instrument tells, in SI units.
        """
        return significant(value * self.factor, step=step * self.factor)

    def quantity(self, value: float) -> str:
        """Return a value in SI units with the unit of the table: ``38.4 GigaOPS``."""
        return f"{self.number(value)} {self.unit}"

    def point(self, row: Line, *, variant: bool = False, node: bool = True) -> str:
        """Return ``RR of 4 KiB, 8 threads on node1``.

        Args:
            row: of the table.
            variant: say the variant, where it says something.
            node: say the node, where there are several.
        """
        text = self.workload(row)
        if variant and self.table.variant and row.variant not in USUAL:
            text += f" {row.variant}"
        if row.block_bytes:
            text += f" of {self.block(row)}"
        place = f" on {row.node}" if node and row.node != "any" else ""
        return f"{text}, {self.threads(row)}{place}"

    def working_set(self, row: Line) -> str:
        """Return what a row walks or uses, where that needs words.

        For memory ``in caches`` or ``in DRAM``; for a disk the engine, if it is not the usual one.
        """
        if self.table.name == "memory_throughput":
            return WORKING_SETS.get(row.variant, "")
        return f"with {row.variant}" if row.variant not in USUAL else ""

    def place(self, row: Line, group: Sequence[Line]) -> str:
        """Return what tells a row from others of its group: ``16 MiB, 8 threads``."""
        blocks = {each.block_bytes for each in group}
        counts = {(each.concurrency, each.concurrency_word) for each in group}
        parts = [self.block(row)] if len(blocks) > 1 else []
        if len(counts) > 1 or not parts:
            parts.append(self.threads(row))
        return ", ".join(parts)

    def line(self, row: Line, rows: Sequence[Line], *, block: bool = True) -> str:
        """Return the name of a row without its number of threads: ``RWS of 1 MiB in DRAM``.

        Working set and node are named where ``rows`` differ in them.

        Args:
            row: of the table.
            rows: from which it is told apart.
            block: say the block.
        """
        words = [self.workload(row)]
        if block and row.block_bytes:
            words.append(f"of {self.block(row)}")
        if len({each.variant for each in rows}) > 1:
            words.append(self.working_set(row))
        if len({each.node for each in rows}) > 1:
            words.append(f"on {row.node}")
        return " ".join(filter(None, words))
