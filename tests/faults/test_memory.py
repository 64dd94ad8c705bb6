"""Tools that take more memory than their control group or a process may have."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from bench import MIB, disk_cell
from tests.programs import executable

from peakmark.cell import Cell
from peakmark.machine import job_limits
from peakmark.machine.host import Host


@pytest.fixture
def group():
    """A new control group for memory below this process's own; version 1 or 2."""
    own = job_limits.folders(Host(), "memory")
    places = [Path(folder) for version, folder in own if version == 1] or [
        Path(folder) for _, folder in own[-1:]
    ]
    if not places or not os.access(places[0], os.W_OK):
        pytest.skip("this user cannot make a control group for memory here")
    folder = Path(tempfile.mkdtemp(prefix="peakmark-test-", dir=places[0]))
    if not any((folder / name).exists() for name in ("memory.limit_in_bytes", "memory.max")):
        folder.rmdir()
        pytest.skip(f"control groups below {places[0]} do not limit memory")
    yield folder
    folder.rmdir()


def limit(group, size):
    for name in ("memory.limit_in_bytes", "memory.max"):
        if (group / name).exists():
            (group / name).write_text(str(size))
    # What swap takes is no longer in the group's memory.
    if (group / "memory.swap.max").exists():
        (group / "memory.swap.max").write_text("0")


def test_a_tool_without_memory_is_told_from_one_that_somebody_killed(bench, group):
    # The pool alone fits, as far as the cell can know before; beside another program of the job it
    # does not.
    options = {"seconds": 0.1, "warmup": 0.0, "pool": 160 * MIB}
    cell = Cell("memory", "rambench", "RS", "pool", MIB, 1, "any", 0, options)
    limit(group, 180 * MIB)
    join = ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh"]
    # Where the tool is slow to die the kernel would look for another one to end.
    spared = ["sh", "-c", 'echo -1000 > /proc/self/oom_score_adj; exec "$@"', "sh"]
    held = f"held = b'x' * {30 * MIB}; print('held', flush=True); input()"
    other = [*join, *spared, sys.executable, "-c", held]
    with subprocess.Popen(
        other, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as beside:
        assert beside.stdin and beside.stdout and beside.stdout.readline() == "held\n"
        done = bench.run([*join, *bench.argv(cell)])
        beside.stdin.write("\n")
    assert done.returncode == 4, done.stderr
    bench.assert_failed(cell, done.stderr, "signal SIGKILL", "OUT_OF_MEMORY", "180MiB")
    bench.assert_completes(cell)


# Asks for 8 GiB and touches none of it.
GREEDY = """#!{python}
import mmap, sys
if "--version" in sys.argv:
    raise SystemExit(print("fio-3.33"))
try:
    mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
except OSError:
    raise SystemExit("refused") from None
"""


def test_a_tool_that_takes_all_memory_is_stopped(bench, monkeypatch):
    """Each process has a limit of its own: the allocation fails instead of the machine."""
    greedy = executable(bench.directory / "fio", GREEDY.format(python=sys.executable))
    with_room = subprocess.run([greedy], capture_output=True)
    if with_room.returncode != 0:
        pytest.skip("this machine would not give so much memory anyway")
    cell = disk_cell("fio")
    bench.assert_failed(cell, bench.failure(cell, str(greedy), monkeypatch), "refused")
