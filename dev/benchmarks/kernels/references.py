"""Reference tools beside which rambench is held, without a column in a report: loaded-latency
measures one rate of reads at a time, core-to-core-latency does not say how far CPUs lie apart.
"""

from __future__ import annotations

from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.tools import base
from peakmark.tools.base import Command, Completed, Cost, Coverage, Measurement, Parsed
from peakmark.tools.common import Output, cpu_list, plain, seconds_of
from peakmark.tools.programs.rambench import LINE, pool_of

SETUP_S = 8.0
"""Until all threads of loaded-latency begin at once; its pages are laid out meanwhile."""
ITERATIONS, SAMPLES = 100, 300
"""Round trips of a sample of core-to-core-latency, and samples of a pair: those of rambench. It
prints their mean, which others on its CPUs spoil.
"""


class LoadedLatency(base.Instrument):
    """Latency of one thread while the others read without pauses; pages have the system's size."""

    name = "loaded-latency"
    rows = (Coverage("memory", ("LOADED",)),)
    version = ("--help", r"(loaded-latency|--lat-cpu)")

    def prepare(self, cell: Cell, tool: base.Tool, workspace: base.Workspace) -> Command:
        first, *others = cpu_list(workspace, cell.concurrency).split(",")
        pool = pool_of(cell)
        words = f"-l {first} -n {pool // LINE} -i 2000 -r -L {pool // len(others)} -I 1 -F 0 -C 0"
        loaders = [word for cpu in others for word in ("-B", cpu)]
        times = ["-d", plain(SETUP_S), "-D", plain(seconds_of(cell))]
        return self.command(cell, [tool.path, *words.split(), *loaders, *times])

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        if "without any measurements" in done.stdout:
            raise ParseError(f"{self.name} was not ready after {SETUP_S:g} s: end other programs")
        lines = (line.partition("=") for line in done.stdout.splitlines())
        found = Output(self.name, {name.strip(): value.split()[:1] for name, _, value in lines})
        latency = Output(self.name, {"latency": found["Average Latency"][0]}).number("latency")
        return Parsed((Measurement.of(cell, "loaded_latency", latency * 1e-9, {}),))

    def estimate(self, cell: Cell) -> Cost:
        return Cost(SETUP_S + seconds_of(cell) + 1.0, memory_bytes=2 * pool_of(cell))


class CoreToCore(base.Instrument):
    """Latency between the two CPUs of a cell: half a round trip by compare and swap."""

    name = "core-to-core-latency"
    rows = (Coverage("memory", ("C2C",)),)
    version = ("--help", r"(core-to-core-latency)")

    def prepare(self, cell: Cell, tool: base.Tool, workspace: base.Workspace) -> Command:
        cpus = cpu_list(workspace, cell.concurrency)
        words = f"{ITERATIONS} {SAMPLES} --bench 1 --csv --cores {cpus}"
        return self.command(cell, [tool.path, *words.split()])

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        fields = [text for line in done.stdout.splitlines() for text in line.split(",") if text]
        if len(fields) != 1:
            raise ParseError(f"{self.name} printed {len(fields)} numbers for one pair")
        latency = Output(self.name, {"latency": fields[0]}).number("latency")
        return Parsed((Measurement.of(cell, "core_to_core", latency * 1e-9, {}),))

    def estimate(self, cell: Cell) -> Cost:
        return Cost(0.3 + ITERATIONS * SAMPLES * 1e-6, memory_bytes=cell.concurrency << 20)
