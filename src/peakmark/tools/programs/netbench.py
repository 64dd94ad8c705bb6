"""netbench, peakmark's kernel that measures TCP and UDP throughput and round trips."""

from __future__ import annotations

from dataclasses import replace

from peakmark.catalogue import TOGETHER
from peakmark.cell import Cell
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
)

# Limits from src/kernels/net/plan.h: bytes of the largest and smallest datagram and of the largest TCP message,
# and number of streams.
UDP_MAX, DATAGRAM_MIN, MESSAGE_MAX, STREAMS_MAX = 65507, 24, 64 << 20, 1024
MESSAGE_S = 2e-6
"""Seconds that two CPUs need to send and receive one message of any size."""

_ENV = {"NETBENCH_KEY": "{key}"}
"""Environment of client and server. ``{key}`` becomes a secret, so that a server answers only its client."""
_CAUTIOUS_RTT_S = 200e-6
"""Seconds of a round trip on a slow network."""


class NetBench(common.Kernel):
    """netbench, a client and a server.

    - TCP and UDP: bit/s at the receiver. UDP has the variant ``gso``.
    - LAT-TCP and LAT-UDP: seconds of a round trip. Both have the variant ``busy-poll``.
    """

    name = "netbench"
    rows = (
        Coverage("network", ("TCP",), variants=("", TOGETHER)),
        Coverage("network", ("UDP",), variants=("", "gso", TOGETHER)),
        Coverage("network", ("LAT-TCP", "LAT-UDP"), variants=("", "busy-poll")),
    )
    two_nodes = True

    def check(self, cell: Cell) -> None:
        super().check(cell)
        message = common.needed_block(cell)
        least = DATAGRAM_MIN if cell.workload == "UDP" else 1  # datagrams carry a number
        # UDP and LAT-UDP send each message as one datagram.
        most = UDP_MAX if cell.workload.endswith("UDP") else MESSAGE_MAX
        common.need_between(cell, f"{cell.workload} messages", message, least, most, in_bytes=True)
        common.need_between(cell, "streams", cell.concurrency, 1, STREAMS_MAX)
        common.need_share(cell, "total", least=message)
        common.need_share(cell, "round_trips", least=1)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        # ``LAT-TCP`` gives ``LAT`` and ``TCP``. TCP and UDP alone are throughputs, with an empty first part.
        latency, _, protocol = cell.workload.rpartition("-")
        words, work = protocol, "total"
        if latency:
            words, work = f"latency --protocol {protocol}", "round_trips"
        words += f" --message {cell.block} --streams {cell.concurrency}"
        argv = [tool.path, *words.split()]
        argv += self.work_option(cell, work)
        argv += self.warmup_option(cell)
        argv += ["--cpus", common.cpu_list(workspace, cell.concurrency), "--port", "{port}"]
        # TOGETHER is no option of netbench: it says that other pairs of nodes are measured at the same moment.
        if cell.variant not in ("", TOGETHER):
            argv.append(f"--{cell.variant}")
        argv.append("{address}")
        client = self.command(cell, argv, env=_ENV)
        serve = "serve --address {address} --port {port} --deadline"
        # A server that no client reaches gives up 30 s after the client's timeout, and before its own timeout, which is
        # 40 s later than the client's.
        deadline = common.plain(client.timeout_s + 30.0)
        return replace(client, server=self.server(client, (tool.path, *serve.split(), deadline)))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        output = self.read(cell, done)
        if not cell.workload.startswith("LAT-"):
            return self.parsed(cell, output)
        value, half = output.number("value"), output.number("half_rtt")
        common.agree(2 * half, value, 1e-3, "netbench: half_rtt")
        details = {**common.details(output), **common.percentiles(output, "round_trips")}
        return self.parsed(cell, output, Measurement.of(cell, "latency", value, details))

    def estimate(self, cell: Cell) -> Cost:
        # Client and server take 1 s to start, and warm up for at most 1 s by default.
        # The buffer of a stream holds a TCP message or a batch of datagrams.
        largest = max(1 << 20, common.needed_block(cell))
        memory = cell.concurrency * largest + (4 << 20)
        if cell.workload.startswith("LAT-"):
            trips = common.amount(cell, "round_trips") or 0.0
            return Cost(
                fixed_s=1.0 + common.clock_s(cell, "round_trips", warmup=1.0),
                work_s=trips * _CAUTIOUS_RTT_S / cell.concurrency,
                memory_bytes=memory,
            )
        total = common.amount(cell, "total") or 0.0
        return Cost(
            fixed_s=1.0 + common.clock_s(cell, "total", warmup=1.0),
            work_s=total / common.needed_block(cell) * MESSAGE_S,
            wire_bits=8 * total,
            memory_bytes=memory,
        )


INSTRUMENT = NetBench()
