"""Cells with two ends: bring up the far one, know that it listens, run the client, leave nothing
behind.

On one machine both ends run here and talk over loopback. Inside a Slurm allocation of two nodes a
helper (``peakmark serve``) runs on the second one through srun; it starts the server, tells where
it listens once it does, and ends with the pipe that connects it to this process, whatever becomes
of this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import IO, Any

from peakmark import resources, slurm
from peakmark.reasons import MeasurementError
from peakmark.run import execute, interfaces
from peakmark.tools.base import Command

LOOPBACK = "127.0.0.1"
READY_S = 20.0
START_S = 60.0
"""srun, Python and the server on the other node: seconds on a busy cluster, and never for ever."""
END_S = 15.0
TRIES = 5
LISTEN = "0A"


@dataclass(frozen=True)
class Peer:
    """Where the client finds the far end. ``values`` fill the placeholders of argv and environment.

    ended   asked while the client runs: why the server has failed, None while it has not
    noise   what else went on on the server's node meanwhile (``peakmark.run.noise``), when
            that is another node and the far end is gone; empty before
    """

    host: str
    address: str
    interface: str
    values: dict[str, str]
    server_interface: str | None = None
    ended: Callable[[], str | None] = field(default=lambda: None)
    noise: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "interface": self.interface,
            "address": self.address,
            "loopback": self.address == LOOPBACK,
            "server_interface": self.server_interface or self.interface,
        }


def target() -> Peer:
    """The peer of a cell without a server."""
    return Peer(socket.gethostname(), LOOPBACK, "lo", {"address": LOOPBACK})


@contextmanager
def serving(
    server: Command, directory: Path, address: str = LOOPBACK, interface: str = "lo"
) -> Iterator[Peer]:
    """A server on a free port of this machine, up when the block starts and gone when it is left.

    Errors: MeasurementError when it ends early or does not listen in time, with its last words.
    """
    folder = directory / "server"
    folder.mkdir()
    key = secrets.token_hex(16)
    for attempt in range(TRIES):
        values = {"address": address, "port": str(_free_port(address)), "key": key}
        with execute.start(server, folder, values) as process:
            if listens(process, int(values["port"])):

                def ended(process: Popen[bytes] = process) -> str | None:
                    if process.poll() in (None, 0):  # 0: it has served its one client
                        return None
                    return f"ended with exit code {process.returncode}{execute.last_lines(folder)}"

                yield Peer(socket.gethostname(), address, interface, values, ended=ended)
                return
            # Between finding the port free and the server's bind, somebody else may have taken it:
            # try another.
            if "ddress already in use" not in execute.last_lines(folder) or attempt == TRIES - 1:
                name = Path(server.argv[0]).name
                raise MeasurementError(
                    "no-listening", program=name, said=execute.last_lines(folder)
                )


@contextmanager
def across(
    server: Command | None, directory: Path, interface: str | None, cpus: int
) -> Iterator[Peer]:
    """The far end on the second node of this allocation, up when the block starts and gone when it
    is left.

    server     None where the cell needs only the peer's address
    interface  of both nodes; None: the one on the route between them
    cpus       that the server may use

    Errors: MeasurementError when there is no second node, or the server does not come up there.
    """
    here, there = second_node()
    request = {
        "server": asdict(server) if server else None,
        "interface": interface,
        "client": slurm.address(here),
    }
    argv = [*step(there, cpus), *resources.command("serve")]
    folder = directory / "srun"
    folder.mkdir()
    with (folder / "stderr").open("wb") as stream:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
            bufsize=0,
            env=environment(),
            start_new_session=True,
        )
    noise: dict[str, Any] = {}
    with _helper(process, noise) as pipe:
        with contextlib.suppress(BrokenPipeError):
            pipe.write(json.dumps(request).encode() + b"\n")
        answer = _line(process, START_S)
        if answer is None or "failed" in answer:
            why = answer["failed"] if answer else f"no answer{execute.last_lines(folder)}"
            raise MeasurementError("no-far-end", host=there, why=why)
        near = interfaces.towards(answer["address"])
        if interface is not None and near != interface:
            where = {"host": here, "address": answer["address"], "peer": there, "near": near}
            raise MeasurementError("other-route", **where, interface=interface)

        def ended() -> str | None:
            news = _line(process, 0.0)
            if news and "failed" in news:
                return f"on {there} {news['failed']}"
            if process.poll() is not None:
                return f"on {there} is gone, its srun ended with exit code {process.returncode}{execute.last_lines(folder)}"
            return None

        yield Peer(
            answer["host"],
            answer["address"],
            near,
            answer["values"],
            answer["interface"],
            ended,
            noise,
        )


def second_node() -> tuple[str, str]:
    """(this node, the other one) of the allocation. Errors: MeasurementError."""
    number = os.environ.get("SLURM_JOB_ID")
    if not number:
        raise MeasurementError("no-job", variable="SLURM_JOB_ID")
    names = slurm.job_nodes(number)
    own = socket.gethostname().partition(".")[0]
    others = [name for name in names if name.partition(".")[0] != own]
    if not others or len(others) == len(names):
        raise MeasurementError("no-second-node", job=number, nodes=names or "none", host=own)
    return next(name for name in names if name not in others), others[0]


def step(node: str, cpus: int) -> list[str]:
    """The srun that runs something on one node of the own allocation beside what runs there
    already.
    """
    return [
        *("srun", f"--jobid={os.environ['SLURM_JOB_ID']}", "--overlap", "--nodes=1", "--ntasks=1"),
        *(
            f"--nodelist={node}",
            f"--cpus-per-task={cpus}",
            "--mem=0",
            "--unbuffered",
            "--kill-on-bad-exit=1",
        ),
    ]


def environment() -> dict[str, str]:
    """Without what the allocation says of its tasks, which srun would take for options."""
    return slurm.environment() | {
        name: os.environ[name] for name in ("SLURM_JOB_ID",) if name in os.environ
    }


def _line(process: subprocess.Popen[bytes], limit_s: float) -> dict[str, Any] | None:
    """The next line of the helper as JSON; None when none came in time or it is gone."""
    stream = process.stdout
    assert stream is not None  # noqa: S101 - it was asked for
    deadline = time.monotonic() + limit_s
    while True:
        ready, _, _ = select.select(
            [stream], [], [], max(0.0, min(0.2, deadline - time.monotonic()))
        )
        if ready:
            text = stream.readline()
            try:
                answer = json.loads(text)
            except ValueError:
                if not text:
                    return None
                continue  # a greeting of the node's shell, not of the helper
            if isinstance(answer, dict):
                return answer
        elif time.monotonic() >= deadline or process.poll() is not None:
            return None


@contextmanager
def _helper(process: subprocess.Popen[bytes], noise: dict[str, Any]) -> Iterator[IO[bytes]]:
    """The pipe to the helper. On leaving it is closed, which ends the helper and its server, and
    the noise that it then tells is kept; srun is made to end them if they do not.
    """
    pipe = process.stdin
    assert pipe is not None  # noqa: S101 - it was asked for
    with process:
        try:
            yield pipe
        finally:
            pipe.close()
            while last := _line(process, END_S):
                noise |= last.get("noise", {})
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                execute.end(process, grace_s=END_S)


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise MeasurementError(
                "no-loopback" if address == LOOPBACK else "no-port",
                address=address,
                host=socket.gethostname(),
                why=error.strerror,
            ) from error
        port: int = probe.getsockname()[1]
        return port


def listens(process: Popen[bytes], port: int) -> bool:
    """Wait until the port is in state LISTEN, as /proc has it: a probing connection would be taken
    for the client.
    """
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if port in listening_ports(process.pid):
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    return False


def listening_ports(process: int | str = "self") -> set[int]:
    """TCP ports in state LISTEN in the network namespace of a process."""
    ports = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):  # no IPv6, or it has ended
            for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN:
                    ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports
