"""mount(2) and what the cluster does with it. Only ever called inside a private mount namespace."""

import ctypes
import os
from pathlib import Path

# Values from <linux/mount.h>.
MS_BIND = 4096
MS_REC = 16384

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str | None = None, flags: int = 0) -> None:
    """mount(2), without the path rewriting of mount(8). Raises OSError."""
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode() if kind else None, flags, None
    )
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot mount {source} on {target}: {os.strerror(number)}")


def bind(source: Path, target: str) -> None:
    """Show `source` (a file or a directory) at `target`, which must exist."""
    mount(str(source), target, flags=MS_BIND)


def fresh_sys() -> None:
    """Mount a new /sys, which shows the interfaces of the present network namespace, and keep the
    control groups in it.

    /sys shows the network namespace it was mounted in. The control groups are mounts of their own
    below it; the new /sys would hide them, and slurmd looks for them when it starts.
    """
    groups = "/sys/fs/cgroup"
    if not os.path.ismount(groups):
        mount("sysfs", "/sys", "sysfs")
        return
    # The descriptor keeps the old tree reachable after the new /sys lies over it.
    descriptor = os.open(groups, os.O_PATH | os.O_DIRECTORY)
    try:
        mount("sysfs", "/sys", "sysfs")
        mount(f"/proc/self/fd/{descriptor}", groups, flags=MS_BIND | MS_REC)
    finally:
        os.close(descriptor)
