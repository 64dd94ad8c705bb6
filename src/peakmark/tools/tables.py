"""The tables as data: which values they hold, in which unit, under which headings.

The headings are those of the reports that students and administrators write by hand; the columns
that such reports lack (interval, notes) stand to the right of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from peakmark.catalogue import SUBSYSTEMS, metrics
from peakmark.tools import references

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

    @property
    def series(self) -> tuple[Program, ...]:
        """The own kernel, then its references."""
        return (self.own, *self.references)

    def _with_unit(self, heading: str) -> str:
        return f"{heading} ({self.shown})" if self.shown else heading

    def measured_heading(self, series: Program) -> str:
        """``pmbw Measured Throughput (GB/sec)``."""
        return self._with_unit(f"{series.heading} Measured {self.quantity}")

    @property
    def measured_group(self) -> str:
        """``Measured Throughput (GB/sec)``: what the measured columns have in common."""
        return self._with_unit(f"Measured {self.quantity}")

    @property
    def published_group(self) -> str:
        """``Published Throughput (GB/sec)``: what the columns of published results have in common."""
        return self._with_unit(f"Published {self.quantity}")

    @property
    def theoretical_heading(self) -> str:
        """``Theoretical Throughput (GB/sec)``."""
        return self._with_unit(f"Theoretical {self.quantity}")

    @property
    def bound_heading(self) -> str:
        """``Bound (GB/sec)``."""
        return self._with_unit("Bound")

    @staticmethod
    def efficiency_heading(series: Program) -> str:
        """``pmbw Efficiency (%)``."""
        return f"{series.heading} Efficiency (%)"

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


def _table(name: str, title: str, factor: float, shown: str, remark: str, **more: Any) -> Table:
    """A table of what its name says: ``disk_latency``, of the disk and its metric latency."""
    subsystem, _, metric = name.partition("_")
    part, metric = SUBSYSTEMS[subsystem], metric or "rate"
    tools = [
        tool
        for tool in sorted(references().values(), key=lambda tool: tool.place)
        for row in tool.rows
        if row.subsystem == subsystem and metric in metrics(subsystem, row.workloads[0])
    ]
    return Table(
        name=name,
        title=title,
        subsystem=subsystem,
        metric=metric,
        unit=part.units[metric],
        factor=factor,
        quantity=more.pop("quantity", title),
        shown=shown,
        own=Program(part.kernel, part.heading),
        references=tuple(Program(tool.name, tool.heading) for tool in tools),
        lower_is_better=part.units[metric] == "s",
        remark=remark,
        **more,
    )


TABLES = (
    _table(
        "cpu", "Operations per second", 1e-9, "GigaOPS",
        "QP, HP, SP and DP are 8-, 16- and 32-bit integers and 64-bit floating point; one operation is one add or one "
        "multiply on one lane, a fused multiply-add counts as two.",
        quantity="Ops/Sec", block=None,
    ),
    _table(
        "memory_throughput", "Throughput", 1e-9, "GB/sec",
        "Bytes read plus bytes written. Working set “pool” walks an area larger than the last-level cache and measures "
        "DRAM; “block” uses one block again and again and measures the cache that holds it.",
        variant="Working Set",
    ),
    _table(
        "memory_latency", "Latency", 1e6, "us",
        "Time of one dependent load; the block size is the area that the pointer chase walks.",
    ),
    _table(
        "memory_core_to_core", "Core to core", 1e9, "ns",
        "Time in which a core sees a cache line that another core has written: half a round trip, the median of 300 for "
        "each pair and of all pairs that lie equally far apart.",
        quantity="Latency", block=None, variant="Distance",
    ),
    _table(
        "memory_numa_latency", "NUMA latency", 1e9, "ns",
        "Time of one dependent load of a core of one NUMA node from the memory of another; the median of the pairs of nodes "
        "that lie equally far apart.",
        quantity="Latency", block=None, variant="Distance",
    ),
    _table(
        "memory_numa_throughput", "NUMA throughput", 1e-9, "GB/sec",
        "Bytes that the cores of one NUMA node read from, or write to, the memory of another, while all other nodes are idle; "
        "the median of the pairs of nodes that lie equally far apart.",
        quantity="Throughput", block=None, variant="Distance",
    ),
    _table(
        "memory_ladder_latency", "Latency by working set", 1e9, "ns",
        "Time of one dependent load, one for each cache line; the median of the working sets that lie clearly inside a "
        "cache or beyond the last, on small or huge pages. The working set is that in their middle, of DRAM the largest.",
        quantity="Latency", block="Working Set", variant="Level",
    ),
    _table(
        "memory_ladder_throughput", "Throughput by working set", 1e-9, "GB/sec",
        "Bytes that one core reads, over and over, from working sets that lie clearly inside a cache or beyond the last.",
        quantity="Throughput", block="Working Set", variant="Level",
    ),
    _table(
        "memory_loaded_latency", "Latency under load", 1e9, "ns",
        "Time of one dependent load while all other cores load the memory as much as they can; of the traffic of r75, 75 % "
        "are reads. Stores are streaming ones.",
        quantity="Latency", block=None, variant="Mix",
    ),
    _table(
        "disk_throughput", "Throughput", 1e-6, "MB/sec",
        "Direct I/O, one file per thread, the final flush inside the clock.",
        variant="Engine",
    ),
    _table(
        "disk_latency", "Latency", 1e3, "ms",
        "Mean time of one operation as its thread sees it. A thread starts the next operation when the last has ended, "
        "so these are service times.",
        variant="Engine",
    ),
    _table(
        "disk_iops", "Operations per second", 1.0, "",
        "Random operations per second of all threads together.",
        quantity="IOPS", variant="Engine",
    ),
    _table(
        "network_throughput", "Throughput", 1e-6, "Mb/sec",
        "Payload counted at the receiver.",
        first="Protocol", variant="Mode",
    ),
    _table(
        "network_latency", "Latency", 1e3, "ms",
        "Round trip. ping sends ICMP echoes that the kernel answers, without waking a program: the same figure stands "
        "beside TCP and UDP.",
        first="Protocol", block="Message Size", variant="Mode",
    ),
)  # fmt: skip
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
