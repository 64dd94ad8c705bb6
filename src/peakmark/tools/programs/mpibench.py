"""mpibench, peakmark's kernel that measures MPI between ranks."""

from __future__ import annotations

from peakmark.catalogue import ON_ONE_NODE, RANKS_ON_NODES, WORKLOADS, metrics, nodes_of_ranks
from peakmark.cell import Cell
from peakmark.errors import Unavailable
from peakmark.tools import common
from peakmark.tools.base import (
    Command,
    Completed,
    Cost,
    Coverage,
    Measurement,
    Parsed,
    Tool,
    Workspace,
    no_variant,
)
from peakmark.tools.common import Output

BETWEEN_TWO = ("PINGPONG", "RATE", "BIRATE")
"""Workloads that need exactly two ranks, on one node or on two."""
BLOCK_MAX = 1 << 30
"""Largest message, in bytes (src/kernels/mpi/exchange.h)."""
LONGEST_WAIT = 10.0
"""Timeout of the ranks, as a multiple of the timeout of their launcher.

A busy machine extends the timeout of the launcher by at most this factor.
"""
START_S = 4.5
"""Seconds that a slow cluster needs to start and end the ranks, and to try the start before the first cell.

On four busy nodes of two shared CPUs a cell took 1.2 to 2.4 s in all, with 0.03 s of measuring.
"""


class MpiBench(common.Kernel):
    """mpibench, whose ranks are started by srun or mpirun.

    - PINGPONG: seconds of half a round trip.
    - RATE and BIRATE: B/s of one direction, and of both, with 64 messages under way.
    - ALLREDUCE, ALLTOALL, BARRIER and BCAST: seconds of a call of all ranks.
    - MSGRATE: messages/s between the ranks of one half of the nodes and those of the other.
    """

    name = "mpibench"
    rows = (Coverage("mpi", WORKLOADS["mpi"], variants=()),)

    def find(self, path: str) -> Tool:
        """Return the kernel with its version.

        Raises:
            Unavailable: the kernel does not start, for example because the node lacks the MPI
                library.
        """
        # Skip ``Kernel.find``, whose error would ask the user to compile the kernel again.
        return super(common.Kernel, self).find(path)

    def nodes(self, cell: Cell) -> int:
        return nodes_of_ranks(cell.variant)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        if cell.workload != "BARRIER":
            message = common.needed_block(cell)
            common.need_between(cell, "messages", message, 1, BLOCK_MAX, in_bytes=True)
            if cell.workload == "ALLREDUCE":  # it adds numbers of 8 bytes
                common.need_multiple(self.name, 8, message)
        check_ranks(cell)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        argv = [tool.path, "--workload", cell.workload]
        if cell.block is not None:
            argv += ["--block", str(cell.block)]
        argv += ["--seconds", common.plain(common.seconds_of(cell)), *self.warmup_option(cell)]
        argv += common.flags(cell, "seed", "cpus")
        # The launcher is ended at the timeout of the command, and usually ends its ranks. Ranks that are left give up by
        # themselves after LONGEST_WAIT times as long.
        limit_s = LONGEST_WAIT * self.command(cell, argv).timeout_s
        argv += ["--timeout", common.plain(limit_s)]
        return self.command(cell, argv, ranks=cell.concurrency)

    def threads(self, cell: Cell) -> int:
        # All ranks: the concurrency is the number of ranks on each node.
        return cell.concurrency * self.nodes(cell)

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        output = self.read(cell, done)
        details = common.details(output) | {"rank_cpus": _places(output)}
        details.pop("mpi_library", None)
        metric = metric_of(cell)
        if metric == "latency":
            details |= common.percentiles(output, "timed_calls")
        row = Measurement.of(cell, metric, output.number("value"), details)
        # MPICH separates words by tabs.
        library = {"mpi": " ".join(output["mpi_library"].split())}
        return Parsed((row,), output["version"], library, tuple(output["warnings"]))

    def estimate(self, cell: Cell) -> Cost:
        # MPI cells always run for a time: none has the option ``total``. A warm-up takes 0.1 s by default. After the
        # measurement, single calls are timed for a tenth of its time.
        seconds = 1.1 * common.clock_s(cell, "total", warmup=0.1)
        buffers = 2 * (cell.block or 0)  # of each rank, to send and to receive
        if cell.workload == "ALLTOALL":  # a rank has a block for each rank
            buffers *= self.threads(cell)
        memory = cell.concurrency * (buffers + (64 << 20))
        return Cost(fixed_s=START_S + seconds, memory_bytes=memory)


def check_ranks(cell: Cell) -> None:
    """Check the variant of a cell, which says where its ranks are, and the number of its ranks.

    Raises:
        Unavailable: the variant is unknown, there are fewer than two ranks, or a workload of ``BETWEEN_TWO``
            has more than two.
    """
    if cell.variant not in ON_ONE_NODE and not RANKS_ON_NODES.fullmatch(cell.variant):
        raise no_variant(cell, ["2-nodes", *ON_ONE_NODE])
    # If the cell has a word (``cell.word``) instead of a number, the number of ranks is known only on the node.
    ranks = cell.concurrency * nodes_of_ranks(cell.variant)
    if cell.workload in BETWEEN_TWO and ranks != 2 and not cell.word:
        raise Unavailable(
            f"{cell.workload} is between two ranks, the cell asks for {ranks}",
            "set concurrency: [1], or [2] with variants, whose ranks are on one node",
        )
    if ranks < 2 and not cell.word:
        raise Unavailable(f"{cell.workload} needs two ranks, the cell asks for one")


def metric_of(cell: Cell) -> str:
    """Return the metric of an MPI cell."""
    return next(iter(metrics("mpi", cell.workload)))


def _places(output: Output) -> str:
    """Return host and CPU of each rank, such as ``node1:0 node2:0``."""
    return " ".join(f"{rank['host']}:{rank['cpu']}" for rank in output["per_rank"])


INSTRUMENT = MpiBench()
