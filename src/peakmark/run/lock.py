"""Allow one measurement at a time on a machine, by an advisory lock whose holder the kernel can
name.

The lock is a file in /tmp that may belong to another user. filelock opens its file for writing, which
such a file, and a sticky folder, refuse; flock on a descriptor for reading is enough.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from peakmark import files, output
from peakmark.errors import PeakmarkError, sentence

DIRECTORY = Path("/tmp")  # noqa: S108 - one place per machine, whatever TMPDIR says; opened without following links

WAIT_S = {"campaign": 0.0, "cell": 60.0, "node": 24 * 3600.0}
"""Longest wait for the holder of each lock, in seconds.

A local campaign lasts for hours, and its user should know at once. A cell of another user ends soon,
and waiting costs less than a failed cell. On a shared node all cells of a campaign may begin at once
and take turns; the job's time limit ends their wait.
"""


def path_of(name: str) -> Path:
    """Return the lock file of ``campaign`` (a whole local campaign), or of ``cell`` or
    ``node-<name>`` (one measurement).
    """
    return DIRECTORY / f"peakmark-{name}.lock"


READABLE = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
"""Rights that a lock's file must have: a user who cannot read it could not measure on this machine."""
NO_LOCKS = frozenset(
    (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF, errno.ENOTTY)
)
"""Errors of filesystems that give no locks: Lustre mounted without ``flock`` (ENOSYS), NFS without its
lock daemon (ENOLCK), NFS for a user who may only read (EBADF; flock(2), fcntl(2)).
"""
TAKEN = frozenset((errno.EAGAIN, errno.EACCES))
"""Errors of a lock that another process holds (fcntl(2))."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW


@contextlib.contextmanager
def held(name: str) -> Iterator[None]:
    """Hold the machine's lock while the block runs.

    Raises:
        PeakmarkError: names the holder when another process has the lock.
    """
    descriptor = acquire(name)
    try:
        yield
    finally:
        os.close(descriptor)


def acquire(name: str) -> int:
    """Return the descriptor that holds the lock. Closing it, also by SIGKILL, ends the lock.

    Where the filesystem gives no locks, say so and go on: such a machine could measure nothing
    otherwise.

    Raises:
        PeakmarkError: names the holder when another process has the lock.
    """
    path = path_of(name)
    descriptor = _open(path)
    deadline = time.monotonic() + WAIT_S[name.partition("-")[0]]
    while not take(fcntl.flock, descriptor, path, "measure nothing else on this machine"):
        if time.monotonic() >= deadline:
            os.close(descriptor)
            raise PeakmarkError(
                f"this machine is being measured by {_holder(path)}: wait until it has ended, or end it, then start again"
            )
        time.sleep(0.05)
    return descriptor


def take(lock: Callable[[int, int], object], descriptor: int, path: Path, instead: str) -> bool:
    """Take a lock. Return False if another process holds it, True if it is taken or the filesystem
    gives no locks.

    Args:
        lock: ``fcntl.flock`` or ``fcntl.lockf``.
        descriptor: of the file that is locked; closed on errors.
        path: that file.
        instead: what the user must see to where the filesystem gives no locks.

    Raises:
        OSError: the file cannot be locked for another reason; it names the file.
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
        output.tell(
            f"{path} cannot be locked, as its filesystem gives no locks ({error.strerror}): {instead} "
            "until this run has ended"
        )
    return True


def _open(path: Path) -> int:
    """Open the lock's file for reading, and make it if need be. Every user may read it, whatever
    the umask of its maker.

    Raises:
        PeakmarkError: it cannot be opened, or is no file.
    """
    try:
        while True:
            with contextlib.suppress(FileNotFoundError):
                return _shared(files.open_regular(path, _FLAGS))
            # Never over a file that another user has made meanwhile: a sticky folder refuses that.
            with contextlib.suppress(FileExistsError):
                return _shared(files.open_regular(path, _FLAGS | os.O_CREAT | os.O_EXCL))
    except OSError as error:
        raise _refused(path, error) from error


def _shared(descriptor: int) -> int:
    """Return the descriptor. Let every user read the file if it belongs to this user."""
    about = os.fstat(descriptor)
    if about.st_uid == os.geteuid() and about.st_mode & READABLE != READABLE:
        with contextlib.suppress(OSError):  # a filesystem without rights refuses nobody
            os.fchmod(descriptor, READABLE | stat.S_IWUSR)
    return descriptor


def _refused(path: Path, error: OSError) -> PeakmarkError:
    """Return the error for a file that cannot serve as a lock: its owner, and what to do."""
    fact = f"cannot open the lock {path}"
    try:
        about = path.lstat()
    except OSError:  # it is the folder that cannot be used
        return PeakmarkError(f"{fact}: {sentence(error, path=False)}")
    owner = files.user_name(about.st_uid)
    if not stat.S_ISREG(about.st_mode):
        return PeakmarkError(
            f"{fact}: {error.strerror}", f"it belongs to {owner}, who (or root) must remove it"
        )
    if error.errno == errno.EACCES:
        return PeakmarkError(
            f"{fact}: {error.strerror}",
            f"it belongs to {owner}, who (or root) must run chmod 644 {path}",
        )
    return PeakmarkError(f"{fact}: {sentence(error, path=False)}")


def _holder(path: Path) -> str:
    """Return the holder of the lock by /proc/locks: process id, user and command line as far as
    visible.
    """
    import psutil  # late: only the message about a lock that is taken needs it

    match = None
    with contextlib.suppress(OSError):
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
