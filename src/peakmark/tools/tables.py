"""The tables as data: which values they hold, in which unit, under which headings.

The headings are those of the reports that students and administrators write by hand; the columns
that such reports lack (interval, notes) stand to the right of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from peakmark import yamlfile
from peakmark.catalogue import SUBSYSTEMS, metrics
from peakmark.tools import references

DATA = Path(__file__).parents[1] / "data" / "tables.yaml"
SMALL_RECORD = 16 * 1024
"""A random access of up to this many bytes is an IOPS and latency row, a larger one a throughput
row: never both.
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
    """One of the tables.

    metric, unit    which values of the records it holds, and their SI unit
    factor          SI value x factor = value as shown
    quantity        ``Throughput``, as in ``pmbw Measured Throughput (GB/sec)``
    shown           unit as in the headings, empty where the quantity is its own unit (IOPS)
    variant         heading of the column for the variant, None where the table has none
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
        """The own kernel, then its references."""
        return (self.own, *self.references)

    @property
    def full_title(self) -> str:
        """``Disk: throughput``, without the resource where the title names it already."""
        resource, title = SUBSYSTEMS[self.subsystem].title, self.title
        if title.lower().startswith(resource.lower()):
            return title
        is_abbreviation = title[1:2].isupper()
        return f"{resource}: {title if is_abbreviation else title[:1].lower() + title[1:]}"

    @property
    def unsized(self) -> str:
        """What stands for a block that is not known: an area of LAT that no node has chosen yet."""
        return "auto" if self.name == "memory_latency" else ""

    def takes(self, workload: str, block: int | None) -> bool:
        """Whether a row of this workload and block belongs into this table."""
        if self.subsystem == "disk":
            small = workload in ("RR", "WR") and block is not None and block <= SMALL_RECORD
            return small != (self.metric == "throughput")
        return self.metric in metrics(self.subsystem, workload)

    def workload_label(self, workload: str) -> str:
        """``LAT-TCP`` is shown as ``TCP`` in the latency table, whose rows are protocols."""
        return workload.removeprefix("LAT-") if self.subsystem == "network" else workload

    def variant_label(self, variant: str) -> str:
        """The variant in words; ``plain`` where the network has none."""
        return variant or ("plain" if self.subsystem == "network" else "")

    def order(
        self, workload: str, variant: str, concurrency: int, block: int | None
    ) -> tuple[int | str, ...]:
        """Sort key of a row: workload, variant, concurrency, block; in memory tables the working
        set comes first.
        """
        names, variants = SUBSYSTEMS[self.subsystem].workloads, SUBSYSTEMS[self.subsystem].variants
        place = names.index(workload) if workload in names else len(names)
        rank = variants.index(variant) if variant in variants else len(variants)
        set_first = rank if self.subsystem == "memory" else 0
        return (set_first, place, workload, rank, variant, concurrency, block or 0)

    def fitted(self, values: Iterable[float]) -> Table:
        """The table in the unit in which ``values`` (SI) are printed on a page: times in the
        largest that leaves none below 1. Files keep the unit of their headings.
        """
        least, factor = min(values, default=0.0), self.factor
        if self.unit == "s" and least > 0:
            factor = next((scale for scale in (1e3, 1e6) if least * scale >= 1), 1e9)
        unit = UNITS[self.unit, factor]
        return replace(self, factor=factor, shown="" if unit == self.quantity else unit)


_TOOLS = sorted(references().values(), key=lambda tool: tool.place)
_PROGRAMS = [
    (row.subsystem, metrics(row.subsystem, row.workloads[0]), program)
    for tool, program in [(tool, Program(tool.name, tool.heading)) for tool in _TOOLS]
    for row in tool.rows
]
"""Subsystem, metrics and columns of each reference tool, in the order of the columns."""


def _table(name: str, title: str, **keys: Any) -> Table:
    """A table of what its name says: ``disk_latency``, of the disk and its metric latency."""
    subsystem, _, metric = name.partition("_")
    part, metric = SUBSYSTEMS[subsystem], metric or "rate"
    return Table(
        name=name,
        title=title,
        subsystem=subsystem,
        metric=metric,
        unit=part.units[metric],
        own=Program(part.kernel, part.heading),
        references=tuple(
            one for of, known, one in _PROGRAMS if of == subsystem and metric in known
        ),
        lower_is_better=part.units[metric] == "s",
        **{"quantity": title, **keys},
    )


TABLES = tuple(_table(name, **keys) for name, keys in yamlfile.read(DATA).items())
BY_NAME = {table.name: table for table in TABLES}


def count(concurrency: int, word: str) -> int | str:
    """A number of threads as tables show it: the number, and the word of the configuration if it
    was one.
    """
    if word:
        return f"{concurrency} ({word})" if concurrency else word
    return concurrency


def subsystem_tables(subsystem: str) -> tuple[Table, ...]:
    """The tables of one subsystem, in the order of the report."""
    return tuple(table for table in TABLES if table.subsystem == subsystem)
