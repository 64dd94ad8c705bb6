"""What comes with the checkout: schemas, the report's template, and which state of it runs."""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from peakmark import __version__

ROOT = Path(__file__).resolve().parents[2]


def of_checkout(name: str) -> Path:
    """A path below the checkout: the one that is the current folder, so that paths stay short, else this installation's
    (with ``snakemake --directory`` results lie elsewhere, and the checkout may be read-only).
    """
    return Path(name) if Path("src/kernels").is_dir() else ROOT / name


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """The JSON schema ``config/schema/<name>.schema.json``."""
    data: dict[str, Any] = json.loads((ROOT / "config" / "schema" / f"{name}.schema.json").read_text(encoding="utf-8"))
    return data


@functools.cache
def version() -> str:
    """Version and, in a git checkout, commit: ``0.1.0+1a2b3c4d5e6f``, with ``-dirty`` where files were changed since."""
    git = ask_version()
    if git is None:
        return __version__
    with git:
        try:
            said, _ = git.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            git.kill()
            return __version__
    return __version__ if git.returncode else f"{__version__}+{said.strip()}"


@functools.cache
def ask_version() -> subprocess.Popen[str] | None:
    """Start git, which looks at every file of the checkout, for who will ask for the version after something else.

    None where it cannot be started.
    """
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(argv, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, text=True)
    except OSError:
        return None


def program(name: str) -> str:
    """A program of this installation as it can be pasted into a shell: with its folder where no environment is active."""
    if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return name
    path = Path(sys.prefix) / "bin" / name
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))


def snakemake(profile: str) -> str:
    """``snakemake`` with a profile, ``local`` or ``slurm``, as it can be pasted into a shell in the folder of ``results``."""
    words = [program("snakemake")]
    if of_checkout("Snakefile") != Path("Snakefile"):
        words += ["--snakefile", shlex.quote(str(ROOT / "Snakefile"))]
    return " ".join([*words, "--profile", shlex.quote(str(of_checkout(profile)))])
