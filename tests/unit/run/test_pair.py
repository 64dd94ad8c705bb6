import io
import shlex
import socket
import subprocess
import sys

import pytest

from peakmark.errors import MeasurementError, Unavailable
from peakmark.run import job, pair
from peakmark.tools.base import Command

SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print(sys.argv[3])
while True:
    listener.accept()[0].sendall(b"hello")
"""


def server(code):
    return Command(argv=(sys.executable, "-c", code, "{address}", "{port}", "{key}"), timeout_s=20)


def test_the_server_listens_in_the_block_and_is_gone_after_it(tmp_path):
    (tmp_path / "other").mkdir()
    with (
        pair.serving(server(SERVER), tmp_path) as peer,
        pair.serving(server(SERVER), tmp_path / "other") as other,
    ):
        assert peer.values["key"] != other.values["key"]
        where = (peer.address, int(peer.values["port"]))
        with socket.create_connection(where, timeout=5) as connection:
            assert connection.recv(5) == b"hello"
        assert peer.to_json()["loopback"] is True
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(where, timeout=5)


def test_a_server_that_dies_is_reported_with_its_last_words(tmp_path):
    dying = server("raise SystemExit('no such interface')")
    words = r"did not start to listen.*no such interface"
    with pytest.raises(MeasurementError, match=words), pair.serving(dying, tmp_path):
        pass


def test_a_port_in_use_is_tried_again_elsewhere(tmp_path):
    first = "import os, sys\nif not os.path.exists('tried'):\n    open('tried', 'w').close()\n"
    code = f"{first}    sys.exit('bind: Address already in use')\n{SERVER}"
    with pair.serving(server(code), tmp_path) as peer:
        assert int(peer.values["port"]) > 0
    assert list(tmp_path.rglob("tried"))


IN_A_NETWORK_OF_ITS_OWN = """
import sys
from pathlib import Path
from peakmark.errors import MeasurementError
from peakmark.tools.base import Command
from peakmark.machine import network
from peakmark.run import pair
for attempt in (
    lambda: pair.serving(Command(argv=("true",), timeout_s=5), Path(sys.argv[1])).__enter__(),
    lambda: network.address_of("eth7"),
    lambda: network.local_address("192.0.2.1"),
):
    try:
        attempt()
    except MeasurementError as error:
        print(error)
"""


@pytest.mark.parametrize("words", ["true", "ip link set lo up; ip -4 address flush dev lo"])
def test_without_loopback_or_with_ipv6_alone_it_is_a_sentence(tmp_path, words):
    """In a network namespace with nothing but a loopback that is down, after some commands."""
    argv = [sys.executable, "-c", IN_A_NETWORK_OF_ITS_OWN, str(tmp_path)]
    namespace = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c"]
    code = f"{words}; exec {shlex.join(argv)}"
    done = subprocess.run([*namespace, code], capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr:
        pytest.skip(f"no namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    serving, interface, way = done.stdout.splitlines()
    # Some kernels let a program listen there nevertheless.
    assert "127.0.0.1" in serving or "start to listen" in serving
    assert "'eth7'" in interface and "change interface:" in interface
    assert "no IPv4 route to 192.0.2.1" in way


def test_two_nodes_outside_of_a_slurm_job_are_not_possible(tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    words = "needs two nodes of one Slurm job"
    with pytest.raises(Unavailable, match=words), pair.across(server(SERVER), tmp_path, None, 1):
        pass


@pytest.mark.parametrize(("script", "is_ready"), [
    ("echo welcome; echo ready; cat", True),
    ("echo welcome", False),
    ("exec cat", False),
])  # fmt: skip
def test_readiness_is_a_line_of_its_own(script, is_ready):
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen(["sh", "-c", script], bufsize=0, **pipes) as process:
        assert pair.prints(process, "ready", 0.5) == is_ready
        process.stdin.close()


def test_a_ready_pair_ends_when_another_one_failed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(MeasurementError, match="did not become ready"):
        job.wait_for_start(None)
