"""What filesystems refuse that others grant: locks, and writing a folder through to the disk."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from peakmark import files

LIMIT_S = 60
SOURCE = Path(__file__).with_name("shim.c")
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
CAMPAIGN = """
from peakmark.workflow import startup
startup.as_workflow_error(lambda: startup.lock(folder))
"""
MACHINE = """
from peakmark.run import lock
lock.DIRECTORY = folder
with lock.held("campaign"), lock.held("cell"), lock.held("node-n1"):
    pass
"""
WRITE = """
from peakmark import files
files.write_text(folder / "written", "whole")
"""
RUN = """
import sys
from pathlib import Path
from peakmark.errors import PeakmarkError, sentence
folder = Path(sys.argv[1])
try:
    exec(sys.argv[2])
except OSError as error:
    sys.exit(sentence(error))
"""


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    argv = ["gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"]
    subprocess.run(argv, check=True, timeout=LIMIT_S)
    return library


@pytest.fixture
def on(shim, tmp_path):
    """Run a text of Python whose ``folder`` is on a filesystem that refuses something."""

    def run(text, **refusals):
        numbers = {name: str(number) for name, number in refusals.items()}
        return subprocess.run(
            [sys.executable, "-c", RUN, tmp_path, text],
            env={**os.environ, "LD_PRELOAD": str(shim), **numbers},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )

    return run


@pytest.mark.parametrize("number", NO_LOCKS)
@pytest.mark.parametrize("earlier", ["", "process 2060 on vm\n"])
def test_a_campaign_goes_on_where_the_filesystem_gives_no_locks(on, tmp_path, number, earlier):
    (tmp_path / "running").write_text(earlier)
    done = on(CAMPAIGN, SHIM_LOCKF=number)
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/running" in done.stderr and os.strerror(number) in done.stderr
    assert "second run" in done.stderr and "2060" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [*NO_LOCKS, errno.EBADF])
def test_a_machine_measures_where_tmp_gives_no_locks(on, tmp_path, number):
    done = on(MACHINE, SHIM_FLOCK=number)
    assert done.returncode == 0, done.stderr
    for name in ("campaign", "cell", "node-n1"):
        assert f"{tmp_path}/peakmark-{name}.lock" in done.stderr
    assert done.stderr.count(os.strerror(number)) == 3


@pytest.mark.parametrize(("refusal", "text", "path"), [
    ("SHIM_LOCKF", CAMPAIGN, "running"),
    ("SHIM_FLOCK", MACHINE, "peakmark-campaign.lock"),
    ("SHIM_SYNC", WRITE, "written"),
    ("SHIM_SYNC_FOLDER", WRITE, "written"),
])  # fmt: skip
def test_a_disk_that_fails_is_named_and_no_lock_is_called_taken(on, tmp_path, refusal, text, path):
    done = on(text, **{refusal: errno.EIO})
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert f"{tmp_path / path}: {os.strerror(errno.EIO)}; its disk" in last, done.stderr
    assert "measured already" not in done.stderr


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
@pytest.mark.parametrize("refusal", ["SHIM_SYNC", "SHIM_SYNC_FOLDER"])
def test_what_cannot_be_synced_is_written(on, tmp_path, refusal, number):
    done = on(WRITE, **{refusal: number})
    assert done.returncode == 0 and not done.stderr
    assert (tmp_path / "written").read_text() == "whole"


def test_a_folder_that_may_be_written_and_not_read_takes_files(shared_folder, as_nobody):
    shared_folder.chmod(0o733)
    assert as_nobody(lambda: files.write_text(shared_folder / "written", "whole")) == "None"
    assert (shared_folder / "written").read_text() == "whole"
