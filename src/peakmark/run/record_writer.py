"""What is kept of a measurement: the record's content, what programs printed, and every failed
attempt.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError
from peakmark.reasons import MeasurementError, Reason, Unavailable
from peakmark.storage import records
from peakmark.tools.base import Completed, Parsed

_PLAIN = (str, int, float, list, tuple)


@dataclass
class Context:
    """What becomes the ``context`` of the record, filled in as far as the attempt came."""

    host: str
    started: str
    peakmark: str
    load_before: float | None
    seconds: float = 0.0
    load_after: float | None = None
    server_host: str | None = None
    network: dict[str, Any] | None = None
    job_id: str | None = None
    tool: dict[str, str] | None = None
    library: dict[str, Any] = field(default_factory=dict)
    cpus: list[int] = field(default_factory=list)
    allowed: dict[str, Any] | None = None
    placed: dict[str, Any] | None = None
    clock_hz_before: float | None = None
    clock_hz_after: float | None = None
    scratch: str | None = None
    noise: dict[str, Any] = field(default_factory=dict)
    server_noise: dict[str, Any] = field(default_factory=dict)
    io_limits: dict[str, int] | None = None
    commands: list[dict[str, Any]] = field(default_factory=list)


def record(
    cell: Cell, failure: PeakmarkError | None, parsed: Parsed, context: Context
) -> dict[str, Any]:
    """The record of a cell, raw outputs not yet named."""
    status = (
        "ok" if failure is None else "unavailable" if isinstance(failure, Unavailable) else "failed"
    )
    noises = {"noise": context.noise or None, "server_noise": context.server_noise or None}
    return {
        "schema": records.SCHEMA_VERSION,
        "cell": cell.to_json(),
        "status": status,
        "reason": None if failure is None else str(failure),
        "measurements": [
            {**asdict(row), "details": dict(row.details)}
            for row in (parsed.measurements if status == "ok" else ())
        ],
        "context": {**asdict(context), **noises, **_why(failure)},
        "warnings": list(parsed.warnings),
        "raw": {},
    }


def _why(failure: PeakmarkError | None) -> dict[str, Any]:
    """What happened for programs that read it: the code of a reason and its values, where the
    failure has them.
    """
    if not isinstance(failure, Reason) or failure.code is None:
        return {}
    values = {
        name: value if isinstance(value, _PLAIN) else str(value)
        for name, value in failure.values.items()
    }
    return {"why": {"code": failure.code, "values": values}}


def raw(output: Path, cell: Cell, completed: Sequence[Completed]) -> dict[str, str]:
    """What a reference tool printed, stored beside the record. Errors: MeasurementError when it
    cannot be.
    """
    folder = output.with_suffix(".raw")
    try:
        return _store_raw(folder, completed)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise MeasurementError(
            "raw-not-kept", cell=cell.id, folder=folder, why=error.strerror
        ) from error


def attempt(
    campaign: Path, cell: Cell, record: dict[str, Any], completed: Sequence[Completed]
) -> Path:
    """Every failed attempt is kept under its own number."""
    path = records.new_attempt(campaign, cell)
    record["raw"] = _store_raw(path.with_suffix(".raw"), completed)
    records.write(path, record)
    return path


def _store_raw(folder: Path, completed: Sequence[Completed]) -> dict[str, str]:
    """Keep what a tool printed beside the record: file name (relative to the record's folder) ->
    SHA-256.
    """
    checksums = {}
    shutil.rmtree(folder, ignore_errors=True)
    for number, done in enumerate(completed):
        texts = {"stdout": done.stdout, "stderr": done.stderr, **done.files}
        for name, text in texts.items():
            if text:
                path = folder / f"{number}.{name}"
                files.write_text(path, text)
                checksums[f"{folder.name}/{path.name}"] = hashlib.sha256(text.encode()).hexdigest()
    return checksums
