"""Private directories on scratch disks, and finding those that dead runs left: nothing else is ever
removed.

A directory of a live run is locked (flock) by the process that made it; the lock ends with that
process however it dies.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname

from peakmark.reasons import MeasurementError
from peakmark.run import watchdog

PREFIX = "peakmark-"
MARK = ".peakmark-scratch"
"""A file in each directory that Python made; diskbench's own directories hold nothing but its
numbered files.
"""
YOUNG_S = 60.0
"""A directory may be a moment old before it is locked."""
_NAME = r"peakmark-(serve-)?[A-Za-z0-9_]{6,8}"
_KERNEL_FILE = r"peakmark-[0-9]{1,10}"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def private(place: Path, purpose: str, prefix: str = PREFIX) -> Iterator[Path]:
    """A new directory below ``place`` that only this user can enter (0700), marked, locked, and
    removed afterwards.

    Errors: MeasurementError when ``place`` cannot be used.
    """
    descriptor = None
    try:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=place.absolute()))
    except OSError as error:
        raise _unusable(place, error) from error
    with watchdog.directory(path):
        try:
            descriptor = os.open(path, _OPEN)
            with suppress(
                OSError
            ):  # a filesystem without locks: `clean` then goes by the age and leaves it alone
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mark = {"host": gethostname(), "process": os.getpid(), "purpose": purpose}
            (path / MARK).write_text(json.dumps(mark) + "\n", encoding="utf-8")
        except OSError as error:
            if descriptor is not None:
                os.close(descriptor)
            raise _unusable(place, error) from error
        try:
            yield path
        finally:
            os.close(descriptor)


def _unusable(place: Path, error: OSError) -> MeasurementError:
    return MeasurementError(
        f"cannot use the scratch directory {place}: {error.strerror}; set scratch: to a directory on the node"
    )


def too_much(directory: Path, allowed: int) -> str | None:
    """A sentence when the files below ``directory`` occupy more than ``allowed`` bytes."""
    used = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                used += (Path(folder) / name).lstat().st_blocks * 512
    if used <= allowed:
        return None
    return f"it wrote {used / 1e9:.2f} GB into {directory}, and may write {allowed / 1e9:.2f} GB"


@dataclass(frozen=True)
class Leftover:
    """A directory that looks like ours: ``keep`` says why it stays, empty when it may go."""

    path: Path
    size: int
    keep: str = ""


def leftovers(place: Path, now: float | None = None) -> list[Leftover]:
    """What dead runs left directly below ``place``, and what looks like it but must stay."""
    left = []
    try:
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError:
        return []
    for entry in entries:
        if (
            entry.name.startswith(PREFIX)
            and re.fullmatch(_NAME, entry.name)
            and entry.is_dir(follow_symlinks=False)
        ):
            left.append(_examine(Path(entry.path), time.time() if now is None else now))
    return left


def remove(leftover: Leftover) -> bool:
    """Remove one, if it still is what it was. Links in it are removed, never followed. Returns
    whether it is gone.
    """
    again = _examine(leftover.path, time.time())
    if leftover.keep or again.keep:
        return False
    shutil.rmtree(
        leftover.path, ignore_errors=True
    )  # by descriptors: a directory swapped for a link is not entered
    return not leftover.path.exists()


def _examine(path: Path, now: float) -> Leftover:
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as error:
        return Leftover(path, 0, f"it cannot be looked into: {error.strerror}")
    try:
        return Leftover(path, _size(path), _why_keep(descriptor, now))
    finally:
        os.close(descriptor)


def _why_keep(descriptor: int, now: float) -> str:
    facts = os.fstat(descriptor)
    if facts.st_uid != os.geteuid():
        return "it belongs to another user"
    if stat.S_IMODE(facts.st_mode) != 0o700:
        return "it is open to others, which peakmark's are not"
    if now - facts.st_ctime < YOUNG_S:
        return "it is younger than a minute"
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return "a live run uses it, or its filesystem has no locks"
    names = os.listdir(descriptor)
    if MARK not in names:
        strange = [name for name in names if not re.fullmatch(_KERNEL_FILE, name)]
        return f"peakmark did not make {strange[0]!r} in it" if strange else ""
    return _why_keep_marked(descriptor)


def _why_keep_marked(descriptor: int) -> str:
    try:
        mark = os.open(MARK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        with os.fdopen(mark, "rb") as stream:
            host = json.loads(stream.read(4096))["host"]
    except (OSError, ValueError, KeyError, TypeError):
        return "its mark cannot be read"
    if host != gethostname():
        return f"a run on {host} made it: clean up there"
    return ""


def _size(path: Path) -> int:
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                total += (Path(folder) / name).lstat().st_blocks * 512
    return total
