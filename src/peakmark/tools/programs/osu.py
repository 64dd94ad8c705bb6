"""OSU Micro-Benchmarks, which measure MPI. Each workload has its own program (releases 5 to 7).

One execution measures all message sizes, which are powers of two. Like mpibench, they state the
time of a message as half a round trip.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from peakmark.catalogue import ON_ONE_NODE, nodes_of_ranks
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
from peakmark.tools.programs import mpibench

PROGRAMS = {
    "PINGPONG": "osu_latency",
    "RATE": "osu_bw",
    "BIRATE": "osu_bibw",
    "MSGRATE": "osu_mbw_mr",
    "ALLREDUCE": "osu_allreduce",
    "ALLTOALL": "osu_alltoall",
    "BARRIER": "osu_barrier",
}
"""Workload -> the program that measures it. osu_bcast is left out, because its root runs ahead of the others."""
LARGEST = 4 << 20
"""Largest message that the programs measure, in bytes."""
SIZES_SINCE = (5, 6)
"""Release since which all programs measure only the sizes that they are asked for."""
_FOLDERS = ("", "../pt2pt", "../collective", "../../collective/blocking")
"""Folders in which to search for an OSU program, relative to the folder of another OSU program.

The last one is the layout of the sources of release 7.
"""
_INSTALLED = "libexec/osu-micro-benchmarks/mpi/pt2pt"
"""Folder of the programs below the prefix of an installation, such as /usr."""
_LINE = re.compile(r"([0-9]+)((?: +[0-9]+\.[0-9]{2})+) *\Z")
"""A line of output: size in bytes, then the values."""
_FACTORS = {"latency": 1e-6, "throughput": 1e6, "message_rate": 1.0}
"""Metric -> factor from the printed value to SI. Latencies are printed in us, throughputs in MB/s."""


class Osu(Instrument):
    """OSU Micro-Benchmarks, found on PATH, in the folder that ``OSU_PATH`` names, or in a libexec near PATH."""

    name = "osu"
    rows = (Coverage("mpi", tuple(PROGRAMS), variants=(), per_block=False),)
    heading = "OSU"
    spack = "osu-micro-benchmarks"
    conda: str | None = "osu-micro-benchmarks"
    build = "./configure CC=mpicc CXX=mpicxx && make  # in the sources of OSU Micro-Benchmarks"
    header = rb"OSU MPI[^\n\0]* v([0-9]+(?:\.[0-9]+)*)"  # in the program, with its release
    options: tuple[str, ...] = ("count",)
    unused = frozenset(["seconds", "warmup", "seed"])

    @property
    def executables(self) -> tuple[str, ...]:
        return ("osu_latency",)

    def on_path(self, choice: str | None = None) -> str | None:
        found = super().on_path(choice)
        # A configured path or name is not replaced by a program elsewhere.
        if found or choice:
            return found
        # Without OSU_PATH, ``/`` stands for it, where no program is. A folder may also be the one above ``pt2pt``.
        # A folder on PATH is ``bin`` below the prefix of an installation.
        prefixes = [Path(folder).parent for folder in os.get_exec_path()]
        folders = [Path(os.environ.get("OSU_PATH", "/")), *(one / _INSTALLED for one in prefixes)]
        for folder in folders:
            for path in (folder / self.executables[0], folder / "pt2pt" / self.executables[0]):
                if os.access(path, os.X_OK):
                    return str(path)
        return None

    def find(self, path: str) -> Tool:
        """Return the programs with their release, which is in their header: they have no option for it.

        Raises:
            Unavailable: the file is no program of these benchmarks.
        """
        try:
            found = re.search(self.header, Path(path).read_bytes())
        except OSError as error:
            raise Unavailable(f"{path} cannot be read: {error.strerror}") from error
        if found is None:
            raise Unavailable(f"{path} is no program of {self.heading}")
        return Tool(self.name, path, found[1].decode())

    def nodes(self, cell: Cell) -> int:
        return nodes_of_ranks(cell.variant)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        mpibench.check_ranks(cell)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        argv = [_program(tool.path, PROGRAMS[cell.workload])]
        # The first two numbers of the version: (7, 1) for 7.1.
        release = tuple(int(part) for part in tool.version.split(".")[:2] if part.isdecimal())
        if release >= SIZES_SINCE and cell.workload != "BARRIER":
            sizes = wanted(cell)
            argv += ["-m", f"{min(sizes)}:{max(sizes)}"]
        # osu_mbw_mr of release 5 has no option -i.
        if cell.options.get("count") is not None and cell.workload != "MSGRATE":
            argv += ["-i", str(cell.options["count"])]
        return self.placed(cell, argv)

    def placed(self, cell: Cell, argv: list[str]) -> Command:
        """Return the command of each rank. If all ranks are on one node, each is pinned to one CPU.

        Their CPUs are the cell's option ``cpus``.
        """
        if cell.variant in ON_ONE_NODE:
            # One CPU for each rank; colons separate the ranks.
            cpus = str(cell.options.get("cpus")).replace(",", ":")
            argv = ["sh", "-c", common.ON_CPUS_OF_RANK, cpus, *argv]
        return self.command(cell, argv, ranks=cell.concurrency)

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        metric = mpibench.metric_of(cell)
        values = self.values(cell, done.stdout)
        found = []
        # A barrier has no size.
        for size in wanted(cell) or [0]:
            if size not in values:
                text = common.excerpt(done.stdout)
                raise ParseError(f"{self.name}: no value for {size} B: {text}")
            value = common.Output(self.name, {"value": values[size]}).number("value")
            row = replace(cell, block=size or None)
            found.append(Measurement.of(row, metric, value * _FACTORS[metric], {}))
        return Parsed(tuple(found))

    def values(self, cell: Cell, text: str) -> dict[int, str]:
        """Return size of a message in bytes -> the value of its line; a barrier has the size 0.

        Raises:
            ParseError: a line is damaged.
        """
        if cell.workload == "BARRIER":
            value = common.found(r"^ *([0-9]+\.[0-9]{2})\s*\Z", text)
            if value is None:
                raise ParseError(f"osu: no value of osu_barrier: {common.excerpt(text)}")
            return {0: value}
        values = {}
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            found = _LINE.match(line)
            if found is None:
                raise ParseError(f"osu: {line[:60]!r} is no size with its values")
            # osu_mbw_mr prints the rate in MB/s, then that in messages/s.
            values[int(found[1])] = found[2].split()[-1]
        return values

    def estimate(self, cell: Cell) -> Cost:
        # By default 1000 round trips, or 20 windows of 64 messages, of each size above 8 KiB. A
        # tenth is added for the warm-up. All sizes, each twice the one before, have together about
        # twice the bytes of the largest. Sizes up to 8 KiB add little, even with more messages.
        messages = 2 * 1100 if cell.workload == "PINGPONG" else 64 * 22
        bits = 8.0 * 2 * LARGEST * messages if nodes_of_ranks(cell.variant) > 1 else 0.0
        # Each rank has a buffer to send, one to receive, and 64 MiB for MPI (as in mpibench).
        memory = cell.concurrency * (2 * LARGEST + (64 << 20))
        return Cost(
            fixed_s=mpibench.START_S,
            work_s=10.0,  # of all programs, besides the time on the wire between nodes
            wire_bits=bits * _share(cell),  # of the usual number of messages
            memory_bytes=memory,
        )


def wanted(cell: Cell) -> list[int]:
    """Return the message sizes of the grid in bytes; an empty list if it has none, as for a barrier."""
    return [int(size) for size in str(cell.options.get("blocks", "")).split()]


def _share(cell: Cell) -> float:
    """Return the configured number of messages as a share of the usual 1000, at most 1."""
    return min(1.0, (common.option_number(cell, "count") or 1000) / 1000)


def _program(path: str, name: str) -> str:
    """Return the path of the program ``name``, which is in a folder near the program at ``path``.

    If it is in none of ``_FOLDERS``, return its path next to ``path``, for the message of the failed start.
    """
    for folder in _FOLDERS:
        program = Path(path).parent / folder / name
        if os.access(program, os.X_OK):
            return str(program)
    return str(Path(path).with_name(name))


INSTRUMENT = Osu()
