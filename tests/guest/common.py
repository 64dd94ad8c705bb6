"""What both kinds of guest share, and the archives that a kernel takes its first files from."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from peakmark.errors import PeakmarkError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class GuestError(PeakmarkError):
    """The guest, or the function in it, did not come to its end."""


def missing(needed: Mapping[str, str]) -> str | None:
    """Which programs (name -> Debian package) are not here, and what to install; None if all are."""
    names = [name for name in needed if shutil.which(name, path=SYSTEM_PATH) is None]
    packages = dict.fromkeys(needed[name] for name in names)
    return f"{', '.join(names)} not found: install {' '.join(packages)}" if names else None


def compile_source(name: str, target: Path, *options: str) -> None:
    """Compile a C file of this folder. Raises GuestError with what gcc says."""
    source = Path(__file__).with_name(name)
    argv = ["gcc", *options, "-O2", "-Wall", "-Wextra", "-o", str(target), str(source)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GuestError(f"{name} cannot be compiled: {done.stderr.strip()}")


def archive(files: Mapping[str, bytes]) -> bytes:
    """A cpio archive (newc, from which a kernel takes its first files) of executable files."""
    entries: dict[str, tuple[int, bytes, tuple[int, int]]] = {"dev": (0o40755, b"", (0, 0))}
    entries["dev/console"] = (0o20600, b"", (5, 1))
    for name, content in files.items():
        for folder in reversed(Path(name).parents[:-1]):
            entries[str(folder)] = (0o40755, b"", (0, 0))
        entries[name] = (0o100755, content, (0, 0))
    entries["TRAILER!!!"] = (0, b"", (0, 0))
    packed = bytearray()
    for number, (name, (mode, content, (major, minor))) in enumerate(entries.items(), start=1):
        word = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(word), 0)
        for piece in (b"070701" + b"".join(b"%08x" % field for field in fields) + word, content):
            packed += piece
            packed += b"\0" * (-len(packed) % 4)
    return bytes(packed)
