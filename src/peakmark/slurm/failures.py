"""Jobs that Slurm refuses or ends: what sbatch answers, whether to try again, what would mend it, and
the attempts that such jobs cannot write themselves.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import __version__, data, files, output, slurm, yamlfile
from peakmark.cell import Cell
from peakmark.errors import OUT_OF_MEMORY, PeakmarkError, RecordError, sentence
from peakmark.formatting import plural
from peakmark.messages import Message, catalogue, message
from peakmark.slurm import SlurmError, commands
from peakmark.storage import records

_CAUSE = re.compile(r"(?:submission failed|allocation failure): (.*?)(?=\s*sbatch: |$)")
"""What ended a submission: lines before it are a site's, or of tries that sbatch has repeated."""
_LIMIT = re.compile(r"\b(?:QOS|Assoc)(?:Max|Min|Grp|Time|Job|NotAllowed|Resource|Usage)\w*")
"""Slurm's name of a limit, such as QOSMaxNodePerJobLimit; one sentence follows that is the same for
all.
"""
_OTHER_JOBS = re.compile(r"Submit|Jobs|QOSJobLimit")
"""In the name of a limit: it counts jobs in the queue, of which some will end."""
_MY_JOBS = re.compile(r"MaxSubmitJobs?(?!.*PerAccount)")
"""In the name of a limit: it counts jobs of this user alone, and may be 0."""

_REFUSALS = yamlfile.read(Path(data.__file__).with_name("refusals.yaml"))
NO_NETWORK: str = _REFUSALS["remedies"]["no-network"]


@dataclass(frozen=True)
class Refusal:
    """Why Slurm takes no such job. ``is_temporary``: it may take the same job later."""

    text: str
    is_temporary: bool = False


def _cause(error: SlurmError) -> str:
    """Return what ended the submission, as Slurm says it; all of the message where that is not said."""
    causes: list[str] = _CAUSE.findall(error.reason)
    return causes[-1] if causes else error.reason


def _is_known_as(kind: str, error: SlurmError) -> bool:
    """Return whether the cause is one of the sentences of a kind in refusals.yaml.

    A cause begins with Slurm's sentence; words of a site's own, such as *standby*, say nothing.
    """
    cause = _cause(error)
    find = re.search if cause == error.reason else re.match
    return any(find(pattern, cause) for pattern in _REFUSALS[kind])


def counts_my_jobs(error: SlurmError) -> bool:
    """Return whether the refusal may be of a limit of this user's submitted jobs. Slurm says the same
    of limits that no end of a job lifts, unless it names the limit.
    """
    limit = _LIMIT.search(error.reason)
    if limit is not None:
        return bool(_MY_JOBS.search(limit[0]))
    return _is_known_as("unnamed", error)


def is_temporary(error: SlurmError, has_jobs: bool = True) -> bool:
    """Return whether the same submission may succeed later: a limit of jobs in the queue, or a
    controller that does not answer.

    Args:
        error: sbatch's.
        has_jobs: whether this user has jobs in the queue; without any, no limit of theirs is reached.
    """
    if counts_my_jobs(error):
        return has_jobs
    limit = _LIMIT.search(error.reason)
    if limit is not None:
        return bool(_OTHER_JOBS.search(limit[0]))
    return error.silent or _is_known_as("later", error) or _is_known_as("unanswered", error)


def is_unanswered(error: SlurmError) -> bool:
    """Return whether Slurm may have taken the job all the same: the answer was lost, not the
    question.
    """
    return error.silent or _is_known_as("unanswered", error)


def passes(error: SlurmError, has_jobs: bool = False) -> bool:
    """Return ``is_temporary`` for this user, whose queue is looked at only where it matters."""
    if counts_my_jobs(error) and not has_jobs:
        with suppress(SlurmError):
            has_jobs = bool(slurm.jobs())
    return is_temporary(error, has_jobs)


def text(error: SlurmError) -> str:
    """sbatch's message without its own name in every line."""
    stripped = re.sub(r"^(sbatch: )?(error: )?", "", error.reason or error.fact)
    return re.sub(r"\s*sbatch: (error: )?", "; ", stripped).strip("; ")


def text_for_now(error: SlurmError) -> str:
    """Return sbatch's message while it is waited for, and say where it may be for ever."""
    said = text(error)
    if _LIMIT.search(error.reason) is None and counts_my_jobs(error):
        return f"{said}; a limit that counts no submitted jobs stays, and ends the cells once none of your jobs is in the queue"
    return said


def refusal(error: SlurmError) -> Message:
    """sbatch's message and what would mend it."""
    limit = _LIMIT.search(error.reason)
    subject, known = (limit[0], "limits") if limit else (error.reason, "answers")
    patterns = _REFUSALS[known].items()
    remedy = next(remedy for pattern, remedy in patterns if re.search(pattern, subject))
    return message("job-refused", reason=text(error), advice=_REFUSALS["remedies"][remedy])


def check(wanted: Mapping[str, str], options: Sequence[str]) -> Refusal | None:
    """Why Slurm takes no such job, or would never start it, for doctor and for a campaign; None if
    it would.

    Args:
        wanted: options of sbatch by name: ``partition``, ``time`` in minutes and ``nodes``.
        options: all of them as sbatch takes them.
    """
    # sbatch takes jobs for a partition that is DOWN, and with EnforcePartLimits=NO beyond its
    # limits.
    try:
        partitions = slurm.partitions(wanted.get("partition"))
    except SlurmError:  # sbatch is called all the same
        partitions = []
    errors = [_partition_error(partition, wanted) for partition in partitions]
    if errors and all(errors):
        return Refusal(errors[0])
    try:
        commands.ask("sbatch", "--test-only", *options, text="#!/bin/sh\n")
    except SlurmError as error:
        if _is_known_as("waits", error):  # such a job waits in the queue
            return None
        if passes(error):
            return Refusal(text_for_now(error), is_temporary=True)
        sentence = refusal(error).text
        of_network = wanted["nodes"] == "2" and NO_NETWORK not in sentence
        return Refusal(f"{sentence}; {NO_NETWORK}" if of_network else sentence)
    return None


def _partition_error(partition: slurm.Partition, wanted: Mapping[str, str]) -> str:
    """Why no such job starts in the partition; empty where it may."""
    another = "slurm.partition in the site file names another, sinfo lists them"
    if partition.state != "UP":
        return f"no job starts in partition {partition.name}, which is {partition.state}: {another}"
    if partition.limit is not None and int(wanted["time"]) > partition.limit:
        most = plural(partition.limit, "minute")
        fact = f"partition {partition.name} ends jobs after {most} (MaxTime)"
        return f"{fact}, and {wanted['time']} are asked for: {another}"
    if partition.nodes is not None and int(wanted["nodes"]) > partition.nodes:
        most = plural(partition.nodes, "node")
        fact = f"partition {partition.name} gives a job {most} at most (MaxNodes)"
        return f"{fact}: {NO_NETWORK}"
    return ""


LOG_BYTES = 1 << 20
_OUT_OF_MEMORY = re.compile(r"oom[-_]kill event|exceeded memory limit", re.IGNORECASE)
"""What slurmstepd writes into the log of a job: with memory limited by control groups, and by
OverMemoryKill.
"""


def keep(
    campaign: Path, cell: Cell | None, number: str, state: str, details: Mapping[str, str]
) -> bool:
    """Write the attempt of the cell that a job was measuring, unless the job did so itself.

    A disk that takes nothing is named once and raises nothing: the campaign goes on.

    Args:
        campaign: the folder.
        cell: None where nobody knows which one it was.
        number: of the job.
        state: the job's, as Slurm calls it.
        details: fields of ``scontrol show job``.

    Returns:
        Whether the attempt is written.
    """
    if cell is None or has_attempt(campaign, [cell], number):
        return False
    code, log = details.get("ExitCode", ""), details.get("StdOut", "")
    case = OUT_OF_MEMORY if state == "FAILED" and _memory_ran_out(log) else state
    values = {"job": f"job {number}"}
    if case == OUT_OF_MEMORY:
        case, values["granted"] = _granted(details)
    elif f"job-ended {case}" not in catalogue():
        values |= {"state": case, "exit_code": code.partition(":")[0] or "unknown"}
        case = "exit-code"
    # Its script ran on the first node that is known.
    names = (details.get("BatchHost"), details.get("NodeList"))
    host = next((name for name in names if name and name != "(null)"), "unknown")
    end = {"state": state, "exit_code": code, "reason": details.get("Reason", ""), "log": log}
    reason = message("job-ended", case=case, **values)
    return _store(campaign, cell, reason, host.partition(".")[0], job_id=number, slurm=end)


def refuse(campaign: Path, cells: Iterable[Cell], reason: Message) -> None:
    """Write an attempt of each cell whose job never ran."""
    for cell in cells:
        _store(campaign, cell, reason, cell.node)


def has_attempt(campaign: Path, cells: Iterable[Cell], number: str) -> bool:
    """Whether the job has left an attempt of one of its cells."""
    for path in (path for cell in cells for path in records.attempts(campaign, cell)):
        with suppress(OSError, RecordError):
            if str(records.read(path)["context"].get("job_id")) == number:
                return True
    return False


def _granted(details: Mapping[str, str]) -> tuple[str, str]:
    """Case of the message, and the memory that a job was granted. ``--mem=0``, which an exclusive
    job asks for, is all of its node. Without a request, a partition's DefMemPerCPU or DefMemPerNode
    stands in its place.
    """
    # One field up to Slurm 22.05, two since 23.02.
    fields = (details.get(name, "") for name in ("AllocTRES", "TRES", "ReqTRES"))
    total = re.search(r"\bmem=([\w.]+)", " ".join(fields))
    in_all = f" ({total[1]})" if total else ""
    by_node, by_cpu = details.get("MinMemoryNode", ""), details.get("MinMemoryCPU", "")
    if _is_zero(by_node) or _is_zero(by_cpu):
        return "whole-node", in_all
    if by_cpu:
        share = f"{by_cpu} for each CPU"
        return "memory-per-cpu", f" ({share}, {total[1]} in all)" if total else f" ({share})"
    return OUT_OF_MEMORY, f" ({by_node})" if by_node else in_all


def _is_zero(memory: str) -> bool:
    """Return whether a field grants all memory of the node: 0, with or without a unit."""
    return re.fullmatch(r"0(?:\.0*)?[A-Za-z]*", memory) is not None


def _memory_ran_out(log: str) -> bool:
    """Whether a job step was ended for its memory. Slurm calls a job FAILED whose script did not
    itself run out of it, and which of its steps did so only sacct could tell, where there is a
    slurmdbd.
    """
    try:
        with Path(log).open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - LOG_BYTES))
            return bool(_OUT_OF_MEMORY.search(stream.read().decode(errors="replace")))
    except OSError:
        return False


def _store(campaign: Path, cell: Cell, reason: Message, host: str, **context: Any) -> bool:
    """Write an attempt; whether that was possible."""
    record = {
        "schema": records.SCHEMA_VERSION,
        "cell": cell.to_json(),
        "status": "failed",
        "reason": reason.text,
        "measurements": [],
        "context": {
            "host": host,
            "started": datetime.datetime.now().astimezone().isoformat(timespec="milliseconds"),
            "seconds": 0.0,
            "load_before": None,
            "load_after": None,
            "job_id": None,
            "tool": None,
            "cpus": [],
            "commands": [],
            "peakmark": __version__,
            **context,
        },
        "warnings": [],
        "raw": {},
    }
    try:
        records.write(records.new_attempt(campaign, cell), record)
    except (OSError, PeakmarkError) as error:
        why_not = sentence(error) if isinstance(error, OSError) else str(error)
        _tell_once(files.full(campaign) or f"how jobs ended cannot be kept: {why_not}")
        return False
    return True


@functools.cache
def _tell_once(text: str) -> None:
    output.tell(text)
