"""Attempts that Slurm ended: the killed job cannot tell, so the controlling process writes them
down.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark import __version__, files, output
from peakmark.cell import Cell
from peakmark.errors import OUT_OF_MEMORY, RecordError, sentence
from peakmark.planning.plan import Plan
from peakmark.running import current_cell
from peakmark.running.job_reasons import STATES, JobReason
from peakmark.storage import attempts, records

LOG_BYTES = 1 << 20
_MEMORY = re.compile(r"oom[-_]kill event|exceeded memory limit", re.IGNORECASE)
"""slurmstepd's words in the log of a job: with memory limited by control groups, and by
OverMemoryKill.
"""


def keep(
    plan: Plan,
    cells: Sequence[Cell],
    number: str,
    state: str,
    details: Mapping[str, str],
    now: datetime.datetime,
) -> Path | None:
    """Write the attempt of the cell that a job was measuring, unless the job did so itself. Returns
    its path, None when it cannot be written, which is said once. Never raises for a disk: the
    campaign goes on.

    ``details`` as of ``scontrol show job``; None is returned where nobody knows which cell it was.
    """
    cell = _present(plan, cells)
    if cell is None or any(
        _number(path) == number for path in attempts.paths(plan.directory, cell)
    ):
        return None
    code, log = details.get("ExitCode", ""), details.get("StdOut", "")
    name = OUT_OF_MEMORY if state == "FAILED" and _memory_ran_out(log) else state
    reason = JobReason("exit code", (name, code.partition(":")[0] or "unknown"), number)
    if name == OUT_OF_MEMORY:
        reason = _memory(details, number)
    elif name in STATES:
        reason = JobReason(name, job=number)
    end = {"state": state, "exit_code": code, "reason": details.get("Reason", ""), "log": log}
    names = (
        details.get("BatchHost"),
        details.get("NodeList"),
        "unknown",
    )  # its script ran on the first one that is known
    host = next(name for name in names if name and name != "(null)")
    return _store(
        plan,
        cell,
        _record(cell, reason, host.partition(".")[0], now, {"job_id": number, "slurm": end}),
    )


def _memory(details: Mapping[str, str], number: str) -> JobReason:
    """With the memory that a job was granted: ``--mem=0``, which an exclusive job asks for, is all
    of its node.
    """
    asked, has = (
        details.get("MinMemoryNode", "0"),
        re.search(r"\bmem=(\w+)", details.get("TRES", "")),
    )
    if asked != "0":
        return JobReason(OUT_OF_MEMORY, (asked,), number)
    return JobReason("whole node", (f" ({has[1]})" if has else "",), number)


def _store(plan: Plan, cell: Cell, record: dict[str, Any]) -> Path | None:
    try:
        return attempts.store(plan.directory, cell, record)
    except (OSError, RecordError) as error:
        why = sentence(error) if isinstance(error, OSError) else str(error)
        _say_once(files.full(plan.directory) or f"how jobs ended cannot be kept: {why}")
        return None


@functools.cache
def _say_once(text: str) -> None:
    output.tell(text)


def refused(plan: Plan, cells: Iterable[Cell], reason: JobReason, now: datetime.datetime) -> None:
    """An attempt of each cell whose job never ran."""
    for cell in cells:
        _store(plan, cell, _record(cell, reason, cell.node, now))


def has_told(plan: Plan, cells: Iterable[Cell], number: str) -> bool:
    """Whether the job has left an attempt of one of its cells."""
    return any(
        _number(path) == number for cell in cells for path in attempts.paths(plan.directory, cell)
    )


def _present(plan: Plan, cells: Sequence[Cell]) -> Cell | None:
    """The cell that a job of these measures, or was measuring when it ended; None when that is not
    known.
    """
    path = current_cell.path_of(plan, cells[0])
    if path is None:
        return cells[0]
    named = current_cell.read(path)
    return next((cell for cell in cells if cell.id == named), None)


def _record(
    cell: Cell,
    reason: JobReason,
    host: str,
    now: datetime.datetime,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """``more``: of the context. The reason is there as a sentence, and as what ``read_reason``
    makes of it again.
    """
    return {
        "schema": records.SCHEMA_VERSION,
        "cell": cell.to_json(),
        "status": "failed",
        "reason": str(reason),
        "measurements": [],
        "context": {
            "host": host,
            "started": now.isoformat(timespec="milliseconds"),
            "seconds": 0.0,
            "load_before": None,
            "load_after": None,
            "job_id": None,
            "tool": None,
            "cpus": [],
            "commands": [],
            "peakmark": __version__,
            "why": reason.to_json(),
            **(more or {}),
        },
        "warnings": [],
        "raw": {},
    }


def read_reason(record: Mapping[str, Any]) -> JobReason | None:
    """The reason of an attempt that was written here, whichever job it was; None of any other."""
    return JobReason.from_json(record["context"].get("why") or {})


def _memory_ran_out(log: str) -> bool:
    """Whether a job step was ended for its memory. Slurm calls a job FAILED whose script did not
    itself run out of it, and which of its steps did so only sacct could tell, where there is a
    slurmdbd.
    """
    try:
        with Path(log).open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - LOG_BYTES))
            return bool(_MEMORY.search(stream.read().decode(errors="replace")))
    except OSError:
        return False


def _number(path: Path) -> str | None:
    with contextlib.suppress(RecordError):
        return str(records.read(path)["context"].get("job_id"))
    return None
