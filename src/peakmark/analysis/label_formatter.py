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
from peakmark.formatting import plural, significant, size
from peakmark.tools.tables import UNITS, Program, Table


class Topic(Enum):
    """What a sentence about a table is about, by its heading."""

    EXTREMES = "Best and worst"
    THREADS = "Threads"
    BLOCKS = "Block size"
    WORKLOADS = "Workloads"
    REFERENCE = "Reference"
    UNDECIDED = "Not told apart"
    DISAGREEMENT = "Disagreement"
    LIMIT = "Limit"
    MACHINE = "Machine"
    DOUBT = "Doubt"
    FEW = "Not claimed"
    NODES = "Nodes"
    APART = "Apart"

    def heading(self, table: Table) -> str:
        """Threads are streams in some tables."""
        return f"{noun(table).title()}s" if self is Topic.THREADS else self.value


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

    def times(self, factor: float, digits: int = 3) -> str:
        """A factor: ``1.02``."""
        return significant(factor, digits)

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
