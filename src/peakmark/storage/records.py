"""Write and read records: whole or not at all, checked against the schema and their own checksum.

On disk a record carries ``sha256``, the checksum of all else in it, so that one that was cut, hit
by a bad disk or edited by hand is known when it is read. It keeps honest people from mistakes;
whoever wants to forge a record can.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark import files, schemas
from peakmark.errors import RecordError

SCHEMA_VERSION = 1
CHECKSUM = "sha256"
AGAIN = "the next run sets it aside and measures this cell again"
"""What to do about a record that does not count."""


def checksum(record: Mapping[str, Any]) -> str:
    """SHA-256 of a record's content, whatever the layout of its text: keys sorted, no spaces,
    without the checksum.
    """
    content = {key: value for key, value in record.items() if key != CHECKSUM}
    text = json.dumps(
        content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def fits(seal: object, record: Mapping[str, Any]) -> bool:
    """Whether the checksum is that of a record without one."""
    try:
        return seal == checksum(record)
    except ValueError:  # NaN and the like, which json reads and nobody writes
        return False


def text_of(record: Mapping[str, Any]) -> str:
    """A record as it stands on disk, with its checksum."""
    sealed = {**record, CHECKSUM: checksum(record)}
    return json.dumps(sealed, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Store a record under a temporary name, make it durable, then give it its name: a half record
    cannot exist.

    Errors: RecordError when it does not fit the schema, or when the disk refuses it.
    """
    schemas.validate_fast(record, "record", f"{path} is not a record of peakmark")
    try:
        files.write_text(path, text_of(record))
    except OSError as error:
        raise RecordError(
            f"the record {path} cannot be written ({error.strerror}): make room or mend the rights of its folder, then "
            "start again; what was written before is whole"
        ) from error


def read(path: Path) -> dict[str, Any]:
    """A record from disk, without its checksum.

    Errors: RecordError naming the file that is missing, damaged, changed by hand, or does not fit
    the schema.
    """
    try:
        record: dict[str, Any] = files.read_json(path)
    except OSError as error:
        raise RecordError(f"cannot read the record {path}: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"the record {path} is damaged ({error})", AGAIN) from error
    schemas.validate_fast(record, "record", f"{path} is not a record of peakmark")
    if not fits(record.pop(CHECKSUM, None), record):
        raise RecordError(
            f"the record {path} is not as it was written (its checksum does not fit)", AGAIN
        )
    return record
