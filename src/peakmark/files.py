"""Reading what others may have put where our files lie: never waiting, never taking something else for a file."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, errno.EISDIR, "it is a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "it is a named pipe, not a file"),
    (stat.S_ISCHR, errno.EINVAL, "it is a device, not a file"),
    (stat.S_ISBLK, errno.EINVAL, "it is a device, not a file"),
)


def read_bytes(path: Path) -> bytes:
    """The content of a regular file. Errors: OSError, at once also for a named pipe, which would be waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        for is_kind, number, words in _KINDS:
            if is_kind(mode):
                raise OSError(number, words, str(path))
        stream = os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise
    with stream:
        return stream.read()


def read_text(path: Path) -> str:
    """The same as text. Errors: OSError; UnicodeDecodeError, a ValueError."""
    return read_bytes(path).decode("utf-8")
