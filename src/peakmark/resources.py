"""What comes with the checkout: the report's template, and which state of it runs."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from peakmark import __version__

ROOT = Path(__file__).resolve().parents[2]


def of_checkout(name: str) -> Path:
    """A path below the checkout: the one that is the current folder, so that paths stay short, else
    this installation's (with ``snakemake --directory`` results lie elsewhere, and the checkout
    may be read-only).
    """
    return Path(name) if Path("src/kernels").is_dir() else ROOT / name


def keep_matplotlib(elsewhere: Path | None = None) -> None:
    """Keep the font list of Matplotlib in the checkout or, where that is read-only, ``elsewhere``;
    None: the user's home.
    """
    place = ROOT / "build" if os.access(ROOT / "build", os.W_OK) else elsewhere
    if place is not None:
        os.environ.setdefault("MPLCONFIGDIR", str(place / "matplotlib"))


@functools.cache
def version() -> str:
    """Version and, in a git checkout, commit: ``1.0.0+1a2b3c4d5e6f``, with ``-dirty`` where files
    were changed since.
    """
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


def snakemake(profile: str) -> str:
    """``snakemake`` with a profile, ``local`` or ``slurm``, as it can be pasted into a shell in the
    folder of ``results``.
    """
    from shlex import quote

    command = [program("snakemake")]
    if of_checkout("Snakefile") != Path("Snakefile"):
        command += ["--snakefile", quote(str(ROOT / "Snakefile"))]
    return " ".join([*command, "--profile", quote(str(of_checkout(profile)))])
