"""How facts are read: small files below a root directory, and tools that may be missing. Nothing
here raises.

A ``Host`` with another root reads a copied /sys and /proc, so that tests can examine any machine.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from peakmark.errors import ParseError
from peakmark.tools.json_text import find_object

Facts = dict[str, Any]
"""Facts as JSON values, by name."""
Runner = Callable[[Sequence[str]], str | None]

TOOL_TIMEOUT_S = 5.0
# lsblk and ethtool often live in sbin, which is not on the PATH of an ordinary user.
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"


def run_tool(argv: Sequence[str]) -> str | None:
    """Standard output of a tool, or None when it is missing, fails, or does not answer in 5 s."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TOOL_TIMEOUT_S,
            env={"LC_ALL": "C", "PATH": f"{os.environ.get('PATH', '')}:{_SBIN}"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


class Host:
    """A machine as an ordinary user can read it.

    Args:
        root: where /sys, /proc and /etc are looked for.
        run: executes a tool; returns None for one that does not answer.

    Attributes:
        unknown: dotted name of a fact -> how to supply it; filled by the collectors.
    """

    def __init__(self, root: Path = Path("/"), run: Runner = run_tool) -> None:
        self.root = root
        self.run = run
        self.unknown: dict[str, str] = {}

    def path(self, *parts: str) -> Path:
        """An absolute path, given in parts, below the root."""
        return self.root / "/".join(parts).lstrip("/")

    def read(self, *path: str) -> str | None:
        """Text of a file without surrounding blanks; None when missing, unreadable or empty."""
        try:
            # Path.open takes twice the time, and a node has hundreds of counters.
            with open(f"{self.root}/{'/'.join(path).lstrip('/')}", "rb", 0) as stream:  # noqa: PTH123
                content = stream.read()
        except (OSError, ValueError):
            return None
        return content.decode(errors="replace").strip("\0 \t\r\n") or None

    def read_files(self, folder: str, *names: str) -> list[str]:
        """Texts of files in a folder, empty for one that ``read`` cannot give."""
        return [self.read(folder, name) or "" for name in names]

    def read_int(self, *path: str) -> int | None:
        """Decimal integer in a file, or None."""
        try:
            return int(self.read(*path) or "")
        except ValueError:
            return None

    def read_switch(self, *path: str) -> bool | None:
        """Whether a file holds a 1; None where there is none."""
        text = self.read(*path)
        return None if text is None else text == "1"

    def pairs(self, name: str, sign: str = ":") -> dict[str, str]:
        """Lines ``key: value`` of a file; of a key that stands twice, the first."""
        pairs: dict[str, str] = {}
        for line in (self.read(name) or "").splitlines():
            key, separator, value = line.partition(sign)
            if separator:
                pairs.setdefault(key.strip(), value.strip())
        return pairs

    def meminfo(self) -> dict[str, int]:
        """/proc/meminfo in bytes (and pages, where a line has no unit)."""
        sizes = {}
        for name, value in self.pairs("/proc/meminfo").items():
            number, _, unit = value.partition(" ")
            if number.isdecimal():
                sizes[name] = int(number) * (1024 if unit else 1)
        return sizes

    def glob(self, *pattern: str) -> list[str]:
        """Absolute names that match an absolute pattern, sorted."""
        try:
            paths = list(self.root.glob("/".join(pattern).lstrip("/")))
        except OSError:
            return []
        return sorted(f"/{path.relative_to(self.root)}" for path in paths)

    def resolve(self, name: str) -> Path | None:
        """Target of a link in /sys, or None. Links of sysfs are relative: they stay below the root."""
        try:
            return self.path(name).resolve(strict=True)
        except (OSError, RuntimeError):
            return None

    def run_json(self, argv: Sequence[str]) -> dict[str, Any] | None:
        """The JSON object among what a tool printed, or None."""
        try:
            return find_object(argv[0], self.run(argv) or "")
        except ParseError:
            return None

    def missing(self, name: str, how: str) -> None:
        """Note that fact ``name`` could not be read and how a person can supply it."""
        self.unknown[name] = how


def environment_int(name: str) -> int | None:
    """Number in an environment variable, None where there is none."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


def parse_cpu_list(text: str | None) -> list[int]:
    """CPU numbers of the kernel's list format: ``0-3,8`` -> [0, 1, 2, 3, 8]; damaged parts are left
    out.
    """
    numbers: list[int] = []
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def parse_bytes(text: str | None) -> int | None:
    """``32768K`` or ``32M`` as bytes."""
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text or "")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else None


def first_int(text: str | None) -> int | None:
    """Leading digits of a text as a number: ``16.0 GT/s`` -> 16. None without digits."""
    match = re.match(r"\s*([0-9]+)", text or "")
    return int(match[1]) if match else None


def chosen(text: str | None) -> str | None:
    """The bracketed word of ``always [madvise] never``; a text without brackets as it is."""
    match = re.search(r"\[(.*?)\]", text or "")
    return match[1] if match else text


def pcie_link(host: Host, device: str) -> Facts | None:
    """Lanes and speed of the PCI Express link of a device now, and at most; None without one."""
    link: Facts = {}
    for name in ("current", "max"):
        link[f"{name}_width"] = host.read_int(device, f"{name}_link_width")
        link[f"{name}_speed"] = host.read(device, f"{name}_link_speed")
    return link if all(link.values()) and "Unknown" not in str(link) else None
