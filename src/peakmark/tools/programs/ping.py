"""ping: round trips of ICMP echo, answered by the kernel: no socket is woken up on the other side.

Sixteen bytes are the least that carry a time stamp; below, ping prints no time at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import ClassVar

from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.reasons import Unavailable
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

WORKLOAD = "LAT-ICMP"
PAYLOAD = 16
COUNT = 200
_FAST_S, _SLOW_S = 0.002, 0.2
# The first release that lets every user send each 2 ms; before, 200 ms was the least.
_FAST_SINCE = 20211215

_SUMMARY = re.compile(
    r"^([0-9]+) packets transmitted, ([0-9]+) received,(?: .*,)? ([0-9.]+)% packet loss",
    re.MULTILINE,
)
# As to users of a system on which ping has no capability and none of their groups may open its
# sockets.
_NO_RIGHTS = re.compile(r"socket: (?:Operation not permitted|Permission denied)")
_TIMES = re.compile(
    r"^rtt min/avg/max/mdev = ([0-9.]+)/([0-9.]+)/([0-9.]+)/([0-9.]+) ms\b", re.MULTILINE
)


class Ping(common.Instrument):
    """network LAT-ICMP (ALL is the same): mean round trip in s, block is not used. One packet at a
    time.
    """

    name = "ping"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"network": (WORKLOAD, "ALL")}
    executables = ("ping",)
    package = "iputils-ping"
    heading = "ping"
    rows = (
        Coverage(
            "network",
            ("LAT-TCP", "LAT-UDP"),
            variants=("",),
            cell=WORKLOAD,
            per_block=False,
            per_concurrency=False,
        ),
    )
    options = ("count",)
    unused = frozenset(["seconds", "warmup", "seed"])
    columns: ClassVar[Mapping[str, int]] = {"network_latency": 1}
    readings: ClassVar[Mapping[str, str]] = {
        "network_latency": "ping is answered inside the kernel and wakes no program, so it may lie below the own kernel."
    }
    homes: ClassVar[Mapping[str, str]] = {"ping": "https://github.com/iputils/iputils"}
    version = ("-V", r"ping.* from iputils[ -](\S+)")
    two_nodes = True

    def find(self, path: str) -> Tool:
        """Errors: Unavailable also when this user may not open its socket, which asking its version
        does not tell.
        """
        tool = super().find(path)
        if _NO_RIGHTS.search(common.ask(path, "-n", "-q", "-c", "1", "-w", "1", "127.0.0.1")):
            raise Unavailable("no-rights", path=path)
        return tool

    def check(self, cell: Cell) -> None:
        super().check(cell)
        common.need_one_stream(cell)
        _count(cell)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        interval = _interval(tool.version, os.geteuid())
        argv = (
            *(tool.path, "-n", "-q", "-c", str(_count(cell)), "-i", common.plain(interval)),
            *("-s", str(PAYLOAD), "{address}"),
        )
        # Exit code 1 is a lost packet, or no answer at all, 2 whatever else: parse tells which.
        return Invocation(
            self.command(cell, argv, _count(cell) * (interval + 0.01), ok_codes=(0, 1, 2))
        )

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        text = done.stdout
        summary, times = _SUMMARY.search(text), _TIMES.search(text)
        if summary is None and _NO_RIGHTS.search(done.stderr):
            raise Unavailable("no-rights", path=done.argv[0])
        if summary is None:
            raise ParseError(f"ping did not come to its end: {common.excerpt(done.stderr, text)}")
        sent, received = int(summary.group(1)), int(summary.group(2))
        if received == 0:
            raise ParseError(f"ping: none of {sent} packets was answered")
        if times is None:
            raise ParseError("ping printed no round trip times")
        least, mean, most, deviation = (
            common.number(value, "ping: rtt", zero=True) * 1e-3 for value in times.groups()
        )
        if not 0 < least <= mean <= most:
            raise ParseError(
                f"ping: min/avg/max {'/'.join(times.groups()[:3])} ms are not in order above 0"
            )
        details = {"min": least, "max": most, "mdev": deviation, "sent": sent, "received": received}
        details |= {"loss": 1 - received / sent, "payload": PAYLOAD, "resolution": 1e-6}
        row = Measurement.of(cell, "latency", mean, "s", details, WORKLOAD)
        warnings = (
            () if received == sent else (f"ping: {sent - received} of {sent} packets were lost",)
        )
        return Parsed(measurements=(row,), warnings=warnings)

    def estimate(self, cell: Cell) -> Cost:
        fixed = 0.5 + _count(cell) * (_FAST_S + 0.001)
        return Cost(seconds=fixed, memory_bytes=4 << 20, fixed_s=fixed)


def _count(cell: Cell) -> int:
    count = common.option_number(cell, "count", COUNT)
    if count is None or count != int(count):
        raise ConfigError(
            f"cell {cell.id}: option count={cell.options.get('count')!r} is not a whole number"
        )
    return int(count)


def _interval(version: str, user: int) -> float:
    """Seconds between packets: 2 ms where that is allowed, else the 200 ms that older releases ask
    of a user.
    """
    digits = re.sub(r"\D", "", version)[:8]
    return _FAST_S if user == 0 or (len(digits) == 8 and int(digits) >= _FAST_SINCE) else _SLOW_S


INSTRUMENT = Ping()
