"""diskbench, the own kernel for direct reads and writes of a disk. Also what a disk cell's variant
means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from peakmark.catalogue import workloads
from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.reasons import Unavailable
from peakmark.tools import common, kernel
from peakmark.tools.base import Completed, Cost, Invocation, Parsed, Tool, Workspace
from peakmark.units import format_size

WORKLOADS = workloads.WORKLOADS["disk"]
PERCENTILES = ("p50", "p90", "p99", "p999", "max")
SIZE = 1 << 30
RECORD_MIN, RECORD_MAX, DEPTH_MAX = 32, 1 << 30, 4096  # of src/kernels/disk/diskbench.c

_FILL = 200e6  # B/s at which the files are filled before the clock starts, on a slow disk
_CAUTIOUS = 100e6  # B/s of a fixed total
_SYNC_S = 2e-3  # of a write that waits for the device
_HUGE_PAGE = 2 << 20
_URING = re.compile(r"io_uring-qd([1-9][0-9]*)")


class DiskBench(kernel.Kernel):
    """disk RS WS RR WR in B/s with 1/s and latency, variants ``psync`` and ``io_uring-qdN``."""

    name = "diskbench"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"disk": WORKLOADS}
    executables = ("diskbench",)
    variants = ("psync", "io_uring-qdN")
    units: ClassVar[Mapping[str, str]] = dict.fromkeys(WORKLOADS, "B/s")

    def has_variant(self, variant: str) -> bool:
        return variant == "psync" or _URING.fullmatch(variant) is not None

    def check(self, cell: Cell) -> None:
        super().check(cell)
        record, depth = common.needed_block(cell), engine_of(cell)[1]
        common.need_between(cell, "records", record, RECORD_MIN, RECORD_MAX, size=True)
        common.need_between(cell, "requests in flight", depth, 1, DEPTH_MAX)
        if (size := file_size(cell, "threads")) < depth * record:
            raise Unavailable(
                "small-file", file=size, threads=cell.concurrency, record=record, depth=depth
            )
        common.need_share(cell, "total", record)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        engine, depth = engine_of(cell)
        argv = (
            *(tool.path, "--workload", cell.workload, "--record", str(common.needed_block(cell))),
            *(
                "--size",
                str(size_of(cell)),
                "--directory",
                ".",
                "--engine",
                engine,
                "--depth",
                str(depth),
            ),
            *self.amount(cell, "total"),
            *(
                word
                for key in ("sync", "fill")
                if key in cell.options
                for word in (f"--{key}", str(cell.options[key]))
            ),
            *(("--huge-pages", "off") if cell.options.get("huge_pages") is False else ()),
            # All CPUs, as for fio and IOZone: a thread that waits for the disk is woken best where
            # the interrupt arrives.
            *self.common_options(cell, workspace, len(workspace.cpus)),
        )
        return Invocation(self.command(cell, argv))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        document = self.read(cell, done)
        engine, depth = engine_of(cell)
        if (document.get("engine"), document.get("depth")) != (engine, depth):
            raise ParseError(f"diskbench: engine or depth is not the cell's {engine} at {depth}")
        self.agree_rate(document)
        value, iops = document.number("value"), document.number("iops")
        common.agree(iops * common.needed_block(cell), value, 1e-2, "diskbench: iops")
        latency = {key: document.number(key) for key in PERCENTILES}
        others = kernel.details(document)
        details = {key: others[key] for key in others if key not in (*PERCENTILES, "latency_mean")}
        return kernel.parsed(
            cell,
            document,
            ("throughput", value, "B/s", details),
            ("iops", iops, "1/s", {"record": cell.block}),
            ("latency", document.number("latency_mean"), "s", latency),
        )

    def estimate(self, cell: Cell) -> Cost:
        size = size_of(cell)
        fixed = 0.5 + kernel.asked_s(cell, "total", 0.1)
        total = common.work(cell, "total") or 0.0
        waits = sync_s(cell, total)
        seconds = fixed + size / _FILL + total / _CAUTIOUS + waits
        buffer = engine_of(cell)[1] * common.needed_block(cell)
        buffers = cell.concurrency * (buffer + _HUGE_PAGE)
        return Cost(
            seconds=seconds,
            disk_bytes=size,
            memory_bytes=buffers + (64 << 20),
            fixed_s=fixed,
            waits_s=waits,
        )


def sync_s(cell: Cell, written: float) -> float:
    """Seconds that the device may take on top where each record of ``written`` bytes waits for it:
    one after the other, as a disk that turns does it, whatever the threads.
    """
    return (
        written / common.needed_block(cell) * _SYNC_S if cell.options.get("sync") == "each" else 0.0
    )


def size_of(cell: Cell) -> int:
    """Bytes of all files of a disk cell together."""
    return common.option_size(cell, "size", SIZE) or SIZE


def file_size(cell: Cell, workers: str) -> int:
    """Bytes of one file, each of the ``workers`` ("threads", "processes") having one: its share of
    the size in whole records. Errors: ConfigError when that is none.
    """
    record = common.needed_block(cell)
    size = size_of(cell) // cell.concurrency // record * record
    if size == 0:
        raise ConfigError(
            f"cell {cell.id}: size {format_size(size_of(cell))} leaves no record of {format_size(record)} for each of "
            f"{cell.concurrency} {workers}, use a larger size"
        )
    return size


def engine_of(cell: Cell) -> tuple[str, int]:
    """(engine, requests in flight per thread) as the variant says. Errors: ConfigError, also when
    options disagree.
    """
    match = _URING.fullmatch(cell.variant)
    if match is None and cell.variant != "psync":
        raise ConfigError(
            f"cell {cell.id}: variant {cell.variant!r} is not allowed, use psync or e.g. io_uring-qd8"
        )
    engine, depth = ("io_uring", int(match.group(1))) if match else ("psync", 1)
    for key, value in (("engine", engine), ("depth", depth)):
        if cell.options.get(key) not in (None, value):
            raise ConfigError(
                f"cell {cell.id}: option {key}={cell.options[key]!r} contradicts variant {cell.variant}, "
                f"which says {value}"
            )
    return engine, depth


INSTRUMENT = DiskBench()
