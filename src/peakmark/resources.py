"""Paths of the files that come with peakmark, in a checkout or a wheel, and its version."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from pathlib import Path

from peakmark import __version__

PACKAGE = Path(__file__).resolve().parent
_PACKED = PACKAGE / "checkout"
IS_CHECKOUT = not _PACKED.is_dir()
ROOT = PACKAGE.parents[1] if IS_CHECKOUT else _PACKED
"""Top folder of the checkout, or of its part that a wheel holds."""
MAKERS = (".py", ".csv", ".yaml", ".toml")
"""Endings of the package's files from which tables, figures and report are made."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "peakmark"  # noqa: PTH111 - never fails
"""The user's cache folder; read before the logger sets another one for Snakemake."""


def of_checkout(name: str) -> Path:
    """Return a path below the checkout. In a checkout's top folder it is relative, so that paths
    stay short. Elsewhere, as with ``snakemake --directory``, it leads to this installation.
    """
    if IS_CHECKOUT and Path("src/kernels").is_dir():
        return Path(name)
    return ROOT / name


def of_user(name: str) -> Path:
    """Return a path that a configuration names, relative to the working folder or to the checkout.

    Presets name theirs relative to the checkout.
    """
    if Path(name).exists():
        return Path(name)
    return ROOT / name


def code_digest(root: Path = ROOT) -> str:
    """Return a digest of the code, data, layouts and templates behind tables, figures and report."""
    package = PACKAGE
    if IS_CHECKOUT:
        package = root / "src" / "peakmark"
    paths = [path for path in package.rglob("*") if path.suffix in MAKERS]
    paths += [path for path in (root / "reports").rglob("*") if path.is_file()]
    digests = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def keep_matplotlib(elsewhere: Path = CACHE) -> None:
    """Keep the font list of Matplotlib in the checkout or, where that is read-only, ``elsewhere``."""
    place = ROOT / "build"
    if not os.access(place, os.W_OK):
        place = elsewhere
    os.environ.setdefault("MPLCONFIGDIR", str(place / "matplotlib"))


@functools.cache
def version() -> str:
    """Return the version and, in a git checkout, the commit, such as ``1.0.0+1a2b3c4d5e6f``.
    ``-dirty`` marks changed files.
    """
    if not IS_CHECKOUT:  # git would name the state of what the environment lies in
        return __version__
    import subprocess  # late: a cell's process is told the version

    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        answer = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return __version__
    return f"{__version__}+{answer.stdout.strip()}"


def command(*arguments: str) -> list[str]:
    """Return the argv of ``peakmark ARGUMENTS`` of this installation."""
    return [sys.executable, "-m", "peakmark", *arguments]


def program(name: str) -> str:
    """Return a program of this installation for a shell. Add its folder where no environment is
    active.
    """
    from shlex import quote

    if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return name
    path = Path(sys.prefix) / "bin" / name
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return quote(str(path))
