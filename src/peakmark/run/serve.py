"""The far end of a two-node cell: started through srun on the second node, see
``peakmark.run.pair.across``.

One JSON line comes in on standard input, one goes out when the server listens. The end of standard
input ends all; then a last line tells what else went on on this node.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from peakmark import files
from peakmark.errors import PeakmarkError
from peakmark.run import interfaces, noise, pair, scratch, watchdog
from peakmark.tools.base import Command

WATCH_S = 0.2


def main() -> int:
    """Serve until standard input ends. Returns the exit code."""
    try:
        request = _request(sys.stdin.readline())
        with (
            noise.monitor_load() as heard,
            watchdog.standing(),
            scratch.private(files.scratch(), "serve", "peakmark-serve-") as directory,
            ExitStack() as stack,
        ):
            peer = _start(request, directory, stack)
            _say(
                {
                    "host": socket.gethostname(),
                    "address": peer.address,
                    "interface": peer.interface,
                    "values": peer.values,
                }
            )
            _wait(peer)
    except PeakmarkError as error:
        _say({"failed": str(error)})
        return 1
    _say({"noise": heard})
    return 0


def _request(line: str) -> dict[str, Any]:
    """What the other end asks for. Errors: PeakmarkError when nobody does."""
    try:
        request: dict[str, Any] = json.loads(line)
        if {"interface", "client", "server"} <= request.keys():
            return request
    except (ValueError, AttributeError):
        pass
    raise PeakmarkError(
        "serve is what measure calls for a cell of two nodes: it asks first, on standard input"
    )


def _start(request: dict[str, Any], directory: Path, stack: ExitStack) -> pair.Peer:
    chosen = request["interface"]
    address = (
        interfaces.address_of(chosen) if chosen else interfaces.local_address(request["client"])
    )
    name = chosen or interfaces.towards(request["client"])
    if request["server"] is None:
        return pair.Peer(socket.gethostname(), address, name, {"address": address})
    server: dict[str, Any] = request["server"]
    command = Command(
        argv=tuple(server["argv"]),
        timeout_s=server["timeout_s"],
        env=server["env"],
        files=server["files"],
    )
    return stack.enter_context(pair.serving(command, directory, address, name))


def _wait(peer: pair.Peer) -> None:
    """Until the client's side closes the pipe; a server that fails meanwhile is told once."""
    said = False
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], WATCH_S)
        if ready and not os.read(sys.stdin.fileno(), 4096):
            return
        reason = peer.ended()
        if reason and not said:
            said = True
            _say({"failed": reason})


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)
