"""gpubench, peakmark's kernel that measures rates, memory, links and latencies of GPUs.

gpubench needs only the driver. It can also run functions of the vendor's libraries, which serve as
reference tools (``VendorLibrary``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from statistics import median
from typing import Any

from peakmark.catalogue import GPU_LINKS, GPU_RATES, MATRIX, SHAPES, SWEEPS, metrics
from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import common
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

RATES = ("FP64", "FP32", "FP16", "INT32", *MATRIX)
"""Workloads that compute."""

BLOCKS = (32, 1 << 20)
"""Bytes of the smallest and largest block. For a cell without a block, gpubench uses the fastest kind of access."""
_START_S = 1.0
"""Seconds in which the driver starts the GPUs and compiles a kernel."""
_SETTLE_S = 0.75
"""Seconds until the power of a GPU under full load is steady."""
_LADDER_S = 6.0
"""Seconds of LADDER-LAT on an H100."""
_HOST_BYTES = 1 << 30
"""Bytes of host memory for each GPU: pinned buffers, and memory of the driver."""
_L1_BYTES = 32 << 10
"""Largest working set in bytes that fits the L1 cache of every GPU."""


class GpuBench(common.Kernel):
    """gpubench.

    - FP64, FP32, FP16, INT32 and TC-*: op/s, sustained or burst.
    - RS, WS, RWS, RWR and LINK: B/s.
    - LAUNCH and LADDER-LAT: seconds.
    """

    name = "gpubench"
    rows: tuple[Coverage, ...] = (
        Coverage("gpu", RATES, variants=GPU_RATES),
        Coverage("gpu", (*SWEEPS, "LAUNCH", "LADDER-LAT")),
        Coverage("gpu", ("LINK",), variants=GPU_LINKS),
    )

    def check(self, cell: Cell) -> None:
        super().check(cell)
        if cell.block is not None:
            common.need_between(cell, "blocks", cell.block, *BLOCKS, in_bytes=True)
        # A word such as ``gpus`` becomes the number of GPUs only on the node.
        if cell.variant == "peer" and cell.concurrency < 2 and not cell.word:
            raise Unavailable(f"{self.name} needs 2 GPUs for peer", "use gpus or 2")

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        return self.command(cell, [tool.path, *self.arguments(cell)])

    def arguments(self, cell: Cell) -> list[str]:
        """Return gpubench's options for the cell."""
        gpus = ",".join(map(str, range(cell.concurrency)))
        argv = ["--workload", cell.workload, "--gpus", gpus]
        if cell.variant:
            argv += ["--variant", cell.variant]
        if cell.block is not None:
            argv += ["--block", str(cell.block)]
        argv += ["--seconds", common.plain(common.seconds_of(cell)), *self.warmup_option(cell)]
        return [*argv, *common.flags(cell, "seed")]

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        output = self.read(cell, done)
        # LAUNCH starts an empty kernel, which has no results to check.
        if output["checked"] is not True and cell.workload != "LAUNCH":
            raise ParseError(f"{self.name} did not check its results")
        shared = common.details(output)
        # ``clock_hz_loaded`` says that the clock was observed under the load of the row.
        clock = output.number_or_none("clock_hz")
        if clock:
            shared["clock_hz_loaded"] = clock
        if cell.workload in SHAPES:
            return self.parsed(cell, output, *_levels(cell, output, shared))
        # With several GPUs, the details also keep the values of each.
        gpus = [_values_of_gpu(gpu) for gpu in output["per_gpu"]]
        if len(gpus) > 1:
            shared["points"] = gpus
        (metric,) = metrics(cell.subsystem, cell.workload)
        row = Measurement.of(cell, metric, output.number("value"), shared)
        return self.parsed(cell, output, row)

    def check_rate(self, output: Output, value: float, rate: float) -> None:
        """Check that the value is the sum of the GPUs' rates.

        ``rate``, the work of all GPUs / time, may be lower than the sum, because some GPUs end before others.

        Raises:
            ParseError: the value is not the sum, or ``rate`` contradicts it.
        """
        gpus = [_values_of_gpu(gpu) for gpu in output["per_gpu"]]
        rates = [rate for _, rate, _ in gpus]
        common.agree(value, sum(rates), 1e-3, f"{self.name}: value")
        # For one GPU, ``rate`` must equal the value. For several, it must not be above the value.
        if len(rates) == 1 or rate > value:
            super().check_rate(output, value, rate)

    def estimate(self, cell: Cell) -> Cost:
        seconds = common.seconds_of(cell) + common.warmup_of(cell)
        if cell.variant == "sustained":
            seconds += _SETTLE_S  # gpubench waits for a steady rate before it measures
        # A fixed amount of work, whatever seconds the cell sets.
        elif cell.workload == "LADDER-LAT":
            seconds = _LADDER_S
        return Cost(fixed_s=_START_S + seconds, memory_bytes=cell.concurrency * _HOST_BYTES)


def _values_of_gpu(printed: Mapping[str, Any]) -> list[float]:
    """Return the values of one GPU: its index, its rate (in SI units) or its time in seconds, its clock in Hz.

    The clock is 0 if it is unknown. ``printed`` is an object of ``per_gpu`` in gpubench's output.
    """
    gpu = Output("gpubench", printed)
    index, value = gpu.number("gpu", allow_zero=True), gpu.number("value")
    return [index, value, gpu.number_or_none("clock_hz") or 0.0]


def _levels(cell: Cell, output: Output, shared: dict[str, Any]) -> Iterator[Measurement]:
    """Yield a row for each level of memory in a ladder, whose points are (working set in bytes, latency in seconds).

    ``shared`` are the details that all rows have. A level without points clearly inside it gets no
    row, and then its other points are in no row.

    A row's value is the median of the points clearly inside its level: in L1 at most ``_L1_BYTES``, in L2 at
    least 16 times as much and at most a quarter of L2, in DRAM at least four times L2. Its block is the middle
    working set of these points.

    The points between two levels are in the details of the slower level, so that the rows of all
    three levels together have the whole curve.
    """
    l2_bytes = output.number("l2_bytes")
    # 16 times _L1_BYTES is 512 KiB, twice the L1 cache of an H100.
    clear_ranges = {
        "l1": (0, _L1_BYTES),
        "l2": (16 * _L1_BYTES, l2_bytes / 4),
        "dram": (4 * l2_bytes, inf),
    }
    # Take the points of each level off the start of the list, the smallest working sets first.
    rest = sorted(output["points"])
    for level, (least, most) in clear_ranges.items():
        of_level = [[size, latency] for size, latency in rest if size <= most]
        rest = rest[len(of_level) :]
        clear = [[size, latency] for size, latency in of_level if size >= least]
        if not clear:
            continue
        value = median(latency for _, latency in clear)
        details = {**shared, "points": of_level}
        if level == "l2":
            details["cache"] = l2_bytes  # gpubench prints the size of no other level
        row = Measurement.of(cell, "ladder_latency", value, details)
        row.variant = level
        middle_size, _ = clear[len(clear) // 2]
        row.block = int(middle_size)
        yield row


class VendorLibrary(GpuBench):
    """Reference tool that consists of functions of a vendor's library. gpubench calls and times them.

    Attributes:
        reference_call: value of gpubench's option ``--reference``.
    """

    reference = True
    reference_call = ""

    def __init_subclass__(cls) -> None:
        # This replaces the hook of ``Kernel``, which would search the version in a line that begins
        # with ``cls.name``: the program that prints the version is gpubench.
        cls.version = GpuBench.version

    @property
    def executables(self) -> tuple[str, ...]:
        return (GpuBench.name,)

    def on_path(self, choice: str | None = None) -> str | None:
        # gpubench comes with peakmark, so it is not searched. Whether a node has the vendor's library is known only
        # when gpubench runs there.
        return choice or GpuBench.name

    def locate(self, kernels: Any, choice: str | None = None) -> str:
        return choice or str(common.kernel_path(kernels, GpuBench.name))

    def find(self, path: str) -> Tool:
        # Skip ``Kernel.find``, which turns ``Unavailable`` into ``MeasurementError``: a cell whose reference tool is
        # missing has not failed.
        return Instrument.find(self, path)

    def arguments(self, cell: Cell) -> list[str]:
        without_block = replace(cell, block=None)  # the vendor's functions have no block
        return ["--reference", self.reference_call, *super().arguments(without_block)]


INSTRUMENT = GpuBench()
