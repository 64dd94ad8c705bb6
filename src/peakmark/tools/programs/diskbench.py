"""diskbench, peakmark's kernel that measures direct reads and writes of a disk.

The functions for variant and sizes of a disk cell serve the other disk tools too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from peakmark.catalogue import SUBSYSTEMS, disk_variant
from peakmark.cell import Cell
from peakmark.errors import ConfigError, Unavailable
from peakmark.formatting import format_size
from peakmark.tools import base, common
from peakmark.tools.base import (
    Command,
    Completed,
    Cost,
    Coverage,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.tools.common import Output

META = "META"
"""Workload that measures metadata operations: it has no records, and no engine in its variant."""
SIZE = 1 << 30
"""Total bytes of all files of a cell on one node, unless the configuration sets ``size``."""
RECORD_MIN, RECORD_MAX, DEPTH_MAX = 32, 1 << 30, 4096
"""Smallest and largest record in bytes, and most requests in flight (src/kernels/disk/diskbench.c)."""
VARIANTS = ("psync", "io_uring-qdN")
"""Variants of disk cells, as messages name them."""

_FILL_RATE = 200e6
"""Rate in B/s at which a slow disk is filled with the files, before the clock starts."""
_CAUTIOUS_RATE = 100e6
"""Rate in B/s at which a slow disk reads or writes a fixed amount of data."""
_SYNC_S = 2e-3
"""Seconds of a synchronous write on a slow disk."""
_HUGE_PAGE = 2 << 20
"""Bytes of a huge page, to which buffers may be rounded up."""
_CYCLE_S = 15.0
"""Seconds of a cycle of META on a slow file system: 3000 operations of 5 ms each."""


class DiskBench(common.Kernel):
    """diskbench. Each cell measures one disk workload in B/s and 1/s, and the latency of its operations.

    Its variants are ``psync`` and ``io_uring-qdN``. A cell of META measures three rows, the metadata
    operations of the file system, and has no variant.
    """

    name = "diskbench"
    rows = (Coverage("disk", SUBSYSTEMS["disk"].workloads, variants=()),)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        if cell.workload == META:
            return  # it has no records and no engine
        record = common.needed_block(cell)
        _, depth = engine_of(cell)
        common.need_between(cell, "records", record, RECORD_MIN, RECORD_MAX, in_bytes=True)
        common.need_between(cell, "requests in flight", depth, 1, DEPTH_MAX)
        # Each request in flight needs another record of the thread's file.
        file = file_size(cell, "threads")
        if file < depth * record:
            raise Unavailable(
                f"a file of {format_size(file)} for each of {cell.concurrency} threads has fewer"
                f" records of {format_size(record)} than the {depth} in flight",
                "make size larger",
            )
        common.need_share(cell, "total", record)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        argv = [tool.path, "--workload", cell.workload, "--directory", "."]
        if cell.workload == META:
            # META has no option for an amount of work (empty key), so ``work_option`` returns --seconds.
            argv += self.work_option(cell, "")
        else:
            engine, depth = engine_of(cell)
            words = (
                f"--record {cell.block} --size {size_of(cell)} --engine {engine} --depth {depth}"
            )
            argv += [*words.split(), *self.work_option(cell, "total")]
            argv += common.flags(cell, "sync", "fill")
        # Allow all CPUs, as for fio and IOZone, because a thread that waits for the disk wakes fastest
        # on the CPU that handles the interrupt.
        argv += self.common_options(cell, workspace, cpus=len(workspace.cpus))
        # If several nodes are measured together, the command waits until all are ready. If they share one file, each
        # node has a part of it, whose number is the cell's option ``part``.
        variant = disk_variant(cell.variant)
        if variant.nodes:
            argv.append("--wait")
        if variant.one_file:
            argv += ["--file", f"{workspace.shared}/file", "--part", str(cell.options["part"])]
        return self.command(cell, argv, is_held=bool(variant.nodes))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        output = self.read(cell, done)
        if cell.workload == META:
            return self.parsed(cell, output, *_rows(cell, output))
        # Check that diskbench used the cell's settings, and that rate and IOPS fit each other (to 1 %).
        engine, depth = engine_of(cell)
        output.expect({"engine": engine, "depth": depth})
        value, iops = output.number("value"), output.number("iops")
        common.agree(iops * common.needed_block(cell), value, 1e-2, "diskbench: iops")
        latency = common.percentiles(output, "operations")
        # The percentiles and the mean are kept with the latency, the energy with each of the three values.
        apart = {*latency, "latency_mean"}
        details = {key: kept for key, kept in common.details(output).items() if key not in apart}
        energy: dict[str, Any] = {
            key: details[key] for key in ("joules", "watts") if key in details
        }
        return self.parsed(
            cell,
            output,
            Measurement.of(cell, "throughput", value, details),
            Measurement.of(cell, "iops", iops, {"record": cell.block, **energy}),
            Measurement.of(cell, "latency", output.number("latency_mean"), {**latency, **energy}),
        )

    def estimate(self, cell: Cell) -> Cost:
        # The program takes 0.5 s to start and 64 MiB, and warms up for 0.1 s by default.
        # Nodes that share the disk share its rate, so their work takes as many times as long.
        nodes = nodes_of(cell)
        if cell.workload == META:
            clock_s = common.clock_s(cell, "total", warmup=0.1)
            # Only whole cycles are done, so warm-up and measurement may each take a cycle longer.
            work_s = 2 * _CYCLE_S * nodes
            return Cost(fixed_s=0.5 + clock_s, work_s=work_s, memory_bytes=64 << 20)
        size, total = size_of(cell), common.amount(cell, "total") or 0.0
        # The buffer of each thread has a record for each request in flight, and is rounded up to whole huge pages.
        _, depth = engine_of(cell)
        buffer = depth * common.needed_block(cell) + _HUGE_PAGE
        return Cost(
            fixed_s=0.5 + common.clock_s(cell, "total", warmup=0.1),
            work_s=(size / _FILL_RATE + total / _CAUTIOUS_RATE) * nodes,
            waits_s=sync_s(cell, total) * nodes,
            memory_bytes=cell.concurrency * buffer + (64 << 20),
            disk_bytes=size * nodes,
        )


def _rows(cell: Cell, output: Output) -> Iterator[Measurement]:
    """Yield the rate of each metadata operation of META, whose name is the variant of its row.

    Raises:
        ParseError: a rate is missing.
    """
    for keys in output["rows"]:
        row = Output(output.program, keys)
        rate = Measurement.of(cell, "metadata", row.number("value"), common.details(output))
        # The cell's variant may name a number of nodes, as ``nodes4``. The row's names the operation too.
        rate.variant = disk_variant(cell.variant)._replace(base=row["variant"]).text
        yield rate


def nodes_of(cell: Cell) -> int:
    """Return the number of nodes that use the disk at the same moment; 1 if the node is measured alone."""
    return max(1, disk_variant(cell.variant).nodes)


def sync_s(cell: Cell, written: float) -> float:
    """Return the seconds that a sync after each record adds, if the cell writes ``written`` bytes.

    They are 0 for cells that do not sync after each record. The syncs of all threads are assumed to be
    serial, as on a rotating disk.
    """
    if cell.options.get("sync") != "each":
        return 0.0
    return written / common.needed_block(cell) * _SYNC_S


def size_of(cell: Cell) -> int:
    """Return the total bytes of all files of a disk cell on one node."""
    return common.option_size(cell, "size") or SIZE


def file_size(cell: Cell, workers: str) -> int:
    """Return the bytes of one worker's file: its share of the total size, in whole records.

    Args:
        cell: the cell.
        workers: name of the workers in the message: threads or processes.

    Raises:
        ConfigError: the share is smaller than a record.
    """
    record = common.needed_block(cell)
    size = size_of(cell) // cell.concurrency // record * record
    if size == 0:
        raise ConfigError(
            f"cell {cell.id}: size {format_size(size_of(cell))} leaves no record of "
            f"{format_size(record)} for each of {cell.concurrency} {workers}, use a larger size"
        )
    return size


def engine_of(cell: Cell) -> tuple[str, int]:
    """Return the I/O engine (``psync`` or ``io_uring``), and the number of requests that a thread has in flight.

    Raises:
        Unavailable: the cell's variant is neither ``psync`` nor ``io_uring-qdN``.
    """
    variant = disk_variant(cell.variant).base
    match = re.fullmatch(r"io_uring-qd([1-9][0-9]*)", variant)
    if match is not None:
        return "io_uring", int(match[1])
    if variant != "psync":
        raise base.no_variant(cell, VARIANTS)
    return "psync", 1  # a thread with psync waits for each request


INSTRUMENT = DiskBench()
