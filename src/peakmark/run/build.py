"""Where the kernels are, whether they are those of the sources, and which state of the code measures."""

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
"""make without what modules of a site set: kernels of a campaign are those of gcc on every node."""
TOOLCHAIN = "gcc --version; $(gcc -print-prog-name=as) --version; uname -m"
"""Shell commands that print what the kernels depend on beside their sources."""


@cache
def folder() -> Path:
    """Folder of the kernels: in the checkout, or for a wheel, whose own folder may be read-only, in
    the user's cache. An archive for machines without a network brings some for those without gcc.

    The first process decides for those that it starts: a node may lack the compiler.
    """
    if IS_CHECKOUT:
        return of_checkout("build/kernels")
    if VARIABLE not in os.environ:
        prebuilt = ROOT / "kernels"
        without = shutil.which("gcc") is None and prebuilt.is_dir()
        os.environ[VARIABLE] = str(prebuilt if without else CACHE / _key())
    return Path(os.environ[VARIABLE])


def _key() -> str:
    """Digest of the sources, the compiler and the architecture of the CPU."""
    toolchain = subprocess.run(["sh", "-c", TOOLCHAIN], capture_output=True, check=False).stdout
    digest = hashlib.sha256(__version__.encode() + toolchain)
    for source in sources():
        digest.update(Path(source).read_bytes())
    return digest.hexdigest()[:16]


def make_command() -> str:
    """Shell command that compiles the kernels; for the cache from a copy of the sources there, as
    make takes no target with a space in its path. Two first runs may share a cache: each compiles
    in a folder of its own, and programs that the other one has put in place stay.
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
    """Paths of the four kernels, and of the file that make writes last."""
    return [str((build or folder()) / name) for name in (*KERNELS.values(), "up-to-date")]


def sources(folder: Path = SOURCES) -> list[str]:
    """Files the kernels are made from."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


def up_to_date(folder: Path = SOURCES, build: Path | None = None) -> bool:
    """Whether all kernels exist and none is older than a source. In the cache the folder's name
    says the content of the sources.
    """
    kernels = [Path(program) for program in programs(build)]
    exist = all(program.is_file() for program in kernels)
    if not exist or not IS_CHECKOUT:
        return exist
    oldest = min(program.stat().st_mtime_ns for program in kernels)
    return all(Path(source).stat().st_mtime_ns <= oldest for source in sources(folder))


def keep_version(campaign: Path) -> None:
    """Write down for the cells of a campaign which state of the code git names: nodes may lack git.

    Raises:
        OSError: when it cannot be written.
    """
    text = json.dumps({"root": str(ROOT), "version": version()}, indent=1) + "\n"
    files.write_text(campaign / VERSION_FILE, text)


@cache
def running_version(campaign: Path) -> str:
    """The version that this process runs: as kept, or by git where a source has changed since."""
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
