import socket
import sys
from pathlib import Path

import pytest

from peakmark.errors import MeasurementError
from peakmark.instruments.base import Command
from peakmark.measuring import pair

SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print(sys.argv[3])
while True:
    listener.accept()[0].sendall(b"hello")
"""


def server(code: str) -> Command:
    return Command(argv=(sys.executable, "-c", code, "{address}", "{port}", "{key}"), timeout_s=20)


def test_the_server_listens_in_the_block_and_is_gone_after_it(tmp_path: Path) -> None:
    with pair.serving(server(SERVER), tmp_path) as peer:
        where = (peer.address, int(peer.values["port"]))
        with socket.create_connection(where, timeout=5) as connection:
            assert connection.recv(5) == b"hello"
        assert peer.to_json()["loopback"] is True
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(where, timeout=5)


def test_every_cell_has_a_key_of_its_own(tmp_path: Path) -> None:
    keys = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with pair.serving(server(SERVER), tmp_path / name) as peer:
            keys.add(peer.values["key"])
    assert len(keys) == 2


def test_a_server_that_dies_is_reported_with_its_last_words(tmp_path: Path) -> None:
    with (
        pytest.raises(MeasurementError, match=r"did not start to listen.*no such interface"),
        pair.serving(server("raise SystemExit('no such interface')"), tmp_path),
    ):
        pass


def test_a_port_in_use_is_tried_again_elsewhere(tmp_path: Path) -> None:
    code = f"""
import pathlib, sys
mark = pathlib.Path("tried")
if not mark.exists():
    mark.touch()
    sys.exit("bind: Address already in use")
{SERVER}
"""
    with pair.serving(server(code), tmp_path) as peer:
        assert int(peer.values["port"]) > 0
