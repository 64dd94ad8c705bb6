"""iperf3: TCP and UDP throughput between two nodes, counted at the receiver."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.instruments import common, documents
from peakmark.instruments.base import (
    SLOWEST_LINK,
    Command,
    Completed,
    Cost,
    Invocation,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.instruments.netbench import MESSAGE_S
from peakmark.lean import Any, ClassVar
from peakmark.units import format_size

UDP_MESSAGE_MAX = 65507
TCP_MESSAGE_MAX = 1 << 20
STREAMS_MAX = 128
_FIRST_THREADED = (3, 16)


class Iperf3(common.Program):
    """network TCP UDP in bit/s at the receiver; block is the length of a write or datagram, concurrency the streams."""

    name = "iperf3"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"network": ("TCP", "UDP")}
    executables = ("iperf3",)
    package = "iperf3"
    two_nodes = True

    def find(self, path: str) -> Tool:
        return common.find_version(self.name, path, ("--version",), r"^iperf (\S+)")

    def check(self, cell: Cell) -> None:
        super().check(cell)
        message = common.needed_block(cell)
        largest = UDP_MESSAGE_MAX if cell.workload == "UDP" else TCP_MESSAGE_MAX
        if message > largest:
            raise Unavailable(
                f"iperf3's largest message with {cell.workload} is {largest} B, the cell's is {message} B"
            )
        if cell.workload == "UDP" and message < 16:
            raise Unavailable(f"iperf3's smallest datagram is 16 B, the cell's is {format_size(message)}")
        if cell.concurrency > STREAMS_MAX:
            raise Unavailable(f"iperf3 has at most {STREAMS_MAX} streams, the cell {cell.concurrency}")

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        message = common.needed_block(cell)
        argv = [tool.path, "--client", "{address}", "--port", "{port}", "--json"]
        argv += ["--length", str(message), "--parallel", str(cell.concurrency)]
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
        limit = common.timeout(self.estimate(cell).seconds)
        # Since 3.14 an error has exit code 1; its sentence is in the JSON, which parse reads.
        client = Command(argv=tuple(argv), env=common.ENV, timeout_s=limit, ok_codes=(0, 1))
        server = Command(
            argv=(tool.path, "--server", "--one-off", "--port", "{port}", "--bind", "{address}"),
            env=common.ENV,
            timeout_s=limit + 30.0,
        )
        return Invocation(commands=(client,), server=server)

    def parse(self, cell: Cell, completed: Sequence[Completed]) -> Parsed:
        if not completed:
            raise ParseError("iperf3 was not run")
        document = documents.read(completed[-1].stdout, self.name)
        if "error" in document:
            raise ParseError(f"iperf3: {document['error']}")
        version = re.search(r"[0-9][0-9.]*", str(documents.at(document, "start.version", self.name)))
        test = documents.at(document, "start.test_start", self.name)
        asked = {"protocol": cell.workload, "num_streams": cell.concurrency, "blksize": common.needed_block(cell)}
        for key, value in asked.items():
            if documents.at(test, key, self.name) != value:
                raise ParseError(f"iperf3: {key} is {test[key]!r}, but the cell is for {value!r}")
        end = documents.at(document, "end", self.name)
        value, details = _udp(end) if cell.workload == "UDP" else _tcp(end)
        for side in ("host", "remote"):
            details[f"{side}_cpu_percent"] = documents.number_or_none(end, f"cpu_utilization_percent.{side}_total")
        row = Measurement.of(cell, "throughput", value, "bit/s", details)
        warnings = []
        if version and _numbers(version.group()) < _FIRST_THREADED and cell.concurrency > 1:
            warnings.append(
                f"iperf version {version.group()} serves all streams with one thread: version 3.16 is the first with one each"
            )
        return Parsed(measurements=(row,), version=version.group() if version else None, warnings=tuple(warnings))

    def estimate(self, cell: Cell) -> Cost:
        memory = (2 * cell.concurrency + 8) << 20
        total = common.option_size(cell, "total", None)
        if total is not None:
            seconds = 1.0 + total / common.needed_block(cell) * MESSAGE_S + 8 * total / SLOWEST_LINK
            return Cost(seconds=seconds, memory_bytes=memory, fixed_s=1.0, wire_bits=8 * total)
        fixed = 1.0 + math.ceil(common.seconds_of(cell)) + math.ceil(common.warmup_of(cell, 0.0))
        return Cost(seconds=fixed, memory_bytes=memory, fixed_s=fixed)


def _tcp(end: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    value = _received(end)
    details = {
        "seconds": documents.number_at(end, "sum_received.seconds", "iperf3"),
        "received": documents.number_at(end, "sum_received.bytes", "iperf3"),
        "retransmits": documents.number_or_none(end, "sum_sent.retransmits"),
        "sent_bit_per_second": documents.number_or_none(end, "sum_sent.bits_per_second"),
    }
    return value, details


def _udp(end: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    """In 3.12 ``end.sum`` holds the sender's rate with the receiver's losses; older ones have no ``sum_received``."""
    packets = documents.number_at(end, "sum.packets", "iperf3")
    lost = documents.number_at(end, "sum.lost_packets", "iperf3", zero=True)
    details: dict[str, Any] = {
        "seconds": documents.number_at(end, "sum.seconds", "iperf3"),
        "packets": packets,
        "lost_reported": lost,
        "jitter": documents.number_at(end, "sum.jitter_ms", "iperf3", zero=True) / 1e3,
        "sent_bit_per_second": documents.number_or_none(end, "sum_sent.bits_per_second"),
    }
    if "sum_received" in end:
        # 3.12 counts the losses of the omitted warm-up too (104 % were seen): what arrived against what was sent is right.
        sent = documents.number_at(end, "sum_sent.bytes", "iperf3")
        details["loss"] = max(0.0, 1 - documents.number_at(end, "sum_received.bytes", "iperf3") / sent)
        return _received(end), details
    details["loss"] = lost / packets
    details["estimate"] = True
    details["formula"] = "rate sent x (1 - lost / packets)"
    if lost >= packets:
        raise ParseError("iperf3: no datagram arrived")
    return documents.number_at(end, "sum.bits_per_second", "iperf3") * (1 - lost / packets), details


def _received(end: Mapping[str, Any]) -> float:
    rate = documents.number_at(end, "sum_received.bits_per_second", "iperf3")
    seconds = documents.number_at(end, "sum_received.seconds", "iperf3")
    nbytes = documents.number_at(end, "sum_received.bytes", "iperf3")
    common.agree(8 * nbytes / seconds, rate, 0.02, "iperf3: sum_received")
    return rate


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)
