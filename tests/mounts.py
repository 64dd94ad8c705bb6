"""A mount namespace of its own for the process of the tests."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNS = 0x00020000


def take(propagation: str = "private") -> str | None:
    """From here on this process neither sees what others mount nor do they see what it mounts.
    Returns why not, if not.

    propagation  among the processes it starts: `private`, each namespace keeps its mounts to
                 itself; `shared`, as on most machines, what one of them fails to hide is seen by
                 this process
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        return f"mounts need root: {os.strerror(ctypes.get_errno())}"
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    if propagation != "private":
        subprocess.run(["mount", f"--make-r{propagation}", "/"], check=True)
    return None


@contextmanager
def tmpfs(folder: Path, options: str) -> Iterator[Path]:
    """Mount a file system in memory at a folder with these options while the block runs."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
