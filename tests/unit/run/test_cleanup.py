"""What dead runs left goes; what lives, is another's, strange or a link stays."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from socket import gethostname

import pytest
from tests import mounts
from tests.programs import wait_for

from peakmark import files
from peakmark.errors import MeasurementError
from peakmark.run import cleanup

# A run that is killed together with its guard, as when a node loses power; it says where its
# directory is.
DYING = """
import sys, time
from pathlib import Path
from peakmark.run import cleanup
with cleanup.private_directory(Path(sys.argv[1])) as directory:
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


def test_a_live_run_keeps_its_directory_and_a_dead_one_does_not(place, outside):
    with running(place, outside) as (process, directory):
        assert directory.stat().st_mode & 0o777 == 0o700
        cleanup.remove_leftovers(place)
        assert directory.exists()
        (guard,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(guard), signal.SIGKILL)
        process.kill()
        process.wait()
        wait_for(lambda: not Path(f"/proc/{guard}").exists(), "the guard has ended")
        assert directory.exists()
        cleanup.remove_leftovers(place)
    assert not directory.exists()
    assert (outside / "precious").read_text() == "mine"  # links are not followed


def test_what_peakmark_did_not_make_stays(place, outside):
    host = gethostname()
    for name in ("strange", "another-node.abcdefgh", f"{host}.abcdefgh.x", f"{host}-2.abcdefgh"):
        (make(place / f"peakmark-{name}") / "thesis.txt").write_text("mine")
    foreign = make(place / f"peakmark-{host}.foreign0")
    if os.geteuid() == 0:  # only root can give a directory away
        os.chown(foreign, 12345, 12345)
    else:
        foreign.rmdir()
    (place / f"peakmark-{host}.link0000").symlink_to(outside)
    (place / f"peakmark-{host}.file0000").write_text("a file")
    before = sorted(place.rglob("*"))
    cleanup.remove_leftovers(place)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("program", [
    ("sleep", "600"),
    ("env", "-i", "sleep", "600"),
    ("sh", "-c", "setsid sleep 600 & echo $! > pid; wait"),
    ("sh", "-c", "(setsid sleep 600 & echo $! > pid); sleep 600"),
])  # fmt: skip
def test_the_guard_puts_away_what_a_killed_process_leaves(place, tmp_path, program):
    escaped = tmp_path / "escaped"
    code = f"""
import os, signal, subprocess, sys
from pathlib import Path
from peakmark.run import cleanup, execute
from peakmark.tools.base import Command
with cleanup.private_directory(Path({str(place)!r})) as directory:
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


@pytest.mark.parametrize("number", cleanup.SIGNALS)
def test_a_signal_during_the_start_of_a_program_ends_the_program(place, number):
    """The signal comes when the program runs, and before Python has the number of its process."""
    code = f"""
import os
from pathlib import Path
from peakmark.run import cleanup, execute
from peakmark.tools.base import Command
def interrupted(*words, start=execute.Popen, **keys):
    process = start(*words, **keys)
    print(process.pid, flush=True)
    os.kill(os.getpid(), {number})
    return process
execute.Popen = interrupted
cleanup.once()
cleanup.end_cleanly()
with cleanup.private_directory(Path({str(place)!r})) as directory:
    with execute.start(Command(("sleep", "600"), timeout_s=600), directory):
        pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode
    assert not Path(f"/proc/{int(done.stdout)}").exists()
    assert not list(place.iterdir())


def test_the_guard_ends_programs_also_after_the_directory_was_removed(place):
    """As when a second signal stops the measuring process while it ends its programs."""
    code = f"""
import subprocess
from pathlib import Path
from peakmark.run import cleanup
with cleanup.private_directory(Path({str(place)!r})) as directory:
    process = subprocess.Popen(["sleep", "600"], env={{cleanup.FOLDER: str(directory)}}, stdout=-3)
    print(process.pid)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert not Path(f"/proc/{int(done.stdout)}").exists()
    assert not list(place.iterdir())


def test_a_read_only_scratch_is_said_with_what_to_do(place, own_mounts):
    with (
        mounts.tmpfs(place, "ro"),
        pytest.raises(MeasurementError, match=f"{place}: Read-only file system; set scratch:"),
        cleanup.private_directory(place),
    ):
        pass
