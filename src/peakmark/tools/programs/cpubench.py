"""cpubench, the own kernel for multiplications and additions per second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from peakmark.catalogue import workloads
from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.tools import common, kernel
from peakmark.tools.base import Completed, Cost, Invocation, Parsed, Tool, Workspace

WORKLOADS = workloads.WORKLOADS["cpu"]

# op/s of one core that any processor of the last ten years reaches: what a fixed number of
# operations may take.
_CAUTIOUS_RATE = 5e9


class CpuBench(kernel.Kernel):
    """cpu QP HP SP DP FP32 QPDOT, in op/s."""

    name = "cpubench"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"cpu": WORKLOADS}
    executables = ("cpubench",)
    units: ClassVar[Mapping[str, str]] = dict.fromkeys(WORKLOADS, "op/s")

    def check(self, cell: Cell) -> None:
        super().check(cell)
        kernel.isa_option(cell)
        common.need_share(cell, "operations", 1)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        argv = (
            tool.path,
            "--workload",
            cell.workload,
            *self.common_options(cell, workspace),
            *self.amount(cell, "operations"),
            *kernel.isa_option(cell),
        )
        return Invocation(self.command(cell, argv))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        document = self.read(cell, done)
        for key in ("isa", "instruction"):
            if not isinstance(document.at(key), str):
                raise ParseError(f"cpubench: {key} is {document.at(key)!r}, not a name")
        self.agree_rate(document)
        return kernel.parsed(
            cell, document, ("rate", document.number("value"), "op/s", kernel.details(document))
        )

    def estimate(self, cell: Cell) -> Cost:
        fixed = 0.3 + kernel.asked_s(cell, "operations", 0.1)
        seconds = (common.work(cell, "operations") or 0.0) / (_CAUTIOUS_RATE * cell.concurrency)
        return Cost(seconds=fixed + seconds, memory_bytes=cell.concurrency << 20, fixed_s=fixed)


INSTRUMENT = CpuBench()
