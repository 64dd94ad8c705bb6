"""Attempts that Slurm ended: the killed job cannot tell, so the controlling process writes them down."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark import __version__, files, output
from peakmark.cell import Cell
from peakmark.errors import MORE_MEMORY, OUT_OF_MEMORY, RecordError, sentence
from peakmark.planning.plan import Plan
from peakmark.running import present
from peakmark.storage import attempts, records

WORDS = {
    "TIMEOUT": "it passed its time limit; runtime_factor in the site file's section slurm makes limits longer",
    "CANCELLED": "somebody cancelled it",
    "NODE_FAIL": "its node was lost",
    OUT_OF_MEMORY: "it used more memory than it had been granted{granted}",
    "PREEMPTED": "another job took its node",
    "BOOT_FAIL": "its node did not start",
}

LOG_BYTES = 1 << 20
_MEMORY = re.compile(r"oom[-_]kill event|exceeded memory limit", re.IGNORECASE)
"""slurmstepd's words in the log of a job: with memory limited by control groups, and by OverMemoryKill."""


def keep(
    plan: Plan, cells: Sequence[Cell], number: str, state: str, details: Mapping[str, str], now: datetime.datetime
) -> Path | None:
    """Write the attempt of the cell that a job was measuring, unless the job did so itself. Returns its path, None when
    it cannot be written, which is said once. Never raises for a disk: the campaign goes on.

    ``details`` as of ``scontrol show job``; None is returned where nobody knows which cell it was.
    """
    cell = _present(plan, cells)
    if cell is None or any(_number(path) == number for path in attempts.paths(plan.directory, cell)):
        return None
    code = details.get("ExitCode", "")
    name = OUT_OF_MEMORY if state == "FAILED" and _memory_ran_out(details.get("StdOut", "")) else state
    words = WORDS.get(name, "").format(granted=_granted(details))
    reason = f"{name}: {words}" if words else f"{name}, exit code {code.partition(':')[0] or 'unknown'}"
    told = {
        "state": state,
        "exit_code": code,
        "reason": details.get("Reason", ""),
        "log": details.get("StdOut", ""),
    }
    host = (host_of(details) or "unknown").partition(".")[0]
    record = _record(cell, f"Slurm ended job {number}: {reason}", host, now, number, told)
    return _store(plan, cell, record)


def _granted(details: Mapping[str, str]) -> str:
    """The memory that a job was granted, and what gives it more: `--mem=0`, which an exclusive job asks for, is all."""
    asked, has = details.get("MinMemoryNode", "0"), re.search(r"\bmem=(\w+)", details.get("TRES", ""))
    if asked != "0":
        return f" ({asked}); {MORE_MEMORY}"
    amount = f" ({has[1]})" if has else ""
    return f"{amount}, all that Slurm gives of its node: a smaller pool:, smaller blocks: or nodes with more memory"


def _store(plan: Plan, cell: Cell, record: dict[str, Any]) -> Path | None:
    try:
        return attempts.store(plan.directory, cell, record)
    except (OSError, RecordError) as error:
        why = sentence(error) if isinstance(error, OSError) else str(error)
        _say_once(files.full(plan.directory) or f"how jobs ended cannot be kept: {why}")
        return None


_SAID: set[str] = set()


def _say_once(text: str) -> None:
    if text not in _SAID:
        _SAID.add(text)
        output.tell(text)


def refused(plan: Plan, cells: Iterable[Cell], reason: str, now: datetime.datetime) -> None:
    """An attempt of each cell whose job never ran."""
    for cell in cells:
        _store(plan, cell, _record(cell, reason, cell.node, now))


def has_told(plan: Plan, cells: Iterable[Cell], number: str) -> bool:
    """Whether the job has left an attempt of one of its cells."""
    return any(_number(path) == number for cell in cells for path in attempts.paths(plan.directory, cell))


def _present(plan: Plan, cells: Sequence[Cell]) -> Cell | None:
    """The cell that a job of these measures, or was measuring when it ended; None when that is not known."""
    path = present.path_of(plan, cells[0])
    if path is None:
        return cells[0]
    named = present.read(path)
    return next((cell for cell in cells if cell.id == named), None)


def host_of(details: Mapping[str, str]) -> str | None:
    """The node on which the job's script ran."""
    batch = details.get("BatchHost")
    if batch and batch != "(null)":
        return batch
    nodes = details.get("NodeList")
    return nodes if nodes and nodes != "(null)" else None


def _record(
    cell: Cell,
    reason: str,
    host: str,
    now: datetime.datetime,
    number: str | None = None,
    details: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    return {
        "schema": records.SCHEMA_VERSION,
        "cell": cell.to_json(),
        "status": "failed",
        "reason": reason,
        "measurements": [],
        "context": {
            "host": host,
            "started": now.isoformat(timespec="milliseconds"),
            "seconds": 0.0,
            "load_before": None,
            "load_after": None,
            "job_id": number,
            "tool": None,
            "cpus": [],
            "commands": [],
            "peakmark": __version__,
            **({"slurm": dict(details)} if details is not None else {}),
        },
        "warnings": [],
        "raw": {},
    }


def _memory_ran_out(log: str) -> bool:
    """Whether a job step was ended for its memory. Slurm calls a job FAILED whose script did not itself run out of it,
    and which of its steps did so only sacct could tell, where there is a slurmdbd."""
    try:
        with Path(log).open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - LOG_BYTES))
            return bool(_MEMORY.search(stream.read().decode(errors="replace")))
    except OSError:
        return False


def _number(path: Path) -> str | None:
    try:
        job_id: str | None = records.read(path)["context"].get("job_id")
    except RecordError:
        return None
    return job_id
