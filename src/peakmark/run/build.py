"""Whether the kernels are those of the sources, and which state of the code measures."""

from __future__ import annotations

import json
from functools import cache
from itertools import chain
from pathlib import Path

from peakmark import files
from peakmark.catalogue import KERNELS
from peakmark.resources import ROOT, of_checkout, version

SOURCES = of_checkout("src/kernels")
BUILD = of_checkout("build/kernels")
PACKAGE = Path(__file__).resolve().parents[1]
VERSION_FILE = "code.json"


def programs(build: Path = BUILD) -> list[str]:
    """Paths of the four kernels."""
    return [str(build / name) for name in KERNELS.values()]


def sources(folder: Path = SOURCES) -> list[str]:
    """Files the kernels are made from."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


def up_to_date(folder: Path = SOURCES, build: Path = BUILD) -> bool:
    """Whether all kernels exist and none is older than a source."""
    kernels = [Path(program) for program in programs(build)]
    if not all(program.is_file() for program in kernels):
        return False
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
