"""A Linux kernel as an ordinary process: Debian's package user-mode-linux. Boots in a second; one
CPU.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.guest import common
from benchmarks.guest.common import GuestError

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
    return [
        shutil.which(PROGRAM, path=common.SYSTEM_PATH) or PROGRAM,
        *("rootfstype=hostfs", "rootflags=/", "ro", f"init={directory}/init", f"GUEST={directory}"),
        *(
            f"mem={MEMORY_MIB}M",
            f"uml_dir={directory}/",
            "umid=uml",
            "con=null",
            "con0=fd:0,fd:1",
            "quiet",
        ),
    ]


def environment(directory: Path) -> dict[str, str]:
    """Of the kernel's process. Errors: GuestError when what is loaded before it cannot be compiled."""
    library = directory / "xstate.so"
    source = Path(__file__).with_name("xstate.c")
    done = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o", str(library), str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise GuestError(f"{source.name} cannot be compiled: {done.stderr.strip()}")
    return {
        **os.environ,
        "TMPDIR": str(_memory_folder(directory)),
        "HOME": str(directory),
        "LD_PRELOAD": str(library),
    }


def _memory_folder(directory: Path) -> Path:
    """Where the guest's memory lies, in a file without a name: in memory where there is room and
    programs may run.
    """
    memory = Path("/dev/shm")  # noqa: S108
    try:
        room = shutil.disk_usage(memory).free > MEMORY_MIB << 20
        if room and not os.statvfs(memory).f_flag & os.ST_NOEXEC and os.access(memory, os.W_OK):
            return memory
    except OSError:
        pass
    return directory
