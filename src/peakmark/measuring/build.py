"""Whether the compiled kernels are those of the sources."""

from __future__ import annotations

from pathlib import Path

from peakmark.catalogue import KERNELS
from peakmark.resources import of_checkout

SOURCES = of_checkout("src/kernels")
BUILD = of_checkout("build/kernels")


def programs(build: Path = BUILD) -> list[str]:
    """Paths of the four kernels."""
    return [str(build / name) for name in KERNELS.values()]


def sources(folder: Path = SOURCES) -> list[str]:
    """Files the kernels are made from."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


def up_to_date(folder: Path = SOURCES, build: Path = BUILD) -> bool:
    """Whether all kernels are there and none is older than a source."""
    made = [Path(program) for program in programs(build)]
    if not all(program.is_file() for program in made):
        return False
    oldest = min(program.stat().st_mtime_ns for program in made)
    return all(Path(source).stat().st_mtime_ns <= oldest for source in sources(folder))
