"""perftest, which measures the InfiniBand or RoCE adapters of two nodes without an MPI library.

``ib_send_lat`` sends a message to and fro. Its latency is half the mean round trip, without the two
longest round trips. ``ib_write_bw`` writes in one direction, with 64 messages under way, like RATE
of mpibench. Its ``MB/sec``, or ``MiB/sec`` in newer releases, means 2^20 B/s. Source:
perftest_parameters.c and perftest_resources.c in https://github.com/linux-rdma/perftest, and the
outputs in its issues 65 and 234 and in issue 9590 of https://github.com/openucx/ucx.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

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

PORTS = Path("/sys/class/infiniband")
"""Folder in which Linux lists the InfiniBand and RoCE adapters of a node."""
PROGRAMS = {"PINGPONG": "ib_send_lat", "RATE": "ib_write_bw"}
"""Workload -> the program that measures it."""
_FACTORS = {"PINGPONG": 1e-6, "RATE": float(1 << 20)}
"""Workload -> factor from the printed value to SI."""
_TABLES = {
    "PINGPONG": r"t_avg\[usec\].*\n +([0-9]+)(?:[ \t]+\S+){4}[ \t]+(\S+)[ \t].*\n-{80}",
    "RATE": r"BW average\[Mi?B/sec\].*\n +([0-9]+)(?:[ \t]+\S+){2}[ \t]+(\S+)[ \t].*\n-{80}",
}
"""Workload -> pattern of the table with the result, up to the line below it: size in bytes, and value."""
_LEAST, _MOST = 1000, 100_000
"""Fewest and most messages that are sent if the configuration sets no ``count``."""
_BYTES = 4 << 30
"""Bytes to send in all, from which the number of messages follows: 0.3 s at 100 Gbit/s.

``_LEAST`` and ``_MOST`` limit this number.
"""
_SLOWEST_ADAPTER = 1.25e9
"""Speed in B/s of the slowest adapter for which times are estimated: 10 Gbit/s."""


class Perftest(Instrument):
    """perftest: ib_send_lat for PINGPONG and ib_write_bw for RATE, between two nodes."""

    name = "perftest"
    rows = (Coverage("mpi", tuple(PROGRAMS), variants=("2-nodes",)),)
    executables = ("ib_send_lat",)
    package = "perftest"
    version = ("--version", r"^Version: (\S+)")
    options = ("count",)
    unused = frozenset(["seconds", "warmup", "seed", "blocks"])
    two_nodes = True

    def check(self, cell: Cell) -> None:
        super().check(cell)
        mpibench.check_ranks(cell)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        device, port = _fastest_port()
        # Server and client take the same options. Without -F, a CPU whose clock changes is an error. Without -N,
        # the time of each message is kept for the peak rate. -t is the size of the send queue (default 128), which
        # ib_write_bw keeps full: the number of messages under way.
        words = f"-F -d {device} -i {port} -p {{port}} -s {cell.block} -n {_messages(cell)}"
        if cell.workload == "RATE":
            words += " -N -t 64"
        program = Path(tool.path).with_name(PROGRAMS[cell.workload])
        argv = [str(program), *words.split()]
        client = self.command(cell, [*argv, "{address}"])
        return replace(client, server=self.server(client, argv))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        found = re.search(_TABLES[cell.workload], done.stdout)
        if found is None:
            raise ParseError(f"perftest: no result: {common.excerpt(done.stderr, done.stdout)}")
        output = common.Output(self.name, {"size": found[1], "value": found[2]})
        output.expect({"size": str(cell.block)})
        value = output.number("value") * _FACTORS[cell.workload]
        details = {"device": common.found(r"Device +: (\S+)", done.stdout)}
        return Parsed((Measurement.of(cell, mpibench.metric_of(cell), value, details),))

    def estimate(self, cell: Cell) -> Cost:
        # A message of PINGPONG goes to and fro. For RATE, this is twice the bytes: an upper bound.
        moved = 2 * common.needed_block(cell) * _messages(cell)
        # An upper bound: client and server each have a buffer to send and one to receive.
        memory = 4 * common.needed_block(cell) + (64 << 20)
        # Besides the messages, both programs start and exchange their addresses. ``wire_bits``
        # would assume 100 Mbit/s, and no adapter is so slow.
        return Cost(fixed_s=3.0, work_s=moved / _SLOWEST_ADAPTER, memory_bytes=memory)


def _messages(cell: Cell) -> int:
    """Return the number of messages, or of round trips."""
    usual = min(_MOST, max(_LEAST, _BYTES // common.needed_block(cell)))
    return int(common.option_number(cell, "count") or usual)


def _fastest_port() -> tuple[str, str]:
    """Return device and number of this node's fastest active port. Errors: Unavailable if there is none."""
    rates = {}
    for port in sorted(PORTS.glob("*/ports/*")):
        # The texts are such as ``4: ACTIVE``, ``5: ACTIVE_DEFER`` and ``100 Gb/sec (4X EDR)``.
        if (port / "state").read_text().endswith(": ACTIVE\n"):
            rates[port.parts[-3], port.name] = float((port / "rate").read_text().split()[0])
    if not rates:
        raise Unavailable("this node has no active InfiniBand or RoCE port")
    return max(rates, key=rates.__getitem__)


INSTRUMENT = Perftest()
