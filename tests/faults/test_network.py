"""Servers that never answer or hang up, and strangers at the door. Bad lines: test_guest.py."""

import itertools
import json
import os
import re
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench import KERNELS, network_cell
from tests.programs import executable, wait_for

from peakmark.run import pair
from peakmark.tools import base

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
def test_a_bad_server_gives_no_number(bench, instrument, reset, monkeypatch):
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


@contextmanager
def serving(address="127.0.0.1", environment=KEY):
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


def client(*words, environment=KEY):
    argv = [NETBENCH, *words]
    done = subprocess.run(
        argv, env={**os.environ, **environment}, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def udp_ports(pid):
    """The ports on which a process hears datagrams."""
    folder = Path(f"/proc/{pid}/fd")
    sockets = {os.readlink(entry) for entry in folder.iterdir()}
    fields = [line.split() for line in Path(f"/proc/{pid}/net/udp").read_text().splitlines()[1:]]
    return {int(one[1][-4:], 16) for one in fields if f"socket:[{one[9]}]" in sockets}


@pytest.mark.parametrize("mode", ["TCP", "UDP", "latency --protocol UDP"])
def test_while_it_measures_nobody_else_is_heard(kernels, mode):
    """Nobody can connect, and datagrams of others are neither counted nor answered."""
    with serving() as (pid, port):
        words = f"{mode} --seconds 1.5 --warmup 0 --port {port} 127.0.0.1".split()
        environment, pipe = {**os.environ, **KEY}, subprocess.PIPE
        with (
            subprocess.Popen([NETBENCH, *words], env=environment, stdout=pipe) as client,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
        ):
            wait_for(lambda: len(os.listdir(f"/proc/{pid}/task")) > 1, "the test is under way")
            assert port not in pair.listening_ports()  # it does not listen any more
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5)
            other.settimeout(0.2)
            ports = udp_ports(pid)
            for place, text in itertools.product(ports, (b"x", b"\0" * 24, b"y" * 1024)):
                other.sendto(text, ("127.0.0.1", place))
            with pytest.raises(TimeoutError):
                other.recv(65536)
            assert client.stdout is not None
            result = json.load(client.stdout)
        assert client.returncode == 0 and bool(ports) == ("UDP" in mode)
    if "sent" in result:
        assert result["sent"] == result["received"] + result["lost"]
        assert result["duplicated"] == 0


def test_only_the_chosen_address_is_bound(kernels):
    with serving(address="127.0.0.5") as (_, port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)
        client("TCP", "--seconds", "0.05", "--port", str(port), "127.0.0.5")


def test_the_key_is_in_no_record_no_log_and_no_command_line(bench):
    """It is read from the environment of the server of a real cell."""
    seen = []
    lines = []
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
