"""iperf3: TCP and UDP throughput between two nodes, counted at the receiver."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.tools import base, common
from peakmark.tools.base import (
    Completed,
    Cost,
    Coverage,
    Invocation,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.tools.documents import Document
from peakmark.tools.programs.netbench import MESSAGE_S

UDP_MESSAGE_MAX = 65507
TCP_MESSAGE_MAX = 1 << 20
STREAMS_MAX = 128
_FIRST_THREADED = (3, 16)


class Iperf3(common.Instrument):
    """network TCP UDP in bit/s at the receiver; block is the length of a write or datagram,
    concurrency the streams.
    """

    name = "iperf3"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"network": ("TCP", "UDP")}
    executables = ("iperf3",)
    package = "iperf3"
    heading = "iperf3"
    rows = (Coverage("network", ("TCP", "UDP"), variants=("",)),)
    options = ("seconds",)
    columns: ClassVar[Mapping[str, int]] = {"network_throughput": 1}
    homes: ClassVar[Mapping[str, str]] = {"iperf3": "https://github.com/esnet/iperf"}
    version = ("--version", r"^iperf (\S+)")
    two_nodes = True

    def check(self, cell: Cell) -> None:
        super().check(cell)
        least, most = (16, UDP_MESSAGE_MAX) if cell.workload == "UDP" else (1, TCP_MESSAGE_MAX)
        message = common.needed_block(cell)
        common.need_between(cell, f"{cell.workload} messages", message, least, most, size=True)
        common.need_between(cell, "streams", cell.concurrency, 1, STREAMS_MAX)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        argv = [tool.path, "--client", "{address}", "--port", "{port}", "--json"]
        argv += ["--length", str(common.needed_block(cell)), "--parallel", str(cell.concurrency)]
        total = common.option_size(cell, "total", None)
        if total is None:
            # It takes whole seconds only.
            argv += ["--time", str(math.ceil(common.seconds_of(cell)))]
            if (warmup := math.ceil(common.warmup_of(cell, 0.0))) > 0:
                argv += ["--omit", str(warmup)]
        else:
            argv += ["--bytes", str(total)]
        if cell.workload == "UDP":
            argv += ["--udp", "--bitrate", "0", "--udp-counters-64bit"]
        # Since 3.14 an error has exit code 1; its sentence is in the JSON, which parse reads.
        client = self.command(cell, argv, ok_codes=(0, 1))
        server = (tool.path, "--server", "--one-off", "--port", "{port}", "--bind", "{address}")
        return Invocation(client, self.server(client, server))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        document = Document.read(done.stdout, self.name)
        if "error" in document.values:
            raise ParseError(f"iperf3: {document.at('error')}")
        version = re.search(r"[0-9][0-9.]*", str(document.at("start.version")))
        test = document.part("start.test_start")
        asked = {
            "protocol": cell.workload,
            "num_streams": cell.concurrency,
            "blksize": common.needed_block(cell),
        }
        for key, value in asked.items():
            if test.at(key) != value:
                raise ParseError(
                    f"iperf3: {key} is {test.at(key)!r}, but the cell is for {value!r}"
                )
        end = document.part("end")
        value, details = _udp(end) if cell.workload == "UDP" else _tcp(end)
        for side in ("host", "remote"):
            details[f"{side}_cpu_percent"] = end.number_or_none(
                f"cpu_utilization_percent.{side}_total"
            )
        row = Measurement.of(cell, "throughput", value, "bit/s", details)
        warnings = []
        if version and _numbers(version.group()) < _FIRST_THREADED and cell.concurrency > 1:
            warnings.append(
                f"iperf version {version.group()} serves all streams with one thread: version 3.16 is the first with one each"
            )
        return Parsed(
            measurements=(row,),
            version=version.group() if version else None,
            warnings=tuple(warnings),
        )

    def estimate(self, cell: Cell) -> Cost:
        memory = (2 * cell.concurrency + 8) << 20
        total = common.option_size(cell, "total", None)
        if total is not None:
            seconds = (
                1.0 + total / common.needed_block(cell) * MESSAGE_S + 8 * total / base.SLOWEST_LINK
            )
            return Cost(seconds=seconds, memory_bytes=memory, fixed_s=1.0, wire_bits=8 * total)
        fixed = 1.0 + math.ceil(common.seconds_of(cell)) + math.ceil(common.warmup_of(cell, 0.0))
        return Cost(seconds=fixed, memory_bytes=memory, fixed_s=fixed)


def _tcp(end: Document) -> tuple[float, dict[str, Any]]:
    details = {
        "seconds": end.number("sum_received.seconds"),
        "received": end.number("sum_received.bytes"),
        "retransmits": end.number_or_none("sum_sent.retransmits"),
        "sent_bit_per_second": end.number_or_none("sum_sent.bits_per_second"),
    }
    return _received(end), details


def _udp(end: Document) -> tuple[float, dict[str, Any]]:
    """In 3.12 ``end.sum`` holds the sender's rate with the receiver's losses; older ones have no
    ``sum_received``.
    """
    packets = end.number("sum.packets", zero=True)
    if not packets:
        counted = end.number(
            "sum_sent.seconds" if "sum_sent" in end.values else "sum.seconds", zero=True
        )
        raise ParseError(
            f"iperf3 sent no datagram in the {counted:.3g} s that it counted after its warm-up: the machine was busy"
        )
    lost = end.number("sum.lost_packets", zero=True)
    details: dict[str, Any] = {
        "seconds": end.number("sum.seconds"),
        "packets": packets,
        "lost_reported": lost,
        "jitter": end.number("sum.jitter_ms", zero=True) / 1e3,
        "sent_bit_per_second": end.number_or_none("sum_sent.bits_per_second"),
    }
    if "sum_received" in end.values:
        # 3.12 counts the losses of the omitted warm-up too (104 % were seen): what arrived against
        # what was sent is right.
        sent = end.number("sum_sent.bytes")
        details["loss"] = max(0.0, 1 - end.number("sum_received.bytes") / sent)
        return _received(end), details
    details["loss"] = lost / packets
    details["estimate"] = True
    details["formula"] = "rate sent x (1 - lost / packets)"
    if lost >= packets:
        raise ParseError("iperf3: no datagram arrived")
    return end.number("sum.bits_per_second") * (1 - lost / packets), details


def _received(end: Document) -> float:
    rate = end.number("sum_received.bits_per_second")
    seconds = end.number("sum_received.seconds")
    nbytes = end.number("sum_received.bytes")
    common.agree(8 * nbytes / seconds, rate, 0.02, "iperf3: sum_received")
    return rate


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)


INSTRUMENT = Iperf3()
