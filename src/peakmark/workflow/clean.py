"""``peakmark clean``: remove what dead runs left on scratch disks and in campaigns, and nothing
else.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from peakmark import files
from peakmark.errors import ConfigError, RecordError
from peakmark.run import cleanup
from peakmark.run.cleanup import Leftover
from peakmark.storage.results import Results
from peakmark.units import gigabytes

_TEMPORARY = re.compile(r"\..+\.([0-9]+)\.tmp")


def clean(places: Iterable[Path], dry_run: bool = False) -> str:
    """Clean scratch directories and campaigns; without any, $TMPDIR or /tmp. Returns a line for
    each thing found.

    Errors: ConfigError when a place does not exist.
    """
    lines, freed = [], 0
    for leftover in _find(list(places)):
        size = gigabytes(leftover.size, 2)
        if leftover.keep:
            lines.append(f"stays    {leftover.path}: {leftover.keep}")
        elif dry_run:
            lines.append(f"would go {leftover.path} ({size})")
        elif _remove(leftover):
            freed += leftover.size
            lines.append(f"removed  {leftover.path} ({size})")
        else:
            lines.append(f"stays    {leftover.path}: it could not be removed")
    lines.append(f"{gigabytes(freed, 2)} freed" if lines else "no leftovers of dead runs")
    return "\n".join(lines)


def _find(places: list[Path]) -> Iterable[Leftover]:
    seen: set[Path] = set()
    for place in places or [files.scratch()]:
        if not place.is_dir():
            raise ConfigError(
                f"{place} is no directory: give a scratch directory or the folder of a campaign"
            )
        folders = {place}
        if (place / "plan.json").exists():
            yield from _temporary_files(place)
            try:
                cells = Results.read(place).planned
            except RecordError as error:
                raise ConfigError(str(error)) from error
            folders = {files.scratch(cell.options.get("scratch")) for cell in cells}
        for folder in sorted(folders - seen):
            yield from cleanup.leftovers(folder)
        seen |= folders


def _temporary_files(campaign: Path) -> Iterable[Leftover]:
    """Files of writers that died before they gave them their names (``.0.json.4242.tmp``); others
    may run elsewhere.
    """
    for path in sorted(campaign.rglob(".*.tmp")):
        match = _TEMPORARY.fullmatch(path.name)
        facts = path.lstat()
        if match is not None and stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid():
            yield Leftover(
                path, facts.st_size, "the campaign is being measured" if _held(campaign) else ""
            )


def _held(campaign: Path) -> bool:
    """Whether a Snakemake has the campaign now."""
    try:
        with (campaign / "running").open("r+b") as stream:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _remove(leftover: Leftover) -> bool:
    if leftover.path.is_dir() and not leftover.path.is_symlink():
        return cleanup.remove(leftover)
    leftover.path.unlink(missing_ok=True)
    return True
