"""Read facts from small files below a root directory, and from tools that may be missing.

Functions return None instead of raising errors. With another root, a ``Host`` reads a copy of /sys and
/proc, so that tests can examine any machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
"""Facts as JSON values, by name."""
POSSIBLE = {
    "Hz": (5e7, 6.5e9),
    "W": (1, 3000),
    "MT/s": (200, 20_000),
    "bit/s": (1e6, 4e12),
    "lanes": (1, 32),
}
"""Unit -> (least, greatest) value that a machine can have.

In the order of the units: a CPU's clock, a GPU's power cap, the rate of a memory module, the speed
of a network interface, and the number of lanes of a PCI Express link.

Kernels, firmware and tools show 0, an error value or a huge number for what they do not know. The
highest clock that was sold is 6.2 GHz (Core i9-14900KS).
"""
Runner = Callable[[Sequence[str]], str | None]
"""Function that runs a command and returns the standard output, or None if the command fails."""

TOOL_TIMEOUT_S = 5.0
"""Time limit of most tools in seconds, so that a tool that hangs does not delay a job."""
DRIVER_TIMEOUT_S = 30.0
"""Time limit in seconds of a tool that asks NVIDIA's driver, which may first have to start eight GPUs."""
# Folders that are added to the PATH: lsblk and ethtool often are in sbin, which an ordinary user does not search.
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"


def run_tool(argv: Sequence[str]) -> str | None:
    """Run a tool, and return its standard output; None if it is missing, fails or takes too long."""
    timeout_s = TOOL_TIMEOUT_S
    # Both ask NVIDIA's driver, which may first have to start the GPUs: ``--list`` is an option of gpubench.
    if "nvidia-smi" in argv or "--list" in argv:
        timeout_s = DRIVER_TIMEOUT_S
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            env={"LC_ALL": "C", "PATH": f"{os.environ.get('PATH', '')}:{_SBIN}"},
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None


class Host:
    """A machine, as an ordinary user can read it.

    Attributes:
        root: directory below which /sys, /proc and /etc are read.
        run: function that runs a tool.
        unknown: dotted name of a fact that could not be read -> how to supply it.
    """

    def __init__(self, root: Path = Path("/"), run: Runner = run_tool) -> None:
        self.root = root
        self.run = run
        self.unknown: dict[str, str] = {}

    def path(self, *parts: str) -> Path:
        """Join the parts of an absolute path, and return the path below ``root``."""
        return self.root / "/".join(parts).lstrip("/")

    def read(self, *path: str) -> str | None:
        """Return the text of a file without surrounding spaces; None if it is unreadable or empty.

        The arguments are the parts of an absolute path, as in all methods with ``*path``.
        """
        try:
            # Path.open takes twice the time, and a node has hundreds of counters.
            with open(f"{self.root}/{'/'.join(path).lstrip('/')}", "rb", 0) as stream:  # noqa: PTH123
                content = stream.read()
        except (OSError, ValueError):
            return None
        # Texts of the device tree end with a NUL character.
        return content.decode(errors="replace").strip("\0 \t\r\n") or None

    def read_files(self, folder: str, *names: str) -> list[str]:
        """Return the texts of files in a folder. The text of an unreadable file is empty."""
        return [self.read(folder, name) or "" for name in names]

    def read_int(self, *path: str) -> int | None:
        """Return the decimal integer in a file; None if the file is unreadable or has another text."""
        try:
            return int(self.read(*path) or "")
        except ValueError:
            return None

    def read_switch(self, *path: str) -> bool | None:
        """Return whether the text of a file is ``1``; None if the file is unreadable or empty."""
        text = self.read(*path)
        return None if text is None else text == "1"

    def pairs(self, name: str, sign: str = ":") -> dict[str, str]:
        """Return key -> value of the lines ``key: value`` of a file.

        If a key is repeated, its first line counts. ``sign`` separates key and value.
        """
        pairs: dict[str, str] = {}
        for line in (self.read(name) or "").splitlines():
            key, separator, value = line.partition(sign)
            if separator:
                pairs.setdefault(key.strip(), value.strip())
        return pairs

    def meminfo(self) -> dict[str, int]:
        """Return the values of /proc/meminfo in bytes. Lines without a unit count pages."""
        sizes = {}
        for name, value in self.pairs("/proc/meminfo").items():
            number, _, unit = value.partition(" ")
            if number.isdecimal():
                factor = 1024 if unit else 1
                sizes[name] = int(number) * factor
        return sizes

    def glob(self, *pattern: str) -> list[str]:
        """Return the sorted absolute paths that match an absolute pattern."""
        try:
            paths = list(self.root.glob("/".join(pattern).lstrip("/")))
        except OSError:
            return []
        return sorted(f"/{path.relative_to(self.root)}" for path in paths)

    def resolve(self, name: str) -> Path | None:
        """Return the target of a link in /sys; None if the link or its target does not exist.

        The target is below ``root`` too, because links in sysfs are relative.
        """
        try:
            return self.path(name).resolve(strict=True)
        except (OSError, RuntimeError):
            return None

    def run_json(self, argv: Sequence[str]) -> dict[str, Any] | None:
        """Run a tool, and return the JSON object that it prints; None if it fails or prints something else."""
        try:
            answer = json.loads(self.run(argv) or "")
        except ValueError:
            return None
        return answer if isinstance(answer, dict) else None

    def missing(self, name: str, how: str) -> None:
        """Record that the fact ``name`` could not be read, and how the user can supply it."""
        self.unknown[name] = how


def possible(value: float | None, unit: str) -> float | None:
    """Return a value that a tool or Linux prints, or None if no machine can have such a value."""
    least, most = POSSIBLE[unit]
    return value if value is not None and least <= value <= most else None


def parse_cpu_list(text: str | None) -> list[int]:
    """Parse a list in the kernel's format, such as ``0-3,8`` -> [0, 1, 2, 3, 8].

    Invalid parts are skipped.
    """
    numbers: list[int] = []
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def first_int(text: str | None) -> int | None:
    """Return the number at the start of a text, such as ``16.0 GT/s`` -> 16, or None."""
    match = re.match(r"\s*([0-9]+)", text or "")
    return int(match[1]) if match else None


def chosen(text: str | None) -> str | None:
    """Return the word in brackets, as in ``always [madvise] never``; without brackets, the whole text."""
    match = re.search(r"\[(.*?)\]", text or "")
    return match[1] if match else text


def pcie_link(host: Host, device: str) -> Facts | None:
    """Return lanes and speed of a device's PCI Express link: in use, and the highest possible ones.

    The keys are ``current_width``, ``current_speed``, ``max_width`` and ``max_speed``; a speed is Linux's
    text, such as ``16.0 GT/s PCIe``. Return None if one of these four values is unknown.
    """
    link: Facts = {}
    for name in ("current", "max"):
        link[f"{name}_width"] = host.read_int(device, f"{name}_link_width")
        link[f"{name}_speed"] = host.read(device, f"{name}_link_speed")
    return link if all(link.values()) and "Unknown" not in str(link) else None
