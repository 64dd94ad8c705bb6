"""IMB-MPI1 of the Intel MPI Benchmarks, which measures MPI.

As in the OSU Micro-Benchmarks, one execution measures all message sizes, which are powers of two. The time
of a collective operation is that of the slowest rank, as in mpibench.
"""

from __future__ import annotations

import re

from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.tools.base import Command, Coverage, Tool, Workspace
from peakmark.tools.programs import mpibench, osu

BENCHMARKS = {
    "PINGPONG": "PingPong",
    "RATE": "Uniband",
    "BIRATE": "Biband",
    "MSGRATE": "Uniband",
    "ALLREDUCE": "Allreduce",
    "ALLTOALL": "Alltoall",
    "BARRIER": "Barrier",
    "BCAST": "Bcast",
}
"""Workload -> the benchmark that measures it. Uniband and Biband have 64 messages under way."""
_HEADINGS = {"latency": "t_max[usec]", "throughput": "Mbytes/sec", "message_rate": "Msg/sec"}
"""Metric -> heading of the column that has it.

Only the latency of PINGPONG is in a column with another heading.
"""
_END = "# All processes entering MPI_Finalize"
"""Last line of a complete output."""


class Imb(osu.Osu):
    """IMB-MPI1, a single program."""

    name = "imb"
    rows = (Coverage("mpi", tuple(BENCHMARKS), variants=(), per_block=False),)
    heading = "IMB-MPI1"
    spack = "intel-mpi-benchmarks"
    conda = None
    build = "make IMB-MPI1 CC=mpicc CXX=mpicxx  # in the sources of Intel MPI Benchmarks"
    executables = ("IMB-MPI1",)
    header = rb"Intel\(R\) MPI Benchmarks ([0-9]+(?:\.[0-9]+)*)"

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        # Without -npmin, IMB also measures with 2, 4, 8 and so on of the ranks.
        argv = [
            tool.path,
            BENCHMARKS[cell.workload],
            "-npmin",
            str(cell.concurrency * self.nodes(cell)),
        ]
        # Exponents of the smallest and the largest power of two.
        exponents = [size.bit_length() - 1 for size in osu.wanted(cell)]
        if exponents:
            argv += ["-msglog", f"{min(exponents)}:{max(exponents)}"]
        if cell.options.get("count") is not None:
            argv += ["-iter", str(cell.options["count"])]
        return self.placed(cell, argv)

    def values(self, cell: Cell, text: str) -> dict[int, str]:
        # IMB prints tables with headings, unlike the OSU programs. Only the line of headings has ``#repetitions``.
        if _END not in text:
            raise ParseError("imb: the output has no end")
        heading = _HEADINGS[mpibench.metric_of(cell)]
        if cell.workload == "PINGPONG":
            heading = "t[usec]"
        headings: list[str] = []
        values = {}
        for line in text.splitlines():
            words = line.split()
            if "#repetitions" in words:
                headings = words
            elif not words:
                headings = []  # the end of a table
            elif headings:
                fields = dict(zip(headings, words, strict=False))
                size = fields.get("#bytes", "0")  # a barrier has no such column
                value = fields.get(heading)
                if len(words) != len(headings) or value is None or not re.fullmatch("[0-9]+", size):
                    raise ParseError(f"imb: {line[:60]!r} is no line of its table")
                values[int(size)] = value
        return values


INSTRUMENT = Imb()
