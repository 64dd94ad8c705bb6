"""Name the rows of a table, and choose the rows of a typical node or of a headline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import pandas as pd

from peakmark.catalogue import HPL, KERNELS, SUBSYSTEMS, Headline, nodes_of_ranks
from peakmark.config.layouts import Layout, LayoutTable
from peakmark.formatting import plural, quantity, significant, size
from peakmark.rows.schema import is_usable
from peakmark.tools.tables import BY_NAME, UNITS, Table

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""
WORKING_SETS = {
    "block": "in caches",
    "pool": "in DRAM",
    "pool-temporal": "in DRAM with ordinary stores",
}
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
"""Word for a concurrency -> (noun of what runs one thread, phrase for the part of the node)."""
KERNEL = "peakmark"
"""Name of peakmark's kernels in a report without a layout."""
DEFAULT_VARIANTS = ("", "psync", "sustained")
"""Default variants of all subsystems, which sentences do not name."""


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
        return self.table.counted

    def threads(self, row: Line) -> str:
        """Return ``8 threads``, or ``on 8 cores of a socket`` if a ``socket`` was asked for."""
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
        # A factor has its own unit, such as GB/s for 1e-9.
        unit = UNITS.get((self.table.unit, self.table.factor)) or self.table.shown
        return f"{significant(value * self.table.factor)} {unit}"

    def point(self, row: Line, *, variant: bool = False) -> str:
        """Return the name of a row's point without its node: ``RR of 4 KiB, 8 threads``.

        Args:
            row: a row of the table.
            variant: whether to name the variant, unless it is the default.
        """
        text = self.workload(row)
        if variant and self.table.variant and row.variant not in DEFAULT_VARIANTS:
            text += f" {self.table.variant_label(row.variant)}"
        if row.block_bytes:
            text += f" of {self.block(row)}"
        return f"{text}, {self.threads(row)}"

    def working_set(self, row: Line) -> str:
        """Return a phrase for the variant of a row, such as ``in caches``; empty for the default.

        For memory, the variant is the working set. For a disk, the phrase names the I/O engine.
        """
        if self.table.name == "memory_throughput":
            return WORKING_SETS.get(row.variant, "")
        if row.variant in OF_GPU:
            return OF_GPU[row.variant]
        if row.variant in DEFAULT_VARIANTS:
            return ""
        return f"with {self.table.variant_label(row.variant)}"

    def place(self, row: Line, group: Sequence[Line]) -> str:
        """Return workload, working set, block, threads and node of a row: ``16 MiB, 8 threads``.

        Each is named only if it differs within the group. If none differs, the threads are named.
        """
        parts = []
        for word in (self.workload, self.working_set, self.block, self.threads, attrgetter("node")):
            if len({word(each) for each in group}) > 1:
                parts.append(word(row))
        return ", ".join(filter(None, parts)) or self.threads(row)

    def line(self, row: Line, rows: Sequence[Line]) -> str:
        """Return the name of a row without its block and its number of threads: ``RWS in DRAM``.

        Args:
            row: a row of the table.
            rows: rows from which the name distinguishes the row. Its working set and node are named
                only if ``rows`` have different ones.
        """
        words = [self.workload(row)]
        if len({each.variant for each in rows}) > 1:
            words.append(self.working_set(row))
        if len({each.node for each in rows}) > 1:
            words.append(f"on {row.node}")
        return " ".join(filter(None, words))


@dataclass(frozen=True)
class LayoutLabels(Labels):
    """Names for the rows of a table in the words of a layout.

    Attributes:
        layout: the layout.
    """

    layout: Layout

    def workload(self, row: Line) -> str:
        """Return the name of a row's workload in the layout.

        If the layout has columns of values of the workload, such as one for each number of threads, the
        name is the heading of the column with the fewest threads. Otherwise it is the layout's word for
        the workload.
        """
        layout_table = self._table_of(row)
        if layout_table is None:
            return super().workload(row)
        # Number of threads of a column, 0 if it shows any number -> its heading.
        headings: dict[int, str] = {}
        for column in layout_table.columns:
            is_own = column.instrument == self.table.own.instrument
            if column.where.workload == row.workload and is_own and column.value:
                headings.setdefault(column.where.concurrency or 0, column.heading)
        if headings:
            return headings[min(headings)]
        return layout_table.names(self.table, row.workload, row.concurrency, row.block_bytes)[
            "workload"
        ]

    def block(self, row: Line) -> str:
        """Return the block size of a row as the layout writes it, such as ``16MB``."""
        layout_table = self._table_of(row)
        if row.block_bytes is None or layout_table is None:
            return super().block(row)
        text = layout_table.names(self.table, row.workload, row.concurrency, row.block_bytes)[
            "block"
        ]
        # ``sizes`` is IEC or KB, with the unit in the text, or "in B", "in KB" or "in MB": then the
        # table has the unit in its heading, but sentences and axes need it with the number.
        if not layout_table.sizes.startswith("in "):
            return text
        unit = layout_table.sizes.removeprefix("in ")
        # A plain number of bytes, such as 1048576, is hard to read: write it as without a layout. A label that
        # the layout gives the block stays.
        if unit == "B" and text == str(row.block_bytes):
            return super().block(row)
        return f"{text} {unit}"

    def _table_of(self, row: Line) -> LayoutTable | None:
        """Return the layout's table that shows a row, if any."""
        return self.layout.layout_table_of(self.table, row.workload, row.variant)


def printed_table(layout: Layout | None, table: Table) -> Table:
    """Return a table with the names of programs and the unit in a layout.

    Without a layout, the kernel is called ``KERNEL``, and the workloads have plain names.
    """
    if layout is not None:
        return layout.called(table)
    heading = KERNEL if table.own.instrument in KERNELS.values() else table.own.heading
    return replace(table, own=replace(table.own, heading=heading), is_plain=True)


def table_of(layout: Layout | None, table: Table, rows: pd.DataFrame) -> Table:
    """Return a table with the unit and the names of programs that are printed.

    Without a layout, the unit is the largest in which no value is below 1.
    """
    named = printed_table(layout, table)
    return named if layout else named.fitted(rows.loc[rows["n"].gt(0), "value"])


def labels_of(layout: Layout | None, table: Table) -> Labels:
    """Return the labels for the rows of a table, with the words of the layout if there is one."""
    if layout is None:
        return Labels(printed_table(None, table))
    return LayoutLabels(layout.called(table), layout)


def parallel_efficiency(rows: pd.DataFrame) -> pd.Series:
    """Return the parallel efficiency of rows of HPL on several nodes, as a share.

    The efficiency is value / (number of nodes x value of one node). It is empty for other rows, and
    if HPL was not measured on one node.
    """
    # The node of a row on several nodes is the first of them, and its concurrency is the cores of
    # each. HPL is the only program of its table, so the key has no program.
    key = ["node", "concurrency", "concurrency_word"]
    nodes = rows["variant"].map(nodes_of_ranks).where(rows["workload"].eq(HPL))
    one = rows[nodes.eq(1)].set_index(key)["value"].rename("value_of_one")
    of_one = rows[key].join(one, on=key)["value_of_one"]
    return (rows["value"] / (of_one * nodes)).where(nodes.gt(1))


# -- rows that stand for others

MANY = 4
"""Number of nodes above which tables on paper have a line for each point, not for each node."""


def with_medians(own: pd.DataFrame) -> pd.DataFrame:
    """Return the usable rows (``is_usable``) with ``group``, ``median_of_nodes`` and ``behind``.

    - ``group``: number of the row's group, class by class. A group has the rows of one class of
      nodes at one place, which is a point without its node.
    - ``median_of_nodes``: median of the values of the group.
    - ``behind``: share by which the value is worse than this median. A slow row keeps the
      share it was judged by, which is measured against the bulk of its class (``fleet.CUT``).
    """
    # Number the groups: class by class, and in a class in the order of the rows.
    in_order = own[["node_class", "place"]].sort_values("node_class", kind="stable")
    group = in_order.groupby(["node_class", "place"], sort=False).ngroup()
    usable = own.assign(group=group)[is_usable(own)]
    median = usable.groupby("group")["value"].transform("median")
    share = usable["value"] / median - 1
    # A longer time is worse, and so is a lower rate.
    worse = share.where(usable["unit"].eq("s"), -share)
    behind = usable["behind"].where(usable["is_slow"], worse)
    return usable.assign(median_of_nodes=median, behind=behind)


def rows_of_typical_node(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a typical node of a table; return all rows if none is usable.

    Of the nodes of the first class, those with the most points are compared. The typical node is
    the one whose values are nearest to the medians of the class.
    """
    usable = with_medians(rows[rows["is_own"]])
    if usable.empty:
        return rows
    of_class = usable[usable["node_class"].eq(usable["node_class"].min())]
    off = of_class["behind"].abs().groupby(of_class["node"], sort=False)
    nodes = off.agg(["size", "median"])
    in_order = nodes.sort_values(["size", "median"], ascending=[False, True], kind="stable")
    return rows[rows["node"].eq(in_order.index[0])]


def rows_of_headline(rows: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    """Return the rows that have the table, workload, cache level and program of a headline."""
    is_of_headline = rows["table"].eq(headline.table) & rows["workload"].eq(headline.workload)
    if headline.level:
        is_of_headline &= rows["cache_level"].eq(headline.level)
    if headline.instrument:
        return rows[is_of_headline & rows["instrument"].eq(headline.instrument)]
    return rows[is_of_headline & rows["is_own"]]


def choose(rows: pd.DataFrame, headline: Headline, nodes: pd.DataFrame) -> pd.DataFrame:
    """Return one row of a headline for each node: the row with the largest block, or the smallest.

    For a rate, the row with the most threads is chosen; pinned threads are at most one per core.
    For a time, the row with the fewest threads is chosen, so that no request waits for another.
    Only the first variant of the rows counts; for HPL over nodes only the last one, which is on the
    most nodes.
    """
    table = BY_NAME[headline.table]
    # The first variant; of HPL over nodes the last one, which is on most nodes.
    variants = rows["variant"].tail(1) if headline.workload == HPL else rows["variant"].head(1)
    rows = rows[rows["variant"].eq(variants.squeeze())]
    if rows["block_bytes"].notna().any():
        blocks = rows["block_bytes"]
        rows = rows[blocks.eq(blocks.min() if headline.smallest else blocks.max())]
    # With pinned threads, at most one for each core, if there are such rows.
    fits_cores = rows["concurrency"].le(nodes["cores"].max())
    if SUBSYSTEMS[table.subsystem].pinned and fits_cores.any():
        rows = rows[fits_cores]
    # Fewest threads first for a time, most threads first for a rate. The first row of each node counts.
    ordered = rows.sort_values("concurrency", ascending=table.lower_is_better, kind="stable")
    return ordered.drop_duplicates("node").sort_index()
