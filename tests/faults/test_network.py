"""Servers that never answer or hang up, and the key of a server that nobody else hears."""

import re
import sys
from pathlib import Path

import pytest
from bench import KERNELS, network_cell
from tests.programs import executable, wait_for

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
    monkeypatch.setattr(base, "timeout", lambda _: 1.0)
    cell = network_cell(instrument, seconds=1)
    said = bench.failure(cell, str(bad), monkeypatch)
    bench.assert_failed(cell, said)
    assert reset or re.search("end within|answer", said)
    bench.assert_completes(cell)


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
