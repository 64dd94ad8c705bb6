"""netbench, the own kernel for TCP and UDP throughput and round trips between two nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from peakmark.catalogue import workloads
from peakmark.cell import Cell
from peakmark.reasons import Unavailable
from peakmark.tools import common, kernel
from peakmark.tools.base import (
    SLOWEST_LINK,
    Completed,
    Cost,
    Invocation,
    Parsed,
    Tool,
    Workspace,
)

WORKLOADS = workloads.WORKLOADS["network"]
UDP_MAX, DATAGRAM_MIN, MESSAGE_MAX, STREAMS_MAX = (
    65507,
    24,
    64 << 20,
    1024,
)  # of src/kernels/net/plan.h
PERCENTILES = ("p50", "p90", "p99", "p999", "max")

# measure fills the key in on both sides: a server answers nobody else's client.
_ENV = {"NETBENCH_KEY": "{key}"}
MESSAGE_S = (
    2e-6  # of two CPUs that do nothing else but send and receive messages, whatever their size
)
_CAUTIOUS_RTT_S = 200e-6


class NetBench(kernel.Kernel):
    """network TCP UDP in bit/s at the receiver (UDP variant ``gso``), LAT-TCP LAT-UDP round trips
    (``busy-poll``).
    """

    name = "netbench"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"network": WORKLOADS}
    executables = ("netbench",)
    two_nodes = True
    variants = ("", "gso", "busy-poll")
    units: ClassVar[Mapping[str, str]] = {
        "TCP": "bit/s",
        "UDP": "bit/s",
        "LAT-TCP": "s",
        "LAT-UDP": "s",
    }

    def check(self, cell: Cell) -> None:
        super().check(cell)
        latency = cell.workload.startswith("LAT-")
        if (cell.variant == "gso" and cell.workload != "UDP") or (
            cell.variant == "busy-poll" and not latency
        ):
            wanted = "gso for UDP and busy-poll for LAT only"
            raise Unavailable(
                "variant-of",
                program=self.name,
                workload=cell.workload,
                wanted=wanted,
                variant=cell.variant,
            )
        message = common.needed_block(cell)
        least = DATAGRAM_MIN if cell.workload == "UDP" else 1  # datagrams carry a number
        most = UDP_MAX if cell.workload.endswith("UDP") else MESSAGE_MAX
        common.need_between(cell, f"{cell.workload} messages", message, least, most, size=True)
        common.need_between(cell, "streams", cell.concurrency, 1, STREAMS_MAX)
        common.need_share(cell, "total", message)
        common.need_share(cell, "round_trips", 1)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        latency = cell.workload.startswith("LAT-")
        what = (
            ("latency", "--protocol", cell.workload.removeprefix("LAT-"))
            if latency
            else (cell.workload,)
        )
        argv = (
            *(
                tool.path,
                *what,
                "--message",
                str(common.needed_block(cell)),
                "--streams",
                str(cell.concurrency),
            ),
            *self.amount(cell, "round_trips" if latency else "total"),
            *self.warmup_option(cell),
            *("--cpus", common.cpu_list(workspace, cell.concurrency), "--port", "{port}"),
            *((f"--{cell.variant}",) if cell.variant else ()),
            "{address}",
        )
        client = self.command(cell, argv, env=_ENV)
        serve = (tool.path, "serve", "--address", "{address}", "--port", "{port}", "--deadline")
        server = self.server(client, (*serve, common.plain(client.timeout_s + 30.0)), env=_ENV)
        return Invocation(client, server)

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        document = self.read(cell, done)
        value, details = document.number("value"), kernel.details(document)
        if self.units[cell.workload] == "bit/s":
            self.agree_rate(document, bits=8)
            return kernel.parsed(cell, document, ("throughput", value, "bit/s", details))
        details |= {key: document.number(key) for key in PERCENTILES}
        common.agree(2 * document.number("half_rtt"), value, 1e-3, "netbench: half_rtt")
        return kernel.parsed(cell, document, ("latency", value, "s", details))

    def estimate(self, cell: Cell) -> Cost:
        memory = (cell.concurrency + 4) << 20
        if cell.workload.startswith("LAT-"):
            fixed = 1.0 + kernel.asked_s(cell, "round_trips", 1.0)
            seconds = (common.work(cell, "round_trips") or 0.0) * _CAUTIOUS_RTT_S / cell.concurrency
            return Cost(seconds=fixed + seconds, memory_bytes=memory, fixed_s=fixed)
        fixed, total = 1.0 + kernel.asked_s(cell, "total", 1.0), common.work(cell, "total") or 0.0
        seconds = total / common.needed_block(cell) * MESSAGE_S + 8 * total / SLOWEST_LINK
        return Cost(
            seconds=fixed + seconds, memory_bytes=memory, fixed_s=fixed, wire_bits=8 * total
        )


INSTRUMENT = NetBench()
