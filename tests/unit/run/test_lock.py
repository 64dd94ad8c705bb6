import subprocess
import sys
from socket import gethostname

import pytest

from peakmark.errors import PeakmarkError
from peakmark.run import lock, measure

HOLD = """
import sys
from pathlib import Path
from peakmark.run import lock
lock.DIRECTORY = Path(sys.argv[1])
with lock.held("cell"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "DIRECTORY", tmp_path)
    monkeypatch.setitem(lock.WAIT_S, "cell", 0.0)


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock until its input ends."""
    argv, pipe = [sys.executable, "-c", HOLD, str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process


def test_a_second_process_is_refused_with_the_holders_number(holder):
    with pytest.raises(PeakmarkError, match=f"process {holder.pid} of .*wait"), lock.held("cell"):
        pass
    with lock.held("campaign"), lock.held("node-node1"), lock.held("node-node2"):
        pass  # another name is another lock
    holder.communicate("")
    with lock.held("cell"):
        pass


def test_a_cell_waits_for_the_cell_of_another(holder, monkeypatch):
    monkeypatch.setitem(lock.WAIT_S, "cell", 20.0)
    waits = []

    def end_holder(seconds):
        """The first time the lock is taken, its holder ends; it is killed, which ends it too."""
        waits.append(seconds)
        if len(waits) == 1:
            holder.kill()
            holder.wait()

    monkeypatch.setattr(lock.time, "sleep", end_holder)
    with lock.held("cell"):
        pass
    assert waits


def test_a_cell_of_a_job_waits_as_long_as_its_job_may(monkeypatch, tmp_path):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    kind, _, node = measure._lock_name().partition("-")
    assert lock.WAIT_S[kind] > 3600 and node == gethostname()
    # A link in the place of the lock is not followed.
    lock.path_of("cell").symlink_to(tmp_path / "target")
    with pytest.raises(PeakmarkError, match="open the lock"), lock.held("cell"):
        pass
    assert not (tmp_path / "target").exists()


def test_a_lock_that_is_closed_names_who_can_open_it(shared_folder, as_nobody, monkeypatch):
    monkeypatch.setattr(lock, "DIRECTORY", shared_folder)
    path = lock.path_of("campaign")
    path.touch(0o600)
    said = as_nobody(lambda: lock.acquire("campaign"))
    assert said == (
        f"cannot open the lock {path}: Permission denied: its owner (or root) must run chmod 644 {path}, or remove it"
    )
