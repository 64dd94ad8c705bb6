"""What comes with peakmark beside its code, in a checkout or a wheel, and which state of it runs."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from peakmark import __version__

PACKAGE = Path(__file__).resolve().parent
_PACKED = PACKAGE / "checkout"
IS_CHECKOUT = not _PACKED.is_dir()
ROOT = PACKAGE.parents[1] if IS_CHECKOUT else _PACKED
"""Top level of the checkout, or what a wheel holds of it."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "peakmark"  # noqa: PTH111 - never fails
"""The user's; read before the logger sets another one for Snakemake."""


def of_checkout(name: str) -> Path:
    """A path below the checkout: the one that is the current folder, so that paths stay short, else
    this installation's (with ``snakemake --directory`` results lie elsewhere, and the checkout
    may be read-only).
    """
    return Path(name) if IS_CHECKOUT and Path("src/kernels").is_dir() else ROOT / name


def keep_matplotlib(elsewhere: Path = CACHE) -> None:
    """Keep the font list of Matplotlib in the checkout or, where that is read-only, ``elsewhere``."""
    place = ROOT / "build" if os.access(ROOT / "build", os.W_OK) else elsewhere
    os.environ.setdefault("MPLCONFIGDIR", str(place / "matplotlib"))


@functools.cache
def version() -> str:
    """Version and, in a git checkout, commit: ``1.0.0+1a2b3c4d5e6f``, with ``-dirty`` where files
    were changed since.
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
    """argv of ``peakmark ARGUMENTS`` of this installation."""
    return [sys.executable, "-m", "peakmark", *arguments]


def program(name: str) -> str:
    """A program of this installation as it can be pasted into a shell: with its folder where no
    environment is active.
    """
    from shlex import quote

    if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return name
    path = Path(sys.prefix) / "bin" / name
    return quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))


def snakemake(module: str = "snakemake") -> list[str]:
    """argv of a module that runs Snakemake, with the Snakefile of this installation."""
    return [sys.executable, "-m", module, "--snakefile", str(of_checkout("Snakefile"))]
