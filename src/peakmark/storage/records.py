"""Records on disk: written whole or not at all, checked against their type and their checksum. Those
count that are whole, unchanged and of exactly the cell that the plan asks for. Nothing is ever
deleted: a record that does not count is set aside below ``set-aside/`` when its cell is measured anew.

The checksum, ``sha256`` of all else in the record, shows that a file was cut, hit by a bad disk or
edited by hand. It keeps honest people from mistakes; whoever wants to forge a record can.
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
"""What to do about a record that does not count."""


def checksum(record: Mapping[str, Any]) -> str:
    """SHA-256 of a record's content without its checksum: keys sorted, no spaces."""
    content = {key: value for key, value in record.items() if key != CHECKSUM}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def text_of(record: Mapping[str, Any]) -> str:
    """A record as it stands on disk, with its checksum."""
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
    """A record from disk, without its checksum.

    Raises:
        RecordError: names the file that is missing, damaged, edited or not of the type.
    """
    record: dict[str, Any] = read_json(path, f"the record {path}", AGAIN)
    convert(record, Record, f"{path} is not a record of peakmark")
    if record.pop(CHECKSUM, None) != checksum(record):
        raise RecordError(
            f"the record {path} is not as it was written (its checksum does not fit)", AGAIN
        )
    for context in (record["context"], *(each["context"] for each in record.get("disturbed", ()))):
        _check_time(path, context["started"])
    for holder in (record["cell"], *record["measurements"], record["context"]):
        _share(holder)
    for command in record["context"]["commands"]:
        _share(command)
    return record


def _check_time(path: Path, started: str) -> None:
    """Check that a time is in the calendar, here and in UTC. Errors: RecordError that names it."""
    try:
        datetime.fromisoformat(started).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise RecordError(
            f"the record {path} was begun at {started!r}, which is no time", AGAIN
        ) from error


def _share(holder: dict[str, Any]) -> None:
    """Put parts of earlier records in the place of equal ones: else records take twice the memory."""
    for name, part in holder.items():
        if isinstance(part, str):
            holder[name] = sys.intern(part)
        elif isinstance(part, dict | list):
            holder[name] = _earlier(msgspec.json.encode(part))


@lru_cache(1024)
def _earlier(text: bytes) -> Any:
    return msgspec.json.decode(text)


def read_json(path: Path, what: str, remedy: str = "") -> Any:
    """The JSON value of a file of ours.

    Raises:
        RecordError: begins with ``what``.
        UnreadableError: it may be whole, but cannot be read by this user.
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
    """Return the error for a file that may be whole and cannot be read; ``what`` names it."""
    remedy = "start again"
    if error.errno in (errno.EACCES, errno.EPERM):
        remedy = files.how_to_read(path)
    return UnreadableError(f"{what} cannot be read ({error.strerror})", remedy)


def attempts(campaign: Path, cell: Cell) -> Iterator[Path]:
    """Records of the failed attempts of a cell, oldest first."""
    folder = campaign / "attempts" / cell.id
    if folder.is_dir():
        yield from sorted(folder.glob("*.json"), key=lambda path: natural(path.stem))


def new_attempt(campaign: Path, cell: Cell) -> Path:
    """An empty file with the next free number, for the record of a failed attempt."""
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
    """What is known of a cell's record: why it does not count and what to do, empty unless it is
    there and does not.
    """

    state: str
    reason: str = ""
    remedy: str = ""
    data: Mapping[str, Any] | None = None
    cell: Cell | None = None

    @property
    def sentence(self) -> str:
        """Reason and remedy."""
        return str(Sentence(self.reason, self.remedy))


def survey(directory: Path, planned: Sequence[Cell]) -> dict[str, Finding]:
    """Cell id -> what is known of its record, for all cells of a plan."""
    return {cell.id: look(directory / "cells" / f"{cell.id}.json", cell) for cell in planned}


def look(path: Path, cell: Cell | None) -> Finding:
    """The record at ``path``, which ought to answer ``cell``; None for a record that no planned
    cell asks for.
    """
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
    """Compare what a tool printed with the checksums in its record; a file that is gone is no
    contradiction.

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
    """Whether a whole record can be the answer to its cell. Errors: RecordError that names what does
    not fit.
    """
    if data["status"] == "failed":
        raise RecordError(f"the record {path} is that of a failed attempt", AGAIN)
    for measurement in data["measurements"]:
        workload, metric, unit = (measurement[key] for key in ("workload", "metric", "unit"))
        if metrics(data["cell"]["subsystem"], workload).get(metric) != unit:
            raise RecordError(f"the record {path} gives {workload} as {metric} in {unit}", AGAIN)
        if workload in POINTS and not _are_points(workload, measurement["details"].get("points")):
            raise RecordError(f"the record {path} lacks the points of {workload}", AGAIN)


def _are_points(workload: str, points: Sequence[Sequence[float]] | None) -> bool:
    """Return whether there are points of a workload, each with a measured value above 0."""
    count, place = POINTS[workload]
    return bool(points) and all(len(point) == count and point[place] > 0 for point in points or ())


def check_host(path: Path, data: Mapping[str, Any]) -> None:
    """Whether a record was made on the node that its cell names, as far as can be told: a node may
    have another name in Slurm than it gives itself, but not that of another node with records of
    the same row.

    Errors: RecordError that names both.
    """
    node, host = str(data["cell"]["node"]), str(data["context"]["host"])
    names = {host, host.partition(".")[0]}
    if node == "any" or names & {node, node.partition(".")[0]}:
        return
    if any("/" not in name and (path.parent.parent / name).is_dir() for name in names):
        raise RecordError(
            f"the record {path} was measured on {host}, another node than its cell names",
            AGAIN,
        )


def foreign(directory: Path, cells: Iterable[Cell]) -> list[str]:
    """Paths below the campaign of records that belong to no planned cell."""
    known = {f"cells/{cell.id}.json" for cell in cells}
    return [name for name in record_names(directory, "cells") if name not in known]


def record_names(directory: Path, folder: str) -> list[str]:
    """Sorted paths below the campaign of all records in ``cells`` or ``attempts``.

    ``<repetition>.raw/`` beside a record holds what a tool wrote, which may be JSON too.
    """
    paths = (directory / folder).rglob("*.json")
    names = (path.relative_to(directory).as_posix() for path in paths)
    counted = (name for name in names if ".raw/" not in name and "/." not in name)
    return sorted(counted, key=lambda name: name.split("/"))


def set_aside(directory: Path, cell: Cell, good: bool = False) -> Path | None:
    """Move a record that does not count, with its raw output, to where it is kept. Returns its new
    path.

    It is looked at once more: one that became good in the meantime stays, unless ``good`` ones are
    to go too.
    """
    path = directory / "cells" / f"{cell.id}.json"
    kept = (ABSENT, CLOSED) if good else (GOOD, ABSENT, CLOSED)
    if look(path, cell).state in kept:
        return None
    raw = path.with_suffix(".raw")
    target = files.set_aside(path, (directory / ASIDE / cell.id).parent)
    if raw.is_dir() and not raw.is_symlink():
        raw.rename(target.with_suffix(".raw"))
    return target


def _difference(measured: Cell, cell: Cell) -> str:
    before, now = ({**each.to_json(), **each.options, "options": 0} for each in (measured, cell))
    return ", ".join(
        f"{key} {before.get(key)!r}, now {now.get(key)!r}"
        for key in sorted({*before, *now})
        if repr(before.get(key)) != repr(now.get(key))
    )
