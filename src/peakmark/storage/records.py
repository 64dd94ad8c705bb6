"""Read and write records, and check their type and their checksum.

A record counts if it is complete, unchanged, and measured exactly the cell that the plan asks for.
Records are never deleted. A record that does not count is moved below ``set-aside/`` before its cell
is measured again.

The checksum is the SHA-256 of the rest of the record. It reveals a file that is truncated, edited, or
damaged by the disk. It protects against mistakes, not against forgery.
"""

from __future__ import annotations

import errno
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from peakmark import files
from peakmark.catalogue import POINTS, metrics
from peakmark.cell import Cell
from peakmark.errors import UNREADABLE, PeakmarkError, RecordError, Sentence, UnreadableError
from peakmark.formatting import natural
from peakmark.storage.types import Record
from peakmark.validation import convert

SCHEMA_VERSION = 1
CHECKSUM = "sha256"
AGAIN = "the next run sets it aside and measures this cell again"
"""Remedy for a record that does not count."""
GOOD, ABSENT, DAMAGED, CLOSED, OTHER, FOREIGN = (
    "good",
    "absent",
    "damaged",
    "unreadable",
    "other options",
    "not asked for",
)
"""States of a record, see ``look``."""
ASIDE = "set-aside"
"""Folder of a campaign for records and facts that do not count."""


def checksum(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record without its checksum, with sorted keys and no spaces."""
    content = {key: value for key, value in record.items() if key != CHECKSUM}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def text_of(record: Mapping[str, Any]) -> str:
    """Return the text of a record's file, which includes the checksum."""
    sealed = {**record, CHECKSUM: checksum(record)}
    return json.dumps(sealed, indent=1, sort_keys=True, allow_nan=False) + "\n"


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record atomically and durably.

    Raises:
        RecordError: the record is not of its type, or the file cannot be written.
    """
    convert(record, Record, f"{path} is not a record of peakmark")
    try:
        files.write_text(path, text_of(record))
    except OSError as error:
        raise RecordError(
            f"the record {path} cannot be written ({error.strerror}): free disk space or correct the permissions of its "
            "folder, then start again; earlier records are complete"
        ) from error


def read(path: Path) -> dict[str, Any]:
    """Read a record, check it, and return it without its checksum.

    Raises:
        RecordError: the file is missing, damaged, edited, or not of its type.
    """
    record: dict[str, Any] = read_json(path, f"the record {path}", AGAIN)
    convert(record, Record, f"{path} is not a record of peakmark")
    if record.pop(CHECKSUM, None) != checksum(record):
        raise RecordError(
            f"the record {path} is not as it was written (its checksum does not fit)", AGAIN
        )
    _check_time(path, record["context"]["started"])
    for attempt in record.get("disturbed", ()):
        _check_time(path, attempt["context"]["started"])
    for holder in (record["cell"], *record["measurements"], record["context"]):
        _share(holder)
    for command in record["context"]["commands"]:
        _share(command)
    return record


def _check_time(path: Path, started: str) -> None:
    """Check that a text is a time that exists. Errors: RecordError."""
    try:
        datetime.fromisoformat(started).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise RecordError(
            f"the record {path} has the start time {started!r}, which is no time", AGAIN
        ) from error


def _share(holder: dict[str, Any]) -> None:
    """Replace parts of a record by equal objects from earlier records, which halves the memory."""
    for name, part in holder.items():
        if isinstance(part, str):
            holder[name] = sys.intern(part)
        elif isinstance(part, dict | list):
            holder[name] = _earlier(msgspec.json.encode(part))


@lru_cache(1024)
def _earlier(text: bytes) -> Any:
    """Return the value of a JSON text. Equal texts share one cached object."""
    return msgspec.json.decode(text)


def read_json(path: Path, what: str, remedy: str = "") -> Any:
    """Read a JSON file that peakmark wrote.

    Args:
        path: the file.
        what: name of the file in messages.
        remedy: what to do if the file is damaged.

    Raises:
        RecordError: the file is missing or damaged.
        UnreadableError: this user cannot read the file, which may be undamaged.
    """
    try:
        return files.read_json(path)
    except OSError as error:
        if error.errno in UNREADABLE:
            raise unreadable(what, path, error) from error
        raise RecordError(f"{what} cannot be read ({error.strerror})", remedy) from error
    except ValueError as error:
        raise RecordError(f"{what} is damaged ({error})", remedy) from error


def unreadable(what: str, path: Path, error: OSError) -> UnreadableError:
    """Return the error for a file that this user cannot read. ``what`` names it in the message."""
    remedy = "start again"
    if error.errno in (errno.EACCES, errno.EPERM):
        remedy = f"its owner must run chmod -R a+rX {path}"
    return UnreadableError(f"{what} cannot be read ({error.strerror})", remedy)


def attempts(campaign: Path, cell: Cell) -> Iterator[Path]:
    """Yield the paths of a cell's failed attempts, the oldest first."""
    folder = campaign / "attempts" / cell.id
    if folder.is_dir():
        yield from sorted(folder.glob("*.json"), key=lambda path: natural(path.stem))


def new_attempt(campaign: Path, cell: Cell) -> Path:
    """Create an empty file for the record of a failed attempt, with the next free number.

    Return its path.
    """
    folder = campaign / "attempts" / cell.id
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while True:
        path = folder / f"{number}.json"
        try:
            path.open("x").close()
            return path
        except FileExistsError:
            number += 1


@dataclass(frozen=True)
class Finding:
    """State of a cell's record.

    Attributes:
        state: one of the states above, such as ``GOOD``.
        reason: why an existing record does not count; otherwise empty.
        remedy: what to do about a record that does not count; otherwise empty.
        data: the record, if it is undamaged.
        cell: the planned cell, if the record counts.
    """

    state: str
    reason: str = ""
    remedy: str = ""
    data: Mapping[str, Any] | None = None
    cell: Cell | None = None

    @property
    def sentence(self) -> str:
        return str(Sentence(self.reason, self.remedy))


def survey(directory: Path, planned: Sequence[Cell]) -> dict[str, Finding]:
    """Return the state of each planned cell's record, by the cell's id."""
    return {cell.id: look(directory / "cells" / f"{cell.id}.json", cell) for cell in planned}


def look(path: Path, cell: Cell | None) -> Finding:
    """Read the record at ``path``, and return its state.

    Args:
        path: the record's file.
        cell: the planned cell that the record belongs to; None if the plan has no such cell.
    """
    # Check the record by itself.
    try:
        if not _is_there(path):
            return Finding(ABSENT)
        data = read(path)
        measured = Cell.from_json(data["cell"])
        check_raw(path, data["raw"])
        check_answer(path, data)
        check_host(path, data)
    except UnreadableError as error:
        return Finding(CLOSED, error.fact, error.remedy)
    except PeakmarkError as error:
        return Finding(DAMAGED, error.fact, error.remedy)
    if tuple(PurePosixPath(f"{measured.id}.json").parts) != path.parts[-5:]:
        return Finding(DAMAGED, f"the record {path} is that of another cell, {measured.id}")
    # Check that an undamaged record belongs to the planned cell.
    if cell is None:
        return Finding(
            FOREIGN,
            f"the record {path} is of a cell that the configuration does not ask for",
            data=data,
        )
    if measured.spec() != cell.spec():
        reason = f"the record {path} was measured with other options: {_difference(measured, cell)}"
        return Finding(OTHER, reason, data=data)
    return Finding(GOOD, data=data, cell=cell)


def _is_there(path: Path) -> bool:
    """Return whether a record exists. Errors: UnreadableError if its folder cannot be read."""
    try:
        return path.exists()
    except OSError as error:
        raise unreadable(f"the record {path}", path, error) from error


def check_raw(path: Path, raw: Mapping[str, str]) -> None:
    """Compare the raw output of a tool with the checksums in the record. Missing files are ignored.

    Raises:
        RecordError: a file does not have its checksum. The message names the file.
    """
    for name, digest in raw.items():
        file = path.parent / name
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            what = f"{file}, the output behind the record {path},"
            if error.errno in UNREADABLE:
                raise unreadable(what, file, error) from error
            raise RecordError(f"{what} cannot be read: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise RecordError(
                f"{file}, the output behind the record {path}, is not as it was written"
            )


def check_answer(path: Path, data: Mapping[str, Any]) -> None:
    """Check that the values of a record are those that its cell asks for. Errors: RecordError."""
    if data["status"] == "failed":
        raise RecordError(f"the record {path} is that of a failed attempt", AGAIN)
    for measurement in data["measurements"]:
        workload, metric, unit = measurement["workload"], measurement["metric"], measurement["unit"]
        subsystem = data["cell"]["subsystem"]
        if metrics(subsystem, workload).get(metric) != unit:
            raise RecordError(f"the record {path} gives {workload} as {metric} in {unit}", AGAIN)
        if workload in POINTS and not _are_points(workload, measurement["details"].get("points")):
            raise RecordError(f"the record {path} lacks the points of {workload}", AGAIN)


def _are_points(workload: str, points: Sequence[Sequence[float]] | None) -> bool:
    """Return whether there are points, all of them complete and with a measured value above 0."""
    count, place = POINTS[workload]
    return bool(points) and all(len(point) == count and point[place] > 0 for point in points or ())


def check_host(path: Path, data: Mapping[str, Any]) -> None:
    """Check that a record was measured on the node that its cell names. Errors: RecordError.

    A node's name in Slurm may differ from its host name. The record is therefore refused only if its host
    name is the name of another node, and that node also has records of the same row.
    """
    node, host = str(data["cell"]["node"]), str(data["context"]["host"])
    names = {host, host.partition(".")[0]}
    if node == "any" or names & {node, node.partition(".")[0]}:
        return
    for name in names:
        if "/" not in name and (path.parent.parent / name).is_dir():
            raise RecordError(
                f"the record {path} was measured on {host}, not on the node of its cell",
                AGAIN,
            )


def foreign(directory: Path, cells: Iterable[Cell]) -> list[str]:
    """Return the paths of records that belong to no planned cell, relative to the campaign."""
    known = {f"cells/{cell.id}.json" for cell in cells}
    return [name for name in record_names(directory, "cells") if name not in known]


def record_names(directory: Path, folder: str) -> list[str]:
    """Return the sorted paths of all records in ``cells`` or ``attempts``, relative to the campaign.

    JSON files in ``<repetition>.raw/`` are skipped, because they are raw output of tools.
    """
    names = []
    for path in (directory / folder).rglob("*.json"):
        name = path.relative_to(directory).as_posix()
        if ".raw/" not in name and "/." not in name:
            names.append(name)
    return sorted(names, key=lambda name: name.split("/"))


def set_aside(directory: Path, cell: Cell, good: bool = False) -> Path | None:
    """Move a record that does not count below ``set-aside/``, together with its raw output.

    The record is read again first, because another run may have written a good record meanwhile.

    Args:
        directory: folder of the campaign.
        cell: the planned cell.
        good: whether to move good records too.

    Returns:
        The new path, or None if the record was not moved.
    """
    path = directory / "cells" / f"{cell.id}.json"
    kept = [ABSENT, CLOSED]
    if not good:
        kept.append(GOOD)
    if look(path, cell).state in kept:
        return None
    raw = path.with_suffix(".raw")
    target = files.set_aside(path, (directory / ASIDE / cell.id).parent)
    if raw.is_dir() and not raw.is_symlink():
        raw.rename(target.with_suffix(".raw"))
    return target


def _difference(measured: Cell, cell: Cell) -> str:
    """Describe the options in which a measured cell differs from the planned one."""
    before = {**measured.to_json(), **measured.options, "options": 0}
    now = {**cell.to_json(), **cell.options, "options": 0}
    changed = []
    for key in sorted({*before, *now}):
        old, new = repr(before.get(key)), repr(now.get(key))
        if old != new:
            changed.append(f"{key} {old}, now {new}")
    return ", ".join(changed)
