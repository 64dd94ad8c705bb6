"""ping, which measures round trips of ICMP echo requests.

The OS kernel of the other node answers without waking a process.
"""

from __future__ import annotations

import os
import re

from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import base, common
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

WORKLOAD = "LAT-ICMP"
PAYLOAD = 16
"""Bytes of payload in a request. With fewer bytes, no time stamp fits, and ping prints no times."""
COUNT = 200
"""Requests of a cell, unless the configuration sets ``count``."""
_FAST_S, _SLOW_S = 0.002, 0.2
"""Shortest interval between requests, in seconds, that newer and older releases allow every user."""
_FAST_SINCE = 20211215
"""First release that allows every user intervals of 2 ms instead of 200 ms."""

_SUMMARY = re.compile(
    r"^([0-9]+) packets transmitted, ([0-9]+) received,(?: .*,)? (?:[0-9.]+|-?nan)% packet loss",
    re.MULTILINE,
)
_TIMES = re.compile(
    r"^rtt min/avg/max/mdev = (?P<min>\S+)/(?P<avg>\S+)/(?P<max>\S+)/(?P<mdev>\S+) ms\b",
    re.MULTILINE,
)
_NO_RIGHTS = re.compile(r"socket: (?:Operation not permitted|Permission denied)")
"""Message of ping if this user may not open its sockets."""


class Ping(Instrument):
    """ping. It measures the mean round trip in seconds (LAT-ICMP), with one packet at a time."""

    name = "ping"
    rows = (
        Coverage(
            "network",
            ("LAT-TCP", "LAT-UDP"),
            cell=WORKLOAD,
            per_block=False,
            per_concurrency=False,
        ),
    )
    package = "iputils-ping"
    # "ping utility, iputils-s20180629" before 2019, "ping from iputils 20221126" since.
    version = ("-V", r"\bping6?\b.*\biputils[ -]([^\s,]+)")
    options = ("count",)
    unused = frozenset(["seconds", "warmup", "seed"])
    two_nodes = True

    def find(self, path: str) -> Tool:
        """Return ping with its version, after a check that this user may open its socket.

        Raises:
            Unavailable: ping is missing, or this user may not open its socket.
        """
        tool = super().find(path)
        if _NO_RIGHTS.search(base.ask(path, "-n", "-q", "-c", "1", "-w", "1", "127.0.0.1")):
            raise Unavailable(
                f"{path} may not open its socket as this user",
                f"as root: setcap cap_net_raw+p {path},"
                " or sysctl -w net.ipv4.ping_group_range='0 2147483647'",
            )
        return tool

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        count, interval = _count(cell), _interval(tool.version, os.geteuid())
        # -n: no names, -q: only the summary, -c: requests, -i: seconds between them, -s: bytes of payload.
        words = f"-n -q -c {count} -i {interval:g} -s {PAYLOAD} {{address}}"
        argv = [tool.path, *words.split()]
        # Exit codes: 1 for lost packets or no answer, 2 for other errors. ``parse`` finds the reason in the output.
        codes = (0, 1, 2)
        expected_s = count * (interval + 0.01)  # with an answer within 10 ms
        return self.command(cell, argv, expected_s, ok_codes=codes)

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        text = done.stdout
        summary, times = _SUMMARY.search(text), _TIMES.search(text)
        if summary is None:
            raise ParseError(f"ping did not finish: {common.excerpt(done.stderr, text)}")
        sent, received = map(int, summary.groups())
        # Some lost packets are a warning. Without an answer there is no time.
        if received == 0:
            raise ParseError(f"ping: none of {sent} packets was answered")
        if times is None:
            raise ParseError("ping printed no round trip times")
        # In the order of the groups: min, avg, max, mdev. ping prints ms.
        output = Output(self.name, times.groupdict())
        least, mean, most, deviation = (
            output.number(name, allow_zero=True) * 1e-3 for name in output
        )
        if not 0 < least <= mean <= most:
            raise ParseError(f"ping: {times[0]} are not in order above 0")
        details = {"min": least, "max": most, "mdev": deviation, "sent": sent, "received": received}
        details |= {"loss": 1 - received / sent, "payload": PAYLOAD, "resolution": 1e-6}
        row = Measurement.of(cell, "latency", mean, details)
        warnings: tuple[str, ...] = ()
        if received < sent:
            warnings = (f"ping: {sent - received} of {sent} packets were lost",)
        return Parsed((row,), warnings=warnings)

    def estimate(self, cell: Cell) -> Cost:
        round_trip_s = 1e-3  # assumed, because the network is unknown when a campaign is planned
        fixed_s = 0.5 + _count(cell) * (_FAST_S + round_trip_s)
        return Cost(fixed_s=fixed_s, memory_bytes=4 << 20)


def _count(cell: Cell) -> int:
    return int(common.option_number(cell, "count") or COUNT)


def _interval(version: str, user: int) -> float:
    """Return the shortest interval between packets, in seconds, that this user may choose.

    Args:
        version: version of ping, such as ``s20180629`` or ``20221126``, which is its date.
        user: user ID; 0 is root, who may always choose the short interval.
    """
    release = re.search(r"[0-9]{8}", version)
    fast = user == 0 or (release is not None and int(release[0]) >= _FAST_SINCE)
    if fast:
        return _FAST_S
    return _SLOW_S


INSTRUMENT = Ping()
