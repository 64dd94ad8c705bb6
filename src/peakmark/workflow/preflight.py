"""What this machine must have before the first cell: looked at once and said, instead of being
found hours later.

What a cluster's nodes have is theirs to say; Slurm says here whether it would start the jobs.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from peakmark import files, slurm
from peakmark.catalogue import AUTO, POOLS
from peakmark.cell import Cell
from peakmark.config import site
from peakmark.errors import ConfigError, PeakmarkError
from peakmark.formatting import duration, plural
from peakmark.machine import job_limits, storage
from peakmark.machine.host import Host
from peakmark.plan import durations
from peakmark.plan.plan import Plan
from peakmark.tools import REGISTRY, common
from peakmark.units import gigabytes
from peakmark.workflow import submission_errors


def check(plan: Plan, cells: Iterable[Cell]) -> list[str]:
    """Sentences on what will be missing or was decided: rows that stay empty although their tool is
    here, site files that contradict each other.

    ``cells`` are those still to be measured; without any, nothing is asked of the machine.
    Errors: ConfigError for what would let cells fail, or make an own kernel's row impossible.
    """
    asked = plan.config["site"]
    return [
        *(site.conflicts(asked) if isinstance(asked, list) else ()),
        *_lines(_empty(plan, cells)),
    ]


FOLDERS = (
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
"""Folders of a campaign."""


def check_campaign(directory: Path) -> None:
    """Errors: OSError or PeakmarkError, see ``check_folder``, for what a campaign writes into."""
    for name in ("", *FOLDERS):
        check_folder(directory / name)


def check_folder(folder: Path) -> None:
    """Check that a folder can be made and written to, where Snakemake would print a traceback.

    Raises:
        OSError: if a file or a link to nowhere is in the way, or rights are missing.
        PeakmarkError: if the disk is full.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    os.scandir(there).close()
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(there))
    if full := files.full(there):
        raise PeakmarkError(full)


def submission_error(asked: Mapping[str, str], options: Sequence[str]) -> str | None:
    """Why Slurm would never start a job, for doctor and for a campaign; None if it would.

    Args:
        asked: options of sbatch by name: ``partition``, ``time`` in minutes and ``nodes``.
        options: all of them as sbatch takes them.
    """
    # sbatch takes jobs for a partition that is DOWN, and with EnforcePartLimits=NO beyond its
    # limits.
    try:
        partitions = slurm.partitions(asked.get("partition"))
    except slurm.SlurmError:  # sbatch is asked all the same
        partitions = []
    errors = [_partition_error(partition, asked) for partition in partitions]
    if errors and all(errors):
        return errors[0]
    try:
        slurm.check_submission(options)
    except slurm.SlurmError as error:
        if submission_errors.later(error) or submission_errors.away(error):
            return None
        sentence = submission_errors.reason(error).text
        of_network = asked["nodes"] == "2" and submission_errors.NO_NETWORK not in sentence
        return f"{sentence}; {submission_errors.NO_NETWORK}" if of_network else sentence
    return None


def _partition_error(partition: slurm.Partition, asked: Mapping[str, str]) -> str:
    """Why no such job starts in the partition; empty where it may."""
    another = "slurm.partition in the site file names another, sinfo lists them"
    if partition.state != "UP":
        return f"no job starts in partition {partition.name}, which is {partition.state}: {another}"
    minutes, nodes = int(asked["time"]), int(asked["nodes"])
    if partition.limit is not None and minutes > partition.limit:
        most = plural(partition.limit, "minute")
        fact = f"partition {partition.name} ends jobs after {most} (MaxTime)"
        return f"{fact}, and {minutes} are asked for: {another}"
    if partition.nodes is not None and nodes > partition.nodes:
        most = plural(partition.nodes, "node")
        fact = f"partition {partition.name} gives a job {most} at most (MaxNodes)"
        return f"{fact}: {submission_errors.NO_NETWORK}"
    return ""


def time_limit_warning(plan: Plan, groups: Iterable[Sequence[Cell]]) -> str | None:
    """A sentence on the longest job, if its partition is expected to end it.

    ``groups``: the cells that each job still has to measure.
    """
    limit = plan.cluster.limit if plan.cluster else None
    if limit is None or plan.cluster is None:
        return None
    jobs = [(plan.durations.total(cells), cells[0].id) for cells in groups]
    longest, first = max(jobs, default=(0.0, ""))
    if longest <= limit * 60:
        return None
    return (
        f"the job of {first} is expected to take {duration(longest)}, and partition "
        f"{plan.cluster.partition} ends jobs after {plural(limit, 'minute')} (MaxTime): "
        "slurm.partition in the site file names one with longer jobs"
    )


def _empty(plan: Plan, cells: Iterable[Cell]) -> dict[str, str]:
    """Row -> why it is not possible."""
    rows = {cell.row: cell for cell in cells}
    empty = {row: reason for row, reason in plan.impossible.items() if row in rows}
    if not rows or plan.cluster is not None or plan.config["tools_on"] == "nodes":
        return empty
    _interface(plan)
    _tools(plan)
    place = _scratch(plan)
    _room(rows, place)
    return {**empty, **_memory(rows), **_records(rows, place)}


def _lines(empty: dict[str, str]) -> list[str]:
    """A line for each reason, with the first of its rows."""
    by_reason: dict[str, list[str]] = {}
    for row, reason in sorted(empty.items()):
        by_reason.setdefault(reason, []).append(row)
    return [
        f"not possible: {rows[0]}{f' and {len(rows) - 1} more' if len(rows) > 1 else ''}: {reason}"
        for reason, rows in by_reason.items()
    ]


def _interface(plan: Plan) -> None:
    asked = plan.config["interface"]
    known = [name for _, name in socket.if_nameindex()]
    if asked is not None and asked not in known:
        raise ConfigError(f"interface is {asked!r}: this machine has {', '.join(known)}")


def _tools(plan: Plan) -> None:
    for name, path in plan.config["tools"].items():
        if path is not False and name not in plan.config["modules"] and shutil.which(path) is None:
            raise ConfigError(
                f"tools.{name} is {path!r}, which is no program here: give the path of one, or false to leave it out"
            )


def _scratch(plan: Plan) -> Path:
    asked = plan.config["scratch"]
    place = files.scratch(asked)
    try:
        if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
            return place
        why = (
            "cannot be written to"
            if place.is_dir()
            else "is not a directory"
            if place.exists()
            else "does not exist"
        )
    except (OSError, ValueError) as error:
        why = f"cannot be used ({getattr(error, 'strerror', None) or error})"
    said = f"scratch is {asked!r}" if asked else f"the scratch directory is {place}"
    raise ConfigError(
        f"{said}, which {why}: set scratch: to a directory on the disk that is measured"
    )


def _room(rows: dict[str, Cell], place: Path) -> None:
    needs = {row: durations.cost(cell).disk_bytes for row, cell in rows.items()}
    hungriest = max(needs, key=lambda row: needs[row])
    if reason := files.no_room(place, needs[hungriest], hungriest):
        raise ConfigError(reason)


def _memory(rows: dict[str, Cell]) -> dict[str, str]:
    """Rows of reference tools that need more memory than there is. Errors: ConfigError for one of
    an own kernel.
    """
    total = job_limits.collect(Host())["memory_bytes"]
    empty = {}
    for row, cell in rows.items():
        need = durations.cost(cell).memory_bytes
        made_to_fit = (cell.variant in POOLS and cell.options.get("pool") == AUTO) or cell.automatic
        if made_to_fit or total is None or common.fits_memory(need, total):
            continue
        reason = f"it takes {gigabytes(need)} of memory, and {gigabytes(total)} may be used here"
        if not REGISTRY[cell.instrument].reference:
            raise ConfigError(
                f"{row} is not possible: {reason}; make the pool, the blocks or the concurrency smaller"
            )
        empty[row] = reason
    return empty


def _records(rows: dict[str, Cell], place: Path) -> dict[str, str]:
    """Rows of records that direct I/O cannot move on the disk below ``place``."""
    disks = {
        row: cell.block for row, cell in rows.items() if cell.subsystem == "disk" and cell.block
    }
    sector = storage.collect(Host(), place).get("logical_block_size") if disks else None
    refused = {
        row: common.sectors_refuse(block, sector, f"the disk of {place}")
        for row, block in disks.items()
    }
    return {row: str(reason) for row, reason in refused.items() if reason is not None}
