"""likwid-bench: an independent measurement of the floating-point peak and of sequential memory
access.

A size is the total of all vectors of all threads. Sizes below 2^31 are given in bytes (suffix B),
larger ones in its kB of 1000 B. A size that does not fit the kernel's stride is cut.

It spends one second on calibrating its clock. With ``-s`` it repeats the test until it is long
enough, which takes three to four times as long. So peakmark chooses the number of iterations by a
guess of the rate: a run lasts between a fifth and four times the cell's seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from peakmark.catalogue import POOLS
from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import base, common
from peakmark.tools.base import (
    Completed,
    Cost,
    Coverage,
    Instrument,
    Invocation,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.tools.common import Output
from peakmark.tools.programs.rambench import WRITING, buffers, pool_of, store_of

# Of one thread: lies in every first-level cache; a peakflops kernel loads once per 15 to 30 flops.
_PEAK_BYTES = 16 << 10
_STARTUP_S = 1.1
"""Seconds before the test: likwid-bench calibrates its clock for one."""
_SHORT_S = 0.1
"""Seconds below which a run is too short to be trusted."""
_LINE = re.compile(r"^([A-Z][A-Za-z()/ .]*?):\s+(\S+)(?: sec)?$", re.MULTILINE)
_RULE = "-" * 80
_RESULTS = {
    "cpu": ("rate", "Number of Flops", "MFlops/s"),
    "memory": ("throughput", "Data volume (Byte)", "MByte/s"),
}
"""Subsystem -> metric, and the lines with the work and with its rate."""
_KERNELS = {"DP": "peakflops", "FP32": "peakflops_sp", "RS": "load", "WS": "store", "RWS": "copy"}


@dataclass(frozen=True)
class _Isa:
    """An instruction set of likwid-bench.

    name    its name for the option ``isa``
    needs   flags that the CPU must have
    suffix  suffix of likwid's kernels
    flops   flop/s of one core in double precision, used only to choose the number of iterations
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
    _Isa("sve", frozenset({"sve512"}), "_sve512_fma", 30e9),
    _Isa("sve", frozenset({"sve512"}), "_sve512", 30e9),
    _Isa("sve", frozenset({"sve256"}), "_sve256_fma", 20e9),
    _Isa("sve", frozenset({"sve256"}), "_sve256", 20e9),
    _Isa("neon", frozenset({"neon"}), "_neon_fma", 15e9),
    _Isa("sve", frozenset({"sve128"}), "_sve128_fma", 15e9),
    _Isa("neon", frozenset({"neon"}), "_neon", 15e9),
    _Isa("sve", frozenset({"sve128"}), "_sve128", 15e9),
    # Arm's scalar multiply-adds need no instruction set of their own; on x86 there is no such kernel.
    _Isa("scalar", frozenset({"neon"}), "_fma", 6e9),
    _Isa("scalar", frozenset(), "", 6e9),
)
"""Instruction sets from the fastest to the slowest."""
_SVE_LENGTH = Path("/proc/sys/abi/sve_default_vector_length")
"""File of the kernel with the bytes of an SVE vector that a process gets."""
_SVE_BITS = {"A64FX": 512, "Neoverse V1": 256, "Neoverse V2": 128, "Neoverse N2": 128}
"""Design -> bits of its vectors by Arm's and Fujitsu's manuals, where the kernel tells no length."""


@dataclass(frozen=True)
class Execution:
    """One run: kernel, bytes of all vectors of all threads, passes of each thread over its part."""

    test: str
    size: int
    iterations: int


class LikwidBench(Instrument):
    """cpu DP FP32 in op/s; memory RS WS RWS in B/s, variants ``block`` and ``pool``, stores as
    rambench's.
    """

    name = "likwid-bench"
    rows = (
        Coverage("cpu", ("DP", "FP32")),
        Coverage("memory", ("RS", "WS", "RWS"), variants=("block", *POOLS)),
    )
    place = 2
    package = "likwid"
    fedora = "likwid"
    opensuse = "likwid"
    spack = "likwid"
    build = (
        "git clone https://github.com/RRZE-HPC/likwid && cd likwid && make PREFIX=$HOME/likwid"
        " ACCESSMODE=perf_event BUILDDAEMON=false BUILDFREQ=false INSTALL_CHOWN= all install"
    )
    homes = ("https://github.com/RRZE-HPC/likwid",)
    version = ("-v", r"Version\s+([0-9][0-9.]*)")
    options = ("seconds",)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        size_of(cell)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        common.need_memory(self.name, size_of(cell), workspace)
        offered = re.findall(r"^(\w+) - ", base.ask(tool.path, "-a"), re.MULTILINE)
        design = workspace.cpu.get("microarchitecture")
        flags = workspace.isa | vector_length(_SVE_LENGTH, design)
        run = plan(cell, frozenset(offered), flags)
        size = f"{run.size}B"
        if run.size >= 1 << 31:  # A plain number does not fit: the next kB.
            size = f"{-(-run.size // 1000)}kB"
        # -W: each thread touches its own part first, so that it lies in its NUMA node.
        words = f"-t {run.test} -W N:{size}:{cell.concurrency} -i {run.iterations}"
        argv = [*common.pinned(workspace, cell.concurrency), tool.path, *words.split()]
        return Invocation(self.command(cell, argv))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        output = read_output(done.stdout)
        if output["Test"] not in done.argv:
            raise ParseError(f"likwid-bench ran {output['Test']}, which was not asked for")
        if f"\nUsing {cell.concurrency} threads\n" not in done.stdout:
            raise ParseError(f"likwid-bench did not use {cell.concurrency} threads")
        seconds, size = output.number("Time"), output.whole("Size (Byte)")
        metric, *names = _RESULTS[cell.subsystem]
        work, rate = map(output.number, names)
        common.agree(work / seconds, rate * 1e6, 1e-3, "likwid-bench: rate")
        warnings = [*common.crowded(done.argv, cell.concurrency)]
        if seconds < _SHORT_S:
            warnings.append(f"likwid-bench ran for less than {_SHORT_S} s: set a longer time")
        warnings += narrow(cell, output["Test"])
        wanted = size_of(cell)
        if abs(size - wanted) > 0.05 * wanted:
            warnings.append(
                f"likwid-bench measured {size} B, not the {wanted} B of the cell: its kernel's stride does not fit"
            )
        details = {"routine": output["Test"], "seconds": seconds, "working_set": size, "work": work}
        row = Measurement.of(cell, metric, work / seconds, details)
        return Parsed((row,), warnings=tuple(warnings))

    def estimate(self, cell: Cell) -> Cost:
        size = size_of(cell)
        return Cost(
            fixed_s=_STARTUP_S + 2 * common.seconds_of(cell),
            work_s=size / 1e9,
            memory_bytes=size + (16 << 20),
        )


def size_of(cell: Cell) -> int:
    """Return the bytes of all vectors of all threads, as rambench uses them for the same cell."""
    if cell.subsystem == "cpu":
        return _PEAK_BYTES * cell.concurrency
    if cell.variant in POOLS:
        return pool_of(cell)
    return buffers(cell) * common.needed_block(cell) * cell.concurrency


def plan(cell: Cell, offered: frozenset[str], flags: frozenset[str]) -> Execution:
    """Return kernel, size and iterations. Raise Unavailable when likwid-bench offers no kernel for
    this CPU.
    """
    stem, store = _KERNELS[cell.workload], ""
    if cell.workload in WRITING:
        store = store_of(cell)
    if store == "libc":
        raise Unavailable(
            "likwid-bench has no memcpy or memset", "set store: temporal or streaming"
        )
    if store == "streaming":
        stem += "_mem"
    wanted = cell.options.get("isa") or "auto"
    for isa in _ISAS:
        possible = isa.needs <= flags and stem + isa.suffix in offered
        if possible and wanted in ("auto", isa.name):
            size = size_of(cell)
            seconds = _pass_s(cell, isa, size / cell.concurrency)
            least = 2 if seconds > _SHORT_S else 10
            passes = max(least, round(common.seconds_of(cell) / seconds))
            return Execution(stem + isa.suffix, size, passes)
    raise Unavailable(
        f"likwid-bench has no routine {stem} for instruction set {wanted} on this CPU"
    )


def vector_length(file: Path, design: str | None) -> frozenset[str]:
    """Return the length of SVE vectors as a flag such as ``sve512``; nothing where neither the
    kernel's ``file`` nor the core's design tells it.

    A kernel of likwid-bench is written for one length: with another one it counts operations that
    were not done.
    """
    try:
        bits: int | None = 8 * int(file.read_text())
    except (OSError, ValueError):
        bits = _SVE_BITS.get(design or "")
    if not bits:
        return frozenset()
    return frozenset({f"sve{bits}"})


def narrow(cell: Cell, test: str) -> list[str]:
    """Return a warning where the best offered kernel is far slower than the CPU. Before 5.3
    likwid-bench has no NEON kernel for Arm, and some builds have no fused one.
    """
    best = next((isa for isa in _ISAS if isa.suffix and test.endswith(isa.suffix)), _ISAS[-1])
    if best.name == "scalar" and cell.options.get("isa") != "scalar":
        return [
            f"likwid-bench has no vector kernel for this CPU: {test} is scalar, far below what the CPU can do"
        ]
    if cell.subsystem == "cpu" and best.name in ("neon", "sve") and not test.endswith("_fma"):
        return [
            f"likwid-bench has no fused multiply-add for this CPU: {test} reaches at most half of what the CPU can do"
        ]
    return []


def _pass_s(cell: Cell, isa: _Isa, share: float) -> float:
    """Return a guess of the seconds of a thread's pass over its ``share`` of bytes."""
    if cell.subsystem == "cpu":
        element = 4 if cell.workload == "FP32" else 8
        flops = 30 if isa.suffix.endswith("_fma") else 16
        return share / element * flops / (isa.flops * 8 / element)
    for cache, rate in ((48 << 10, 120e9), (1 << 20, 60e9), (4 << 20, 30e9)):
        if share <= cache:
            return share / rate
    return share / min(15e9, 100e9 / cell.concurrency)


def read_output(text: str) -> Output:
    """Return the ``Key: value`` lines of a whole run. Raise ParseError when the run did not come to
    its end.
    """
    output = Output("likwid-bench", dict(_LINE.findall(text)))
    if "Test" not in output:
        raise ParseError(f"likwid-bench did not start its test: {common.excerpt(text)}")
    end = text.rfind("UOPs:")
    if end < 0 or _RULE not in text[end:]:
        raise ParseError("likwid-bench did not come to its end: its output is cut")
    return output


INSTRUMENT = LikwidBench()
