"""rambench, peakmark's kernel that measures memory throughput and the latency of dependent loads."""

from __future__ import annotations

import math
from collections.abc import Iterator

from peakmark.catalogue import ARRAYS, AUTO, LADDERS, NUMA, PAGES, POOLS, SHAPES
from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import common
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

POOL = 1 << 30
"""Bytes of the pool unless the configuration sets them, the same as rambench's default."""

POOL_TEMPORAL = "pool-temporal"
"""Variant of a pool that is always written with ordinary stores, whatever the key ``store`` of its grid says."""

LINE = 64
"""Bytes of a cache line. Blocks are multiples of it."""
WRITING = ("WS", "WR", "RWS", "RWR", "TRIAD")
"""Workloads that write."""

MIXES, RATES = 3, 12
"""How many percentages of reads, and how many rates of traffic, LOADED measures by default."""
LOADED_POINT_S, LOADED_SHARE = 0.03, 0.05
"""Shortest time of a point of LOADED, in seconds, and the share of the cell's time that a point takes."""
MOST_PAIRS = 640
"""Most pairs of CPUs that C2C measures: 128 pairs of each of five distances."""
PAIR_S = 0.02
"""Seconds of one pair of C2C if a cache line takes 300 ns."""
NUMA_PAIR_S, MOST_NUMA_PAIRS = 0.02, 64
"""Minimum measuring time in seconds for each pair of NUMA nodes, and the largest number of such pairs
that a machine usually has.
"""
LADDER_S = 4.0
"""Seconds that LADDER-RS and LADDER-LAT take to lay out their working sets in memory."""
START_S, WARMUP_S = 0.3, 0.1
"""Seconds in which rambench starts, and seconds of its warm-up unless the configuration sets them."""
THREAD_BYTES = 1 << 20
"""Memory of a thread besides its buffers."""

_CAUTIOUS_THROUGHPUT = 5e9
"""Throughput in B/s of one thread in slow DRAM."""
_CAUTIOUS_THREADS = 8
"""Number of threads that are assumed to saturate slow DRAM.

More threads do not shorten the estimate, so that it is too long rather than too short.
"""
_CAUTIOUS_LOAD_S = 200e-9
"""Seconds of a dependent load in slow DRAM with small pages."""
_PROBES_S = 0.07
"""Seconds for which rambench reads DRAM before and after the measurement."""
_TOUCH_RATE = 1.0e9
"""Rate in B/s at which one thread writes newly allocated memory."""


class RamBench(common.Kernel):
    """rambench.

    - RS, WS, RWS, RR, WR, RWR, TRIAD: B/s, in the variants ``block`` and ``pool``; writes also in
      ``pool-temporal``.
    - LAT: seconds of a dependent load, without variants.
    - Matrices and curves (``catalogue.SHAPES``): several rows in one execution.
    """

    name = "rambench"
    rows = (
        Coverage("memory", ("RS", "RR"), variants=("block", "pool")),
        Coverage("memory", WRITING, variants=("block", *POOLS)),
        Coverage("memory", ("LAT", *(name for name in SHAPES if name not in LADDERS))),
        Coverage("memory", tuple(LADDERS), variants=PAGES, per_concurrency=False),
    )

    def check(self, cell: Cell) -> None:
        super().check(cell)
        # A word such as ``cores`` becomes the number of threads only on the node.
        if cell.workload == "LOADED" and cell.concurrency < 2 and not cell.word:
            raise Unavailable(
                f"{self.name} needs 2 threads or more for LOADED:"
                " one measures the latency, the others load the memory",
                "use cores or 2",
            )
        if cell.workload in SHAPES:
            return  # matrices and curves have no block and no fixed amount of work
        if cell.workload == "TRIAD" and store_of(cell) == "libc":
            raise Unavailable(
                "the C library has no triad, so that TRIAD cannot be measured with store: libc",
                "set store: temporal or streaming",
            )
        block = block_of(cell)
        common.need_multiple(self.name, LINE, block)
        # Each thread must pass over its buffers at least once.
        common.need_share(cell, "total", least=buffers(cell) * block)
        common.need_share(cell, "accesses", least=1)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        common.need_memory(self.name, self.estimate(cell).memory_bytes, workspace)
        # Build the command of a matrix or curve.
        if cell.workload in SHAPES:
            argv = [tool.path, "--workload", cell.workload]
            argv += common.flags(cell, "pairs", "steps")
            # The variant of a ladder selects the kind of pages.
            if cell.workload in LADDERS:
                argv += ["--huge-pages", "on" if cell.variant == "huge" else "off"]
            if cell.workload == "NUMA-WS":
                argv += common.flags(cell, "store")
            # C2C only moves cache lines between cores, and has no pool.
            if cell.workload != "C2C":
                argv += ["--pool", str(pool_of(cell)), *self.work_option(cell, "total")]
            return self.command(cell, [*argv, *self.common_options(cell, workspace)])
        # Build the command of a single row.
        words = f"--workload {cell.workload} --block {block_of(cell)}"
        if cell.workload == "LAT":
            argv = [*self.work_option(cell, "accesses"), *common.flags(cell, "stride")]
        else:
            pool = "block" if cell.variant == "block" else str(pool_of(cell))
            words += f" --pool {pool}"
            argv = [*self.work_option(cell, "total")]
        argv += self.common_options(cell, workspace)
        # Without this option, rambench chooses by the rule of ``store_of``, if the CPU has streaming stores.
        if cell.workload in WRITING and ("store" in cell.options or cell.variant == POOL_TEMPORAL):
            argv += ["--store", store_of(cell)]
        argv = [tool.path, *words.split(), *argv]
        return self.command(cell, argv)

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        output = self.read(cell, done)
        # 1 ms is ten thousand times the latency of DRAM.
        if cell.workload == "LAT" and output.number("value") > 1e-3:
            raise ParseError(f"rambench: {output['value']:g} s for one load is not possible")
        # A curve or matrix also gives rows of its own, such as one for each cache level.
        if cell.workload in SHAPES:
            return self.parsed(cell, output, *_rows(cell, output))
        return self.parsed(cell, output)

    def estimate(self, cell: Cell) -> Cost:
        """Return the cost of a cell: its seconds and bytes depend on what rambench measures."""
        if cell.workload == "C2C":
            return _cost_of_cpu_pairs(cell)
        if cell.workload in LADDERS:
            clock_s = common.clock_s(cell, "total", WARMUP_S)
            return Cost(fixed_s=START_S + clock_s, work_s=LADDER_S, memory_bytes=pool_of(cell))
        if cell.workload in NUMA:
            return _cost_of_numa_pairs(cell)
        if cell.workload == "LOADED":
            return _cost_of_loaded(cell)
        return _cost_of_single_row(cell)


def _cost_of_cpu_pairs(cell: Cell) -> Cost:
    """Return the cost of C2C, which measures pairs of CPUs."""
    pairs = min(math.comb(cell.concurrency, 2), MOST_PAIRS)
    return Cost(fixed_s=START_S + pairs * PAIR_S, memory_bytes=cell.concurrency * THREAD_BYTES)


def _cost_of_numa_pairs(cell: Cell) -> Cost:
    """Return the cost of a NUMA matrix with ``MOST_NUMA_PAIRS`` pairs of NUMA nodes."""
    pairs_s = max(common.seconds_of(cell), MOST_NUMA_PAIRS * NUMA_PAIR_S)
    memory = pool_of(cell)
    fixed_s = START_S + common.warmup_of(cell, WARMUP_S) + pairs_s
    # Add ``pairs_s`` again, because the threads of each pair first run for a while without measuring.
    return Cost(fixed_s=fixed_s, work_s=memory / _TOUCH_RATE + pairs_s, memory_bytes=memory)


def _cost_of_loaded(cell: Cell) -> Cost:
    """Return the cost of LOADED, which measures the latency for several mixes and rates of traffic.

    A mix is a percentage of reads in the traffic. For each mix, the latency without traffic is
    measured too.
    """
    # rambench divides the cell's time in the same way.
    points = MIXES * (1 + RATES)
    point_s = max(LOADED_POINT_S, LOADED_SHARE * common.seconds_of(cell))
    fixed_s = START_S + common.warmup_of(cell, WARMUP_S) + points * point_s
    memory = 3 * pool_of(cell)  # the source, the copy, and an area of at most that size
    return Cost(fixed_s=fixed_s, work_s=memory / _TOUCH_RATE, memory_bytes=memory)


def _cost_of_single_row(cell: Cell) -> Cost:
    """Return the cost of a row that is neither a matrix nor a curve."""
    # A pool is shared by all buffers of all threads. Each buffer has at least one block.
    memory = buffers(cell) * block_of(cell) * cell.concurrency
    if cell.variant in POOLS:
        memory = max(memory, pool_of(cell))
    if cell.workload == "LAT":
        key, rate = "accesses", cell.concurrency / _CAUTIOUS_LOAD_S
    else:
        key, rate = "total", _CAUTIOUS_THROUGHPUT * min(cell.concurrency, _CAUTIOUS_THREADS)
    fixed_s = START_S + common.clock_s(cell, key, WARMUP_S)
    # Before and after a measurement in DRAM, rambench probes the rate of DRAM. Pools are in DRAM, areas of LAT may be.
    if cell.variant in POOLS or cell.workload == "LAT":
        fixed_s += _PROBES_S
    return Cost(
        fixed_s=fixed_s,
        work_s=memory / _TOUCH_RATE + (common.amount(cell, key) or 0.0) / rate,
        memory_bytes=memory + cell.concurrency * THREAD_BYTES,
    )


def _rows(cell: Cell, output: Output) -> Iterator[Measurement]:
    """Yield the rows of a matrix or curve, each with its points.

    Raises:
        ParseError: a row lacks a value, its points or its variant.
    """
    metric = SHAPES[cell.workload]
    # Only C2C prints ``order``: the CPUs of its threads, first to last.
    shared = {**common.details(output), "order": output.get("order")}
    for keys in output["rows"]:
        row = Output(output.program, keys)
        details = {**shared, **common.details(row), "points": row["points"]}
        measurement = Measurement.of(cell, metric, row.number("value"), details)
        measurement.variant = row["variant"]
        measurement.block = row.get("block")
        yield measurement


def block_of(cell: Cell) -> int:
    """Return the bytes of a block; for LAT, the bytes of the area that each thread walks.

    Until a node has chosen an automatic area, ``POOL`` is assumed. Errors: ConfigError if the cell has no block.
    """
    if cell.automatic and cell.workload == "LAT":
        return POOL if cell.area is None else cell.area
    return common.needed_block(cell)


def buffers(cell: Cell) -> int:
    """Return the number of buffers of a thread: two for copies, three for the triad, one for all others."""
    return ARRAYS.get(cell.workload, 1)


def pool_of(cell: Cell) -> int:
    """Return the bytes of the pool, which holds all buffers of all threads; ``POOL`` if the cell sets no bytes."""
    if cell.options.get("pool") == AUTO:
        return POOL
    return common.option_size(cell, "pool") or POOL


def store_of(cell: Cell) -> str:
    """Return how a cell writes: temporal, streaming or libc.

    It is always temporal for the variant ``POOL_TEMPORAL``. Otherwise the option ``store`` decides; by default, pools
    are written with streaming stores and blocks with temporal ones.
    """
    if cell.variant == POOL_TEMPORAL:
        return "temporal"
    if cell.options.get("store"):
        return str(cell.options["store"])
    if cell.variant == "pool":
        return "streaming"
    return "temporal"


INSTRUMENT = RamBench()
