"""iperf3, which measures TCP and UDP throughput between two nodes, at the receiver."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from peakmark.cell import Cell
from peakmark.errors import ParseError
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
from peakmark.tools.common import Output
from peakmark.tools.programs.netbench import MESSAGE_S

UDP_MESSAGE_MAX = 65507
"""Largest datagram over IPv4 and UDP, in bytes."""
TCP_MESSAGE_MAX = 1 << 20
"""Largest write to a TCP socket that iperf3 accepts, in bytes."""
STREAMS_MAX = 128
"""Largest number of streams that iperf3 accepts."""
_MOST_RECEIVED = 1.5
"""Largest possible ratio of the bytes that the receiver counts to the bytes that the sender counts.

Only the receiver counts bytes that were on the way when the warm-up ended.
"""
_FIRST_THREADED = [3, 16]
"""First version with a thread for each stream: 3.16."""


class Iperf3(Instrument):
    """iperf3. It measures TCP and UDP in bit/s at the receiver.

    The block is the size of a write or a datagram, and the concurrency is the number of streams.
    """

    name = "iperf3"
    rows = (Coverage("network", ("TCP", "UDP")),)
    package = "iperf3"
    spack = "iperf3"
    conda = "iperf"
    build = "git clone https://github.com/esnet/iperf && cd iperf && ./configure && make"
    version = ("--version", r"^iperf (\S+)")
    options = ("seconds",)
    two_nodes = True

    def check(self, cell: Cell) -> None:
        super().check(cell)
        least, most = 1, TCP_MESSAGE_MAX
        if cell.workload == "UDP":
            # A datagram carries its time and number in 16 bytes.
            least, most = 16, UDP_MESSAGE_MAX
        message = common.needed_block(cell)
        common.need_between(cell, f"{cell.workload} messages", message, least, most, in_bytes=True)
        common.need_between(cell, "streams", cell.concurrency, 1, STREAMS_MAX)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        words = "--client {address} --port {port} --json"
        words += f" --length {cell.block} --parallel {cell.concurrency}"
        total = common.option_size(cell, "total")
        if total is None:
            # iperf3 accepts only whole seconds.
            words += f" --time {math.ceil(common.seconds_of(cell))}"
            if warmup := math.ceil(common.warmup_of(cell)):
                words += f" --omit {warmup}"
        else:
            words += f" --bytes {total}"
        if cell.workload == "UDP":
            # With the bit rate 0, iperf3 sends as fast as it can. By default it sends 1 Mbit/s.
            words += " --udp --bitrate 0 --udp-counters-64bit"
        # Since 3.14 errors have exit code 1, which is allowed here: ``parse`` reads their message in the JSON.
        client = self.command(cell, [tool.path, *words.split()], ok_codes=(0, 1))
        server = "--server --one-off --port {port} --bind {address}"
        return replace(client, server=self.server(client, [tool.path, *server.split()]))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        output = Output.of_json(self.name, done.stdout)
        if "error" in output:
            raise ParseError(f"iperf3: {output['error']}")
        test = {"protocol": cell.workload, "num_streams": cell.concurrency, "blksize": cell.block}
        output.expect({f"start.test_start.{name}": value for name, value in test.items()})
        read = {"TCP": _tcp, "UDP": _udp}[cell.workload]
        value, details = read(output)
        # ``host`` is the client, ``remote`` the server.
        for side in ("host", "remote"):
            used = output.number_or_none(f"end.cpu_utilization_percent.{side}_total")
            details[f"{side}_cpu_percent"] = used
        row = Measurement.of(cell, "throughput", value, details)
        version = common.found(r"([0-9]+(?:\.[0-9]+)*)", str(output["start.version"]))
        # One thread may limit the rate of several streams.
        warnings: tuple[str, ...] = ()
        if version is not None and cell.concurrency > 1:
            numbers = [int(part) for part in version.split(".")]
            if numbers < _FIRST_THREADED:
                warnings = (
                    f"iperf version {version} serves all streams with one thread: since 3.16 each stream has a thread",
                )
        return Parsed((row,), version, warnings=warnings)

    def estimate(self, cell: Cell) -> Cost:
        memory = (2 * cell.concurrency + 8) << 20  # MiB: two for the buffers of each stream
        total = common.option_size(cell, "total")
        if total is None:
            clock = math.ceil(common.seconds_of(cell)) + math.ceil(common.warmup_of(cell))
            return Cost(fixed_s=1.0 + clock, memory_bytes=memory)
        return Cost(
            fixed_s=1.0,
            work_s=total / common.needed_block(cell) * MESSAGE_S,
            wire_bits=8 * total,
            memory_bytes=memory,
        )


def _tcp(output: Output) -> tuple[float, dict[str, Any]]:
    """Return the rate at the receiver in bit/s, and the details of a TCP cell."""
    details = {
        "seconds": output.number("end.sum_received.seconds"),
        "received": output.number("end.sum_received.bytes"),
        "retransmits": output.number_or_none("end.sum_sent.retransmits"),
        "sent_bit_per_second": output.number_or_none("end.sum_sent.bits_per_second"),
        "congestion_control": output.get("end.sender_tcp_congestion"),
    }
    return _received(output), details


def _udp(output: Output) -> tuple[float, dict[str, Any]]:
    """Return the rate at the receiver in bit/s, and the details of a UDP cell.

    Since 3.12 the rate is in ``end.sum_received``. Older versions have only ``end.sum``, with the
    sender's rate and the receiver's losses.
    """
    packets = output.number("end.sum.packets", allow_zero=True)
    if not packets:
        raise ParseError("iperf3 sent no datagram after its warm-up: the machine was busy")
    lost, jitter = output.signed("end.sum.lost_packets"), output.signed("end.sum.jitter_ms")
    if jitter is not None:
        jitter /= 1e3  # ms to s
    details: dict[str, Any] = {
        "seconds": output.number("end.sum.seconds"),
        "packets": packets,
        "lost_reported": lost,
        "jitter": jitter,
        "sent_bit_per_second": output.number_or_none("end.sum_sent.bits_per_second"),
    }
    if any(name.startswith("end.sum_received.") for name in output):
        # 3.12 includes losses during the warm-up in its count, so that losses of 104 % were seen.
        # The ratio of received to sent bytes is correct.
        received = output.number("end.sum_received.bytes")
        sent = output.number("end.sum_sent.bytes")
        return _received(output), {**details, "loss": max(0.0, 1 - received / sent)}
    if lost is None:
        raise ParseError(
            "iperf3 prints neither the rate of the receiver nor the number of lost datagrams"
        )
    # The number is negative if datagrams of the warm-up that counted as lost arrive later.
    lost = max(0.0, lost)
    if lost >= packets:
        raise ParseError("iperf3: no datagram arrived")
    share = 1 - lost / packets
    details |= {"loss": lost / packets, "estimate": True}
    details["formula"] = "rate sent x (1 - lost / packets)"
    return output.number("end.sum.bits_per_second") * share, details


def _received(output: Output) -> float:
    """Return the receiver's rate in bit/s, after a check against its bytes and seconds."""
    rate = output.number("end.sum_received.bits_per_second")
    seconds = output.number("end.sum_received.seconds")
    count = output.number("end.sum_received.bytes")
    common.agree(8 * count / seconds, rate, 0.02, "iperf3: sum_received")
    # The receiver may count more bytes than the sender, see ``_MOST_RECEIVED``, but not many more.
    sent = output.number_or_none("end.sum_sent.bytes")
    if sent is not None and count > _MOST_RECEIVED * sent:
        raise ParseError(f"iperf3 received {count:.0f} B, more than the {sent:.0f} B that it sent")
    return rate


INSTRUMENT = Iperf3()
