"""A Linux kernel as an ordinary process of one CPU: Debian's package user-mode-linux."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.guest import common

PROGRAM = "linux.uml"
NEEDED = {PROGRAM: "user-mode-linux", "modprobe": "kmod", "ip": "iproute2", "gcc": "gcc"}
MEMORY_MIB = 1024
# Since Linux 6.10 the folder is an option with a name; before, the option is the folder.
OWN = 'mount -t hostfs -o "$GUEST" none "$GUEST" 2>/dev/null || mount -t hostfs -o "hostfs=$GUEST" none "$GUEST"'
MODULES = "/usr/lib/uml/modules"


def load(modules: Sequence[str]) -> str:
    """What ``init`` does to load these modules."""
    if not modules:
        return ":"
    folder = "mkdir -p /run/modules/lib && ln -s " + MODULES + " /run/modules/lib/modules"
    return (
        f"{folder} && for module in {' '.join(modules)}; do modprobe -d /run/modules $module; done"
    )


def argv(directory: Path) -> list[str]:
    words = ["rootfstype=hostfs", "rootflags=/", "ro", f"init={directory}/init", "umid=uml"]
    words += [f"GUEST={directory}", f"mem={MEMORY_MIB}M", f"uml_dir={directory}/", "quiet"]
    words += ["con=null", "con0=fd:0,fd:1"]
    return [shutil.which(PROGRAM, path=common.SYSTEM_PATH) or PROGRAM, *words]


def environment(directory: Path) -> dict[str, str]:
    """Of the kernel's process. Errors: GuestError when what is loaded before it cannot be compiled."""
    library = directory / "xstate.so"
    common.compile_source("xstate.c", library, "-shared", "-fPIC")
    return {
        **os.environ,
        "TMPDIR": str(_memory_folder(directory)),
        "HOME": str(directory),
        "LD_PRELOAD": str(library),
    }


def _memory_folder(directory: Path) -> Path:
    """Where the file of the guest's memory lies: in memory, if there is room and it may run code."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or os.statvfs(memory).f_flag & os.ST_NOEXEC:
        return directory
    return memory if shutil.disk_usage(memory).free > MEMORY_MIB << 20 else directory
