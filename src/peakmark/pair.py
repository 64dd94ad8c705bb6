"""Cells with a server: start it, know that it listens, run the client, leave nothing behind.

On one machine both ends run here and talk over loopback; inside a Slurm allocation of two nodes the server's end is
started on the second node.
"""

from __future__ import annotations

import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import execute
from peakmark.errors import MeasurementError
from peakmark.instruments.base import Command, Invocation

LOOPBACK = "127.0.0.1"
READY_S = 20.0
TRIES = 5
LISTEN = "0A"


@dataclass(frozen=True)
class Peer:
    """Where the client finds the server. ``values`` fill the placeholders of argv and environment."""

    host: str
    address: str
    interface: str
    values: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        return {"interface": self.interface, "address": self.address, "loopback": self.address == LOOPBACK}


def wanted(invocation: Invocation) -> bool:
    """Whether a command names a peer's address, though it needs no server there (ping)."""
    return any("{address}" in word for command in invocation.commands for word in command.argv)


def target() -> Peer:
    """The peer of a cell without a server."""
    return Peer(socket.gethostname(), LOOPBACK, "lo", {"address": LOOPBACK})


@contextmanager
def serving(server: Command, directory: Path) -> Iterator[Peer]:
    """A server on a free port of this machine, up when the block starts and gone when it is left.

    Errors: MeasurementError when it ends early or does not listen in time, with its last words.
    """
    folder = directory / "server"
    folder.mkdir()
    key = secrets.token_hex(16)
    for attempt in range(TRIES):
        values = {"address": LOOPBACK, "port": str(_free_port()), "key": key}
        with execute.start(server, folder, values) as process:
            if _listens(process, int(values["port"])):
                yield Peer(socket.gethostname(), LOOPBACK, "lo", values)
                return
            # Between finding the port free and the server's bind, somebody else may have taken it: try another.
            if "ddress already in use" not in execute.last_lines(folder) or attempt == TRIES - 1:
                raise MeasurementError(
                    f"the server {Path(server.argv[0]).name} did not start to listen{execute.last_lines(folder)}"
                )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until the port is in state LISTEN, as /proc has it: a probing connection would be taken for the client."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if port in _listening_ports():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    return False


def _listening_ports() -> set[int]:
    ports = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        if path.exists():
            for line in path.read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN:
                    ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports
