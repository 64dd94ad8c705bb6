"""Records on disk: written whole or not at all, checked against their type and their checksum.

The checksum, ``sha256`` of all else in the record, shows that a file was cut, hit by a bad disk or
edited by hand. It keeps honest people from mistakes; whoever wants to forge a record can.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import RecordError
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
    for holder in (record["cell"], *record["measurements"], record["context"]):
        _share(holder)
    for command in record["context"]["commands"]:
        _share(command)
    return record


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
    """
    try:
        return files.read_json(path)
    except OSError as error:
        raise RecordError(f"{what} cannot be read ({error.strerror})", remedy) from error
    except ValueError as error:
        raise RecordError(f"{what} is damaged ({error})", remedy) from error


def attempts(campaign: Path, cell: Cell) -> Iterator[Path]:
    """Records of the failed attempts of a cell, oldest first."""
    folder = campaign / "attempts" / cell.id
    if folder.is_dir():
        yield from sorted(
            folder.glob("*.json"), key=lambda path: int(path.stem) if path.stem.isdigit() else 0
        )


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
