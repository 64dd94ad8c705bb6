"""Servers that never answer or hang up, and strangers at the door. Bad lines: test_guest.py."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench import KERNELS, Bench, executable, network_cell, wait_for
from tests.unit import campaign_data as make

from peakmark.analysis import compare, datasets
from peakmark.run import pair
from peakmark.tools import base
from peakmark.tools.common import Output, details

NETBENCH = str(KERNELS / "netbench")
KEY = {"NETBENCH_KEY": "a key of the tests"}
# In the place of a server: says nothing, or hangs up with a reset as soon as somebody has said
# something.
BAD_SERVER = """#!{python}
import os, socket, struct, sys
words = sys.argv[1:]
if "--server" not in words and words[:1] != ["serve"]:
    os.execv({program!r}, [{program!r}, *words])
port = int(words[words.index("--port") + 1])
listener = socket.create_server(("127.0.0.1", port))
guests = []
while True:
    guest, _ = listener.accept()
    guests.append(guest)
    if {reset}:
        guest.recv(1)
        guest.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        guest.close()
"""


@pytest.mark.parametrize("reset", [False, True], ids=["never-answers", "resets"])
@pytest.mark.parametrize("instrument", ["netbench", "iperf3"])
def test_a_bad_server_gives_no_number(
    bench: Bench, instrument: str, reset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = NETBENCH if instrument == "netbench" else "/usr/bin/iperf3"
    if not Path(program).exists():
        pytest.skip(f"{program} is not here")
    bad = executable(
        bench.directory / "bin" / instrument,
        BAD_SERVER.format(python=sys.executable, program=program, reset=reset),
    )
    monkeypatch.setattr(base, "timeout", lambda _: 3.0)
    cell = network_cell(instrument, seconds=1)
    said = bench.failure(cell, str(bad), monkeypatch)
    bench.assert_failed(cell, said)
    assert reset or re.search("end within|answer", said)
    bench.assert_completes(cell)


# -- strangers, while something is measured


class Strangers:
    """Somebody who connects, talks nonsense and sends datagrams to every port of the server until
    it is gone.
    """

    def __init__(self, pid: int, port: int) -> None:
        self.pid, self.port = pid, port
        self.over = threading.Event()
        self.refused = self.sent = 0
        self.replies: list[bytes] = []
        self.thread = threading.Thread(target=self.disturb)

    def udp_ports(self) -> set[int]:
        lines = Path(f"/proc/{self.pid}/net/udp").read_text().splitlines()[1:]
        inodes = {
            os.readlink(f"/proc/{self.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{self.pid}/fd")
        }
        return {
            int(line.split()[1].split(":")[1], 16)
            for line in lines
            if f"socket:[{line.split()[9]}]" in inodes
        }

    def disturb(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as knocker:
            knocker.setblocking(False)
            while not self.over.is_set():
                try:
                    with socket.create_connection(("127.0.0.1", self.port), timeout=1) as guest:
                        guest.sendall(b"peakmark" + b"\0" * 300)
                        guest.settimeout(1)
                        self.refused += guest.recv(1) == b""
                except OSError:
                    self.refused += 1
                try:
                    for port in self.udp_ports():
                        for text in (b"x", b"\0" * 24, b"y" * 1024):
                            knocker.sendto(text, ("127.0.0.1", port))
                            self.sent += 1
                    self.replies.append(knocker.recv(65536))
                except OSError:
                    continue

    def __enter__(self) -> Strangers:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


@contextmanager
def serving(
    address: str = "127.0.0.1", environment: dict[str, str] = KEY
) -> Iterator[tuple[int, int]]:
    """A netbench server: its process id and port. It is gone in the end by itself."""
    argv = [NETBENCH, "serve", "--address", address, "--port", "0", "--deadline", "60"]
    with subprocess.Popen(
        argv, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            yield process.pid, int(process.stderr.readline().split("port ")[1].split()[0])
            process.wait(20)
        finally:
            process.kill()


def client(*words: str, environment: dict[str, str] = KEY) -> dict[str, object]:
    argv = [NETBENCH, *words]
    done = subprocess.run(
        argv, env={**os.environ, **environment}, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize(
    "mode", [("TCP",), ("UDP",), ("latency", "--protocol", "UDP")], ids=lambda mode: mode[-1]
)
def test_strangers_are_refused_without_disturbing_what_is_measured(
    kernels: None, mode: tuple[str, ...]
) -> None:
    with serving() as (pid, port), Strangers(pid, port) as strangers:
        wait_for(lambda: strangers.refused > 2, "strangers have been turned away")
        result = client(
            *mode, "--seconds", "0.5", "--warmup", "0.1", "--port", str(port), "127.0.0.1"
        )
        if mode[0] != "TCP":
            wait_for(
                lambda: strangers.sent > 10 or not Path(f"/proc/{pid}/fd").exists(),
                "strangers have sent",
            )
    assert not strangers.replies  # nobody but the peer is answered
    if mode[0] == "latency":
        assert result["round_trips"]
    else:
        assert result["sent"] == result["received"] + result["lost"]  # type: ignore[operator]
        assert result["duplicated"] == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_while_it_measures_the_door_is_shut(kernels: None) -> None:
    """Once the peer is in, nobody can even connect."""
    with serving() as (pid, port):
        words = ["--seconds", "1.5", "--warmup", "0", "--port", str(port), "127.0.0.1"]
        argv = [NETBENCH, "TCP", *words]
        environment, nothing = {**os.environ, **KEY}, subprocess.DEVNULL
        with subprocess.Popen(argv, env=environment, stdout=nothing) as measuring_client:
            wait_for(lambda: len(os.listdir(f"/proc/{pid}/task")) > 1, "the test is under way")
            assert port not in pair.listening_ports()  # it does not listen any more
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5)
        assert measuring_client.returncode == 0


def test_only_the_chosen_address_is_bound(kernels: None) -> None:
    with serving(address="127.0.0.5") as (_, port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)
        client("TCP", "--seconds", "0.05", "--port", str(port), "127.0.0.5")


def test_the_key_is_in_no_record_no_log_and_no_command_line(bench: Bench) -> None:
    """The real thing: while a cell is measured, its key is read from the server's environment and
    looked for.
    """
    seen: list[bytes] = []
    lines: list[bytes] = []
    with bench.measuring(network_cell(seconds=1.5)) as process:
        wait_for(lambda: len(bench.processes("netbench")) == 2, "server and client run")
        for pid in bench.processes():
            lines.append(Path(f"/proc/{pid}/cmdline").read_bytes())
            for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                if entry.startswith(b"NETBENCH_KEY="):
                    seen.append(entry.partition(b"=")[2])
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.wait() == 0, said
    assert len(seen) == 2 and len(set(seen)) == 1 and len(seen[0]) == 32
    assert not any(seen[0] in line for line in lines)
    for path in bench.campaign.rglob("*"):
        assert path.is_dir() or seen[0] not in path.read_bytes(), path
    assert seen[0].decode() not in said


# -- one packet in a hundred


DELAY_S = 0.05


class Delaying:
    """A proxy in front of a server, which holds up every hundredth packet in each direction, if any.

    It stands in for ``tc netem``, which few kernels of virtual machines have.
    """

    def __init__(self, port: int, seconds: float) -> None:
        self.server, self.seconds = port, seconds
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                guest, _ = self.listener.accept()
                host = socket.create_connection(("127.0.0.1", self.server))
                for ends in ((guest, host), (host, guest)):
                    threading.Thread(target=self.forward, args=ends, daemon=True).start()

    def forward(self, source: socket.socket, sink: socket.socket) -> None:
        sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            for number in itertools.count(1):
                packet = source.recv(65536)
                if not packet:
                    sink.shutdown(socket.SHUT_WR)
                    return
                if number % 100 == 0:
                    time.sleep(self.seconds)
                sink.sendall(packet)


def test_delaying_one_packet_in_a_hundred_moves_p99_and_not_p50(
    kernels: None, tmp_path: Path
) -> None:
    words = ["latency", "--protocol", "TCP", "--round-trips", "500", "--warmup", "0"]
    records: dict[float, list[dict[str, Any]]] = {0.0: [], DELAY_S: []}
    for repetition in range(3):
        for seconds in records:
            with serving() as (_, port):
                proxy = Delaying(port, seconds)
                result = client(*words, "--port", str(proxy.port), "127.0.0.1")
                proxy.listener.close()
            place = {"details": details(Output("netbench", result)), "block": 1}
            mean = float(str(result["value"]))
            made = make.runs("netbench", "LAT-TCP", mean, repetition=repetition, **place)
            records[seconds] += made
    before, after = (
        datasets.read(str(make.write(tmp_path / str(seconds), made)))
        for seconds, made in records.items()
    )
    # Python's own delays differ from run to run, but not by a factor of two.
    rows, *_ = compare.compare(before, after, tolerance=1.0)
    verdicts = {row.point.percentile: row.verdict for row in rows}
    assert (verdicts["p50"], verdicts["p99"]) == ("no difference shown", "worse")


def test_the_wrong_key_is_refused_and_the_right_one_served(kernels: None) -> None:
    with serving() as (_, port):
        words = [NETBENCH, "TCP", "--seconds", "0.05", "--port", str(port), "127.0.0.1"]
        wrong = subprocess.run(
            words, env={**os.environ, "NETBENCH_KEY": "wrong"}, capture_output=True, text=True
        )
        assert wrong.returncode == 1
        client("TCP", "--seconds", "0.05", "--port", str(port), "127.0.0.1")
