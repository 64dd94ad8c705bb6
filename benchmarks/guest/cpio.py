"""Archives that a kernel takes its first files from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def archive(files: Mapping[str, bytes]) -> bytes:
    """A cpio archive (newc, as the kernel reads it) of executable files and the folders they are
    in.
    """
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
