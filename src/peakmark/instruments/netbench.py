"""netbench, the own kernel for TCP and UDP throughput and round trips between two nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peakmark.catalogue import workloads
from peakmark.cell import Cell
from peakmark.errors import Unavailable
from peakmark.instruments import common, kernel
from peakmark.instruments.base import SLOWEST_LINK, Command, Completed, Cost, Invocation, Parsed, Tool, Workspace
from peakmark.lean import Any, ClassVar
from peakmark.units import format_size

WORKLOADS = workloads.WORKLOADS["network"]
UDP_MAX, DATAGRAM_MIN, MESSAGE_MAX, STREAMS_MAX = 65507, 24, 64 << 20, 1024  # of src/kernels/net/plan.h
PERCENTILES = ("p50", "p90", "p99", "p999", "max")

# measure fills the key in on both sides: a server answers nobody else's client.
_ENV = {"NETBENCH_KEY": "{key}"}
MESSAGE_S = 2e-6  # of two CPUs that do nothing else but send and receive messages, whatever their size
_CAUTIOUS_RTT_S = 200e-6


class NetBench(kernel.Kernel):
    """network TCP UDP in bit/s at the receiver (UDP variant ``gso``), LAT-TCP LAT-UDP round trips (``busy-poll``)."""

    name = "netbench"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"network": WORKLOADS}
    executables = ("netbench",)
    two_nodes = True
    variants = ("", "gso", "busy-poll")
    units: ClassVar[Mapping[str, str]] = {"TCP": "bit/s", "UDP": "bit/s", "LAT-TCP": "s", "LAT-UDP": "s"}

    def check(self, cell: Cell) -> None:
        super().check(cell)
        latency = cell.workload.startswith("LAT-")
        if (cell.variant == "gso" and cell.workload != "UDP") or (cell.variant == "busy-poll" and not latency):
            raise Unavailable(
                f"netbench: variant {cell.variant} is not for {cell.workload}: gso is for UDP, busy-poll for LAT"
            )
        message = common.needed_block(cell)
        if cell.workload.endswith("UDP") and message > UDP_MAX:
            raise Unavailable(f"a UDP datagram holds at most {UDP_MAX} B, the cell's message has {message} B")
        if cell.workload == "UDP" and message < DATAGRAM_MIN:
            raise Unavailable(
                f"netbench's datagrams carry a number and have at least {DATAGRAM_MIN} B, not {message} B"
            )
        if message > MESSAGE_MAX:
            raise Unavailable(f"netbench's largest message is {format_size(MESSAGE_MAX)}, not {format_size(message)}")
        if cell.concurrency > STREAMS_MAX:
            raise Unavailable(f"netbench has at most {STREAMS_MAX} streams, the cell {cell.concurrency}")
        common.need_share(cell, "total", message)
        common.need_share(cell, "round_trips", 1)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        latency = cell.workload.startswith("LAT-")
        message = str(common.needed_block(cell))
        cost = self.estimate(cell)
        argv = [tool.path]
        if latency:
            argv += ["latency", "--protocol", cell.workload.removeprefix("LAT-"), "--message", message]
            argv += ["--streams", str(cell.concurrency), *self.amount(cell, "round_trips", "--round-trips")]
        else:
            argv += [cell.workload, "--message", message, "--streams", str(cell.concurrency)]
            argv += self.amount(cell, "total", "--total")
        warmup = common.option_number(cell, "warmup", None, zero=True)
        if warmup is not None:
            argv += ["--warmup", common.plain(warmup)]
        argv += ["--cpus", common.cpu_list(workspace, cell.concurrency), "--port", "{port}"]
        argv += [f"--{cell.variant}"] if cell.variant else []
        argv.append("{address}")
        client = self.command(tuple(argv), cost.seconds, _ENV)
        deadline = client.timeout_s + 30.0
        server = Command(
            argv=(
                *(tool.path, "serve", "--address", "{address}", "--port", "{port}"),
                *("--deadline", common.plain(deadline)),
            ),
            env={**common.ENV, **_ENV},
            timeout_s=deadline + 10.0,
        )
        return Invocation(commands=(client,), server=server)

    def parse(self, cell: Cell, completed: Sequence[Completed]) -> Parsed:
        result = self.read(cell, completed)
        if self.units[cell.workload] == "bit/s":
            common.agree(result.value, 8 * result.number("work") / result.number("seconds"), 1e-3, "netbench: value")
            return kernel.parsed(cell, result, [("throughput", result.value, "bit/s", result.details)])
        details: dict[str, Any] = {**result.details, **{key: result.number(key) for key in PERCENTILES}}
        common.agree(2 * result.number("half_rtt"), result.value, 1e-3, "netbench: half_rtt")
        return kernel.parsed(cell, result, [("latency", result.value, "s", details)])

    def estimate(self, cell: Cell) -> Cost:
        memory = (cell.concurrency + 4) << 20
        if cell.workload.startswith("LAT-"):
            fixed = 1.0 + kernel.asked_s(cell, "round_trips", 1.0)
            seconds = kernel.work_of(cell, "round_trips") * _CAUTIOUS_RTT_S / cell.concurrency
            return Cost(seconds=fixed + seconds, memory_bytes=memory, fixed_s=fixed)
        fixed, total = 1.0 + kernel.asked_s(cell, "total", 1.0), kernel.work_of(cell, "total")
        seconds = total / common.needed_block(cell) * MESSAGE_S + 8 * total / SLOWEST_LINK
        return Cost(seconds=fixed + seconds, memory_bytes=memory, fixed_s=fixed, wire_bits=8 * total)
