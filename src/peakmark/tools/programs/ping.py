"""ping: round trips of ICMP echo. The other node's kernel answers, without waking a socket.

Sixteen bytes are the fewest that carry a time stamp; below, ping prints no time at all.
"""

from __future__ import annotations

import os
import re

from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import base, common
from peakmark.tools.base import (
    Completed,
    Cost,
    Coverage,
    Instrument,
    Invocation,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.tools.common import Output

WORKLOAD = "LAT-ICMP"
PAYLOAD = 16
"""Bytes of an echo's payload: the fewest that carry a time stamp."""
COUNT = 200
"""Echoes of a cell, unless the configuration has ``count``."""
_FAST_S, _SLOW_S = 0.002, 0.2
"""Shortest interval between echoes, in s, that newer releases and older ones allow every user."""
_FAST_SINCE = 20211215
"""First release that lets every user send at intervals of 2 ms; before, 200 ms was the shortest."""

_SUMMARY = re.compile(
    r"^([0-9]+) packets transmitted, ([0-9]+) received,(?: .*,)? (?:[0-9.]+|-?nan)% packet loss",
    re.MULTILINE,
)
_TIMES = re.compile(
    r"^rtt min/avg/max/mdev = (?P<min>\S+)/(?P<avg>\S+)/(?P<max>\S+)/(?P<mdev>\S+) ms\b",
    re.MULTILINE,
)
_NO_RIGHTS = re.compile(r"socket: (?:Operation not permitted|Permission denied)")
"""Message of ping without the capability, for a user whose groups may not open its sockets."""


class Ping(Instrument):
    """network LAT-ICMP: mean round trip in s, block is not used. One packet at a time."""

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
    fedora = "iputils"
    opensuse = "iputils"
    homes = ("https://github.com/iputils/iputils",)
    # "ping utility, iputils-s20180629" before 2019, "ping from iputils 20221126" since.
    version = ("-V", r"\bping6?\b.*\biputils[ -]([^\s,]+)")
    options = ("count",)
    unused = frozenset(["seconds", "warmup", "seed"])
    two_nodes = True

    def find(self, path: str) -> Tool:
        """Check also that this user may open ping's socket, which its version does not tell. Raise
        Unavailable.
        """
        tool = super().find(path)
        if _NO_RIGHTS.search(base.ask(path, "-n", "-q", "-c", "1", "-w", "1", "127.0.0.1")):
            raise _no_rights(path)
        return tool

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        count, interval = _count(cell), _interval(tool.version, os.geteuid())
        words = f"-n -q -c {count} -i {interval:g} -s {PAYLOAD} {{address}}"
        argv = [tool.path, *words.split()]
        # Exit code 1 is a lost packet, or no answer at all, 2 whatever else: parse tells which.
        codes = (0, 1, 2)
        return Invocation(self.command(cell, argv, count * (interval + 0.01), ok_codes=codes))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        text = done.stdout
        summary, times = _SUMMARY.search(text), _TIMES.search(text)
        if summary is None and _NO_RIGHTS.search(done.stderr):
            raise _no_rights(done.argv[0])
        if summary is None:
            raise ParseError(f"ping did not come to its end: {common.excerpt(done.stderr, text)}")
        sent, received = map(int, summary.groups())
        if received == 0:
            raise ParseError(f"ping: none of {sent} packets was answered")
        if times is None:
            raise ParseError("ping printed no round trip times")
        output = Output(self.name, times.groupdict())
        least, mean, most, deviation = (output.number(name, zero=True) * 1e-3 for name in output)
        if not 0 < least <= mean <= most:
            raise ParseError(f"ping: {times[0]} are not in order above 0")
        details = {"min": least, "max": most, "mdev": deviation, "sent": sent, "received": received}
        details |= {"loss": 1 - received / sent, "payload": PAYLOAD, "resolution": 1e-6}
        row = Measurement.of(cell, "latency", mean, details, WORKLOAD)
        warnings: tuple[str, ...] = ()
        if received < sent:
            warnings = (f"ping: {sent - received} of {sent} packets were lost",)
        return Parsed((row,), warnings=warnings)

    def estimate(self, cell: Cell) -> Cost:
        return Cost(fixed_s=0.5 + _count(cell) * (_FAST_S + 0.001), memory_bytes=4 << 20)


def _count(cell: Cell) -> int:
    return int(common.option_number(cell, "count") or COUNT)


def _interval(version: str, user: int) -> float:
    """Return the seconds between packets: 2 ms where that is allowed, else the 200 ms of older
    releases.
    """
    release = re.search(r"[0-9]{8}", version)
    fast = user == 0 or (release is not None and int(release[0]) >= _FAST_SINCE)
    if fast:
        return _FAST_S
    return _SLOW_S


def _no_rights(path: str) -> Unavailable:
    """Return the error for a ping that this user may not use."""
    return Unavailable(
        f"{path} may not open its socket as this user",
        f"as root: setcap cap_net_raw+p {path},"
        " or sysctl -w net.ipv4.ping_group_range='0 2147483647'",
    )


INSTRUMENT = Ping()
