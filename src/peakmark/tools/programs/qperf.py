"""qperf: latency of one byte over TCP and UDP, both in one execution (workload ALL).

It prints the time of one way, half of a round trip; the values here are doubled and say so. It has
no warm-up. Beside ``{port}`` it uses a data port that the server's kernel chooses, which a firewall
between the nodes must let through. Over UDP it waits for a lost datagram until its time is over and
counts that time: its mean is then far above netbench's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import ClassVar

from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.tools import common
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

MESSAGE_MAX = 65507
_TESTS = {"tcp_lat": "LAT-TCP", "udp_lat": "LAT-UDP"}
_FIELD = re.compile(r"^    (\w+) += +(\S+) (ns|/sec|bytes|% cpus)?\s*$", re.MULTILINE)
# In this order; the last one proves that the section is whole.
_NEEDED = (
    "latency",
    "msg_rate",
    "msg_size",
    "time",
    "loc_real_time",
    "rem_real_time",
    "rem_recv_msgs",
)


class Qperf(common.Instrument):
    """network LAT-TCP and LAT-UDP round trips in s; ALL is both. One stream."""

    name = "qperf"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"network": ("ALL", "LAT-TCP", "LAT-UDP")}
    executables = ("qperf",)
    package = "qperf"
    heading = "qperf"
    rows = (
        Coverage(
            "network", tuple(_TESTS.values()), variants=("",), cell="ALL", per_concurrency=False
        ),
    )
    options = ("seconds",)
    unused = frozenset(["warmup", "seed"])
    columns: ClassVar[Mapping[str, int]] = {"network_latency": 2}
    readings: ClassVar[Mapping[str, str]] = {
        "network_latency": "qperf does the same work as the own kernel."
    }
    homes: ClassVar[Mapping[str, str]] = {"qperf": "https://github.com/linux-rdma/qperf"}
    version = ("--version", r"^qperf (\S+)")
    two_nodes = True

    def check(self, cell: Cell) -> None:
        super().check(cell)
        common.need_one_stream(cell)
        common.need_between(
            cell, "messages, over UDP too,", _message(cell), 1, MESSAGE_MAX, size=True
        )

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        argv = (
            *(tool.path, "{address}", "--listen_port", "{port}"),
            *("--msg_size", str(_message(cell)), "--time", str(math.ceil(common.seconds_of(cell)))),
            *("-vv", "-uu"),  # all fields, in whole ns
            *_tests(cell),
        )
        client = self.command(cell, argv)
        return Invocation(client, self.server(client, (tool.path, "--listen_port", "{port}")))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        text = done.stdout
        if "failed to" in text:
            raise ParseError(f"qperf: {common.last_line(text)}")
        return Parsed(tuple(_row(cell, test, _section(text, test)) for test in _tests(cell)))

    def estimate(self, cell: Cell) -> Cost:
        fixed = 1.0 + len(_tests(cell)) * math.ceil(common.seconds_of(cell))
        return Cost(seconds=fixed, memory_bytes=4 << 20, fixed_s=fixed)


def _tests(cell: Cell) -> tuple[str, ...]:
    return tuple(test for test, workload in _TESTS.items() if cell.workload in (workload, "ALL"))


def _message(cell: Cell) -> int:
    return 1 if cell.block is None else cell.block


def _section(text: str, test: str) -> dict[str, str]:
    """The fields of one test. Errors: ParseError when it is missing, cut, or another unit than ns."""
    start = re.search(rf"^{test}:\n", text, re.MULTILINE)
    if start is None:
        raise ParseError(f"qperf: no result of {test}: {common.excerpt(text)}")
    body = text[start.end() :]
    following = re.search(r"^\S", body, re.MULTILINE)
    body = body[: following.start()] if following else body
    if not body.endswith("\n"):
        raise ParseError(f"qperf: the result of {test} is cut")
    fields = {}
    for name, value, unit in _FIELD.findall(body):
        if name in ("latency", "time") and unit != "ns":
            raise ParseError(f"qperf: {name} of {test} is not in ns")
        fields[name] = value
    if fields.get("latency") == "0" and "rem_recv_msgs" not in fields and "rem_real_time" in fields:
        raise ParseError(
            f"qperf: no round trip of {test} came to its end: its first message was lost"
        )
    missing = [name for name in _NEEDED if name not in fields]
    if missing:
        raise ParseError(
            f"qperf: {missing[0]} of {test} is missing, the result is cut: {common.last_line(body)}"
        )
    return fields


def _row(cell: Cell, test: str, fields: dict[str, str]) -> Measurement:
    one_way = common.number(fields["latency"], f"qperf: latency of {test}") * 1e-9
    rate = common.number(fields["msg_rate"], f"qperf: msg_rate of {test}")
    # The latency is of the time at this end, the rate of both ends' mean, and their clocks count
    # hundredths of a second.
    here = common.number(fields["loc_real_time"], f"qperf: loc_real_time of {test}")
    there = common.number(fields["rem_real_time"], f"qperf: rem_real_time of {test}")
    common.agree(
        one_way * rate * (here + there) / (2 * here),
        1.0,
        1e-2,
        f"qperf: latency and msg_rate of {test}",
    )
    if common.whole(fields["msg_size"], "qperf: msg_size") != _message(cell):
        raise ParseError(
            f"qperf: {test} ran with messages of {fields['msg_size']} B, not {_message(cell)} B"
        )
    details = {
        "half": True,
        "one_way": one_way,
        "seconds": common.number(fields["time"], "qperf: time") * 1e-9,
        "round_trips": common.whole(fields["rem_recv_msgs"], "qperf: rem_recv_msgs"),
    }
    return Measurement.of(cell, "latency", 2 * one_way, "s", details, _TESTS[test])


INSTRUMENT = Qperf()
