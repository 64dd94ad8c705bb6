"""How facts are read: small files below a root directory, and tools that may be missing. Nothing
here raises.

A ``Host`` with another root reads a copied /sys and /proc: that is how a machine which is not here
can be looked at.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Runner = Callable[[Sequence[str]], str | None]

TOOL_TIMEOUT_S = 5.0
# lsblk and ethtool often live in sbin, which is not on the PATH of an ordinary user.
_SEARCH_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


def run_tool(argv: Sequence[str]) -> str | None:
    """Standard output of a tool, or None when it is missing, fails, or does not answer in 5 s."""
    import shutil
    import subprocess  # late: a cell's process reads files and asks no tool

    path = shutil.which(argv[0]) or shutil.which(argv[0], path=_SEARCH_PATH)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *argv[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TOOL_TIMEOUT_S,
            env={"LC_ALL": "C", "PATH": _SEARCH_PATH},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


class Host:
    """A machine as an ordinary user can read it.

    root     where /sys, /proc and /etc are looked for
    run      executes a tool; None from it means "this tool does not answer"
    unknown  dotted name of a fact -> how to supply it; filled by the collectors
    """

    def __init__(self, root: Path = Path("/"), run: Runner = run_tool) -> None:
        self.root = root
        self._below = str(root).rstrip("/")
        self.run = run
        self.unknown: dict[str, str] = {}

    def path(self, name: str) -> Path:
        """``name`` (absolute) below the root."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """Text of a small file without surrounding blanks; None when it is missing, unreadable or
        empty.
        """
        # By hand: a cell reads some hundred such files, and this takes a fifth of what pathlib
        # does.
        parts = []
        try:
            descriptor = os.open(f"{self._below}/{name.lstrip('/')}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                while part := os.read(descriptor, 1 << 16):
                    parts.append(part)
            finally:
                os.close(descriptor)
        except (OSError, ValueError):
            return None
        return b"".join(parts).decode("utf-8", errors="replace").strip("\0 \t\r\n") or None

    def read_int(self, name: str) -> int | None:
        """Decimal integer in a file, or None."""
        text = self.read(name)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def pairs(self, name: str, sign: str = ":") -> dict[str, str]:
        """Lines such as ``key: value`` of a file, blanks around both removed; of a key that comes
        again the first.
        """
        pairs: dict[str, str] = {}
        for line in (self.read(name) or "").splitlines():
            key, seen, value = line.partition(sign)
            if seen:
                pairs.setdefault(key.strip(), value.strip())
        return pairs

    def meminfo(self) -> dict[str, int]:
        """/proc/meminfo in bytes (and pages, where a line has no unit)."""
        lines = {name: value.split() for name, value in self.pairs("/proc/meminfo").items()}
        return {
            name: int(fields[0]) * 1024 ** (len(fields) - 1)
            for name, fields in lines.items()
            if fields and fields[0].isdigit()
        }

    def switch(self, name: str) -> bool | None:
        """Whether a file holds a 1; None where there is none."""
        text = self.read(name)
        return None if text is None else text == "1"

    def names(self, folder: str) -> list[str]:
        """What lies in a folder, sorted; nothing where there is none."""
        try:
            with os.scandir(f"{self._below}/{folder.lstrip('/')}") as entries:
                return sorted(entry.name for entry in entries)
        except OSError:
            return []

    def glob(self, pattern: str) -> list[str]:
        """Absolute names that match an absolute pattern, sorted."""
        try:
            return sorted(
                f"/{path.relative_to(self.root)}" for path in self.root.glob(pattern.lstrip("/"))
            )
        except OSError:
            return []

    def resolve(self, name: str) -> Path | None:
        """What a link in /sys points at, or None. Links of sysfs are relative: they stay below the
        root.
        """
        try:
            return self.path(name).resolve(strict=True)
        except (OSError, RuntimeError):
            return None

    def run_json(self, argv: Sequence[str]) -> Any:
        """Parsed JSON a tool printed, or None."""
        text = self.run(argv)
        if not text:
            return None
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return None

    def missing(self, name: str, how: str) -> None:
        """Note that fact ``name`` could not be read and how a person can supply it."""
        self.unknown[name] = how


def parse_cpu_list(text: str | None) -> list[int]:
    """CPU numbers of the kernel's list format: ``0-3,8`` -> [0, 1, 2, 3, 8]. Empty for None or
    damaged text.
    """
    numbers: list[int] = []
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def first_int(text: str | None) -> int | None:
    """Leading digits of a text as a number: ``16.0 GT/s`` -> 16. None without digits."""
    match = re.match(r"\s*([0-9]+)", text or "")
    return int(match[1]) if match else None


def chosen(text: str | None) -> str | None:
    """The bracketed word of ``always [madvise] never``; a text without brackets as it is."""
    _, bracket, rest = (text or "").partition("[")
    return rest.partition("]")[0] if bracket else text
