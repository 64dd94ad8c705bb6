"""What is compiled before the first cell: whether the kernels are those of the sources, and the
Python of a cell's process.
"""

from __future__ import annotations

import compileall
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
    kernels = [Path(program) for program in programs(build)]
    if not all(program.is_file() for program in kernels):
        return False
    oldest = min(program.stat().st_mtime_ns for program in kernels)
    return all(Path(source).stat().st_mtime_ns <= oldest for source in sources(folder))


def python(package: Path = Path(__file__).parents[1]) -> None:
    """Python's own compiled files of what a cell's process loads.

    A node would compile them anew for each cell where Python does not keep them: with
    PYTHONDONTWRITEBYTECODE, which sbatch hands on, or where a job may not write into the checkout.
    Where nobody may, it stays so.
    """
    names = ("catalogue", "commands", "config", "data", "tools", "machine", "run", "storage")
    parts = [package / name for name in names]
    for part in (package, *parts):
        compileall.compile_dir(part, maxlevels=0, quiet=2)
