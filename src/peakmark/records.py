"""Write and read records: whole or not at all, checked against the schema both times."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark import schemas
from peakmark.errors import RecordError

SCHEMA_VERSION = 1


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Store a record under a temporary name, make it durable, then give it its name: a half record cannot exist.

    Errors: RecordError when it does not fit the schema, OSError when the disk refuses it.
    """
    schemas.validate_fast(record, "record", f"{path} is not a record of peakmark")
    write_file(path, json.dumps(record, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n")


def write_file(path: Path, text: str) -> None:
    """Replace a text file in one step, durably. Errors: OSError; the old file is then untouched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read(path: Path) -> dict[str, Any]:
    """A record from disk. Errors: RecordError naming the file that is missing, damaged or does not fit the schema."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"cannot read the record {path}: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(
            f"the record {path} is damaged ({error}): delete it, the next run measures this cell again"
        ) from error
    schemas.validate_fast(record, "record", f"{path} is not a record of peakmark")
    return record
