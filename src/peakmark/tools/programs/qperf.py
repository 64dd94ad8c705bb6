"""qperf, which measures the latency of TCP and UDP, both in one execution (workload ALL).

- qperf prints the one-way time, half of a round trip. The values here are doubled, and marked
  ``half``.
- qperf has no warm-up.
- Besides ``{port}`` it uses a data port that the server's kernel chooses. A firewall between the nodes
  must allow it.
- If a UDP datagram is lost, qperf waits until its time is over, and counts this time. Its mean is then
  far above netbench's. If the first one is lost, it prints a latency of 0, which is an error here.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

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
    last_line,
)
from peakmark.tools.common import Output

MESSAGE_MAX = 65507
"""Largest datagram over IPv4 and UDP, in bytes."""
# Workload -> name of the test of qperf that measures it.
_TESTS = {"LAT-TCP": "tcp_lat", "LAT-UDP": "udp_lat"}
# Line of a test: name, value, and unit, if it has one.
_FIELD = re.compile(r"^    (\w+) += +(\S+) (ns|/sec|bytes|% cpus)?\s*$", re.MULTILINE)


class Qperf(Instrument):
    """qperf. One execution measures LAT-TCP and LAT-UDP, in seconds of a round trip, with one stream."""

    name = "qperf"
    rows = (Coverage("network", tuple(_TESTS), cell="ALL", per_concurrency=False),)
    place = 2
    package = "qperf"
    spack = "qperf"
    build = (
        "git clone https://github.com/linux-rdma/qperf"
        " && cd qperf && ./cleanup && ./autogen.sh && ./configure && make  # needs automake"
    )
    version = ("--version", r"^qperf (\S+)")
    options = ("seconds",)
    unused = frozenset(["warmup", "seed"])
    two_nodes = True

    def check(self, cell: Cell) -> None:
        super().check(cell)
        # One execution sends messages of this size over TCP and over UDP, so UDP's limit holds for both.
        what = "messages, over UDP too,"
        common.need_between(cell, what, _message(cell), 1, MESSAGE_MAX, in_bytes=True)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        words = "{address} --listen_port {port}"
        words += f" --msg_size {_message(cell)} --time {_seconds(cell)}"
        words += " -vv -uu"  # all fields, in whole ns
        client = self.command(cell, [tool.path, *words.split(), *_TESTS.values()])
        return replace(client, server=self.server(client, (tool.path, "--listen_port", "{port}")))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        if "failed to" in done.stdout:
            raise ParseError(f"qperf: {last_line(done.stdout)}")
        return Parsed(tuple(_row(cell, workload, done.stdout) for workload in _TESTS))

    def estimate(self, cell: Cell) -> Cost:
        return Cost(fixed_s=1.0 + len(_TESTS) * _seconds(cell), memory_bytes=4 << 20)


def _seconds(cell: Cell) -> int:
    return math.ceil(common.seconds_of(cell))


def _message(cell: Cell) -> int:
    """Return the bytes of a message: the cell's block, or 1 for a cell without one."""
    return cell.block or 1


def _row(cell: Cell, workload: str, text: str) -> Measurement:
    """Return the round-trip time of one test, after a check against its message rate and the cell."""
    test = _TESTS[workload]
    output = _section(text, test)
    one_way = output.number("latency") * 1e-9
    # A message takes the one-way time, so latency x rate must be 1. The latency comes from the client's clock,
    # the rate from the mean of both clocks. Both clocks count hundredths of a second.
    near = output.number("loc_real_time")
    far = output.number("rem_real_time")
    messages = one_way * output.number("msg_rate") * (near + far) / (2 * near)
    common.agree(messages, 1.0, 1e-2, f"qperf: latency and msg_rate of {test}")
    message = _message(cell)
    if output.whole("msg_size") != message:
        size = output["msg_size"]
        raise ParseError(f"qperf: {test} ran with messages of {size} B, not {message} B")
    details = {
        "half": True,  # the value is twice the time of one direction
        "one_way": one_way,
        "seconds": output.number("time") * 1e-9,
        "round_trips": output.whole("rem_recv_msgs"),
    }
    return Measurement.of(cell, "latency", 2 * one_way, details, workload)


def _section(text: str, test: str) -> Output:
    """Return the fields of one test: name -> value as text.

    Raises:
        ParseError: the test has no result, or a time is not in ns.
    """
    section = re.search(rf"^{test}:\n((?:    .*\n)*)", text, re.MULTILINE)
    if section is None:
        raise ParseError(f"qperf: no result of {test}: {common.excerpt(text)}")
    fields = _FIELD.findall(section[1])
    if any(name in ("latency", "time") and unit != "ns" for name, _, unit in fields):
        raise ParseError(f"qperf: latency or time of {test} is not in ns")
    return Output(f"qperf: {test}", {name: value for name, value, _ in fields})


INSTRUMENT = Qperf()
