"""The tables as data: their values, units and headings.

The headings are those of the reports that students and administrators write by hand. Columns that
these reports lack (interval, notes) are on the right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from peakmark import yamlfile
from peakmark.catalogue import SUBSYSTEMS, metrics
from peakmark.tools import references

DATA = Path(__file__).parents[1] / "data" / "tables.yaml"
SMALL_RECORD = 16 * 1024
"""Largest record of a random access, in bytes, whose row is in the IOPS and latency tables; a larger
one is in the throughput table.
"""
UNITS = {
    ("B/s", 1e-6): "MB/s",
    ("B/s", 1e-9): "GB/s",
    ("bit/s", 1e-6): "Mb/s",
    ("bit/s", 1e-9): "Gb/s",
    ("s", 1e3): "ms",
    ("s", 1e6): "µs",
    ("s", 1e9): "ns",
    ("op/s", 1e-9): "GigaOPS",
    ("1/s", 1.0): "IOPS",
}
"""(SI unit, factor) -> the unit that is printed."""


@dataclass(frozen=True)
class Program:
    """One instrument and the name that its columns carry."""

    instrument: str
    heading: str


@dataclass(frozen=True)
class Table:
    """One table of measured values.

    metric, unit    metric of its values in the records, and their SI unit
    factor          SI value x factor = value as shown
    quantity        ``Throughput``, as in ``pmbw Measured Throughput (GB/sec)``
    shown           unit as in the headings, empty where the quantity is its own unit (IOPS)
    own             peakmark's kernel
    first           heading of the column for the workload
    block           heading of the column for the block, None without such a column
    variant         heading of the column for the variant, None without such a column
    remark          what a reader must know to read the rows; shown below the table
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

    @cached_property
    def series(self) -> tuple[Program, ...]:
        """Return peakmark's kernel, then its references."""
        return (self.own, *self.references)

    @property
    def full_title(self) -> str:
        """Return ``Disk: throughput``, without the resource where the title names it already."""
        resource, title = SUBSYSTEMS[self.subsystem].title, self.title
        if title.lower().startswith(resource.lower()):
            return title
        is_abbreviation = title[1:2].isupper()
        if not is_abbreviation:
            title = title[:1].lower() + title[1:]
        return f"{resource}: {title}"

    @property
    def unsized(self) -> str:
        """Return the text of an unknown block: the area of LAT before a node has chosen it."""
        return "auto" if self.name == "memory_latency" else ""

    def takes(self, workload: str, block: int | None) -> bool:
        """Return whether a row of this workload and block belongs into this table."""
        if self.subsystem == "disk":
            small = workload in ("RR", "WR") and block is not None and block <= SMALL_RECORD
            return small != (self.metric == "throughput")
        return self.metric in metrics(self.subsystem, workload)

    def workload_label(self, workload: str) -> str:
        """Return the workload as shown: ``TCP`` for ``LAT-TCP``, as rows of latency are protocols."""
        return workload.removeprefix("LAT-")

    def variant_label(self, variant: str) -> str:
        """Return the variant in words; ``plain`` for a row of the network without one."""
        if not variant and self.subsystem == "network":
            return "plain"
        return variant

    def order(
        self, workload: str, variant: str, concurrency: int, block: int | None
    ) -> tuple[int | str, ...]:
        """Return the sort key of a row: workload, variant, concurrency, block; memory tables sort by
        working set first.
        """
        part = SUBSYSTEMS[self.subsystem]
        place = [*part.workloads, workload].index(workload)
        rank = [*part.variants, variant].index(variant)
        order = (place, workload, rank, variant, concurrency, block or 0)
        return (rank, *order) if self.subsystem == "memory" else order

    def fitted(self, values: Iterable[float]) -> Table:
        """Return the table in the unit in which ``values`` (SI) are printed on a page.

        Times are in the largest unit in which none is below 1. Files keep the unit of their
        headings.
        """
        least, factor = min(values, default=0.0), self.factor
        if self.unit == "s" and least > 0:
            factor = next((scale for scale in (1e3, 1e6) if least * scale >= 1), 1e9)
        shown = UNITS[self.unit, factor]
        if shown == self.quantity:
            shown = ""
        return replace(self, factor=factor, shown=shown)


def _references(subsystem: str, metric: str) -> Iterator[Program]:
    """Yield the reference tools that measure a metric, in the order of their columns."""
    for tool in sorted(references().values(), key=attrgetter("place")):
        for row in tool.rows:
            if row.subsystem == subsystem and metric in metrics(subsystem, row.workloads[0]):
                yield Program(tool.name, tool.heading)


def _table(name: str, title: str, **keys: Any) -> Table:
    """Return the table that its name describes: ``disk_latency`` shows latencies of the disk."""
    subsystem, _, metric = name.partition("_")
    part, metric = SUBSYSTEMS[subsystem], metric or "rate"
    return Table(
        name=name,
        title=title,
        subsystem=subsystem,
        metric=metric,
        unit=part.units[metric],
        own=Program(part.kernel, part.heading),
        references=tuple(_references(subsystem, metric)),
        lower_is_better=part.units[metric] == "s",
        **{"quantity": title, **keys},
    )


TABLES = tuple(_table(name, **keys) for name, keys in yamlfile.read(DATA).items())
BY_NAME = {table.name: table for table in TABLES}


def count(concurrency: int, word: str) -> int | str:
    """Return a number of threads as tables show it: ``8 (cores)``.

    Args:
        concurrency: the number, 0 where it is not known yet.
        word: the word of the configuration, empty where that has a number.
    """
    if not word:
        return concurrency
    return f"{concurrency} ({word})" if concurrency else word


def subsystem_tables(subsystem: str) -> tuple[Table, ...]:
    """Return the tables of one subsystem, in the order of the report."""
    return tuple(table for table in TABLES if table.subsystem == subsystem)
