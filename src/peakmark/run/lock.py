"""One measurement at a time on a machine: an advisory lock whose holder the kernel itself can name."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from peakmark.errors import PeakmarkError

DIRECTORY = Path("/tmp")  # noqa: S108 - one place per machine, whatever TMPDIR says; opened without following links


WAIT_S = {"campaign": 0.0, "cell": 60.0, "node": 24 * 3600.0}
"""How long to wait for the holder: a campaign lasts for hours and a person should know at once; a
cell of somebody else ends soon, and waiting for it costs less than a failed cell. On a node that
jobs share, all cells of a campaign may begin at once and take turns: there the time limit of the
job ends the wait.
"""


def path_of(name: str) -> Path:
    """Lock file of ``name``: ``campaign`` (a local campaign as a whole), ``cell`` or
    ``node-<name>`` (one measurement).
    """
    return DIRECTORY / f"peakmark-{name}.lock"


@contextlib.contextmanager
def held(name: str) -> Iterator[None]:
    """Hold the machine's lock. Errors: PeakmarkError that names the holder when another process has
    it.
    """
    descriptor = acquire(name)
    try:
        yield
    finally:
        os.close(descriptor)


def acquire(name: str) -> int:
    """Take the lock and return the descriptor that holds it; the lock ends with the descriptor,
    also on SIGKILL.

    Errors: PeakmarkError that names the holder.
    """
    path = path_of(name)
    descriptor = _open(path)
    deadline = time.monotonic() + WAIT_S[name.partition("-")[0]]
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            os.close(descriptor)
            raise PeakmarkError(
                f"this machine is being measured by {holder(path)}: wait until it has ended, or end it, then start again"
            ) from None
        return descriptor


def _open(path: Path) -> int:
    """Open for reading only: flock needs no more, so that a file of another user serves as well as
    one's own.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT, 0o644)
    except OSError as error:
        raise PeakmarkError(f"cannot open the lock {path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PeakmarkError(f"the lock {path} is not a regular file: remove it and start again")
    return descriptor


def holder(path: Path) -> str:
    """Who holds the lock, by /proc/locks: user, process id and command line as far as they may be
    seen.
    """
    inode = path.stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        # "1: FLOCK ADVISORY WRITE 4242 08:01:131 0 EOF"; a waiting lock has "->" in the second
        # field.
        if len(fields) < 6 or fields[1] != "FLOCK" or not fields[5].endswith(f":{inode}"):
            continue
        process = Path("/proc") / fields[4]
        try:
            user = pwd.getpwuid(process.stat().st_uid).pw_name
            command = (
                (process / "cmdline")
                .read_bytes()
                .decode(errors="replace")
                .replace("\0", " ")
                .split()
            )
        except (OSError, KeyError):
            return f"process {fields[4]}"
        return f"process {fields[4]} of {user} ({' '.join(command)[:120]})"
    return "another process"
