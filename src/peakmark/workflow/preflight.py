"""What this machine must have before the first cell: found at once, and not hours later.

What the nodes of a cluster have is found there.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from peakmark import files
from peakmark.catalogue import AUTO, POOLS
from peakmark.cell import Cell
from peakmark.config import site
from peakmark.errors import ConfigError, PeakmarkError
from peakmark.formatting import listed
from peakmark.machine import job_limits, storage
from peakmark.machine.host import Host
from peakmark.plan import durations
from peakmark.plan.plan import Plan
from peakmark.tools import REGISTRY, common
from peakmark.units import gigabytes

FOLDERS = (
    *("cells", "logs", "attempts", "machine", "nodes", "repetitions", "set-aside"),
    *("tables", "figures"),
)
"""Folders of a campaign."""


def check(plan: Plan, cells: Iterable[Cell]) -> list[str]:
    """Sentences on what stays empty although its tool is here, and on site files that contradict
    each other.

    Args:
        plan: of the campaign.
        cells: those still to be measured; without any, nothing is asked of the machine.

    Raises:
        ConfigError: cells would fail, or a row of an own kernel is impossible.
    """
    sites = plan.config["site"]
    lines = list(site.conflicts(sites)) if isinstance(sites, list) else []
    by_reason: dict[str, list[str]] = {}
    for row, reason in sorted(_empty(plan, cells).items()):
        by_reason.setdefault(reason, []).append(row)
    for reason, rows in by_reason.items():
        more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        lines.append(f"not possible: {rows[0]}{more}: {reason}")
    return lines


def check_campaign(directory: Path) -> None:
    """Check all folders that a campaign writes into. Raises: see ``check_folder``."""
    for name in ("", *FOLDERS):
        check_folder(directory / name)


def check_compiler(build: Path) -> None:
    """Check that the kernels can be compiled into ``build``.

    Raises:
        OSError: see ``check_folder``.
        PeakmarkError: a program is missing; the message names its package.
    """
    check_folder(build)
    lacking = [program for program in ("gcc", "make") if shutil.which(program) is None]
    includes = ["gcc", "-E", "-include", "stdio.h", "-x", "c", os.devnull]
    if not lacking and subprocess.run(includes, capture_output=True, check=False).returncode:
        lacking = ["the C library's stdio.h"]
    if lacking:
        raise PeakmarkError(
            f"the kernels are not compiled yet, and {listed(lacking)} is not here: "
            "on Debian apt-get install gcc make libc6-dev, on Fedora dnf install gcc make glibc-devel"
        )


def check_folder(folder: Path) -> None:
    """Check that a folder can be made and written to, where Snakemake would print a traceback.

    Raises:
        OSError: a file or a link to nowhere is in the way, or rights are missing.
        PeakmarkError: the disk is full.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    os.scandir(nearest).close()
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(nearest))
    if full := files.full(nearest):
        raise PeakmarkError(full)


def _empty(plan: Plan, cells: Iterable[Cell]) -> dict[str, str]:
    """Row -> why it is not possible."""
    rows = {cell.row: cell for cell in cells}
    empty = {row: reason for row, reason in plan.impossible.items() if row in rows}
    if not rows or plan.cluster is not None or plan.config["tools_on"] == "nodes":
        return empty
    _check_interface(plan)
    _check_tools(plan)
    scratch = _check_scratch(plan)
    needs = {row: durations.cost(cell).disk_bytes for row, cell in rows.items()}
    hungriest = max(needs, key=lambda row: needs[row])
    if reason := files.no_room(scratch, needs[hungriest], hungriest):
        raise ConfigError(reason)
    return {**empty, **_without_memory(rows), **_without_sectors(rows, scratch)}


def _check_interface(plan: Plan) -> None:
    name = plan.config["interface"]
    known = [name for _, name in socket.if_nameindex()]
    if name is not None and name not in known:
        raise ConfigError(f"interface is {name!r}: this machine has {', '.join(known)}")


def _check_tools(plan: Plan) -> None:
    for name, path in plan.config["tools"].items():
        if path is not False and name not in plan.config["modules"] and shutil.which(path) is None:
            raise ConfigError(
                f"tools.{name} is {path!r}, which is no program here: give the path of one, or false to leave it out"
            )


def _check_scratch(plan: Plan) -> Path:
    configured = plan.config["scratch"]
    place = files.scratch(configured)
    try:
        if not place.exists():
            why = "does not exist"
        elif not place.is_dir():
            why = "is not a directory"
        elif not os.access(place, os.W_OK | os.X_OK):
            why = "cannot be written to"
        else:
            return place
    except (OSError, ValueError) as error:
        why = f"cannot be used ({getattr(error, 'strerror', None) or error})"
    which = f"scratch is {configured!r}" if configured else f"the scratch directory is {place}"
    raise ConfigError(
        f"{which}, which {why}: set scratch: to a directory on the disk that is measured"
    )


def _without_memory(rows: Mapping[str, Cell]) -> dict[str, str]:
    """Rows of reference tools that need more memory than there is.

    Raises:
        ConfigError: a row of an own kernel does.
    """
    total = job_limits.collect(Host())["memory_bytes"]
    empty = {}
    for row, cell in rows.items():
        need = durations.cost(cell).memory_bytes
        fitted = (cell.variant in POOLS and cell.options.get("pool") == AUTO) or cell.automatic
        if fitted or total is None or common.fits_memory(need, total):
            continue
        reason = f"it takes {gigabytes(need)} of memory, and {gigabytes(total)} may be used here"
        if not REGISTRY[cell.instrument].reference:
            raise ConfigError(
                f"{row} is not possible: {reason}; make the pool, the blocks or the concurrency smaller"
            )
        empty[row] = reason
    return empty


def _without_sectors(rows: Mapping[str, Cell], scratch: Path) -> dict[str, str]:
    """Rows of records that direct I/O cannot move on the disk of the scratch directory."""
    disks = {
        row: cell.block for row, cell in rows.items() if cell.subsystem == "disk" and cell.block
    }
    sector = storage.collect(Host(), scratch).get("logical_block_size") if disks else None
    errors = {
        row: common.sectors_refuse(block, sector, f"the disk of {scratch}")
        for row, block in disks.items()
    }
    return {row: str(reason) for row, reason in errors.items() if reason is not None}
