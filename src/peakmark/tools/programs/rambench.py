"""rambench, the own kernel for memory throughput and the latency of dependent loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from peakmark.catalogue import workloads
from peakmark.catalogue.workloads import POOLS
from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.reasons import Unavailable
from peakmark.tools import common, kernel
from peakmark.tools.base import Completed, Cost, Invocation, Parsed, Tool, Workspace

WORKLOADS = workloads.WORKLOADS["memory"]
POOL = 1 << 30  # rambench's own default

ORDINARY = "pool-temporal"
"""The variant whose stores are ordinary ones, whatever the grid asks for its pool."""

LINE = 64  # bytes of a cache line, of which a block has whole ones

_CAUTIOUS_THROUGHPUT = 5e9  # B/s of one thread in DRAM
_CAUTIOUS_LOAD_S = 200e-9  # one dependent load in DRAM with small pages
_TOUCH = 1.0e9  # B/s at which one thread fills fresh memory


class RamBench(kernel.Kernel):
    """memory RS WS RWS RR WR RWR in B/s, variants ``block`` and ``pool``; LAT in s per dependent
    load, no variant.
    """

    name = "rambench"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"memory": WORKLOADS}
    executables = ("rambench",)
    variants = ("block", *POOLS, "")
    units: ClassVar[Mapping[str, str]] = {**dict.fromkeys(WORKLOADS, "B/s"), "LAT": "s"}

    def check(self, cell: Cell) -> None:
        super().check(cell)
        check_variant(cell)
        block = block_of(cell)
        if block % LINE:
            raise Unavailable("lines", program=self.name, line=LINE, block=block)
        common.need_share(cell, "total", buffers(cell) * block)
        common.need_share(cell, "accesses", 1)
        if (
            cell.variant in POOLS
            and pool_of(cell) // cell.concurrency // buffers(cell) // block >= 1 << 32
        ):
            raise Unavailable("blocks-of-pool", program=self.name, pool=pool_of(cell), block=block)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        common.need_memory(self.name, self.estimate(cell).memory_bytes, workspace)
        argv = [tool.path, "--workload", cell.workload, "--block", str(block_of(cell))]
        if cell.workload == "LAT":
            argv += self.amount(cell, "accesses")
            if cell.options.get("stride") is not None:
                argv += ["--stride", str(cell.options["stride"])]
        else:
            argv += ["--pool", "block" if cell.variant == "block" else str(pool_of(cell))]
            argv += self.amount(cell, "total")
        argv += self.common_options(cell, workspace)
        argv += kernel.isa_option(cell)
        if cell.options.get("huge_pages") is False:
            argv += ["--huge-pages", "off"]
        if writes(cell.workload) and (
            cell.options.get("store") is not None or cell.variant == ORDINARY
        ):
            argv += ["--store", store_of(cell)]
        return Invocation(self.command(cell, argv))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        document = self.read(cell, done)
        value, details = document.number("value"), kernel.details(document)
        if cell.workload == "LAT":
            if value > 1e-3:
                raise ParseError(f"rambench: {value:g} s for one load is not possible")
            return kernel.parsed(cell, document, ("latency", value, "s", details))
        self.agree_rate(document)
        return kernel.parsed(cell, document, ("throughput", value, "B/s", details))

    def estimate(self, cell: Cell) -> Cost:
        # A pool holds all buffers of all threads, but one block each at least.
        blocks = buffers(cell) * block_of(cell) * cell.concurrency
        memory = max(blocks, pool_of(cell)) if cell.variant in POOLS else blocks
        if cell.workload == "LAT":
            key, rate = "accesses", cell.concurrency / _CAUTIOUS_LOAD_S
        else:
            key, rate = "total", _CAUTIOUS_THROUGHPUT * min(cell.concurrency, 8)
        fixed = 0.3 + kernel.asked_s(cell, key, 0.1)
        seconds = fixed + memory / _TOUCH + (common.work(cell, key) or 0.0) / rate
        return Cost(seconds=seconds, memory_bytes=memory + (cell.concurrency << 20), fixed_s=fixed)


def block_of(cell: Cell) -> int:
    """Bytes of a block, or of the area of each thread of LAT."""
    if cell.automatic and cell.workload == "LAT":
        return POOL if cell.area is None else cell.area
    return common.needed_block(cell)


def buffers(cell: Cell) -> int:
    """Number of buffers of a thread: a copy has a source and a destination."""
    return 2 if cell.workload in ("RWS", "RWR") else 1


def pool_of(cell: Cell) -> int:
    """Bytes that all threads walk together in variant ``pool``, source and destination of a copy
    included.
    """
    if cell.options.get("pool") == workloads.AUTO:
        return POOL
    return common.option_size(cell, "pool", POOL) or POOL


def writes(workload: str) -> bool:
    """Whether a memory workload stores anything, so that it has a store policy."""
    return workload in ("WS", "WR", "RWS", "RWR")


def store_of(cell: Cell) -> str:
    """How a cell's stores go: temporal, streaming or libc; without a word of the configuration a
    pool's stream.
    """
    if cell.variant == ORDINARY:
        return "temporal"
    return str(cell.options.get("store") or ("streaming" if cell.variant == "pool" else "temporal"))


def check_variant(cell: Cell) -> None:
    """Errors: Unavailable when LAT has a variant, another workload has none, or one that only reads
    has that of stores.
    """
    common.need_variant(cell, cell.workload != "LAT")
    if cell.variant == ORDINARY and not writes(cell.workload):
        raise Unavailable(
            "stores-nothing", program=cell.instrument, workload=cell.workload, variant=cell.variant
        )


INSTRUMENT = RamBench()
