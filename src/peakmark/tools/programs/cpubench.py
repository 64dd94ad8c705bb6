"""cpubench, peakmark's kernel that measures arithmetic operations per second."""

from __future__ import annotations

from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.tools import common
from peakmark.tools.base import Command, Cost, Coverage, Tool, Workspace

_CAUTIOUS_RATE = 5e9
"""Rate in op/s that a core of any processor of the last ten years reaches. The longest time of a fixed
number of operations is computed from it.
"""


class CpuBench(common.Kernel):
    """cpubench. It measures all cpu workloads, in op/s."""

    name = "cpubench"
    rows = (Coverage("cpu", SUBSYSTEMS["cpu"].workloads),)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        common.need_share(cell, "operations", least=1)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        argv = (
            *(tool.path, "--workload", cell.workload),
            *self.work_option(cell, "operations"),
            *self.common_options(cell, workspace),
        )
        return self.command(cell, argv)

    def estimate(self, cell: Cell) -> Cost:
        operations = common.amount(cell, "operations") or 0.0
        # The program takes 0.3 s to start, and warms up for 0.1 s by default.
        return Cost(
            fixed_s=0.3 + common.clock_s(cell, "operations", warmup=0.1),
            work_s=operations / (_CAUTIOUS_RATE * cell.concurrency),
            memory_bytes=cell.concurrency << 20,  # 1 MiB for each thread
        )


INSTRUMENT = CpuBench()
