"""Find peakmark's compiled kernels, check that they are up to date with their sources, and keep the
version of the code that measures.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from itertools import chain
from pathlib import Path

from peakmark import __version__, files
from peakmark.catalogue import KERNELS as EVERY_KERNEL
from peakmark.resources import CACHE, IS_CHECKOUT, PACKAGE, ROOT, of_checkout, version

KERNELS = {name: kernel for name, kernel in EVERY_KERNEL.items() if name != "mpi"}
"""Subsystem -> its kernel, except MPI's, which ``run.mpi`` compiles with the site's library."""
SOURCES = of_checkout("src/kernels")
VERSION_FILE = "code.json"
"""File of a campaign's folder that holds the version of the code."""
VARIABLE = "PEAKMARK_KERNELS"
"""Environment variable with the folder of the compiled kernels."""
MAKE = "env -u CC -u AR -u CPPFLAGS -u CFLAGS -u LDFLAGS make"
"""make without the variables that a site's modules may set, so that every node compiles with gcc."""
TOOLCHAIN = "gcc --version; $(gcc -print-prog-name=as) --version; uname -m"
"""Shell commands that print the compiler, assembler and architecture for which kernels are built."""


@cache
def folder() -> Path:
    """Return the folder of the compiled kernels.

    - In a checkout: ``build/kernels``.
    - In a wheel: a folder in the user's cache, because the wheel's folder may be read-only.
    - In the offline archive, on a machine without gcc: the compiled kernels in the archive.

    The first process passes its choice to the processes that it starts through an environment
    variable, because a node may lack the compiler that the login node has.
    """
    if IS_CHECKOUT:
        return of_checkout("build/kernels")
    if VARIABLE not in os.environ:
        prebuilt = ROOT / "kernels"
        chosen = prebuilt
        if shutil.which("gcc") is not None or not prebuilt.is_dir():
            toolchain = subprocess.run(["sh", "-c", TOOLCHAIN], capture_output=True, check=False)
            chosen = CACHE / key(toolchain.stdout)
        os.environ[VARIABLE] = str(chosen)
    return Path(os.environ[VARIABLE])


def key(toolchain: bytes) -> str:
    """Return a digest of the kernels' sources and of what describes the compiler."""
    digest = hashlib.sha256(__version__.encode() + toolchain)
    for source in sources():
        digest.update(Path(source).read_bytes())
    return digest.hexdigest()[:16]


def make_command() -> str:
    """Return the shell command that compiles the kernels.

    For a wheel, the command copies the sources into the cache and compiles them there. The build folder
    is then the relative path ``..``: the cache's own path may contain a space, which make does not accept.
    Two runs may fill the same cache at once. Each therefore compiles in a temporary folder, and moves
    a program (``mv -n``) only if the other run has not moved it yet.
    """
    python = shlex.quote(sys.executable)
    if IS_CHECKOUT:
        return f"{MAKE} -C {shlex.quote(str(SOURCES))} PYTHON={python}"
    target, source_folder = shlex.quote(str(folder())), shlex.quote(str(SOURCES))
    names = ",".join(["build.json", *KERNELS.values(), "up-to-date"])
    return f"""\
new=$(mktemp -d -p {target}); trap 'rm -rf "$new"' EXIT
cp -r --no-preserve=mode {source_folder} "$new/src"
{MAKE} -C "$new/src" BUILD=.. VERSION={__version__} PYTHON={python}
mv -n "$new"/{{{names}}} {target} || true"""


def programs(build: Path | None = None) -> list[str]:
    """Return the paths of the kernels, and of the file that make writes last."""
    return [str((build or folder()) / name) for name in (*KERNELS.values(), "up-to-date")]


def sources(source_folder: Path = SOURCES) -> list[str]:
    """Return the paths of the kernels' source files."""
    return sorted(str(path) for path in source_folder.rglob("*") if path.is_file())


def up_to_date(source_folder: Path = SOURCES, build: Path | None = None) -> bool:
    """Return whether all kernels exist and none is older than a source.

    In the cache they only need to exist, because the folder's name depends on the sources.
    """
    kernels = [Path(program) for program in programs(build)]
    exist = all(program.is_file() for program in kernels)
    if not exist or not IS_CHECKOUT:
        return exist
    oldest = min(program.stat().st_mtime_ns for program in kernels)
    return all(Path(source).stat().st_mtime_ns <= oldest for source in sources(source_folder))


def keep_version(campaign: Path) -> None:
    """Write the version of the code into the campaign's folder, for cells on nodes without git.

    Raises:
        OSError: the file cannot be written.
    """
    text = json.dumps({"root": str(ROOT), "version": version()}, indent=1) + "\n"
    files.write_text(campaign / VERSION_FILE, text)


@cache
def running_version(campaign: Path) -> str:
    """Return the version of the code that this process runs.

    This is the version in the campaign's folder, unless a source file is newer than that file or this process
    runs from another checkout. A new version is then computed.
    """
    path = campaign / VERSION_FILE
    try:
        kept, written = json.loads(path.read_bytes()), path.stat().st_mtime_ns
        code = chain(PACKAGE.rglob("*.py"), map(Path, sources()))
        unchanged = all(file.stat().st_mtime_ns <= written for file in code)
        if unchanged and kept["root"] == str(ROOT):
            return str(kept["version"])
    except FileNotFoundError:  # such as a cell that is measured by hand
        pass
    return version()
