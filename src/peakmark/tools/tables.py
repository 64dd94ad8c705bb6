"""Definitions of the tables: their values, units and headings.

The headings are those that students and administrators use in handwritten reports. Columns that such
reports lack (interval, notes) are on the right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from peakmark import yamlfile
from peakmark.catalogue import (
    DISK_METRICS,
    KERNELS,
    RANKS_ON_NODES,
    SHAPES,
    SUBSYSTEMS,
    disk_variant,
    metrics,
    nodes_of_ranks,
)
from peakmark.cell import Cell
from peakmark.formatting import plural
from peakmark.messages import words
from peakmark.tools import references

DATA = Path(__file__).parents[1] / "data" / "tables.yaml"
SMALL_RECORD = 16 * 1024
"""Largest record of random accesses, in bytes, in the IOPS and latency tables.

Rows with larger records are in the throughput table.
"""
UNITS = {
    ("B/s", 1e-6): "MB/s",
    ("B/s", 1e-9): "GB/s",
    ("bit/s", 1e-6): "Mb/s",
    ("bit/s", 1e-9): "Gb/s",
    ("s", 1e3): "ms",
    ("s", 1e6): "µs",
    ("s", 1e9): "ns",
    ("op/s", 1e-9): "GOP/s",
    ("op/s", 1e-12): "TOP/s",
    ("1/s", 1.0): "IOPS",
    ("message/s", 1.0): "messages/s",
    ("message/s", 1e-3): "k messages/s",
    ("message/s", 1e-6): "M messages/s",
}
"""(SI unit, factor from the SI value to the printed value) -> printed unit."""


@dataclass(frozen=True)
class Program:
    """An instrument, and its name in the headings of columns."""

    instrument: str
    heading: str


@dataclass(frozen=True)
class Table:
    """One table of measured values.

    Attributes:
        name: name of the table, such as ``memory_latency``.
        title: heading of the table, without the resource.
        subsystem: subsystem of the rows.
        metric: metric of the values in the records.
        unit: SI unit of the values in the records.
        factor: factor from the SI value to the printed value.
        quantity: quantity in headings: ``Throughput`` in ``pmbw Measured Throughput (GB/sec)``.
        shown: printed unit; empty if the quantity is also the unit (IOPS).
        own: peakmark's kernel that measures the table's rows; for HPL over nodes the program itself.
        references: reference tools, in the order of their columns.
        first: heading of the first column, which has the workload.
        block: heading of the column for the block; None if there is no such column.
        variant: heading of the column for the variant; None if there is no such column.
        lower_is_better: whether lower values are better.
        remark: explanation that is printed below the table.
        is_plain: whether workloads are printed with their names in ``messages.yaml``, such as INT8 for QP.
    """

    name: str
    title: str
    subsystem: str
    metric: str
    unit: str
    factor: float
    quantity: str
    shown: str
    own: Program
    references: tuple[Program, ...]
    first: str = "Workload"
    block: str | None = "Block Size"
    variant: str | None = None
    lower_is_better: bool = False
    remark: str = ""
    is_plain: bool = False

    @cached_property
    def series(self) -> tuple[Program, ...]:
        """Return peakmark's kernel, followed by the reference tools."""
        return (self.own, *self.references)

    @property
    def counted(self) -> str:
        """Return the noun for the concurrency. HPL over nodes counts the cores of a node, not its ranks."""
        # Only the table of HPL over nodes has no kernel of peakmark as its own program.
        if self.own.instrument not in KERNELS.values():
            return "core"
        return SUBSYSTEMS[self.subsystem].counted

    @property
    def full_title(self) -> str:
        """Return the title with its resource, such as ``Disk: throughput``.

        A title that already begins with the resource is returned unchanged.
        """
        resource, title = SUBSYSTEMS[self.subsystem].title, self.title
        if title.lower().startswith(resource.lower()):
            return title
        is_abbreviation = title[1:2].isupper()  # such as IOPS, which stays in capitals
        if not is_abbreviation:
            title = title[:1].lower() + title[1:]
        return f"{resource}: {title}"

    @property
    def unsized(self) -> str:
        """Return the text for an unknown block: empty, but ``auto`` in the table of LAT.

        The block of LAT is the size of its area, which each node chooses when it measures.
        """
        return "auto" if self.name == "memory_latency" else ""

    def takes(self, workload: str, block: int | None) -> bool:
        """Return whether a row with this workload and block belongs to this table."""
        # Random accesses to small records are in the IOPS and latency tables, other records in the throughput table.
        # META, the only disk workload of SHAPES, has a separate table.
        if self.subsystem == "disk" and workload not in SHAPES:
            is_small = workload in ("RR", "WR") and block is not None and block <= SMALL_RECORD
            if self.metric == "throughput":
                return not is_small
            return is_small and self.metric in DISK_METRICS
        return self.metric in metrics(self.subsystem, workload)

    def workload_label(self, workload: str) -> str:
        """Return the printed workload: with ``is_plain``, its name in ``messages.yaml``, such as INT8 for QP.

        Otherwise it is ``TCP`` for ``LAT-TCP``: all rows of the table with LAT-TCP are latencies, and differ only in the
        protocol.
        """
        if self.is_plain:
            return words(f"workload {workload}")
        return workload.removeprefix("LAT-")

    def variant_label(self, variant: str) -> str:
        """Return the printed variant, such as ``psync, 4 nodes``; ``plain`` for a network row without one."""
        if not variant and self.subsystem == "network":
            return "plain"
        if self.subsystem == "mpi":
            if RANKS_ON_NODES.fullmatch(variant):
                return plural(nodes_of_ranks(variant), "node")
            return variant.replace("-", " ")
        base, nodes, one_file = disk_variant(variant)
        if not nodes:
            return variant
        parts = [base, plural(nodes, "node")]
        if one_file:
            parts.append("one file")
        return ", ".join(filter(None, parts))

    def order(
        self, workload: str, variant: str, concurrency: int, block: int | None
    ) -> tuple[int | str, ...]:
        """Return the sort key of a row: workload, variant, number of nodes, concurrency, block.

        Workloads and variants that the catalogue lacks come after all others, by name. Memory tables sort by
        variant first, because the variant is the working set.
        """
        part = SUBSYSTEMS[self.subsystem]
        # A workload that the catalogue lacks is found only at the end of the list.
        rank = [*part.workloads, workload].index(workload)
        base, nodes, one_file = disk_variant(variant)
        # The variant of an MPI row names only its nodes, such as ``4-nodes``. All of these rank as the default variant.
        if RANKS_ON_NODES.fullmatch(variant):
            base, nodes = part.default, nodes_of_ranks(variant)
        variant_rank = [*part.variants, base].index(base)
        order = (rank, workload, variant_rank, base, one_file, nodes, concurrency, block or 0)
        return (variant_rank, *order) if self.subsystem == "memory" else order

    def fitted(self, values: Iterable[float]) -> Table:
        """Return the table with the best unit for printing ``values`` (SI) on a page.

        This is the largest unit in which no value is below 1; if a value is below 1 in all units, the smallest unit.
        CSV files keep the unit of their headings.
        """
        least, factor = min(values, default=0.0), self.factor
        if least > 0:  # otherwise there is no value, or one that no unit makes readable
            scales = sorted(scale for unit, scale in UNITS if unit == self.unit)
            factor = next((scale for scale in scales if least * scale >= 1), scales[-1])
        shown = UNITS[self.unit, factor]
        if shown == self.quantity:
            shown = ""  # headings then state IOPS only once
        return replace(self, factor=factor, shown=shown)


def _references(subsystem: str, metric: str) -> Iterator[Program]:
    """Yield the reference tools that measure a metric, in the order of their columns.

    No tool comes twice, because only one of its ``rows`` has a given metric.
    """
    for tool in sorted(references().values(), key=attrgetter("place")):
        for row in tool.rows:
            measured = [metrics(row.subsystem, workload) for workload in row.workloads]
            if row.subsystem == subsystem and any(metric in each for each in measured):
                yield Program(tool.name, tool.heading)


def _table(name: str, title: str, own: str = "", **keys: Any) -> Table:
    """Return a table. Its name states subsystem and metric, as in ``disk_latency``.

    The names ``cpu`` and ``gpu`` state no metric, which is then ``rate``.

    Args:
        name: name of the table.
        title: title of the table, and quantity in its headings unless ``keys`` has another.
        own: reference tool that fills a table which no kernel fills; empty for the subsystem's kernel.
        keys: further attributes of the table.
    """
    subsystem, _, metric = name.partition("_")
    part, metric = SUBSYSTEMS[subsystem], metric or "rate"
    return Table(
        name=name,
        title=title,
        subsystem=subsystem,
        metric=metric,
        unit=part.units[metric],
        own=Program(own, references()[own].heading) if own else Program(part.kernel, part.heading),
        references=tuple(_references(subsystem, metric)),
        lower_is_better=part.units[metric] == "s",
        **{"quantity": title, **keys},
    )


# In the order of the report.
TABLES = tuple(_table(name, **keys) for name, keys in yamlfile.read(DATA).items())
BY_NAME = {table.name: table for table in TABLES}


def tables_of(cells: Iterable[Cell]) -> list[str]:
    """Return the names of the tables that cells of peakmark's kernels fill, in the order of the report."""
    measured = {(cell.instrument, cell.workload, cell.block) for cell in cells}
    names = []
    for table in TABLES:
        taken = [
            table.takes(workload, block)
            for instrument, workload, block in measured
            if instrument == table.own.instrument
        ]
        if any(taken):
            names.append(table.name)
    return names


def count(concurrency: int, word: str) -> int | str:
    """Return a number of threads as tables print it, such as ``8 (cores)``; only the word if the number is unknown.

    Args:
        concurrency: number of threads; 0 if it is not known yet.
        word: word in the configuration; empty if the configuration has a number.
    """
    if not word:
        return concurrency
    return f"{concurrency} ({word})" if concurrency else word


def subsystem_tables(subsystem: str) -> tuple[Table, ...]:
    """Return the tables of one subsystem, in the order of the report."""
    return tuple(table for table in TABLES if table.subsystem == subsystem)
