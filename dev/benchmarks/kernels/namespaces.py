"""Two network namespaces joined by a virtual Ethernet link: two hosts on one machine, made and
removed here. Needs root.

Between them packets pass the whole network stack with the link's MTU of 1500 B, where loopback has
64 KiB.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from peakmark.errors import MeasurementError, Unavailable
from peakmark.run import execute, pair
from peakmark.tools.base import Command

# Set apart for measurements between network devices (RFC 2544), so no route of this machine can be
# in the way.
CLIENT, SERVER = "198.18.0.1", "198.18.0.2"
PORT = 20101  # the namespaces are ours alone: no other program can hold it


@dataclass(frozen=True)
class Namespaces:
    """Names of the two namespaces, and of the link's end in the client's."""

    client: str
    server: str
    device: str

    def inside(self, name: str, command: Command) -> Command:
        """``command`` as it is run in one of the two."""
        return replace(command, argv=("ip", "netns", "exec", name, *command.argv))

    @contextmanager
    def serving(self, server: Command, directory: Path) -> Iterator[Mapping[str, str]]:
        """A server in its namespace, listening when the block starts, gone after it: as
        ``peakmark.run.pair.serving``.
        """
        folder = directory / "server"
        folder.mkdir()
        values = {"address": SERVER, "port": str(PORT), "key": secrets.token_hex(16)}
        with execute.start(self.inside(self.server, server), folder, values) as process:
            if not pair.listens(process, PORT):
                said = execute.last_lines(folder)
                raise MeasurementError(f"the server {server.argv[0]} did not start to listen{said}")
            yield values


@contextmanager
def joined() -> Iterator[Namespaces]:
    """The two namespaces; removed when the block is left, however it is left.

    Errors: Unavailable without root, without ``ip``, or where the kernel refuses.
    """
    if os.geteuid() != 0:
        raise Unavailable("network namespaces need root: run as root, or look at the loopback rows")
    link, peer = f"pm{os.getpid()}a", f"pm{os.getpid()}b"
    names = Namespaces(f"peakmark-{os.getpid()}-a", f"peakmark-{os.getpid()}-b", link)
    with ExitStack() as stack:
        for name in (names.client, names.server):
            run("ip", "netns", "add", name)
            stack.callback(run, "ip", "netns", "delete", name)
        ends = ("netns", names.client, "type", "veth", "peer", "name", peer, "netns", names.server)
        run("ip", "link", "add", link, *ends)
        for name, device, address in ((names.client, link, CLIENT), (names.server, peer, SERVER)):
            run("ip", "-n", name, "address", "add", f"{address}/30", "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        yield names


def run(*argv: str) -> None:
    """Run a command to its end. Errors: Unavailable with the reason."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"{argv[0]}: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise Unavailable(f"{' '.join(argv)}: {said}")
