"""``seal.json``: which trial cells are slowed in secret. Who measures them reads it; tables open it
only when the verdict is made.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from peakmark import files
from peakmark.storage.records import read_json
from peakmark.validation import convert

NAME = "seal.json"
LOSS = 0.08
"""Share of the time of its CPUs that a slowed cell loses."""


class _Seal(Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    slowed: list[str]


def write(directory: Path, slowed: Collection[str]) -> None:
    """Store the rows of the trial cells that are slowed. Errors: OSError."""
    text = json.dumps({"schema": 1, "slowed": sorted(slowed)}, indent=1)
    files.renew(directory / NAME, f"{text}\n")


def opened(directory: Path) -> frozenset[str]:
    """The rows of trial cells that are slowed. Errors: RecordError without a whole file."""
    what = f"the seal {directory / NAME}"
    return frozenset(convert(read_json(directory / NAME, what), _Seal, f"{what} is damaged").slowed)
