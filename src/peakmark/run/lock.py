"""Allow only one measurement at a time on a machine, by an advisory lock on a file in /tmp.

The file may belong to another user: flock on a descriptor for reading is enough, and /proc/locks then
names the holder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from peakmark import files
from peakmark.errors import PeakmarkError, tell

DIRECTORY = Path("/tmp")  # noqa: S108 - one place per machine, whatever TMPDIR says; opened without following links

WAIT_S = {"campaign": 0.0, "cell": 60.0, "node": 24 * 3600.0}
"""Longest wait for the holder of each lock, in seconds.

- campaign: no wait, because a local campaign lasts for hours and the user should know at once.
- cell: another cell ends soon, and waiting costs less than a failed cell.
- node: on a shared node all cells of a campaign may start at once and take turns. The job's time limit
  ends their wait.
"""


def path_of(name: str) -> Path:
    """Return the path of a lock file.

    Args:
        name: ``campaign`` for a whole local campaign; ``cell`` or ``node-<name>`` for one measurement.
    """
    return DIRECTORY / f"peakmark-{name}.lock"


NO_LOCKS = frozenset(
    (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF, errno.ENOTTY)
)
"""Errors of filesystems without locks, from flock(2) and fcntl(2).

- ENOSYS: Lustre that was mounted without ``flock``.
- ENOLCK: NFS without its lock daemon.
- EBADF: NFS for a user who may only read.
"""
TAKEN = frozenset((errno.EAGAIN, errno.EACCES))
"""Errors that mean that another process holds the lock (fcntl(2))."""


@contextlib.contextmanager
def held(name: str) -> Iterator[None]:
    """Hold a lock of this machine while the block runs.

    Raises:
        PeakmarkError: another process has the lock. The message names the process.
    """
    descriptor = acquire(name)
    try:
        yield
    finally:
        os.close(descriptor)


def acquire(name: str) -> int:
    """Acquire a lock, and return the descriptor that holds it. The lock ends when the descriptor is
    closed, also by SIGKILL.

    If another process has the lock, wait for it, at most the time of this kind of lock in
    ``WAIT_S``.

    On a filesystem without locks, print a warning and continue, because otherwise nothing could be
    measured on this machine.

    Args:
        name: ``campaign``, ``cell`` or ``node-<name>``, see ``path_of``.

    Raises:
        PeakmarkError: another process has the lock, also after the wait. The message names it.
    """
    path = path_of(name)
    descriptor = _open(path)
    kind = name.partition("-")[0]  # ``node`` for ``node-<name>``
    deadline = time.monotonic() + WAIT_S[kind]
    while not take(fcntl.flock, descriptor, path, "measure nothing else on this machine"):
        if time.monotonic() >= deadline:
            os.close(descriptor)
            raise PeakmarkError(
                f"this machine is being measured by {_holder(path)}: wait until it has ended, or end it, then start again"
            )
        time.sleep(0.05)
    return descriptor


def take(lock: Callable[[int, int], object], descriptor: int, path: Path, instead: str) -> bool:
    """Try to take a lock.

    Args:
        lock: ``fcntl.flock`` or ``fcntl.lockf``.
        descriptor: descriptor of the file to lock. It is closed if an error is raised.
        path: path of the file to lock.
        instead: advice for the user if the filesystem has no locks.

    Returns:
        False if another process holds the lock; True if the lock was taken or the filesystem has no
        locks.

    Raises:
        OSError: the file cannot be locked for another reason. The error names the file.
    """
    try:
        with files.naming(path):
            lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in TAKEN:
            return False
        if error.errno not in NO_LOCKS:
            os.close(descriptor)
            raise
        tell(
            f"{path} cannot be locked, as its filesystem gives no locks ({error.strerror}): {instead} "
            "until this run has ended"
        )
    return True


def _open(path: Path) -> int:
    """Open a lock file for reading, and create it for every user if it does not exist.

    Raises:
        PeakmarkError: the path cannot be opened.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        # In /tmp, O_CREAT is refused for a file of another user: first open, then create.
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags)
        descriptor = os.open(path, flags | os.O_CREAT)
        os.fchmod(descriptor, 0o644)  # whatever the umask is
        return descriptor
    except OSError as error:
        raise PeakmarkError(
            f"cannot open the lock {path}: {error.strerror}",
            f"its owner (or root) must run chmod 644 {path}, or remove it",
        ) from error


def _holder(path: Path) -> str:
    """Describe the holder of a lock: process id, user and command line, as far as /proc shows them."""
    # ``acquire`` has opened the file, so that it exists. A line of /proc/locks reads
    # 1: FLOCK  ADVISORY  WRITE 4242 08:01:131 0 EOF.
    line = rf"(?m)^\d+: FLOCK +ADVISORY +WRITE (\d+) \S+:{path.stat().st_ino} "
    with contextlib.suppress(OSError):
        for number in re.findall(line, Path("/proc/locks").read_text()):
            process = Path(f"/proc/{number}")
            user = files.user_name(process.stat().st_uid)
            words = (process / "cmdline").read_text(errors="replace").replace("\0", " ").split()
            return f"process {number} of {user} ({' '.join(words)[:120]})"
    return "another process"
