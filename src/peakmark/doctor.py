"""What is here, what is missing, and the command that would mend it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from peakmark import lock
from peakmark.errors import PeakmarkError, Unavailable
from peakmark.instruments import REGISTRY


def examine(scratch: Path | None, kernels: Path) -> tuple[str, bool]:
    """A line per finding, and whether nothing that is needed is missing."""
    lines: list[str] = []
    healthy = True

    def say(good: bool | None, what: str, finding: str, fix: str = "") -> None:
        mark = {True: "ok", False: "missing", None: "note"}[good]
        lines.append(f"{mark:<8}{what:<14}{finding}" + (f"; {fix}" if fix else ""))

    for name, instrument in REGISTRY.items():
        if not instrument.reference:
            path = kernels / instrument.executables[0]
            healthy &= path.exists()
            say(path.exists(), name, str(path), "" if path.exists() else "make kernels")
            continue
        found = next((path for path in map(shutil.which, instrument.executables) if path), None)
        if found is None:
            fix = f"apt-get install {instrument.package}" if instrument.package else f"put it on PATH or set tools.{name}"
            say(False, name, "its columns stay empty", fix)
            continue
        try:
            say(True, name, f"{found} {instrument.find(found).version}")
        except Unavailable as error:
            say(False, name, str(error))
    for program in ("gcc", "make"):
        found = shutil.which(program)
        healthy &= found is not None
        say(found is not None, program, found or "needed to compile the kernels", "" if found else f"apt-get install {program}")
    _scratch(scratch or Path(os.environ.get("TMPDIR") or "/tmp"), say)  # noqa: S108
    _settings(say)
    try:
        with lock.held("campaign"):
            pass
    except PeakmarkError as error:
        say(None, "busy", str(error))
    return "\n".join(lines), healthy


def _scratch(scratch: Path, say: object) -> None:
    assert callable(say)
    try:
        kind = subprocess.run(
            ["stat", "-f", "-c", "%T", str(scratch)], capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
        free = shutil.disk_usage(scratch).free
    except (OSError, subprocess.SubprocessError):
        say(False, "scratch", f"{scratch} cannot be used", "set scratch: to a directory on the node")
        return
    in_memory = kind in ("tmpfs", "ramfs")
    say(
        None if in_memory else True,
        "scratch",
        f"{scratch}: {kind}, {free / 1e9:.1f} GB free",
        "this is memory, not a disk: set scratch: to a directory on a disk" if in_memory else "",
    )


def _settings(say: object) -> None:
    assert callable(say)
    huge = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if huge.exists():
        choice = huge.read_text().split("[")[-1].split("]")[0]
        say(None if choice == "never" else True, "huge pages", choice, "memory figures will be lower" if choice == "never" else "")
    uring = Path("/proc/sys/kernel/io_uring_disabled")
    if uring.exists() and uring.read_text().strip() != "0":
        say(None, "io_uring", "switched off by kernel.io_uring_disabled", "the psync engine is not affected")
    slurm = shutil.which("sbatch")
    say(None, "Slurm", slurm or "not here: measure this machine with --profile local")
