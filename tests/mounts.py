"""A mount namespace of its own for the process of the tests."""

import ctypes
import os
import subprocess

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
