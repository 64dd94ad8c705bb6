"""Find the compiled kernels, check that they are those of the sources, and name the version of the code
that measures.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
from functools import cache
from itertools import chain
from pathlib import Path

from peakmark import __version__, files
from peakmark.catalogue import KERNELS
from peakmark.resources import CACHE, IS_CHECKOUT, PACKAGE, ROOT, of_checkout, version

SOURCES = of_checkout("src/kernels")
VERSION_FILE = "code.json"
VARIABLE = "PEAKMARK_KERNELS"
MAKE = "env -u CC -u AR -u CPPFLAGS -u CFLAGS -u LDFLAGS make"
"""make without the variables that a site's modules set, so that gcc makes the kernels on every node."""
TOOLCHAIN = "gcc --version; $(gcc -print-prog-name=as) --version; uname -m"
"""Shell commands that print the tools and the architecture on which the kernels depend."""


@cache
def folder() -> Path:
    """Return the folder of the kernels. For a wheel it is in the user's cache, as the wheel's
    folder may be read-only. The archive for machines without a network brings compiled kernels
    for nodes without gcc.

    The first process decides for the processes that it starts: a node may lack the compiler.
    """
    if IS_CHECKOUT:
        return of_checkout("build/kernels")
    if VARIABLE not in os.environ:
        prebuilt = ROOT / "kernels"
        chosen = prebuilt
        if shutil.which("gcc") is not None or not prebuilt.is_dir():
            chosen = CACHE / _key()
        os.environ[VARIABLE] = str(chosen)
    return Path(os.environ[VARIABLE])


def _key() -> str:
    """Return a digest of the sources, the compiler and the CPU's architecture."""
    toolchain = subprocess.run(["sh", "-c", TOOLCHAIN], capture_output=True, check=False).stdout
    digest = hashlib.sha256(__version__.encode() + toolchain)
    for source in sources():
        digest.update(Path(source).read_bytes())
    return digest.hexdigest()[:16]


def make_command() -> str:
    """Return the shell command that compiles the kernels.

    For the cache it compiles a copy of the sources there, as make takes no target with a space in
    its path. Two first runs may share a cache. So each compiles in its own folder, and keeps the
    programs that the other one has put in place.
    """
    if IS_CHECKOUT:
        return f"{MAKE} -C {shlex.quote(str(SOURCES))}"
    target, sources = shlex.quote(str(folder())), shlex.quote(str(SOURCES))
    names = ",".join(["build.json", *KERNELS.values(), "up-to-date"])
    return f"""\
new=$(mktemp -d -p {target}); trap 'rm -rf "$new"' EXIT
cp -r --no-preserve=mode {sources} "$new/src"
{MAKE} -C "$new/src" BUILD=.. VERSION={__version__}
mv -n "$new"/{{{names}}} {target} || true"""


def programs(build: Path | None = None) -> list[str]:
    """Return the paths of the four kernels, and of the file that make writes last."""
    return [str((build or folder()) / name) for name in (*KERNELS.values(), "up-to-date")]


def sources(folder: Path = SOURCES) -> list[str]:
    """Return the files that the kernels are made from."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


def up_to_date(folder: Path = SOURCES, build: Path | None = None) -> bool:
    """Return whether all kernels exist and none is older than a source. In the cache the folder's
    name already depends on the sources.
    """
    kernels = [Path(program) for program in programs(build)]
    exist = all(program.is_file() for program in kernels)
    if not exist or not IS_CHECKOUT:
        return exist
    oldest = min(program.stat().st_mtime_ns for program in kernels)
    return all(Path(source).stat().st_mtime_ns <= oldest for source in sources(folder))


def keep_version(campaign: Path) -> None:
    """Write the code's version into the campaign's folder, for cells on nodes without git.

    Raises:
        OSError: when it cannot be written.
    """
    text = json.dumps({"root": str(ROOT), "version": version()}, indent=1) + "\n"
    files.write_text(campaign / VERSION_FILE, text)


@cache
def running_version(campaign: Path) -> str:
    """Return the version that this process runs: the kept one, or git's where a source changed
    since.
    """
    path = campaign / VERSION_FILE
    try:
        kept, written = json.loads(path.read_bytes()), path.stat().st_mtime_ns
        code = chain(PACKAGE.rglob("*.py"), map(Path, sources()))
        unchanged = all(file.stat().st_mtime_ns <= written for file in code)
        if unchanged and kept["root"] == str(ROOT):
            return str(kept["version"])
    except (OSError, ValueError, LookupError, TypeError):
        pass
    return version()
