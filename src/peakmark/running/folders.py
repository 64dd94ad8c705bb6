"""Folders that Snakemake and a campaign write into, looked at before either begins: neither says in a sentence what is
wrong with one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError

STATE = ".snakemake"
OF_CAMPAIGN = ("cells", "logs", "attempts", "machine", "nodes", "repetitions", "set-aside", "tables", "figures")
FILES = ("plan.json", "config.json", "report.pdf", "report.html", "running")
CACHE = "XDG_CACHE_HOME"


def check_state(workplace: Path) -> None:
    """Where Snakemake keeps what it knows of its jobs. Errors: PeakmarkError."""
    _check(workplace / STATE, "Snakemake keeps its notes there; --directory FOLDER works, and measures, in another one")


def check_campaign(directory: Path, cells: Iterable[Cell]) -> None:
    """Where records, logs, tables and figures will lie. Errors: PeakmarkError."""
    _check(directory, "the campaign lies there; --directory FOLDER works, and measures, in another one")
    kinds = {f"{top}/{cell.subsystem}/{cell.instrument}" for cell in cells for top in ("cells", "logs")}
    kinds |= {str(Path(kind).parent) for kind in kinds}
    for name in (*OF_CAMPAIGN, *sorted(kinds, key=len)):
        path = directory / name
        if path.is_symlink() or path.exists():
            _check(path, "it belongs to the campaign")
    for name in FILES:
        if (directory / name).is_dir():
            raise PeakmarkError(f"{directory / name} is a folder where a file of the campaign belongs: move it away")


def _check(path: Path, why: str) -> None:
    """That a folder is one, or can become one, with room in it."""
    try:
        if path.is_symlink() and not path.exists():
            raise PeakmarkError(f"{path} is a link to {path.readlink()}, which is not there, and {why}")
        if path.exists() and not path.is_dir():
            raise PeakmarkError(f"{path} is no folder, and {why}: move it away, then start again")
        found = path
        while not found.exists():
            found = found.absolute().parent
        if not found.is_dir():
            raise PeakmarkError(f"{found} is no folder, and {path} cannot be made in it: {why}")
        if not os.access(found, os.W_OK | os.X_OK):
            raise PeakmarkError(f"{found} cannot be written to, and {why}: mend its rights")
    except OSError as error:
        raise PeakmarkError(f"{path} cannot be used ({error.strerror}), and {why}") from error
    full = files.full(path)
    if full:
        raise PeakmarkError(full)


def cache() -> None:
    """Snakemake wants a cache in the home directory, which some users lack: give it another one until this process ends."""
    try:
        place = Path(os.environ.get(CACHE) or Path("~/.cache").expanduser()) / "snakemake"
        place.mkdir(parents=True, exist_ok=True)
        usable = os.access(place, os.W_OK | os.X_OK)
    except (OSError, RuntimeError):  # RuntimeError: no home directory at all
        usable = False
    if not usable:
        os.environ[CACHE] = str(Path(STATE, "cache").absolute())
