"""Paths of the files that come with peakmark, in a checkout or in a wheel, and peakmark's version."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from pathlib import Path

from peakmark import __version__

PACKAGE = Path(__file__).resolve().parent
# Only a wheel has this folder. It holds the files that are outside the package in a checkout.
_PACKED = PACKAGE / "checkout"
IS_CHECKOUT = not _PACKED.is_dir()
ROOT = PACKAGE.parents[1] if IS_CHECKOUT else _PACKED
"""Top folder of the checkout, or of the part of the checkout that the wheel contains."""
MAKERS = (".py", ".csv", ".yaml", ".toml")
"""Extensions of the package's files on which tables, figures and report depend."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "peakmark"  # noqa: PTH111 - never fails
"""Cache folder of the user. It is read at import: the logger plugin sets ``XDG_CACHE_HOME`` anew for Snakemake."""


def of_checkout(name: str) -> Path:
    """Return the path of a file or folder in the checkout.

    If the working directory is the top folder of a checkout, the path is relative, and therefore
    short. Otherwise, such as with ``snakemake --directory``, it is a path in this installation.
    """
    if IS_CHECKOUT and Path("src/kernels").is_dir():
        return Path(name)
    return ROOT / name


def of_user(name: str) -> Path:
    """Return the path of a file or folder that a configuration names.

    If the name does not exist from the working directory, it is a path in the checkout, as in presets.
    """
    if Path(name).exists():
        return Path(name)
    return ROOT / name


def code_digest() -> str:
    """Return a digest of code, data, layouts and templates on which tables and reports depend.

    Only the contents of files count, so it is the same for a checkout in another folder.
    """
    paths = [path for path in PACKAGE.rglob("*") if path.suffix in MAKERS]
    reports = ROOT / "reports"
    for path in reports.rglob("*"):
        # People make reports in published/, which change nothing.
        if path.is_file() and reports / "published" not in path.parents:
            paths.append(path)
    digests = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def set_matplotlib_cache(elsewhere: Path = CACHE) -> None:
    """Set the folder of Matplotlib's font cache: in the checkout, or ``elsewhere`` if that is read-only."""
    place = ROOT / "build"
    if not os.access(place, os.W_OK):
        place = elsewhere
    os.environ.setdefault("MPLCONFIGDIR", str(place / "matplotlib"))


@functools.cache
def version() -> str:
    """Return the version and, in a git checkout, the commit, such as ``1.0.0+1a2b3c4d5e6f``.

    The suffix ``-dirty`` marks changed files.
    """
    if not IS_CHECKOUT:  # git would describe another repository that contains the environment
        return __version__
    import subprocess  # late: the process of a cell reads the version from a file

    # --exclude=*: describe the commit by its hash alone, not by the nearest tag.
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        answer = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return __version__
    return f"{__version__}+{answer.stdout.strip()}"


def command(*arguments: str) -> list[str]:
    """Return the argv that runs ``peakmark ARGUMENTS`` from this installation."""
    return [sys.executable, "-m", "peakmark", *arguments]


def program(name: str) -> str:
    """Return the shell word that runs a program of this installation.

    This is the name alone if the environment of the installation is active, and otherwise the path.
    """
    from shlex import quote

    # Equal prefixes: there is no virtual environment, so the program is on PATH.
    if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return name
    path = Path(sys.prefix) / "bin" / name
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return quote(str(path))
