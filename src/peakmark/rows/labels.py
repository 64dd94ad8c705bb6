"""Name the rows of a table in sentences and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import plural, quantity, significant, size
from peakmark.tools.tables import BY_NAME, UNITS, Table

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""
WORKING_SETS = {"block": "in caches", "pool": "in DRAM"}
"""Variant of a memory row -> phrase for it in sentences."""
OF_GPU = {
    "burst": "in the first 20 ms",
    "to": "to the GPU",
    "from": "from the GPU",
    "both": "in both directions",
    "peer": "between GPUs",
}
"""Variant of a GPU row -> phrase for it in sentences."""
WHERE = {
    "numa": ("core", " of a NUMA node"),
    "socket": ("core", " of a socket"),
    "cores": ("core", ""),
    "cpus": ("CPU", ""),
    "gpus": ("GPU", ""),
}
"""Word for a concurrency -> noun for what runs one thread each, and phrase for the part of the node that has it."""
USUAL = ("", "psync", "sustained")
"""Default variants, which sentences do not name."""


@dataclass(frozen=True)
class Labels:
    """Names for the rows of a table.

    Attributes:
        table: the table.
    """

    table: Table

    @classmethod
    def of(cls, row: Line) -> Labels:
        """Return the labels of a row's table, with the plain names of workloads."""
        return cls(replace(BY_NAME[row.table], is_plain=True))

    def workload(self, row: Line) -> str:
        """Return the name of a row's workload, such as ``RWS``."""
        return self.table.workload_label(row.workload)

    def block(self, row: Line) -> str:
        """Return the block size of a row, such as ``16 MiB``; empty if the row has no block."""
        return size(row.block_bytes)

    def many(self, count: int) -> str:
        """Return a concurrency with its noun, such as ``1 thread`` or ``8 streams``."""
        return plural(count, self.noun)

    @property
    def noun(self) -> str:
        """Return the noun for the concurrency of the table: ``thread`` or ``stream``."""
        return SUBSYSTEMS[self.table.subsystem].counted

    def threads(self, row: Line) -> str:
        """Return ``8 threads``, or ``on 8 cores of a socket`` if the configuration has a word for them."""
        word = row.concurrency_word
        if not word:
            return self.many(row.concurrency)
        if not row.concurrency:  # no node has said yet how many the word means
            return str(word)
        noun, part = WHERE[word]
        return f"on {plural(row.concurrency, noun)}{part}"

    def quantity(self, value: float) -> str:
        """Return a value, given in SI units, in the unit of the table: ``38.4 GOP/s``.

        The rate of a network is in the largest fitting unit instead: ``33.3 Gb/s``.
        """
        if self.table.unit == "bit/s":
            return quantity(value, "bit/s")
        unit = UNITS.get((self.table.unit, self.table.factor)) or self.table.shown
        return f"{significant(value * self.table.factor)} {unit}"

    def point(self, row: Line, *, variant: bool = False, node: bool = True) -> str:
        """Return the name of a row's point: ``RR of 4 KiB, 8 threads on node1``.

        Args:
            row: a row of the table.
            variant: whether to name the variant, unless it is the default.
            node: whether to name the node, unless it is ``any``.
        """
        text = self.workload(row)
        if variant and self.table.variant and row.variant not in USUAL:
            text += f" {self.table.variant_label(row.variant)}"
        if row.block_bytes:
            text += f" of {self.block(row)}"
        text += f", {self.threads(row)}"
        if node and row.node != "any":
            # "on 8 cores of node1", but "8 threads on node1".
            preposition = "of" if row.concurrency_word else "on"
            text += f" {preposition} {row.node}"
        return text

    def working_set(self, row: Line) -> str:
        """Return a phrase for the variant of a row, such as ``in caches``; empty for the default.

        For memory, the variant is the working set. For a disk, the phrase names the I/O engine.
        """
        if self.table.name == "memory_throughput":
            return WORKING_SETS.get(row.variant, "")
        if row.variant in OF_GPU:
            return OF_GPU[row.variant]
        if row.variant in USUAL:
            return ""
        return f"with {self.table.variant_label(row.variant)}"

    def place(self, row: Line, group: Sequence[Line]) -> str:
        """Return the block and the threads of a row, such as ``16 MiB, 8 threads``.

        Each is named only if it differs within the group. If neither differs, the threads are named.
        """
        blocks = {each.block_bytes for each in group}
        counts = {(each.concurrency, each.concurrency_word) for each in group}
        parts = [self.block(row)] if len(blocks) > 1 else []
        if len(counts) > 1 or not parts:
            parts.append(self.threads(row))
        return ", ".join(parts)

    def line(self, row: Line, rows: Sequence[Line], *, block: bool = True) -> str:
        """Return the name of a row without its number of threads: ``RWS of 1 MiB in DRAM``.

        Args:
            row: a row of the table.
            rows: rows from which the name distinguishes the row. Its working set and node are named
                only if ``rows`` have different ones.
            block: whether to name the block.
        """
        words = [self.workload(row)]
        if block and row.block_bytes:
            words.append(f"of {self.block(row)}")
        if len({each.variant for each in rows}) > 1:
            words.append(self.working_set(row))
        if len({each.node for each in rows}) > 1:
            words.append(f"on {row.node}")
        return " ".join(filter(None, words))
