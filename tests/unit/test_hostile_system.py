"""What the system and its users do to a command: each ends in one sentence."""

import errno
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import mounts
from tests.unit import campaign_data as make
from tests.unit.hostile import CELL, KERNELS, LIMIT_S, refused

from peakmark import resources
from peakmark.errors import MeasurementError
from peakmark.run.measure import Request, measure
from peakmark.storage.results import Results
from peakmark.workflow import doctor, startup
from peakmark.workflow.startup import UserError, as_workflow_error
from snakemake_logger_plugin_peakmark import handler


def system_error(number, *names):
    return OSError(number, os.strerror(number), *names)


@pytest.mark.parametrize(("error", "code", "words"), [
    (system_error(errno.ENOSPC, "/t/a"), 4, "/t/a: No space left on device; free"),
    (system_error(errno.EDQUOT, "/t/a"), 4, "/t/a: Disk quota exceeded; your disk quota"),
    (system_error(errno.EIO, "/t/a"), 4, "/t/a: Input/output error; its disk"),
    (system_error(errno.EXDEV, "/a", None, "/b"), 4, "/a -> /b: "),
    (OSError("it went wrong"), 4, "it went wrong"),
    (KeyboardInterrupt(), 130, "interrupted"),
], ids=repr)  # fmt: skip
def test_what_the_system_refuses_is_one_sentence(error, code, words, peakmark, monkeypatch):
    def fail(_):
        raise error

    monkeypatch.setattr(Results, "read", fail)
    before = signal.getsignal(signal.SIGINT)
    done = peakmark("status", "c")
    signal.signal(signal.SIGINT, before)
    assert done.returncode == code
    assert done.stderr.startswith(f"peakmark: {words}") and done.stderr.count("\n") == 1


# Puts away slowly, as after a large file, and says when it has begun to.
SLOW = """
import sys, time
from peakmark import cli
from peakmark.storage.results import Results
def slow(_):
    try:
        print("measuring", flush=True)
        time.sleep(60)
    finally:
        print("putting away", flush=True)
        sys.stdin.readline()
        print("done", flush=True)
Results.read = slow
raise SystemExit(cli.main(["status", "c"]))
"""


def test_a_second_interrupt_does_not_disturb_the_putting_away():
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", SLOW], text=True, **pipes) as process:
        assert process.stdin and process.stdout and process.stderr
        for expected in ("measuring", "putting away"):
            assert process.stdout.readline().strip() == expected
            process.send_signal(signal.SIGINT)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.read() == "done\n"
        assert process.stderr.read() == "peakmark: interrupted\n"
        assert process.wait(LIMIT_S) == 130


@pytest.mark.parametrize(
    "scratch", ["/etc/passwd", "/proc", "/nowhere", "/dev/null", "/dev/shm", "here"]
)
def test_doctor_takes_no_scratch_that_takes_no_file(scratch, tmp_path):
    place = tmp_path if scratch == "here" else Path(scratch)
    text, healthy = doctor.examine(place, KERNELS)
    assert text.splitlines()[-1].startswith("ready: " if healthy else "not ready: ")
    (line,) = [line for line in text.splitlines() if "scratch" in line and str(place) in line]
    usable = scratch in ("/dev/shm", "here")
    assert line.startswith("missing") != usable
    assert usable or not healthy
    assert scratch != "/dev/shm" or "this is memory" in line


def test_doctor_says_where_iozone_is_and_what_is_not_compiled(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    lines = doctor.examine(tmp_path, tmp_path)[0].splitlines()
    (line,) = (line for line in lines if "iozone3" in line and line.startswith("          Debian"))
    assert "non-free" in line
    (line,) = (line for line in lines if " cpubench " in line)
    assert "not compiled" in line


def sentence(check):
    """The one sentence with which a check of the Snakefile ends."""
    with pytest.raises(UserError) as caught:
        as_workflow_error(check)
    refused(str(caught.value))
    return str(caught.value)


@pytest.mark.parametrize("name", ["results", "results/c"])
@pytest.mark.parametrize("kind", ["a file", "a link to nowhere"])
def test_what_is_no_folder_is_said_before_the_first_cell(name, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    startup.check_folder(Path("results/c"))
    path.touch() if kind == "a file" else path.symlink_to("/nowhere/at/all")
    assert f"{name}: " in sentence(lambda: startup.check_folder(Path("results/c")))


def test_no_rights_where_snakemake_writes(shared_folder, as_nobody):
    shared_folder.chmod(0o555)
    said = as_nobody(lambda: sentence(lambda: startup.check_folder(shared_folder / "c")))
    assert said.startswith(f"{shared_folder}: Permission denied")


@pytest.mark.parametrize("read_only", [False, True])
def test_caches_are_not_in_the_home(read_only, tmp_path, monkeypatch):
    checkout = tmp_path / "checkout"
    (checkout / ("nowhere" if read_only else "build")).mkdir(parents=True)
    monkeypatch.setattr(resources, "ROOT", checkout)
    monkeypatch.setenv("XDG_CACHE_HOME", "/etc/passwd")
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    monkeypatch.setattr(logging, "raiseExceptions", True)
    monkeypatch.setattr(sys, "argv", ["snakemake", "--directory", str(tmp_path)])
    handler._begin()
    cache = tmp_path / ".snakemake" / "cache"
    folder = cache if read_only else checkout / "build"
    assert os.environ["XDG_CACHE_HOME"] == str(cache)
    assert os.environ["MPLCONFIGDIR"] == str(folder / "matplotlib")


NO_SPACE = "No space left on device"


@pytest.fixture
def full_disk(tmp_path, own_mounts):
    """A results folder on a disk of its own on which nothing more has room."""
    with mounts.tmpfs(tmp_path / "results", "size=512k") as folder:
        yield folder


def fill(folder):
    with (
        pytest.raises(OSError, match="No space left"),
        (folder / "neighbour").open("wb", buffering=0) as stream,
    ):
        while True:
            stream.write(bytes(4096))


def test_a_full_disk_is_said_before_a_cell_is_measured_and_by_status(full_disk, peakmark):
    folder = make.write(full_disk / "c", [], planned=[CELL])
    fill(full_disk)
    output = folder / "cells" / f"{CELL.id}.json"
    with pytest.raises(MeasurementError, match=f"{NO_SPACE}.*{folder}"):
        measure(Request(CELL, output, folder, KERNELS))
    assert NO_SPACE in peakmark("status", folder).stdout
    assert NO_SPACE in peakmark("status", folder, "--failed").stdout
    (full_disk / "neighbour").unlink()
    assert measure(Request(CELL, output, folder, KERNELS)).status == "ok"
    assert peakmark("status", folder).stdout.splitlines()[-1] == "complete"


def test_a_disk_that_is_full_from_the_start(full_disk):
    fill(full_disk)
    assert NO_SPACE in sentence(lambda: startup.check_folder(full_disk / "c"))
