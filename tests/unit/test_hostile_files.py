"""What files and processes can do to a campaign: each kind ends in one sentence, counts for
nothing, and waits for ever nowhere. Full disks: tests/faults/test_full.py; damaged bytes:
test_integrity.py.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit import campaign_data as make
from tests.unit.hostile import CELL, LIMIT_S, Said, stored

from peakmark.commands import status


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
@pytest.mark.parametrize("place", ["record", "raw output", "plan", "facts"])
def test_what_is_no_file_is_never_waited_for(
    kind: str, place: str, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = make.write(tmp_path / "c", [], planned=[CELL], facts={"host": "node1"})
    raw = {"0.raw/0.stdout": "0" * 64} if place == "raw output" else {}
    record = stored(folder, raw=raw)
    places = {
        "record": record,
        "raw output": record.parent / "0.raw" / "0.stdout",
        "plan": folder / "plan.json",
        "facts": folder / "machine" / "node1.json",
    }
    path = places[place]
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
    done = peakmark("status", folder)
    said = done.stdout + done.stderr
    assert str(path) in said
    assert {"pipe": "a named pipe", "folder": "a folder", "device": "a device"}[kind] in said
    assert done.returncode == (1 if place == "plan" else 0)
    if place != "plan":
        assert peakmark("tables", folder).returncode == 0


ENDINGS: dict[str, tuple[Callable[[], BaseException], int, str]] = {
    "disk full": (
        lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/t/a"),
        1,
        "/t/a: No space left on device; make",
    ),
    "quota": (
        lambda: OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "/t/a"),
        1,
        "/t/a: Disk quota exceeded; your quota",
    ),
    "broken disk": (
        lambda: OSError(errno.EIO, os.strerror(errno.EIO), "/t/a"),
        1,
        "/t/a: Input/output error; its disk",
    ),
    "two names": (
        lambda: OSError(errno.EXDEV, "Cross-device", "/a", None, "/b"),
        1,
        "/a -> /b: Cross-device",
    ),
    "no number": (lambda: OSError("it went wrong"), 1, "it went wrong"),
    "Ctrl-C": (KeyboardInterrupt, 130, "interrupted"),
}


@pytest.mark.parametrize("kind", ENDINGS)
def test_what_the_system_refuses_is_one_sentence(
    kind: str, peakmark: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    error, code, words = ENDINGS[kind]

    def fail(_: object) -> int:
        raise error()

    monkeypatch.setattr(status, "_status", fail)
    before = signal.getsignal(signal.SIGINT)
    done = peakmark("status", "c")
    signal.signal(signal.SIGINT, before)
    assert done.returncode == code
    assert done.stderr.startswith(f"peakmark: {words}") and done.stderr.count("\n") == 1


def test_a_full_standard_output_is_one_sentence(small: Path) -> None:
    argv = [sys.executable, "-m", "peakmark", "status", str(small)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            argv, stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False
        )
    assert done.returncode == 1
    assert (
        done.stderr.startswith("peakmark: standard output: No space left on device")
        and done.stderr.count("\n") == 1
    )


# Puts away slowly, as after a large file, and says when it has begun to.
SLOW = """
import sys, time
from peakmark import cli
from peakmark.commands import status
def slow(_):
    try:
        print("measuring", flush=True)
        time.sleep(60)
    finally:
        print("putting away", flush=True)
        sys.stdin.readline()
        print("done", flush=True)
status._status = slow
raise SystemExit(cli.main(["status", "c"]))
"""


def test_a_second_interrupt_does_not_disturb_the_putting_away() -> None:
    argv = [sys.executable, "-c", SLOW]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        for expected in ("measuring", "putting away"):
            assert process.stdout.readline().strip() == expected
            process.send_signal(signal.SIGINT)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.read() == "done\n"
        assert process.stderr.read() == "peakmark: interrupted\n"
        assert process.wait(LIMIT_S) == 130
