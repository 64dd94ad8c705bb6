"""loaded-latency of Arm, beside which rambench LOADED is held: no column of a report, as it measures one
rate of reads at a time, in pages of the system's size.
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
from peakmark.tools.common import Output, cpu_list, plain, seconds_of
from peakmark.tools.programs.rambench import LINE, pool_of

SETUP_S = 8.0
"""Until all its threads begin at once; its pages are laid out meanwhile."""


class LoadedLatency(Instrument):
    """Latency of one thread while the others read without pauses."""

    name = "loaded-latency"
    rows = (Coverage("memory", ("LOADED",)),)
    version = ("--help", r"(loaded-latency|--lat-cpu)")

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        first, *others = cpu_list(workspace, cell.concurrency).split(",")
        pool = pool_of(cell)
        words = f"-l {first} -n {pool // LINE} -i 2000 -r -L {pool // len(others)} -I 1 -F 0 -C 0"
        loaders = [word for cpu in others for word in ("-B", cpu)]
        times = ["-d", plain(SETUP_S), "-D", plain(seconds_of(cell))]
        return Invocation(self.command(cell, [tool.path, *words.split(), *loaders, *times]))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        if "without any measurements" in done.stdout:
            raise ParseError(f"{self.name} was not ready after {SETUP_S:g} s: end other programs")
        lines = (line.partition("=") for line in done.stdout.splitlines())
        found = Output(self.name, {name.strip(): value.split()[:1] for name, _, value in lines})
        latency = Output(self.name, {"latency": found["Average Latency"][0]}).number("latency")
        row = Measurement.of(cell, "loaded_latency", latency * 1e-9, {})
        return Parsed((row,))

    def estimate(self, cell: Cell) -> Cost:
        return Cost(SETUP_S + seconds_of(cell) + 1.0, memory_bytes=2 * pool_of(cell))
