"""``machine/<host>.json``: the facts of a node, sealed as records are, since every limit is
computed from them.

Facts that were written before there was a seal have none. Those of other versions may lack parts or
have more, but what they have must be of the type that the schema says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark import files, schemas
from peakmark.errors import RecordError
from peakmark.storage import records
from peakmark.storage.integrity import ASIDE

FOLDER = "machine"


def write(path: Path, facts: Mapping[str, Any]) -> None:
    """Store facts with their seal. Errors: OSError."""
    files.write_text(path, records.text_of(facts))


def read(path: Path) -> dict[str, Any]:
    """Facts as they were written, without the seal. Errors: RecordError when they are missing,
    damaged or edited.
    """
    try:
        facts = files.read_json(path)
    except OSError as error:
        raise RecordError(f"the machine facts {path} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise RecordError(f"the machine facts {path} are damaged ({error})") from error
    if not isinstance(facts, dict):
        raise RecordError(f"the machine facts {path} are damaged (they are no facts of a machine)")
    seal = facts.pop(records.CHECKSUM, None)
    if seal is not None and not records.fits(seal, facts):
        raise RecordError(
            f"the machine facts {path} are not as they were written (their checksum does not fit)"
        )
    schemas.validate_fast(facts, "machine", f"the machine facts {path} are damaged", partial=True)
    return facts


def survey(directory: Path) -> dict[str, dict[str, Any] | RecordError]:
    """Host -> its facts, or why they do not count, for every file below ``machine/`` of a campaign."""
    known: dict[str, dict[str, Any] | RecordError] = {}
    for path in sorted((directory / FOLDER).glob("*.json")):
        try:
            known[path.stem] = read(path)
        except RecordError as error:
            known[path.stem] = error
    return known


def whole(directory: Path) -> dict[str, dict[str, Any]]:
    """Those of ``survey`` that count."""
    return {
        host: facts
        for host, facts in survey(directory).items()
        if not isinstance(facts, RecordError)
    }


def set_aside(directory: Path, host: str) -> Path:
    """Move facts that do not count to where they are kept. Returns their new path. Errors: OSError."""
    return files.set_aside(directory / FOLDER / f"{host}.json", directory / ASIDE / FOLDER)
