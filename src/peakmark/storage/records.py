"""Read and write records and the facts of hosts, and check their type and their checksum.

A record counts if it is complete, unchanged, and measured exactly the cell that the plan asks for.
Records are never deleted. A record that does not count is moved below ``set-aside/`` before its cell
is measured again. All limits are computed from the facts (``machine/HOST.json``), so they have a checksum too.

The checksum is the SHA-256 of the file with an empty checksum in its place. It reveals a file that is
truncated, edited, or damaged by the disk. It protects against mistakes, not against forgery.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import RecordError, Sentence
from peakmark.formatting import natural, short_name
from peakmark.storage.record_types import Record

T = TypeVar("T")
CHECKSUM = "sha256"
SEAL = f'\n "{CHECKSUM}": "%s"'
"""Line of the checksum. Keys of inner mappings are indented by more than one space."""
AGAIN = "the next run sets it aside and measures this cell again"
"""Remedy for a record that does not count."""
GOOD, ABSENT, DAMAGED = "good", "absent", "damaged"
OTHER_OPTIONS, OTHER_TOOL = "with other options", "without the tools or settings of now"
"""States of a record, see ``look``."""
ASIDE = "set-aside"
"""Folder of a campaign for records and facts that do not count."""
FACTS = "machine"
"""Folder of a campaign for the facts of hosts."""
SHARED = (
    "host",
    "tool",
    "allowed",
    "placed",
    "cpus",
    "job_id",
    "peakmark",
    "scratch",
    "server_host",
)
"""Keys of a record's context whose values are usually equal in many records."""


def text_of(record: Mapping[str, Any]) -> str:
    """Return the text of a record's file, with the SHA-256 of the same text with an empty checksum."""
    text = json.dumps({**record, CHECKSUM: ""}, indent=1, sort_keys=True, allow_nan=False) + "\n"
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return text.replace(SEAL % "", SEAL % digest)


def is_unchanged(content: bytes, digest: str) -> bool:
    """Return whether a file is as it was written.

    Args:
        content: the file.
        digest: the checksum in the file.
    """
    unsealed = content.replace((SEAL % digest).encode(), (SEAL % "").encode())
    return digest == str(hashlib.sha256(unsealed).hexdigest())


def write(path: Path, record: Record) -> None:
    """Write a record atomically and durably.

    Raises:
        RecordError: the record is not of its type, or the file cannot be written.
    """
    values = msgspec.to_builtins(record)
    try:
        msgspec.convert(values, Record)
        files.write_text(path, text_of(values))
    except msgspec.ValidationError as error:
        raise RecordError(f"{path} is not a record of peakmark: {error}") from error
    except OSError as error:
        raise RecordError(
            f"the record {path} cannot be written ({error.strerror}): free disk space or correct the permissions of its "
            "folder, then start again; earlier records are complete"
        ) from error


def read(path: Path) -> Record:
    """Read a record, check it, and return it without its checksum.

    Raises:
        OSError: the file is missing, or this user cannot read it.
        RecordError: the file is damaged, edited, or not of its type.
    """
    content = path.read_bytes()
    record = parse(content, Record, f"the record {path}", AGAIN)
    if not is_unchanged(content, record.sha256):
        raise RecordError(
            f"the record {path} is not as it was written (its checksum does not fit)", AGAIN
        )
    record.sha256 = ""
    _share(record)
    return record


def _share(record: Record) -> None:
    """Replace parts of a record by equal objects from earlier records, which halves the memory."""
    context = record.context
    for name in SHARED:
        setattr(context, name, _earlier(getattr(context, name)))
    for command in context.commands:
        command.argv = _earlier(command.argv)
    for value in record.measurements:
        value.workload, value.variant = _earlier(value.workload), _earlier(value.variant)
        value.unit = _earlier(value.unit)


@lru_cache(10_000)
def _earlier(part: T) -> T:
    """Return an equal object that was read earlier, if there is one: the cache returns the first of equal arguments."""
    return part


def parse(content: bytes, kind: type[T], what: str, remedy: str = "") -> T:
    """Parse a JSON file that peakmark wrote.

    Args:
        content: the file.
        kind: type of its value.
        what: name of the file in messages.
        remedy: what to do if the file is damaged.

    Raises:
        RecordError: the file is damaged.
    """
    try:
        value: T = files.parse_json(content, kind)
    except ValueError as error:
        raise RecordError(f"{what} is damaged ({error})", remedy) from error
    return value


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


@dataclass(frozen=True, slots=True)
class Finding:
    """State of a cell's record.

    Attributes:
        state: one of the states above, such as ``GOOD``.
        reason: why an existing record does not count; otherwise empty.
        remedy: what to do about a record that does not count; otherwise empty.
        data: the record, if it is undamaged.
    """

    state: str
    reason: str = ""
    remedy: str = ""
    data: Record | None = None

    @property
    def sentence(self) -> str:
        return str(Sentence(self.reason, self.remedy))


def survey(directory: Path, planned: Sequence[Cell]) -> dict[str, Finding]:
    """Return the state of each planned cell's record, by the cell's id."""
    return {cell.id: look(directory / "cells" / f"{cell.id}.json", cell) for cell in planned}


def look(path: Path, cell: Cell) -> Finding:
    """Read the record of a planned cell at ``path``, and return its state. Errors: OSError."""
    try:
        data = read(path)
    except FileNotFoundError:
        return Finding(ABSENT)
    except RecordError as error:
        return Finding(DAMAGED, error.fact, error.remedy)
    planned = cell.keys
    if data.cell.spec() == planned.spec():
        data.cell = planned  # its texts and its options are those of the plan
        return Finding(GOOD, data=data)
    measured = Cell.of(data.cell)
    if measured.id != cell.id:
        return Finding(DAMAGED, f"the record {path} is that of another cell, {measured.id}")
    return Finding(OTHER_OPTIONS, f"the record {path} was measured with other options", data=data)


def set_aside(directory: Path, cell: Cell, good: bool = False) -> Path | None:
    """Move a record that does not count, and its raw output, into the folder ``set-aside``.

    The record is read again first, because another run may have written a good record meanwhile.

    Args:
        directory: folder of the campaign.
        cell: the planned cell.
        good: whether to move good records too.

    Returns:
        The new path, or None if the record was not moved.
    """
    path = directory / "cells" / f"{cell.id}.json"
    kept = [ABSENT]  # states in which nothing is moved
    if not good:
        kept.append(GOOD)
    if look(path, cell).state in kept:
        return None
    raw = path.with_suffix(".raw")
    target = files.set_aside(path, (directory / ASIDE / cell.id).parent)
    if raw.is_dir() and not raw.is_symlink():
        raw.rename(target.with_suffix(".raw"))
    return target


# -- facts of hosts


def write_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """Store facts with their checksum. Errors: OSError."""
    files.write_text(path, text_of(facts))


def read_facts(path: Path) -> dict[str, Any]:
    """Read facts, check them, and return them without the checksum.

    Raises:
        OSError: the file is missing, or this user cannot read it.
        RecordError: the file is damaged or edited.
    """
    what = f"the machine facts {path}"
    content = path.read_bytes()
    facts = parse(content, dict[str, Any], what)
    if not is_unchanged(content, str(facts.pop(CHECKSUM, ""))):
        raise RecordError(f"{what} are not as they were written (their checksum does not fit)")
    return facts


def survey_facts(directory: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Read the facts of all hosts of a campaign, node2 before node10. Errors: OSError.

    Returns:
        Two mappings: host -> its facts; host -> why its facts are damaged.
    """
    whole, damaged = {}, {}
    paths = (directory / FACTS).glob("*.json")
    for path in sorted(paths, key=lambda path: natural(path.stem)):
        try:
            whole[path.stem] = read_facts(path)
        except RecordError as error:
            damaged[path.stem] = str(error)
    return whole, damaged


def node_name(host: str, facts: Mapping[str, Any]) -> str:
    """Return Slurm's name of a host's node, which may differ from the host's name; without Slurm, the host's name.

    Both are without domain.
    """
    slurm = facts.get("slurm") or {}
    return short_name(slurm.get("node") or host)


def set_aside_facts(directory: Path, host: str) -> Path:
    """Move damaged facts of a host below ``set-aside/``, and return their new path. Errors: OSError."""
    return files.set_aside(directory / FACTS / f"{host}.json", directory / ASIDE / FACTS)
