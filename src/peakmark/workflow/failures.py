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
from peakmark.messages import Message, catalogue, message
from peakmark.plan.plan import Plan
from peakmark.storage import records
from peakmark.workflow import current_cell

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
        _number(path) == number for path in records.attempts(plan.directory, cell)
    ):
        return None
    code, log = details.get("ExitCode", ""), details.get("StdOut", "")
    name = OUT_OF_MEMORY if state == "FAILED" and _memory_ran_out(log) else state
    if name == OUT_OF_MEMORY:
        reason = _memory(details, number)
    elif f"job-ended {name}" in catalogue():
        reason = message("job-ended", case=name, job=job_name(number))
    else:
        exit_code = code.partition(":")[0] or "unknown"
        reason = message(
            "job-ended", case="exit-code", job=job_name(number), state=name, exit_code=exit_code
        )
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


def _memory(details: Mapping[str, str], number: str) -> Message:
    """With the memory that a job was granted: ``--mem=0``, which an exclusive job asks for, is all
    of its node.
    """
    asked, has = (
        details.get("MinMemoryNode", "0"),
        re.search(r"\bmem=(\w+)", details.get("TRES", "")),
    )
    if asked != "0":
        return message("job-ended", case=OUT_OF_MEMORY, job=job_name(number), granted=asked)
    granted = f" ({has[1]})" if has else ""
    return message("job-ended", case="whole-node", job=job_name(number), granted=granted)


def job_name(number: str) -> str:
    """What messages call a job."""
    return f"job {number}"


def _store(plan: Plan, cell: Cell, record: dict[str, Any]) -> Path | None:
    try:
        path = records.new_attempt(plan.directory, cell)
        records.write(path, record)
        return path
    except (OSError, RecordError) as error:
        why = sentence(error) if isinstance(error, OSError) else str(error)
        _say_once(files.full(plan.directory) or f"how jobs ended cannot be kept: {why}")
        return None


@functools.cache
def _say_once(text: str) -> None:
    output.tell(text)


def refused(plan: Plan, cells: Iterable[Cell], reason: Message, now: datetime.datetime) -> None:
    """An attempt of each cell whose job never ran."""
    for cell in cells:
        _store(plan, cell, _record(cell, reason, cell.node, now))


def has_told(plan: Plan, cells: Iterable[Cell], number: str) -> bool:
    """Whether the job has left an attempt of one of its cells."""
    return any(
        _number(path) == number for cell in cells for path in records.attempts(plan.directory, cell)
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
    reason: Message,
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
        "reason": reason.text,
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
            "why": _as_json(reason),
            **(more or {}),
        },
        "warnings": [],
        "raw": {},
    }


def _as_json(reason: Message) -> dict[str, Any]:
    return {"code": reason.code, "case": reason.case, "values": dict(reason.values)}


def read_reason(record: Mapping[str, Any]) -> Message | None:
    """The reason of an attempt that was written here, whichever job it was; None of any other."""
    why = record["context"].get("why") or {}
    if "case" not in why or f"{why['code']} {why['case']}".rstrip() not in catalogue():
        return None
    values = {**why["values"], "job": "job"} if "job" in why["values"] else why["values"]
    return message(why["code"], case=why["case"], **values)


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
