"""Read and write records, which are checked against their type and their checksum.

A record counts if it is whole, unchanged and of exactly the cell that the plan asks for. Nothing is
ever deleted: a record that does not count moves below ``set-aside/`` when its cell is measured anew.

The checksum, ``sha256`` of the rest of the record, reveals a file that was cut, damaged by a bad disk
or edited. It protects against mistakes, not against forgery.
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


def checksum(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record without its checksum, with sorted keys and no spaces."""
    content = {key: value for key, value in record.items() if key != CHECKSUM}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def text_of(record: Mapping[str, Any]) -> str:
    """Return a record as its file holds it, with its checksum."""
    sealed = {**record, CHECKSUM: checksum(record)}
    return json.dumps(sealed, indent=1, sort_keys=True, allow_nan=False) + "\n"


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Store a record durably in one step.

    Raises:
        RecordError: it is not of the type, or the disk refuses it.
    """
    convert(record, Record, f"{path} is not a record of peakmark")
    try:
        files.write_text(path, text_of(record))
    except OSError as error:
        raise RecordError(
            f"the record {path} cannot be written ({error.strerror}): make room or mend the rights of its folder, then "
            "start again; what was written before is whole"
        ) from error


def read(path: Path) -> dict[str, Any]:
    """Return a record from disk, without its checksum.

    Raises:
        RecordError: names the file that is missing, damaged, edited or not of the type.
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
    """Check that a time exists in the calendar, here and in UTC. Errors: RecordError that names it."""
    try:
        datetime.fromisoformat(started).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise RecordError(
            f"the record {path} was begun at {started!r}, which is no time", AGAIN
        ) from error


def _share(holder: dict[str, Any]) -> None:
    """Replace the parts of a record that equal those of earlier records by these. This halves the
    memory of all records.
    """
    for name, part in holder.items():
        if isinstance(part, str):
            holder[name] = sys.intern(part)
        elif isinstance(part, dict | list):
            holder[name] = _earlier(msgspec.json.encode(part))


@lru_cache(1024)
def _earlier(text: bytes) -> Any:
    """Return the value of a JSON text. The cache returns one object for equal texts."""
    return msgspec.json.decode(text)


def read_json(path: Path, what: str, remedy: str = "") -> Any:
    """Return the JSON value of a file of peakmark.

    Raises:
        RecordError: begins with ``what``.
        UnreadableError: this user cannot read it; it may be whole.
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
    """Return the error for a file that may be whole and cannot be read. ``what`` names the file."""
    remedy = "start again"
    if error.errno in (errno.EACCES, errno.EPERM):
        remedy = files.how_to_read(path)
    return UnreadableError(f"{what} cannot be read ({error.strerror})", remedy)


def attempts(campaign: Path, cell: Cell) -> Iterator[Path]:
    """Yield the records of a cell's failed attempts, the oldest first."""
    folder = campaign / "attempts" / cell.id
    if folder.is_dir():
        yield from sorted(folder.glob("*.json"), key=lambda path: natural(path.stem))


def new_attempt(campaign: Path, cell: Cell) -> Path:
    """Create an empty file with the next free number, for the record of a failed attempt. Return
    its path.
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


GOOD, ABSENT, DAMAGED, CLOSED, OTHER, FOREIGN = (
    "good",
    "absent",
    "damaged",
    "unreadable",
    "other options",
    "not asked for",
)
ASIDE = "set-aside"


@dataclass(frozen=True)
class Finding:
    """State of a cell's record. Reason and remedy are empty unless a record is there and does not
    count.
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
    """Return the state of the record of each planned cell, by the cell's id."""
    return {cell.id: look(directory / "cells" / f"{cell.id}.json", cell) for cell in planned}


def look(path: Path, cell: Cell | None) -> Finding:
    """Return the state of the record at ``path``. ``cell`` is the planned cell that it must answer,
    None if no planned cell asks for it.
    """
    # A record that is damaged in itself.
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
    # A whole record that does not answer the planned cell.
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
    """Return whether a record exists. Errors: UnreadableError for one in a closed folder."""
    try:
        return path.exists()
    except OSError as error:
        raise unreadable(f"the record {path}", path, error) from error


def check_raw(path: Path, raw: Mapping[str, str]) -> None:
    """Compare the output of a tool with the checksums in its record. A missing file is no fault.

    Errors: RecordError that names the file.
    """
    for name, digest in raw.items():
        file = files.below(path.parent, name)
        try:
            content = files.read_bytes(file)
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
    """Check that a whole record answers its cell. Errors: RecordError that names what does not fit."""
    if data["status"] == "failed":
        raise RecordError(f"the record {path} is that of a failed attempt", AGAIN)
    for measurement in data["measurements"]:
        workload, metric, unit = measurement["workload"], measurement["metric"], measurement["unit"]
        if metrics(data["cell"]["subsystem"], workload).get(metric) != unit:
            raise RecordError(f"the record {path} gives {workload} as {metric} in {unit}", AGAIN)
        if workload in POINTS and not _are_points(workload, measurement["details"].get("points")):
            raise RecordError(f"the record {path} lacks the points of {workload}", AGAIN)


def _are_points(workload: str, points: Sequence[Sequence[float]] | None) -> bool:
    """Return whether a workload has points, each with a measured value above 0."""
    count, place = POINTS[workload]
    return bool(points) and all(len(point) == count and point[place] > 0 for point in points or ())


def check_host(path: Path, data: Mapping[str, Any]) -> None:
    """Check that a record was made on the node that its cell names.

    A node may have another name in Slurm than its own host name. So only the name of another node
    with records of the same row is refused. Errors: RecordError that names both.
    """
    node, host = str(data["cell"]["node"]), str(data["context"]["host"])
    names = {host, host.partition(".")[0]}
    if node == "any" or names & {node, node.partition(".")[0]}:
        return
    for name in names:
        if "/" not in name and (path.parent.parent / name).is_dir():
            raise RecordError(
                f"the record {path} was measured on {host}, another node than its cell names",
                AGAIN,
            )


def foreign(directory: Path, cells: Iterable[Cell]) -> list[str]:
    """Return the paths, below the campaign, of records that belong to no planned cell."""
    known = {f"cells/{cell.id}.json" for cell in cells}
    return [name for name in record_names(directory, "cells") if name not in known]


def record_names(directory: Path, folder: str) -> list[str]:
    """Return the sorted paths, below the campaign, of all records in ``cells`` or ``attempts``.

    The folder ``<repetition>.raw/`` of a record may hold JSON files of a tool, which are skipped.
    """
    names = []
    for path in (directory / folder).rglob("*.json"):
        name = path.relative_to(directory).as_posix()
        if ".raw/" not in name and "/." not in name:
            names.append(name)
    return sorted(names, key=lambda name: name.split("/"))


def set_aside(directory: Path, cell: Cell, good: bool = False) -> Path | None:
    """Move a record that does not count, with its raw output, to the folder for such files. Return
    its new path.

    The record is read once more, and stays if it became good in the meantime. With ``good`` good
    records move too.
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
    """Return the options in which a measured cell differs from the planned one, in words."""
    before = {**measured.to_json(), **measured.options, "options": 0}
    now = {**cell.to_json(), **cell.options, "options": 0}
    changed = []
    for key in sorted({*before, *now}):
        old, new = repr(before.get(key)), repr(now.get(key))
        if old != new:
            changed.append(f"{key} {old}, now {new}")
    return ", ".join(changed)
