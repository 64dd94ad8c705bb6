"""Read and write the machine facts of nodes, ``machine/<host>.json``.

All limits are computed from the facts, so the files have a checksum as records do. Facts from another
version of peakmark may lack parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark import files
from peakmark.errors import RecordError
from peakmark.formatting import natural
from peakmark.storage import records
from peakmark.storage.records import ASIDE

FOLDER = "machine"


def write(path: Path, facts: Mapping[str, Any]) -> None:
    """Store facts with their checksum. Errors: OSError."""
    files.write_text(path, records.text_of(facts))


def read(path: Path) -> dict[str, Any]:
    """Read facts, check them, and return them without the checksum.

    Raises:
        OSError: the file is missing, or this user cannot read it.
        RecordError: the file is damaged or edited.
    """
    what = f"the machine facts {path}"
    content = path.read_bytes()
    facts = records.parse(content, dict[str, Any], what)
    if not records.is_unchanged(content, str(facts.pop(records.CHECKSUM, ""))):
        raise RecordError(f"{what} are not as they were written (their checksum does not fit)")
    return facts


def survey(directory: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Read the facts of all hosts of a campaign, node2 before node10. Errors: OSError.

    Returns:
        Two mappings: host -> its facts; host -> why its facts are damaged.
    """
    whole, damaged = {}, {}
    paths = (directory / FOLDER).glob("*.json")
    for path in sorted(paths, key=lambda path: natural(path.stem)):
        try:
            whole[path.stem] = read(path)
        except RecordError as error:
            damaged[path.stem] = str(error)
    return whole, damaged


def set_aside(directory: Path, host: str) -> Path:
    """Move damaged facts of a host below ``set-aside/``, and return their new path. Errors: OSError."""
    return files.set_aside(directory / FOLDER / f"{host}.json", directory / ASIDE / FOLDER)
