"""What dead runs left goes; what lives, is another's, new, strange or a link stays."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.hostile import KERNELS

from peakmark import files
from peakmark.run import cleanup

# A run that is killed together with its guard, as when a node loses power; it says where its
# directory is.
DYING = """
import sys, time
from pathlib import Path
from peakmark.run import cleanup
with cleanup.private_directory(Path(sys.argv[1]), "disk/fio/x") as directory:
    (directory / "run0").mkdir()
    (directory / "run0" / "data").write_bytes(b"x" * 4096)
    (directory / "out").symlink_to(sys.argv[2])
    print(directory, flush=True)
    time.sleep(600)
"""


@contextmanager
def running(place, outside):
    argv = [sys.executable, "-c", DYING, str(place), str(outside)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


@pytest.fixture
def old(monkeypatch):
    """Directories just made count as old."""
    monkeypatch.setattr(cleanup, "YOUNG_S", 0.0)


@pytest.fixture
def outside(tmp_path):
    """What a link in a leftover points to."""
    files.write_text(tmp_path / "outside" / "precious", "mine")
    return tmp_path / "outside"


@pytest.fixture
def place(tmp_path):
    return make(tmp_path / "scratch")


def make(path, mode=0o700):
    path.mkdir()
    path.chmod(mode)
    return path


def test_a_live_run_keeps_its_directory_and_a_dead_one_does_not(old, place, outside):
    with running(place, outside) as (process, directory):
        assert directory.stat().st_mode & 0o777 == 0o700
        cleanup.remove_leftovers(place)
        assert directory.exists()
        process.kill()
        process.wait()
        cleanup.remove_leftovers(place)
    assert not directory.exists()
    assert (outside / "precious").read_text() == "mine"  # links are not followed


def test_a_killed_kernel_of_its_own_is_found_too(old, place):
    words = ["--workload", "WS", "--record", "4KiB", "--size", "1MiB", "--seconds", "600"]
    argv = [str(KERNELS / "diskbench"), *words, "--directory", str(place)]
    with subprocess.Popen(argv) as process:
        try:
            deadline = time.monotonic() + 30
            while not list(place.glob("peakmark-*/peakmark-0")):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            cleanup.remove_leftovers(place)
        finally:
            process.kill()
    assert len(list(place.iterdir())) == 1
    cleanup.remove_leftovers(place)
    assert not list(place.iterdir())


def test_what_peakmark_did_not_make_stays(old, place, outside):
    names = ("strange", "elsewhr", "broken0", "foreign")
    strange, elsewhere, broken, foreign = (make(place / f"peakmark-{name}") for name in names)
    make(place / "peakmark-shared0", 0o755)
    (strange / "thesis.txt").write_text("mine")
    (elsewhere / cleanup.MARK).write_text('{"host": "another-node"}')
    (broken / cleanup.MARK).symlink_to(outside / "precious")
    if os.geteuid() == 0:  # only root can give a directory away
        os.chown(foreign, 12345, 12345)
    else:
        foreign.rmdir()
    (place / "peakmark-link00").symlink_to(outside)
    (place / "peakmark-file00").write_text("a file")
    make(place / "peakmark")
    before = sorted(place.rglob("*"))
    cleanup.remove_leftovers(place)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("program", [
    ("sleep", "600"),
    ("sh", "-c", "setsid sleep 600 & echo $! > pid; wait"),
    ("sh", "-c", "(setsid sleep 600 & echo $! > pid); sleep 600"),
])  # fmt: skip
def test_the_guard_puts_away_what_a_killed_process_leaves_and_new_directories_stay(
    place, tmp_path, program
):
    escaped = tmp_path / "escaped"
    code = f"""
import os, signal, subprocess, sys
from pathlib import Path
from peakmark.run import cleanup, execute
from peakmark.tools.base import Command
with cleanup.watchdog(), cleanup.private_directory(Path({str(place)!r}), "x") as directory:
    with execute.start(Command(argv={program!r}, timeout_s=600), directory) as process:
        print(process.pid, flush=True)
        pid = directory / "pid"
        while {program[0] == "sh"} and not (pid.exists() and pid.stat().st_size):
            pass
        if pid.exists():
            os.link(pid, {str(escaped)!r})
        os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert done.returncode == -9
    deadline = time.monotonic() + 30
    while Path(f"/proc/{int(done.stdout)}").exists() or list(place.iterdir()):
        assert time.monotonic() < deadline
    while escaped.exists() and Path(f"/proc/{int(escaped.read_text())}").exists():
        assert time.monotonic() < deadline
    assert cleanup.process_identity().startswith(f"{os.getpid()}:")
    fresh = make(place / "peakmark-abc123")  # is given time to be locked
    cleanup.remove_leftovers(place)
    assert fresh.exists()
