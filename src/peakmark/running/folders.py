"""Folders that Snakemake and a campaign write into, looked at before either begins: neither says in
a sentence what is wrong with one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from peakmark import files, resources
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError

STATE = Path(".snakemake")
OF_CAMPAIGN = (
    "cells",
    "logs",
    "attempts",
    "machine",
    "nodes",
    "repetitions",
    "set-aside",
    "tables",
    "figures",
)
FILES = ("plan.json", "config.json", "code.json", "report.pdf", "report.html", "running")
CACHE = "XDG_CACHE_HOME"
ELSEWHERE = "or work in another folder with --directory FOLDER"


def check_state(workplace: Path) -> None:
    """Where Snakemake keeps what it knows of its jobs. Errors: PeakmarkError."""
    _check(workplace / STATE, f"Snakemake keeps its notes in {workplace / STATE}")


def check_campaign(directory: Path, cells: Iterable[Cell]) -> None:
    """That what a campaign has are folders and files as they should be. Errors: PeakmarkError."""
    subsystems = {f"{top}/{cell.subsystem}" for cell in cells for top in ("cells", "logs")}
    for path in (directory, *(directory / name for name in (*OF_CAMPAIGN, *sorted(subsystems)))):
        if why := _no_folder(path):
            raise PeakmarkError(f"the campaign needs a folder {path}: {why}")
    for name in FILES:
        if (directory / name).is_dir():
            raise PeakmarkError(
                f"{directory / name} is a folder where the campaign needs a file: move it away"
            )


def check_room(directory: Path) -> None:
    """That a campaign can be written to. Errors: PeakmarkError."""
    _check(directory, f"the campaign lies in {directory}")


def _check(path: Path, what: str) -> None:
    if why := _no_folder(path):
        raise PeakmarkError(f"{what}: {why}, {ELSEWHERE}")
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        which = "it" if there == path else there
        raise PeakmarkError(f"{what}: {which} cannot be written to; mend its rights, {ELSEWHERE}")
    if full := files.full(there):
        raise PeakmarkError(full)


def _no_folder(path: Path) -> str | None:
    """Why the path neither is a folder nor can become one."""
    try:
        for part in (*reversed(path.parents), path):
            which = "it" if part == path else part
            if part.is_symlink() and not part.exists():
                return f"{which} is a link to {part.readlink()}, which is not there; make that, or remove the link"
            if part.exists() and not part.is_dir():
                return f"{which} is a file; move it away"
    except OSError as error:
        return f"{error.filename} cannot be looked at ({error.strerror}); mend its rights"
    return None


def keep_caches(workplace: Path) -> None:
    """Keep the caches of Snakemake and Matplotlib out of the home directory, which some users lack."""
    cache = (workplace / STATE / "cache").absolute()
    os.environ[CACHE] = str(cache)
    resources.keep_matplotlib(cache)
