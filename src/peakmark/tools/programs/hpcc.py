"""hpcc, whose benchmark of latency and bandwidth (b_eff) has a ping-pong of 8 B between two nodes.

hpcc always runs all its tests, which end within seconds for a small matrix. Each of the two ranks
starts the ping-pong once, and the value is the mean of both latencies, each the best of five
measurements of eight round trips. The bandwidths that hpcc measures are in no row. hpcc sends one
message of 2,000,000 B at a time, and mpibench's RATE has 64 messages under way at once.
"""

from __future__ import annotations

from dataclasses import replace

from peakmark import data
from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import common
from peakmark.tools.base import Command, Completed, Cost, Coverage, Parsed, Tool, Workspace
from peakmark.tools.programs import hpl, mpibench, osu


class Hpcc(osu.Osu):
    """hpcc. Like mpibench, it states the latency as half a round trip."""

    name = "hpcc"
    rows = (Coverage("mpi", ("PINGPONG",), variants=("2-nodes",), per_block=False),)
    heading = "hpcc"
    package = "hpcc"
    spack = "hpcc"
    conda = None
    build = ""
    executables = ("hpcc",)
    header = rb"Latency-Bandwidth-Benchmark R([0-9]+(?:\.[0-9]+)*)"
    options = ()

    def check(self, cell: Cell) -> None:
        super().check(cell)
        if 8 not in osu.wanted(cell):
            raise Unavailable("hpcc measures messages of 8 B only", "add 8B to blocks")

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        command = self.placed(cell, [tool.path])
        # A small matrix on a grid of 1 x 2 processes, so that the other tests of hpcc end within seconds.
        settings = data.text("HPL.dat").format(n=64, nb=32, p=1, q=2)
        return replace(command, files={"hpccinf.txt": settings}, outputs=(hpl.HPCC_OUTPUT,))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        # Without the file, the error quotes what hpcc printed.
        text = done.files.get(hpl.HPCC_OUTPUT, done.stderr)
        # ``Osu.parse`` needs a value for each size of ``blocks``, and hpcc measures only 8 B.
        only = replace(cell, options={"blocks": "8"})
        return super().parse(only, replace(done, stdout=text))

    def values(self, cell: Cell, text: str) -> dict[int, str]:
        # The last line is missing if hpcc did not finish.
        value = common.found(r"^AvgPingPongLatency_usec=(\S+)$[\s\S]*^End of HPC Challenge", text)
        if value is None:
            raise ParseError(f"hpcc did not finish: {common.excerpt(text)}")
        return {8: value}

    def estimate(self, cell: Cell) -> Cost:
        # All other tests take seconds. Most bits are those of the test of bandwidth in a ring, which takes as long as
        # 4000 messages of 2,000,000 B in a ping-pong, 6.4e10 bits. A tenth is added.
        return Cost(fixed_s=mpibench.START_S, work_s=5.0, wire_bits=7e10, memory_bytes=1 << 28)


INSTRUMENT = Hpcc()
