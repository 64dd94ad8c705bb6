"""One measurement at a time on a machine: an advisory lock whose holder the kernel itself can name.

The lock is a file in /tmp that may belong to another user. filelock opens its file for writing,
which such a file, and a sticky folder, refuse; flock on a descriptor for reading is enough.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
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
    """Lock file of ``campaign`` (a local campaign as a whole), ``cell`` or ``node-<name>`` (one
    measurement).
    """
    return DIRECTORY / f"peakmark-{name}.lock"


@contextlib.contextmanager
def held(name: str) -> Iterator[None]:
    """Hold the machine's lock.

    Raises:
        PeakmarkError: names the holder when another process has the lock.
    """
    descriptor = acquire(name)
    try:
        yield
    finally:
        os.close(descriptor)


def acquire(name: str) -> int:
    """Descriptor that holds the lock; the lock ends with the descriptor, also on SIGKILL.

    Raises:
        PeakmarkError: names the holder when another process has the lock.
    """
    path = path_of(name)
    descriptor = _open(path)
    deadline = time.monotonic() + WAIT_S[name.partition("-")[0]]
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                raise PeakmarkError(
                    f"this machine is being measured by {_holder(path)}: wait until it has ended, or end it, then start again"
                ) from None
        time.sleep(0.05)


def _open(path: Path) -> int:
    """Open for reading only: a sticky folder refuses to create over the file of another user."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            return os.open(path, flags | os.O_CREAT, 0o644)
    except OSError as error:
        raise PeakmarkError(f"cannot open the lock {path}: {error.strerror}") from error


def _holder(path: Path) -> str:
    """Who holds the lock, by /proc/locks: process id, user and command line as far as visible."""
    import psutil  # late: only the message about a lock that is taken needs it

    # A line of /proc/locks reads 1: FLOCK  ADVISORY  WRITE 4242 08:01:131 0 EOF.
    line = rf"(?m)^\d+: FLOCK +ADVISORY +WRITE (\d+) \S+:{path.stat().st_ino} "
    match = re.search(line, Path("/proc/locks").read_text())
    if match is None:
        return "another process"
    try:
        process = psutil.Process(int(match[1]))
        command = " ".join(" ".join(process.cmdline()).split())
        return f"process {match[1]} of {process.username()} ({command[:120]})"
    except psutil.Error:
        return f"process {match[1]}"
