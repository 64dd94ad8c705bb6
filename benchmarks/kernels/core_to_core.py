"""core-to-core-latency (nviennot), beside which rambench C2C is held: no column of a report, as it
says nothing of how far CPUs lie apart.
"""

from __future__ import annotations

from peakmark.cell import Cell
from peakmark.errors import ParseError
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
from peakmark.tools.common import Output, cpu_list

ITERATIONS, SAMPLES = 100, 300
"""Round trips of a sample, and samples of a pair: those of rambench. It prints their mean, which others
on its CPUs spoil.
"""


class CoreToCore(Instrument):
    """Latency between the two CPUs of a cell: half a round trip by compare and swap."""

    name = "core-to-core-latency"
    rows = (Coverage("memory", ("C2C",)),)
    version = ("--help", r"(core-to-core-latency)")

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        cpus = cpu_list(workspace, cell.concurrency)
        words = f"{ITERATIONS} {SAMPLES} --bench 1 --csv --cores {cpus}"
        return Invocation(self.command(cell, [tool.path, *words.split()]))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        fields = [text for line in done.stdout.splitlines() for text in line.split(",") if text]
        if len(fields) != 1:
            raise ParseError(f"{self.name} printed {len(fields)} numbers for one pair")
        latency = Output(self.name, {"latency": fields[0]}).number("latency")
        return Parsed((Measurement.of(cell, "core_to_core", latency * 1e-9, {}),))

    def estimate(self, cell: Cell) -> Cost:
        return Cost(0.3 + ITERATIONS * SAMPLES * 1e-6, memory_bytes=cell.concurrency << 20)
