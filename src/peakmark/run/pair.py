"""Run the server of a network cell, on this machine or on the second node of a job.

On one machine client and server communicate over loopback. In a job of two nodes, ``peakmark serve``
runs on the second node, where srun starts it. Its protocol has these steps:

- It reads a request, one line of JSON, and starts the server.
- When the server listens, it answers with one line.
- When its input ends, it stops the server and prints the load on its node as its last line. The input
  also ends if the measuring process dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import IO, Any

from peakmark import files, resources, slurm
from peakmark.errors import ExitCode, MeasurementError, PeakmarkError, Unavailable
from peakmark.machine import network
from peakmark.run import cleanup, execute, noise
from peakmark.tools.base import Command

Json = dict[str, Any]
LOOPBACK = "127.0.0.1"
READY_S = 20.0
"""Longest time, in seconds, that a server may take until it listens."""
START_S = 60.0
"""Longest time, in seconds, that srun, Python and the server may take to start on the other node."""
END_S = 15.0
"""Longest time, in seconds, that ``peakmark serve`` may take to end."""
WATCH_S = 0.2
"""Seconds between two checks of a process or pipe."""
TRIES = 5
"""Most attempts to find a free port."""
LISTEN = "0A"
"""State of a listening socket in /proc/net/tcp."""


@dataclass(frozen=True)
class Peer:
    """The server of a network cell, as its client sees it.

    Attributes:
        host: host of the server.
        address: IP address of the server.
        interface: interface of this machine through which the client reaches the server.
        values: values for the placeholders in the client's argv and environment.
        server_interface: interface on the server's node, if that is another node.
        ended: function that the client's side calls; returns why the server failed, or None.
        noise: load on the server's node, if that is another node; empty until the server ends.
    """

    host: str
    address: str
    interface: str
    values: dict[str, str]
    server_interface: str | None = None
    ended: Callable[[], str | None] = field(default=lambda: None)
    noise: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        """Return address and interfaces of the connection, for a record."""
        return {
            "interface": self.interface,
            "address": self.address,
            "loopback": self.address == LOOPBACK,
            "server_interface": self.server_interface or self.interface,
        }


def target(address: str = LOOPBACK, interface: str = "lo") -> Peer:
    """Return the peer of a cell whose program needs only an address, such as ping."""
    return Peer(socket.gethostname(), address, interface, {"address": address})


@contextmanager
def serving(
    server: Command, directory: Path, address: str = LOOPBACK, interface: str = "lo"
) -> Iterator[Peer]:
    """Run a server on a free port of this machine while the block runs, and yield its ``Peer``.

    Raises:
        MeasurementError: the server ended early or did not listen in time. The message has its last
            lines of output.
    """
    folder = directory / "server"
    folder.mkdir()
    key = secrets.token_hex(16)
    for _ in range(TRIES):
        values = {"address": address, "port": str(_free_port(address)), "key": key}
        with execute.start(server, folder, values) as process:
            if listens(process, int(values["port"])):
                ended = partial(_failed, process, folder)
                yield Peer(socket.gethostname(), address, interface, values, ended=ended)
                return
        # Another process may have taken the port before the server bound it: try another port. Some programs write
        # Address, some address.
        if "ddress already in use" not in execute.last_lines(folder):
            break
    name = Path(server.argv[0]).name
    raise MeasurementError(f"the server {name} did not start to listen{execute.last_lines(folder)}")


def _failed(process: Popen[bytes], folder: Path) -> str | None:
    """Return why a server failed, or None if it still runs or ended with exit code 0."""
    if process.poll() in (None, 0):
        return None
    return f"ended with exit code {process.returncode}{execute.last_lines(folder)}"


@contextmanager
def across(
    server: Command | None,
    directory: Path,
    interface: str | None,
    cpus: int,
    peer: str = "",
) -> Iterator[Peer]:
    """Run a server on the second node of this job while the block runs, and yield its ``Peer``.

    Args:
        server: command of the server; None if the cell needs only the peer's address.
        interface: interface of both nodes; None for the interface on the route between them.
        cpus: number of CPUs that the server may use.
        peer: node of the server, if this Slurm job has more than two nodes.

    Raises:
        MeasurementError: this job has no second node, or the server did not start there.
        Unavailable: this process runs in no Slurm job.
    """
    far_end = _start_far_end(directory, cpus, peer)
    load: Json = {}
    with _ended_after(far_end.process, load):
        request: Json = {"server": None, "interface": interface, "client": far_end.client}
        if server:
            request["server"] = asdict(server)
        answer = far_end.ask(request)
        # Check that the route to the server uses the interface to measure.
        near = network.interface_towards(answer["address"])
        if interface not in (None, near):
            raise MeasurementError(
                f"{far_end.local} reaches {answer['address']} of {far_end.remote} through {near},"
                f" not through {interface}",
                "give the interface an address in one network on all nodes, or change interface:",
            )
        yield Peer(**answer, interface=near, ended=far_end.why_ended, noise=load)


@dataclass(frozen=True)
class _FarEnd:
    """``peakmark serve`` on the second node of this job.

    Attributes:
        local: name of this node.
        remote: name of the second node.
        client: address of this node.
        process: process of srun, which starts ``peakmark serve`` there.
        folder: folder in which srun's standard error is written.
    """

    local: str
    remote: str
    client: str
    process: Popen[bytes]
    folder: Path

    def ask(self, request: Json) -> Json:
        """Send a request for a server, and return the answer when the server listens.

        Raises:
            MeasurementError: the server did not start.
        """
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        answer = _line(self.process, START_S)
        if answer is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_S)
            answer = {"failed": f"no answer{execute.last_lines(self.folder)}"}
        if "failed" in answer:
            raise MeasurementError(f"the server on {self.remote} did not start: {answer['failed']}")
        return answer

    def why_ended(self) -> str | None:
        """Return why the server failed, or None if it still runs."""
        answer = _line(self.process, 0.0)
        if answer and "failed" in answer:
            return f"on {self.remote} {answer['failed']}"
        if self.process.poll() is None:
            return None
        code = f"ended with exit code {self.process.returncode}{execute.last_lines(self.folder)}"
        return f"on {self.remote} is gone, its srun {code}"


def _start_far_end(directory: Path, cpus: int, peer: str) -> _FarEnd:
    """Start ``peakmark serve`` on the second node of this job. ``across`` explains the arguments."""
    number = os.environ.get("SLURM_JOB_ID")
    if not number:
        raise Unavailable(
            "this row needs two nodes of one Slurm job, and other schedulers start none",
            "run it with --profile slurm",
        )
    local, remote = _both_nodes(number, peer)
    client = slurm.address(local)
    argv = [*step(remote, cpus), *resources.command("serve")]
    folder = directory / "srun"
    folder.mkdir()
    with (folder / "stderr").open("wb") as stream:
        process = started(argv, stream)
    return _FarEnd(local, remote, client, process, folder)


def _both_nodes(number: str, peer: str) -> tuple[str, str]:
    """Return the names of this node and of another node of a Slurm job.

    The other node is ``peer`` or, if ``peer`` is empty, the first node that is not this one.
    """
    names = slurm.job_nodes(number)
    local = [name for name in names if slurm.is_here(name)]
    remote = [name for name in names if name not in local and peer in ("", name)]
    if not local or not remote:
        raise MeasurementError(
            f"job {number} has the nodes {', '.join(names) or 'none'}:"
            f" two are needed, one of them {socket.gethostname()}"
        )
    return local[0], remote[0]


def step(node: str, cpus: int) -> list[str]:
    """Return the srun command that starts a step on one node of this job, next to its other steps."""
    return [*step_of_ranks([node], 1), f"--cpus-per-task={cpus}"]


def step_of_ranks(nodes: Sequence[str], ranks: int) -> list[str]:
    """Return the srun command that starts ``ranks`` processes on each of these nodes of the job.

    They may share the CPUs (``--overlap``) and the memory (``--mem=0``) of the job's other steps.
    """
    return [
        "srun",
        f"--jobid={os.environ['SLURM_JOB_ID']}",
        "--overlap",
        f"--nodes={len(nodes)}",
        f"--ntasks={ranks * len(nodes)}",
        f"--ntasks-per-node={ranks}",
        f"--nodelist={','.join(nodes)}",
        "--mem=0",
        "--unbuffered",
        "--kill-on-bad-exit=1",
    ]


def environment() -> dict[str, str]:
    """Return the environment without Slurm's task variables, which srun would treat as options."""
    return {**slurm.environment(), "SLURM_JOB_ID": os.environ["SLURM_JOB_ID"]}


def started(argv: Sequence[str], stderr: IO[bytes] | None = None) -> Popen[bytes]:
    """Start a step of this job, with pipes for its input and output."""
    return Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        bufsize=0,
        env=environment(),
        start_new_session=True,
    )


def finish(process: Popen[bytes]) -> None:
    """Close the input of a step, which then ends. End the step by signals if it does not."""
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        execute.end(process, grace_s=END_S)


def prints(process: Popen[bytes], word: str, limit_s: float) -> bool:
    """Wait until a process prints a line that is ``word``. Return whether it did in time."""
    deadline = time.monotonic() + limit_s
    while text := _next_line(process, deadline):
        if text.strip() == word:  # skip a greeting of the node's shell
            return True
    return False


def _line(process: Popen[bytes], limit_s: float) -> Json | None:
    """Return the next line from ``peakmark serve``, parsed as JSON.

    The result is None if no line came in time or the process has ended.
    """
    deadline = time.monotonic() + limit_s
    while text := _next_line(process, deadline):
        with contextlib.suppress(ValueError):  # skip a greeting that the node's shell prints
            answer = json.loads(text)
            if isinstance(answer, dict):
                return answer
    return None


def _next_line(process: Popen[bytes], deadline: float) -> str:
    """Return the next line of a step's output.

    Return an empty text if no line came before ``deadline``, or if the step has ended.
    """
    stream = process.stdout
    assert stream is not None  # noqa: S101 - it is a pipe
    while True:
        wait = max(0.0, min(WATCH_S, deadline - time.monotonic()))
        if select.select([stream], [], [], wait)[0]:
            return stream.readline().decode(errors="replace")
        if time.monotonic() >= deadline or process.poll() is not None:
            return ""


@contextmanager
def _ended_after(process: Popen[bytes], load: Json) -> Iterator[None]:
    """End ``peakmark serve`` and its server after the block, by closing the input of the process.

    Add the load that ``peakmark serve`` then reports to ``load``. End srun if it does not end in
    time.
    """
    with process:
        try:
            yield
        finally:
            assert process.stdin is not None  # noqa: S101 - it is a pipe
            process.stdin.close()
            while last := _line(process, END_S):
                load |= last.get("noise", {})
            finish(process)


def _free_port(address: str) -> int:
    """Return a TCP port that is free at an address of this machine."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise MeasurementError(
                f"no server can listen on {address} of {socket.gethostname()}: {error.strerror}"
            ) from error
        return int(probe.getsockname()[1])


def listens(process: Popen[bytes], port: int) -> bool:
    """Wait until a process listens on a port. Return whether it did in time.

    The state is read from /proc, because the server would take a test connection for its client.
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
    """Return the TCP ports in state LISTEN in a process's network namespace."""
    ports: set[int] = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):  # no IPv6, or the process has ended
            text = Path(f"/proc/{process}/net/{table}").read_text()
            found = re.findall(rf"(?m)^ *\d+: \S+:(\w+) \S+ {LISTEN} ", text)
            ports |= {int(port, 16) for port in found}
    return ports


def serve() -> int:
    """Start the server that a request on standard input describes, and stop it when the input ends.

    Return the exit code of ``peakmark serve``.
    """
    try:
        request: Json = json.loads(sys.stdin.readline())
        before = noise.read_now()
        with (
            cleanup.private_directory(files.scratch()) as directory,
            ExitStack() as stack,
        ):
            peer = _start_server(request, directory, stack)
            _answer(
                host=peer.host,
                address=peer.address,
                server_interface=peer.interface,
                values=peer.values,
            )
            _wait(peer)
    except PeakmarkError as error:
        _answer(failed=str(error))
        return ExitCode.ERROR
    _answer(noise=asdict(noise.since(before)))
    return ExitCode.GOOD


def _start_server(request: Json, directory: Path, stack: ExitStack) -> Peer:
    """Start the server that a request describes. It runs until the stack is closed."""
    interface, client = request["interface"], request["client"]
    if interface:
        address = network.address_of(interface)
    else:
        address = network.local_address(client)
        interface = network.interface_towards(client)
    if request["server"] is None:
        return target(address, interface)
    server = Command(**request["server"])
    return stack.enter_context(serving(server, directory, address, interface))


def _wait(peer: Peer) -> None:
    """Wait until the client's side closes the pipe. If the server fails meanwhile, report it once."""
    reported = False
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], WATCH_S)
        if ready and not os.read(sys.stdin.fileno(), 4096):  # the end of the input
            return
        reason = peer.ended()
        if reason and not reported:
            reported = True
            _answer(failed=reason)


def _answer(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)
