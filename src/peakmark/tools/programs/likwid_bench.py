"""likwid-bench: an independent measurement of the floating-point peak and of sequential memory
access.

A size given to it is the total of all vectors of all threads. It is given in plain bytes (suffix
B), of which it reads numbers below 2^31 only, larger ones in its kB of 1000 B; a size that does not
fit the kernel's stride is cut. Its fixed cost is one second for calibrating its clock; with ``-s``
it repeats the test until it is long enough, three to four times that long in all. So the number of
iterations is given instead, from a guess of the rate: a run lasts between a fifth and four times
the asked seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from peakmark.catalogue.workloads import POOLS
from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.reasons import Unavailable
from peakmark.tools import common
from peakmark.tools.base import (
    Completed,
    Cost,
    Coverage,
    Invocation,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.tools.programs.rambench import buffers, pool_of, store_of, writes

# Of one thread: lies in every first-level cache; a peakflops kernel loads once per 15 to 30 flops.
_PEAK_BYTES = 16 << 10
_STARTUP_S = 1.1
_SHORT_S = 0.1
_LINE = re.compile(r"^([A-Z][A-Za-z()/ .]*?):\s+(\S+)(?: sec)?$", re.MULTILINE)
_RULE = "-" * 80
# Subsystem -> metric, unit, and where the output has the work and its rate.
_RESULTS = {
    "cpu": ("rate", "op/s", "Number of Flops", "MFlops/s"),
    "memory": ("throughput", "B/s", "Data volume (Byte)", "MByte/s"),
}

# Instruction sets from the best to the plainest: (what the CPU must have, suffix of likwid's
# kernels, name for --isa).
_SUFFIXES: tuple[tuple[frozenset[str], str, str], ...] = (
    (frozenset({"avx512f", "fma"}), "_avx512_fma", "avx512"),
    (frozenset({"avx512f"}), "_avx512", "avx512"),
    (frozenset({"avx2", "fma"}), "_avx_fma", "avx2"),
    (frozenset({"avx"}), "_avx", "avx2"),
    (frozenset({"sse2"}), "_sse", "sse2"),
    (frozenset({"neon"}), "_neon", "neon"),
    (frozenset(), "", "scalar"),
)
_KERNELS = {"DP": "peakflops", "FP32": "peakflops_sp", "RS": "load", "WS": "store", "RWS": "copy"}
# flop/s of one core per kernel suffix in double precision, for the number of iterations only.
_FLOPS = {
    "_avx512_fma": 80e9,
    "_avx512": 40e9,
    "_avx_fma": 45e9,
    "_avx": 30e9,
    "_sse": 12e9,
    "_neon": 15e9,
    "": 6e9,
}


@dataclass(frozen=True)
class Execution:
    """What is run: kernel, bytes of all vectors of all threads, passes of each thread over its
    part.
    """

    test: str
    size: int
    iterations: int


class LikwidBench(common.Instrument):
    """cpu DP FP32 in op/s; memory RS WS RWS in B/s, variants ``block`` and ``pool``, stores as
    rambench's.
    """

    name = "likwid-bench"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "cpu": ("DP", "FP32"),
        "memory": ("RS", "WS", "RWS"),
    }
    executables = ("likwid-bench",)
    package = "likwid"
    heading = "likwid-bench"
    rows = (
        Coverage("cpu", ("DP", "FP32")),
        Coverage("memory", ("RS", "WS", "RWS"), variants=("block", *POOLS)),
    )
    options = ("seconds",)
    columns: ClassVar[Mapping[str, int]] = {"cpu": 2, "memory_throughput": 2}
    homes: ClassVar[Mapping[str, str]] = {"likwid-bench": "https://github.com/RRZE-HPC/likwid"}
    version = ("-v", r"Version\s+([0-9][0-9.]*)")
    variants = ("", "block", *POOLS)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        common.need_variant(cell, cell.subsystem == "memory")
        size_of(cell)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        size = size_of(cell)
        common.need_memory(self.name, size, workspace)
        offered = frozenset(re.findall(r"^(\w+) - ", common.ask(tool.path, "-a"), re.MULTILINE))
        run = plan(cell, offered, common.isa_flags(workspace))
        argv = (
            *common.pinned(workspace, cell.concurrency),
            tool.path,
            *("-t", run.test),
            # -W: each thread touches its own part first, so that it lies in its NUMA node.
            *("-W", f"N:{_written(run.size)}:{cell.concurrency}"),
            *("-i", str(run.iterations)),
        )
        return Invocation(self.command(cell, argv))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        values = read_output(done.stdout)
        test = values["Test"]
        if test not in done.argv:
            raise ParseError(f"likwid-bench ran {test}, which was not asked for")
        threads = re.search(r"^Using (\d+) threads$", done.stdout, re.MULTILINE)
        if threads is None or int(threads.group(1)) != cell.concurrency:
            raise ParseError(f"likwid-bench did not use {cell.concurrency} threads")
        seconds = common.number(values["Time"], "likwid-bench: Time")
        size = common.whole(values["Size (Byte)"], "likwid-bench: Size")
        metric, unit, *fields = _RESULTS[cell.subsystem]
        work, rate = (common.number(values[field], f"likwid-bench: {field}") for field in fields)
        common.agree(work / seconds, rate * 1e6, 1e-3, "likwid-bench: rate")
        warnings = list(common.crowded(done.argv, cell.concurrency))
        if seconds < _SHORT_S:
            warnings.append(
                f"likwid-bench ran for {seconds:.3f} s only, less than {_SHORT_S} s: set a longer time"
            )
        asked = size_of(cell)
        if abs(size - asked) > 0.05 * asked:
            warnings.append(
                f"likwid-bench measured {size} B, not the {asked} B of the cell: its kernel's stride does not fit"
            )
        details = {"routine": test, "seconds": seconds, "working_set": size, "work": work}
        row = Measurement.of(cell, metric, work / seconds, unit, details)
        return Parsed((row,), warnings=tuple(warnings))

    def estimate(self, cell: Cell) -> Cost:
        size = size_of(cell)
        fixed = _STARTUP_S + 2 * common.seconds_of(cell)
        return Cost(seconds=fixed + size / 1e9, memory_bytes=size + (16 << 20), fixed_s=fixed)


def size_of(cell: Cell) -> int:
    """Bytes of all vectors of all threads: what rambench works on with the same cell."""
    if cell.subsystem == "cpu":
        return _PEAK_BYTES * cell.concurrency
    if cell.variant in POOLS:
        return pool_of(cell)
    return buffers(cell) * common.needed_block(cell) * cell.concurrency


def _written(size: int) -> str:
    """Bytes as likwid-bench reads them, rounded up to the next kB where a plain number would not
    fit.
    """
    return f"{size}B" if size < 1 << 31 else f"{-(-size // 1000)}kB"


def plan(cell: Cell, offered: frozenset[str], flags: frozenset[str]) -> Execution:
    """Kernel, size and iterations. Errors: Unavailable when likwid-bench offers no kernel for this
    CPU.
    """
    store = store_of(cell) if writes(cell.workload) else ""
    if store == "libc":
        raise Unavailable("store-libc", program="likwid-bench")
    stem = _KERNELS[cell.workload] + ("_mem" if store == "streaming" else "")
    wanted = cell.options.get("isa")
    for needs, suffix, isa in _SUFFIXES:
        allowed = wanted in (None, "auto", isa)
        if allowed and needs <= flags and stem + suffix in offered:
            size = size_of(cell)
            share = size / cell.concurrency
            if cell.subsystem == "cpu":
                element = 4 if cell.workload == "FP32" else 8
                flops = 30 if suffix.endswith("_fma") else 16
                seconds = share / element * flops / (_FLOPS[suffix] * 8 / element)
            else:
                seconds = share / _bandwidth(share, cell.concurrency)
            least = 2 if seconds > _SHORT_S else 10
            return Execution(
                stem + suffix, size, max(least, round(common.seconds_of(cell) / seconds))
            )
    raise Unavailable("routine", program="likwid-bench", routine=stem, isa=str(wanted or "auto"))


def _bandwidth(share: float, threads: int) -> float:
    """B/s of one thread that works on ``share`` bytes: a guess for the number of iterations, by
    cache level.
    """
    for limit, guess in ((48 << 10, 120e9), (1 << 20, 60e9), (4 << 20, 30e9)):
        if share <= limit:
            return guess
    return min(15e9, 100e9 / threads)


def read_output(text: str) -> Mapping[str, str]:
    """The ``Key: value`` lines of a whole run. Errors: ParseError when the run did not come to its
    end.
    """
    values = dict(_LINE.findall(text))
    if "Test" not in values:
        raise ParseError(f"likwid-bench did not start its test: {common.excerpt(text)}")
    end = text.rfind("UOPs:")
    if end < 0 or _RULE not in text[end:]:
        raise ParseError("likwid-bench did not come to its end: its output is cut")
    for key in (
        "Time",
        "Size (Byte)",
        "Number of Flops",
        "MFlops/s",
        "Data volume (Byte)",
        "MByte/s",
    ):
        if key not in values:
            raise ParseError(f"likwid-bench: {key} is missing in its output")
    return values


INSTRUMENT = LikwidBench()
