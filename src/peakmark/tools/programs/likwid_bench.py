"""likwid-bench, which measures the peak of floating-point operations and sequential memory access.

The size is the total of all vectors of all threads. Sizes below 2^31 are passed in bytes (suffix B),
larger sizes in kB of 1000 B. likwid-bench reduces a size that does not fit the stride of its kernel.

likwid-bench calibrates its clock for one second. Its option ``-s`` sets a time, but then the program
takes three to four times this time. peakmark therefore passes a number of iterations, computed from a
guessed rate. A run lasts between half and six times the cell's seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from peakmark.catalogue import POOLS
from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import base, common
from peakmark.tools.base import (
    Command,
    Completed,
    Cost,
    Coverage,
    Instrument,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.tools.common import Output
from peakmark.tools.programs.rambench import WRITING, buffers, pool_of, store_of

_PEAK_BYTES = 16 << 10
"""Bytes of one thread's vectors for cpu workloads, which fit every first-level cache.

A peakflops kernel loads once per 15 to 30 operations.
"""
_STARTUP_S = 1.1
"""Seconds that likwid-bench takes to start, one of them to calibrate its clock."""
_SHORT_S = 0.1
"""Shortest run, in seconds, with a reliable rate.

If even a single pass takes longer, two passes are enough.
"""
# A line with a result: its name and its value.
_LINE = re.compile(r"^([A-Z][A-Za-z()/ .]*?):\s+(\S+)(?: sec)?$", re.MULTILINE)
_RULE = "-" * 80  # the last line of the output
_RESULTS = {
    "cpu": ("rate", "Number of Flops", "MFlops/s"),
    "memory": ("throughput", "Data volume (Byte)", "MByte/s"),
}
"""Subsystem -> metric, name of the line with the work, and name of the line with the rate."""
_KERNELS = {
    "DP": "peakflops",
    "FP32": "peakflops_sp",
    "RS": "load",
    "WS": "store",
    "RWS": "copy",
    "TRIAD": "stream",  # its triad has a fourth array
}
"""Workload -> start of the names of its kernels in likwid-bench."""


@dataclass(frozen=True)
class _Isa:
    """An instruction set of likwid-bench.

    Attributes:
        name: value of the configuration's key ``isa``.
        needs: flags that the CPU must have.
        suffix: suffix of the names of likwid-bench's kernels.
        flops: guessed flop/s of one core in double precision, from which the number of iterations is
            computed.
    """

    name: str
    needs: frozenset[str]
    suffix: str
    flops: float


_ISAS = (
    _Isa("avx512", frozenset({"avx512f", "fma"}), "_avx512_fma", 80e9),
    _Isa("avx512", frozenset({"avx512f"}), "_avx512", 40e9),
    _Isa("avx2", frozenset({"avx2", "fma"}), "_avx_fma", 45e9),
    _Isa("avx2", frozenset({"avx"}), "_avx", 30e9),
    _Isa("sse2", frozenset({"sse2"}), "_sse", 12e9),
    _Isa("neon", frozenset({"neon"}), "_neon_fma", 15e9),
    _Isa("neon", frozenset({"neon"}), "_neon", 15e9),
    # Only builds for POWER offer kernels with VSX, and Linux shows no flags there.
    _Isa("vsx", frozenset(), "_vsx4_fma", 15e9),
    _Isa("vsx", frozenset(), "_vsx4", 15e9),
    # On Arm, scalar multiply-adds belong to the base instructions. likwid-bench has none for x86.
    _Isa("scalar", frozenset({"neon"}), "_fma", 6e9),
    _Isa("scalar", frozenset(), "", 6e9),
)
"""Instruction sets, the fastest first.

Kernels for SVE are left out, because each counts its operations for one vector length, and the
count is wrong on CPUs with another.
"""


@dataclass(frozen=True)
class Execution:
    """Parameters of one run of likwid-bench.

    Attributes:
        test: name of the kernel of likwid-bench.
        size: total bytes of all vectors of all threads.
        iterations: number of passes of each thread over its part.
    """

    test: str
    size: int
    iterations: int


class LikwidBench(Instrument):
    """likwid-bench.

    - cpu DP and FP32: op/s.
    - memory RS, WS, RWS and TRIAD: B/s, in blocks and pools, with the same kind of stores as rambench.
    """

    name = "likwid-bench"
    rows = (
        Coverage("cpu", ("DP", "FP32")),
        Coverage("memory", ("RS", "WS", "RWS", "TRIAD"), variants=("block", *POOLS)),
    )
    place = 2
    package = "likwid"
    spack = "likwid"
    build = (
        "git clone https://github.com/RRZE-HPC/likwid && cd likwid && make PREFIX=$HOME/likwid"
        " ACCESSMODE=perf_event BUILDDAEMON=false BUILDFREQ=false INSTALL_CHOWN= all install"
    )
    version = ("-v", r"Version\s+([0-9][0-9.]*)")
    options = ("seconds",)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        size_of(cell)  # raises an error if the cell has no block, or no valid pool

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        common.need_memory(self.name, size_of(cell), workspace)
        listed = base.ask(tool.path, "-a")  # a line for each kernel: NAME - DESCRIPTION
        offered = re.findall(r"^(\w+) - ", listed, re.MULTILINE)
        run = plan(cell, frozenset(offered), workspace.isa)
        size = f"{run.size}B"
        if run.size >= 1 << 31:  # too large for a size in bytes: round up to kB
            size = f"{-(-run.size // 1000)}kB"
        # With -W each thread initialises its part, so that the part is on the thread's NUMA node.
        words = f"-t {run.test} -W N:{size}:{cell.concurrency} -i {run.iterations}"
        argv = [*common.pinned(workspace, cell.concurrency), tool.path, *words.split()]
        return self.command(cell, argv)

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        # Check that likwid-bench ran the requested kernel with the cell's threads.
        output = read_output(done.stdout)
        if output["Test"] not in done.argv:
            raise ParseError(f"likwid-bench ran {output['Test']}, which was not asked for")
        if f"\nUsing {cell.concurrency} threads\n" not in done.stdout:
            raise ParseError(f"likwid-bench did not use {cell.concurrency} threads")
        seconds = output.number("Time")
        size = output.whole("Size (Byte)")
        # Compute the rate from work and time, and check it against the printed one.
        metric, *names = _RESULTS[cell.subsystem]
        work, rate = map(output.number, names)
        common.agree(work / seconds, rate * 1e6, 1e-3, "likwid-bench: rate")
        warnings: list[str] = []
        if seconds < _SHORT_S:
            warnings.append(f"likwid-bench ran for less than {_SHORT_S} s: set a longer time")
        warnings += narrow(cell, output["Test"])
        wanted = size_of(cell)
        if abs(size - wanted) > 0.05 * wanted:
            warnings.append(
                f"likwid-bench measured {size} B instead of the cell's {wanted} B, which do not fit its kernel's stride"
            )
        details = {"routine": output["Test"], "seconds": seconds, "working_set": size, "work": work}
        row = Measurement.of(cell, metric, work / seconds, details)
        return Parsed((row,), warnings=tuple(warnings))

    def estimate(self, cell: Cell) -> Cost:
        size = size_of(cell)
        # The run lasts for a number of iterations, and often longer than the cell's seconds.
        return Cost(
            fixed_s=_STARTUP_S + 2 * common.seconds_of(cell),
            work_s=size / 1e9,  # to initialise the vectors
            memory_bytes=size + (16 << 20),
        )


def size_of(cell: Cell) -> int:
    """Return the total bytes of all vectors of all threads, the same as rambench uses for the cell."""
    if cell.subsystem == "cpu":
        return _PEAK_BYTES * cell.concurrency
    if cell.variant in POOLS:
        return pool_of(cell)
    return buffers(cell) * common.needed_block(cell) * cell.concurrency


def plan(cell: Cell, offered: frozenset[str], flags: frozenset[str]) -> Execution:
    """Choose the fastest kernel for this CPU, the size and the iterations.

    Args:
        cell: the cell.
        offered: names of the kernels that likwid-bench has.
        flags: instruction sets of the CPU.

    Raises:
        Unavailable: likwid-bench has no kernel for this cell on this CPU.
    """
    # ``store`` stays empty for workloads that do not write.
    stem, store = _KERNELS[cell.workload], ""
    if cell.workload in WRITING:
        store = store_of(cell)
    if store == "libc":
        raise Unavailable(
            "likwid-bench has no memcpy or memset", "set store: temporal or streaming"
        )
    if store == "streaming":
        stem += "_mem"
        # On POWER, only kernels with VSX write without reading: ``store_mem`` has ordinary stores.
        if any(name.endswith("_vsx4") for name in offered):
            offered -= {stem}
    wanted = cell.options.get("isa") or "auto"
    for isa in _ISAS:  # the fastest first
        test = stem + isa.suffix
        if isa.name == "vsx":
            test = _on_power(test)
        possible = isa.needs <= flags and test in offered
        if possible and wanted in ("auto", isa.name):
            size = size_of(cell)
            pass_s = _pass_s(cell, isa, size / cell.concurrency)
            # With ten passes the first one weighs little. Two suffice if a pass is long.
            least = 2 if pass_s > _SHORT_S else 10
            passes = max(least, round(common.seconds_of(cell) / pass_s))
            return Execution(test, size, passes)
    raise Unavailable(
        f"likwid-bench has no routine {stem} for instruction set {wanted} on this CPU"
    )


def _on_power(test: str) -> str:
    """Return the name of a kernel in likwid's folder for POWER.

    It is ``copy_vsx4_mem`` for ``copy_mem_vsx4``, and ``stream_triad_vsx4`` for ``stream_vsx4``.
    """
    name = re.sub(r"^(\w+)_mem(_vsx4)$", r"\1\2_mem", test)
    return name.replace("stream_", "stream_triad_")


def narrow(cell: Cell, test: str) -> list[str]:
    """Return a warning if the kernel that ran is far slower than the CPU could be; else an empty list.

    likwid-bench has no NEON kernels for Arm before version 5.3, and some builds lack fused
    multiply-adds.
    """
    # Find the instruction set of the kernel by its suffix. The last one has none.
    name = test.removesuffix("_mem")
    used = next((isa for isa in _ISAS if isa.suffix and name.endswith(isa.suffix)), _ISAS[-1])
    if used.name == "scalar" and cell.options.get("isa") != "scalar":
        return [
            f"likwid-bench has no vector kernel for this CPU: {test} is scalar, far below what the CPU can do"
        ]
    if cell.subsystem == "cpu" and used.name == "neon" and not test.endswith("_fma"):
        return [
            f"likwid-bench has no fused multiply-add for this CPU: {test} reaches at most half of what the CPU can do"
        ]
    return []


def _pass_s(cell: Cell, isa: _Isa, share_bytes: float) -> float:
    """Return the guessed seconds of one pass of a thread over its share of the cell's bytes."""
    if cell.subsystem == "cpu":
        element = 4 if cell.workload == "FP32" else 8
        # Operations of peakflops for each element that it loads.
        flops = 30 if isa.suffix.endswith("_fma") else 16
        # ``isa.flops`` is the rate for elements of 8 bytes. With 4 bytes, twice as many fit into a register.
        return share_bytes / element * flops / (isa.flops * 8 / element)
    # Guessed B/s of a core from L1, L2 and L3, by the size of each, and from DRAM that all threads share.
    for cache, rate in ((48 << 10, 200e9), (1 << 20, 100e9), (4 << 20, 60e9)):
        if share_bytes <= cache:
            return share_bytes / rate
    return share_bytes / min(15e9, 100e9 / cell.concurrency)


def read_output(text: str) -> Output:
    """Parse the ``Key: value`` lines of a run.

    Raises:
        ParseError: the run did not start, or its output is truncated.
    """
    output = Output("likwid-bench", dict(_LINE.findall(text)))
    if "Test" not in output:
        raise ParseError(f"likwid-bench did not start its test: {common.excerpt(text)}")
    # ``UOPs`` is the last result. A line of dashes follows it.
    end = text.rfind("UOPs:")
    if end < 0 or _RULE not in text[end:]:
        raise ParseError("likwid-bench did not finish: its output is truncated")
    return output


INSTRUMENT = LikwidBench()
