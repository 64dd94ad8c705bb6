"""Reference tools that take all memory, or end with 0 after a failure."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from bench import disk_cell, network_cell
from tests.programs import executable, needs
from tests.unit.tools import samples

from peakmark.cell import Cell
from peakmark.tools import base

# Asks for 8 GiB and touches none of it.
GREEDY = """
import mmap
try:
    mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
except OSError:
    raise SystemExit("refused") from None
"""


def cell(subsystem, instrument, workload, **options):
    return Cell(subsystem, instrument, workload, "", None, 1, "any", 0, {"warmup": 0.0, **options})


CELLS = {
    one.instrument: one
    for one in (
        disk_cell("fio"),
        disk_cell("iozone", "ALL"),
        network_cell("iperf3", seconds=1),
        network_cell("qperf", "ALL", seconds=1),
        Cell("network", "ping", "LAT-ICMP", "", 1, 1, "any", 0, {"count": 5}),
        cell("cpu", "hpl", "DP", budget_s=1.5, nb=64),
        cell("cpu", "likwid-bench", "FP32", seconds=0.1),
    )
}
# What each program is asked before it is used.
ASKED = 'case "$*" in *--version*|-v|-V|-h|-a|*--server*|*"-w 1 127"*) exec {program} "$@" ;; esac'
# qperf's server has no word for it: it is called with two words only, the client with more.
ASKED += '\n[ $# -eq 2 ] && [ "$1" = --listen_port ] && exec {program} "$@"\n'


# HPL solves a system for some seconds before it fails.
@pytest.fixture(params=[
    *sorted(CELLS.keys() - {"hpl"}), pytest.param("hpl", marks=pytest.mark.trouble),
])  # fmt: skip
def tool(request):
    """A cell and the real program that measures it."""
    return CELLS[request.param], samples.installed(request.param).path


def wrapper(bench, program, body):
    text = "#!/bin/bash\n" + (ASKED + body).replace("{program}", program) + "\n"
    return str(executable(bench.directory / "bin" / Path(program).name, text))


# How the real programs fail: nowhere to write, nobody to talk to, nothing that they know.
FAILING = {
    "likwid-bench": "{program} -t nothing_of_that_name -w S0:1kB:1",
    "ping": "{program} -c 1 240.0.0.1",
    "qperf": "{program} 127.0.0.1 no_such_test",
}
# Not for qperf: its server hears all addresses, so that its client would be answered there.
ELSEWHERE = 'cd /proc; {program} "${@//127.0.0.1/127.0.0.9}" < /dev/null'


def test_a_tool_that_fails_with_0_gives_no_number(bench, tool, monkeypatch):
    one, program = tool
    body = FAILING.get(one.instrument, ELSEWHERE) + "; exit 0"
    if one.subsystem == "network":
        monkeypatch.setattr(base, "timeout", lambda _: 1.0)
    bench.assert_failed(one, bench.failure(one, wrapper(bench, program, body), monkeypatch))


@needs("fio")
def test_a_tool_that_takes_all_memory_is_stopped(bench, monkeypatch):
    """Each process has a limit of its own: the allocation fails instead of the machine."""
    greedy = executable(bench.directory / "greedy.py", GREEDY)
    with_room = subprocess.run([sys.executable, greedy], capture_output=True, text=True)
    if with_room.returncode != 0:
        pytest.skip("this machine would not give so much memory anyway")
    body = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(greedy))}"
    said = bench.failure(CELLS["fio"], wrapper(bench, "/usr/bin/fio", body), monkeypatch)
    bench.assert_failed(CELLS["fio"], said, "refused")
